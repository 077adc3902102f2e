"""Dense linear algebra for the twins of the kernels: LAPACK for floats, mpmath for numbers of higher precision.

Arrays of mpmath numbers are NumPy arrays of objects, so that the same code serves both.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = MutableSequence[Any]
"""A flat row-major array argument of a kernel: a list or a one-dimensional NumPy array."""

Matrix: TypeAlias = NDArray[Any]


def matrix(rows: int, columns: int, values: Sequence[Any]) -> Matrix:
    """Return the matrix (rows, columns) of a flat row-major array."""
    return vector(values).reshape(rows, columns)


def vector(values: Sequence[Any]) -> Matrix:
    result = np.array(list(values))
    return result if result.dtype == object else result.astype(float)


def fill(target: Array, values: Matrix) -> None:
    """Write ``values``, row-major, to the beginning of a flat array."""
    for index, value in enumerate(np.ravel(values).tolist()):
        target[index] = value


def rank_tolerance(n: int, M: Matrix) -> Any:
    """Return ``KG_RANK_TOLERANCE`` in the precision of M: pivots below this fraction of their scale count as zero."""
    return 64 * n * epsilon(M)


def epsilon(M: Matrix) -> Any:
    """Return the machine epsilon of the numbers in M."""
    context = _context(M)
    return np.finfo(float).eps if context is None else context.eps


def equilibrated(M: Matrix, width: int) -> Matrix | None:
    """Return rows divided by their largest magnitude in the first ``width`` entries; None if one is 0 or not finite."""
    scales = np.max(np.abs(M[:, :width]), axis=1, initial=0)
    if not all(0 < scale < np.inf for scale in scales):
        return None
    scaled: Matrix = M / scales[:, None]
    return scaled


def lu_solution(M: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """Return L and U of M (n, n) in one matrix, by row pivoting, and the solution (n, m) for ``right`` (n, m).

    If a pivot is zero, the matrix is zero or the results are not finite.
    """
    context = _context(M)
    if context is None:
        from scipy.linalg.lapack import dgetrf, dgetrs

        factors, pivots, _ = dgetrf(M)
        # Each column is solved by itself, so that its rounding does not depend on the others.
        return factors, np.array([dgetrs(factors, pivots, b)[0] for b in right.T]).T
    try:
        L, pivots = context.LU_decomp(context.matrix(M.tolist()), overwrite=True, use_cache=False)
        columns = [context.U_solve(L, context.L_solve(L, context.matrix(b.tolist()), pivots)) for b in right.T]
    except ZeroDivisionError:
        return np.zeros_like(M), right
    return vector(L).reshape(M.shape), np.array([vector(column) for column in columns]).T


def cholesky_factor(S: Matrix) -> Matrix | None:
    """Return L with ``L L^T = S`` from the lower triangle; None if S is not positive definite beyond rounding."""
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
    """Return the solution (n,) of ``L L^T x = b``."""
    x = b.copy()
    for rows in (L, L.T[::-1, ::-1]):
        for k in range(len(x)):
            x[k] = (x[k] - rows[k, :k] @ x[:k]) / rows[k, k]
        x = x[::-1]
    return x


def symmetric_eigen(L: Matrix) -> tuple[Matrix, Matrix]:
    """Return the eigenvalues (n,) and the eigenvectors, rows of (n, n), of ``L L^T`` for a lower triangle L."""
    U, values, _ = singular_values(L)
    return values**2, U.T


def singular_values(M: Matrix, full: bool = False) -> tuple[Matrix, Matrix, Matrix]:
    """Return U (m, k), the descending singular values (k,) and V^T (k, n) of M (m, n), ``k = min(m, n)``.

    All have few relative errors, whatever the units of the rows: LAPACK's function that rotates rows (Drmac and
    Veselic 2008). With ``full``, U is (m, m).
    """
    context, (m, n) = _context(M), M.shape
    k, wide = min(m, n), m if full else min(m, n)
    if context is not None:
        U, values, VT = context.svd_r(context.matrix(M.tolist()), full_matrices=full)
        return matrix(m, wide, U), vector(values), np.array(VT.tolist())[:k]
    if not np.all(np.isfinite(M)):
        return np.full((m, wide), np.nan), np.full(k, np.nan), np.full((k, n), np.nan)
    from scipy.linalg.lapack import dgejsv

    tall = M.T if m < n else M
    values, left, right, scaling, *_ = dgejsv(tall, joba=2, jobu=int(full and m > n), jobv=0, jobr=0, jobt=1, jobp=1)
    values = values * (scaling[0] / scaling[1])
    return (right, values, left.T) if m < n else (left, values, right.T)


def _context(M: Matrix) -> Any:
    """Return the mpmath context of the entries; None for floats."""
    return next((x.context for x in M.flat if hasattr(x, "context")), None) if M.dtype == object else None
