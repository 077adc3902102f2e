"""The critical path of expressions."""

from __future__ import annotations

from kanegen.graph import Node, reachable


def waiting(root: Node) -> int:
    """The length of the longest sequence of operations that wait for each other."""
    lengths: dict[Node, int] = {}
    for node in reachable([root]):
        lengths[node] = max((1 + lengths[x] for x in node.args), default=0)
    return lengths[root]
