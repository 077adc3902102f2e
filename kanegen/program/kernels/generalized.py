"""Kernels of ``kg_generalized.h`` and their twins: constraints of any rank.

The twins follow definitions, not the C text: pseudo-inverses through singular values, roots of Q through eigenvectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from kanegen.program.kernels.dense import (
    Array,
    Matrix,
    cholesky_factor,
    cholesky_substitute,
    epsilon,
    fill,
    matrix,
    singular_values,
    symmetric_eigen,
    vector,
)
from kanegen.program.kernels.linear import cholesky_operations
from kanegen.program.kernels.records import OK, RANK_DEFICIENT, SINGULAR, Kernel

SINGULAR_VALUE_TOLERANCE: Final = 1e-9
"""Singular values below this fraction of the largest count as zero, as in C."""

DISTANCE: Final = 1e-3
RATE: Final = 1e-6
"""How close to dependent rows are replaced, and how fast they must change: as in C."""


def udwadia_kalaba(
    n_u: int,
    n_c: int,
    Q: Array,
    P: Array,
    J: Array,
    b: Array,
    work: Array,
    udot: Array,
    multipliers: Array,
    rank: Array,
) -> int:
    """u' of ``Q u' = P + J^T lambda``, ``J u' = b`` for constraints of any rank (Udwadia and Kalaba 1992)."""
    root = _inverse_root(n_u, Q)
    if root is None:
        return SINGULAR
    scaled, free = matrix(n_c, n_u, J) @ root, root.T @ vector(P)
    held, shortest, rank[0] = pseudoinverse(scaled, vector(b) - scaled @ free)
    fill(udot, root @ (free + held))
    fill(multipliers, shortest)
    return RANK_DEFICIENT if rank[0] < n_c else OK


def udwadia_kalaba_many(n_u: int, n_c: int, m: int, Q: Array, J: Array, X: Array, work: Array) -> int:
    """The accelerations for m right sides X (n_u + n_c, m), which become its first n_u rows."""
    right = matrix(n_u + n_c, m, X)
    solved = right[:n_u].copy()
    for k in range(m):
        udot, shortest, rank = list(solved[:, k]), [0] * n_c, [0]
        if udwadia_kalaba(n_u, n_c, Q, list(right[:n_u, k]), J, list(right[n_u:, k]), work, udot, shortest, rank) < 0:
            return SINGULAR
        solved[:, k] = udot
    fill(X, solved)
    return OK


def canonical(
    n_u: int, n_c: int, Q: Array, Qdot: Array, P: Array, J: Array, b: Array, u: Array, work: Array, parts: Array
) -> int:
    """Constraint-enforcing and momentum-balance parts of u' and of w' (Bajodah and Chen 2018, eqs. 40 and 44)."""
    values, vectors = symmetric_eigen(matrix(n_u, n_u, Q))
    if not all(value > 1e-14 * max(values) for value in values):
        return SINGULAR
    roots = values**0.5
    root = vectors.T / roots
    scaled, free = matrix(n_c, n_u, J) @ root, root.T @ vector(P)
    held, _, rank = pseudoinverse(scaled, vector(b))
    rates = vectors @ matrix(n_u, n_u, Qdot) @ vectors.T / (roots[:, None] + roots)
    turning = rates @ (vectors @ vector(u[:n_u]))
    balanced, balanced_turning = _without_rows(scaled, free), _without_rows(scaled, turning)
    enforced, remaining = held + turning - balanced_turning, balanced + balanced_turning
    fill(parts, np.concatenate([root @ held, root @ balanced, vectors.T @ enforced, vectors.T @ remaining]))
    return RANK_DEFICIENT if rank < n_c else OK


def udwadia_kalaba_limit(
    n_u: int,
    n_c: int,
    Q: Array,
    P: Array,
    J: Array,
    b: Array,
    u: Array,
    G: Array,
    h: Array,
    work: Array,
    udot: Array,
    multipliers: Array,
    rank: Array,
) -> int:
    """u' of ``Q u' = P + J^T lambda``, ``J u' = b``, with rows about to become dependent replaced by their rates.

    ``d/dt (J u' - b) = G u' + h + J u''``. Where a singular value of ``J Q^-1/2`` is small, the row of its left vector
    w is replaced by ``w^T (G u' + h) = 0`` (de l'Hospital's rule). Replaced rows have no multiplier.
    """
    root = _inverse_root(n_u, Q)
    if root is None:
        return SINGULAR
    rows, rates, free = matrix(n_c, n_u, J) @ root, matrix(n_c, n_u, G) @ root, root.T @ vector(P)
    rest = vector(b) - rows @ free
    values, vectors = symmetric_eigen(rows @ rows.T)
    directions, changes = vectors @ rows, vectors @ rates
    replaced = _replaced(values, directions, changes, rates, max(abs(x) for x in u))
    least = max(values) * max(SINGULAR_VALUE_TOLERANCE**2, 64 * epsilon(values))
    independent = [k for k in range(n_c) if values[k] > least]
    kept = [k for k in independent if k not in replaced]
    weights = (vectors[kept] @ rest) / values[kept]
    y = free + weights @ directions[kept]
    if replaced:
        bound = [(directions[k], values[k]) for k in kept]
        missing = -(vectors[replaced] @ vector(h)) - changes[replaced] @ y
        y = y + pseudoinverse(np.array([_without(changes[k], bound) for k in replaced]), missing)[0]
    fill(udot, root @ y)
    fill(multipliers, weights @ vectors[kept])
    rank[0] = len(independent)
    return RANK_DEFICIENT if len(independent) < n_c else OK


