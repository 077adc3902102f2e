"""Finds whether values jump where a condition on the state changes, as signs do, and absolute values do not."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kanegen.graph.derivatives import reachable
from kanegen.graph.interpret import evaluate
from kanegen.graph.nodes import Node

_COMPARISONS: Final = ("lt", "le", "eq", "ne")
_TRIES: Final = 60
"""Straight lines from random states on which a condition can change."""
_SIZES: Final = (-2.0, 4.0)
"""Logarithms of the smallest and the largest multiple of a state at the ends of these lines."""
_HALVINGS: Final = 60
_BESIDE: Final = 1e-9
"""Distance from the change of a condition, as a fraction of the line."""
_JUMP: Final = 1e-6
"""Smaller differences, relative to the values at the ends of the line, are those of the distance."""

State = Mapping[str, Sequence[float]]


def jumping(
    roots: Iterable[Node], arrays: Collection[str], states: Sequence[State], held: Collection[Node] = ()
) -> tuple[Node, ...]:
    """The conditions at which a choice in the roots jumps when inputs of these arrays change.

    ``states``: values of all inputs, of which those of the ``arrays`` are varied. ``held``: inputs that do not change
    between events. A condition that does not change between random states is not found.
    """
    order = reachable(roots)
    moved = _depending(order, arrays, held)
    conditions = [node for node in order if node.op in _COMPARISONS and node.index in moved]
    found = []
    generator = random.Random(4711)
    fixed = {node.payload for node in held}
    for condition in conditions:
        chosen = [node for node in order if node.op == "select" and condition in reachable([node.args[0]])]
        if chosen and any(_jumps(condition, chosen, line) for line in _lines(states, arrays, fixed, generator)):
            found.append(condition)
    return tuple(found)


def _depending(order: Sequence[Node], arrays: Collection[str], held: Collection[Node]) -> set[int]:
    moved: set[int] = set()
    for node in order:
        varies = node.op == "input" and node.payload[0] in arrays and node not in held
        if varies or any(x.index in moved for x in node.args):
            moved.add(node.index)
    return moved


def _lines(
    states: Sequence[State], arrays: Collection[str], fixed: Collection[tuple[str, int]], generator: random.Random
) -> Iterable[tuple[State, dict[str, list[float]]]]:
    """Pairs of a state and a change of its arrays, without the elements that are ``fixed``."""
    for number in range(_TRIES):
        state = states[number % len(states)]
        size = 10.0 ** generator.uniform(*_SIZES)
        yield (
            state,
            {
                name: [
                    0.0 if (name, k) in fixed else generator.uniform(-size, size) * x for k, x in enumerate(state[name])
                ]
                for name in arrays
                if name in state
            },
        )


def _jumps(condition: Node, chosen: Sequence[Node], line: tuple[State, dict[str, list[float]]]) -> bool:
    """Whether a choice has other values beside the change of a condition, if the condition changes on the line."""
    difference = condition.args[0] - condition.args[1]
    low, high = 0.0, 1.0
    first, last = (evaluate([difference], _on(line, part))[0] for part in (low, high))
    if not first * last < 0.0:
        return False
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if evaluate([difference], _on(line, middle))[0] * first > 0.0 else (low, middle)
    before, after = (evaluate(chosen, _on(line, (low + high) / 2 + sign * _BESIDE)) for sign in (-1.0, 1.0))
    sizes = [
        max(map(abs, pair)) for pair in zip(*(evaluate(chosen, _on(line, end)) for end in (0.0, 1.0)), strict=True)
    ]
    return any(abs(a - b) > _JUMP * size for a, b, size in zip(before, after, sizes, strict=True))


def _on(line: tuple[State, dict[str, list[float]]], part: float) -> State:
    state, change = line
    return {
        **state,
        **{name: [x + part * d for x, d in zip(state[name], change[name], strict=True)] for name in change},
    }
