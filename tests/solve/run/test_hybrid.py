"""Runs with contacts and events: motions in closed form, jumps, records, choice of events, errors."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hybrid_models import (
    GRAVITY,
    MASS,
    MU_K,
    MU_S,
    RATE,
    SLIPS_AT,
    block,
    painleve,
    pushed,
    rough_block,
    sliding_rod,
)
from messages import raises
from state_models import point_mass
from systems import example, solver_for

import kanegen as kg
from kanegen.errors import SolveError
from kanegen.solve import IntegrationError, Outcome, Solution

RAMP = (np.array([0.0, 10.0]), np.array([[0.0], [10.0 * RATE]]))
REST = np.zeros(2)
WEIGHT = MASS * GRAVITY
HELD = ("rhs", "control", "servo_residuals")


def bounces(**options: Any) -> Solution:
    """A ball from 1 m with e = 0.8, over its first impacts."""
    return solver_for("bouncing_ball").integrate((0.0, 2.0), [1.0], [0.0], rtol=1e-10, atol=1e-12, **options)


def first_impacts() -> np.ndarray:
    return example("bouncing_ball").impact_times(3)


def height(t: Any) -> tuple[np.ndarray, np.ndarray]:
    """Height and speed after the latest of the first three impacts, closed form."""
    times, fall = first_impacts(), first_impacts()[0]
    count = np.searchsorted(times, t, side="right")
    start = np.concatenate([[-fall], times])[count]
    rise = 9.81 * fall * 0.8**count
    s = np.asarray(t) - start
    return rise * s - 0.5 * 9.81 * s**2, rise - 9.81 * s


# -- motions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "accuracy"),
    [("dopri5", 1e-8), ("dop853", 1e-11), ("rodas", 1e-8), ("rk4", 1e-12), ("kutta_merson", 1e-12)],
)
def test_a_pushed_block_sticks_and_slips(method: str, accuracy: float) -> None:
    options = {"step": 0.11} if method in ("rk4", "kutta_merson") else {"rtol": 1e-10, "atol": 1e-12}
    solution = block().integrate((0.0, 4.0), REST, REST, RAMP, method=method, events=(), **options)
    (slips,) = solution.events
    assert (slips.name, slips.kind, slips.jumps) == ("floor", "slips", False)
    assert slips.t == pytest.approx(SLIPS_AT, abs=accuracy)
    position, speed = pushed(solution.t)
    np.testing.assert_allclose(solution.q[:, 0], position, atol=10.0 * accuracy)
    np.testing.assert_allclose(solution.u[:, 0], speed, atol=10.0 * accuracy)
    stick, slip = solution.contacts.phases
    assert (stick.t_start, stick.t_end, slip.t_end) == (0.0, slips.t, 4.0)
    assert (stick.modes["floor"], slip.modes["floor"]) == ("stick", "slip")


def test_contact_forces_are_those_of_the_mode() -> None:
    solution = block().integrate((0.0, 4.0), REST, REST, RAMP, events=(), t_eval=np.linspace(0.0, 4.0, 40))
    assert solution.contacts.names == ("floor", "floor slip")
    assert solution.contacts is not None
    normal, friction = solution.contacts.forces.T
    np.testing.assert_allclose(normal, WEIGHT, rtol=1e-9)
    sticking = solution.t < SLIPS_AT
    np.testing.assert_allclose(friction[sticking], -RATE * solution.t[sticking], atol=1e-8)
    np.testing.assert_allclose(friction[~sticking], -MU_K * WEIGHT, rtol=1e-9)


def test_python_inputs_act_as_compiled_ones() -> None:
    compiled = block().integrate((0.0, 3.0), REST, REST, RAMP, events=())
    called = block().integrate((0.0, 3.0), REST, REST, lambda t: [RATE * t], events=())
    np.testing.assert_allclose(called.q, compiled.q, atol=1e-13)
    np.testing.assert_allclose(called.contacts.forces, compiled.contacts.forces, atol=1e-9)


def test_a_bouncing_ball_rests_behind_its_accumulation_point() -> None:
    solver, ball = solver_for("bouncing_ball"), example("bouncing_ball")
    solution = solver.integrate((0.0, 5.0), [1.0], [0.0], rtol=1e-10, atol=1e-12)
    rest = next(event for event in solution.events if event.kind == "rests")
    assert rest.t == pytest.approx(ball.zeno_time(), abs=1e-8)
    assert solution.contacts.phases[-1].modes["floor"] == "closed"
    later = solution.t > rest.t
    np.testing.assert_allclose(solution.u[later], 0.0, atol=1e-12)
    np.testing.assert_allclose(solution.contacts.forces[later], 0.5 * 9.81, rtol=1e-9)


def test_ten_thousand_contacts_cost_no_more_than_their_arcs() -> None:
    solver = solver_for("bouncing_ball").with_parameters(e=1.0)
    flight = 2.0 * np.sqrt(2.0 / 9.81)
    solution = solver.integrate((0.0, 10_000 * flight), [1.0], [0.0], dense_output=False)
    assert Counter(event.kind for event in solution.events) == {"impact": 10_000}
    np.testing.assert_allclose(solution.events[-1].u_before, -np.sqrt(2.0 * 9.81), rtol=1e-9)
    arc = solver.integrate((0.0, flight * (1.0 - 1e-9)), [0.0], [np.sqrt(2.0 * 9.81)], dense_output=False)
    assert not arc.events
    assert solution.statistics.evaluations < 2 * 10_000 * arc.statistics.evaluations


# -- jumps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas"])
def test_states_before_and_after_a_jump_are_stored(method: str) -> None:
    if method == "rodas":
        solution = block().integrate((0.0, 1.0), [0.0, 0.2], REST, method=method)
    else:
        solution = bounces(method=method)
    impacts = [event for event in solution.events if event.kind == "impact"]
    assert impacts
    for event in impacts:
        before, after = np.flatnonzero(solution.t == event.t)
        assert after == before + 1
        np.testing.assert_array_equal(solution.u[before], event.u_before)
        np.testing.assert_array_equal(solution.u[after], event.u_after)
        np.testing.assert_array_equal(solution.q[before], event.q)
        np.testing.assert_allclose(solution(event.t)[1], event.u_after, atol=1e-13)
        assert event.jumps


def test_dense_output_follows_every_flight() -> None:
    solution = bounces()
    np.testing.assert_allclose([event.t for event in solution.events], first_impacts(), atol=1e-12)
    times = np.linspace(0.0, 2.0, 401)
    q, u = solution(times)
    expected = height(times)
    np.testing.assert_allclose(q[:, 0], expected[0], atol=1e-10)
    np.testing.assert_allclose(u[:, 0], expected[1], atol=1e-10)


def test_requested_times_at_an_event_get_the_state_after() -> None:
    event = bounces().events[1]
    asked = bounces(t_eval=[0.0, 0.5, event.t, event.t, 2.0])
    np.testing.assert_array_equal(asked.t, [0.0, 0.5, event.t, event.t, 2.0])
    np.testing.assert_allclose(asked.u[2:4, 0], event.u_after[0], atol=1e-12)
    np.testing.assert_allclose(asked.q[:, 0], height(asked.t)[0], atol=1e-10)
    assert asked.contacts.forces.shape == (5, 1)


def test_a_jump_at_either_end_of_a_run() -> None:
    """The block is hit when a run ends, and at the start of one it falls on the floor."""
    hit = block().integrate((0.0, 1.0), REST, REST, events=["hit"])
    np.testing.assert_allclose(hit(1.0)[1], [1.5, 0.0], atol=1e-9)
    np.testing.assert_array_equal(hit.last[2], hit(1.0)[1])
    assert np.count_nonzero(hit.t == 1.0) == 2
    fallen = block().integrate((0.0, 0.1), REST, [0.0, -1.0], events=())
    assert [event.kind for event in fallen.events][:1] == ["impact"]
    np.testing.assert_allclose(fallen.u[:2], [[0.0, -1.0], [0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(fallen(0.0)[1], REST, atol=1e-12)
    np.testing.assert_allclose(fallen.events[0].impulse, [MASS, 0.0], atol=1e-9)


def test_solutions_pickle_with_their_records() -> None:
    solution = bounces()
    copy = pickle.loads(pickle.dumps(solution))
    assert [(event.t, event.kind) for event in copy.events] == [(event.t, event.kind) for event in solution.events]
    assert dict(copy.contacts.phases[0].modes) == {"floor": "open"}
    np.testing.assert_array_equal(copy(1.3)[0], solution(1.3)[0])
    np.testing.assert_array_equal(copy.contacts.forces, solution.contacts.forces)


# -- events ---------------------------------------------------------------------------------------------------


def test_events_act_and_end_a_run() -> None:
    solution = block().integrate((0.0, 9.0), REST, REST)
    times = {event.name: event.t for event in solution.events if event.kind == "user"}
    # 1.5 m/s after the hit, braked at 3 m/s^2: the block stops after 0.375 m.
    assert list(times) == ["hit"]
    assert [event.kind for event in solution.events if event.name == "floor"] == ["slips", "sticks"]
    assert solution.events[-1].t == pytest.approx(1.5, abs=1e-8)
    assert solution.last[1][0] == pytest.approx(0.375, abs=1e-8)
    pushed_on = block().integrate((0.0, 9.0), REST, REST, RAMP, events=["passes", "far"])
    assert pushed_on.status is Outcome.TERMINAL_EVENT
    assert pushed_on.success
    assert [event.name for event in pushed_on.events] == ["floor", "passes", "far"]
    assert pushed_on.last[1][0] == pytest.approx(1.0, abs=1e-9)
    assert pushed_on.t[-1] == pushed_on.events[-1].t == pushed_on.last[0]


def test_guards_read_contact_forces() -> None:
    solution = block().integrate((0.0, 0.4), [0.0, 0.2], REST, events=["loaded"])
    (loaded,) = [event for event in solution.events if event.name == "loaded"]
    assert loaded.t == pytest.approx(0.2, abs=1e-9)


def test_events_are_chosen_by_name() -> None:
    solver = block()
    for chosen in ((), []):
        assert not solver.integrate((0.0, 1.5), REST, REST, events=chosen).events
    hit = next(event for event in rough_block().events if event.name == "hit")
    for names in ("hit", ["hit"], hit, (hit,)):
        solution = solver.integrate((0.0, 1.2), REST, REST, events=names)
        assert [event.name for event in solution.events if event.kind == "user"] == ["hit"]
    with raises(SolveError, "'hitt'", "'hit'"):
        solver.integrate((0.0, 1.0), REST, REST, events=["hitt"])
    with raises(SolveError, "'hit'", "guard", "t - 2", "t - 1"):
        solver.integrate((0.0, 1.0), REST, REST, events=[kg.Event("hit", hit.guard - 1, direction=1, impulse="hit")])


# -- errors ---------------------------------------------------------------------------------------------------


def test_a_gap_violated_at_the_start_names_the_contact() -> None:
    with raises(IntegrationError, "'floor'", "gap") as caught:
        block().integrate((0.0, 1.0), [0.0, -0.1], REST)
    assert caught.value.solution.status is Outcome.GAP_VIOLATED
    np.testing.assert_array_equal(caught.value.solution.q, [[0.0, -0.1]])


def test_contacts_cannot_be_followed_backwards() -> None:
    with raises(SolveError, "backwards", "'floor'"):
        block().integrate((1.0, 0.0), REST, REST, events=())


def test_a_guard_that_stays_zero_has_no_events() -> None:
    """A block that falls at x = 1 m is nowhere else than at the guard of "far"."""
    solution = block().integrate((0.0, 0.1), [1.0, 1.0], REST, events=["far"])
    assert solution.success
    assert not solution.events


def test_a_run_that_stops_early_keeps_its_records() -> None:
    with raises(IntegrationError, "max_steps") as caught:
        bounces(max_steps=4)
    assert [event.kind for event in caught.value.solution.events][:1] == ["impact"]

    def broken(t: float) -> list[float]:
        if t > 2.8:
            raise ValueError("no input")
        return [RATE * t]

    with raises(IntegrationError, "ValueError", "no input") as caught:
        block().integrate((0.0, 4.0), REST, REST, broken, events=(), max_step=0.1)
    assert [event.kind for event in caught.value.solution.events] == ["slips"]
    seen: list[float] = []
    assert bounces(progress=seen.append).success
    assert seen[-1] == 2.0


# -- at a state -----------------------------------------------------------------------------------------------


def test_contacts_at_a_state() -> None:
    solver = block()
    resting = solver.contacts(0.0, REST, REST, [4.0])
    assert resting["floor"].mode == "stick"
    np.testing.assert_allclose(resting["floor"].force, [WEIGHT, -4.0], rtol=1e-12)
    np.testing.assert_allclose(resting.udot, 0.0, atol=1e-12)
    pulled = solver.contacts(0.0, REST, REST, [13.0])["floor"]
    assert pulled.mode == "slip"
    np.testing.assert_allclose(pulled.force, [WEIGHT, -MU_K * WEIGHT], rtol=1e-12)
    assert MU_S * WEIGHT < 13.0
    flying = solver.contacts(0.0, [0.0, 0.5], [1.0, -2.0])["floor"]
    assert (flying.mode, flying.gap, flying.rate, *flying.slip) == ("open", 0.5, -2.0, 1.0)
    np.testing.assert_array_equal(flying.force, 0.0)
    # rhs takes contacts as open, unless it is given their multipliers behind the inputs.
    np.testing.assert_allclose(solver.rhs(0.0, REST, REST)[1], [0.0, -GRAVITY])
    np.testing.assert_allclose(solver.rhs(0.0, REST, REST, [4.0, WEIGHT, -4.0])[1], 0.0, atol=1e-12)
    held = [WEIGHT, -4.0]
    np.testing.assert_array_equal(
        solver.rhs(0.0, REST, REST, [4.0], forces=held)[1], solver.rhs(0.0, REST, REST, [4.0, *held])[1]
    )
    _, udot = solver.rhs(0.0, REST, REST, [[4.0], [13.0]], forces=held)
    np.testing.assert_array_equal(udot, [solver.rhs(0.0, REST, REST, r, forces=held)[1] for r in ([4.0], [13.0])])
    _, udot = solver.rhs(0.0, REST, REST, [[4.0, *held], [13.0, 0.0, 0.0]])
    np.testing.assert_array_equal(udot[1], solver.rhs(0.0, REST, REST, [13.0])[1])
    np.testing.assert_allclose(udot[0], 0.0, atol=1e-12)
    with raises(SolveError, "forces", "(1,)", "(2,)"):
        solver.rhs(0.0, REST, REST, [4.0], forces=[WEIGHT])
    with raises(SolveError, "force of contact row 1", "nan"):
        solver.rhs(0.0, REST, REST, [4.0], forces=[WEIGHT, np.nan])
    with raises(SolveError, "'flor'", "'floor'"):
        resting["flor"]
    with raises(SolveError, "contacts"):
        solver_for("slider_crank").contacts(0.0, [0.3, 1.0, 1.0], [0.0, 0.0, 0.0])


def test_painleves_rod_has_no_motion_or_several() -> None:
    """At rest in theta no normal force keeps the tip from sinking; turning fast it may lift off or press on."""
    rod = painleve()
    with raises(IntegrationError, "'tip'", "no modes") as caught:
        rod.integrate((0.0, 0.01), *sliding_rod(0.0))
    assert caught.value.solution.status is Outcome.NO_MODE
    state = sliding_rod(4.0)
    with raises(IntegrationError, "'tip'", "Painleve", "several") as caught:
        rod.integrate((0.0, 0.01), *state)
    assert caught.value.solution.status is Outcome.SEVERAL_MODES
    with raises(SolveError, "'tip'"):
        rod.contacts(0.0, *state)
    lifted = rod.integrate((0.0, 1e-3), *state, modes={"tip": "open"})
    assert lifted.contacts.phases[0].modes["tip"] == "open"
    pressed = rod.integrate((0.0, 1e-3), *state, modes={"tip": "slip"})
    assert pressed.contacts.phases[0].modes["tip"] == "slip"
    force = (16.0 * np.sqrt(0.8) - 10.0) / 0.8
    np.testing.assert_allclose(pressed.contacts.forces[0], [force, 2.0 * force], rtol=1e-9)
    for modes, names in (({"top": "open"}, ("'top'", "tip")), ({"tip": "slipp"}, ("'slipp'", "'slip'"))):
        with raises(SolveError, *names):
            rod.integrate((0.0, 1e-3), *state, modes=modes)


# -- closed loops ---------------------------------------------------------------------------------------------


def test_held_controls_and_events_at_the_same_times() -> None:
    """Without friction each sample is uniformly accelerated; the block is hit where a sample ends."""
    solver = kg.build(rough_block(hold=(-2.0, -1.0)), functions=HELD)
    solver = solver.with_parameters(mu_s=0.0, mu_k=0.0)
    solution = solver.integrate(
        (0.0, 1.05), REST, REST, control=True, sample_time=0.1, events=["hit"], rtol=1e-11, atol=1e-13
    )
    x = v = 0.0
    for k in range(11):
        duration, a = min(0.1, 1.05 - 0.1 * k), -2.0 * v - (x - 0.3)
        x, v = x + v * duration + 0.5 * a * duration**2, v + a * duration + (1.5 if k == 9 else 0.0)
    np.testing.assert_allclose(solution.last[1:], [[x, 0.0], [v, 0.0]], atol=1e-10)
    assert [event.name for event in solution.events] == ["hit"]
    assert dict(solution.contacts.phases[0].modes) == {"floor": "slip"}


def test_friction_balances_the_control_that_is_held() -> None:
    """Friction holds the block against the servo; each contact force is that of the sample in which it was stored."""
    solution = kg.build(rough_block(hold=(-2.0, -1.0)), functions=HELD).integrate(
        (0.0, 0.3), REST, [0.05, 0.0], control=True, sample_time=0.1, events=(), max_step=0.03
    )
    sticks = next(event.t for event in solution.events if event.kind == "sticks")
    later = solution.t > sticks
    assert solution.contacts is not None
    np.testing.assert_allclose(solution.contacts.forces[later, 1], -solution.control.values[later, 0], atol=1e-8)


@pytest.mark.parametrize(("method", "options"), [("dop853", {"first_step": 1.0}), ("rk4", {"step": 1.0})])
def test_an_event_waits_for_its_direction_where_another_one_comes_first(method: str, options: dict[str, Any]) -> None:
    """In one step x passes 0.3, the other event, then 0.4 and 0.6, where (x - 0.5)^2 falls and rises through 0.01."""
    x = me.dynamicsymbols("x")
    rises = kg.Event("rises", (x - 0.5) ** 2 - 0.01, direction=1)
    solver = kg.build(point_mass("mover", 0, events=[rises, kg.Event("third", x - 0.3)], parameters={"m": 1.0}))
    events = solver.integrate((0.0, 1.0), [0.0], [1.0], method=method, **options).events
    assert [event.name for event in events] == ["third", "rises"]
    np.testing.assert_allclose([event.t for event in events], [0.3, 0.6], atol=1e-9)


def test_hardly_any_zero_of_a_fast_guard_is_missed() -> None:
    """Sines of random frequencies within one step of 1 s: less than a thousandth of their zeros is missed."""
    w, p, s = sm.symbols("w p s")
    guard = kg.Event("zero", sm.sin(w * me.dynamicsymbols._t + p) - s)
    solver = kg.build(point_mass("clock", 0, events=[guard], parameters={"m": 1.0, w: 1.0, p: 0.0, s: 0.0}))
    rng, count, missed = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        values = {"w": rng.uniform(20, 300), "p": rng.uniform(0, 2 * np.pi), "s": rng.uniform(-0.6, 0.6)}
        run = solver.with_parameters(values).integrate((0.0, 1.0), [0.0], [1.0], method="dop853", first_step=1.0)
        turns, angle = 2 * np.pi * np.arange(60), np.arcsin(values["s"])
        zeros = (np.concatenate([angle + turns, np.pi - angle + turns]) - values["p"]) / values["w"]
        zeros = np.sort(zeros[(zeros > 1e-9) & (zeros < 1.0 - 1e-9)])
        found = np.array([event.t for event in run.events])
        assert all(np.abs(zeros - t).min() < 1e-9 for t in found)
        count, missed = count + len(zeros), missed + len(zeros) - len(found)
    assert missed < 1e-3 * count
