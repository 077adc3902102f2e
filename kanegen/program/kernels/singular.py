"""Kernels of ``kg_generalized.h`` and ``kg_control.h`` and their twins: linear systems by singular values.

These are constraints of any rank and the controls of servo-constraints. The twins follow definitions, not the C text:
pseudo-inverses through singular values, roots of Q through eigenvectors.
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
    epsilon,
    fill,
    matrix,
    singular_values,
    symmetric_eigen,
    vector,
)
from kanegen.program.kernels.linear import cholesky_operations
from kanegen.program.records import Kernel, Shapes

SINGULAR_VALUE_TOLERANCE: Final = 1e-9
"""Singular values below this fraction of the largest count as zero, as in C."""

DISTANCE: Final = 1e-3
RATE: Final = 1e-6
"""How close to dependent rows are replaced, and how fast they must change: as in C."""

CONTROL_TOLERANCE: Final = 1.5e-8
CONTROL_FLOOR: Final = 1e-12
"""Relative and absolute part of what ``A x - z`` may be where controls exist."""


def udwadia_kalaba(
    n_u: int, n_c: int, Q: Array, P: Array, J: Array, b: Array, work: Array, udot: Array, shortest: Array, rank: Array
) -> int:
    """u' of ``Q u' = P + J^T lambda``, ``J u' = b`` for constraints of any rank (Udwadia and Kalaba 1992).

    ``shortest`` becomes the shortest multipliers.
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
    """The accelerations for m right sides X (n_u + n_c, m), which become its first n_u rows."""
    right = matrix(n_u + n_c, m, X)
    solved = right[:n_u].copy()
    for k in range(m):
        udot, shortest, rank = list(solved[:, k]), [0] * n_c, [0]
        if udwadia_kalaba(n_u, n_c, Q, list(right[:n_u, k]), J, list(right[n_u:, k]), work, udot, shortest, rank) < 0:
            return Status.SINGULAR
        solved[:, k] = udot
    fill(X, solved)
    return Status.OK


def canonical(
    n_u: int, n_c: int, Q: Array, Qdot: Array, P: Array, J: Array, b: Array, u: Array, work: Array, parts: Array
) -> int:
    """Constraint-enforcing and momentum-balance parts of u' and of w' (Bajodah and Chen 2018, eqs. 40 and 44)."""
    values, vectors = symmetric_eigen(matrix(n_u, n_u, Q))
    if not all(value > 1e-14 * max(values) for value in values):
        return Status.SINGULAR
    roots = values**0.5
    root = vectors.T / roots
    scaled, free = matrix(n_c, n_u, J) @ root, root.T @ vector(P)
    held, _, rank = pseudoinverse(scaled, vector(b))
    rates = vectors @ matrix(n_u, n_u, Qdot) @ vectors.T / (roots[:, None] + roots)
    turning = rates @ (vectors @ vector(u[:n_u]))
    balanced, balanced_turning = _without_rows(scaled, free), _without_rows(scaled, turning)
    enforced, remaining = held + turning - balanced_turning, balanced + balanced_turning
    fill(parts, np.concatenate([root @ held, root @ balanced, vectors.T @ enforced, vectors.T @ remaining]))
    return Status.RANK_DEFICIENT if rank < n_c else Status.OK


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
    shortest: Array,
    rank: Array,
) -> int:
    """u' of ``Q u' = P + J^T lambda``, ``J u' = b``, with rows about to become dependent replaced by their rates.

    ``d/dt (J u' - b) = G u' + h + J u''``. Where a singular value of ``J Q^-1/2`` is small, the row of its left vector
    w is replaced by ``w^T (G u' + h) = 0`` (de l'Hospital's rule). Replaced rows have no multiplier.
    """
    root = _inverse_root(n_u, Q)
    if root is None:
        return Status.SINGULAR
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
    fill(shortest, weights @ vectors[kept])
    rank[0] = len(independent)
    return Status.RANK_DEFICIENT if len(independent) < n_c else Status.OK


def _replaced(values: Matrix, directions: Matrix, changes: Matrix, rates: Matrix, speed: Any) -> list[int]:
    """Numbers of the singular values whose rows are replaced."""
    limit, least = DISTANCE**2 * max(values), RATE**2 * max(row @ row for row in rates)
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


# -- controls of servo-constraints ---------------------------------------------------------------------------------


