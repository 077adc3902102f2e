"""Operation counts, in C operations and function calls, and an estimate of the time they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kanegen.graph.nodes import Node
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.lower import GATHERED, LOADS, Value, lowered, needed_nodes, shared_denominators
from kanegen.program.records import Call, Function, Guard, Invoke, Program


def operation_count(function: Function, constants: Sequence[Node] = ()) -> int:
    """Operations of one call of ``function`` with ``constants`` hoisted; ``prepare`` is not counted.

    Every C operation and every function call counts 1, a runtime kernel its own operations. Fallbacks of
    guards are not counted.
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
"""Time of an operation in that of an addition or product, which 1 stands for.

These and the following weights are a non-negative least-squares fit to the relative times of right-hand sides: all
examples in four forms. 0.05 ns for an addition or product, since several run at a time."""

KERNEL_WEIGHT: Final = 4.0
"""Time of an operation of a runtime kernel: loops over arrays in memory."""

CALL_WEIGHT: Final = 10.0
"""Time of the call of a runtime kernel, and the same for another function."""

GUARD_WEIGHT: Final = 8.0
"""Time of a guard; taking it out of a right-hand side saves 0.3 to 4 ns."""


def cost_estimate(function: Function, constants: Sequence[Node] = ()) -> float:
    """Estimated time of one call of ``function``, in additions; for comparing forms of one model, not for reports.

    Counts what :func:`operation_count` counts, but weighs it with measured times.
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


def operation_counts(program: Program) -> dict[str, int]:
    """`operation_count` of every function in the table, by name."""
    return {f.name: operation_count(f, program.constants) for f in program.functions if not f.internal}


def _operations(function: Function, constants: Sequence[Node]) -> list[Value]:
    """What the blocks and conditions of a function compute."""
    order = lowered(function, constants).order
    return [value for value in order if value.op not in LOADS or value.op in GATHERED.values()]


def _without_hoisting(function: Function) -> int:
    """The number of operations that the function would have if nothing were hoisted."""
    nodes = needed_nodes(function.roots, lambda node: False)
    shared = shared_denominators(nodes, {})
    # A shared denominator is inverted once; a quotient 1/x then is that inverse.
    inverses = sum(n.op == "div" and n.args[1].index in shared and n.args[0].is_one for n in nodes)
    return sum(node.op not in LOADS for node in nodes) + len(shared) - inverses


def _kernel(call: Call) -> int:
    return KERNELS[call.kernel].operations(*(a for a in call.arguments if isinstance(a, int)))
