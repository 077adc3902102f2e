"""Counts operations (C operations and function calls) and estimates the time they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kanegen.graph import Node, reachable
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.lower import GATHERED, LOADS, Value, lowered, shared_denominators
from kanegen.program.records import Call, Function, Guard, Invoke


def operation_count(function: Function, constants: Sequence[Node] = ()) -> int:
    """Return the operations of one call of ``function`` with hoisted ``constants``, without those of ``prepare``.

    Every C operation and every function call counts 1; a call of a runtime kernel counts the operations of the kernel.
    Fallbacks of guards are not counted.
    """
    own = len(_operations(function, constants)) if constants else _without_hoisting(function)
    kernels = sum(_kernel(step) for step in function.steps if isinstance(step, Call))
    kernels += sum(operation_count(step.function, constants) for step in function.steps if isinstance(step, Invoke))
    return own + kernels + sum(isinstance(step, Guard) for step in function.steps)


WEIGHTS: Final[Mapping[str, float]] = {
    "div": 30.0,
    "reciprocal": 30.0,
    "sqrt": 30.0,
    **dict.fromkeys((*GATHERED, *GATHERED.values()), 90.0),
}
"""Time of an operation in units of an addition or product, which has the weight 1.

These and the following weights are a non-negative least-squares fit to the relative times of right-hand sides of all
examples in four forms. One unit is 0.05 ns, since the processor executes several operations at a time."""

KERNEL_WEIGHT: Final = 4.0
"""Time of an operation of a runtime kernel, which loops over arrays in memory."""

CALL_WEIGHT: Final = 10.0
"""Time of a call of a runtime kernel or of another function."""

GUARD_WEIGHT: Final = 8.0
"""Time of a guard; a right-hand side without it is 0.3 to 4 ns faster."""


LATENCIES: Final[Mapping[str, float]] = {"div": 75.0, "reciprocal": 75.0, "sqrt": 90.0}
"""Time from the operands of an operation to its result, in the same unit."""

LATENCY: Final = 20.0
"""The same for all other operations: 4 cycles of the processor."""


def cost_estimate(function: Function, constants: Sequence[Node] = ()) -> float:
    """Estimate the time of one call of ``function``, in additions, to compare the forms of one model.

    It counts the same operations as :func:`operation_count`, weighted with measured times.
    """
    cost = sum(WEIGHTS.get(value.op, 1.0) for value in _operations(function, constants))
    for step in function.steps:
        if isinstance(step, Call):
            cost += CALL_WEIGHT + KERNEL_WEIGHT * _kernel(step)
        elif isinstance(step, Invoke):
            cost += CALL_WEIGHT + cost_estimate(step.function, constants)
        elif isinstance(step, Guard):
            cost += GUARD_WEIGHT
    return cost


def latency(function: Function, constants: Sequence[Node] = ()) -> float:
    """Return the time of the longest sequence of operations, each of which needs the result of the one before.

    It is a lower bound of the time of straight-line code. A recursion along a chain of bodies reaches it.
    """
    ends: dict[Value, float] = {}
    for value in lowered(function, constants).order:
        own = 0.0 if value.op in LOADS else LATENCIES.get(value.op, LATENCY)
        ends[value] = own + max((ends[operand] for operand in value.args), default=0.0)
    return max(ends.values(), default=0.0)


def _operations(function: Function, constants: Sequence[Node]) -> list[Value]:
    """Return the values that the blocks and conditions of a function compute."""
    order = lowered(function, constants).order
    return [value for value in order if value.op not in LOADS or value.op in GATHERED.values()]


def _without_hoisting(function: Function) -> int:
    """Return the number of operations without hoisted constants."""
    nodes = reachable(function.roots)
    shared = shared_denominators(nodes, {})
    # A shared denominator is inverted once; a quotient 1/x is this inverse and costs nothing more.
    inverses = sum(n.op == "div" and n.args[1].index in shared and n.args[0].is_one for n in nodes)
    return sum(node.op not in LOADS for node in nodes) + len(shared) - inverses


def _kernel(call: Call) -> int:
    return KERNELS[call.kernel].operations(*(a for a in call.arguments if isinstance(a, int)))
