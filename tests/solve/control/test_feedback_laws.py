"""Compiled feedback laws of inputs in functions of a state, runs, linear models and C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from feedback_models import (
    GROUPS,
    F,
    G,
    H,
    balanced,
    hybrid,
    particle,
    pendulum_model,
    sampled,
    sampled_model,
    servo_model,
    v,
    w,
    x,
    y,
)
from messages import raises, says
from scipy.integrate import solve_ivp
from scipy_calls import call_rates
from systems import example

import kanegen as kg
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP

ROUNDING = 1e-13
"""The same operations in another order."""
STEPS = 1e-7
"""Integration with tolerances of 1e-10 over some seconds of motion whose errors grow tenfold."""
DIFFERENCES = 1e-6
"""Central differences with a step of 1e-6: rounding 1e-10 over the step, a hundredfold by the gains."""
LOCATED = 1e-8
"""Events of two runs with tolerances of 1e-11."""

START = np.array([0.0, 0.3]), np.array([0.0, 0.5])


def clipped(solver: kg.Solver, q: Any, u: Any) -> float:
    p = solver.parameters
    gains = [p[name] for name in example("lqr_cart_pole").GAINS]
    return float(np.clip(-np.dot(gains, [*q, *u]), -p["F_max"], p["F_max"]))


def by_scipy(solver: kg.Solver, end: float, start: Any = START) -> np.ndarray:
    module, p = example("lqr_cart_pole"), dict(solver.parameters)
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "max_step": 0.005}
    return solve_ivp(lambda t, z: module.by_hand(p, z), (0.0, end), np.concatenate(start), **options).y[:, -1]


# -- functions of a state ----------------------------------------------------------------------------------------------


def test_functions_take_the_values_of_laws_unless_inputs_are_given() -> None:
    solver, rng = balanced(), np.random.default_rng(0)
    q, u = rng.normal(0, 0.2, (20, 2)), rng.normal(0, 0.2, (20, 2))
    forces = np.array([clipped(solver, *state) for state in zip(q, u, strict=True)])
    assert len(set(np.abs(forces) == solver.parameters["F_max"])) == 2
    rows = solver.rhs(np.zeros(20), q, u)
    for i, force in enumerate(forces):
        given = solver.rhs(0.0, q[i], u[i], [force])
        for part, single, row in zip(given, solver.rhs(0.0, q[i], u[i]), rows, strict=True):
            np.testing.assert_allclose(single, part, rtol=ROUNDING, atol=ROUNDING)
            np.testing.assert_allclose(row[i], part, rtol=ROUNDING, atol=ROUNDING)
        np.testing.assert_array_equal(solver.ode(0.0, [*q[i], *u[i]]), np.concatenate(solver.rhs(0.0, q[i], u[i])))
        assert solver.output("force", 0.0, q[i], u[i]) == pytest.approx(force, rel=ROUNDING)
    assert solver.output("force", 0.0, q[0], u[0], [1.5]) == 1.5


def test_other_inputs_of_a_law_need_values() -> None:
    model = particle((F, 0), inputs=[kg.Input(F, law=G * x), G])
    solver = kg.build(model, backend="interpreted")
    with raises(kg.SolveError, "G"):
        solver.rhs(0.0, [1.0, 0.0], [0.0, 0.0])
    assert solver.rhs(0.0, [1.0, 0.0], [0.0, 0.0], [3.0, 0.0])[1][0] == 1.5
    solution = solver.integrate((0.0, 0.1), [1.0, 0.0], [0.0, 0.0], r={"G": -2.0})
    np.testing.assert_allclose(solution["F"], -2.0 * solution["x"], rtol=1e-12)
    with raises(kg.SolveError, "G"):
        solver.integrate((0.0, 0.1), [1.0, 0.0], [0.0, 0.0])


def test_limits_are_checked_with_the_parameters() -> None:
    with raises(kg.SolveError, "F", "(1, -1)"):
        balanced().with_parameters(F_max=-1.0)


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options"),
    [
        *((name, {"rtol": 1e-10, "atol": 1e-11}) for name in ADAPTIVE),
        *((name, {"step": 2e-3}) for name in FIXED_STEP),
    ],
)
def test_every_method_follows_the_law_and_stops_at_its_kinks(method: str, options: dict[str, Any]) -> None:
    solver = balanced()
    solution = solver.integrate((0.0, 2.0), *START, method=method, **options)
    np.testing.assert_allclose(np.concatenate(solution.last[1:]), by_scipy(solver, 2.0), rtol=0, atol=STEPS)
    assert [(event.name, event.kind) for event in solution.events] == [
        ("F: highest value", "switches"),
        ("F: lowest value", "switches"),
        ("F: lowest value", "switches"),
    ]
    forces = [clipped(solver, *state) for state in zip(solution.q, solution.u, strict=True)]
    np.testing.assert_allclose(solution["F"], forces, rtol=1e-9)
    np.testing.assert_array_equal(solution.outputs["force"], solution["F"])


@pytest.mark.parametrize("order", [(F, G, H), (G, F, H), (H, F, G)])
def test_laws_act_beside_an_input_at_any_place(order: tuple[Any, ...]) -> None:
    """x'' = -4 x + 1 and y'' = -y, as F = -8 x, G = 0.5 and H = -2 y act on a particle of 2 kg."""
    laws = {F: -8 * x, H: -2 * y}
    inputs = [kg.Input(symbol, law=laws[symbol]) if symbol in laws else symbol for symbol in order]
    name = "particle_" + "".join(symbol.name for symbol in order)
    solver = kg.build(particle((F + 4 * G, H), name=name, inputs=inputs), functions=("rhs",))
    run = solver.integrate((0.0, 3.0), [1.0, 2.0], [0.0, 0.0], r={"G": 0.5}, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(run.q[:, 0], 0.25 + 0.75 * np.cos(2 * run.t), rtol=0, atol=STEPS)
    np.testing.assert_allclose(run.q[:, 1], 2.0 * np.cos(run.t), rtol=0, atol=STEPS)


def test_inputs_of_the_caller_take_the_place_of_laws() -> None:
    solver = balanced()
    free = [
        solver.integrate((0.0, 0.5), *START, r=r)
        for r in ({"F": 0.0}, [0.0], lambda t: [0.0], lambda t, q, u: [0.0], {"F": lambda t: 0.0})
    ]
    for solution in free:
        assert not solution["F"].any()
        assert not solution.events
        np.testing.assert_allclose(solution.energy, solution.energy[0], rtol=1e-7)


def test_stiff_law_takes_long_steps_with_its_jacobian() -> None:
    """The law -k_v v with k_v = 1e6 kg/s acts within a microsecond; explicit methods would take a million steps."""
    solver = balanced().with_parameters(k_v=1e6, k_x=0.0, k_theta=0.0, k_w=0.0, F_max=1e9)
    solution = solver.integrate((0.0, 10.0), [0.0, 2.0], [0.0, 0.0], method="rodas", rtol=1e-6, atol=1e-8)
    assert solution.statistics.steps < 1000
    p = solver.parameters
    swing = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12}  # the cart is held almost in place
    pole = solve_ivp(lambda t, z: [z[1], p["g"] / p["l"] * np.sin(z[0])], (0.0, 10.0), [2.0, 0.0], **swing).y[:, -1]
    np.testing.assert_allclose([solution["theta"][-1], solution["w"][-1]], pole, atol=1e-3)


def test_sampled_groups_act_after_their_delays() -> None:
    """The motion against SciPy, from instant to instant, with the samples written by hand."""
    solver, end = sampled(), 0.5
    state, t, acting = np.array([0.3, -0.2, 0.1, 0.4]), 0.0, {}
    laws = {"F": lambda z: -3 * z[0] - z[3], "G": lambda z: np.floor(10 * z[1]) / 5 - z[0]}
    instants = {round(k * T + d, 12) for T, delay in GROUPS.values() for k in range(30) for d in (0.0, delay)}
    waiting: list[tuple[float, str, float]] = []
    for stop in sorted({*(i for i in instants if i < end), end}):
        if stop > t:

            def rates(_: float, z: np.ndarray, r: dict[str, float] = acting) -> list[float]:
                return [z[2], z[3], (r["F"] - z[2] * np.cos(z[1])) / 2, (r["G"] - z[3]) / 2]

            state = solve_ivp(rates, (t, stop), state, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
            t = stop
        for name, (T, delay) in GROUPS.items():
            if abs(stop / T - round(stop / T)) < 1e-9:
                waiting.append((stop + delay, name, laws[name](state)))
                acting.setdefault(name, waiting[-1][2])
        acting |= {name: value for begin, name, value in waiting if begin <= stop + 1e-9}
    solution = solver.integrate((0.0, end), [0.3, -0.2], [0.1, 0.4], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(np.concatenate(solution.last[1:]), state, rtol=0, atol=1e-10)
    same = kg.build(sampled_model(), backend="interpreted")
    peer = same.integrate((0.0, end), [0.3, -0.2], [0.1, 0.4], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(np.concatenate(peer.last[1:]), state, rtol=0, atol=1e-9)


def test_law_is_a_load_in_runs_with_contacts_events_and_states() -> None:
    first, second = (
        hybrid(with_law).integrate((0.0, 3.0), [0.0, 1.0], [2.0, 0.0], s0=[0.5], rtol=1e-11, atol=1e-12)
        for with_law in (True, False)
    )
    np.testing.assert_allclose(np.concatenate(first.last[1:]), np.concatenate(second.last[1:]), rtol=0, atol=1e-7)
    own = [event for event in first.events if event.kind != "switches"]
    assert [event.name for event in own] == [event.name for event in second.events]
    assert {"floor", "passes"} <= {event.name for event in own}
    times = [[event.t for event in events] for events in (own, second.events)]
    np.testing.assert_allclose(*times, rtol=0, atol=LOCATED)
    jumps = [event.t for event in own if event.name == "passes"]  # of the law, which can pass a kink there
    switches = [event for event in first.events if event.kind == "switches" and event.t not in jumps]
    assert {event.name for event in switches} >= {"F: highest value", "F: upper edge of the dead band"}
    for event in switches:
        law = -40 * (event.q[0] - event.s_after[0]) - event.u_after[0]
        expected = 1 if "dead band" in event.name else 10
        assert abs(law) == pytest.approx(expected, abs=1e-7)
    np.testing.assert_allclose(first.outputs["force"], first["F"], rtol=0, atol=ROUNDING)
    forces = np.interp(first.t, second.t, second.contacts.forces[:, 0])
    resting = first.t > first.t[-1] - 0.2
    np.testing.assert_allclose(first.contacts.forces[resting, 0], forces[resting], atol=0.05)


def test_rodas_follows_the_law_with_contacts_and_states() -> None:
    runs = [
        hybrid(with_law).integrate((0.0, 1.0), [0.0, 1.0], [2.0, 0.0], s0=[0.5], method="rodas", rtol=1e-9, atol=1e-11)
        for with_law in (True, False)
    ]
    ends = [np.concatenate(run.last[1:]) for run in runs]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-6)
    steps = [run.statistics.steps for run in runs]
    assert steps[0] < 1.3 * steps[1] + 20  # steps end at kinks


def test_servo_acts_beside_a_law() -> None:
    """The error of the servo-constraint decays as (1 + 2 t) exp(-2 t), whatever the law does."""
    solver = kg.build(servo_model(), functions="all")
    solution = solver.integrate((0.0, 2.0), [0.0, 0.5], [0.0, 1.0], control=True, rtol=1e-11, atol=1e-12)
    error = -(1 + 2 * solution.t) * np.exp(-2 * solution.t)
    assert solution.control is not None
    np.testing.assert_allclose(solution.control.errors[:, 0], error, atol=1e-9)
    np.testing.assert_allclose(solution["F"], -3 * solution["y"] - solution["x"] * solution["w"], atol=1e-12)
    np.testing.assert_allclose(solution["G"], solution.control.values[:, 0])


@pytest.mark.parametrize("stabilization", [kg.Baumgarte(5.0, 5.0), kg.Projection()], ids=["Baumgarte", "Projection"])
def test_law_acts_under_constraints_that_are_stabilized(stabilization: Any) -> None:
    """A particle on a circle against its equation in the angle, ``2 theta'' = 20 sin theta + F``."""
    solver = kg.build(pendulum_model(), stabilization=stabilization, functions="all")

    def rates(t: float, z: np.ndarray) -> list[float]:
        return [z[1], (20 * np.sin(z[0]) + np.clip(-3 * np.arctan2(np.sin(z[0]), np.cos(z[0])) - z[1], -5, 5)) / 2]

    start, options = [0.4, 0.5], {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "max_step": 0.01}
    theta, omega = solve_ivp(rates, (0.0, 1.0), start, **options).y[:, -1]
    q, u = [np.cos(start[0]), np.sin(start[0])], [-0.5 * np.sin(start[0]), 0.5 * np.cos(start[0])]
    solution = solver.integrate((0.0, 1.0), q, u, rtol=1e-11, atol=1e-12)
    expected = [np.cos(theta), np.sin(theta), -omega * np.sin(theta), omega * np.cos(theta)]
    np.testing.assert_allclose(np.concatenate(solution.last[1:]), expected, rtol=0, atol=1e-8)


def test_rate_of_a_law_enters_velocity_constraints() -> None:
    """``w = F v`` with the law F = sin x against the constraint ``w = sin(x) v``."""
    F1 = me.dynamicsymbols("F1")
    by_law = particle((-x, 0), inputs=[kg.Input(F, law=sm.sin(x), rate=F1)], nonholonomic_constraints=[w - F * v])
    direct = particle((-x, 0), nonholonomic_constraints=[w - sm.sin(x) * v])
    one, other = (kg.build(model, backend="interpreted") for model in (by_law, direct))
    q, u = [0.4, 0.0], [1.2, 1.2 * np.sin(0.4)]
    np.testing.assert_allclose(one.rhs(0.0, q, u)[1], other.rhs(0.0, q, u)[1], rtol=ROUNDING)
    ends = [solver.integrate((0.0, 1.0), q, u, rtol=1e-10).last[1] for solver in (one, other)]
    np.testing.assert_allclose(*ends, rtol=1e-9)


def test_law_is_written_in_the_speeds_before_a_change() -> None:
    s1, s2 = me.dynamicsymbols("s1 s2")
    model = particle((F, 0), inputs=[kg.Input(F, law=-3 * x - v)])
    changed = model.with_speeds((s1, s2), (v + w, v - w))
    solvers = [kg.build(item, backend="interpreted") for item in (model, changed)]
    _, (before, _) = solvers[0].rhs(0.0, [0.3, 0.1], [0.4, -0.2])
    _, after = solvers[1].rhs(0.0, [0.3, 0.1], [0.2, 0.6])
    np.testing.assert_allclose(after, [before, before], rtol=ROUNDING)


def test_inverse_dynamics_does_not_follow_laws() -> None:
    solver = kg.build(servo_model(), functions="all")
    path, times = {"x": (np.linspace(0, 1, 9), np.linspace(0, 1, 9)), "y": 0.0}, [0.5]
    with raises(kg.SolveError, "F", "r="):
        solver.inverse_dynamics(path, times)
    free = balanced().inverse_dynamics({"x": 0.0, "theta": 0.0}, times)  # a control like others
    assert free.control_names == ("F",)


def test_equilibrium_is_that_of_the_law_unless_inputs_are_given_or_unknown() -> None:
    solver = balanced()
    own = solver.equilibrium([0.1, 0.1])
    np.testing.assert_allclose([*own.q, *own.r], 0.0, atol=1e-9)
    for found in (solver.equilibrium([0.1, 0.1], r={"F": 0.0}), solver.equilibrium([0.1, 0.1], free_inputs=["F"])):
        np.testing.assert_allclose([found.q[1], *found.r], 0.0, atol=1e-9)


def test_c_function_of_the_closed_loop_agrees_with_rhs() -> None:
    solver = balanced()
    status, rates = call_rates(solver.low_level_callable(), 0.0, np.concatenate(START))
    assert status == 0
    np.testing.assert_array_equal(rates, np.concatenate(solver.rhs(0.0, *START)))
    with raises(kg.SolveError, "sampled"):
        sampled().low_level_callable()


# -- linear models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [0.0, 0.05, 0.4], ids=["upright", "inside the limits", "saturated"])
def test_linear_model_of_the_closed_loop_is_that_of_differences(theta: float) -> None:
    solver, z = balanced(), np.array([0.0, theta, 0.0, 0.0])
    linear = solver.linearize(0.0, z[:2], z[2:], closed_loop=True)
    assert linear.inputs == ()
    columns = [solver.ode(0.0, z + 1e-6 * e) - solver.ode(0.0, z - 1e-6 * e) for e in np.eye(4)]
    np.testing.assert_allclose(linear.A, np.array(columns).T / 2e-6, atol=DIFFERENCES)
    forces = [
        clipped(solver, *np.split(z + 1e-6 * e, 2)) - clipped(solver, *np.split(z - 1e-6 * e, 2)) for e in np.eye(4)
    ]
    np.testing.assert_allclose(linear.C_outputs[0], np.array(forces) / 2e-6, atol=DIFFERENCES)


def test_linear_model_keeps_the_inputs_without_law() -> None:
    model = particle((F, G), inputs=[kg.Input(F, law=-3 * x + G * v), kg.Input(G, default=2.0)])
    solver = kg.build(model, functions="all", backend="interpreted")
    both, closed = (solver.linearize(0.0, [1.0, 0.0], [0.5, 0.0], closed_loop=loop) for loop in (False, True))
    assert (both.inputs, closed.inputs) == (("F", "G"), ("G",))
    np.testing.assert_allclose(both.A[2], 0.0)
    np.testing.assert_allclose(closed.A[2], [-1.5, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(closed.B[:, 0], [0.0, 0.0, 0.25, 0.5])
    for r in ({"G": 3.0}, [0.0, 3.0]):
        other = solver.linearize(0.0, [1.0, 0.0], [0.5, 0.0], r=r, closed_loop=True)
        np.testing.assert_allclose(other.A[2], [-1.5, 0.0, 1.5, 0.0])
    with raises(kg.SolveError, "r has shape ()", "F, G"):
        solver.linearize(0.0, [1.0, 0.0], [0.5, 0.0], r=3.0, closed_loop=True)
    np.testing.assert_allclose(solver.rhs(0.0, [1.0, 0.0], [0.5, 0.0], {"G": 3.0})[1], [-0.75, 1.5])


def test_linear_models_that_do_not_exist_are_refused() -> None:
    solver = balanced()
    p, q = solver.parameters, np.zeros(2)
    with raises(kg.SolveError, "F: highest value", "kink"):
        solver.linearize(0.0, [0.0, -p["F_max"] / p["k_theta"]], q, closed_loop=True)
    with raises(kg.SolveError, "F", "G", "sampled"):
        sampled().linearize(0.0, q, q, closed_loop=True)
    none = kg.build(particle((G, 0), inputs=[kg.Input(G, default=0.0)]), functions="all", backend="interpreted")
    with raises(kg.SolveError, "law=", "closed_loop"):
        none.linearize(0.0, q, q, closed_loop=True)


def test_rows_of_a_batch_where_a_law_is_not_finite_name_the_law() -> None:
    solver = kg.build(particle((F, 0), inputs=[kg.Input(F, law=1 / x)]))
    q = np.array([[1.0, 0.0], [0.0, 0.0]])
    batch = solver.rhs_batch(0.0, q, q)
    assert list(batch.failures) == [1]
    says(batch.failures[1], "laws[0] is inf", "division")