def _replaced(values: Matrix, directions: Matrix, changes: Matrix, rates: Matrix, speed: Any) -> list[int]:
    """Numbers of the singular values whose rows are replaced."""
    limit = DISTANCE**2 * max(values)
    least = RATE**2 * max(row @ row for row in rates)
    bound = [(row, value) for row, value in zip(directions, values, strict=True) if value > limit]
    replaced = []
    for k, value in enumerate(values):
        change = _without(changes[k], bound)
        left = change @ change
        if value < limit and left > least and value * speed**2 < DISTANCE**2 * left:
            replaced.append(k)
    return replaced


def _without(x: Matrix, bound: Sequence[tuple[Matrix, Any]]) -> Matrix:
    """The part of x orthogonal to rows that are orthogonal to each other, given with their squared lengths."""
    for row, size in bound:
        x = x - (row @ x) / size * row
    return x


def pseudoinverse(M: Matrix, z: Matrix) -> tuple[Matrix, Matrix, int]:
    """``M^+ z``, the shortest y with ``M^T y`` equal to it, and the rank of M."""
    if len(M) == 0:
        return np.zeros(M.shape[1], dtype=int), np.zeros(0, dtype=int), 0
    U, values, VT = singular_values(M)
    rank = sum(1 for value in values if value > SINGULAR_VALUE_TOLERANCE * values[0])
    along = (U[:, :rank].T @ z) / values[:rank]
    return along @ VT[:rank], U[:, :rank] @ (along / values[:rank]), rank


def _without_rows(M: Matrix, x: Matrix) -> Matrix:
    """The part of x orthogonal to all rows of M."""
    return x - pseudoinverse(M, M @ x)[0]


def _inverse_root(n: int, Q: Array) -> Matrix | None:
    """R (n, n) with ``R R^T = Q^-1``; None where Q is not positive definite."""
    L = cholesky_factor(matrix(n, n, Q))
    if L is None:
        return None
    # L^-T = Q^-1 L.
    return np.array([cholesky_substitute(L, column) for column in L.T]).T


def _operations(n_u: int, n_c: int) -> int:
    # Factor of Q, its substitution into every row, and about five sweeps of rotations of the rows.
    return cholesky_operations(n_u) + n_c * n_u * n_u + 5 * n_c * n_c * (6 * n_u + 3 * n_c)


_SIZES: Final = ("n_u", "n_c")
_Q, _J, _U, _C = ("n_u", "n_u"), ("n_c", "n_u"), ("n_u",), ("n_c",)
_RESULTS: Final[dict[str, tuple[str | int, ...]]] = {"udot": _U, "lambda": _C, "rank": (1,)}

KERNELS: Final = (
    Kernel(
        "udwadia_kalaba",
        "kg_generalized.h",
        _SIZES,
        {"Q": _Q, "P": _U, "J": _J, "b": _C, "work": (), **_RESULTS},
        tuple(_RESULTS),
        udwadia_kalaba,
        _operations,
        lambda n_u, n_c: n_u + n_c * (n_c + 1),
    ),
    Kernel(
        "udwadia_kalaba_limit",
        "kg_generalized.h",
        _SIZES,
        {"Q": _Q, "P": _U, "J": _J, "b": _C, "u": _U, "G": _J, "h": _C, "work": (), **_RESULTS},
        tuple(_RESULTS),
        udwadia_kalaba_limit,
        lambda n_u, n_c: _operations(n_u, n_c) + n_c * n_u * n_u,
        lambda n_u, n_c: 2 * n_u + n_c * (2 * n_c + n_u + 4),
    ),
    Kernel(
        "udwadia_kalaba_many",
        "kg_generalized.h",
        ("n_u", "n_c", "m"),
        {"Q": _Q, "J": _J, "X": ("n_u + n_c", "m"), "work": ()},
        ("X",),
        udwadia_kalaba_many,
        lambda n_u, n_c, m: _operations(n_u, n_c) + m * (2 * n_u * n_u + n_c * (2 * n_c + 4 * n_u)),
        lambda n_u, n_c, m: 2 * n_u + n_c * (n_c + 3),
    ),
    Kernel(
        "canonical",
        "kg_generalized.h",
        _SIZES,
        {"Q": _Q, "Qdot": _Q, "P": _U, "J": _J, "b": _C, "u": _U, "work": (), "parts": (4, "n_u")},
        ("parts",),
        canonical,
        lambda n_u, n_c: 60 * n_u**3 + _operations(n_u, n_c),
        lambda n_u, n_c: n_u * (n_u + 7) + n_c * (n_c + 2),
    ),
)
