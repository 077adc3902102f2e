"""Guards that are functions of the state with jumps: each change of sign is one event, and nothing else is one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from numpy.testing import assert_allclose
from state_models import point_mass

import kanegen as kg

METHODS = ["dopri5", "dop853", "verner9", "rodas", "rk4"]
SHARE, CAMPAIGN = 40, 1500
"""Random runs in every test run, and in the campaign."""
END = 12.3
TIMES = np.linspace(0.0, END, 600_001)

Guard = Callable[[Any, Any, float, float], Any]
GUARDS: dict[str, Guard] = {  # of y, y', the level c and the period p
    "sign": lambda y, w, c, p: np.sign(y - c),
    "stairs": lambda y, w, c, p: np.floor(y / p) - 0.5,
    "wrap": lambda y, w, c, p: np.mod(y, p) - 0.3 * p,
    "saw": lambda y, w, c, p: y / p - np.floor(y / p) - 0.5,
    "branch": lambda y, w, c, p: np.where(y < c, y + 2, y - 2),
    "angle": lambda y, w, c, p: np.arctan2(w, 2 * y),
    "relay": lambda y, w, c, p: np.where(y > c, 0.5, -0.5),
    "steep": lambda y, w, c, p: np.tanh(1e6 * (y - c)),
}


@cache
def oscillator() -> kg.Solver:
    """y'' = -4 y, and a count n of the events of each guard."""
    y, w, n = me.dynamicsymbols("y w n")
    c, p = sm.symbols("c p")
    guards = {
        "sign": sm.sign(y - c),
        "stairs": sm.floor(y / p) - sm.Rational(1, 2),
        "wrap": sm.Mod(y, p) - 3 * p / 10,
        "saw": y / p - sm.floor(y / p) - sm.Rational(1, 2),
        "branch": sm.Piecewise((y + 2, y < c), (y - 2, True)),
        "angle": sm.atan2(w, 2 * y),
        "relay": sm.Heaviside(y - c) - sm.Rational(1, 2),
        "steep": sm.tanh(10**6 * (y - c)),
    }
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", y * N.x)
    P.set_vel(N, w * N.x)
    return kg.build(
        kg.Model(
            name="oscillator",
            frame=N,
            coordinates=[y],
            speeds=[w],
            kinematics=[y.diff() - w],
            bodies=[me.Particle("P", P, sm.Integer(1))],
            loads=[(P, -4 * y * N.x)],
            states={n: 0},
            events=[kg.Event(name, guard, reset={n: n + 1}) for name, guard in guards.items()],
            parameters={c: 0.3, p: 0.7},
        ),
        functions=("rhs", "consistency", "jacobians"),
    )


def run(name: str, method: str, rtol: float, c: float, p: float, start: tuple[float, float]) -> kg.Solution:
    y, w = start
    steps = {"step": 0.0137} if method == "rk4" else {"rtol": rtol, "atol": rtol}
    solver = oscillator().with_parameters(c=c, p=p)
    return solver.integrate((0.0, END), [y], [w], s0=[0.0], events=[name], method=method, **steps)


def expected(name: str, c: float, p: float, amplitude: float, phase: float) -> np.ndarray[Any, Any]:
    y, w = amplitude * np.cos(2 * TIMES + phase), -2 * amplitude * np.sin(2 * TIMES + phase)
    sides = np.sign(GUARDS[name](y, w, c, p))
    return TIMES[1:][sides[1:] != sides[:-1]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
@pytest.mark.parametrize("name", ["sign", "branch", "relay", "steep", "stairs", "angle"])
def test_a_guard_that_jumps_has_one_event_at_each_change_of_its_sign(name: str, rtol: float, method: str) -> None:
    """The step up to the event ended before the jump: every second jump was reported and counted twice."""
    solution = run(name, method, rtol, 0.3, 1.0 / 3.0, (1.0, 0.0))
    times = expected(name, 0.3, 1.0 / 3.0, 1.0, 0.0)
    times = times[times > 1e-3]  # the branch of the angle that starts on zero
    assert_allclose([event.t for event in solution.events], times, rtol=0, atol=max(3e3 * rtol, 1e-4))
    assert solution.s[-1, 0] == times.size


@pytest.mark.parametrize("method", ["dopri5", "verner9", "rodas", "rk4"])
def test_a_guard_that_jumps_at_the_start_does_not_creep(method: str) -> None:
    """y = 1 is next to a jump of floor(3 y): thousands of events followed, a rounding of y apart."""
    solution = run("saw", method, 1e-8, 0.3, 1.0 / 3.0, (1.0, 0.0))
    events = [event.t for event in solution.events]
    assert len(events) == 1 + expected("saw", 0.3, 1.0 / 3.0, 1.0, 1e-3).size


@pytest.mark.parametrize("method", METHODS)
def test_a_jump_away_from_zero_at_the_start_of_a_step_is_no_event(method: str) -> None:
    """A step ends at t = 1, where floor(t) jumps; floor(x) jumps from -1.5 to -0.5 there."""
    x, t = me.dynamicsymbols("x"), me.dynamicsymbols._t
    events = [kg.Event("stairs", sm.floor(x) - sm.Rational(3, 2)), kg.Event("clock", sm.floor(t) - 10)]
    solver = kg.build(point_mass("stairs", 0, events=events, parameters={"m": 1.0}))
    step = {"step": 0.0137} if method == "rk4" else {"rtol": 1e-6, "atol": 1e-6}
    for late in (0.0, 1e-8):
        solution = solver.integrate((0.0, 3.2), [-late], [1.0], events=["stairs"], method=method, **step)
        assert_allclose([event.t for event in solution.events], [2.0 + late], rtol=0, atol=1e-8)


def random_run(seed: int) -> None:
    """A guard, level, period, start, method and tolerance; motions whose events depend on their errors are left out."""
    rng = np.random.default_rng([29, seed])
    while True:
        name, method = str(rng.choice(list(GUARDS))), str(rng.choice(METHODS))
        rtol = 10.0 ** rng.uniform(-8.0 if method == "rodas" else -11.0, -4.0)
        c, p = rng.uniform(-1.0, 1.0), 10.0 ** rng.uniform(-0.7, 0.5)
        amplitude, phase = 10.0 ** rng.uniform(-0.3, 0.3), rng.uniform(0.0, 2 * np.pi)
        error = max(2e3 * rtol, 1e-4)
        times = expected(name, c, p, amplitude, phase)
        others = [expected(name, c, p, amplitude * (1 + sign * error), phase) for sign in (-1, 1)]
        ends = np.concatenate([[0.0], times, [END]])
        if np.diff(ends).min() > 4 * error and all(other.size == times.size for other in others):
            break
    start = (amplitude * np.cos(phase), -2 * amplitude * np.sin(phase))
    solution = run(name, method, rtol, c, p, start)
    found = [event.t for event in solution.events]
    assert len(found) == times.size, (name, method, rtol, found, times)
    assert_allclose(found, times, rtol=0, atol=2 * max(error, np.abs(np.array(others) - times).max(initial=0.0)))
    assert solution.s[-1, 0] == times.size


def test_a_step_that_ends_exactly_where_a_guard_jumps() -> None:
    """The guard is 0 there, a unit seemed as large as the jump, and the next zero was lost."""
    random_run(116)


@pytest.mark.parametrize("block", range(4))
def test_random_guards_that_jump(block: int) -> None:
    for seed in range(block * SHARE // 4, (block + 1) * SHARE // 4):
        random_run(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(20))
def test_random_guards_that_jump_in_the_campaign(block: int) -> None:
    size = (CAMPAIGN - SHARE) // 20
    for seed in range(SHARE + block * size, SHARE + (block + 1) * size):
        random_run(seed)
