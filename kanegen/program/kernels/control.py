"""Twins of the C kernels of ``kg_control.h``: controls that satisfy servo-constraints, in any precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from kanegen.program.kernels.generalized import OK, RANK_DEFICIENT, Array, pseudoinverse

INFEASIBLE: Final = -2

CONTROL_TOLERANCE: Final = 1.5e-8
CONTROL_FLOOR: Final = 1e-12


def control_work(m: int, n: int) -> int:
    """Length of the work array of the kernel ``control_solve``: ``KG_CONTROL_WORK``."""
    return m * (m + 3) + n


def control_solve(m: int, n: int, A: Array, z: Array, y: Array, work: Array, x: Array) -> int:
    """``x = A^+ z + (I - A^+ A) y``, (n,); ``INFEASIBLE`` where z (m,) is not in the range of A (m, n)."""
    rows = [list(A[i * n : (i + 1) * n]) for i in range(m)]
    rest = [z[i] - sum(a * b for a, b in zip(row, y, strict=True)) for i, row in enumerate(rows)]
    change, _, rank = pseudoinverse(rows, rest, n)
    x[:] = [a + b for a, b in zip(y, change, strict=True)]
    if rank == m:
        return OK
    missing = [b - sum(a * c for a, c in zip(row, change, strict=True)) for row, b in zip(rows, rest, strict=True)]
    limit = CONTROL_TOLERANCE * _norm(z) + CONTROL_FLOOR
    return RANK_DEFICIENT if _norm(missing) <= limit else INFEASIBLE


def _norm(x: Sequence[Any]) -> float:
    return math.sqrt(sum(value * value for value in x))
