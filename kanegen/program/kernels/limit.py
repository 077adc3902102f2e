"""Twin of kg_udwadia_kalaba_limit() in ``kg_generalized.h``, in any precision: rows that become dependent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kanegen.program.kernels.generalized import (
    OK,
    RANK_DEFICIENT,
    SINGULAR,
    SINGULAR_VALUE_TOLERANCE,
    Array,
    Vector,
    along_frame,
    back_from_frame,
    dot,
    eigen,
    epsilon,
    pseudoinverse,
    root_frame,
)

DISTANCE: Final = 1e-3
RATE: Final = 1e-6
"""As in C."""


def udwadia_kalaba_limit_work(n_u: int, n_c: int) -> int:
    """Length of the work array of the kernel ``udwadia_kalaba_limit``: ``KG_UDWADIA_KALABA_LIMIT_WORK``."""
    return 2 * n_u + n_c * (2 * n_c + n_u + 4)


def udwadia_kalaba_limit(
    n_u: int,
    n_c: int,
    Q: Array,
    P: Array,
    J: Array,
    b: Array,
    u: Vector,
    G: Array,
    h: Vector,
    work: Array,
    udot: Array,
    multipliers: Array,
    rank: Array,
) -> int:
    """u' of ``Q u' = P + J^T lambda``, ``J u' = b``, with rows about to become dependent replaced by their rates.

    ``d/dt (J u' - b) = G u' + h + J u''``. Where a singular value of ``J Q^-1/2`` is small, the row of its left vector
    w is replaced by ``w^T (G u' + h) = 0`` (de l'Hospital's rule). Replaced rows have no multiplier.
    """
    frame = root_frame(n_u, Q)
    if frame is None:
        return SINGULAR
    rows, rates = ([along_frame(frame, M[k * n_u : (k + 1) * n_u]) for k in range(n_c)] for M in (J, G))
    free = along_frame(frame, P)
    rest = [b[k] - dot(rows[k], free) for k in range(n_c)]
    values, vectors = eigen([[dot(x, y) for y in rows] for x in rows])
    directions = [_combined(vector, rows) for vector in vectors]
    changes = [_combined(vector, rates) for vector in vectors]
    speed = max(abs(x) for x in u)
    replaced = _replaced(values, directions, changes, rates, speed)
    least = max(values) * max(SINGULAR_VALUE_TOLERANCE**2, 64 * epsilon(values[0]))
    independent = [k for k in range(n_c) if values[k] > least]
    kept = [k for k in independent if k not in replaced]
    weights = [dot(vectors[k], rest) / values[k] for k in kept]
    y = [x + dot(weights, [directions[k][i] for k in kept]) for i, x in enumerate(free)]
    if replaced:
        bound = [(directions[k], values[k]) for k in kept]
        missing = [-dot(vectors[k], h) - dot(changes[k], y) for k in replaced]
        moved, _, _ = pseudoinverse([_without(changes[k], bound) for k in replaced], missing, n_u)
        y = [x + dx for x, dx in zip(y, moved, strict=True)]
    udot[:] = back_from_frame(frame, y, divide=True)
    multipliers[:] = [dot(weights, [vectors[k][i] for k in kept]) for i in range(n_c)]
    rank[0] = len(independent)
    return RANK_DEFICIENT if len(independent) < n_c else OK


Rows = Sequence[Sequence[Any]]


def _replaced(values: Vector, directions: Rows, changes: Rows, rates: Rows, speed: Any) -> list[int]:
    """Numbers of the singular values whose rows are replaced."""
    limit = DISTANCE**2 * max(values)
    least = RATE**2 * max(dot(row, row) for row in rates)
    bound = [(row, value) for row, value in zip(directions, values, strict=True) if value > limit]
    found = []
    for k, value in enumerate(values):
        change = _without(changes[k], bound)
        left = dot(change, change)
        if value < limit and left > least and value * speed**2 < DISTANCE**2 * left:
            found.append(k)
    return found


def _combined(weights: Vector, rows: Rows) -> list[Any]:
    return [dot(weights, column) for column in zip(*rows, strict=True)]


def _without(x: Vector, bound: Sequence[tuple[Vector, Any]]) -> list[Any]:
    """The part of x orthogonal to rows that are orthogonal to each other, given with their squared lengths."""
    left = list(x)
    for row, size in bound:
        along = dot(row, left) / size
        left = [a - along * c for a, c in zip(left, row, strict=True)]
    return left
