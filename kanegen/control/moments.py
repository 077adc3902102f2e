"""Expressions at single times: at the start, at the end, at times inside, and at samples; what they may contain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kanegen.control.statement import Statement
from kanegen.control.terms import AtEnd, AtStart, AtTime
from kanegen.errors import SolveError
from kanegen.model.expressions import atoms, symbol_name

_BEYOND = 1e-9
"""Times after the end by a smaller fraction of the duration are at the end."""


def require_values(statement: Statement) -> None:
    """Raise `SolveError` for what has no value at a single time, and for times that are not inside the motion."""
    scheme = statement.scheme
    known = {"at the start": scheme.starts_at_mesh, "at the end": scheme.ends_at_mesh}
    for where, expression in _momentary(statement):
        if not known.get(where, False):
            require_states(statement, where, expression)
    sampled = [float(t) for each in statement.cost.sampled for t in each.samples.times]
    for what, times in (("kg.AtTime", statement.times), ("kg.SampleSum", sampled)):
        if times and statement.is_timed:
            raise SolveError(
                f"{what} has times in s, and the duration is unknown, from {statement.duration[0]:g} to "
                f"{statement.duration[1]:g} s: give a duration, or use kg.AtStart and kg.AtEnd"
            )
        if times and max(times) > statement.duration[0] * (1.0 + _BEYOND):
            raise SolveError(f"{what} has the time {max(times):g} s, after the end at {statement.duration[0]:g} s")


def _momentary(statement: Statement) -> Iterator[tuple[str, Any]]:
    """The expressions at single times, and where they are evaluated."""
    places = {AtStart: "at the start", AtEnd: "at the end", AtTime: "at a time inside the motion"}
    for value in (statement.cost.rest, *(c.expression for c in statement.coupled)):
        for term in sorted(value.atoms(*places), key=str):
            yield places[type(term)], term.args[0]
    yield from (("at the start", c.expression) for c in statement.start.conditions)
    yield from (("at the end", c.expression) for c in statement.end.conditions)
    yield from (("at samples", each.expression) for each in statement.cost.sampled)


def require_states(statement: Statement, where: str, expression: Any) -> None:
    """Raise `SolveError` for unknown inputs and accelerations, which have values at the stages of the scheme only."""
    model = statement.model
    inputs = {model.inputs[k].symbol for k in statement.inputs}
    for symbol in sorted(atoms([expression]) & (inputs | {u.diff() for u in model.speeds}), key=str):
        kind = "the unknown input" if symbol in inputs else "the acceleration"
        raise SolveError(
            f"the expression {expression} {where} contains {kind} {symbol_name(symbol)}, which has values at the "
            f"stages of the scheme {statement.scheme.name!r} only: give a condition in path=, or an input with a rate; "
            'the scheme "hermite-simpson" has stages at the start and at the end'
        )
