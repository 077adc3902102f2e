"""Straight-line ``L D L^T`` of a symmetric positive definite matrix of nodes, zeros skipped."""

from __future__ import annotations

from collections.abc import Sequence

from kanegen.graph import Node

PIVOT_THRESHOLD = 1e-13
"""A pivot that cancels below this fraction of its diagonal entry carries no correct digit: the matrix is singular."""


def solve_symmetric(lower: Sequence[Sequence[Node]], right: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """x with ``S x = right``, S given by its lower triangle; and the conditions that S is positive definite."""
    n = len(right)
    if n == 0:
        return [], []
    graph = right[0].graph
    rest = {(i, j): lower[i][j] for i in range(n) for j in range(i + 1)}

    def entry(i: int, j: int) -> tuple[int, int]:
        return (i, j) if i >= j else (j, i)

    left = list(range(n))
    order: list[int] = []
    factors: dict[tuple[int, int], Node] = {}
    reciprocals: dict[int, Node] = {}
    conditions: list[Node] = []
    while left:
        k = min(left, key=lambda i: (sum(not rest[entry(i, j)].is_zero for j in left), -i))
        left.remove(k)
        order.append(k)
        pivot = rest[k, k]
        if not pivot.constant:
            conditions.append(graph.apply("lt", graph.const(PIVOT_THRESHOLD) * lower[k][k], pivot))
        reciprocals[k] = graph.div(graph.one, pivot)
        column = [i for i in left if not rest[entry(i, k)].is_zero]
        for i in column:
            factors[i, k] = rest[entry(i, k)] * reciprocals[k]
        for a, i in enumerate(column):
            for j in column[: a + 1]:
                place = entry(i, j)
                rest[place] = rest[place] - factors[i, k] * rest[entry(j, k)]
    return _substitute_back(order, factors, reciprocals, right), conditions


def _substitute_back(
    order: Sequence[int],
    factors: dict[tuple[int, int], Node],
    reciprocals: dict[int, Node],
    right: Sequence[Node],
) -> list[Node]:
    x = list(right)
    for place, k in enumerate(order):
        for i in order[place + 1 :]:
            if (i, k) in factors:
                x[i] = x[i] - factors[i, k] * x[k]
    for place in reversed(range(len(order))):
        k = order[place]
        x[k] = x[k] * reciprocals[k]
        for i in order[place + 1 :]:
            if (i, k) in factors:
                x[k] = x[k] - factors[i, k] * x[i]
    return x
