"""Accelerations of bodies by elimination of velocity components, in a number of operations of order n for trees.

The kinetic energy ``K = 1/2 z^T D z`` is a sum over bodies. The components z of their velocities follow from the speeds
by a sparse recursion ``z = G z + S u``. Kane's equations ``Q u' = P`` are the conditions for the minimum of
``1/2 z^T D z - f^T z`` over the speeds, which is found without Q. A component on which no other one depends is replaced
by its sum, and a speed on which no component depends is eliminated with the pivot ``H_uu``. At the tip of a chain this
gives the articulated inertia of the last body, then that of the body before it (Featherstone 2008, chapter 7).

The rows ``J u' = b`` of constraints take part with their multipliers. A multiplier is an unknown whose row of H has the
weight 1 at the velocity residual of its constraint, a component like the others. Where a constraint determines a speed,
the speed and the multiplier are eliminated together: the speed becomes a sum, as components are. Otherwise the
multiplier follows all speeds that it touches, and its pivot is negative where the rows are independent (pivots of order
2 and 1 as in Duff and Reid 1983). Loops of few bodies thus meet few others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import inf
from typing import Final, TypeAlias

import numpy as np

from kanegen.derivation.algebra import PIVOT_LIMIT, PIVOT_THRESHOLD, is_lost
from kanegen.derivation.inertia.loops import CLEAR, Loops, RowSizes
from kanegen.derivation.inertia.order import ranks
from kanegen.derivation.inertia.recursion import Recursion, Terms, Turn
from kanegen.graph import Graph, Node

Weights: TypeAlias = Mapping[tuple[Node, Node], Node]
"""Entries of D by pair of components, each pair once."""


ROW_THRESHOLD: Final = PIVOT_LIMIT * PIVOT_LIMIT
"""Pivot of a multiplier, relative to ``J_k Q^-1 J_k^T`` of its row alone, below which six digits are lost (four of
float): the square of the sine of the angle between the row and the rows before it."""


@dataclass(frozen=True)
class Substitution:
    """A component and the sum that replaces it."""

    component: Node
    terms: Terms


@dataclass(frozen=True)
class Pivot:
    """A speed or a multiplier, the reciprocal of its pivot, and its row divided by the pivot."""

    unknown: Node
    reciprocal: Node
    row: Terms


@dataclass(frozen=True)
class Dependent:
    """A speed that a constraint determines: ``terms`` replace it, and b times ``reciprocal`` is added.

    ``row``: its row of H before that.
    """

    speed: Node
    multiplier: Node
    reciprocal: Node
    terms: Terms
    row: Terms


Step: TypeAlias = Substitution | Pivot | Dependent


@dataclass(frozen=True)
class SparseFactor:
    """The elimination of all components, speeds and multipliers, valid where all ``conditions`` hold."""

    graph: Graph
    steps: tuple[Step, ...]
    conditions: tuple[Node, ...]

    def forward(self, right: Mapping[Node, Node]) -> dict[Node, Node]:
        """The right sides of the unknowns at their elimination.

        ``right``: forces conjugate to components and speeds, and b of the multipliers.
        """
        f, zero = dict(right), self.graph.zero

        def spread(value: Node, terms: Terms, add: Callable[[Node, Node], Node] = operator.add) -> None:
            for operand, factor in () if value.is_zero else terms.items():
                f[operand] = add(f.get(operand, zero), factor * value)

        for step in self.steps:
            match step:
                case Substitution():
                    spread(f.pop(step.component, zero), step.terms)
                case Pivot():
                    spread(f.get(step.unknown, zero), step.row, operator.sub)
                case Dependent():
                    known = f.get(step.multiplier, zero) * step.reciprocal
                    spread(known, step.row, operator.sub)
                    spread(f.get(step.speed, zero), step.terms)
                    f[step.speed] = known
        return f

    def backward(self, forces: Mapping[Node, Node]) -> dict[Node, Node]:
        """The rates of the speeds, and minus some multipliers, for the results of `forward`."""
        needed: set[Node] = set()
        for step in self.steps:
            if isinstance(step, Pivot):
                needed.update(step.row)
            elif isinstance(step, Dependent) or step.component in needed:
                needed.update(step.terms)
        x: dict[Node, Node] = {}
        sums: dict[frozenset[Node], Node] = {}

        def total(terms: Terms) -> Node:
            if all(factor.is_one for factor in terms.values()) and frozenset(terms) in sums:
                return sums[frozenset(terms)]
            return self.graph.sum(factor * x[operand] for operand, factor in terms.items())

        for step in reversed(self.steps):
            match step:
                case Substitution():
                    if step.component in needed:
                        x[step.component] = total(step.terms)
                case Pivot():
                    value = forces.get(step.unknown, self.graph.zero) * step.reciprocal
                    before = [operand for operand, factor in step.row.items() if factor.is_one]
                    value = value - total({y: factor for y, factor in step.row.items() if y not in before})
                    x[step.unknown] = value - total(dict.fromkeys(before, self.graph.one))
                    # A joint adds its speed to a component: the sum is known before the speed.
                    sums[frozenset((step.unknown, *before))] = value
                case Dependent():
                    x[step.speed] = forces[step.speed] + total(step.terms)
        return x


class FillInError(Exception):
    """An elimination needs more operations than are allowed."""


def eliminated(
    graph: Graph,
    recursion: Recursion,
    weights: Weights,
    speeds: Sequence[Node],
    loops: Loops | None = None,
    limit: float = inf,
) -> SparseFactor:
    """Eliminate all components, speeds and the multipliers of ``loops``.

    Raises ZeroDivisionError, with the speed or multiplier as its argument, if a pivot is zero, or a number
    that is zero but for rounding, and FillInError if more than ``limit`` entries of H are computed.
    """
    return _Elimination(graph, recursion, weights, speeds, loops or Loops((), (), (), np.empty((0, 0, 0)))).run(limit)


class _Elimination:
    """The state of an elimination: ``H`` are the rows of the symmetric matrix of all components that are left."""

    def __init__(
        self, graph: Graph, recursion: Recursion, weights: Weights, speeds: Sequence[Node], loops: Loops
    ) -> None:
        self._graph = graph
        multipliers = loops.multipliers
        self._J = {node: row.J for node, row in zip(multipliers, loops.rows, strict=True)}
        self._sizes = RowSizes(loops)
        self._turned = recursion.turned
        self._rank = ranks(recursion.terms, {x for pair in weights for x in pair})
        self._terms: dict[Node, Terms] = {**recursion.terms, **{node: {} for node in multipliers}}
        self._touched = {node: set(row) for node, row in zip(multipliers, loops.weights, strict=True)}
        self._speeds, self._unknowns = frozenset(speeds), {*speeds, *multipliers}
        self._place = {node: k for k, node in enumerate(self._terms)}
        self._H: dict[Node, dict[Node, Node]] = {node: {} for node in self._terms}
        self._entries = 0
        self._compliance: dict[Node, Node] = {}
        self._scale: dict[Node, Node] = {}
        self._users = dict.fromkeys(recursion.terms, 0)
        for terms in recursion.terms.values():
            for operand in terms:
                self._users[operand] += 1
        for (a, b), weight in weights.items():
            self._add(a, b, weight)
        for node, row in self._H.items():
            if node in row:
                self._scale[node] = row[node]
        for node, terms in zip(multipliers, loops.weights, strict=True):
            for operand, factor in terms.items():
                self._add(node, operand, factor)
        self._reduced: set[Node] = set()
        self._steps: list[Step] = []
        self._conditions: list[Node] = []

    def run(self, limit: float) -> SparseFactor:
        left = dict.fromkeys(self._terms)
        ready = {node for node in left if self._is_ready(node)}
        prices: dict[Node, tuple[int, ...]] = {}
        while left:
            if self._entries > limit:
                raise FillInError
            for node in ready:
                if node not in prices:
                    prices[node] = self._price(node)
            node = min(ready, key=prices.__getitem__)
            group = self._pair(node) if node in self._speeds else self._together(node, ready)
            touched = {other for member in group for other in (*self._H[member], *self._terms[member])}
            self._remove(group)
            self._pass_touch(group)
            for member in group:
                del left[member]
                ready.discard(member)
            ready |= {x for member in group for x in self._terms[member] if x in left and self._is_ready(x)}
            ready |= {y for x in ready if x in self._turned for y in self._turned[x].members if y in left}
            ready |= {x for x, remaining in self._touched.items() if not remaining}
            for other in touched:
                prices.pop(other, None)
                for neighbor in self._H.get(other, ()):
                    prices.pop(neighbor, None)
        return SparseFactor(self._graph, tuple(self._steps), tuple(self._conditions))

    # -- the order ------------------------------------------------------------------------------------------

    def _group(self, node: Node) -> tuple[Node, ...]:
        """A component, with the other one of its pair if it is rotated."""
        return self._turned[node].members if node in self._turned else (node,)

    def _together(self, node: Node, ready: Iterable[Node]) -> tuple[Node, ...]:
        """The components that are replaced with this one: other pairs that are rotated by the same angle."""
        if node not in self._turned:
            return (node,)
        turns = [self._turned[node]]
        others = (x for x in ready if x in self._turned and self._turned[x].cosine is turns[0].cosine)
        for x in sorted(others, key=self._place.__getitem__):
            if self._are_separate([*turns, self._turned[x]]):
                turns.append(self._turned[x])
        return tuple(x for turn in turns for x in turn.members)

    def _are_separate(self, turns: Sequence[Turn]) -> bool:
        """Whether the pairs are different ones, none of which is coupled with what replaces it or another one."""
        operands = {x for turn in turns for x in turn.operands}
        members = [x for turn in turns for x in turn.members]
        return len(operands) == len(members) and all(operands.isdisjoint(self._H[x]) for x in members)

    def _pair(self, speed: Node) -> tuple[Node, ...]:
        """A speed, with the multiplier of the constraint that determines it, if there is a clear one.

        A row with many entries would couple all of them with the neighbors of the speed.
        """
        row = self._H[speed]
        waiting = [x for x in row if x in self._touched and x not in self._H[x]]
        if speed in row:
            waiting = [x for x in waiting if len(self._H[x]) <= len(row) + 2]
        best = max(waiting, key=lambda x: self._sizes.size(x, speed, row[x]), default=None)
        if best is None or self._sizes.size(best, speed, row[best]) < CLEAR:
            return (speed,)
        return speed, best

    def _is_ready(self, node: Node) -> bool:
        if node in self._touched:
            return not self._touched[node]
        return not any(self._users[member] for member in self._group(node))

    def _price(self, node: Node) -> tuple[int, ...]:
        """Speeds and multipliers first, then the components by rank; among equals that with the fewest new nonzeros."""
        group = self._group(node)
        neighbors = {x for member in group for x in self._H[member]} - set(group)
        targets = {x for member in group for x in self._terms[member]}
        if targets:
            pairs = {frozenset((a, b)) for a in targets for b in neighbors | targets if a is not b}
            fill = sum(b not in self._H[a] for a, b in map(tuple, pairs))
        else:
            fill = sum(b not in self._H[a] for a, b in combinations(neighbors, 2))
        rank = (-(len(self._place) ** 2), 0) if node in self._unknowns else min(self._rank[x] for x in group)
        return *rank, fill - len(neighbors) * len(group), -self._place[node]

    def _pass_touch(self, group: tuple[Node, ...]) -> None:
        """Note what the multipliers touch in place of what was removed."""
        for member in group:
            self._touched.pop(member, None)
        for touched in self._touched.values():
            for member in touched.intersection(group):
                touched.remove(member)
                touched.update(self._terms[member])

    # -- one step -------------------------------------------------------------------------------------------

    def _remove(self, group: tuple[Node, ...]) -> None:
        node = group[0]
        if node in self._unknowns:
            if len(group) == 2:
                self._determine(*group)
            else:
                self._eliminate(node)
            return
        turns = list(dict.fromkeys(self._turned[x] for x in group if x in self._turned))
        if turns and self._are_separate(turns):
            self._rotate(turns)
        else:
            for member in group:
                self._replace(member)
        for member in group:
            for operand in self._terms[member]:
                self._users[operand] -= 1
            self._steps.append(Substitution(member, self._terms[member]))

    def _add(self, a: Node, b: Node, value: Node) -> None:
        """Add to an entry of H; entries that are zero are not stored."""
        if value.is_zero:
            return
        self._entries += 1
        row = self._H[a]
        total = row[b] + value if b in row else value
        if total.is_zero:
            del row[b]
            if a is not b:
                del self._H[b][a]
        else:
            row[b] = total
            self._H[b][a] = total

    def _taken(self, node: Node) -> dict[Node, Node]:
        """The row of a component, which is removed from H."""
        row = self._H.pop(node)
        for other in row:
            if other is not node:
                del self._H[other][node]
        return row

    def _eliminate(self, unknown: Node) -> None:
        row = self._taken(unknown)
        pivot = row.pop(unknown, self._graph.zero)
        scales = self._compliance if unknown in self._touched else self._scale
        if is_lost(pivot, scales.get(unknown, self._graph.zero)):
            raise ZeroDivisionError(unknown)
        if pivot.op != "const":
            self._conditions.append(self._condition(unknown, pivot))
        reciprocal = self._graph.div(self._graph.one, pivot)
        scaled = {operand: value * reciprocal for operand, value in row.items()}
        for k, (a, factor) in enumerate(scaled.items()):
            for b, value in list(row.items())[: k + 1]:
                self._add(a, b, -(factor * value))
            self._reduced.add(a)
            if a in self._touched and unknown not in self._touched:
                part = factor * row[a]
                self._compliance[a] = self._compliance[a] + part if a in self._compliance else part
        self._steps.append(Pivot(unknown, reciprocal, scaled))

    def _determine(self, speed: Node, multiplier: Node) -> None:
        """Replace a speed by the sum that follows from a constraint, whose multiplier drops out."""
        entries = self._taken(multiplier)
        pivot = entries.pop(speed)
        if pivot.op != "const":
            scale = reduce(self._larger, map(_square, self._J[multiplier].values()))
            limit = self._graph.const(ROW_THRESHOLD) * scale
            self._conditions.append(self._graph.apply("lt", limit, pivot * pivot))
        self._sizes.solve(multiplier, speed)
        reciprocal = self._graph.div(self._graph.one, pivot)
        terms = self._terms[speed] = {operand: -(value * reciprocal) for operand, value in entries.items()}
        row = dict(self._H[speed])
        self._replace(speed)
        if speed in self._reduced:
            self._reduced.update(terms)
        for operand, factor in terms.items():
            whole = self._H[operand].get(operand)
            if whole is not None and operand not in self._reduced:
                self._scale[operand] = whole
            elif speed in self._scale:
                self._raise_scale(operand, factor * (factor * self._scale[speed]))
        self._steps.append(Dependent(speed, multiplier, reciprocal, terms, row))

    def _replace(self, node: Node) -> None:
        """Replace ``z`` by ``sum c_j x_j``: ``H + c h^T + h c^T + h_zz c c^T`` with the row h of z."""
        terms, row, zero = self._terms[node], self._taken(node), self._graph.zero
        own = row.pop(node, zero)
        if node not in self._speeds:
            self._pass_scale((node,))
        ahead = {x: row.get(x, zero) + factor * own for x, factor in terms.items()}
        for k, (a, factor) in enumerate(terms.items()):
            self._add(a, a, factor * (ahead[a] + row.get(a, zero)))
            for b in list(terms)[:k]:
                self._add(a, b, factor * ahead[b] + row.get(a, zero) * terms[b])
            for b, value in row.items():
                if b not in terms:
                    self._add(a, b, factor * value)

    def _rotate(self, turns: Sequence[Turn]) -> None:
        """Replace pairs that are rotated by one angle, with fewer operations than one by one."""
        zero, c, s = self._graph.zero, turns[0].cosine, turns[0].sine
        self._pass_scale([x for turn in turns for x in turn.members])
        rows = {x: self._taken(x) for turn in turns for x in turn.members}

        def entry(x: Node, y: Node, sign: int) -> Node:
            return sign * rows[x].get(y, rows[y].get(x, zero))

        for k, turn in enumerate(turns):
            for other in turns[k:]:
                yy, yz = (entry(turn.y, x, turn.y_sign * sign) for x, sign in other.signed)
                zy, zz = (entry(turn.z, x, turn.z_sign * sign) for x, sign in other.signed)
                g = c * (yy - zz) - s * (yz + zy)
                self._add(turn.a, other.a, zz + c * g)
                self._add(turn.b, other.b, yy - c * g)
                self._add(turn.a, other.b, yz + s * g)
                if other is not turn:
                    self._add(turn.b, other.a, zy + s * g)
            above, below = rows[turn.y], rows[turn.z]
            for x in dict.fromkeys((*above, *below)):
                if x not in rows:
                    first, second = turn.y_sign * above.get(x, zero), turn.z_sign * below.get(x, zero)
                    self._add(turn.a, x, c * first - s * second)
                    self._add(turn.b, x, s * first + c * second)

    # -- conditions -----------------------------------------------------------------------------------------

    def _condition(self, unknown: Node, pivot: Node) -> Node:
        """That a pivot has its sign and is not lost by cancellation."""
        if unknown in self._touched:
            limit = self._graph.const(ROW_THRESHOLD) * self._compliance.get(unknown, self._graph.zero)
            return self._graph.apply("lt", limit, -pivot)
        limit = self._graph.const(PIVOT_THRESHOLD) * self._scale.get(unknown, self._graph.zero)
        return self._graph.apply("lt", limit, pivot)

    def _pass_scale(self, group: Iterable[Node]) -> None:
        """Pass the scale of replaced components on to their replacements.

        The scale is the order of magnitude of a diagonal entry before speeds are eliminated. Sines and cosines count as
        1 and sums as their largest term, so that scales are constants of a run unless lengths vary.
        """
        for node in group:
            if node in self._reduced:
                self._reduced.update(self._terms[node])
            if node not in self._scale:
                continue
            scale = self._scale[node]
            for operand, factor in self._terms[node].items():
                self._raise_scale(operand, _square(factor) * scale)

    def _raise_scale(self, node: Node, part: Node) -> None:
        known = self._scale.get(node)
        self._scale[node] = part if known is None else self._larger(known, part)

    def _larger(self, a: Node, b: Node) -> Node:
        return a if a is b else self._graph.apply("max", a, b)


def _square(factor: Node) -> Node:
    """The order of magnitude of the square of a coefficient."""
    graph = factor.graph
    match factor.op:
        case "sin" | "cos":
            return graph.one
        case "neg":
            return _square(factor.args[0])
        case "mul":
            return _square(factor.args[0]) * _square(factor.args[1])
    if factor.constant or factor.op not in ("add", "sub"):
        return factor * factor
    a, b = map(_square, factor.args)
    return a if a is b else graph.apply("max", a, b)
