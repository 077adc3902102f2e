"""Gaussian elimination on the graph: pivots are chosen once, at random states, the arithmetic is straight-line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kanegen.graph.nodes import Node
from kanegen.graph.ranks import RANK_TOLERANCE

Magnitudes = Callable[[Sequence[Node]], list[float]]

_CONSTANT_BONUS = 8.0
"""How much larger a varying pivot must be to be preferred to one that is constant during a run."""

_TIE = 1e-9
"""Scores that differ by less than this fraction are equal: the first pivot is taken on every machine."""


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
    matrix: Sequence[Sequence[Node]],
    right: Sequence[Sequence[Node]],
    magnitudes: Magnitudes,
    columns: Iterable[int],
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
        others = (x for j, x in enumerate(rows[row][:n]) if j != column and not x.is_zero)
        pivots.append(Pivot(pivot, tuple(others)))
        row_of[column] = row
        free_rows.remove(row)
        free_columns.remove(column)
        graph = pivot.graph
        if not pivot.is_one:
            reciprocal = graph.div(graph.one, pivot)
            rows[row] = [
                graph.one if j == column else (x if x.is_zero else _over(x, pivot, reciprocal))
                for j, x in enumerate(rows[row])
            ]
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
    best: tuple[int, int] | None = None
    best_score = 0.0
    for i in free_rows:
        scale = max((sizes[i, j] for j in free_columns if (i, j) in sizes), default=0.0)
        if not scale > RANK_TOLERANCE:
            raise ZeroDivisionError(i)
        for j in free_columns:
            if (i, j) in sizes:
                score = sizes[i, j] / scale * (_CONSTANT_BONUS if rows[i][j].constant else 1.0)
                if score > best_score * (1.0 + _TIE):
                    best, best_score = (i, j), score
    if best is None:
        raise ZeroDivisionError(free_rows[0])
    return best
