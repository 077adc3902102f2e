"""Detection of algebraic identities by arithmetic modulo a prime instead of rewriting rules.

Nodes with the same residue (:mod:`kanegen.graph.residues`) are equal, for example ``sin^2 + cos^2`` and 1, products of
direction cosines that cancel, and speeds that drop out. One such node represents the others, but not everywhere: nodes
of equal value can differ where they divide by zero, and in the digits that they lose.
"""

from __future__ import annotations

from collections.abc import Iterable

from kanegen.graph.derivatives import reachable, rebuild, substitute
from kanegen.graph.divisors import ABSOLUTE, divisors, sums
from kanegen.graph.nodes import Graph, Node
from kanegen.graph.residues import PRIME, Residues


class Identities:
    """Canonical nodes of one graph: nodes of equal value are replaced by the first of them that may stand for them.

    Equal as rational functions does not mean equal in floating point. A node may stand for another one only if it
    divides by nothing else: ``(1 - cos x)/sin x`` has no value at x = 0, where its equal
    ``sin x/(1 + cos x)`` is 0. In quotients and in the arguments of functions, where small relative errors count, it
    must also add and subtract nothing else: ``sin(x)**2/x`` is accurate at small x, ``(1 - cos(x)**2)/x`` is not.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._here = Residues(1)
        self._there = Residues(2)
        self._divisors = divisors(self._here)
        self._sums = sums(self._here)
        self._canonical: tuple[dict[int, Node], dict[int, Node]] = ({}, {})
        self._by_residue: dict[int, list[Node]] = {0: [graph.zero], 1: [graph.one]}

    def canonical(self, nodes: Iterable[Node]) -> list[Node]:
        """For each node, the first node that has the same value and may stand for it."""
        return [self._of(node) for node in nodes]

    def _of(self, root: Node) -> Node:
        stack = [(root, False)]
        while stack:
            node, careful = stack[-1]
            if node.index in self._canonical[careful]:
                stack.pop()
                continue
            inside = careful or node.op not in ABSOLUTE
            known = self._canonical[inside]
            pending = [(a, inside) for a in node.args if a.index not in known]
            if pending:
                stack.extend(pending)
                continue
            args = tuple([known[a.index] for a in node.args])
            self._canonical[careful][node.index] = self._representative(node, args, careful)
            stack.pop()
        return self._canonical[False][root.index]

    def _representative(self, node: Node, args: tuple[Node, ...], careful: bool) -> Node:
        if args != node.args:
            try:
                node = rebuild(node, args)
            except ZeroDivisionError:
                return node  # its denominator is identically zero, which the evaluation will report
            if node.index in self._canonical[careful]:
                return self._canonical[careful][node.index]
        residue = self._here(node)
        if residue is None:
            return node
        found = self._equal(node, residue, careful)
        if found is None:
            found = self._settled(node, residue)
            self._by_residue.setdefault(residue, []).append(found)
        return found

    def _equal(self, node: Node, residue: int, careful: bool) -> Node | None:
        """The first known node that may stand for this one, or the opposite of such a node."""
        equals, opposites = self._by_residue.get(residue, ()), self._by_residue.get(PRIME - residue, ())
        if not (equals or opposites):
            return None
        careful = careful or any(not divisor.constant for divisor in self._divisors(node))
        for equal in equals:
            if self._may_stand(equal, node, careful):
                return equal
        for opposite in opposites:
            if self._may_stand(opposite, node, careful):
                return self._graph.neg(opposite)
        return None

    def _may_stand(self, one: Node, other: Node, careful: bool) -> bool:
        """Whether ``one`` has a value, of the same accuracy if ``careful``, wherever its equal ``other`` has one."""
        if one is other:
            return True
        if not self._divisors(one) <= self._divisors(other):
            return False
        own, wanted = (self._sums(node) if careful else None for node in (one, other))
        return wanted is None or (own is not None and own <= wanted)

    def _settled(self, node: Node, residue: int) -> Node:
        """The node, or an equal node that depends only on parameters if the value is constant during a run."""
        if node.constant or not node.args or self._there(node) != residue:
            return node
        variables = [leaf for leaf in reachable([node]) if leaf.op == "input" and not leaf.constant]
        for place in (0, 1):
            try:
                (fixed,) = substitute([node], dict.fromkeys(variables, self._graph.const(place)))
            except ZeroDivisionError:
                continue
            if fixed.constant and self._here(fixed) == residue and self._may_stand(fixed, node, careful=False):
                return fixed
        return node
