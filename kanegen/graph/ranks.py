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

SMALLEST_ROW: Final = 1e-13
"""Rows that are smaller than this, relative to the largest one, are zero but for rounding."""

EQUILIBRATIONS: Final = 20
"""How often rows and columns are scaled in turn, until units do not matter."""


def unit_rows(matrix: ArrayLike) -> Array:
    """The rows scaled to length one; zero rows are unchanged."""
    rows = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)


def comparable_rows(matrix: Array) -> Array:
    """The rows of one state scaled to length one, whatever their units; rows of rounding errors become zero."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit_rows(np.where(lengths > SMALLEST_ROW * lengths.max(initial=0.0), matrix, 0.0))


def rank(matrix: ArrayLike) -> int:
    """The number of independent rows, independent of their units."""
    rows = unit_rows(matrix)
    return int(np.linalg.matrix_rank(rows, tol=RANK_TOLERANCE)) if rows.size else 0


def is_regular(matrix: Array) -> bool:
    """Whether a square matrix has full rank, whatever the units of its rows and columns.

    These are scaled so that the logarithms of the entries have the mean 0 in each of them (Curtis and Reid 1972).
    """
    entries = np.asarray(matrix, dtype=np.float64)
    nonzero = entries != 0.0
    if not (nonzero.any(axis=0).all() and nonzero.any(axis=1).all()):
        return False
    logarithms = np.log(np.abs(entries), out=np.zeros_like(entries), where=nonzero)
    for _ in range(EQUILIBRATIONS):
        for axis in (1, 0):
            mean = logarithms.sum(axis=axis, keepdims=True) / nonzero.sum(axis=axis, keepdims=True)
            logarithms = np.where(nonzero, logarithms - mean, 0.0)
    scaled = unit_rows(np.where(nonzero, np.copysign(np.exp(logarithms), entries), 0.0))
    return bool(np.linalg.svd(scaled, compute_uv=False).min(initial=1.0) > RANK_TOLERANCE)


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
