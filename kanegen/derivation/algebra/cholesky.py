"""Straight-line ``L D L^T`` of a symmetric positive definite matrix of nodes, zeros skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kanegen.graph import Node

PIVOT_THRESHOLD = 1e-13
"""A pivot that cancels below this fraction of its diagonal entry carries no correct digit: the matrix is singular."""


@dataclass(frozen=True)
class Factor:
    """The factorization in the order of elimination; it holds where all ``conditions`` do.

    ``columns[k]`` are the entries of column k of L below the diagonal, as (row, value); ``reciprocals`` those of D.
    """

    order: tuple[int, ...]
    columns: dict[int, tuple[tuple[int, Node], ...]]
    reciprocals: dict[int, Node]
    conditions: tuple[Node, ...]

    def solve(self, right: Sequence[Node]) -> list[Node]:
        """x with ``S x = right``."""
        x = list(right)
        for k in self.order:
            for i, factor in self.columns[k]:
                x[i] = x[i] - factor * x[k]
        for k in reversed(self.order):
            x[k] = x[k] * self.reciprocals[k]
            for i, factor in self.columns[k]:
                x[k] = x[k] - factor * x[i]
        return x

    def whitened(self, right: Sequence[Node]) -> list[Node]:
        """``D^-1/2 L^-1 right``: in its scalar product that of ``S^-1`` is the plain one."""
        x = list(right)
        for k in self.order:
            for i, factor in self.columns[k]:
                x[i] = x[i] - factor * x[k]
        return [entry * root for entry, root in zip(x, self._roots, strict=True)]

    def colored(self, white: Sequence[Node]) -> list[Node]:
        """``L^-T D^-1/2 white``, so that ``S^-1`` is first `whitened`, then `colored`."""
        x = [entry * root for entry, root in zip(white, self._roots, strict=True)]
        for k in reversed(self.order):
            for i, factor in self.columns[k]:
                x[k] = x[k] - factor * x[i]
        return x

    @property
    def _roots(self) -> list[Node]:
        """The diagonal of ``D^-1/2``."""
        return [
            reciprocal.graph.apply("sqrt", reciprocal)
            for reciprocal in (self.reciprocals[k] for k in range(len(self.reciprocals)))
        ]


def factorize(lower: Sequence[Sequence[Node]]) -> Factor:
    """Factorize the symmetric matrix given by its lower triangle; the row with the fewest entries goes first.

    Raises ZeroDivisionError, its argument the row, where a pivot is identically zero.
    """
    n = len(lower)
    rest = {(i, j): lower[i][j] for i in range(n) for j in range(i + 1)}

    def entry(i: int, j: int) -> tuple[int, int]:
        return (i, j) if i >= j else (j, i)

    left = list(range(n))
    order: list[int] = []
    columns: dict[int, tuple[tuple[int, Node], ...]] = {}
    reciprocals: dict[int, Node] = {}
    conditions: list[Node] = []
    while left:
        # The last of equals first: outer bodies come last in a chain, and eliminating them fills in nothing.
        k = min(left, key=lambda i: (sum(not rest[entry(i, j)].is_zero for j in left), -i))
        left.remove(k)
        order.append(k)
        pivot = rest[k, k]
        if pivot.is_zero:
            raise ZeroDivisionError(k)
        graph = pivot.graph
        if pivot.op != "const":
            conditions.append(graph.apply("lt", graph.const(PIVOT_THRESHOLD) * lower[k][k], pivot))
        reciprocals[k] = graph.div(graph.one, pivot)
        column = [i for i in left if not rest[entry(i, k)].is_zero]
        columns[k] = tuple((i, rest[entry(i, k)] * reciprocals[k]) for i in column)
        for a, (i, factor) in enumerate(columns[k]):
            for j in column[: a + 1]:
                place = entry(i, j)
                rest[place] = rest[place] - factor * rest[entry(j, k)]
    return Factor(tuple(order), columns, reciprocals, tuple(conditions))


def solve_symmetric(lower: Sequence[Sequence[Node]], right: Sequence[Node]) -> tuple[list[Node], tuple[Node, ...]]:
    """x with ``S x = right``, S given by its lower triangle; and the conditions that S is positive definite."""
    factor = factorize(lower)
    return factor.solve(right), factor.conditions
