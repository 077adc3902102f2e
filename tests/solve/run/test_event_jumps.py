"""Events of guards that jump: by their own resets and impulses, by those of others, by samples and contact forces."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from numpy.testing import assert_allclose
from state_models import point_mass

import kanegen as kg

ADAPTIVE = ["dopri5", "dop853", "verner9", "rodas"]
FREE = {"m": 1.0}


def events_of(solution: kg.Solution) -> list[tuple[str, float]]:
    return [(event.name, event.t) for event in solution.events]


def assert_events(solution: kg.Solution, expected: list[tuple[str, float]], atol: float = 1e-9) -> None:
    found = events_of(solution)
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert_allclose([t for _, t in found], [t for _, t in expected], rtol=0, atol=atol)


def masses(*events: kg.Event, **options: object) -> kg.Model:
    """Two masses of 1 kg at a and b on a vertical line; the event that names it strikes the first one by -2 N s."""
    a, b, v, w, F = me.dynamicsymbols("a b v w F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = O.locatenew("A", a * N.x), O.locatenew("B", b * N.x)
    A.set_vel(N, v * N.x)
    B.set_vel(N, w * N.x)
    description = {
        "name": "masses",
        "frame": N,
        "coordinates": [a, b],
        "speeds": [v, w],
        "kinematics": [a.diff() - v, b.diff() - w],
        "bodies": [me.Particle("A", A, sm.Integer(1)), me.Particle("B", B, sm.Integer(1))],
        "loads": [(A, F * N.x)],
        "impulses": {"strike": [(A, -2 * N.x)]},
        "inputs": [kg.Input(F, default=0.0)],
        "events": events,
    }
    return kg.Model(**(description | options))


# -- a guard that its own event moves ---------------------------------------------------------------------------


@cache
def counter() -> kg.Solver:
    """A clock z that wraps at 1, n counts that; beside it a mass that moves freely."""
    z, n = me.dynamicsymbols("z n")
    wrap = kg.Event("wrap", z - 1, direction=1, reset={z: 0, n: n + 1})
    return kg.build(point_mass("counter", 0, states={z: 1, n: 0}, events=[wrap], parameters=FREE))


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_clock_that_wraps_within_a_step_wraps_every_time(method: str) -> None:
    solution = counter().integrate((0.0, 20.5), [0.0], [0.0], s0=[0.0, 0.0], method=method)
    assert_events(solution, [("wrap", float(t)) for t in range(1, 21)])
    assert_allclose(solution.s[-1], [0.5, 20.0], atol=1e-8)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_an_impulse_that_reverses_the_speed_of_its_own_guard(method: str) -> None:
    """v' = 1, and at v = 1 an impulse makes it -1: every 2 s."""
    v = me.dynamicsymbols("v")
    solver = kg.build(masses(kg.Event("flip", v - 1, direction=1, impulse="strike")))
    solution = solver.integrate((0.0, 20.0), [0.0, 0.0], [0.0, 0.0], [1.0], method=method)
    assert_events(solution, [("flip", float(t)) for t in range(1, 20, 2)])


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_guard_with_teeth_has_all_its_events(method: str) -> None:
    """z rises by 3 each second and is thrown back by 2 where it reaches 1, without a direction."""
    z = me.dynamicsymbols("z")
    solver = kg.build(
        point_mass("teeth", 0, states={z: 3}, events=[kg.Event("up", z - 1, reset={z: z - 2})], parameters=FREE)
    )
    solution = solver.integrate((0.0, 10.0), [0.0], [0.0], s0=[0.0], method=method)
    assert_events(solution, [("up", (1 + 2 * k) / 3) for k in range(15)])


# -- guards near zero while others act --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-10])
def test_a_timer_that_is_reset_where_another_guard_is_zero(method: str, rtol: float) -> None:
    """x = t passes 1/2, 1, 3/2, ... when the timer does."""
    x, z = me.dynamicsymbols("x z")
    timer = kg.Event("timer", z - sm.Rational(1, 2), direction=1, reset={z: 0})
    sensor = kg.Event("sensor", sm.sin(2 * sm.pi * x))
    solver = kg.build(point_mass("timed", 0, states={z: 1}, events=[timer, sensor], parameters=FREE))
    solution = solver.integrate((0.0, 4.2), [0.0], [1.0], s0=[0.0], method=method, rtol=rtol, atol=rtol)
    for name in ("timer", "sensor"):
        times = [event.t for event in solution.events if event.name == name]
        assert_allclose(times, np.arange(1, 9) / 2, atol=20 * rtol)


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize(("rtol", "distance"), [(1e-3, 1e-2), (1e-3, 1e-4), (1e-9, 1e-8), (1e-9, 1e-10)])
def test_a_terminal_event_closely_behind_a_reset_ends_the_run(method: str, rtol: float, distance: float) -> None:
    x, z = me.dynamicsymbols("x z")
    t, d = me.dynamicsymbols._t, sm.Symbol("d")
    reset = kg.Event("reset", t - 1, reset={z: 0})
    end = kg.Event("end", x - 1 - d, terminal=True)
    model = point_mass("ended", 0, states={z: 1}, events=[reset, end], parameters={"m": 1.0, "d": distance})
    solution = kg.build(model).integrate((0.0, 3.0), [0.0], [1.0], s0=[0.0], method=method, rtol=rtol, atol=rtol)
    assert solution.status is kg.Outcome.TERMINAL_EVENT
    assert_events(solution, [("reset", 1.0), ("end", 1.0 + distance)], atol=1e-12)


