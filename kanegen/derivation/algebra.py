"""Linear algebra in straight-line code over the graph: elimination with pivots chosen once, and ``L D L^T``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kanegen.graph.nodes import Node
from kanegen.graph.ranks import RANK_TOLERANCE

Magnitudes: TypeAlias = Callable[[Sequence[Node]], list[float]]

_CONSTANT_BONUS = 8.0
"""How much larger a varying pivot must be to be preferred to one that is constant during a run."""

_TIE = 1e-9
"""Scores that differ by less than this fraction are equal: the first pivot is taken on every machine."""

PIVOT_THRESHOLD = 1e-13
"""A pivot that cancels below this fraction of its diagonal entry carries no correct digit: the matrix is singular."""


# -- Gauss and Jordan ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pivot:
    """A divisor of the elimination, and the other entries its row had: the scale it must be seen on."""

    value: Node
    others: tuple[Node, ...]

    def holds(self, threshold: float) -> Node | None:
        """The condition that the pivot is larger than ``threshold`` times its row; None where it is constant."""
        if self.value.op == "const":
            return None
        graph = self.value.graph
        scale = graph.sum(graph.apply("abs", x) for x in self.others)
        if scale.is_zero:
            scale = graph.one
        return graph.apply("lt", graph.const(threshold) * scale, graph.apply("abs", self.value))


def solve_linear(
    matrix: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]], magnitudes: Magnitudes
) -> list[list[Node]]:
    """X with ``matrix X = right``, square; ZeroDivisionError where the matrix is singular at random states."""
    n = len(matrix)
    reduced, _, row_of = eliminate(matrix, right, magnitudes, range(n))
    return [reduced[row_of[column]][n:] for column in range(n)]


def eliminate(
    matrix: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]], magnitudes: Magnitudes, columns: Iterable[int]
) -> tuple[list[list[Node]], list[Pivot], dict[int, int]]:
    """Gauss-Jordan elimination of ``[matrix | right]`` with pivots in ``columns``, one for each row.

    Returns the reduced rows, the pivots in order, and the row of the pivot in each column that has one. Constant and
    large pivots come first. ZeroDivisionError names the row that has no pivot as its argument.
    """
    rows = [[*left, *extra] for left, extra in zip(matrix, right, strict=True)]
    n = len(matrix[0]) if matrix else 0
    free_rows, free_columns = list(range(len(rows))), list(columns)
    pivots: list[Pivot] = []
    row_of: dict[int, int] = {}
    while free_rows:
        row, column = _choose(rows, free_rows, free_columns, magnitudes)
        pivot = rows[row][column]
        pivots.append(Pivot(pivot, tuple(x for j, x in enumerate(rows[row][:n]) if j != column and not x.is_zero)))
        row_of[column] = row
        free_rows.remove(row)
        free_columns.remove(column)
        graph = pivot.graph
        if not pivot.is_one:
            reciprocal = graph.div(graph.one, pivot)
            rows[row] = [x if x.is_zero else _over(x, pivot, reciprocal) for x in rows[row]]
        for other, entries in enumerate(rows):
            factor = entries[column]
            if other != row and not factor.is_zero:
                rows[other] = [
                    graph.zero if j == column else graph.sub(x, graph.mul(factor, y))
                    for j, (x, y) in enumerate(zip(entries, rows[row], strict=True))
                ]
    return rows, pivots, row_of


def _over(x: Node, pivot: Node, reciprocal: Node) -> Node:
    if x is pivot:
        return pivot.graph.one
    if pivot.op == "neg" and x is pivot.args[0]:
        return pivot.graph.const(-1)
    return pivot.graph.div(x, pivot) if pivot.constant else pivot.graph.mul(x, reciprocal)


def _choose(
    rows: list[list[Node]], free_rows: list[int], free_columns: list[int], magnitudes: Magnitudes
) -> tuple[int, int]:
    """The (row, column) of the next pivot: largest relative to its row, constants preferred."""
    places = [(i, j) for i in free_rows for j in free_columns if not rows[i][j].is_zero]
    for i, j in places:  # q' = u and the like: nothing to weigh
        if rows[i][j].op == "const" and abs(rows[i][j].payload) == 1:
            return i, j
    sizes = dict(zip(places, magnitudes([rows[i][j] for i, j in places]), strict=True)) if places else {}
    scales = dict.fromkeys(free_rows, 0.0)
    for (i, _), size in sizes.items():
        scales[i] = max(scales[i], size)
    for i, scale in scales.items():
        if not scale > RANK_TOLERANCE:
            raise ZeroDivisionError(i)
    best, best_score = places[0], 0.0
    for (i, j), size in sizes.items():
        score = size / scales[i] * (_CONSTANT_BONUS if rows[i][j].constant else 1.0)
        if score > best_score * (1.0 + _TIE):
            best, best_score = (i, j), score
    return best


# -- symmetric positive definite matrices --------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """``L D L^T`` of a matrix, zeros skipped, in the order of elimination; it holds where all ``conditions`` do.

    ``columns[k]`` are the entries of column k of L below the diagonal, as (row, value); ``reciprocals`` those of D.
    """

    order: tuple[int, ...]
    columns: dict[int, tuple[tuple[int, Node], ...]]
    reciprocals: dict[int, Node]
    conditions: tuple[Node, ...]

    def solve(self, right: Sequence[Node]) -> list[Node]:
        """x with ``S x = right``."""
        return self._backward(self._forward(right), self.reciprocals)

    def whitened(self, right: Sequence[Node]) -> list[Node]:
        """``D^-1/2 L^-1 right``: in its scalar product that of ``S^-1`` is the plain one."""
        x = self._forward(right)
        return [x[k] * root for k, root in self._roots.items()]

    def colored(self, white: Sequence[Node]) -> list[Node]:
        """``L^-T D^-1/2 white``, so that ``S^-1`` is first `whitened`, then `colored`."""
        return self._backward(white, self._roots)

    @property
    def _roots(self) -> dict[int, Node]:
        """The diagonal of ``D^-1/2``."""
        return {k: x.graph.apply("sqrt", x) for k, x in sorted(self.reciprocals.items())}

    def _forward(self, right: Sequence[Node]) -> list[Node]:
        """``L^-1 right``."""
        x = list(right)
        for k in self.order:
            for i, factor in self.columns[k]:
                x[i] = x[i] - factor * x[k]
        return x

    def _backward(self, right: Sequence[Node], scale: dict[int, Node]) -> list[Node]:
        """``L^-T`` times the right side, its entries scaled."""
        x = list(right)
        for k in reversed(self.order):
            x[k] = x[k] * scale[k]
            for i, factor in self.columns[k]:
                x[k] = x[k] - factor * x[i]
        return x


def factorize(lower: Sequence[Sequence[Node]]) -> Factor:
    """Factorize the symmetric matrix given by its lower triangle; the row with the fewest entries goes first.

    Raises ZeroDivisionError, its argument the row, where a pivot is identically zero.
    """
    left = list(range(len(lower)))
    rest = {(i, j): lower[i][j] for i in left for j in range(i + 1)}

    def entry(i: int, j: int) -> tuple[int, int]:
        return (i, j) if i >= j else (j, i)

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
                rest[entry(i, j)] = rest[entry(i, j)] - factor * rest[entry(j, k)]
    return Factor(tuple(order), columns, reciprocals, tuple(conditions))


def solve_symmetric(lower: Sequence[Sequence[Node]], right: Sequence[Node]) -> tuple[list[Node], tuple[Node, ...]]:
    """x with ``S x = right``, S given by its lower triangle; and the conditions that S is positive definite."""
    factor = factorize(lower)
    return factor.solve(right), factor.conditions
