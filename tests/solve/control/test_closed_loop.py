"""Closed loops in C: against the same loop in Python, closed forms of saturation, sampling, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from scipy.integrate import solve_ivp
from state_models import point_mass
from systems import example, solver_for

import kanegen as kg

START = {"q": (0.1, -0.1), "u": (0.3, -0.2)}
STRICT: dict[str, Any] = {"control": True, "method": "dop853", "rtol": 1e-11, "atol": 1e-13}


@cache
def hoist(floor: bool = False, limits: Any = None) -> kg.Solver:
    """A mass on a line with the force F and a pull w, brought to x = 0 by x'' = -2 x' - x."""
    x, u, force, wind = me.dynamicsymbols("x u F w")
    m, g = sm.symbols("m g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    contacts = {"contacts": [kg.Unilateral(x + 1, kg.Restitution(0.5), name="floor")]} if floor else {}
    model = kg.Model(
        name="hoist",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff() - u],
        bodies=[me.Particle("load", P, m)],
        loads=[(P, (force + wind) * N.x)],
        gravity=-g * N.x,
        inputs=[force, kg.Input(wind, default=0.0)],
        parameters={m: 1.0, g: 0.0},
        control=kg.Servo([x], theta=[(-2, -1)], controls=[force], limits=limits),
        **contacts,
    )
    return kg.build(model)


# -- the loop itself -----------------------------------------------------------------------------------------


def test_the_loop_in_c_is_the_loop_in_python() -> None:
    solver, y = solver_for("energy_servo"), np.array([0.3, -0.4])

    def motion(t: float, state: np.ndarray) -> np.ndarray:
        q, u = state[:2].copy(), state[2:].copy()
        return np.concatenate(solver.rhs(t, q, u, solver.control(t, q, u, y=y)))

    peer = solve_ivp(motion, (0.0, 2.0), [*START["q"], *START["u"]], method="DOP853", rtol=1e-11, atol=1e-13)
    run = solver.integrate((0.0, 2.0), START["q"], START["u"], y=y, **STRICT)
    np.testing.assert_allclose([*run.q[-1], *run.u[-1]], peer.y[:, -1], rtol=0, atol=1e-9)
    assert run.control.names == ("tau1", "tau2")
    for k in (0, len(run.t) // 2, -1):
        np.testing.assert_allclose(run.control.values[k], solver.control(run.t[k], run.q[k], run.u[k], y=y), rtol=1e-12)
        (psi,) = solver.servo_residuals(run.t[k], run.q[k], run.u[k])[0]
        assert run.control.errors[k, 0] == pytest.approx(psi, rel=1e-12)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_energy_follows_its_law_for_any_y(seed: int | None) -> None:
    solver = solver_for("energy_servo")
    y = None if seed is None else np.random.default_rng(seed).uniform(-1.0, 1.0, 2)
    run = solver.integrate((0.0, 5.0), START["q"], START["u"], y=y, **STRICT)
    energy = np.array([solver.energy(t, q, u, (0.0, 0.0)) for t, q, u in zip(run.t, run.q, run.u, strict=True)])
    wanted, Theta = solver.parameters["E_f"], solver.parameters["Theta"]
    np.testing.assert_allclose(energy, wanted + (energy[0] - wanted) * np.exp(Theta * run.t), rtol=1e-8)


def test_other_inputs_come_from_a_mapping() -> None:
    solver = hoist()
    run = solver.integrate((0.0, 3.0), [1.0], [0.0], {"w": (np.array([0.0, 3.0]), np.array([0.0, 1.5]))}, **STRICT)
    np.testing.assert_allclose(run.q[:, 0], (1.0 + run.t) * np.exp(-run.t), atol=1e-9)
    # x'' = F + w
    np.testing.assert_allclose(run.control.values[:, 0], (run.t - 1.0) * np.exp(-run.t) - 0.5 * run.t, atol=1e-8)


# -- sampled control -----------------------------------------------------------------------------------------


def test_sampled_controls_are_held_between_multiples_of_the_sample_time() -> None:
    solver, period = hoist(), 0.25
    F = np.array([[1.0, period], [0.0, 1.0]])  # exact for a force that is held
    G = np.array([0.5 * period**2, period])
    state, states, forces = np.array([1.0, 0.5]), [], []
    for _ in range(9):
        force = -2.0 * state[1] - state[0]
        states.append(state)
        forces.append(force)
        state = F @ state + G * force
    times = period * np.arange(9)
    run = solver.integrate((0.0, 2.0), [1.0], [0.5], sample_time=period, t_eval=times, **STRICT)
    np.testing.assert_allclose(np.hstack([run.q, run.u]), states, atol=1e-11)
    np.testing.assert_allclose(run.control.values[:, 0], forces, atol=1e-11)
    between = solver.integrate((0.0, 2.0), [1.0], [0.5], sample_time=period, t_eval=[0.1, 0.26, 1.9], **STRICT)
    np.testing.assert_allclose(between.control.values[:, 0], [forces[0], forces[1], forces[7]], atol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "dop853"])
