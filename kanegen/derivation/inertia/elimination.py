"""Accelerations of a tree of bodies by elimination of velocity components, in a number of operations of order n.

The kinetic energy ``K = 1/2 z^T D z`` is a sum over bodies. The components z of their velocities follow from the speeds
by a sparse recursion ``z = G z + S u``. Kane's equations ``Q u' = P`` are the conditions for the minimum of
``1/2 z^T D z - f^T z`` over the speeds, which is found without Q. A component on which no other one depends is replaced
by its sum, and a speed on which no component depends is eliminated with the pivot ``H_uu``. At the tip of a chain this
gives the articulated inertia of the last body, then that of the body before it (Featherstone 2008, chapter 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from kanegen.derivation.algebra import PIVOT_THRESHOLD
from kanegen.derivation.inertia.recursion import Recursion, Terms
from kanegen.graph import Graph, Node

Weights: TypeAlias = Mapping[tuple[Node, Node], Node]
"""Entries of D by pair of components, each pair once."""


@dataclass(frozen=True)
class Substitution:
    """A component and the sum that replaces it."""

    component: Node
    terms: Terms


@dataclass(frozen=True)
class Pivot:
    """A speed, the reciprocal of its pivot, and its row divided by the pivot."""

    speed: Node
    reciprocal: Node
    row: Terms


@dataclass(frozen=True)
class TreeFactor:
    """The elimination of Q, valid where all ``conditions`` hold."""

    graph: Graph
    steps: tuple[Substitution | Pivot, ...]
    conditions: tuple[Node, ...]

    def forward(self, right: Mapping[Node, Node]) -> dict[Node, Node]:
        """The right sides of the speeds at their elimination, for forces conjugate to components and speeds."""
        f, zero = dict(right), self.graph.zero
        for step in self.steps:
            if isinstance(step, Substitution):
                value = f.pop(step.component, zero)
                for operand, factor in () if value.is_zero else step.terms.items():
                    f[operand] = f.get(operand, zero) + factor * value
            else:
                value = f.get(step.speed, zero)
                for operand, factor in () if value.is_zero else step.row.items():
                    f[operand] = f.get(operand, zero) - factor * value
        return f

    def backward(self, forces: Mapping[Node, Node]) -> dict[Node, Node]:
        """The rates of the speeds for the results of `forward`."""
        needed: set[Node] = set()
        for step in self.steps:
            if isinstance(step, Pivot):
                needed.update(step.row)
            elif step.component in needed:
                needed.update(step.terms)
        x: dict[Node, Node] = {}
        for step in reversed(self.steps):
            if isinstance(step, Pivot):
                free = forces.get(step.speed, self.graph.zero) * step.reciprocal
                x[step.speed] = free - self.graph.sum(factor * x[operand] for operand, factor in step.row.items())
            elif step.component in needed:
                x[step.component] = self.graph.sum(factor * x[operand] for operand, factor in step.terms.items())
        return x


def eliminated(graph: Graph, recursion: Recursion, weights: Weights, speeds: Sequence[Node]) -> TreeFactor:
    """Eliminate all components and speeds.

    Raises ZeroDivisionError, with the index of the speed as its argument, if a pivot is identically zero.
    """
    return _Elimination(graph, recursion, weights, speeds).run()


class _Elimination:
    """The state of an elimination: ``H`` are the rows of the symmetric matrix of all components that are left."""

    def __init__(self, graph: Graph, recursion: Recursion, weights: Weights, speeds: Sequence[Node]) -> None:
        self._graph = graph
        self._terms, self._turned = recursion.terms, recursion.turned
        self._speeds = {speed: k for k, speed in enumerate(speeds)}
        self._depth = _latest_depths(recursion.terms)
        self._place = {node: k for k, node in enumerate(recursion.terms)}
        self._H: dict[Node, dict[Node, Node]] = {node: {} for node in recursion.terms}
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
        self._steps: list[Substitution | Pivot] = []
        self._conditions: list[Node] = []

    def run(self) -> TreeFactor:
        left = dict.fromkeys(self._terms)
        ready = {node for node in left if self._is_ready(node)}
        prices: dict[Node, tuple[int, ...]] = {}
        while left:
            for node in ready:
                if node not in prices:
                    prices[node] = self._price(node)
            node = min(ready, key=prices.__getitem__)
            group = self._group(node)
            touched = {other for member in group for other in (*self._H[member], *self._terms[member])}
            self._remove(group)
            for member in group:
                del left[member]
                ready.discard(member)
            ready |= {x for member in group for x in self._terms[member] if x in left and self._is_ready(x)}
            ready |= {self._turned[x] for x in ready if x in self._turned and self._turned[x] in left}
            for other in touched:
                prices.pop(other, None)
                for neighbor in self._H.get(other, ()):
                    prices.pop(neighbor, None)
        return TreeFactor(self._graph, tuple(self._steps), tuple(self._conditions))

    # -- the order ------------------------------------------------------------------------------------------

    def _group(self, node: Node) -> tuple[Node, ...]:
        """The components that are replaced together."""
        return (node, self._turned[node]) if node in self._turned else (node,)

    def _is_ready(self, node: Node) -> bool:
        return not any(self._users[member] for member in self._group(node))

    def _price(self, node: Node) -> tuple[int, ...]:
        """Speeds first, then the deepest components; among equals that with the fewest new nonzeros."""
        group = self._group(node)
        neighbors = {x for member in group for x in self._H[member]} - set(group)
        targets = {x for member in group for x in self._terms[member]}
        if targets:
            pairs = {frozenset((a, b)) for a in targets for b in neighbors | targets if a is not b}
            fill = sum(b not in self._H[a] for a, b in map(tuple, pairs))
        else:
            fill = sum(b not in self._H[a] for a, b in combinations(neighbors, 2))
        depth = -len(self._depth) if node in self._speeds else -self._depth[node]
        return depth, fill - len(neighbors) * len(group), -self._place[node]

    # -- one step -------------------------------------------------------------------------------------------

    def _remove(self, group: tuple[Node, ...]) -> None:
        node = group[0]
        if node in self._speeds:
            self._eliminate(node)
            return
        if len(group) == 2 and not any(x in self._H[member] for member in group for x in self._terms[node]):
            self._rotate(*group)
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

    def _eliminate(self, speed: Node) -> None:
        row = self._taken(speed)
        pivot = row.pop(speed, self._graph.zero)
        if pivot.is_zero:
            raise ZeroDivisionError(self._speeds[speed])
        if pivot.op != "const":
            limit = self._graph.const(PIVOT_THRESHOLD) * self._scale.get(speed, self._graph.zero)
            self._conditions.append(self._graph.apply("lt", limit, pivot))
        reciprocal = self._graph.div(self._graph.one, pivot)
        scaled = {operand: value * reciprocal for operand, value in row.items()}
        for k, (a, factor) in enumerate(scaled.items()):
            for b, value in list(row.items())[: k + 1]:
                self._add(a, b, -(factor * value))
        self._steps.append(Pivot(speed, reciprocal, scaled))

    def _replace(self, node: Node) -> None:
        """Replace ``z`` by ``sum c_j x_j``: ``H + c h^T + h c^T + h_zz c c^T`` with the row h of z."""
        terms, row, zero = self._terms[node], self._taken(node), self._graph.zero
        own = row.pop(node, zero)
        self._pass_scale((node,))
        ahead = {x: row.get(x, zero) + factor * own for x, factor in terms.items()}
        for k, (a, factor) in enumerate(terms.items()):
            self._add(a, a, factor * (ahead[a] + row.get(a, zero)))
            for b in list(terms)[:k]:
                self._add(a, b, factor * ahead[b] + row.get(a, zero) * terms[b])
            for b, value in row.items():
                if b not in terms:
                    self._add(a, b, factor * value)

    def _rotate(self, y: Node, z: Node) -> None:
        """Replace ``y = c a + s b`` and ``z = c b - s a``, or ``-z``, with fewer operations than one by one."""
        zero = self._graph.zero
        (a, c), (b, s) = self._terms[y].items()
        sign = self._graph.one if self._terms[z][b] is c else self._graph.const(-1)
        self._pass_scale((y, z))
        cross = self._H[y].get(z, zero) * sign
        above, below = self._taken(y), {x: value * sign for x, value in self._taken(z).items()}
        yy, zz = above.pop(y, zero), below.pop(z, zero) * sign
        above.pop(z, None)
        g = c * (yy - zz) - s * (2 * cross)
        self._add(a, a, zz + c * g)
        self._add(b, b, yy - c * g)
        self._add(a, b, cross + s * g)
        for x in dict.fromkeys((*above, *below)):
            first, second = above.get(x, zero), below.get(x, zero)
            self._add(a, x, c * first - s * second)
            self._add(b, x, s * first + c * second)

    # -- conditions -----------------------------------------------------------------------------------------

    def _pass_scale(self, group: Iterable[Node]) -> None:
        """Pass the scale of replaced components on to those that replace them.

        The scale is the order of magnitude of a diagonal entry before speeds are eliminated. Sines and cosines count as
        1 and sums as their largest term, so that scales are constants of a run unless lengths vary.
        """
        for node in group:
            if node not in self._scale:
                continue
            scale = self._scale[node]
            for operand, factor in self._terms[node].items():
                part, known = _square(factor) * scale, self._scale.get(operand)
                self._scale[operand] = part if known is None else self._larger(known, part)

    def _larger(self, a: Node, b: Node) -> Node:
        return a if a is b else self._graph.apply("max", a, b)


def _latest_depths(recursion: Mapping[Node, Terms]) -> dict[Node, int]:
    """The largest depth of each component that is less than those of the components that depend on it."""
    earliest: dict[Node, int] = {}
    for node, terms in recursion.items():
        earliest[node] = 1 + max((earliest[x] for x in terms), default=-1)
    latest: dict[Node, int] = {}
    for node, terms in reversed(list(recursion.items())):
        depth = latest.setdefault(node, earliest[node])
        for x in terms:
            latest[x] = min(latest.get(x, depth), depth - 1)
    return latest


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
