"""Detection of algebraic identities by arithmetic modulo a prime instead of rewriting rules.

Every node is evaluated once at a random point of a finite field; the sine and cosine of an angle are a random point of
the unit circle. Two nodes with the same residue are equal as rational functions of inputs, sines and cosines (Schwartz
1980, Zippel 1979; the probability of an error is the degree over the prime, below 1e-30 here), whatever their form.
Examples are ``sin^2 + cos^2``, products of direction cosines that cancel, and speeds that drop out. The first such node
represents all. Identities of functions other than sine and cosine are not detected.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from fractions import Fraction
from hashlib import blake2b
from typing import Final

from kanegen.graph.derivatives import reachable, rebuild, substitute
from kanegen.graph.nodes import Graph, Node

PRIME: Final = 2**127 - 1
_HALF: Final = PRIME // 2


class Residues:
    """The residue of each node at one random point; ``seed`` selects the values of all inputs except parameters."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._known: dict[int, int | None] = {}
        self._circle: dict[int, tuple[int, int]] = {}

    def __call__(self, node: Node) -> int | None:
        """The residue; None if a division by zero leaves it undefined. Operands must be evaluated before results."""
        if node.index not in self._known:
            values = [value for value in map(self, node.args) if value is not None]
            self._known[node.index] = self._value(node, values) if len(values) == len(node.args) else None
        return self._known[node.index]

    def _value(self, node: Node, a: list[int]) -> int | None:
        match node.op:
            case "const":
                exact = Fraction(node.payload)
                return exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME
            case "input":
                # Parameters and gains take the same values at every point.
                return self._random("p" if node.constant else f"{self._seed}", node.payload)
            case "add" | "sub" | "mul" | "neg":
                value: int = getattr(operator, node.op)(*a)
                return value % PRIME
            case "div":
                return a[0] * pow(a[1], -1, PRIME) % PRIME if a[1] else None
            case "reciprocal":
                return pow(a[0], -1, PRIME) if a[0] else None
            case "sin" | "cos":
                return self._on_circle(a[0])[node.op == "cos"]
            case "call":
                return self._random("call", (node.payload.content, *a))
            case _:
                return self._random(node.op, tuple(a))

    def _on_circle(self, angle: int) -> tuple[int, int]:
        """Sine and cosine: ``2 h / (1 + h^2)`` and ``(1 - h^2) / (1 + h^2)``, odd and even in the angle."""
        if angle > _HALF:
            sine, cosine = self._on_circle(PRIME - angle)
            return -sine % PRIME, cosine
        if angle not in self._circle:
            h = self._random("circle", angle) if angle else 0
            scale = pow(1 + h * h, -1, PRIME)
            self._circle[angle] = (2 * h * scale % PRIME, (1 - h * h) * scale % PRIME)
        return self._circle[angle]

    @staticmethod
    def _random(kind: str, key: object) -> int:
        return int.from_bytes(blake2b(f"{kind}:{key}".encode(), digest_size=16).digest(), "little") % PRIME


class Identities:
    """Canonical nodes of one graph: nodes of equal value are replaced by the first of them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._here = Residues(1)
        self._there = Residues(2)
        self._canonical: dict[int, Node] = {}
        self._by_residue: dict[int, Node] = {0: graph.zero, 1: graph.one}

    def canonical(self, nodes: Iterable[Node]) -> list[Node]:
        """For each node, the first node that has the same value."""
        return [self._of(node) for node in nodes]

    def _of(self, root: Node) -> Node:
        known = self._canonical
        stack = [root]
        while stack:
            node = stack[-1]
            if node.index in known:
                stack.pop()
                continue
            pending = [a for a in node.args if a.index not in known]
            if pending:
                stack.extend(pending)
                continue
            known[node.index] = self._representative(node)
            stack.pop()
        return known[root.index]

    def _representative(self, node: Node) -> Node:
        args = tuple(self._canonical[a.index] for a in node.args)
        if args != node.args:
            try:
                node = rebuild(node, args)
            except ZeroDivisionError:
                return node  # its denominator is identically zero, which the evaluation will report
            if node.index in self._canonical:
                return self._canonical[node.index]
        residue = self._here(node)
        if residue is None:
            return node
        equal = self._by_residue.get(residue)
        if equal is not None:
            return equal
        opposite = self._by_residue.get(PRIME - residue)
        if opposite is not None:
            return self._graph.neg(opposite)
        settled = self._settled(node, residue)
        self._by_residue[residue] = settled
        return settled

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
            if fixed.constant and self._here(fixed) == residue:
                return fixed
        return node
