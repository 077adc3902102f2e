"""Constraints with controls: the motions they ask for, in closed form or to 20 digits; what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import control_models as models
import mpmath as mp
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import given, settings
from hypothesis import strategies as some
from matplotlib.figure import Figure
from messages import raises
from systems import example, solver_for

import kanegen as kg

STRICT: dict[str, Any] = {"control": True, "rtol": 1e-11, "atol": 1e-13}
INERTIAS = np.array([10.0, 6.3, 8.5])


# -- the spacecraft ------------------------------------------------------------------------------------------


def spacecraft_rates(state: Any, decay: bool, inertias: Any) -> list[Any]:
    """(w', tau') by hand: Bajodah (2003), (529)-(539), without the term of (535) that vanishes; any numbers."""
    w, tau = state[:3], state[3:]
    turning = [
        (inertias[(k + 1) % 3] - inertias[(k + 2) % 3]) / inertias[k] * w[(k + 1) % 3] * w[(k + 2) % 3] + tau[k]
        for k in range(3)
    ]
    A = [i * x for i, x in zip(inertias, w, strict=True)]
    B = -sum(i * (a * b + x * b) for i, a, b, x in zip(inertias, turning, tau, w, strict=True))
    y = [-x if decay else 0 * x for x in tau]
    along = (B - sum(a * b for a, b in zip(A, y, strict=True))) / sum(a * a for a in A)
    return [*turning, *(b + along * a for a, b in zip(A, y, strict=True))]


@cache
def spacecraft_run(y: str) -> kg.Solution:
    start = example("spacecraft_detumbling").INITIAL
    span = {"zero": 5.0, "decay": 8.0}[y]
    solver = solver_for("spacecraft_detumbling", y=y)
    return solver.integrate((0.0, span), start["q"], start["u"], tau0=start["r"], method="dop853", **STRICT)


@pytest.mark.parametrize("y", ["zero", "decay"])
@settings(max_examples=20, deadline=None)
@given(state=some.lists(some.floats(0.05, 1.0), min_size=6, max_size=6), signs=some.integers(0, 63))
def test_the_derivatives_of_the_controls_are_those_by_hand(y: str, state: list[float], signs: int) -> None:
    values = np.array(state) * [1.0 - 2.0 * (signs >> k & 1) for k in range(6)]
    function = solver_for("spacecraft_detumbling", y=y)._functions.get("rhs_controlled")
    found = function.value(0.0, (0.1, 0.2, 0.3), values[:3], values[3:])[3:]
    np.testing.assert_allclose(found, spacecraft_rates(values, y == "decay", INERTIAS), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("y", ["zero", "decay"])
def test_the_kinetic_energy_decays_as_asked(y: str) -> None:
    run = spacecraft_run(y)
    K = run.u**2 @ INERTIAS / 2.0
    np.testing.assert_allclose(K, K[0] * np.exp(-run.t), rtol=1e-6)
    assert run.success
    assert run.control.names == ("tau1", "tau2", "tau3")
    assert run.control.errors is not None
    assert np.abs(run.control.errors).max() < 1e-9


@pytest.mark.parametrize("y", ["zero", "decay"])
def test_the_controls_agree_with_twenty_digits(y: str) -> None:
    with mp.workdps(20):
        inertias = [mp.mpf(10), mp.mpf("6.3"), mp.mpf("8.5")]
        start = [mp.mpf("0.1")] * 5 + [mp.mpf("-5.74") / 17]
        exact = mp.odefun(lambda _, state: spacecraft_rates(state, y == "decay", inertias), 0, start)(1)
    run = spacecraft_run(y)
    _, u = run(1.0)
    assert run.dense is not None
    tau = run.dense(np.array([1.0]))[0, 6:]
    np.testing.assert_allclose([*u, *tau], [float(x) for x in exact], rtol=0, atol=2e-9)


def test_only_the_free_part_makes_controls_grow() -> None:
    grows, decays = (np.abs(spacecraft_run(y).control.values).max(axis=1) for y in ("zero", "decay"))
    assert grows[-1] > 5.0 * grows[0]
    assert decays[-1] < 0.1 * decays[0]


@pytest.mark.parametrize("case", example("spacecraft_detumbling").CASES)
def test_the_example_passes_its_checks_and_draws(case: str) -> None:
    module = example("spacecraft_detumbling")
    run = module.simulate(**module.CASES[case])
    for text, value, bound in module.checks(*run):
        assert abs(value) <= bound, text
    figure = Figure()
    module.plot(figure, {case: run})
    assert len(figure.axes) == 3


def test_without_rotation_no_controls_exist_and_the_status_says_so() -> None:
    start = example("spacecraft_detumbling").INITIAL
    solver = solver_for("spacecraft_detumbling", y="zero")
    with raises(kg.IntegrationError, "servo-constraints") as caught:
        solver.integrate((0, 1), start["q"], (0, 0, 0), tau0=start["r"], start_tolerance=None, **STRICT)
    assert caught.value.solution.status is kg.Outcome.RIGHT_HAND_SIDE_FAILED
    at_rest = solver.integrate((0, 1), start["q"], (0, 0, 0), **STRICT)
    np.testing.assert_array_equal(at_rest.control.values, 0.0)


# -- controls that appear after differentiation, in velocities, kinematics and passive constraints -----------


@cache
def slider(**options: Any) -> kg.Solver:
    return kg.build(models.slider(**options))


def test_a_position_target_is_differentiated_until_the_control_appears() -> None:
    run = slider().integrate((0, 5), [0.0], [1.0], **STRICT)
    np.testing.assert_allclose(run.q[:, 0], np.sin(run.t), atol=1e-11)
    np.testing.assert_allclose(run.control.values[:, 0], np.sin(run.t), atol=1e-11)  # k x + m x'' = (3 - 2) sin t


def test_a_violated_target_decays_by_theta() -> None:
    run = slider(theta=((-6, -11, -6),)).integrate((0, 4), [0.3], [0.4], tau0=[0.0], **STRICT)
    error = [run.q[0, 0], run.u[0, 0] - 1.0, -1.5 * run.q[0, 0]]  # x - sin t and two derivatives at t = 0
    modes = np.array([-1.0, -2.0, -3.0])
    weights = np.linalg.solve(np.vander(modes, 3, increasing=True).T, error)
    np.testing.assert_allclose(run.q[:, 0] - np.sin(run.t), np.exp(np.outer(run.t, modes)) @ weights, atol=1e-10)


def test_controls_in_the_kinematics_bring_their_second_derivatives() -> None:
    solver = models.solver_of("steered_particle")
    assert solver.description.input_names(solver.description.control_constraints.states) == ("F", "delta", "delta1")
    tau0 = solver.consistent_controls(0.0, [2.0, 0.0], [2.0], [0.0, 1.4, 0.0])
    np.testing.assert_allclose(tau0, [0.0, np.pi / 2, 1.0], atol=1e-12)
    run = solver.integrate((0, 6), [2.0, 0.0], [2.0], tau0=tau0, **STRICT)
    np.testing.assert_allclose(run.q, 2.0 * np.stack([np.cos(run.t), np.sin(run.t)], axis=1), atol=1e-10)
    np.testing.assert_allclose(run.control.values[:, 1], np.pi / 2 + run.t, atol=1e-10)


def test_controls_in_a_velocity_enter_the_accelerations_by_their_rates() -> None:
    run = models.solver_of("belt").integrate((0, 6), [0.0], [1.0], tau0=[0.5], **STRICT)
    np.testing.assert_allclose(run.u[:, 0], np.cos(run.t), atol=1e-11)
    # tau' = -k x / m - u' with x = sin t
    exact = 0.5 + 1.5 * (np.cos(run.t) - 1.0) + 1.0 - np.cos(run.t)
    np.testing.assert_allclose(run.control.values[:, 0], exact, atol=1e-10)


def test_passive_constraints_may_contain_controls() -> None:
    run = models.solver_of("variable_gear").integrate((0, 6), [0.0, 0.0], [3.0, 2.0], tau0=[1.5], **STRICT)
    target = 2.0 + np.sin(run.t) / 2.0
    K = (1.2 * 3.0**2 + 0.7 * 2.0**2) / 2.0  # the gear does no work
    np.testing.assert_allclose(run.u[:, 1], target, atol=1e-11)
    np.testing.assert_allclose(run.control.values[:, 0], np.sqrt((2.0 * K / target**2 - 0.7) / 1.2), atol=1e-10)


def test_a_start_beside_a_passive_constraint_is_judged_with_the_controls() -> None:
    with raises(kg.SolveError, "u1(t)", "residual", "-1"):
        models.solver_of("variable_gear").integrate((0, 1), [0.0, 0.0], [2.0, 2.0], tau0=[1.5], **STRICT)


def test_holonomic_constraints_with_controls_are_kept_through_singular_partitions() -> None:
    length = np.hypot(0.6, 1.2)
    run = models.solver_of("winch").integrate((0, 6), [0.6, -1.2], [0.0, 0.0], tau0=[length, 0.0], **STRICT)
    np.testing.assert_allclose(run.control.values[:, 0], 1.0 + (length - 1.0) * np.cos(2.0 * run.t), atol=1e-10)
    np.testing.assert_allclose(np.hypot(*run.q.T), run.control.values[:, 0], atol=1e-9)
    assert run.q[:, 0].min() < 0.0 < run.q[:, 0].max()  # at x = 0 the constraint determines no u


def test_without_constraints_y_drives_the_controls() -> None:
    run = models.solver_of("actuator").integrate((0, 3), [0.0], [0.0], {"v": 2.0}, tau0=[0.3], **STRICT)
    np.testing.assert_allclose(run.control.values[:, 0], 2.0 - 1.7 * np.exp(-2.0 * run.t), atol=1e-11)


def test_a_projection_sees_the_controls_of_the_state() -> None:
    """The constraint u1 = tau u2 is kept to rounding at a loose tolerance."""
    solver = models.solver_of("variable_gear").with_stabilization(kg.Projection())
    loose: dict[str, Any] = {"control": True, "rtol": 1e-5, "atol": 1e-7}
    run = solver.integrate((0, 6), [0.0, 0.0], [3.0, 2.0], tau0=[1.5], **loose)
    kept = np.abs(run.u[:, 0] - run.control.values[:, 0] * run.u[:, 1])
    drifting = models.solver_of("variable_gear").integrate((0, 6), [0.0, 0.0], [3.0, 2.0], tau0=[1.5], **loose)
    drift = np.abs(drifting.u[:, 0] - drifting.control.values[:, 0] * drifting.u[:, 1])
    assert kept.max() < 1e-12 < drift.max()


@pytest.mark.parametrize(("factor", "accepted"), [(2, True), (3, False)])
def test_dependent_rows_are_accepted_where_they_agree(factor: int, accepted: bool) -> None:
    x = me.dynamicsymbols("x")
    time = me.dynamicsymbols._t
    rows = [x - sm.sin(time), 2 * x - factor * sm.sin(time)]
    solver = kg.build(models.slider(rows))
    if accepted:
        run = solver.integrate((0, 2), [0.0], [1.0], **STRICT)
        np.testing.assert_allclose(run.q[:, 0], np.sin(run.t), atol=1e-10)
    else:
        with raises(kg.IntegrationError, "servo-constraints"):
            solver.integrate((0, 2), [0.0], [1.0], tau0=[0.0], **{**STRICT, "start_tolerance": None})


# -- consistent controls -------------------------------------------------------------------------------------


def test_consistent_controls_are_the_nearest() -> None:
    start = example("spacecraft_detumbling").INITIAL
    solver, guess = solver_for("spacecraft_detumbling", y="zero"), np.array([0.3, -0.2, 0.5])
    w = np.array(start["u"])
    found = solver.consistent_controls(0.0, start["q"], w, guess)
    row, right = INERTIAS * w, -0.5 * (INERTIAS * w**2).sum()
    np.testing.assert_allclose(found, guess + row * (right - row @ guess) / (row @ row), rtol=1e-13)


def test_controls_that_do_not_enter_cannot_be_made_consistent() -> None:
    solver = models.solver_of("steered_particle")
    with raises(kg.SolveError, "control constraints", "residual"):
        solver.consistent_controls(0.0, [2.0, 0.0], [0.0], [0.0, 1.4, 0.0])
    with raises(kg.SolveError, "'now'"):
        solver.consistent_controls("now", [2.0, 0.0], [0.0], [0.0, 1.4, 0.0])


def test_models_without_control_constraints_say_so() -> None:
    with raises(kg.SolveError, "control constraints"):
        solver_for("spherical_pendulum").consistent_controls(0.0, [0.8, 0.2], [0.5, 1.5])


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"tau0": [1.0, 2.0]}, ("tau0", "1", "tau")),
        ({"tau0": [0.5]}, ("1", "d2/dt2", "residual", "0.25")),
        ({"limits": [1.0]}, ("limits", "kg.Servo", "kg.ControlConstraints")),
        ({"method": "rodas"}, ("Jacobian",)),
        ({"r": {"tau": 1.0}}, ("r", "tau")),
        ({"r": [1.0]}, ("r", "mapping")),
    ],
)
def test_wrong_options_of_a_run_are_refused(options: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        slider().integrate((0, 1), [0.0], [1.0], **{**STRICT, **options})


def test_a_start_off_a_target_that_would_stay_off_is_refused() -> None:
    with raises(kg.SolveError, "1", "residual", "0.2", "theta="):
        slider().integrate((0, 1), [0.2], [1.0], **STRICT)


def test_derivatives_of_a_control_are_not_given() -> None:
    with raises(kg.SolveError, "r", "delta2"):
        models.solver_of("steered_particle").integrate((0, 1), [2.0, 0.0], [2.0], {"delta2": 1.0}, **STRICT)


def test_redundant_passive_constraints_are_refused() -> None:
    gear = models.variable_gear()
    speeds, (tau, _) = gear.speeds, (item.symbol for item in gear.inputs)
    model = kg.Model(
        name="twice_geared",
        frame=gear.frame,
        coordinates=gear.coordinates,
        speeds=speeds,
        kinematics=gear.kinematics,
        bodies=gear.bodies,
        nonholonomic_constraints=[speeds[0] - tau * speeds[1], 2 * speeds[0] - 2 * tau * speeds[1]],
        inputs=gear.inputs[:1],
        parameters=gear.parameters,
        control=gear.control,
    )
    with raises(kg.BuildError, "redundant", "control constraints"):
        kg.build(model, form="pseudoinverse")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"theta": [1.0]}, ("decay",)),
        ({"theta": [[-1.0], [-2.0]]}, ("2", "1")),
        ({"y": [0, 0]}, ("y", "2", "1")),
        ({"controls": [sm.Symbol("other")]}, ("other", "inputs")),
    ],
)
def test_wrong_records_are_refused(arguments: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        models.slider(**arguments)


def test_theta_of_another_order_is_refused_with_the_right_one() -> None:
    with raises(kg.ModelError, "1", "3"):
        kg.build(models.slider(theta=[-1.0]))


def test_gains_that_parameters_make_unstable_are_refused() -> None:
    """s^3 + k s^2 + 11 s + 6 has all roots on the left for 11 k > 6 (Routh)."""
    solver = kg.build(models.slider(theta=[(-sm.Symbol("k"), -11, -6)]))
    assert solver.with_parameters(k=0.56).parameters["k"] == 0.56
    with raises(kg.SolveError, "(-0.53, -11, -6)", "x(t) - sin(t)", "exponent"):
        solver.with_parameters(k=0.53)


def test_controls_that_never_enter_are_refused() -> None:
    q, v, u, w, tau = me.dynamicsymbols("q v u w tau")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    first, second = O.locatenew("first", q * N.x), O.locatenew("second", v * N.y)
    first.set_vel(N, u * N.x)
    second.set_vel(N, w * N.y)
    model = kg.Model(
        name="two",
        frame=N,
        coordinates=[q, v],
        speeds=[u, w],
        kinematics=[q.diff() - u, v.diff() - w],
        bodies=[me.Particle("a", first, 1), me.Particle("b", second, 1)],
        loads=[(first, tau * N.x)],
        inputs=[tau],
        control=kg.ControlConstraints([v - sm.sin(me.dynamicsymbols._t)]),
    )
    with raises(kg.ModelError, "tau", "control constraint"):
        kg.build(model)


def test_an_input_without_a_rate_is_named() -> None:
    model = models.actuator()
    (tau, v) = (item.symbol for item in model.inputs)
    fields = {"name": "pushed", "frame": model.frame, "coordinates": model.coordinates, "speeds": model.speeds}
    changed = kg.Model(
        **fields,
        kinematics=model.kinematics,
        bodies=model.bodies,
        loads=model.loads,
        inputs=model.inputs,
        parameters={"m": 2.0},
        control=kg.ControlConstraints([tau - v], controls=[tau]),
    )
    with raises(kg.ModelError, "v", "rate"):
        kg.build(changed)
