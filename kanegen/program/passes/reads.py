"""Which parameters and inputs each function reads: nothing else needs a value to call it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kanegen.graph import Node, reachable
from kanegen.program.passes.hoist import roots
from kanegen.program.records import Function, Guard, Invoke, Program


class Reads(NamedTuple):
    """Indices of the parameters and of the inputs (hidden ones left out) that a function reads."""

    parameters: tuple[int, ...]
    inputs: tuple[int, ...]


def reads(program: Program) -> dict[str, Reads]:
    """What every listed function reads, by itself, by the constants of ``prepare``, or by functions it calls."""
    sizes = (("p", len(program.symbols.parameters)), ("r", len(program.symbols.inputs)))
    bits = {(array, i): 1 << k for k, (array, i) in enumerate((a, i) for a, n in sizes for i in range(n))}
    masks = _masks(program, bits)
    found = {}
    for function in program.functions:
        if not function.internal:
            mask = 0
            for other in called(program, function):
                for root in roots(other):
                    mask |= masks[root.index]
            p, r = (tuple(i for i in range(n) if mask & bits[array, i]) for array, n in sizes)
            found[function.name] = Reads(p, r)
    return found


def _masks(program: Program, bits: dict[tuple[str, int], int]) -> dict[int, int]:
    """For every node the bits of the inputs of the graph it depends on: one pass, since large models share nodes."""
    masks: dict[int, int] = {}
    nodes: list[Node] = reachable(root for function in program.functions for root in roots(function))
    for node in nodes:
        mask = bits.get(node.payload, 0) if node.op == "input" else 0
        for operand in node.args:
            mask |= masks[operand.index]
        masks[node.index] = mask
    return masks


def called(program: Program, function: Function) -> Iterator[Function]:
    """The function and those it invokes or falls back to."""
    seen: set[str] = set()
    stack = [function]
    while stack:
        current = stack.pop()
        if current.name in seen:
            continue
        seen.add(current.name)
        yield current
        for step in current.steps:
            if isinstance(step, Invoke):
                stack.append(step.function)
            elif isinstance(step, Guard) and step.otherwise is not None:
                stack.append(program.function(step.otherwise))
