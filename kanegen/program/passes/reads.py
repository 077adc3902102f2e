"""What each function reads: parameters, inputs, and constants that have no value for some parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kanegen.graph import Node, reachable
from kanegen.program.passes.lower import lowered
from kanegen.program.records import Function, Program

_ALWAYS_DEFINED: Final = frozenset(
    ("const", "input", "add", "sub", "mul", "neg", "sin", "cos", "atan", "tanh", "abs", "min", "max", "reciprocal")
)
"""Operations that have a finite value for all finite operands, but for overflow."""


class Reads(NamedTuple):
    """What a function reads, by itself, by the constants of ``prepare``, or by functions it calls.

    Indices of the parameters, of the inputs (hidden ones left out), and of those constants that have no value for some
    parameters: what divides by a mass that may be zero.
    """

    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
    fallible: tuple[int, ...]


def reads(program: Program) -> dict[str, Reads]:
    """What every listed function reads. Nothing else needs a value to call it."""
    n_r = len(program.symbols.inputs)
    of_constants = [_parameters(reachable([node])) for node in program.constants]
    fallible = {k for k, node in enumerate(program.constants) if not _always_defined(node)}
    result = {}
    for function in program.functions:
        if not function.internal:
            elements = {element for f in called(program, function) for element in _elements(program, f)}
            constants = {k for array, k in elements if array == "c"}
            p = {i for array, i in elements if array == "p"}.union(*(of_constants[k] for k in constants))
            r = {i for array, i in elements if array == "r" and i < n_r}
            result[function.name] = Reads(_sorted(p), _sorted(r), _sorted(constants & fallible))
    return result


def _elements(program: Program, function: Function) -> Iterator[tuple[str, int]]:
    """The elements of arrays that a function loads."""
    return (value.payload for value in lowered(function, program.constants).order if value.op == "input")


def _sorted(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(numbers))


def _parameters(nodes: Iterable[Node]) -> set[int]:
    return {node.payload[1] for node in nodes if node.op == "input" and node.payload[0] == "p"}


def _always_defined(constant: Node) -> bool:
    return all(node.op in _ALWAYS_DEFINED for node in reachable([constant]))


def called(program: Program, function: Function) -> Iterator[Function]:
    """The function and those it invokes or falls back to."""
    seen: set[str] = set()
    stack = [function]
    while stack:
        current = stack.pop()
        if current.name not in seen:
            seen.add(current.name)
            yield current
            stack.extend(program.callees(current))
