"""Hoisting: what depends on parameters and gains only is computed once, by ``prepare``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kanegen.graph.nodes import Node
from kanegen.program.records import Program


def hoist(program: Program) -> Program:
    """The program with its constants: the largest constant subexpressions that cost at least one operation.

    A constant becomes an element of the array ``c`` where something that changes during the run uses it, or
    where it is itself an output; constants inside constants stay inside ``prepare``. The order is that of the
    graph, in which operands come first.
    """
    wanted: dict[int, Node] = {}
    for node in _changing((root for f in program.functions for root in f.roots), wanted):
        for operand in node.args:
            _take(operand, wanted)
    return replace(program, constants=tuple(wanted[index] for index in sorted(wanted)))


def _take(node: Node, wanted: dict[int, Node]) -> None:
    if node.constant and node.args:
        wanted[node.index] = node


def _changing(start: Iterable[Node], wanted: dict[int, Node]) -> Iterable[Node]:
    """Every node the start needs that changes during a run; constant start nodes go into ``wanted``."""
    seen: set[int] = set()
    stack: list[Node] = []
    for root in start:
        _take(root, wanted)
        stack.append(root)
        while stack:
            node = stack.pop()
            if node.index in seen or node.constant:
                continue
            seen.add(node.index)
            yield node
            stack.extend(node.args)
