"""Dense linear algebra for the twins of the kernels: LAPACK for floats, mpmath for its numbers in their precision.

Arrays of mpmath numbers are NumPy arrays of objects, so that sums and products are written once.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = MutableSequence[Any]
"""A flat row-major array as the kernels take it: a list, or a one-dimensional NumPy array."""

Matrix: TypeAlias = NDArray[Any]


def matrix(rows: int, columns: int, values: Sequence[Any]) -> Matrix:
    """The matrix (rows, columns) of a flat row-major array."""
    return vector(values).reshape(rows, columns)


def vector(values: Sequence[Any]) -> Matrix:
    result = np.array(list(values))
    return result if result.dtype == object else result.astype(float)


def fill(target: Array, values: Matrix) -> None:
    """Write ``values``, row-major, to the beginning of a flat array."""
    for index, value in enumerate(np.ravel(values).tolist()):
        target[index] = value


def rank_tolerance(n: int, M: Matrix) -> Any:
    """Pivots below this fraction of their scale count as zero: ``KG_RANK_TOLERANCE`` in the precision of M."""
    return 64 * n * epsilon(M)


def epsilon(M: Matrix) -> Any:
    """Relative rounding of the numbers in M."""
    context = _context(M)
    return np.finfo(float).eps if context is None else context.eps


def equilibrated(M: Matrix, width: int) -> Matrix | None:
    """Rows divided by the largest magnitude of their first ``width`` entries; None where a row has no such scale."""
    scales = np.max(np.abs(M[:, :width]), axis=1, initial=0)
    if not all(0 < scale < np.inf for scale in scales):
        return None
    scaled: Matrix = M / scales[:, None]
    return scaled


def lu_solution(M: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """U above L (below the diagonal) of M (n, n) by row pivoting, and the solution (n, m) for ``right`` (n, m).

    A pivot of zero leaves zeros, or infinities, for both.
    """
    context = _context(M)
    if context is None:
        from scipy.linalg.lapack import dgetrf, dgetrs

        factors, pivots, _ = dgetrf(M)
        # One column at a time: its digits do not depend on the others.
        return factors, np.array([dgetrs(factors, pivots, b)[0] for b in right.T]).T
    try:
        L, pivots = context.LU_decomp(context.matrix(M.tolist()), overwrite=True, use_cache=False)
        columns = [context.U_solve(L, context.L_solve(L, context.matrix(b.tolist()), pivots)) for b in right.T]
    except ZeroDivisionError:
        return np.zeros_like(M), right
    return vector(L).reshape(M.shape), np.array([vector(column) for column in columns]).T


def cholesky_factor(S: Matrix) -> Matrix | None:
    """L with ``L L^T = S``, read from the lower triangle; None where S is not safely positive definite."""
    context, n = _context(S), len(S)
    lower = np.tril(S)
    if n == 0 or not all(0 < S[i, i] < np.inf for i in range(n)):
        return lower if n == 0 else None
    try:
        if context is None:
            L = np.linalg.cholesky(lower)
        else:
            L = matrix(n, n, context.cholesky(context.matrix((lower + np.tril(S, -1).T).tolist())))
    except (np.linalg.LinAlgError, ValueError):
        return None
    tolerance = rank_tolerance(n, S)
    return L if all(L[k, k] ** 2 > tolerance * S[k, k] for k in range(n)) else None


def cholesky_substitute(L: Matrix, b: Matrix) -> Matrix:
    """The solution (n,) of ``L L^T x = b``."""
    x = b.copy()
    for rows in (L, L.T[::-1, ::-1]):
        for k in range(len(x)):
            x[k] = (x[k] - rows[k, :k] @ x[:k]) / rows[k, k]
        x = x[::-1]
    return x


def symmetric_eigen(S: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues (n,), ascending, and eigenvectors, one in each row of (n, n), of a symmetric matrix."""
    context = _context(S)
    if context is None:
        if not np.all(np.isfinite(S)):
            return np.full(len(S), np.nan), np.full(S.shape, np.nan)
        values, vectors = np.linalg.eigh(S)
        return values, vectors.T
    E, V = context.eigsy(context.matrix(S.tolist()))
    return vector(E), vector(V).reshape(S.shape).T


def singular_values(M: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """U (m, k), singular values (k,), descending, and V^T (k, n) of M (m, n), with ``k = min(m, n)``."""
    context, (m, n) = _context(M), M.shape
    k = min(m, n)
    if context is None:
        if not np.all(np.isfinite(M)):
            return np.full((m, k), np.nan), np.full(k, np.nan), np.full((k, n), np.nan)
        return np.linalg.svd(M, full_matrices=False)
    U, values, VT = context.svd_r(context.matrix(M.tolist()))
    return matrix(m, k, U), vector(values), matrix(k, n, VT)


def _context(M: Matrix) -> Any:
    """The mpmath context of the entries; None for floats."""
    return next((x.context for x in M.flat if hasattr(x, "context")), None) if M.dtype == object else None
