"""Linear algebra on graph nodes: Gauss-Jordan elimination with pivots chosen once, and ``L D L^T`` factorization.

Code from an elimination needs tests of its pivots and another solution behind them; systems that are solved once and
for all take :mod:`kanegen.graph.linear`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kanegen.graph.linear import Divisor, Samples, term_size
from kanegen.graph.nodes import Node
from kanegen.graph.ranks import RANK_TOLERANCE
from kanegen.precision import Tolerance

Place: TypeAlias = tuple[int, int]
"""Row and column of a pivot."""

PIVOT_LIMIT = Tolerance(1e-3, 1e-2)
"""Constraint pivots below this fraction of their row lose over three digits (two of float); other dependent speeds are
then chosen."""

SINGULAR_LIMIT = Tolerance(1e-12, 1e-5)
"""Divisors of A, B and the reduced momenta below this fraction of their terms leave no correct digits."""

CONSTANT_BONUS = 8.0
"""Factor by which a varying pivot must exceed a pivot that is constant during a run to be preferred to it."""

_TIE = 1e-9
"""Scores that differ by less than this fraction count as equal, so that every machine chooses the same pivot."""

PIVOT_THRESHOLD = Tolerance(1e-13, 1e-5)
"""A pivot below this fraction of its diagonal entry has lost all digits by cancellation: the matrix is singular."""


# -- Gauss and Jordan ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pivot:
    """A divisor of the elimination, and the other entries of its row, which give the scale for its size.

    A single entry is compared with its own terms. ``terms`` are those of the row before others were subtracted, None if
    none were: where the row depends on others, all that is left of it is rounding.
    """

    value: Node
    others: tuple[Node, ...]
    terms: Node | None

    def holds(self, threshold: float) -> Node | None:
        """The condition that the pivot is larger than ``threshold`` times its row; None for a constant pivot."""
        if self.value.op == "const":
            return None
        graph = self.value.graph
        if not self.others:
            return Divisor(self.value).holds(threshold)
        scale = graph.sum(graph.apply("abs", x) for x in self.others)
        least = graph.const(threshold) * scale
        if self.terms is not None:
            least = least + graph.const(SINGULAR_LIMIT) * self.terms
        return graph.apply("lt", least, graph.apply("abs", self.value))


def _row_terms(row: Sequence[Node]) -> Node:
    """The sum of the absolute terms of a row, or of its terms that are constant during a run, if it has some."""
    sizes = [term_size(x) for x in row if not x.is_zero]
    return row[0].graph.sum([x for x in sizes if x.constant] or sizes)


def eliminate(
    matrix: Sequence[Sequence[Node]],
    right: Sequence[Sequence[Node]],
    samples: Samples,
    columns: Iterable[int],
    places: Sequence[Place] = (),
) -> tuple[list[list[Node]], list[Pivot], dict[int, int]]:
    """Gauss-Jordan elimination of ``[matrix | right]`` with pivots in ``columns``, one for each row.

    Returns the reduced rows, the pivots in order, and a dictionary from column to row of the pivots, in this order.
    Constant and large pivots come first, unless ``places`` (row, column) are given. The pivots can be zero at single
    states where the matrix is regular. Raises ZeroDivisionError with the index of a row without a pivot.
    """
    if not matrix or not matrix[0]:
        if matrix:
            raise ZeroDivisionError(0)
        return [], [], {}
    rows = [[*left, *extra] for left, extra in zip(matrix, right, strict=True)]
    sizes = _Sizes(matrix, samples)
    free_rows, free_columns = list(range(len(rows))), list(columns)
    pivots: list[Pivot] = []
    row_of: dict[int, int] = {}
    while free_rows:
        row, column = places[len(pivots)] if places else _choose(rows, free_rows, free_columns, sizes)
        pivot = rows[row][column]
        others = (x for j, x in enumerate(rows[row][: len(matrix[0])]) if j != column and not x.is_zero)
        same = all(x is y for x, y in zip(rows[row], matrix[row], strict=False))
        pivots.append(Pivot(pivot, tuple(others), None if same else _row_terms(matrix[row])))
        row_of[column] = row
        free_rows.remove(row)
        free_columns.remove(column)
        _reduce(rows, row, column)
        sizes.reduce(rows, row, column)
    return rows, pivots, row_of


def _reduce(rows: list[list[Node]], row: int, column: int) -> None:
    """Divide a row by its pivot and subtract it from all others."""
    pivot = rows[row][column]
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


class _Sizes:
    """The matrix of an elimination at random states, with the sums of the absolute terms of each entry.

    An entry that is no larger than rounding of its terms is zero, whatever the units of rows and columns are.
    """

    def __init__(self, matrix: Sequence[Sequence[Node]], samples: Samples) -> None:
        values = np.array([samples(row) for row in matrix], dtype=np.float64)
        finite = np.isfinite(values).all(axis=(0, 1))
        if not finite.any():  # at an undefined state nothing is known but zeros
            values, finite = np.array([[[float(not x.is_zero)] for x in row] for row in matrix]), np.array([True])
        self._values = values[:, :, finite]
        self._terms = np.abs(self._values)

    def of(self, row: int, column: int) -> float:
        """The smallest absolute value at the random states; 0 for an entry that is zero or only rounding at one."""
        value, terms = np.abs(self._values[row, column]), self._terms[row, column]
        return float(np.where(value > RANK_TOLERANCE * terms, value, 0.0).min(initial=np.inf))

    def reduce(self, rows: Sequence[Sequence[Node]], row: int, column: int) -> None:
        """Do as `_reduce`; zero entries of ``rows`` become zeros."""
        values, terms = self._values, self._terms
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.nan_to_num(values[row] / values[row, column])
            share_terms = np.nan_to_num(terms[row] / np.abs(values[row, column]))
        factors = np.array(values[:, column])
        factors[row] = 0.0
        values -= factors[:, None] * shares
        terms += np.abs(factors)[:, None] * share_terms
        values[row], terms[row] = shares, share_terms
        for i, entries in enumerate(rows):
            for j in range(values.shape[1]):
                if entries[j].is_zero:
                    values[i, j] = 0.0


def _over(x: Node, pivot: Node, reciprocal: Node) -> Node:
    if x is pivot:
        return pivot.graph.one
    if pivot.op == "neg" and x is pivot.args[0]:
        return pivot.graph.const(-1)
    return pivot.graph.div(x, pivot) if pivot.constant else pivot.graph.mul(x, reciprocal)


def _choose(rows: list[list[Node]], free_rows: list[int], free_columns: list[int], sizes: _Sizes) -> Place:
    """The (row, column) of the next pivot: largest relative to its row, constants preferred."""
    for i in free_rows:  # an entry 1 or -1, as in q' = u, is the best pivot
        row = rows[i]
        for j in free_columns:
            if row[j].op == "const" and abs(row[j].payload) == 1:
                return i, j
    best, best_score = None, 0.0
    for i in free_rows:
        known = {j: sizes.of(i, j) for j in free_columns if not rows[i][j].is_zero}
        scale = max(known.values(), default=0.0)
        if not scale > 0.0:
            raise ZeroDivisionError(i)
        for j, size in known.items():
            score = size / scale * (CONSTANT_BONUS if rows[i][j].constant else 1.0)
            if score > best_score * (1.0 + _TIE):
                best, best_score = (i, j), score
    assert best is not None
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
