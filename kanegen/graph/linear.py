"""Square linear systems over the graph, solved by divisors that vanish only where the matrix is singular.

A pivot that is large at random states can be zero at a right angle, where the matrix is regular. So the matrix is
permuted to block triangular form (Dulmage and Mendelsohn 1958; Pothen and Fan 1990), which does not depend on the
order of the rows. Its determinant is the product of those of the blocks. A block is reduced by pivots that are numbers,
and what is left is divided by its determinant, or, if it is large, by squared lengths of an orthogonalization.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from kanegen.graph.derivatives import count_operations, reachable
from kanegen.graph.identities import Identities
from kanegen.graph.nodes import Graph, Node
from kanegen.graph.ranks import is_regular

Samples: TypeAlias = Callable[[Sequence[Node]], "list[tuple[float, ...]]"]
Canonical: TypeAlias = Callable[[Iterable[Node]], "list[Node]"]
Matrix: TypeAlias = Sequence[Sequence[Node]]
Rows: TypeAlias = list[list[Node]]

CRAMER: Final = 3
"""Largest block that is solved by its determinant; larger ones would take more operations and lose more digits."""

NUMBER: Final = 0.1
"""Least size of a number as a pivot, relative to the other entries of its row: at most a digit is lost."""


@dataclass(frozen=True)
class Solution:
    """X of ``matrix X = right``, and the divisors in it."""

    rows: Rows
    divisors: tuple[Divisor, ...]


def solve_linear(matrix: Matrix, right: Matrix, samples: Samples) -> Solution:
    """X of ``matrix X = right``, defined wherever the matrix is regular.

    ``samples``: the values of nodes at random states. Raises ZeroDivisionError for a matrix that is singular at all of
    them.
    """
    if not matrix:
        return Solution([], ())
    solver = _Solver(matrix[0][0].graph, samples)
    rows = solver.solve(matrix, right)
    return Solution(rows, tuple(dict.fromkeys(solver.divisors)))


@dataclass(frozen=True)
class Divisor:
    """What was divided by: an entry or a determinant, or a squared length of orthogonal vectors.

    ``whole``: what the divisor is a part of, whose terms are its size; None: itself.
    """

    value: Node
    squared: bool = False
    whole: Node | None = None

    def holds(self, threshold: float) -> Node | None:
        """The condition that the divisor is larger than ``threshold`` times its terms; None for a number."""
        if self.value.op == "const":
            return None
        graph = self.value.graph
        limit = graph.const(threshold * threshold if self.squared else threshold)
        return graph.apply("lt", limit * term_size(self.whole or self.value), graph.apply("abs", self.value))


def term_size(node: Node) -> Node:
    """The sum of the absolute terms of a node, in which sines and cosines count as 1.

    Differences that cancel, and sines near zero, are small compared with it, in any units.
    """
    graph, sizes = node.graph, dict[int, Node]()
    for x in reachable([node]):
        match x.op, [sizes[a.index] for a in x.args]:
            case (("sin" | "cos"), _):
                sizes[x.index] = graph.one
            case "neg", [a]:
                sizes[x.index] = a
            case (("add" | "sub"), [a, b]):
                sizes[x.index] = a + b
            case "mul", [a, b]:
                sizes[x.index] = a * b
            case "div", [a, _]:
                sizes[x.index] = a / graph.apply("abs", x.args[1])
            case _:
                sizes[x.index] = graph.apply("abs", x)
    return sizes[node.index]


@dataclass(frozen=True)
class _Block:
    """Rows and columns of a diagonal block."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


