"""The examples in other units: lengths, masses and times times powers of ten, by the dimensions of all quantities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
from systems import initial, model_of

import kanegen as kg
from kanegen.forms import FORMS
from kanegen.model.checks.units import JOULE, unit_problems, units_of
from kanegen.model.expressions import symbol_name
from kanegen.model.places import survey
from kanegen.units import Exponents, Units, coherent, exponents

FACTORS = (1e-9, 1e-6, 1e-3, 1e3, 1e6)
BASES = ("m", "kg", "s")


@cache
def scalable(name: str, **options: Any) -> kg.Model:
    """An example with a parameter in place of the default decay rates of its contacts, which are in 1/s."""
    model, rate = model_of(name, **options), sm.Symbol("decay_rate")
    contacts = tuple(_with_rate(item, rate) for item in model.contacts)
    if contacts == model.contacts:
        return model
    return model._completed(model.changed(contacts=contacts), {rate: kg.Restitution().decay_rate}, [])


def _with_rate(record: Any, rate: sm.Symbol) -> Any:
    """A contact and its laws with this decay rate in place of the default one."""
    default = kg.Restitution().decay_rate
    changes = {name: getattr(record, name, None) for name in ("law", "friction", "normal")}
    changed = {name: _with_rate(item, rate) for name, item in changes.items() if is_dataclass(item)}
    if getattr(record, "decay_rate", None) == default:
        changed["decay_rate"] = rate
    return replace(record, **changed)


@cache
def factored(name: str, **options: Any) -> kg.Model:
    """An example whose rows of constraints have the parameters ``factor_0``, ``factor_1``, ... as factors."""
    model = model_of(name, **options)
    rows = [*model.holonomic_constraints, *model.nonholonomic_constraints]
    factors = sm.symbols(f"factor_:{len(rows)}")
    rows = [factor * row for factor, row in zip(factors, rows, strict=True)]
    n = len(model.holonomic_constraints)
    changed = model.changed(holonomic_constraints=tuple(rows[:n]), nonholonomic_constraints=tuple(rows[n:]))
    return model._completed(changed, dict.fromkeys(factors, 1.0), [])


@cache
def dimensions(name: str, **options: Any) -> Mapping[str, Exponents]:
    """The exponents of the unit of every symbol of an example, which follow from that of its first coordinate."""
    model = scalable(name, **options)
    names = [
        symbol_name(symbol) for symbol in (*model.coordinates, *model.all_speeds, *model.states, *model.parameters)
    ]
    number, own = coherent({}), {name: coherent(unit.exponents) for name, unit in model.units.items()}
    for unit in (number, coherent(exponents(m=1))):
        given, places = {**own, names[0]: unit}, survey(model).places
        if unit_problems(model.changed(units=Units(given)), places):
            continue
        while True:
            known = units_of(model.changed(units=Units(given)), places)
            free = [symbol for symbol in names if symbol not in known]
            if not free:
                return {symbol: unit.exponents for symbol, unit in known.items()}
            given[free[0]] = number  # the equations leave this unit open
    raise AssertionError(f"{name}: units contradict each other")


@dataclass(frozen=True)
class Scale:
    """Factors of the base units, such as ``{"m": 1e-6}``."""

    bases: Mapping[str, float]

    def of(self, powers: Exponents) -> float:
        return float(np.prod([self.bases.get(base, 1.0) ** float(power) for base, power in powers.items()]))

    def __str__(self) -> str:
        return " ".join(f"{base}*{factor:g}" for base, factor in self.bases.items())


SCALES = tuple(Scale({base: factor}) for base in BASES for factor in FACTORS)


class ScaledRun:
    """The motion of an example from its start, in units of which others are multiples, and converted back."""

    def __init__(self, solver: kg.Solver, name: str, **options: Any) -> None:
        self.solver, self.start = solver, initial(name, **options)
        self.units = dimensions(name, **options)
        self.d = solver.description

    def _factors(self, scale: Scale, names: Any) -> np.ndarray:
        return np.array([scale.of(self.units.get(str(name), {})) for name in names])

    def end(self, scale: Scale, span: float = 0.3, tolerance: float = 1e-10, **options: Any) -> np.ndarray:
        """The state (q, u, s) at the end of the span, converted to the units of the example."""
        return self.run(scale, span, tolerance, **options)[0]

    def run(self, scale: Scale, span: float = 0.3, tolerance: float = 1e-10, **options: Any) -> tuple[np.ndarray, int]:
        """The `end`, and the number of steps to it."""
        d, start = self.d, self.start
        names = (*d.coordinates, *d.speeds, *d.states)
        factors = self._factors(scale, names)
        integrated = np.concatenate(
            [self._factors(scale, d.coordinates), self._moving_factors(scale), self._factors(scale, d.states)]
        )
        own = self.solver.with_parameters(
            {name: value * scale.of(self.units.get(name, {})) for name, value in self.solver.parameters.items()}
        )
        q, u, s = (self._factors(scale, part) * np.array(value) for part, value in self._parts())
        inputs = start.get("r")
        r = None if inputs is None else list(self._factors(scale, d.inputs) * np.array(inputs))
        second = scale.of({"s": 1})
        t0 = start["t"] * second
        more = {"s0": s} if d.states else {}
        solution = own.integrate(
            (t0, t0 + span * second), q, u, r=r, rtol=tolerance, atol=list(1e-12 * integrated), **more, **options
        )
        assert solution.status.name == "FINISHED", solution.message
        state = [solution.q[-1], solution.u[-1], *([solution.s[-1]] if d.states else [])]
        return np.concatenate(state) / factors, solution.statistics.steps

    def _moving_factors(self, scale: Scale) -> np.ndarray:
        """The factors of what is integrated beside the coordinates: of the speeds, or of their momenta."""
        d = self.d
        if not FORMS[d.form].momenta:
            return self._factors(scale, d.speeds)
        names = d.independent_names if d.form == "momentum" else d.speeds
        return scale.of(JOULE) / self._factors(scale, names)

    def _parts(self) -> list[tuple[Any, Any]]:
        d, start = self.d, self.start
        return [(d.coordinates, start["q"]), (d.speeds, start["u"]), (d.states, start.get("s", ()))]
