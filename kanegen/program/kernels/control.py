"""Kernels of ``kg_control.h`` and their twins: controls of servo-constraints, by singular values."""

from __future__ import annotations

from typing import Any, Final

from kanegen.program.kernels.dense import Array, Matrix, fill, matrix, singular_values, vector
from kanegen.program.kernels.generalized import pseudoinverse
from kanegen.program.kernels.records import INFEASIBLE, OK, RANK_DEFICIENT, Kernel

CONTROL_TOLERANCE: Final = 1.5e-8
CONTROL_FLOOR: Final = 1e-12
"""Relative and absolute part of what ``A x - z`` may be where controls exist."""


def control_solve(m: int, n: int, A: Array, z: Array, y: Array, work: Array, x: Array) -> int:
    """``x = A^+ z + (I - A^+ A) y``, (n,); ``INFEASIBLE`` where z (m,) is not in the range of A (m, n)."""
    M, start = matrix(m, n, A), vector(y)
    rest = vector(z) - M @ start
    change, _, rank = pseudoinverse(M, rest)
    fill(x, start + change)
    if rank == m:
        return OK
    limit = CONTROL_TOLERANCE * _norm(vector(z)) + CONTROL_FLOOR
    return RANK_DEFICIENT if _norm(rest - M @ change) <= limit else INFEASIBLE


def control_damped(m: int, n: int, A: Array, z: Array, damping: Array, work: Array, x: Array) -> int:
    """``x = A^+ z``, (n,), where singular values of A (m, n) below the damping act as if they were that large."""
    U, values, VT = singular_values(matrix(m, n, A))
    weights = vector([value / max(value, damping[0]) ** 2 for value in values])
    fill(x, (U.T @ vector(z) * weights) @ VT)
    return OK


def control_feasibility(m: int, n: int, A: Array, z: Array, work: Array, x: Array, result: Array) -> int:
    """``x = A^+ z``; ``result``: rank and smallest singular value of A (m, n), whether z is in its range."""
    M = matrix(m, n, A)
    rank = pseudoinverse(M, vector(z))[2]
    status = control_solve(m, n, A, z, [0] * n, work, x)
    smallest = singular_values(M)[1][-1] if rank == min(m, n) else 0
    result[:] = [rank, smallest, int(status >= 0)]
    return OK


def _norm(x: Matrix) -> Any:
    return (x @ x) ** 0.5


def _operations(m: int, n: int) -> int:
    # The rest of the right side, about five sweeps of rotations of the rows, and the solution along each.
    return 2 * m * n + 5 * m * (m - 1) // 2 * (6 * n + 6 * m + 12) + m * (6 * n + 4 * m)


def _work(m: int, n: int) -> int:
    return m * (m + 3) + n


_SIZES: Final = ("m", "n")
_A, _M, _N = ("m", "n"), ("m",), ("n",)

KERNELS: Final = (
    Kernel(
        "control_solve",
        "kg_control.h",
        _SIZES,
        {"A": _A, "z": _M, "y": _N, "work": (), "x": _N},
        ("x",),
        control_solve,
        _operations,
        _work,
    ),
    Kernel(
        "control_damped",
        "kg_control.h",
        _SIZES,
        {"A": _A, "z": _M, "damping": (1,), "work": (), "x": _N},
        ("x",),
        control_damped,
        _operations,
        lambda m, n: m * m,
    ),
    Kernel(
        "control_feasibility",
        "kg_control.h",
        _SIZES,
        {"A": _A, "z": _M, "work": (), "x": _N, "result": (3,)},
        ("x", "result"),
        control_feasibility,
        _operations,
        lambda m, n: _work(m, n) + n,
    ),
)
