"""Twins of the C kernels of ``kg_control.h``: damped controls and feasibility, in any precision.

They follow definitions, not the C text: singular values through the eigenvectors of the Gram matrix of the rows.
"""

from __future__ import annotations

from typing import Any

from kanegen.program.kernels.control import control_solve, control_work
from kanegen.program.kernels.generalized import OK, Array, eigen, pseudoinverse


def control_damped_work(m: int, n: int) -> int:
    """Length of the work array of the kernel ``control_damped``: ``KG_CONTROL_DAMPED_WORK``."""
    return m * m


def control_damped(m: int, n: int, A: Array, z: Array, damping: Array, work: Array, x: Array) -> int:
    """``x = A^+ z``, (n,), where singular values of A (m, n) below the damping act as if they were that large."""
    rows = _rows(m, n, A)
    values, vectors = eigen(_gram(rows))
    least = damping[0] * damping[0]
    weights = [_dot(vector, z) / max(value, least) for value, vector in zip(values, vectors, strict=True)]
    y = [_dot(weights, column) for column in zip(*vectors, strict=True)]
    x[:] = [_dot(y, column) for column in zip(*rows, strict=True)]
    return OK


def control_feasibility_work(m: int, n: int) -> int:
    """Length of the work array of the kernel ``control_feasibility``: ``KG_CONTROL_FEASIBILITY_WORK``."""
    return control_work(m, n) + n


def control_feasibility(m: int, n: int, A: Array, z: Array, work: Array, x: Array, result: Array) -> int:
    """``x = A^+ z``; ``result``: rank and smallest singular value of A (m, n), whether z is in its range."""
    rows = _rows(m, n, A)
    _, _, rank = pseudoinverse(rows, list(z), n)
    values = sorted((value for value in eigen(_gram(rows))[0]), reverse=True)
    status = control_solve(m, n, A, z, [0 * z[0]] * n, work, x)
    result[:] = [rank, values[rank - 1] ** 0.5 if rank == min(m, n) else 0, int(status >= 0)]
    return OK


def _rows(m: int, n: int, A: Array) -> list[list[Any]]:
    return [list(A[i * n : (i + 1) * n]) for i in range(m)]


def _gram(rows: list[list[Any]]) -> list[list[Any]]:
    return [[_dot(a, b) for b in rows] for a in rows]


def _dot(a: Any, b: Any) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0 * a[0])