def test_samples_need_not_divide_the_run_nor_steps_the_samples(method: str) -> None:
    step = {"step": 0.07} if method == "rk4" else {"rtol": 1e-10, "atol": 1e-12}
    run = hoist().integrate((0.5, 1.6), [1.0], [0.5], control=True, sample_time=0.3, method=method, **step)
    assert run.t[-1] == 1.6
    for time in (0.8, 1.1, 1.4):
        assert np.abs(run.t - time).min() < 1e-12
    assert len(np.unique(run.control.values[:, 0])) == 4  # the end is not an instant of the samples
    x, v = 1.0, 0.5
    for length in (0.3, 0.3, 0.3, 0.2):
        force = -2.0 * v - x
        x, v = x + v * length + 0.5 * force * length**2, v + force * length
    np.testing.assert_allclose([run.q[-1, 0], run.u[-1, 0]], [x, v], atol=1e-11)


def test_faster_samples_approach_the_continuous_loop_in_first_order() -> None:
    solver = solver_for("energy_servo")
    exact = solver.integrate((0.0, 1.0), START["q"], START["u"], **STRICT).q[-1]
    errors = [
        np.abs(solver.integrate((0.0, 1.0), START["q"], START["u"], sample_time=T, **STRICT).q[-1] - exact).max()
        for T in (0.02, 0.01, 0.005)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.1)


def test_the_stiff_method_runs_between_samples() -> None:
    model = example("energy_servo").model()
    solver = kg.build(model, functions=("rhs", "control", "servo_residuals", "servo_gains", "jacobians"))
    options: dict[str, Any] = {"control": True, "sample_time": 0.05, "rtol": 1e-8, "atol": 1e-10}
    stiff = solver.integrate((0.0, 1.0), START["q"], START["u"], method="rodas", **options)
    plain = solver.integrate((0.0, 1.0), START["q"], START["u"], method="dop853", **options)
    np.testing.assert_allclose(stiff.q[-1], plain.q[-1], atol=1e-6)


# -- saturation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["model", "run", "name"])
def test_the_first_saturated_interval_ends_where_the_closed_form_says(given: str) -> None:
    solver = hoist(limits=1.0) if given == "model" else hoist()
    limits = {"model": None, "run": [(-1.0, 1.0)], "name": {"F": 1.0}}[given]
    run = solver.integrate((0.0, 8.0), [-10.0], [0.0], limits=limits, **STRICT)
    assert np.abs(run.control.values).max() == 1.0
    first = run.control.saturation[0]
    # x = t^2 / 2 - 10 until -2 x' - x = 1
    assert (first.control, first.t_start, first.limit) == ("F", 0.0, 1.0)
    assert first.t_end == pytest.approx(np.sqrt(22.0) - 2.0, abs=1e-9)
    total = sum(item.duration for item in run.control.saturation)
    assert run.control.warnings[0].startswith(
        f"control F was at a limit for {total:.4g} s in {len(run.control.saturation)} interval(s)"
    )


def test_without_saturation_limits_change_nothing() -> None:
    free, limited = (hoist().integrate((0.0, 2.0), [1.0], [0.0], limits=x, **STRICT) for x in (None, 1.1))
    np.testing.assert_array_equal(free.q, limited.q)
    assert limited.control.saturation == ()
    assert limited.control.warnings == ()


def test_a_target_out_of_reach_is_reported() -> None:
    heavy = hoist().with_parameters(g=9.81)
    for options in ({}, {"sample_time": 0.01}):
        run = heavy.integrate((0.0, 2.0), [0.5], [0.0], limits=5.0, **STRICT, **options)
        np.testing.assert_allclose(run.q[-1, 0], 0.5 + 0.5 * (5.0 - 9.81) * 4.0, atol=1e-9)
        (interval,) = run.control.saturation
        assert (interval.t_start, interval.t_end, interval.limit) == (0.0, 2.0, 5.0)
        assert "the target was not reached: F stayed at the limit until the end of the run" in run.control.warnings[1]
        assert "x(t) = -9.12" in run.control.warnings[1]


def test_without_dense_output_saturation_is_resolved_to_steps() -> None:
    run = hoist().integrate((0.0, 8.0), [-10.0], [0.0], limits=1.0, dense_output=False, **STRICT)
    assert run.control.saturation[0].t_end in run.t
    assert run.control.saturation[0].t_end == pytest.approx(np.sqrt(22.0) - 2.0, abs=0.5)


