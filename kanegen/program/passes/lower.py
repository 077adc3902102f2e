"""From the nodes of a function to values: hoisted constants become loads, shared denominators reciprocals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kanegen.graph.nodes import Node
from kanegen.program.passes.code import Value
from kanegen.program.records import Function

LOADS = frozenset({"input", "const", "sine", "cosine"})
"""Operations that cost nothing: they name what is there already."""

GATHERED = {"sin": "sine", "cos": "cosine"}
"""What the gathered evaluation of all angles gives for an operation of the graph."""

FEWEST_ANGLES = 3
"""Angles from which one vector evaluation beats calls of the C library (the times of 2 are equal)."""

ARGUMENTS = frozenset({"t", "q", "u", "r", "p", "g"})
"""Arrays that are there when a function starts."""

ONE = Value("const", (), 1)


@dataclass(frozen=True)
class Lowered:
    """The value of each node by node index, all values (operands before results), the gathered angles."""

    values: Mapping[int, Value]
    order: tuple[Value, ...]
    angles: tuple[Value, ...]

    def __getitem__(self, node: Node) -> Value:
        return self.values[node.index]


_LOWERED: WeakKeyDictionary[Function, tuple[Sequence[Node], Lowered]] = WeakKeyDictionary()


def lowered(function: Function, constants: Sequence[Node]) -> Lowered:
    """The values of a function, with the ``constants`` of its program in the array ``c``.

    Counting, cost estimates, what a function reads and its code share one result: it is kept with the function.
    """
    known = _LOWERED.get(function)
    if known is None or known[0] is not constants:
        known = constants, lower(function.roots, {node.index: k for k, node in enumerate(constants)})
        _LOWERED[function] = known
    return known[1]


def lower(roots: Iterable[Node], positions: Mapping[int, int]) -> Lowered:
    """The values of the nodes the roots need.

    Nodes in ``positions`` are loaded from the array ``c`` and not entered. A denominator that divides more
    than one numerator is inverted once: with the 36 quotients of an 8 by 8 factorization among 2,000 operations
    that takes 0.92 of the time, though it adds an operation per denominator.
    """
    needed = needed_nodes(roots, positions)
    shared = shared_denominators(needed, positions)
    gathered = _gathered_angles(needed, positions)
    values: dict[int, Value] = {}
    reciprocals: dict[int, Value] = {}
    order: dict[Value, None] = {ONE: None}
    for node in needed:
        position = positions.get(node.index)
        if position is not None:
            value = Value("input", (), ("c", position))
        elif node.op in GATHERED and node.args[0].index in gathered:
            value = Value(GATHERED[node.op], (), gathered[node.args[0].index])
        elif node.op == "div" and node.args[1].index in shared:
            numerator, denominator = node.args
            if denominator.index not in reciprocals:
                reciprocals[denominator.index] = Value("div", (ONE, values[denominator.index]))
            value = reciprocals[denominator.index]
            order[value] = None
            if not numerator.is_one:
                value = Value("mul", (values[numerator.index], value))
        else:
            value = Value(node.op, tuple(values[a.index] for a in node.args), node.payload)
        values[node.index] = value
        order[value] = None
    return Lowered(values, tuple(order), tuple(values[index] for index in gathered))


def needed_nodes(roots: Iterable[Node], positions: Mapping[int, int]) -> list[Node]:
    """The nodes that the roots need, operands first; nodes in ``positions`` are not entered."""
    seen: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen[node.index] = node
            if node.index not in positions:
                stack.extend(node.args)
    return [seen[index] for index in sorted(seen)]


def shared_denominators(order: Sequence[Node], positions: Mapping[int, int]) -> set[int]:
    """Denominators of several quotients, by node index."""
    divided = Counter(node.args[1].index for node in order if node.op == "div" and node.index not in positions)
    return {index for index, count in divided.items() if count > 1}


def _gathered_angles(order: Sequence[Node], positions: Mapping[int, int]) -> dict[int, int]:
    """Angles whose sines and cosines can be had before everything else, by node index, with their positions.

    These are sums and products of arguments of the function. Fewer than `FEWEST_ANGLES` are not worth a call.
    """
    direct: set[int] = set()
    angles: dict[int, int] = {}
    for node in order:
        if node.index in positions or node.op == "const":
            direct.add(node.index)
        elif node.op == "input":
            if node.payload[0] in ARGUMENTS:
                direct.add(node.index)
        elif node.op in ("add", "sub", "mul", "neg"):
            if all(a.index in direct for a in node.args):
                direct.add(node.index)
        elif node.op in GATHERED and node.args[0].index in direct:
            angles.setdefault(node.args[0].index, len(angles))
    return angles if len(angles) >= FEWEST_ANGLES else {}
