"""Which functions need constants that have no value for some parameters: what divides by a mass that may be zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kanegen.graph.nodes import Node
from kanegen.program.passes.hoist import roots
from kanegen.program.passes.reads import called
from kanegen.program.records import Function, Program

_ALWAYS_DEFINED: Final = frozenset(
    ("const", "input", "add", "sub", "mul", "neg", "sin", "cos", "atan", "tanh", "abs", "min", "max", "reciprocal")
)
"""Operations that have a finite value for all finite operands, but for overflow."""


def fallible_constants(program: Program) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """For every listed function the constants it needs that have no value for some parameters, by their numbers.

    Constants of the functions it invokes or falls back to are among them. Functions without any are left out.
    """
    numbers = {node.index: k for k, node in enumerate(program.constants) if not _always_defined(node)}
    found = {}
    for function in program.functions:
        if not function.internal:
            needed = {numbers[i] for i in _constants(program, function) if i in numbers}
            if needed:
                found[function.name] = tuple(sorted(needed))
    return tuple(found.items())


def _constants(program: Program, function: Function) -> set[int]:
    """Indices of the constant nodes that a function and all it calls read."""
    return {node.index for f in called(program, function) for node in _reached(roots(f)) if node.constant}


def _reached(start: Iterable[Node]) -> Iterator[Node]:
    """What the start needs, down to the constants, which are not looked into."""
    seen: set[int] = set()
    stack = list(start)
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen.add(node.index)
            yield node
            stack.extend(() if node.constant else node.args)


def _always_defined(node: Node) -> bool:
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current.op not in _ALWAYS_DEFINED:
            return False
        if current.index not in seen:
            seen.add(current.index)
            stack.extend(current.args)
    return True