class _Solver:
    """Solves systems over one graph, whose equal nodes are recognized across all blocks."""

    def __init__(self, graph: Graph, samples: Samples) -> None:
        self._graph, self._samples = graph, samples
        self._identities = Identities(graph)
        self.divisors: list[Divisor] = []

    def solve(self, matrix: Matrix, right: Matrix) -> Rows:
        """X of ``matrix X = right``, block by block."""
        matrix = [self._identities.canonical(row) for row in matrix]
        known: dict[int, list[Node]] = {}
        for block in _triangular(matrix):
            rest = [
                _less(right[i], [(matrix[i][j], x) for j, x in known.items() if not matrix[i][j].is_zero])
                for i in block.rows
            ]
            solution = self._solved([[matrix[i][j] for j in block.columns] for i in block.rows], rest)
            known.update(zip(block.columns, solution, strict=True))
        return [known[j] for j in range(len(matrix))]

    def _solved(self, matrix: Rows, right: Rows) -> Rows:
        """X for one block."""
        if len(matrix) == 1:
            self.divisors.append(Divisor(matrix[0][0]))
            return [_divided(right[0], matrix[0][0])]
        self._require_regular(matrix)
        sizes = self._sizes(matrix)
        place = _number(matrix, sizes)
        if place is not None:
            return self._reduced(matrix, right, *place)
        solutions = list(self._closed_forms(matrix, right))
        if not solutions:
            return self._orthogonalized(matrix, right, sizes)
        best = min(solutions, key=lambda found: count_operations(x for row in found.rows for x in row))
        self.divisors += best.divisors
        return best.rows

    def _require_regular(self, matrix: Rows) -> None:
        n = len(matrix)
        values = np.array(self._samples([x for row in matrix for x in row])).T.reshape(-1, n, n)
        finite = [state for state in values if np.isfinite(state).all()]
        if finite and not any(map(is_regular, finite)):
            raise ZeroDivisionError

    def _sizes(self, matrix: Rows) -> list[float]:
        """The largest entry of each row at the random states."""
        return [max((abs(v) for values in self._samples(row) for v in values), default=0.0) for row in matrix]

    def _reduced(self, matrix: Rows, right: Rows, row: int, column: int) -> Rows:
        """X by elimination with one pivot, which is a number."""
        n = len(matrix)
        others = [j for j in range(n) if j != column]
        pivot = matrix[row][column]
        scaled = dict(zip(others, _divided([matrix[row][j] for j in others], pivot), strict=True))
        own = _divided(right[row], pivot)
        left, rest = [], []
        for i in (i for i in range(n) if i != row):
            factor = matrix[i][column]
            left.append(_less([matrix[i][j] for j in others], [(factor, [scaled[j] for j in others])]))
            rest.append(_less(right[i], [(factor, own)]))
        solution = dict(zip(others, self.solve(left, rest), strict=True))
        solution[column] = _less(own, [(scaled[j], solution[j]) for j in others])
        return [solution[j] for j in range(n)]

    def _closed_forms(self, matrix: Rows, right: Rows) -> Iterator[Solution]:
        """X by inverses in closed form: Cramer's rule, and the transpose of orthogonal rows or columns over lengths."""
        makers = [_by_rows, _by_columns]
        if len(matrix) <= CRAMER:
            makers.append(_by_cofactors)
        for make in makers:
            # One way must not replace the nodes of another one by equal nodes of its own.
            identities = Identities(self._graph)
            for row in matrix:
                identities.canonical(row)
            found = make(matrix, identities.canonical)
            if found is not None:
                inverse = [identities.canonical(row) for row in found.rows]
                plain = [[self._graph.dot(row, column) for column in zip(*right, strict=True)] for row in inverse]
                yield Solution(plain, found.divisors)
                yield Solution([identities.canonical(row) for row in plain], found.divisors)

    def _orthogonalized(self, matrix: Rows, right: Rows, sizes: Sequence[float]) -> Rows:
        """X by modified Gram-Schmidt orthogonalization of the columns, the right sides included (Björck 1967)."""
        graph, canonical = self._graph, self._identities.canonical
        scales = [graph.const(2.0 ** -round(np.log2(size))) if size > 0.0 else graph.one for size in sizes]
        columns = _transposed([[s * x for x in row] for s, row in zip(scales, matrix, strict=True)])
        rest = _transposed([[s * x for x in row] for s, row in zip(scales, right, strict=True)])
        # A column is compared with itself before the others were subtracted: the terms of what is left grow with each
        # of them, by far more than its rounding errors.
        wholes = [graph.dot(column, column) for column in columns]
        triangle: list[list[tuple[Node, int]]] = []
        projections: Rows = []
        while columns:
            first, *columns = (canonical(column) for column in columns)
            (length,) = canonical([graph.dot(first, first)])
            self.divisors.append(Divisor(length, squared=True, whole=wholes[len(triangle)]))
            shares = canonical(graph.div(graph.dot(first, other), length) for other in columns)
            columns = [_less(other, [(share, first)]) for other, share in zip(columns, shares, strict=True)]
            own = [graph.div(graph.dot(first, side), length) for side in rest]
            rest = [_less(side, [(share, first)]) for side, share in zip(rest, own, strict=True)]
            projections.append(own)
            triangle.append([(share, len(triangle) + 1 + k) for k, share in enumerate(shares) if not share.is_zero])
        solution: dict[int, list[Node]] = {}
        for j in reversed(range(len(triangle))):
            solution[j] = _less(projections[j], [(share, solution[k]) for share, k in triangle[j]])
        return [solution[j] for j in range(len(triangle))]


