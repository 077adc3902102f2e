"""Operation counts."""

from __future__ import annotations

from collections.abc import Iterable

from kanegen.graph.derivatives import reachable
from kanegen.graph.nodes import Node


def count_operations(roots: Iterable[Node], excluding_constant: bool = True) -> int:
    """The number of arithmetic operations, comparisons, selections and function calls the roots need.

    Each counts 1, shared ones once. With ``excluding_constant`` what depends on parameters only is left out:
    it is computed once, ahead of a run.
    """
    return sum(
        1
        for node in reachable(roots)
        if node.op not in ("const", "input") and not (excluding_constant and node.constant)
    )