@pytest.mark.parametrize("distance", [-3e-9, -1e-12, 1e-12, 3e-9])
def test_the_impact_of_one_ball_keeps_the_sensor_of_another_one(distance: float) -> None:
    """The first ball falls 1 m to the floor, the second one passes its sensor that much later."""
    a, b = me.dynamicsymbols("a b")
    sensor = kg.Event("sensor", b)
    model = masses(sensor, contacts=[kg.Unilateral(a, kg.Restitution(sm.Rational(1, 2)), name="floor")])
    speeds = [-1.0, -1.0]
    solution = kg.build(model).integrate((0.0, 1.5), [1.0, 1.0 + distance], speeds, rtol=1e-9, atol=1e-9)
    kinds = {event.kind: event.t for event in solution.events}
    assert set(kinds) == {"impact", "user"}
    assert_allclose([kinds["impact"], kinds["user"]], [1.0, 1.0 + distance], rtol=0, atol=1e-11)


def test_a_guard_that_jumps_onto_zero_and_leaves_on_the_other_side_has_changed_its_sign() -> None:
    """z falls from 1/2, is put on 0 at t = 0.2, and falls on; put there at 1, on the same side, it is no event."""
    z = me.dynamicsymbols("z")
    t = me.dynamicsymbols._t
    events = [kg.Event("reset", (t - sm.Rational(1, 5)) * (t - 1), reset={z: 0}), kg.Event("sign", z)]
    solver = kg.build(point_mass("landing", 0, states={z: -1}, events=events, parameters=FREE))
    solution = solver.integrate((0.0, 2.0), [0.0], [0.0], s0=[0.5])
    assert_events(solution, [("reset", 0.2), ("sign", 0.2), ("reset", 1.0)])


# -- samples and contact forces ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*ADAPTIVE, "rk4"])
@pytest.mark.parametrize("terminal", [False, True])
def test_a_sampled_input_carries_a_guard_across_zero(method: str, terminal: bool) -> None:
    """F = sin(5 t) is held for 0.1 s: the guard changes its sign at samples only."""
    F = me.dynamicsymbols("F")
    solver = kg.build(masses(kg.Event("sign", F - sm.Rational(1, 4), terminal=terminal)))
    step = {"step": 0.03} if method == "rk4" else {}
    solution = solver.integrate(
        (0.0, 2.0), [0.0, 0.0], [0.0, 0.0], lambda t: [np.sin(5 * t)], sample_time=0.1, method=method, **step
    )
    held = np.sin(0.5 * np.arange(20)) - 0.25
    changes = [0.1 * k for k in range(1, 20) if held[k] * held[k - 1] < 0]
    assert len(changes) == 4
    assert_events(solution, [("sign", t) for t in changes[: 1 if terminal else 4]])
    assert (solution.status is kg.Outcome.TERMINAL_EVENT) == terminal


def test_a_sample_changes_a_contact_force_that_a_guard_reads() -> None:
    """F presses on the floor; the normal force passes 15 N at samples, upward at 0.5 s and downward at 1 s."""
    a = me.dynamicsymbols("a")
    guards = [
        kg.Event("rises", kg.Multiplier("floor") - 15, direction=1),
        kg.Event("falls", kg.Multiplier("floor") - 15, direction=-1, terminal=True),
    ]
    model = masses(*guards, contacts=[kg.Unilateral(a, name="floor")])
    solution = kg.build(model).integrate(
        (0.0, 2.0), [0.0, 0.0], [0.0, 0.0], lambda t: [-20.0 if 0.45 < t < 0.95 else -10.0], sample_time=0.1
    )
    assert_events(solution, [("rises", 0.5), ("falls", 1.0)], atol=1e-12)
    assert solution.status is kg.Outcome.TERMINAL_EVENT