def _by_columns(matrix: Rows, canonical: Canonical) -> Solution | None:
    """The inverse of a matrix with orthogonal columns: its transpose over their squared lengths."""
    columns = _transposed(matrix)
    if not all(x.is_zero for x in canonical(a[0].graph.dot(a, b) for a, b in combinations(columns, 2))):
        return None
    lengths = canonical(a[0].graph.dot(a, a) for a in columns)
    rows = [_divided(column, length) for column, length in zip(columns, lengths, strict=True)]
    return Solution(rows, tuple(Divisor(length, squared=True) for length in lengths))


def _by_rows(matrix: Rows, canonical: Canonical) -> Solution | None:
    """The same for orthogonal rows."""
    found = _by_columns(_transposed(matrix), canonical)
    return None if found is None else Solution(_transposed(found.rows), found.divisors)


def _by_cofactors(matrix: Rows, canonical: Canonical) -> Solution:
    """The adjugate over the determinant, for 2 or 3 rows."""
    n = len(matrix)
    if n == 2:
        (a, b), (c, d) = matrix
        adjugate = [[d, -b], [-c, a]]
    else:
        adjugate = [[_cyclic_minor(matrix, j, i) for j in range(n)] for i in range(n)]
    adjugate = [canonical(row) for row in adjugate]
    column = [row[0] for row in adjugate]
    (determinant,) = canonical([matrix[0][0].graph.dot(matrix[0], column)])
    return Solution([_divided(row, determinant) for row in adjugate], (Divisor(determinant),))


def orthogonal(rows: Matrix) -> list[Node]:
    """The row orthogonal to n - 1 rows (n,): their minors, all zero only where the rows depend on each other."""
    n = len(rows) + 1
    graph = rows[0][0].graph
    result = []
    for j in range(n):
        minor = _determinant([[x for k, x in enumerate(row) if k != j] for row in rows])
        result.append(graph.neg(minor) if (n - 1 - j) % 2 else minor)
    return result


def _determinant(matrix: Rows) -> Node:
    """The determinant of a small matrix, along its first row."""
    graph = matrix[0][0].graph
    if len(matrix) == 1:
        return matrix[0][0]
    rest = [[[x for k, x in enumerate(row) if k != j] for row in matrix[1:]] for j in range(len(matrix))]
    terms = [x * _determinant(minor) for x, minor in zip(matrix[0], rest, strict=True) if not x.is_zero]
    signs = [j % 2 for j, x in enumerate(matrix[0]) if not x.is_zero]
    return graph.sum(-x if odd else x for x, odd in zip(terms, signs, strict=True))


def _cyclic_minor(matrix: Rows, i: int, j: int) -> Node:
    """The minor without a row and a column of three, the others in cyclic order, so that it is the cofactor."""
    (a, b), (c, d) = ([matrix[(i + k) % 3][(j + m) % 3] for m in (1, 2)] for k in (1, 2))
    return a * d - b * c


