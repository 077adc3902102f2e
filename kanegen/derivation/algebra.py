"""Linear algebra on graph nodes: Gauss-Jordan elimination with pivots chosen once, and ``L D L^T`` factorization."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from kanegen.graph.nodes import Node
from kanegen.graph.ranks import RANK_TOLERANCE
from kanegen.precision import Tolerance

Magnitudes: TypeAlias = Callable[[Sequence[Node]], list[float]]

PIVOT_LIMIT = Tolerance(1e-3, 1e-2)
"""Constraint pivots below this fraction of their row lose over three digits (two of float); other dependent speeds are
then chosen."""

CONSTANT_BONUS = 8.0
"""Factor by which a varying pivot must exceed a pivot that is constant during a run to be preferred to it."""

_TIE = 1e-9
"""Scores that differ by less than this fraction count as equal, so that every machine chooses the same pivot."""

PIVOT_THRESHOLD = Tolerance(1e-13, 1e-5)
"""A pivot below this fraction of its diagonal entry has lost all digits by cancellation: the matrix is singular."""


# -- Gauss and Jordan ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pivot:
    """A divisor of the elimination, and the other entries of its row, which give the scale for its size."""

    value: Node
    others: tuple[Node, ...]

    def holds(self, threshold: float) -> Node | None:
        """The condition that the pivot is larger than ``threshold`` times its row; None for a constant pivot."""
        if self.value.op == "const":
            return None
        graph = self.value.graph
        scale = graph.sum(graph.apply("abs", x) for x in self.others)
        if scale.is_zero:
            scale = graph.one
        return graph.apply("lt", graph.const(threshold) * scale, graph.apply("abs", self.value))


def eliminate(
    matrix: Sequence[Sequence[Node]], right: Sequence[Sequence[Node]], magnitudes: Magnitudes, columns: Iterable[int]
) -> tuple[list[list[Node]], list[Pivot], dict[int, int]]:
    """Gauss-Jordan elimination of ``[matrix | right]`` with pivots in ``columns``, one for each row.

    Returns the reduced rows, the pivots in order, and a dictionary from column to row of the pivots. Constant and large
    pivots come first. Raises ZeroDivisionError with the index of a row without a pivot as its argument.
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
    for i in free_rows:  # an entry 1 or -1, as in q' = u, is the best pivot
        row = rows[i]
        for j in free_columns:
            if row[j].op == "const" and abs(row[j].payload) == 1:
                return i, j
    places = [(i, j) for i in free_rows for j in free_columns if not rows[i][j].is_zero]
    sizes = dict(zip(places, magnitudes([rows[i][j] for i, j in places]), strict=True)) if places else {}
    scales = dict.fromkeys(free_rows, 0.0)
    for (i, _), size in sizes.items():
        scales[i] = max(scales[i], size)
    for i, scale in scales.items():
        if not scale > RANK_TOLERANCE:
            raise ZeroDivisionError(i)
    best, best_score = places[0], 0.0
    for (i, j), size in sizes.items():
        score = size / scales[i] * (CONSTANT_BONUS if rows[i][j].constant else 1.0)
        if score > best_score * (1.0 + _TIE):
            best, best_score = (i, j), score
    return best


# -- symmetric positive definite matrices --------------------------------------------------------------------


def is_lost(pivot: Node, scale: Node) -> bool:
    """Whether a pivot is zero, or a number that is no larger than the rounding of numbers of the size of ``scale``."""
    if pivot.op != "const" or scale.op != "const":
        return pivot.is_zero
    return not abs(pivot.payload) > float(PIVOT_THRESHOLD) * abs(scale.payload)


@dataclass(frozen=True)
class Factor:
    """``L D L^T`` of a matrix without its zeros, in the order of elimination; valid where all ``conditions`` hold.

    ``columns[k]`` are the entries (row, value) of column k of L below the diagonal; ``reciprocals`` are 1/D.
    """

    order: tuple[int, ...]
    columns: dict[int, tuple[tuple[int, Node], ...]]
    reciprocals: dict[int, Node]
    conditions: tuple[Node, ...]

    def solve(self, right: Sequence[Node]) -> list[Node]:
        """x of ``S x = right``."""
        return self._backward(self._forward(right), self.reciprocals)

    def whitened(self, right: Sequence[Node]) -> list[Node]:
        """``D^-1/2 L^-1 right``: the dot product of two whitened vectors a and b is ``a^T S^-1 b``."""
        x = self._forward(right)
        return [x[k] * root for k, root in self._roots.items()]

    def colored(self, white: Sequence[Node]) -> list[Node]:
        """``L^-T D^-1/2 white``: `whitened` followed by `colored` multiplies a vector by ``S^-1``."""
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
        """``L^-T`` times the right side, whose entries are first multiplied by ``scale``."""
        x = list(right)
        for k in reversed(self.order):
            x[k] = x[k] * scale[k]
            for i, factor in self.columns[k]:
                x[k] = x[k] - factor * x[i]
        return x


