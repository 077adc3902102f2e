"""Rows of constraints for the elimination of velocities: sums of rows that touch few speeds.

The constraints of a chain of loops are often written along the chain, so that row k contains the coordinates of all
loops up to k. The sum or the difference of two such rows contains those of the last loops alone, and is as good a
constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.derivation.algebra import CONSTANT_BONUS
from kanegen.derivation.constraints import Row
from kanegen.derivation.geometry.system import System
from kanegen.derivation.inertia.recursion import Terms
from kanegen.graph import Node, gradient
from kanegen.graph.ranks import rank

CLEAR: Final = 0.01
"""Least entry of a row that determines a speed, relative to the largest one of the row: the median at random states,
one of which can be near a singular position by chance."""

PARTNERS: Final = 8
"""Most rows with which a row is compared: the next ones in length."""


@dataclass(frozen=True)
class LocalRow:
    """A sum of rows of ``J u' = b``.

    ``parts``: the sign of each row in the sum. ``residual``: its residual psi at velocity level, of which the row is
    the rate; None for a row at acceleration level. ``J``: the entries that are not zero. ``bias``: b without
    stabilization.
    """

    parts: dict[int, int]
    residual: Node | None
    J: Terms
    bias: Node


@dataclass(frozen=True)
class Loops:
    """The rows of constraints in an elimination, each with its multiplier.

    ``values`` (states, n_c, n_u): the entries of the rows at random states, relative to the largest one of each row.
    """

    rows: tuple[LocalRow, ...]
    multipliers: tuple[Node, ...]
    speeds: tuple[Node, ...]
    values: Array

    @classmethod
    def of(cls, system: System, constraints: Sequence[Row]) -> Loops:
        rows = local_rows(system, constraints)
        multipliers = tuple(system.graph.input("multiplier", k) for k in range(len(rows)))
        places = {speed: r for r, speed in enumerate(system.u)}
        values = np.zeros((len(system.states), len(rows), len(places)))
        for k, row in enumerate(rows):
            for speed, samples in zip(row.J, system.samples(list(row.J.values())), strict=True):
                values[:, k, places[speed]] = samples
        values[~np.isfinite(values)] = 0.0
        sizes = np.abs(values).max(axis=2, keepdims=True, initial=0.0)
        return cls(tuple(rows), multipliers, system.u, np.divide(values, sizes, where=sizes > 0.0, out=values))

    @property
    def weights(self) -> list[Terms]:
        """The rows of the multipliers at the beginning of the elimination."""
        return [row.J if row.residual is None else {row.residual: row.residual.graph.one} for row in self.rows]

    @property
    def are_independent(self) -> bool:
        """Whether the rows are independent at a random state."""
        return not self.rows or any(rank(state) == len(self.rows) for state in self.values)


class RowSizes:
    """How well the rows determine speeds, in the course of an elimination."""

    def __init__(self, loops: Loops) -> None:
        self._values = loops.values.copy()
        self._places = {node: k for nodes in (loops.multipliers, loops.speeds) for k, node in enumerate(nodes)}

    def size(self, multiplier: Node, speed: Node, entry: Node) -> float:
        """The entry of a row relative to its largest one; entries that are constant during a run are preferred."""
        size = float(np.median(np.abs(self._values[:, self._places[multiplier], self._places[speed]])))
        size = round(size, 9)  # so that every machine makes the same choice among equals
        return size * CONSTANT_BONUS if entry.constant and size > CLEAR else size

    def solve(self, multiplier: Node, speed: Node) -> None:
        """Solve a row for a speed and insert it in the other rows."""
        k, r = self._places[multiplier], self._places[speed]
        pivots = self._values[:, k, r, None]
        ratios = np.divide(self._values[:, :, r], pivots, where=pivots != 0.0, out=np.zeros_like(self._values[:, :, r]))
        ratios[:, k] = 0.0
        self._values -= ratios[:, :, None] * self._values[:, k, None, :]


def local_rows(system: System, rows: Sequence[Row]) -> list[LocalRow]:
    """Independent sums of the rows, each with as few terms as were found; one for each row, in their order."""
    sums = {k: _flat(row.residuals[-1]) for k, row in enumerate(rows) if row.residuals}
    parts = {k: {k: 1} for k in range(len(rows))}
    order = sorted(sums, key=lambda k: (-len(sums[k]), -k))
    for place, k in enumerate(order):
        # Rows that come later are not reduced yet, so that the sums remain independent.
        near = [j for j in order[place + 1 :] if not sums[k].keys().isdisjoint(sums[j])][:PARTNERS]
        while found := _shorter(sums[k], {j: sums[j] for j in near}):
            j, sign, sums[k] = found
            parts[k][j] = parts[k].get(j, 0) + sign
    return [_row(system, rows, k, parts[k], sums) for k in range(len(rows))]


def _row(system: System, rows: Sequence[Row], k: int, parts: dict[int, int], sums: dict[int, Terms]) -> LocalRow:
    row = rows[k]
    if len(parts) == 1:
        return LocalRow(parts, row.residuals[-1] if row.residuals else None, _entries(system, row.J), row.bias)
    residual = system.graph.sum(factor * term for term, factor in sums[k].items())
    J = gradient([residual], [system.graph.one], system.u)
    return LocalRow(parts, residual, _entries(system, J), -system.rate(residual))


def _entries(system: System, J: Sequence[Node]) -> Terms:
    return {speed: entry for speed, entry in zip(system.u, J, strict=True) if not entry.is_zero}


def _shorter(row: Terms, others: dict[int, Terms]) -> tuple[int, int, Terms] | None:
    """The sum or difference of the row and another one with the fewest terms, if it has fewer than the row."""
    best, found = len(row), None
    for j, other in others.items():
        common = row.keys() & other.keys()
        for sign in (-1, 1):
            cancelled = sum(row[x] is (other[x] if sign < 0 else -other[x]) for x in common)
            size = len(row) + len(other) - len(common) - cancelled
            if size < best:
                best, found = size, (j, sign)
    if found is None:
        return None
    j, sign = found
    total = dict(row)
    for term, factor in others[j].items():
        value = factor if sign > 0 else -factor
        total[term] = total[term] + value if term in total else value
    return j, sign, {term: factor for term, factor in total.items() if not factor.is_zero}


def _flat(residual: Node) -> Terms:
    """A residual as a sum of multiples of terms by factors that are constant during a run."""
    terms: Terms = {}
    waiting = [(residual, residual.graph.one)]
    while waiting:
        node, factor = waiting.pop()
        match node.op, node.args:
            case "add", (a, b):
                waiting += [(b, factor), (a, factor)]
            case "sub", (a, b):
                waiting += [(b, -factor), (a, factor)]
            case "neg", (a,):
                waiting.append((a, -factor))
            case "mul", (a, b) if a.constant or b.constant:
                waiting.append((b, factor * a) if a.constant else (a, factor * b))
            case "div", (a, b) if b.constant:
                waiting.append((a, factor / b))
            case _:
                terms[node] = terms[node] + factor if node in terms else factor
    return {node: factor for node, factor in terms.items() if not factor.is_zero}
