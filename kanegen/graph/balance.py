"""Sums in the order in which their terms become known."""

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
    """The same values by as many operations, each sum from the terms that are known first.

    Constants are added to each other before all else. This shortens the longest sequence of operations that wait for
    each other; sums are rounded in another order.
    """
    order = reachable(roots)
    inner = inner_sums(order, use_counts(order, roots))
    balance = _Balance()
    new: dict[Node, Node] = {}
    for node in order:
        if node.constant or not node.args:
            new[node] = node
        elif node.op in SUMS and node not in inner:
            new[node] = balance.total((sign, new[x]) for sign, x in signed_terms(node, inner))
        elif node not in inner:
            new[node] = rebuild(node, tuple(new[x] for x in node.args))
    return [new[x] for x in roots]


class _Balance:
    """Adds terms, and knows when each node is computed: constants at -1, what is given to a function at 0."""

    def __init__(self) -> None:
        self._times: dict[Node, int] = {}

    def total(self, terms: Iterable[tuple[int, Node]]) -> Node:
        """The sum of signed terms."""
        heap = [(self._time(x), k, sign, x) for k, (sign, x) in enumerate(terms)]
        heapify(heap)
        last = len(heap)
        while len(heap) > 1:
            (_, _, sign, a), (_, _, other, b) = heappop(heap), heappop(heap)
            if sign == other:
                a = a + b
            else:
                a, sign = (a - b if sign > 0 else b - a), 1
            heappush(heap, (self._time(a), last, sign, a))
            last += 1
        ((_, _, sign, a),) = heap
        return a if sign > 0 else -a

    def _time(self, root: Node) -> int:
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
