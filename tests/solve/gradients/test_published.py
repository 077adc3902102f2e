"""Derivatives through events that are published, or that other programs compute wrongly, in closed form."""

from __future__ import annotations

from functools import cache
from typing import Any

import jump_models
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from jump_models import difference_quotients, sensitivities_at, start_of
from numpy.testing import assert_allclose
from sensitivity_models import line, x

import kanegen as kg
from kanegen.arrays import Array

TIGHT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-13}


@cache
def built(name: str) -> kg.Solver:
    return kg.build(getattr(jump_models, name)())


# -- saltation matrices -----------------------------------------------------------------------------------------------


def flight(t: float, n: int) -> Array:
    """The derivative of ``n`` positions and speeds after t seconds of constant acceleration."""
    return np.kron([[1.0, t], [0.0, 1.0]], np.eye(n))


def saltation(solution: kg.Solution, n: int, impact: float) -> Array:
    """The matrix of an event at the time ``impact``, from that of the whole motion."""
    after = flight(solution.t[-1] - impact, n)
    whole: Array = np.linalg.solve(after, solution.sensitivities.matrix[-1])
    return np.linalg.solve(flight(impact, n).T, whole.T).T


def test_a_paddle_has_its_saltation_matrix() -> None:
    """Kong, Payne, Zhu and Johnson (2024): a ball and a paddle that moves vertically."""
    solver = built("table")
    e, g, a, omega = 0.7, 9.81, 0.05, 20.0
    solution, _ = sensitivities_at(solver, 0.45, {"z": 0.9, "v_z": 0.0}, ("z", "v_z"))
    (event,) = solution.events
    speed = -g * event.t - a * omega * np.cos(omega * event.t)  # of the ball relative to the paddle
    paddle = -a * omega**2 * np.sin(omega * event.t)
    wanted = [[-e, 0.0], [-(1 + e) * (g + paddle) / speed, -e]]
    assert_allclose(saltation(solution, 1, event.t), wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", ["bounce", "slide", "stick"])
def test_a_ball_on_a_slope_has_its_saltation_matrix(case: str) -> None:
    """Kong, Payne, Zhu and Johnson (2024): impacts with and without restitution and friction, with the normal n."""
    solver, e = built("rough_slope" if case == "stick" else "slope"), 0.7 if case == "bounce" else 0.0
    if case != "stick":
        solver = solver.with_parameters(e=e)
    start = {"x": 0.0, "z": 1.0, "v_x": 0.4, "v_z": 0.0}
    solution, _ = sensitivities_at(solver, 0.55, start, tuple(start))
    event = solution.events[0]
    assert event.kind == "impact"
    normal = np.array([0.3, 1.0]) / np.hypot(0.3, 1.0)
    gravity = np.array([0.0, -9.81])
    before = np.array([0.4, 0.0]) + gravity * event.t
    time = -normal / (normal @ before)  # of the impact, with respect to the position
    kept = np.zeros((2, 2)) if case == "stick" else np.eye(2) - (1 + e) * np.outer(normal, normal)
    later = {"bounce": gravity, "slide": kept @ gravity, "stick": np.zeros(2)}[case]
    wanted = np.zeros((4, 4))
    wanted[:2, :2] = np.eye(2) + np.outer(before - kept @ before, time)
    wanted[2:, :2] = np.outer(kept @ gravity - later, time)
    wanted[2:, 2:] = kept
    if case != "stick":
        assert_allclose(wanted[:2, :2], kept, atol=1e-14)  # as printed: both blocks are the map of the speeds
    assert_allclose(saltation(solution, 2, event.t), wanted, rtol=0.0, atol=1e-8)


# -- cases of other programs ------------------------------------------------------------------------------------------


@cache
def switches() -> kg.Solver:
    """Three systems that do not depend on each other, with an event each."""
    t = me.dynamicsymbols._t
    y, on, left, way, rate, dose = me.dynamicsymbols("y on left way rate dose")
    T, c, d, a, k, low, more = sm.symbols("T c d a k low more")
    events = [
        kg.Event("off", t - T, reset={on: 0 * on}),
        kg.Event("stop", left, reset={rate: 0 * rate}),
        kg.Event("refill", dose - low, direction=-1, reset={dose: dose + more}),
    ]
    states = {y: c * on - d * (1 - on) * y, on: 0 * on, left: -a, way: rate, rate: 0 * rate, dose: -k * dose}
    parameters = {T: 0.98, c: 1.0, d: 0.0, a: 2.0, k: 0.6, low: 0.5, more: 0.8}
    return kg.build(line("switches", -x, parameters, states=states, events=events))


STATES = {"y": 0.0, "on": 1.0, "left": 1.0, "way": 0.0, "rate": 1.0, "dose": 1.0}


def both(solver: kg.Solver, t1: float, variable: str, names: tuple[str, ...]) -> tuple[float, Array]:
    """The value of a state at ``t1``, and its derivatives, which the adjoint method gives, too."""
    run: Any = ((0.0, t1), [0.0], [0.0])
    solution = solver.integrate(*run, s0=STATES, sensitivities=names, **TIGHT)
    found = np.array([solution.sensitivities[variable, name][-1] for name in names])
    (state,) = [s for s in solver.model.states if s.name == variable]
    objective = kg.Objective(terminal=state)
    value, gradient = solver.value_and_gradient(objective, *run, s0=STATES, with_respect_to=names, **TIGHT)
    assert_allclose([gradient[name] for name in names], found, rtol=1e-11, atol=1e-12)
    return value, found


def test_a_rate_that_ends_at_a_time_that_varies() -> None:
    """y' = 1 until T = 0.98 and 0 after it: dy(2)/dT = 1 (diffrax #729, whose result depends on its step sizes)."""
    value, found = both(switches(), 2.0, "y", ("T", "c", "y"))
    assert_allclose(value, 0.98, rtol=1e-12)
    assert_allclose(found, [1.0, 0.98, 1.0], rtol=1e-11)


def test_a_dose_that_ends_and_decays() -> None:
    """y' = c until T, and -d y after it (of the kind of diffrax #363, where the derivative in T is zero)."""
    solver, T, d = switches().with_parameters(d=0.7, c=1.3), 0.98, 0.7
    value, found = both(solver, 2.0, "y", ("T", "d"))
    y = 1.3 * T * np.exp(-d * (2.0 - T))
    assert_allclose([value, *found], [y, y * (1 / T + d), -y * (2.0 - T)], rtol=1e-10)


def test_a_way_that_ends_where_another_state_is_zero() -> None:
    """x' = -a and y' = b until x = 0: dy/da = -b / a^2 = -0.25 (SciMLSensitivity #4, where it was zero)."""
    value, found = both(switches(), 1.0, "way", ("a", "rate", "left"))
    assert_allclose([value, *found], [0.5, -0.25, 0.5, 0.5], rtol=1e-11)


def test_an_event_that_a_state_triggers_and_changes() -> None:
    """Decay by exp(-k t) with one refill: (low + more) / low exp(-k t) of the start (of the kind of AMICI #3257)."""
    t1, k, low, more = 1.6, 0.6, 0.5, 0.8
    value, found = both(switches(), t1, "dose", ("k", "low", "more", "dose"))
    end = (low + more) / low * np.exp(-k * t1)
    wanted = [-t1 * end, end / (low + more) - end / low, end / (low + more), end]
    assert_allclose([value, *found], [end, *wanted], rtol=1e-10)


@cache
def walls() -> kg.Solver:
    """A ball over a floor and before a wall at x = 10, as states that events reset."""
    z, w, s, r = me.dynamicsymbols("z w s r")
    g, e = sm.symbols("g e")
    events = [
        kg.Event("floor", z, direction=-1, reset={w: -e * w}),
        kg.Event("wall", s - 10, direction=1, reset={r: -r}),
    ]
    return kg.build(line("walls", -x, {g: 9.8, e: 0.8}, states={z: w, w: -g, s: r, r: 0 * r}, events=events))


def test_a_sample_at_the_time_of_an_event_counts_after_it() -> None:
    """The wall is reached at 5 s, a sampled time, up to rounding (SciMLSensitivity #1447: an error of 7 %).

    Adjoints through events at all are what CasADi #4303 lacks.
    """
    solver, names = walls(), ("z", "w", "s", "r", "g", "e")
    s0 = {"z": 50.0, "w": 0.0, "s": 0.0, "r": 2.0}
    times = np.arange(1.0, 6.5, 0.5)
    run: Any = ((0.0, 6.0), [0.0], [0.0])
    terms = sum((1 - state) ** 2 / 2 for state in solver.model.states)
    objective = kg.Objective(samples=[(t, terms) for t in times])
    value, gradient = solver.value_and_gradient(objective, *run, s0=s0, with_respect_to=names, **TIGHT)
    floor, e, g = np.sqrt(100.0 / 9.8), 0.8, 9.8
    states, slopes = [], []
    for t in times:
        since, bounced, turned = t - floor, t > floor, t >= 5.0
        up = e * g * floor
        z = up * since - g * since**2 / 2 if bounced else 50.0 - g * t**2 / 2
        w = up - g * since if bounced else -g * t
        states.append([z, w, 20.0 - 2.0 * t if turned else 2.0 * t, -2.0 if turned else 2.0])
        slopes.append(_slopes_of_walls(t, floor, e, g, bounced, -1.0 if turned else 1.0))
    error = np.array(states) - 1.0
    assert_allclose(value, (error**2).sum() / 2, rtol=1e-10)
    wanted = np.einsum("ti,tij->j", error, np.array(slopes))
    assert_allclose([gradient[name] for name in names], wanted, rtol=1e-9)


def _slopes_of_walls(t: float, floor: float, e: float, g: float, bounced: bool, way: float) -> Array:
    """The derivatives (4, 6) of z, w, s, r in z0, w0, s0, r0, g and e."""
    slopes = np.zeros((4, 6))
    slopes[2:, 2:4] = [[way, way * t], [0.0, way]]
    fall = np.array([[1.0, t, -(t**2) / 2], [0.0, 1.0, -t]])
    if bounced:
        fall = np.array([[1.0, floor, -(floor**2) / 2], [0.0, 1.0, -floor]])
        time = fall[0] / (g * floor)  # of the impact: -dz / w
        speed = -e * (fall[1] - g * time)  # after it: -e d(w at the impact)
        since = t - floor
        w = -time * e * g * floor + since * (speed + g * time)
        fall = np.array([w - [0.0, 0.0, since**2 / 2], speed + g * time - [0.0, 0.0, since]])
        slopes[:2, 5] = [g * floor * since, g * floor]
    slopes[:2][:, [0, 1, 4]] = fall
    return slopes


def test_two_elastic_balls() -> None:
    """The end of the ball that is hit is x1 + v1 T + 2 r: (1, 0, 1, 0), where Nimble has (0.75, 0.25, 0.91, 0.08)."""
    solver = built("balls").with_parameters(m=1.0)
    _, x2 = solver.model.coordinates
    start, names = {"x1": 0.0, "x2": 0.52, "v1": 1.0, "v2": 0.0}, ("x1", "x2", "v1", "v2")
    q, u, _ = start_of(solver, start)
    value, gradient = solver.value_and_gradient(
        kg.Objective(terminal=x2), (0.0, 1.0), q, u, with_respect_to=names, **TIGHT
    )
    assert_allclose([value, *(gradient[name] for name in names)], [1.2, 1.0, 0.0, 1.0, 0.0], atol=1e-11)


# -- a five-bar mechanism ---------------------------------------------------------------------------------------------


def test_a_five_bar_mechanism_with_impacts() -> None:
    """Of the kind of Corner, Sandu and Sandu (2018), with other values; against differences of accurate runs."""
    start = {"th1": 2.4, "th4": 0.74, "om1": 0.0, "om4": 0.0}
    solver = built("five_bar").with_initial({**start, "th2": 0.67, "th3": 2.47, "om2": 0.0, "om3": 0.0})
    names = ("l0", "k", "e", "th1", "om4")
    solution, found = sensitivities_at(solver, 0.58, start, names)
    assert [event.kind for event in solution.events] == ["impact"] * 3
    wanted = difference_quotients(solver, 0.58, start, names)
    assert_allclose(found, wanted, rtol=0.0, atol=1e-7 * np.abs(wanted).max())
    q, u, _ = start_of(solver, start)
    _, gradient = solver.value_and_gradient(
        kg.Objective(terminal=solver.model.speeds[0]), (0.0, 0.58), q, u, with_respect_to=names, **TIGHT
    )
    assert_allclose([gradient[name] for name in names], found[4], rtol=1e-7)
