"""Kernels of ``kg_generalized.h`` and ``kg_control.h`` and their twins: linear systems by singular values.

They solve for motions with constraints of any rank and for controls of servo-constraints. The twins implement the
definitions, not the algorithms of the C code: pseudoinverses by singular values, roots of Q by eigenvectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from kanegen.codes import Status
from kanegen.program.kernels.dense import (
    Array,
    Matrix,
    cholesky_factor,
    cholesky_substitute,
    fill,
    matrix,
    singular_values,
    symmetric_eigen,
    vector,
)
from kanegen.program.kernels.linear import cholesky_operations
from kanegen.program.records import Kernel, Shapes

SINGULAR_VALUE_TOLERANCE: Final = 1e-9
"""Singular values below this fraction of the rows that they combine count as zero, as in C."""

DISTANCE: Final = 1e-3
RATE: Final = 1e-6
"""Rows are replaced if their singular value is below DISTANCE, also of their rate, and their rate above RATE, all
relative, as in C."""

CONTROL_TOLERANCE: Final = 1.5e-8
CONTROL_FLOOR: Final = 1e-12
"""Tolerances of ``A x - z``, relative to z and to its terms; controls do not exist if it is larger."""


def udwadia_kalaba(
    n_u: int, n_c: int, Q: Array, P: Array, J: Array, b: Array, work: Array, udot: Array, shortest: Array, rank: Array
) -> int:
    """Solve ``Q u' = P + J^T lambda``, ``J u' = b`` for constraints of any rank (Udwadia and Kalaba 1992).

    ``shortest`` receives the multipliers of least norm.
    """
    root = _inverse_root(n_u, Q)
    if root is None:
        return Status.SINGULAR
    scaled, free = matrix(n_c, n_u, J) @ root, root.T @ vector(P)
    held, multipliers, rank[0] = pseudoinverse(scaled, vector(b) - scaled @ free)
    fill(udot, root @ (free + held))
    fill(shortest, multipliers)
    return Status.RANK_DEFICIENT if rank[0] < n_c else Status.OK


def udwadia_kalaba_many(n_u: int, n_c: int, m: int, Q: Array, J: Array, X: Array, work: Array) -> int:
    """Solve for m right sides X (n_u + n_c, m); its first n_u rows receive the accelerations."""
    right = matrix(n_u + n_c, m, X)
    solved = right[:n_u].copy()
    for k in range(m):
        udot, shortest, rank = list(solved[:, k]), [0] * n_c, [0]
        if udwadia_kalaba(n_u, n_c, Q, list(right[:n_u, k]), J, list(right[n_u:, k]), work, udot, shortest, rank) < 0:
            return Status.SINGULAR
        solved[:, k] = udot
    fill(X, solved)
    return Status.OK


def udwadia_kalaba_limit(
    n_u: int,
    n_c: int,
    Q: Array,
    P: Array,
    J: Array,
    b: Array,
    terms: Array,
    G: Array,
    h: Array,
    work: Array,
    udot: Array,
    shortest: Array,
    rank: Array,
) -> int:
    """Solve ``Q u' = P + J^T lambda``, ``J u' = b``, with nearly dependent rows replaced by their time derivatives.

    With ``d/dt (J u' - b) = G u' + h + J u''``: if a singular value of ``J Q^-1/2`` is small, ``w^T (G u' + h) = 0``
    replaces the row of its left singular vector w (de l'Hospital's rule). Replaced rows have no multiplier. ``terms``:
    the squared sizes of the terms of the rows.
    """
    root = _inverse_root(n_u, Q)
    if root is None:
        return Status.SINGULAR
    rows, rates = matrix(n_c, n_u, J) @ root, matrix(n_c, n_u, G) @ root
    y, multipliers, rank[0], _ = _nearest(rows, vector(b), rates, vector(h), vector(terms), root.T @ vector(P))
    fill(udot, root @ y)
    fill(shortest, multipliers)
    return Status.RANK_DEFICIENT if rank[0] < n_c else Status.OK


def canonical(
    n_u: int,
    n_c: int,
    Q: Array,
    Qdot: Array,
    P: Array,
    J: Array,
    b: Array,
    u: Array,
    terms: Array,
    G: Array,
    h: Array,
    work: Array,
    parts: Array,
) -> int:
    """Compute constraint-enforcing and momentum-balance parts of u' and w' (Bajodah and Chen 2018, eqs. 40 and 44).

    The u' is that of `udwadia_kalaba_limit`; the rates of replaced rows enforce constraints, too.
    """
    factor = cholesky_factor(matrix(n_u, n_u, Q))
    if factor is None:
        return Status.SINGULAR
    values, vectors = symmetric_eigen(factor)
    roots = values**0.5
    root = vectors.T / roots
    rows, rates, speeds = matrix(n_c, n_u, J) @ root, matrix(n_c, n_u, G) @ root, vector(u[:n_u])
    y, _, rank, used = _nearest(rows, vector(b), rates, vector(h), vector(terms), root.T @ vector(P))
    turns = vectors @ matrix(n_u, n_u, Qdot) @ vectors.T / (roots[:, None] + roots)
    turning = turns @ (vectors @ speeds)
    balanced, balanced_turning = _without_rows(used, y), _without_rows(used, turning)
    held, held_turning = y - balanced, turning - balanced_turning
    of_w = [vectors.T @ (held + held_turning), vectors.T @ (balanced + balanced_turning)]
    fill(parts, np.concatenate([root @ held, root @ balanced, *of_w]))
    return Status.RANK_DEFICIENT if rank < n_c else Status.OK


def _nearest(
    rows: Matrix, sides: Matrix, rates: Matrix, h: Matrix, terms: Matrix, y: Matrix
) -> tuple[Matrix, Matrix, int, Matrix]:
    """Change y (n,) as little as possible so that ``rows @ y = sides``, with replaced rows ``rates @ y = -h``.

    Returns y, the multipliers, the rank of the rows, and the rows in use: replaced ones by their rates.
    """
    count = len(rows)
    if count == 0:
        return y, sides, 0, rows
    rest = sides - rows @ y
    U, singular, _ = singular_values(rows, full=True)
    vectors, values = U.T, np.concatenate([singular**2, np.zeros(count - len(singular), dtype=int)])
    directions, changes, scales = vectors @ rows, vectors @ rates, _means(U, _row_scales(rows, terms))
    replaced = _replaced(values, scales, directions, changes, _means(U, _squares(rates)))
    independent = [k for k in range(count) if values[k] > SINGULAR_VALUE_TOLERANCE**2 * scales[k]]
    kept = [k for k in independent if k not in replaced]
    weights = (vectors[kept] @ rest) / values[kept]
    y, used = y + weights @ directions[kept], directions[kept]
    if replaced:
        bound = [(directions[k], values[k]) for k in kept]
        missing = -(vectors[replaced] @ h) - changes[replaced] @ y
        free = np.array([_without(changes[k], bound) for k in replaced])
        y, used = y + pseudoinverse(free, missing)[0], np.concatenate([used, free])
    return y, weights @ vectors[kept], len(independent), used


def _squares(rows: Matrix) -> Matrix:
    squares: Matrix = (rows * rows).sum(axis=1)
    return squares


def _row_scales(rows: Matrix, terms: Matrix) -> Matrix:
    """Return the squared sizes of the rows; for one that all but vanishes that of its terms."""
    squares = _squares(rows)
    largest = max(squares)
    sizes = np.maximum(squares, np.minimum(largest, terms))
    return np.where(squares <= DISTANCE**2 * largest, sizes, squares)


def _means(U: Matrix, squares: Matrix) -> Matrix:
    """Return the means of the squares of rows, weighted with the squares of each column of U."""
    means: Matrix = (U * U).T @ squares
    return means


def _replaced(values: Matrix, scales: Matrix, directions: Matrix, changes: Matrix, rates: Matrix) -> list[int]:
    """Return the indices of the singular values whose rows are replaced; ``rates``: the scales of the changes."""
    limits = DISTANCE**2 * scales
    bound = [(row, value) for row, value, limit in zip(directions, values, limits, strict=True) if value > limit]
    replaced = []
    for k, value in enumerate(values):
        change = _without(changes[k], bound)
        left = change @ change
        if value <= limits[k] and left > RATE**2 * rates[k] and value <= limits[k] * (left / rates[k]):
            replaced.append(k)
    return replaced


def _without(x: Matrix, bound: Sequence[tuple[Matrix, Any]]) -> Matrix:
    """Return the part of x orthogonal to mutually orthogonal rows; ``bound``: rows with their squared lengths."""
    for row, size in bound:
        x = x - (row @ x) / size * row
    return x


def pseudoinverse(M: Matrix, z: Matrix) -> tuple[Matrix, Matrix, int]:
    """Return ``x = M^+ z``, the y of least norm with ``M^T y = x``, and the rank of M."""
    if len(M) == 0:
        return np.zeros(M.shape[1], dtype=int), np.zeros(0, dtype=int), 0
    U, values, VT = singular_values(M)
    used = np.flatnonzero(values**2 > SINGULAR_VALUE_TOLERANCE**2 * _means(U, _squares(M)))
    U, values = U[:, used], values[used]
    along = (U.T @ z) / values
    return along @ VT[used], U @ (along / values), len(used)


def _without_rows(M: Matrix, x: Matrix) -> Matrix:
    """Return the part of x orthogonal to all rows of M."""
    return x - pseudoinverse(M, M @ x)[0]


def _inverse_root(n: int, Q: Array) -> Matrix | None:
    """Return R (n, n) with ``R R^T = Q^-1``; None if Q is not positive definite."""
    L = cholesky_factor(matrix(n, n, Q))
    if L is None:
        return None
    # L^-T = Q^-1 L.
    return np.array([cholesky_substitute(L, column) for column in L.T]).T


# -- controls of servo-constraints ---------------------------------------------------------------------------------


def control_solve(m: int, n: int, A: Array, z: Array, terms: Array, y: Array, work: Array, x: Array) -> int:
    """Compute ``x = A^+ z + (I - A^+ A) y``, (n,); ``INFEASIBLE`` if z (m,) is not in the range of A (m, n).

    ``terms`` (m,): the sums of the absolute terms of z.
    """
    M, start = matrix(m, n, A), vector(y)
    rest = vector(z) - M @ start
    change, _, rank = pseudoinverse(M, rest)
    fill(x, start + change)
    if rank == m:
        return Status.OK
    limit = CONTROL_TOLERANCE * _norm(vector(z)) + CONTROL_FLOOR * _norm(vector(terms))
    return Status.RANK_DEFICIENT if _norm(rest - M @ change) <= limit else Status.INFEASIBLE


def control_damped(m: int, n: int, A: Array, z: Array, damping: Array, work: Array, x: Array) -> int:
    """Compute ``x = A^+ z``, (n,), with ``s / damping^2`` for 1 / s if a singular value s of A is below the damping."""
    U, values, VT = singular_values(matrix(m, n, A))
    weights = vector([value / max(value, damping[0]) ** 2 for value in values])
    fill(x, (U.T @ vector(z) * weights) @ VT)
    return Status.OK


def control_feasibility(m: int, n: int, A: Array, z: Array, terms: Array, work: Array, x: Array, result: Array) -> int:
    """Compute ``x = A^+ z``; ``result``: rank and smallest singular value of A (m, n), 1 if z is in its range."""
    M = matrix(m, n, A)
    rank = pseudoinverse(M, vector(z))[2]
    smallest = singular_values(M)[1][-1] if rank == min(m, n) else 0
    result[:] = [rank, smallest, int(control_solve(m, n, A, z, terms, [0] * n, work, x) >= 0)]
    return Status.OK


def _norm(x: Matrix) -> Any:
    return (x @ x) ** 0.5


# -- operations and records ----------------------------------------------------------------------------------------


def _operations(n_u: int, n_c: int) -> int:
    # Factorization of Q, substitution into every row, and about five sweeps of rotations of the rows.
    return cholesky_operations(n_u) + n_c * n_u * n_u + 5 * n_c * n_c * (6 * n_u + 3 * n_c)


def _nearest_work(n_u: int, n_c: int) -> int:
    return n_u + n_c * (2 * n_c + n_u + 3)


def _control_operations(m: int, n: int) -> int:
    # Right side minus A y, about five sweeps of rotations of the rows, and the solution along each row.
    return 2 * m * n + 5 * m * (m - 1) // 2 * (6 * n + 6 * m + 12) + m * (6 * n + 4 * m)


_HEADER, _SIZES = "kg_generalized.h", ("n_u", "n_c")
_Q, _J, _U, _C = ("n_u", "n_u"), ("n_c", "n_u"), ("n_u",), ("n_c",)
_SYSTEM: Final = {"Q": _Q, "P": _U, "J": _J, "b": _C}
_RESULTS: Final[Shapes] = {"udot": _U, "lambda": _C, "rank": (1,)}
_MANY: Final = {"Q": _Q, "J": _J, "X": ("n_u + n_c", "m"), "work": ()}
_RATES: Final = {"terms": _C, "G": _J, "h": _C, "work": ()}
_LIMIT: Final = {**_SYSTEM, **_RATES, **_RESULTS}
_CANONICAL: Final[Shapes] = {"Q": _Q, "Qdot": _Q, "P": _U, "J": _J, "b": _C, "u": _U, **_RATES, "parts": (4, "n_u")}

_CONTROL: Final = "kg_control.h"
_A, _M, _N = ("m", "n"), ("m",), ("n",)
_SOLVE: Final = {"A": _A, "z": _M, "terms": _M, "y": _N, "work": (), "x": _N}
_DAMPED: Final[Shapes] = {"A": _A, "z": _M, "damping": (1,), "work": (), "x": _N}
_CHECK: Final[Shapes] = {"A": _A, "z": _M, "terms": _M, "work": (), "x": _N, "result": (3,)}

KERNELS: Final = (
    Kernel(
        udwadia_kalaba,
        _HEADER,
        _SIZES,
        {**_SYSTEM, "work": (), **_RESULTS},
        tuple(_RESULTS),
        _operations,
        work=lambda n_u, n_c: n_u + n_c * (n_c + 1),
    ),
    Kernel(
        udwadia_kalaba_limit,
        _HEADER,
        _SIZES,
        _LIMIT,
        tuple(_RESULTS),
        operations=lambda n_u, n_c: _operations(n_u, n_c) + n_c * n_u * n_u,
        work=lambda n_u, n_c: n_c + _nearest_work(n_u, n_c),
    ),
    Kernel(
        udwadia_kalaba_many,
        _HEADER,
        (*_SIZES, "m"),
        _MANY,
        ("X",),
        operations=lambda n_u, n_c, m: _operations(n_u, n_c) + m * (2 * n_u * n_u + n_c * (2 * n_c + 4 * n_u)),
        work=lambda n_u, n_c, m: 2 * n_u + n_c * (n_c + 3),
    ),
    Kernel(
        canonical,
        _HEADER,
        _SIZES,
        _CANONICAL,
        ("parts",),
        operations=lambda n_u, n_c: 60 * n_u**3 + 4 * n_c * n_u * n_u + _operations(n_u, n_c),
        work=lambda n_u, n_c: n_u * (n_u + 5) + 2 * n_c + _nearest_work(n_u, n_c),
    ),
    Kernel(control_solve, _CONTROL, _A, _SOLVE, ("x",), _control_operations, lambda m, n: m * (m + 3) + n),
    Kernel(control_damped, _CONTROL, _A, _DAMPED, ("x",), _control_operations, lambda m, n: m * (m + 1)),
    Kernel(
        control_feasibility,
        _CONTROL,
        _A,
        _CHECK,
        ("x", "result"),
        _control_operations,
        lambda m, n: m * (m + 3) + 2 * n,
    ),
)
