"""Where expressions need arguments inside of the domains of tables.

A value that a ``select`` does not choose is not needed: ``Piecewise((spline(x), x < 3), (0, True))`` has values beyond
the points of the spline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from math import isfinite

from kanegen.graph.derivatives import reachable
from kanegen.graph.functions import Domain
from kanegen.graph.nodes import Node


@dataclass(frozen=True)
class Requirement:
    """``condition``: the ``argument`` is inside of the ``domain``, or its table is not needed."""

    domain: Domain
    argument: Node
    condition: Node


def requirements(roots: Iterable[Node]) -> Iterator[Requirement]:
    """Yield what the roots require, operands before results; nothing that is always true."""
    roots = list(roots)
    if not roots or not roots[0].graph.limited:
        return
    order = reachable(roots)
    limited = [node for node in order if node.op == "call" and any(node.payload.domains)]
    if not limited:
        return
    needed = _needed(roots, order, {node.index for node in limited})
    for node in limited:
        for domain, argument in zip(node.payload.domains, node.args, strict=True):
            if domain is not None:
                graph = node.graph
                condition = graph.apply("or", graph.apply("not", needed[node.index]), _inside(domain, argument))
                if condition.op != "const" or not condition.payload:
                    yield Requirement(domain, argument, condition)


def _inside(domain: Domain, argument: Node) -> Node:
    """True also for NaN, which has other causes than the ends of a table."""
    graph, (lowest, highest) = argument.graph, domain.limits
    tests = []
    if isfinite(lowest):
        tests.append(graph.apply("lt", argument, graph.const(lowest)))
    if isfinite(highest):
        tests.append(graph.apply("lt", graph.const(highest), argument))
    return reduce(partial(graph.apply, "and"), (graph.apply("not", test) for test in tests))


def _needed(roots: Iterable[Node], order: Iterable[Node], limited: set[int]) -> dict[int, Node]:
    """Return, by node index, the condition under which the roots need the value of a node; of those above tables."""
    above = set(limited)
    for node in order:
        if any(a.index in above for a in node.args):
            above.add(node.index)
    needed: dict[int, Node] = {root.index: root.graph.one for root in roots}
    for node in reversed(list(order)):
        if node.index not in above or node.index not in needed:
            continue
        for operand, condition in _conditions(node, needed[node.index]):
            if operand.index in above:
                known = needed.get(operand.index)
                needed[operand.index] = condition if known is None else node.graph.apply("or", known, condition)
    return needed


def _conditions(node: Node, needed: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the operands of a node with the condition under which each is needed."""
    if node.op != "select":
        yield from ((operand, needed) for operand in node.args)
        return
    graph, (condition, true, false) = node.graph, node.args
    yield condition, needed
    yield true, graph.apply("and", needed, condition)
    yield false, graph.apply("and", needed, graph.apply("not", condition))