# -- with impacts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample_time", [None, 0.01])
def test_a_servo_goes_on_after_an_impact(sample_time: float | None) -> None:
    run = hoist(floor=True).integrate((0.0, 12.0), [0.5], [-8.0], sample_time=sample_time, **STRICT)
    (impact,) = [event for event in run.events if event.kind == "impact"]
    assert impact.u_after[0] == pytest.approx(-0.5 * impact.u_before[0], rel=1e-9)
    assert np.abs(run.q[-1, 0]) < 1e-3
    assert len(run.control.values) == len(run.t)
    if sample_time is None:
        after = run.t > impact.t
        t = run.t[after] - impact.t
        exact = np.exp(-t) * (-1.0 + (impact.u_after[0] - 1.0) * t)
        np.testing.assert_allclose(run.q[after, 0], exact, atol=1e-7)


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"control": "servo"}, ("control", "'servo'", "True", "False")),
        ({"control": None}, ("control", "None", "True", "False")),
        ({"control": False, "sample_time": 0.1}, ("sample_time", "control=True")),
        ({"control": False, "limits": 1.0, "y": 0.0}, ("limits", "y")),
        ({"control": False, "tau0": [1.0]}, ("tau0",)),
        ({"sample_time": 0.0}, ("sample_time", "0.0")),
        ({"limits": [1.0, 1.0]}, ("limits", "2", "1", "F")),
        ({"limits": {"G": 1.0}}, ("'G'",)),
        ({"limits": -1.0}, ("limits[0]", "-1.0")),
        ({"y": [1.0, 2.0]}, ("y", "1", "F")),
        ({"tau0": [1.0]}, ("tau0", "kg.ControlConstraints")),
        ({"r": [0.0, 0.0]}, ("r", "w")),
        ({"r": {"F": 1.0}}, ("r", "F")),
        ({"method": "rodas"}, ("rodas", "closed loop")),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        hoist().integrate((0.0, 1.0), [1.0], [0.0], **{"control": True, **options})


def test_samples_do_not_go_back_in_time() -> None:
    with raises(kg.SolveError, "sampled", "backwards"):
        hoist().integrate((1.0, 0.0), [1.0], [0.0], control=True, sample_time=0.1)


def test_momentum_forms_have_no_closed_loop() -> None:
    solver = kg.build(example("energy_servo").model(), form="momentum_unreduced")
    with raises(kg.SolveError, "momenta"):
        solver.integrate((0.0, 1.0), START["q"], START["u"], control=True)


def test_models_without_a_control_law_say_so() -> None:
    with raises(kg.SolveError, "'spherical_pendulum'", "control=kg.Servo"):
        solver_for("spherical_pendulum").integrate((0.0, 1.0), [0.8, 0.2], [0.5, 1.5], control=True)


def test_a_python_input_that_raises_ends_the_run() -> None:
    def wind(t: float) -> float:
        if t > 0.5:
            raise ValueError("no wind")
        return 0.0

    with raises(kg.IntegrationError, "no wind"):
        hoist().integrate((0.0, 1.0), [1.0], [0.0], {"w": wind}, control=True)


def test_limits_are_not_looked_for_after_a_jump_at_the_end() -> None:
    """The target t^6 needs 30 N when the clock s is reset at the end, and more than the limit from t = 1.19 s on."""
    x, force, s = me.dynamicsymbols("x F s")
    t = me.dynamicsymbols._t
    model = point_mass(
        "jump",
        force,
        inputs=[kg.Input(force, default=0.0)],
        states={s: 1},
        events=[kg.Event("end", t - 1, terminal=True, reset={s: 0})],
        control=kg.Servo([x - t**6], theta=[(-4, -4)], controls=[force], limits=[60.0]),
        parameters={"m": 1.0},
    )
    run = kg.build(model).integrate((0.0, 3.0), [0.0], [0.0], s0=[0.0], control=True)
    assert run.last[0] == pytest.approx(1.0)
    assert run.control.saturation == ()
    assert run.control.warnings == ()


def test_samples_before_the_first_stored_time_count() -> None:
    """Limits are found from the start on, also if the run ends before anything is stored."""
    x, force = me.dynamicsymbols("x F")
    options = {
        "inputs": [kg.Input(force, default=0.0)],
        "events": [kg.Event("there", x - 0.5, terminal=True)],
        "control": kg.Servo([x - 1], theta=[(-10, -25)], controls=[force], limits=[5.0]),
        "parameters": {"m": 1.0},
    }
    solver = kg.build(point_mass("pulled", force, **options))
    loop = {"control": True, "sample_time": 0.01}
    whole, late = (solver.integrate((0.0, 2.0), [0.0], [0.0], t_eval=t, **loop) for t in (None, [1.0, 2.0]))
    assert late.q.shape == (0, 1)
    assert late.control.saturation == whole.control.saturation != ()
    assert solver.integrate_many((0.0, 2.0), np.zeros((2, 1)), np.zeros((2, 1)), **loop).success.all()
