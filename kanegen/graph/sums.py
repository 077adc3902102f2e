"""Sums of many terms in the graph, which stores them as additions and subtractions of two operands each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import Final

from kanegen.graph.derivatives import reachable
from kanegen.graph.nodes import Node

SUMS: Final = ("add", "sub")


def use_counts(order: Sequence[Node], roots: Sequence[Node]) -> Counter[Node]:
    """How often each node is an operand of the nodes in ``order``, or a root."""
    uses = Counter(operand for node in order for operand in node.args)
    uses.update(roots)
    return uses


def inner_sums(order: Sequence[Node], uses: Counter[Node]) -> set[Node]:
    """The sums that are only used once, by another sum. Sums of constants are not among them, nor are they divided."""
    summed = {operand for node in order if node.op in SUMS and not node.constant for operand in node.args}
    return {node for node in order if node in summed and node.op in SUMS and uses[node] == 1 and not node.constant}


def signed_terms(node: Node, inner: Container[Node]) -> list[tuple[int, Node]]:
    """The signed terms of a sum, through the sums in ``inner``, in their order."""
    result = []
    waiting = [(1, node)]
    while waiting:
        sign, x = waiting.pop()
        if x is node or x in inner:
            waiting += [(sign if x.op == "add" else -sign, x.args[1]), (sign, x.args[0])]
        else:
            result.append((sign, x))
    return result


def absolute_terms(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The sums of the absolute terms of nodes, through sums, products and quotients: the sizes of rounding errors.

    A product or quotient has the larger of the relative errors of its operands. Products of sums of absolute terms are
    far larger than any error after a long elimination, many factors of which are differences.
    """
    if not nodes:
        return ()
    graph = nodes[0].graph
    values: dict[Node, Node] = {}
    sizes: dict[Node, Node] = {}

    def larger(first: Node, second: Node) -> Node:
        return first if first is second else graph.apply("max", first, second)

    for node in reachable(nodes):
        values[node] = graph.apply("abs", node)
        of, absolute = [sizes[x] for x in node.args], [values[x] for x in node.args]
        if node.op in SUMS:
            sizes[node] = of[0] + of[1]
        elif node.op == "neg":
            sizes[node] = of[0]
        elif node.op == "mul":
            sizes[node] = larger(of[0] * absolute[1], absolute[0] * of[1])
        elif node.op == "div":
            sizes[node] = larger(of[0] / absolute[1], values[node] * of[1] / absolute[1])
        else:
            sizes[node] = values[node]
    return tuple(sizes[node] for node in nodes)