def control_solve(m: int, n: int, A: Array, z: Array, y: Array, work: Array, x: Array) -> int:
    """``x = A^+ z + (I - A^+ A) y``, (n,); ``INFEASIBLE`` where z (m,) is not in the range of A (m, n)."""
    M, start = matrix(m, n, A), vector(y)
    rest = vector(z) - M @ start
    change, _, rank = pseudoinverse(M, rest)
    fill(x, start + change)
    if rank == m:
        return Status.OK
    limit = CONTROL_TOLERANCE * _norm(vector(z)) + CONTROL_FLOOR
    return Status.RANK_DEFICIENT if _norm(rest - M @ change) <= limit else Status.INFEASIBLE


def control_damped(m: int, n: int, A: Array, z: Array, damping: Array, work: Array, x: Array) -> int:
    """``x = A^+ z``, (n,), where singular values of A (m, n) below the damping act as if they were that large."""
    U, values, VT = singular_values(matrix(m, n, A))
    weights = vector([value / max(value, damping[0]) ** 2 for value in values])
    fill(x, (U.T @ vector(z) * weights) @ VT)
    return Status.OK


def control_feasibility(m: int, n: int, A: Array, z: Array, work: Array, x: Array, result: Array) -> int:
    """``x = A^+ z``; ``result``: rank and smallest singular value of A (m, n), whether z is in its range."""
    M = matrix(m, n, A)
    rank = pseudoinverse(M, vector(z))[2]
    smallest = singular_values(M)[1][-1] if rank == min(m, n) else 0
    result[:] = [rank, smallest, int(control_solve(m, n, A, z, [0] * n, work, x) >= 0)]
    return Status.OK


def _norm(x: Matrix) -> Any:
    return (x @ x) ** 0.5


# -- operations and records ----------------------------------------------------------------------------------------


def _operations(n_u: int, n_c: int) -> int:
    # Factor of Q, its substitution into every row, and about five sweeps of rotations of the rows.
    return cholesky_operations(n_u) + n_c * n_u * n_u + 5 * n_c * n_c * (6 * n_u + 3 * n_c)


def _control_operations(m: int, n: int) -> int:
    # The rest of the right side, about five sweeps of rotations of the rows, and the solution along each.
    return 2 * m * n + 5 * m * (m - 1) // 2 * (6 * n + 6 * m + 12) + m * (6 * n + 4 * m)


_HEADER, _SIZES = "kg_generalized.h", ("n_u", "n_c")
_Q, _J, _U, _C = ("n_u", "n_u"), ("n_c", "n_u"), ("n_u",), ("n_c",)
_SYSTEM: Final = {"Q": _Q, "P": _U, "J": _J, "b": _C}
_RESULTS: Final[Shapes] = {"udot": _U, "lambda": _C, "rank": (1,)}
_LIMIT: Final = {**_SYSTEM, "u": _U, "G": _J, "h": _C, "work": (), **_RESULTS}
_MANY: Final = {"Q": _Q, "J": _J, "X": ("n_u + n_c", "m"), "work": ()}
_CANONICAL: Final[Shapes] = {"Q": _Q, "Qdot": _Q, "P": _U, "J": _J, "b": _C, "u": _U, "work": (), "parts": (4, "n_u")}

_CONTROL: Final = "kg_control.h"
_A, _M, _N = ("m", "n"), ("m",), ("n",)
_SOLVE: Final = {"A": _A, "z": _M, "y": _N, "work": (), "x": _N}
_DAMPED: Final[Shapes] = {"A": _A, "z": _M, "damping": (1,), "work": (), "x": _N}
_CHECK: Final[Shapes] = {"A": _A, "z": _M, "work": (), "x": _N, "result": (3,)}

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
        work=lambda n_u, n_c: 2 * n_u + n_c * (2 * n_c + n_u + 4),
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
        operations=lambda n_u, n_c: 60 * n_u**3 + _operations(n_u, n_c),
        work=lambda n_u, n_c: n_u * (n_u + 7) + n_c * (n_c + 2),
    ),
    Kernel(control_solve, _CONTROL, _A, _SOLVE, ("x",), _control_operations, lambda m, n: m * (m + 3) + n),
    Kernel(control_damped, _CONTROL, _A, _DAMPED, ("x",), _control_operations, lambda m, n: m * m),
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
