"""What is known in time, events and guards that jump are the same in `integrate_many` as in `integrate`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from state_models import point_mass
from switching import FORCES, TABLE, driven, reference

import kanegen as kg

t = me.dynamicsymbols._t
x, v = me.dynamicsymbols("x v")
z, n, F = me.dynamicsymbols("z n F")
METHODS = [
    "dopri5",
    "rodas",
    pytest.param("dop853", marks=pytest.mark.campaign),  # each method of each case compiles a library
    pytest.param("verner9", marks=pytest.mark.campaign),
]
FUNCTIONS = ("rhs", "jacobians", "consistency")
START = {"initial": {"x": 0.0, "v": 0.0}, "parameters": {"m": 1.0}}
RESISTED = -9 * x - v / 2


class Case(NamedTuple):
    """A run: ``model()``, its span and inputs, and what is right at its end: an array like (q, u, s)."""

    model: Any
    span: tuple[float, float]
    right: Any
    r: Mapping[Any, Any] | None = None
    options: Mapping[str, Any] = {}


def pulse_with_events() -> kg.Model:
    events = (kg.Event("start", t - 4.5), kg.Event("top", t - 6), kg.Event("end", t - 7.5))
    return driven("pulse", events=events)


def pulse_by_law() -> kg.Model:
    return point_mass("by_law", F + RESISTED, inputs=[kg.Input(F, law=FORCES["pulse"].expression)], **START)


def wraps() -> kg.Model:
    event = kg.Event("wrap", z - 1, direction=1, reset={z: 0, n: n + 1})
    initial = {"x": 0.0, "v": 0.0, "z": 0.0, "n": 0.0}
    return point_mass("wraps", 0, states={z: 1, n: 0}, events=[event], **(START | {"initial": initial}))


def stops_behind_a_reset() -> kg.Model:
    """z = t; at z = 1 it is set to 0; the terminal event 1e-8 s later ends the run."""
    events = (
        kg.Event("reset", z - 1, direction=1, reset={z: 0}),
        kg.Event("end", t - 1 - sm.Float(1e-8), terminal=True),
    )
    initial = {"x": 0.0, "v": 1.0, "z": 0.0}
    return point_mass("behind", 0, states={z: 1}, events=events, **(START | {"initial": initial}))


def rests_on_its_guard() -> kg.Model:
    return point_mass("rests", 0, events=[kg.Event("here", x)], **START)


def tabled() -> kg.Model:
    return point_mass("tabled", F + RESISTED, inputs=[F], **START)


def sampled_guard() -> kg.Model:
    """F = t, sampled every second, pushes the guard F - 2.5 across zero at 3 s; the event ends the run."""
    end = kg.Event("end", F - 2.5, terminal=True)
    return point_mass("sampled", F, inputs=[F], events=[end], **START)


CASES = {
    "a pulse with events": Case(pulse_with_events, (0.0, 7.0), reference("pulse", 7.0)),
    "a pulse by a law": Case(pulse_by_law, (0.0, 7.0), reference("pulse", 7.0)),
    "a pulse of time": Case(lambda: driven("pulse"), (0.0, 7.0), reference("pulse", 7.0)),
    "a spline of time": Case(lambda: driven("table"), (0.0, 9.0), reference("table", 9.0)),
    "a table": Case(tabled, (0.0, 9.0), reference("table", 9.0), {F: TABLE}),
    "a clock that wraps": Case(wraps, (0.0, 20.5), [0.0, 0.0, 0.5, 20.0]),
    "a terminal event behind a reset": Case(stops_behind_a_reset, (0.0, 5.0), [1 + 1e-8, 1.0, 1e-8]),
    "rest on a guard": Case(rests_on_its_guard, (0.0, 3.0), [0.0, 0.0]),
    "a span of length zero": Case(wraps, (2.0, 2.0), [0.0, 0.0, 0.0, 0.0]),
    "a span of length zero without events": Case(tabled, (2.0, 2.0), [0.0, 0.0], {F: 1.0}),
    "a sample that moves a guard": Case(
        sampled_guard, (0.0, 9.0), [2.5, 3.0], {F: lambda t: t}, {"sample_time": 1.0}
    ),
}  # fmt: skip


@cache
def solver(name: str) -> kg.Solver:
    return kg.build(CASES[name].model(), functions=FUNCTIONS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_many_and_single(name: str, method: str) -> None:
    case, runs = CASES[name], solver(name)
    options: dict[str, Any] = {"method": method, "r": case.r, **case.options}
    single = runs.integrate(case.span, **options)
    many = runs.integrate_many(case.span, np.zeros((2, 1)), **options)
    assert many.success.all(), many.failures
    end = np.concatenate(single.last[1:])
    rows = np.concatenate([many.q, many.u, *([many.s] if single.s is not None and many.s.size else [])], axis=2)[:, 0]
    assert np.abs(end - case.right).max() < 1e-6
    assert np.abs(rows - case.right).max() < 1e-6
    assert {kg.Outcome.from_code(code) for code in many.status} == {single.status}
    assert single.statistics.largest_error <= 1.0


@pytest.mark.parametrize("method", ["rk4", "kutta_merson"])
def test_fixed_steps_have_the_same_bits(method: str) -> None:
    runs = solver("a clock that wraps")
    single = runs.integrate((0.0, 3.3), method=method, step=0.25)
    many = runs.integrate_many((0.0, 3.3), np.zeros((2, 1)), method=method, step=0.25)
    assert (many.s[:, 0] == single.last[3]).all()
    assert single.last[3][1] == 3.0
