"""The part of a problem of optimal control that is solved at each sample: checked, with the horizon as its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from kanegen.arrays import Array
from kanegen.control.predictive.squares import Squares, squares
from kanegen.control.statement import Condition, Statement
from kanegen.control.terms import AtEnd, AtStart, AtTime, Duration
from kanegen.errors import SolveError
from kanegen.model.expressions import atoms, symbol_name


@dataclass(frozen=True, eq=False)
class Receding:
    """A problem over a horizon.

    ``inputs``: indices of the inputs that are planned, with ``input_bounds`` (n, 2); ``held``: values of the others,
    and behind all inputs those of the constants of the problem. ``running``, ``final``: the integrand, and the cost at
    the end. ``path``: conditions along the motion, ``end``: those at the end only. ``bounds``, ``end_bounds`` (n_x, 2):
    of the states x = (q, u, s).
    """

    statement: Statement
    inputs: tuple[int, ...]
    input_bounds: Array
    held: Array
    running: Squares
    final: Squares
    path: tuple[Condition, ...]
    end: tuple[Condition, ...]

    @property
    def bounds(self) -> Array:
        """Bounds of the states along the motion, (n_x, 2)."""
        return self.statement.bounds

    @property
    def end_bounds(self) -> Array:
        """Bounds of the states at the end, (n_x, 2)."""
        return self.statement.end.bounds

    @property
    def held_names(self) -> tuple[str, ...]:
        """The names of the inputs and of the constants."""
        return (*(item.name for item in self.statement.model.inputs), *map(str, self.statement.constants))

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs that are planned."""
        return tuple(self.statement.model.inputs[k].name for k in self.inputs)


def receding(statement: Statement, horizon: float) -> Receding:
    """The problem over a horizon, s. Raises `SolveError` for what a horizon that moves on cannot have."""
    _require_receding(statement)
    inputs, bounds, held = _planned(statement)
    model = statement.model
    states = {*model.coordinates, *model.speeds, *model.states}
    rates = {x.diff() for x in (*model.coordinates, *model.speeds)}
    planned = {model.inputs[k].symbol for k in inputs}
    end = (*statement.end.conditions, *_conditions_at_end(statement))
    final = squares(_cost_at_end(statement.cost.rest, horizon), states)
    _require_states("at the end", [*(c.expression for c in end), *final.bases, final.rest], planned | rates)
    running = squares(statement.cost.integrand, states | rates | planned)
    return Receding(statement, inputs, bounds, held, running, final, statement.path, end)


def _require_receding(statement: Statement) -> None:
    reason = None
    if statement.is_timed:
        low, high = statement.duration
        reason = (
            f"the duration is unknown ({low:g} to {high:g} s), and the horizon of predictive control is given: make "
            "a problem with a given duration, and minimize the distance from the target in place of the time"
        )
    elif statement.parameters:
        names = ", ".join(statement.parameter_names)
        reason = f"the parameters {names} are unknown: give values, which controller.set changes between samples"
    elif statement.rated:
        names = ", ".join(statement.components[statement.n_state :])
        reason = (
            f"the equations contain the rate of {names}, and inputs are constant between samples: make {names} a "
            "first-order state of the model, whose rate is an input"
        )
    elif statement.times or statement.cost.sampled:
        reason = (
            "the cost or a condition has values at given times (kg.AtTime, kg.SampleSum), which a horizon that moves "
            "on passes: use a reference as a parameter of the integrand, which controller.set changes between samples"
        )
    if reason:
        raise SolveError(f"predictive control of {statement.model.name!r}: {reason}")


def _planned(statement: Statement) -> tuple[tuple[int, ...], Array, Array]:
    """Inputs whose bounds leave a choice, their bounds, and the values of the others."""
    held, free = statement.held.copy(), statement.input_bounds[:, 0] < statement.input_bounds[:, 1]
    places = np.array(statement.inputs, dtype=int)
    held[places[~free]] = statement.input_bounds[~free, 0]
    held = np.append(held, list(statement.constants.values()))
    if not free.any():
        raise SolveError(
            f"predictive control of {statement.model.name!r}: no input is unknown; name those that are to be found in "
            "bounds={...}, with low < high"
        )
    return tuple(places[free].tolist()), statement.input_bounds[free], held


def _conditions_at_end(statement: Statement) -> list[Condition]:
    """Conditions of ``subject_to=`` that are conditions at the end."""
    found = []
    for condition in statement.coupled:
        value = condition.expression
        if value.has(AtStart) or value.has(AtTime) or value.has(Duration):
            raise SolveError(
                f"predictive control of {statement.model.name!r}: the condition {condition.text} is not one of the end "
                "of the horizon alone. Conditions that couple the start and the end, such as periodic ones, have no "
                "meaning where each sample has a start of its own"
            )
        found.append(replace(condition, expression=_at_end(value)))
    return found


def _cost_at_end(rest: Any, horizon: float) -> Any:
    """The cost outside of integrals as an expression at the end; what depends on the start only is constant."""
    known = rest.xreplace({Duration: sympy.Float(horizon, precision=53)})
    kept = []
    for term in sympy.Add.make_args(sympy.expand_mul(known, deep=False)):
        if term.has(AtEnd) and term.has(AtStart):
            raise SolveError(
                f"predictive control: the cost contains {term}, a product of values at the start and at the end; the "
                "start of each sample is measured. Use a parameter in place of the value at the start"
            )
        if term.has(AtEnd):
            kept.append(_at_end(term))
    return sympy.Add(*kept)


def _at_end(value: Any) -> Any:
    return value.xreplace({term: term.args[0] for term in value.atoms(AtEnd)})


def _require_states(where: str, expressions: Iterable[Any], others: set[Any]) -> None:
    """Raise `SolveError` for inputs and accelerations at the end of the horizon, where no interval begins."""
    for symbol in sorted(atoms(expressions) & others, key=str):
        raise SolveError(
            f"predictive control: a cost or condition {where} contains {symbol_name(symbol)}; inputs and rates have no "
            "value there, because inputs belong to the intervals before it. Write it with coordinates, speeds and "
            "states"
        )
