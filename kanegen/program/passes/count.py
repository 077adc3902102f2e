"""Operation counts, in C operations and function calls, and an estimate of the time they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kanegen.graph.nodes import Node
from kanegen.program.passes.code import Value
from kanegen.program.passes.hoist import roots
from kanegen.program.passes.lower import GATHERED, LOADS, constant_positions, lower
from kanegen.program.records import Call, Function, Guard, Invoke, Program


def _scaling(rows: int, width: int, columns: int) -> int:
    # Of each row: its largest magnitude, two tests of that, and the divisions by it.
    return rows * (2 * width + 2 + width + columns)


def _lu(n: int, columns: int) -> int:
    # The search for pivots looks at a whole column each time. For small n it costs more than the arithmetic.
    arithmetic = (4 * n**3 - 3 * n**2 - n) // 6 + columns * (2 * n**2 - n)
    return arithmetic + _scaling(n, n, columns) + n * (2 * n + 2)


def _cholesky(n: int, columns: int) -> int:
    return (2 * n**3 + 3 * n**2 + n) // 6 + columns * 2 * n**2 + 3 * n


def _elimination(n_u: int, n_c: int, columns: int) -> int:
    search = sum(2 * (n_c - k) * (n_u - k) + 2 for k in range(n_c))
    return n_c * n_c * (2 * (n_u + columns) - n_c) + _scaling(n_c, n_u, columns) + search


def _constrained(n_u: int, n_c: int) -> int:
    # Elimination of the rows, the mass matrix reduced to the independent speeds, its Cholesky solve.
    n_i = n_u - n_c
    reduce = 2 * n_u * n_u * n_i + 2 * n_u * n_i * n_i
    return _elimination(n_u, n_c, 1) + reduce + _cholesky(n_i, 1) + 2 * n_u * n_u


def _udwadia_kalaba(n_u: int, n_c: int) -> int:
    # Factor of Q, its substitution into every row, and about five sweeps of rotations of the rows.
    return _cholesky(n_u, 1) + n_c * n_u * n_u + 5 * n_c * n_c * (6 * n_u + 3 * n_c)


def _control(m: int, n: int) -> int:
    # The rest of the right side, about five sweeps of rotations of the rows, and the solution along each.
    return 2 * m * n + 5 * m * (m - 1) // 2 * (6 * n + 6 * m + 12) + m * (6 * n + 4 * m)


KERNEL_OPERATIONS: Final[Mapping[str, Callable[..., int]]] = {
    "lu_solve": lambda n, *_: _lu(n, 1),
    "lu_solve_many": lambda n, m, *_: _lu(n, m),
    "cholesky_solve": lambda n, *_: _cholesky(n, 1),
    "cholesky_solve_many": lambda n, m, *_: _cholesky(n, m),
    "partition": lambda n_u, n_c, *_: _elimination(n_u, n_c, 0),
    "multipliers": lambda n_u, n_c, *_: _elimination(n_u, n_c, n_c) + 2 * n_c * n_c,
    "udwadia_kalaba": lambda n_u, n_c, *_: _udwadia_kalaba(n_u, n_c),
    "udwadia_kalaba_limit": lambda n_u, n_c, *_: _udwadia_kalaba(n_u, n_c) + n_c * n_u * n_u,
    "udwadia_kalaba_many": lambda n_u, n_c, m: (
        _udwadia_kalaba(n_u, n_c) + m * (2 * n_u * n_u + n_c * (2 * n_c + 4 * n_u))
    ),
    "canonical": lambda n_u, n_c, *_: 60 * n_u**3 + _udwadia_kalaba(n_u, n_c),
    "constrained_solve": lambda n_u, n_c, *_: _constrained(n_u, n_c),
    "control_solve": lambda m, n, *_: _control(m, n),
    "control_damped": lambda m, n, *_: _control(m, n),
    "control_feasibility": lambda m, n, *_: _control(m, n),
}
"""Operations of each runtime kernel from its leading integer arguments (Golub and Van Loan, 2013), with those of
choosing pivots and judging them."""


def operation_count(function: Function, constants: Sequence[Node] = ()) -> int:
    """Operations of one call of ``function`` with ``constants`` hoisted; ``prepare`` is not counted.

    Every C operation and every function call counts 1, a runtime kernel its own operations. Fallbacks of
    guards are not counted.
    """
    own = len(_operations(function, constants))
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
    lowered = lower(roots(function), constant_positions(constants))
    return [value for value in lowered.order if value.op not in LOADS or value.op in GATHERED.values()]


def _kernel(call: Call) -> int:
    formula = KERNEL_OPERATIONS.get(call.kernel)
    if formula is None:
        raise KeyError(f"no operation count for the kernel {call.kernel!r}; there are {sorted(KERNEL_OPERATIONS)}")
    return formula(*(a for a in call.arguments if isinstance(a, int)))
