"""Switches: where functions of time and parameters alone jump or have a kink.

A step of an integration can pass what begins and ends between two of its evaluations. Where functions of time switch is
known before, so that steps can end there. What depends on the state too, such as a stop of a cylinder, is the matter of
events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kanegen.codes import SwitchShape
from kanegen.errors import DerivationError
from kanegen.graph.derivatives import Tangent, reachable
from kanegen.graph.functions import Tabulated
from kanegen.graph.nodes import COMPARISONS, Node, Number, quotient

_JUMPS: Final = frozenset({*COMPARISONS, "floor", "ceil"})
"""Operations with a slope of zero wherever they do not jump."""

_ANGLES: Final = frozenset({"sin", "cos", "tan"})
_ROOTS: Final = frozenset({"sqrt", "cbrt", "pow"})
_DIFFERENCES: Final = frozenset({"lt", "le", "min", "max"})

Levels = tuple[Number, ...]


@dataclass(frozen=True)
class Switch:
    """A function of time and parameters, and the levels at which something switches.

    ``levels``: ascending; empty: every integer. ``rate``: the derivative of ``argument`` in time; of a curved one the
    rate of the fastest angle in it, by which it is sampled.
    """

    argument: Node
    levels: tuple[float, ...]
    shape: SwitchShape
    rate: Node


def switches(roots: Iterable[Node], time: Node) -> tuple[Switch, ...]:
    """Return the switches of all nodes that the roots need; those inside of another one come before it.

    Relations, minima, maxima and absolute values switch where the difference of both sides is zero, floors and ceilings
    at integers, tables at notable breakpoints, and roots where they begin.
    """
    order = reachable(roots)
    if not any(node is time for node in order):
        return ()
    timed = _functions_of(time, order)
    shapes = _Shapes(time)
    found: dict[tuple[Node, bool], set[float]] = {}
    for node in order:
        if isinstance(node.payload, Tabulated):  # of two arguments, one can be a function of time, and the other not
            own = _levels_of_table(node, timed)
        else:
            own = _levels_of(node, shapes) if node.index in timed else iter(())
        for argument, levels in own:
            found.setdefault((argument, not levels), set()).update(map(float, levels))
    made = (Switch(argument, tuple(sorted(levels)), *shapes(argument)) for (argument, _), levels in found.items())
    return tuple(switch for switch in made if switch.shape is SwitchShape.CURVED or not switch.rate.is_zero)


def _functions_of(time: Node, order: Iterable[Node]) -> set[int]:
    """Return the indices of the nodes that depend on time, and on nothing else that changes during a run."""
    timed: set[int] = set()
    for node in order:
        if node is time or (node.args and not node.constant and all(a.constant or a.index in timed for a in node.args)):
            timed.add(node.index)
    return timed


def _levels_of(node: Node, shapes: _Shapes) -> Iterator[tuple[Node, Levels]]:
    """Yield what a node switches on: functions of time and their levels; no levels: every integer."""
    if node.op in _DIFFERENCES:
        yield _simpler(*_difference(*node.args))
    elif node.op in ("abs", "atan2"):
        yield _simpler(node.args[0], (0,))
    elif node.op in ("floor", "ceil"):
        yield node.args[0], ()
    elif node.op in _ROOTS:
        base = node.args[0]
        base = base.args[0] if _is_square(base) else base
        if shapes(base)[0] is not SwitchShape.CURVED:  # a curved one seldom touches zero, as in sqrt(1 + t**2)
            yield _simpler(base, (0,))


def _levels_of_table(node: Node, timed: Collection[int]) -> Iterator[tuple[Node, Levels]]:
    """Yield the arguments of a table that are functions of time, and their notable breakpoints."""
    for argument, levels in zip(node.args, node.payload.levels, strict=True):
        if levels and argument.index in timed:
            yield _simpler(argument, levels)


def _difference(a: Node, b: Node) -> tuple[Node, Levels]:
    """Return a function of which a level is reached where a and b are equal."""
    if a.op == "const" or b.op == "const":
        side, number = (b, a) if a.op == "const" else (a, b)
        return side, (number.payload,)
    first, second = sorted((a, b), key=lambda node: node.index)
    return first - second, (0,)


def _is_square(node: Node) -> bool:
    return node.op == "mul" and node.args[0] is node.args[1]


def _simpler(argument: Node, levels: Levels) -> tuple[Node, Levels]:
    """Return the same levels for a simpler argument, so that ``t < 5`` and ``2*t - 4 > 0`` are levels of t."""
    while True:
        op, (a, b) = argument.op, (*argument.args, argument, argument)[:2]
        if op == "neg":
            argument, levels = a, tuple(-level for level in levels)
        elif op == "mul" and a.op == "const":
            argument, levels = b, tuple(quotient(level, a.payload) for level in levels)
        elif op in ("add", "sub") and b.op == "const":
            shift = -b.payload if op == "add" else b.payload
            argument, levels = a, tuple(level + shift for level in levels)
        elif op in ("add", "sub") and a.op == "const":
            sign = 1 if op == "add" else -1
            argument, levels = b, tuple(sign * (level - a.payload) for level in levels)
        else:
            return argument, levels


class _Shapes:
    """How functions of time depend on it."""

    def __init__(self, time: Node) -> None:
        self._time = time
        self._slope = Tangent(time.graph, {time: time.graph.one})

    def __call__(self, argument: Node) -> tuple[SwitchShape, Node]:
        """Return the shape and the rate of a switch with this argument."""
        inside = reachable([argument])
        try:
            rate = self._slope(argument)
        except DerivationError:  # a user's function without a derivative
            return SwitchShape.CURVED, self._fastest(inside)
        if not self._moves(rate, frozenset()) and not any(node.op in _JUMPS and not node.constant for node in inside):
            return SwitchShape.AFFINE, rate
        if not self._moves(rate, _JUMPS):
            return SwitchShape.PIECES, rate
        return SwitchShape.CURVED, self._fastest(inside)

    def _moves(self, root: Node, ends: frozenset[str]) -> bool:
        """Whether a node depends on time by operations other than those of ``ends``."""
        stack, seen = [root], {root.index}
        while stack:
            node = stack.pop()
            if node is self._time:
                return True
            for operand in () if node.op in ends else node.args:
                if operand.index not in seen:
                    seen.add(operand.index)
                    stack.append(operand)
        return False

    def _fastest(self, inside: Iterable[Node]) -> Node:
        """Return the rate of the fastest angle among some nodes, 0 without angles."""
        graph = self._time.graph
        fastest = graph.zero
        for node in inside:
            if node.op in _ANGLES and not node.constant:
                try:
                    rate = self._slope(node.args[0])
                except DerivationError:
                    continue
                fastest = graph.apply("max", fastest, graph.apply("abs", rate))
        return fastest
