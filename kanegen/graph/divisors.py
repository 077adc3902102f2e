"""Where an expression divides, and where it adds: what may differ between expressions of equal value.

Both are told by residues (:mod:`kanegen.graph.residues`), up to the sign: ``1/(x - y)`` and ``2/(y - x)`` divide by the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kanegen.graph.nodes import Node
from kanegen.graph.residues import PRIME, Residues

_POSITIVE: Final = frozenset({"const", "exp", "cosh"})
ABSOLUTE: Final = frozenset({"const", "input", "add", "sub", "mul", "neg", "sin", "cos", "select"})
"""Operations whose results have small absolute errors if their operands have them; others need relative accuracy."""

_MOST_SUMS: Final = 64
"""Expressions with more sums are not compared by them: they are derived, and have no removable singularities. Those of
the user have fewer, also as factors of others."""


class Divisor(NamedTuple):
    """A factor of a denominator, by its residue. ``constant``: it depends on parameters only.

    ``kind``: ``"plain"``; ``"zeroed"``, where the quotient is 0 if the factor is (the derivative of a root);
    ``"guarded"``, in a branch of a selection; or ``"function"`` for the argument of another function.
    """

    residue: int
    kind: str
    constant: bool


_NONE: Final = frozenset[Divisor]()


def divisors(residues: Residues) -> Callable[[Node], frozenset[Divisor]]:
    """The function that gives the factors of all denominators in a node, and the arguments of functions."""
    known: dict[int, frozenset[Divisor]] = {}

    def own(node: Node) -> frozenset[Divisor]:
        parts = [known[a.index] for a in node.args]
        if node.op in ABSOLUTE and not any(parts):
            return _NONE  # most nodes
        if node.op == "select":
            parts = [parts[0], *(frozenset(d._replace(kind="guarded") for d in part) for part in parts[1:])]
        found = _union(parts)
        if node.op == "div":
            found |= {Divisor(_size(residues, f), "plain", f.constant) for f in _factors(node.args[1])}
        elif node.op not in ABSOLUTE:
            kind = "zeroed" if node.op == "reciprocal" else "function"
            found |= {Divisor(_size(residues, a), kind, a.constant) for a in node.args}
        return found

    def of(root: Node) -> frozenset[Divisor]:
        stack = [] if root.index in known else [root]
        while stack:
            pending = [a for a in stack[-1].args if a.index not in known]
            if pending:
                stack.extend(pending)
            else:
                node = stack.pop()
                known[node.index] = own(node)
        return known[root.index]

    return of


Sum = frozenset[int]
"""The shares of the operands in a sum or difference, as residues; ``x*y + x*z`` and ``y + z`` have the same."""


def sums(residues: Residues) -> Callable[[Node], frozenset[Sum] | None]:
    """The function that gives the sums whose cancellation a node suffers from; None if it has many."""
    known: dict[int, frozenset[Sum] | None] = {}

    def of(root: Node) -> frozenset[Sum] | None:
        if root.index not in known:
            nodes = list(_added(root))
            known[root.index] = None if len(nodes) > _MOST_SUMS else frozenset(_shares(residues, n) for n in nodes)
        return known[root.index]

    return of


def _shares(residues: Residues, node: Node) -> Sum:
    """The shares of the operands; their absolute values, if the whole is zero or has no residue."""
    whole = residues(node)
    scale = pow(whole, -1, PRIME) if whole else 1
    return frozenset(
        (residues(a) or 0) * scale * (-1 if k and node.op == "sub" else 1) % PRIME for k, a in enumerate(node.args)
    )


def _added(root: Node) -> Iterator[Node]:
    """The sums and differences in a node, at most one more than are compared."""
    stack, seen, found = [root], {root.index}, 0
    while stack and found <= _MOST_SUMS:
        node = stack.pop()
        if node.op in ("add", "sub"):
            found += 1
            yield node
        stack.extend(a for a in node.args if a.index not in seen)
        seen.update(a.index for a in node.args)


def _factors(denominator: Node) -> Iterator[Node]:
    """Nodes, one of which is zero where the denominator is."""
    stack = [denominator]
    while stack:
        node = stack.pop()
        if node.op == "mul":
            stack.extend(node.args)
        elif node.op in ("neg", "sqrt", "div"):
            stack.append(node.args[0])
        elif node.op not in _POSITIVE:
            yield node


def _size(residues: Residues, node: Node) -> int:
    """The residue of a node or of its opposite, whichever is smaller; -1 if it has none."""
    residue = residues(node)
    return -1 if residue is None else min(residue, PRIME - residue)


def _union(parts: list[frozenset[Divisor]]) -> frozenset[Divisor]:
    """The union; parts are mostly empty."""
    found = _NONE
    for part in parts:
        found = found | part if found and part else found or part
    return found
