"""Sums and products in the order in which their operands become known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from kanegen.graph.derivatives import reachable, rebuild
from kanegen.graph.nodes import Node
from kanegen.graph.sums import SUMS, inner_sums, signed_terms, use_counts

DIVISION: Final = 4
"""Time from the operands to the result of a division or a root, relative to a sum or a product."""


def balanced(roots: Sequence[Node]) -> list[Node]:
    """The same values by as many operations, each sum from the terms that are known first."""
    order = reachable(roots)
    inner = inner_sums(order, use_counts(order, roots))
    balance = Balancer()
    new: dict[Node, Node] = {}
    for node in order:
        if node.constant or not node.args:
            new[node] = node
        elif node.op in SUMS and node not in inner:
            new[node] = balance.sum((sign, new[x]) for sign, x in signed_terms(node, inner))
        elif node not in inner:
            new[node] = rebuild(node, tuple(new[x] for x in node.args))
    return [new[x] for x in roots]


class Balancer:
    """Sums and products of operands that are known first, and the times when nodes are computed.

    Constants are known before all else, what is given to a function and its sines and cosines at 0. This shortens the
    longest sequence of operations that wait for each other; results are rounded in another order.
    """

    def __init__(self) -> None:
        self._times: dict[Node, int] = {}

    def sum(self, terms: Iterable[tuple[int, Node]]) -> Node:
        """The sum of signed terms."""
        heap = [(self.time(x), k, sign, x) for k, (sign, x) in enumerate(terms)]
        heapify(heap)
        last = len(heap)
        while len(heap) > 1:
            (_, _, sign, a), (_, _, other, b) = heappop(heap), heappop(heap)
            if sign == other:
                a = a + b
            else:
                a, sign = (a - b if sign > 0 else b - a), 1
            heappush(heap, (self.time(a), last, sign, a))
            last += 1
        ((_, _, sign, a),) = heap
        return a if sign > 0 else -a

    def product(self, factors: Iterable[Node]) -> Node:
        """The product of factors; an inverse 1/x becomes a quotient by x if its numerator is known before x."""
        heap = [(self.time(x), x.index, x) for x in factors]
        heapify(heap)
        while len(heap) > 1:
            a, b = heappop(heap)[2], heappop(heap)[2]
            c = a / b.args[1] if self._inverts(b) and self.time(a) <= self.time(b.args[1]) else a * b
            heappush(heap, (self.time(c), c.index, c))
        return heap[0][2]

    @staticmethod
    def _inverts(node: Node) -> bool:
        return node.op == "div" and node.args[0].is_one and not node.constant

    def time(self, root: Node) -> int:
        """The number of operations, each of which waits for the one before, until the node is known."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            unknown = [x for x in node.args if x not in self._times]
            if node.constant:
                self._times[node] = -1
            elif not node.args or node.op in ("sin", "cos"):
                self._times[node] = 0
            elif unknown:
                waiting += unknown
                continue
            else:
                own = DIVISION if node.op in ("div", "sqrt") else 1
                self._times[node] = own + max(0, *(self._times[x] for x in node.args))
            waiting.pop()
        return self._times[root]