def test_a_reset_at_a_sample_acts_before_the_next_one() -> None:
    """The sampled input starts a clock anew: the event is due at the sample and changes the motion from there."""
    F, z = me.dynamicsymbols("F z")
    start = kg.Event("start", F - 1, direction=1, reset={z: 0})
    model = masses(start, states={z: 1})
    solution = kg.build(model).integrate(
        (0.0, 1.0), [0.0, 0.0], [0.0, 0.0], lambda t: [2.0 * (t > 0.35)], sample_time=0.1, s0=[0.0]
    )
    assert_events(solution, [("start", 0.4)], atol=1e-12)
    assert_allclose(solution.s[-1], [0.6], atol=1e-12)


# -- guards without events ----------------------------------------------------------------------------------------


def test_a_body_at_rest_on_its_guard_has_no_events() -> None:
    x = me.dynamicsymbols("x")
    solver = kg.build(point_mass("rest", -x, events=[kg.Event("middle", x)], parameters=FREE))
    solution = solver.integrate((0.0, 1.0), [0.0], [0.0])
    assert solution.success
    assert not solution.events
    motions = solver.integrate_many((0.0, 1.0), [[1.0], [0.0], [0.5]], {"v": 0.0}, reduce=("max", "x"))
    assert motions.success.all()
    assert_allclose(motions.values, [1.0, 0.0, 0.5], atol=1e-6)


def test_a_span_of_length_zero_on_a_guard_is_a_run() -> None:
    x = me.dynamicsymbols("x")
    solver = kg.build(point_mass("instant", -x, events=[kg.Event("middle", x)], parameters=FREE))
    solution = solver.integrate((1.0, 1.0), [0.0], [1.0])
    assert solution.success
    assert_allclose(solution.q, [[0.0]])
    assert solver.integrate_many((1.0, 1.0), [[0.0], [1.0]], {"v": 0.0}, reduce=("max", "x")).success.all()


# -- a guard that another event carries across zero ---------------------------------------------------------------


@cache
def elastic_ball() -> kg.Solver:
    """A ball that bounces without loss from 1.8 m, 0.6 s above the floor each way; n counts the zeros of its speed."""
    x, v, n = me.dynamicsymbols("x v n")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    ball = me.Particle("ball", O.locatenew("P", x * N.x), sm.Integer(1))
    return kg.build(
        kg.Model(
            name="elastic_ball",
            frame=N,
            coordinates=[x],
            speeds=[v],
            kinematics=[x.diff() - v],
            bodies=[ball],
            gravity=-10 * N.x,
            contacts=[kg.Unilateral(x, law=kg.Restitution(1))],
            states={n: 0},
            events=[
                kg.Event("turn", v, reset={n: n + 1}),
                kg.Event("up", v, direction=1),
                kg.Event("apex", v, direction=-1),
            ],
        ),
        functions=("rhs", "consistency", "jacobians"),
    )


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_guard_that_an_impact_carries_across_zero_has_its_next_zero(method: str) -> None:
    solution = elastic_ball().integrate((0.0, 12.5), [1.8], [0.0], s0={"n": 0}, method=method)
    found = {name: [event.t for event in solution.events if event.name == name] for name in ("turn", "up", "apex")}
    instants = 0.6 * np.arange(1, 21)
    assert_allclose(found["turn"], instants, rtol=0, atol=1e-6)
    assert_allclose(found["up"], instants[::2], rtol=0, atol=1e-6)
    assert_allclose(found["apex"], instants[1::2], rtol=0, atol=1e-6)
    assert solution.s[-1, 0] == 20


@cache
def wrapped_clock() -> kg.Solver:
    """A clock z that wraps at 1: z - 1/2 rises in between, and falls by the wrap only."""
    z, n, k = me.dynamicsymbols("z n k")
    half = z - sm.Rational(1, 2)
    return kg.build(
        point_mass(
            "wrapped_clock",
            0,
            states={z: 1, n: 0, k: 0},
            events=[
                kg.Event("wrap", z - 1, direction=1, reset={z: 0}),
                kg.Event("down", half, direction=-1, reset={n: n + 1}),
                kg.Event("up", half, direction=1, reset={k: k + 1}),
            ],
            parameters=FREE,
        ),
        functions=("rhs", "consistency", "jacobians"),
    )


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_guard_with_a_direction_that_a_reset_carries_across_zero_does_not_fire_when_it_returns(method: str) -> None:
    start = {"z": 0.1, "n": 0, "k": 0}
    solution = wrapped_clock().integrate((0.0, 10.2), [0.0], [0.0], s0=start, method=method)
    found = {name: [event.t for event in solution.events if event.name == name] for name in ("down", "up")}
    assert_allclose(found["down"], 0.9 + np.arange(10), rtol=0, atol=1e-6)
    assert_allclose(found["up"], 0.4 + np.arange(10), rtol=0, atol=1e-6)
    assert solution.s[-1, 1:].tolist() == [10, 10]
