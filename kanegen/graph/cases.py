"""Expressions with cases: comparisons, extrema, rounding, tables. Values at some states do not show all of the cases.

``Max(x - 2, 0)`` is zero wherever x is below 2, and the slope of ``Abs(F)`` is 1 wherever F is positive. Whether such
an expression is zero, or constant in a variable, is therefore decided by its structure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kanegen.graph.derivatives import reachable
from kanegen.graph.functions import Tabulated
from kanegen.graph.nodes import COMPARISONS, Node
from kanegen.graph.residues import Residues

_JUMPS: Final = frozenset({*COMPARISONS, "floor", "ceil"})
"""Operations that jump between values; their slopes are zero."""

_CASES: Final = frozenset({*_JUMPS, "min", "max", "abs", "call", "gather"})
"""Operations that can be zero, or have a slope of zero, at some values only."""


def may_differ_elsewhere(nodes: Iterable[Node]) -> bool:
    """Whether nodes that are zero at some states may have other values at others, because they have cases.

    A node with cases is zero everywhere if it is zero in arithmetic modulo a prime, where the value of each case is a
    random number (:mod:`kanegen.graph.identities`).
    """
    residues = Residues(1)
    for node in nodes:
        operands = [] if node.is_zero else reachable([node])
        if any(operand.op in _CASES for operand in operands):
            *_, value = map(residues, operands)
            if value != 0:
                return True
    return False


def jump_with(nodes: Iterable[Node], variables: Iterable[Node]) -> bool:
    """Whether nodes can jump where the variables change, or contain tables of them, whose pieces differ."""
    moved = {variable.index for variable in variables}
    for node in reachable(nodes):
        if any(operand.index in moved for operand in node.args):
            if node.op in _JUMPS or isinstance(node.payload, Tabulated):
                return True
            moved.add(node.index)
    return False