def _number(matrix: Rows, sizes: Sequence[float]) -> tuple[int, int] | None:
    """The place (row, column) of a number that is no small fraction of its row: 1 or -1, or else the largest one."""
    best, place = 0.0, None
    for i, row in enumerate(matrix):
        for j, x in enumerate(row):
            if x.op == "const" and abs(x.payload) >= NUMBER * sizes[i] > 0.0:
                if abs(x.payload) == 1:
                    return i, j
                if abs(x.payload) / sizes[i] > best:
                    best, place = abs(x.payload) / sizes[i], (i, j)
    return place


def _less(row: Sequence[Node], products: Sequence[tuple[Node, Sequence[Node]]]) -> list[Node]:
    """``row - sum factor * other``."""
    rest = list(row)
    for factor, other in products:
        rest = [x - factor * y for x, y in zip(rest, other, strict=True)]
    return rest


def _divided(row: Sequence[Node], divisor: Node) -> list[Node]:
    """The row over the divisor: over its reciprocal, which all entries share, unless it is constant during a run."""
    graph = divisor.graph
    if divisor.is_one:
        return list(row)
    reciprocal = graph.div(graph.one, divisor)

    def quotient(x: Node) -> Node:
        if x.is_zero or x is divisor:
            return graph.one if x is divisor else x
        if divisor.op == "neg" and x is divisor.args[0]:
            return graph.const(-1)
        return graph.div(x, divisor) if divisor.constant else x * reciprocal

    return [quotient(x) for x in row]


def _transposed(matrix: Matrix) -> Rows:
    return [list(column) for column in zip(*matrix, strict=True)]


# -- block triangular form -----------------------------------------------------------------------------------


def _triangular(matrix: Matrix) -> list[_Block]:
    """The diagonal blocks in an order in which each row contains columns of its own and of earlier blocks only.

    Raises ZeroDivisionError if the zeros alone make the matrix singular.
    """
    rows = {i: {j for j, x in enumerate(row) if not x.is_zero} for i, row in enumerate(matrix)}
    users: list[list[int]] = [[] for _ in matrix]
    for i, columns in rows.items():
        for j in columns:
            users[j].append(i)
    blocks = []
    waiting = [i for i, columns in rows.items() if len(columns) < 2]
    while waiting:  # most systems are triangular, or become so row by row
        i = waiting.pop(0)
        if not rows[i]:
            raise ZeroDivisionError
        (j,) = rows.pop(i)
        blocks.append(_Block((i,), (j,)))
        for other in users[j]:
            if other in rows:
                rows[other].discard(j)
                if len(rows[other]) < 2 and other not in waiting:
                    waiting.append(other)
    return blocks + _irreducible(rows) if rows else blocks


def _irreducible(rows: Mapping[int, set[int]]) -> list[_Block]:
    """The blocks of rows with two or more columns each: the strongly connected rows of a perfect matching."""
    from scipy.sparse import csr_array  # few models need it
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    names, columns = list(rows), sorted(set().union(*rows.values()))
    pattern = np.array([[j in rows[i] for j in columns] for i in names], dtype=np.int8)
    matched = maximum_bipartite_matching(csr_array(pattern), perm_type="column")
    if len(columns) < len(names) or (matched < 0).any():
        raise ZeroDivisionError
    needs = pattern[:, matched]
    _, labels = connected_components(csr_array(needs), connection="strong")
    before: dict[int, set[int]] = {int(label): set() for label in labels}
    for i, k in zip(*np.nonzero(needs), strict=True):
        if labels[i] != labels[k]:
            before[int(labels[i])].add(int(labels[k]))
    members = {label: np.flatnonzero(labels == label) for label in before}
    return [
        _Block(tuple(names[i] for i in members[label]), tuple(sorted(columns[matched[i]] for i in members[label])))
        for label in TopologicalSorter(before).static_order()
    ]
