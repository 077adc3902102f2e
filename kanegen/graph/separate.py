"""Separates functions that are linear in some arguments: numbers, and sums of products of numbers with arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from kanegen.graph.derivatives import reachable, rebuild
from kanegen.graph.nodes import COMPARISONS, LOGICAL, Node

_CONDITIONS: Final = COMPARISONS | LOGICAL
"""Operations whose results are no numbers."""


def separated(
    roots: Sequence[Node], arguments: Collection[Node], number: Callable[[int], Node]
) -> tuple[list[Node], list[Node]]:
    """Return the numbers that linear functions of ``arguments`` need, and the functions with ``number(k)`` for each.

    The numbers are the largest expressions without the arguments; constants of a run are not among them, because they
    are known before it. A quotient by a number is a product with its reciprocal.
    """
    parts = _Parts({x.index for x in arguments}, number)
    for node in reachable(roots):
        parts.add(node)
    return list(parts.numbers), [parts.of(root) for root in roots]


class _Parts:
    """The numbers so far, with their places, and the nodes that depend on the arguments as functions of them."""

    def __init__(self, arguments: set[int], number: Callable[[int], Node]) -> None:
        self._arguments, self._number = arguments, number
        self._linear: dict[int, Node] = {}
        self.numbers: dict[Node, int] = {}

    def add(self, node: Node) -> None:
        """Add a node, whose operands were added before, if it depends on the arguments."""
        if node.index in self._arguments:
            self._linear[node.index] = node
        elif any(x.index in self._linear for x in node.args):
            self._linear[node.index] = node if node.constant else self._separate(node)

    def of(self, node: Node) -> Node:
        """The node as a function of the arguments and the numbers."""
        if node.index in self._linear:
            return self._linear[node.index]
        if node.constant or not node.args:
            return node
        if node.op in _CONDITIONS:
            return rebuild(node, tuple(self.of(x) for x in node.args))
        return self._number(self.numbers.setdefault(node, len(self.numbers)))

    def _separate(self, node: Node) -> Node:
        if node.op == "div":
            dividend, divisor = node.args
            return self.of(dividend) * self.of(node.graph.div(node.graph.one, divisor))
        return rebuild(node, tuple(self.of(x) for x in node.args))
