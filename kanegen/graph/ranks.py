"""Ranks of numeric matrices, with one common tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kanegen.arrays import Array

RANK_TOLERANCE: Final = 1e-9
"""Relative size below which a singular value, a pivot or a remainder counts as zero. Constraint rows and inertias at
random states carry relative errors of 1e-13 at most (some hundred roundings, Newton's method converged to 1e-14), and
rows that are independent by design give values far above 1e-6: the tolerance lies between."""

EQUILIBRATIONS: Final = 3
"""How often rows and columns are scaled in turn, until units hardly matter."""


def unit_rows(matrix: ArrayLike) -> Array:
    """The rows scaled to length one; zero rows are unchanged."""
    rows = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)


def rank(matrix: ArrayLike) -> int:
    """The number of independent rows, independent of their units."""
    rows = unit_rows(matrix)
    return int(np.linalg.matrix_rank(rows, tol=RANK_TOLERANCE)) if rows.size else 0


def is_regular(matrix: Array) -> bool:
    """Whether a square matrix has full rank, whatever the units of its rows and columns."""
    scaled = np.abs(np.asarray(matrix, dtype=np.float64))
    for _ in range(EQUILIBRATIONS):
        for axis in (0, 1):
            largest = scaled.max(axis=axis, keepdims=True, initial=0.0)
            if not np.all(largest > 0.0):
                return False
            scaled = scaled / largest
    signed = np.copysign(scaled, matrix)
    return bool(np.linalg.svd(signed, compute_uv=False).min(initial=1.0) > RANK_TOLERANCE)


def null_space(matrix: ArrayLike) -> Array:
    """Orthonormal columns (n, k) that span the vectors which ``matrix`` (m, n) maps to zero."""
    _, sizes, V = np.linalg.svd(unit_rows(matrix))
    columns: Array = V[np.count_nonzero(sizes > RANK_TOLERANCE) :].T
    return columns


def independent_rows(matrix: Sequence[Sequence[Any]] | NDArray[Any]) -> tuple[int, ...]:
    """Indices of the rows that do not depend on the rows before them."""
    chosen: list[int] = []
    rows = unit_rows(matrix)
    for k in range(len(matrix)):
        if rank(rows[[*chosen, k]]) > len(chosen):
            chosen.append(k)
    return tuple(chosen)


def off_span(vector: Array, rows: Array) -> Array:
    """The component of ``vector`` (n,) that is orthogonal to all ``rows`` (m, n)."""
    return vector - rows.T @ np.linalg.lstsq(rows.T, vector, rcond=RANK_TOLERANCE)[0] if len(rows) else vector


def pivoted_columns(matrix: Array) -> tuple[int, list[int]]:
    """The rank, and all columns in the order of QR with column pivoting: the first ``rank`` ones are independent."""
    if not matrix.size:
        return 0, list(range(matrix.shape[1]))
    from scipy.linalg import qr

    R, order = qr(matrix, mode="r", pivoting=True)
    pivots = np.abs(np.diag(R))
    return int((pivots > RANK_TOLERANCE * pivots[0]).sum()), [int(k) for k in order]
