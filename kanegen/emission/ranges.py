"""Numbers that the scalar type of an emitted project cannot represent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kanegen.errors import BuildError
from kanegen.graph import Node, reachable
from kanegen.graph.interpret import evaluate
from kanegen.program.records import Program


def require_range(program: Program, known: Mapping[str, float], gains: Sequence[float]) -> None:
    """Raise `BuildError` that names all numbers beyond the precision of a program.

    These are the values ``known`` by name, and the constants that ``prepare()`` computes from those of parameters.
    ``gains``: those of the stabilization; empty: zeros.
    """
    problems = [f"the value {value} of {name}" for name, value in known.items() if not program.precision.holds(value)]
    symbols = program.symbols
    values = {
        "p": [known.get(name, math.nan) for name in symbols.parameters],
        "g": gains or [0.0] * len(symbols.gains),
    }
    for constant, value in zip(program.constants, evaluate(program.constants, values), strict=True):
        if not program.precision.holds(value):
            problems.append(f"a constant {value:.3g} computed from {', '.join(_parameters(program, constant))}")
    if problems:
        raise BuildError(program.precision.refusal("; ".join(dict.fromkeys(problems))))


def _parameters(program: Program, constant: Node) -> list[str]:
    """The names of the parameters on which a constant depends."""
    slots = {node.payload for node in reachable([constant]) if node.op == "input"}
    return [name for k, name in enumerate(program.symbols.parameters) if ("p", k) in slots]
