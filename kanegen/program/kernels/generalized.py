"""Twins of the C kernels of ``kg_generalized.h``: generalized inverses and the symmetric root, in any precision.

They follow definitions, not the C text: pseudo-inverses through the eigenvectors of the Gram matrix of the rows.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, Final

Array = MutableSequence[Any]
Vector = Sequence[Any]

OK: Final = 0
RANK_DEFICIENT: Final = 3
SINGULAR: Final = -1

SINGULAR_VALUE_TOLERANCE: Final = 1e-9
"""Singular values below this fraction of the largest count as zero, as in C."""

_SWEEPS: Final = 60


def udwadia_kalaba_work(n_u: int, n_c: int) -> int:
    """Length of the work array of the kernel ``udwadia_kalaba``: ``KG_UDWADIA_KALABA_WORK``."""
    return n_u + n_c * (n_c + 1)


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
    frame = root_frame(n_u, Q)
    if frame is None:
        return SINGULAR
    scaled = [along_frame(frame, J[k * n_u : (k + 1) * n_u]) for k in range(n_c)]
    free = along_frame(frame, P)
    rest = [b[k] - dot(scaled[k], free) for k in range(n_c)]
    held, shortest, found = pseudoinverse(scaled, rest, n_u)
    udot[:] = back_from_frame(frame, [x + y for x, y in zip(free, held, strict=True)], divide=True)
    multipliers[:] = shortest
    rank[0] = found
    return RANK_DEFICIENT if found < n_c else OK


def udwadia_kalaba_many_work(n_u: int, n_c: int, m: int) -> int:
    """Length of the work array of the kernel ``udwadia_kalaba_many``: ``KG_UDWADIA_KALABA_MANY_WORK``."""
    return 2 * n_u + n_c * (n_c + 3)


def udwadia_kalaba_many(n_u: int, n_c: int, m: int, Q: Array, J: Array, X: Array, work: Array) -> int:
    """The accelerations for m right sides X (n_u + n_c, m), which become its first n_u rows."""
    found = [x * 0 for x in X[: n_u * m]]
    for k in range(m):
        column = list(X[k::m])
        udot, multipliers, rank = column[:n_u], column[n_u:], column[:1]
        arrays = (list(Q), column[:n_u], list(J), column[n_u:], work, udot, multipliers, rank)
        if udwadia_kalaba(n_u, n_c, *arrays) == SINGULAR:
            return SINGULAR
        found[k::m] = udot
    X[: n_u * m] = found
    return OK


def canonical_work(n_u: int, n_c: int) -> int:
    """Length of the work array of the kernel ``canonical``: ``KG_CANONICAL_WORK``."""
    return n_u * (n_u + 7) + n_c * (n_c + 2)


def canonical(
    n_u: int, n_c: int, Q: Array, Qdot: Array, P: Array, J: Array, b: Array, u: Array, work: Array, parts: Array
) -> int:
    """Constraint-enforcing and momentum-balance parts of u' and of w' (Bajodah and Chen 2018, eqs. 40 and 44)."""
    frame = root_frame(n_u, Q)
    if frame is None:
        return SINGULAR
    vectors, roots = frame
    scaled = [along_frame(frame, J[k * n_u : (k + 1) * n_u]) for k in range(n_c)]
    free = along_frame(frame, P)
    held, _, found = pseudoinverse(scaled, list(b), n_u)
    rate = [dot(row, u) for row in vectors]
    images = [[dot(Qdot[i * n_u : (i + 1) * n_u], row) for i in range(n_u)] for row in vectors]
    turning = [
        sum((dot(images[i], vectors[j]) / (roots[i] + roots[j]) * rate[j] for j in range(n_u)), 0 * roots[i])
        for i in range(n_u)
    ]
    balanced = _without_rows(scaled, free, n_u)
    balanced_turning = _without_rows(scaled, turning, n_u)
    enforced = [x + t - r for x, t, r in zip(held, turning, balanced_turning, strict=True)]
    remaining = [x + r for x, r in zip(balanced, balanced_turning, strict=True)]
    parts[:] = [
        *back_from_frame(frame, held, divide=True),
        *back_from_frame(frame, balanced, divide=True),
        *back_from_frame(frame, enforced, divide=False),
        *back_from_frame(frame, remaining, divide=False),
    ]
    return RANK_DEFICIENT if found < n_c else OK


Frame = tuple[list[list[Any]], list[Any]]


def root_frame(n: int, Q: Array) -> Frame | None:
    """Eigenvectors (rows) of Q and the roots of its eigenvalues; None where Q is not positive definite."""
    values, vectors = eigen([list(Q[i * n : (i + 1) * n]) for i in range(n)])
    if not all(value > 1e-14 * max(values) for value in values):
        return None
    return vectors, [_root(value) for value in values]


def along_frame(frame: Frame, x: Vector) -> list[Any]:
    return [dot(row, x) / root for row, root in zip(*frame, strict=True)]


def back_from_frame(frame: Frame, x: Vector, *, divide: bool) -> list[Any]:
    vectors, roots = frame
    weights = [value / root if divide else value for value, root in zip(x, roots, strict=True)]
    return [dot(weights, column) for column in zip(*vectors, strict=True)]


def pseudoinverse(rows: list[list[Any]], z: Vector, n: int) -> tuple[list[Any], list[Any], int]:
    """``M^+ z``, the shortest y with ``M^T y`` equal to it, and the rank of M, given by its rows."""
    if not rows:
        return [0.0] * n, [], 0
    values, vectors = eigen([[dot(a, b) for b in rows] for a in rows])
    limit = max(values) * SINGULAR_VALUE_TOLERANCE**2
    # The Gram matrix squares the condition: what it cannot tell from rounding is zero.
    kept = [k for k, value in enumerate(values) if value > max(limit, 64 * epsilon(value) * max(values))]
    shortest = [0 * z[0]] * len(rows)
    for k in kept:
        along = dot(vectors[k], z) / values[k]
        shortest = [y + along * v for y, v in zip(shortest, vectors[k], strict=True)]
    return [dot(shortest, column) for column in zip(*rows, strict=True)], shortest, len(kept)


def _without_rows(rows: list[list[Any]], x: list[Any], n: int) -> list[Any]:
    """The part of x orthogonal to all rows."""
    inside, _, _ = pseudoinverse(rows, [dot(row, x) for row in rows], n)
    return [a - b for a, b in zip(x, inside, strict=True)]


def eigen(S: list[list[Any]]) -> tuple[list[Any], list[list[Any]]]:
    """Eigenvalues and eigenvectors (rows) of a symmetric matrix by cyclic Jacobi rotations."""
    n = len(S)
    vectors = [[S[0][0] * 0 + int(i == j) for j in range(n)] for i in range(n)]
    for _ in range(_SWEEPS):
        scale = max(abs(S[i][i]) for i in range(n))
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if abs(S[i][j]) > epsilon(scale) * scale / 16]
        if not pairs:
            break
        for i, j in pairs:
            _annihilate(S, vectors, i, j)
    return [S[i][i] for i in range(n)], vectors


def _annihilate(S: list[list[Any]], vectors: list[list[Any]], i: int, j: int) -> None:
    if S[i][j] == 0:
        return
    zeta = (S[j][j] - S[i][i]) / (2 * S[i][j])
    tangent = 1 / (abs(zeta) + _root(1 + zeta * zeta))
    tangent = -tangent if zeta < 0 else tangent
    c = 1 / _root(1 + tangent * tangent)
    s = c * tangent
    for pair in (S, vectors):
        a, b = pair[i], pair[j]
        pair[i] = [c * x - s * y for x, y in zip(a, b, strict=True)]
        pair[j] = [s * x + c * y for x, y in zip(a, b, strict=True)]
    for row in S:
        row[i], row[j] = c * row[i] - s * row[j], s * row[i] + c * row[j]


def dot(a: Vector, b: Vector) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0 * a[0] if len(a) else 0)


def _root(x: Any) -> Any:
    return x**0.5


def epsilon(x: Any) -> Any:
    """Relative rounding of the kind of number x is."""
    context = getattr(x, "context", None)
    return context.eps if context is not None else 2.220446049250313e-16