def factorize(lower: Sequence[Sequence[Node]]) -> Factor:
    """Factorize the symmetric matrix given by its lower triangle; rows with the fewest entries are eliminated first.

    Raises ZeroDivisionError, with the index of the row as its argument, if a pivot is zero, or a number that is zero
    but for rounding.
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
        # Among equals the last row goes first: outer bodies come last in a chain, and their rows cause no fill-in.
        k = min(left, key=lambda i: (sum(not rest[entry(i, j)].is_zero for j in left), -i))
        left.remove(k)
        order.append(k)
        pivot = rest[k, k]
        if is_lost(pivot, lower[k][k]):
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
    """x of ``S x = right``, S given by its lower triangle, and the conditions that S is positive definite."""
    factor = factorize(lower)
    return factor.solve(right), factor.conditions


# -- operations of a factorization, from the places of its nonzeros alone ------------------------------------


@dataclass(frozen=True)
class FactorPattern:
    """The nonzeros of a `Factor`: ``columns[k]`` are the rows of column k of L, in the order of elimination."""

    columns: dict[int, frozenset[int]]

    @classmethod
    def of(cls, lower: Sequence[Set[int]]) -> FactorPattern:
        """Return the pattern of `factorize`; ``lower[i]`` are the columns of the nonzeros of row i."""
        rest: list[set[int]] = [set() for _ in lower]
        for i, row in enumerate(lower):
            for j in row:
                if j != i:
                    rest[i].add(j)
                    rest[j].add(i)
        left, columns = set(range(len(lower))), {}
        while left:
            k = min(left, key=lambda i: (len(rest[i]), -i))
            left.remove(k)
            columns[k] = frozenset(rest[k])
            for i in rest[k]:
                rest[i] |= rest[k]
                rest[i] -= {i, k}
        return cls(columns)

    @property
    def operations(self) -> int:
        """The operations of `factorize` without the tests of the pivots."""
        return sum(1 + len(column) * (len(column) + 2) for column in self.columns.values())

    def solve(self, right: Set[int]) -> tuple[int, frozenset[int]]:
        """Return the operations of `Factor.solve`, and the nonzeros of the solution for those of the right side."""
        x, operations = set(right), 0
        for k, column in self.columns.items():
            if k in x:
                operations += 2 * len(column)
                x |= column
        for k, column in reversed(self.columns.items()):
            operations += (k in x) + 2 * len(column & x)
            if column & x:
                x.add(k)
        return operations, frozenset(x)


def nonzeros(matrix: Sequence[Sequence[Node]]) -> list[frozenset[int]]:
    """The columns of the nonzeros of each row."""
    return [frozenset(j for j, x in enumerate(row) if not x.is_zero) for row in matrix]


def range_space_operations(lower: Sequence[Set[int]], rows: Sequence[Set[int]]) -> Iterator[int]:
    """Yield, part by part, the operations of ``Q u' = P + J^T lambda``, ``J u' = b`` by `factorize` of Q and of
    ``J Q^-1 J^T``.

    ``lower``, ``rows``: the nonzeros of the lower triangle of Q, and of J. Nothing is derived, so that a caller can
    stop at a limit before the code is made.
    """
    Q = FactorPattern.of(lower)
    yield Q.operations
    yield Q.solve(frozenset(range(len(lower))))[0]
    responses, S = [], []
    for i, row in enumerate(rows):
        operations, response = Q.solve(row)
        yield operations
        common = [len(other & response) for other in rows[: i + 1]]
        yield 2 * sum(common)
        responses.append(response)
        S.append(frozenset(j for j, count in enumerate(common) if count))
    yield 2 * sum(map(len, rows)) + 2 * sum(map(len, responses))
    multipliers = FactorPattern.of(S)
    yield multipliers.operations + multipliers.solve(frozenset(range(len(S))))[0]
