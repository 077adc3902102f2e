"""Inverse dynamics: prescribed motions against the oracle, closed loops and closed forms; what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import control_models as models
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from oracle import Oracle
from scipy.interpolate import CubicSpline, make_interp_spline
from systems import example, oracle_for, solver_for

import kanegen as kg

TIMES = np.linspace(0.0, 3.0, 31)
t = me.dynamicsymbols._t


@cache
def rod(along: bool = False) -> kg.Model:
    """A rod on a hinge in Cartesian coordinates of its end, held by a rope of length L and by redundant copies of it.

    Forces Fx, Fy act on the end, the motor torque M twice, by two inputs; ``along``: instead a force along the rod.
    """
    x, y, u, v = me.dynamicsymbols("x y u v")
    first, second, pull = me.dynamicsymbols("M1 M2 pull")
    m, L, g = sm.symbols("m L g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    tangent, radial = -y * N.x + x * N.y, x * N.x + y * N.y
    turning = [(P, (first + 2 * second) / L**2 * tangent)]
    bob = me.Particle("bob", P, m)
    return kg.Model(
        name=f"rod_{along}",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff() - u, y.diff() - v],
        bodies=[bob],
        loads=[(P, pull * radial)] if along else turning,
        gravity=-g * N.y,
        holonomic_constraints=[(x**2 + y**2 - L**2) / 2],
        inputs=[pull] if along else [first, second],
        parameters={m: 1.3, L: 0.8, g: 9.81},
        reactions={} if along else {"rod": kg.Reaction(bodies=(bob,), point=P, frame=N, loads=(P,))},
    )


@cache
def solver_of_rod(along: bool = False, form: str = "auto") -> kg.Solver:
    return kg.build(rod(along), form=form)


ANGLE = sm.sin(t) + t / 3
CIRCLE = {"x": sm.Symbol("L") * sm.cos(ANGLE), "y": sm.Symbol("L") * sm.sin(ANGLE)}


def angle_and_torque(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The angle, its rate, and the torque that drives it."""
    angle = np.sin(times) + times / 3.0
    return angle, np.cos(times) + 1.0 / 3.0, 1.3 * 0.64 * -np.sin(times) + 1.3 * 9.81 * 0.8 * np.cos(angle)


# -- motions whose controls are known ------------------------------------------------------------------------


def test_the_controls_give_the_motion_to_the_oracle() -> None:
    path = {"theta1": 0.3 * sm.sin(2 * t), "theta2": 0.5 * sm.cos(t)}
    found = solver_for("energy_servo").inverse_dynamics(path, [0.3, 1.1, 2.9])
    oracle: Oracle = oracle_for("energy_servo")
    for time, q, u, tau, udot in zip(found.t, found.q, found.u, found.controls, found.udot, strict=True):
        np.testing.assert_allclose(oracle(time, q, u, r=tau).udot, udot, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.q[:, 0], 0.3 * np.sin(2 * found.t), rtol=1e-14)
    np.testing.assert_allclose(found.udot[:, 1], -0.5 * np.cos(found.t), rtol=1e-14)
    assert found.feasible.all()
    assert (found.freedom == 0).all()


@pytest.mark.parametrize("degree", ["table", "cubic", "mapping"])
def test_samples_of_a_closed_loop_give_its_controls_back(degree: str) -> None:
    """Speeds that are no rates of coordinates, a passive constraint, one control for three coordinates."""
    solver, start = solver_for("particle_tracking"), example("particle_tracking").INITIAL
    samples = np.linspace(0.0, 3.0, 601)
    run = solver.integrate(
        (0.0, 3.0), start["q"], start["u"], control=True, method="dop853", rtol=1e-12, atol=1e-13, t_eval=samples
    )
    path: Any = (samples, run.q)
    if degree == "cubic":
        path = make_interp_spline(samples, run.q, k=7)
    elif degree == "mapping":
        path = {"r": CubicSpline(samples, run.q[:, 0]), "theta": (samples, run.q[:, 1]), "phi": (samples, run.q[:, 2])}
    inner = slice(20, -20)
    found = solver.inverse_dynamics(path, samples[inner], path_tolerance=1e-3 if degree == "mapping" else 1e-6)
    accuracy = 1e-3 if degree == "mapping" else 1e-6
    np.testing.assert_allclose(found.u, run.u[inner], atol=accuracy)
    np.testing.assert_allclose(found.controls, run.control.values[inner], atol=accuracy)
    forces = [
        solver.multipliers(time, q, u, tau)
        for time, q, u, tau in zip(samples, run.q, run.u, run.control.values, strict=True)
    ]
    np.testing.assert_allclose(found.multipliers, forces[inner], atol=10 * accuracy)
    assert np.abs(found.residual).max() < 10 * accuracy


@pytest.mark.parametrize("form", ["auto", "pseudoinverse"])
def test_of_a_family_the_controls_of_least_norm(form: str) -> None:
    found = solver_of_rod(form=form).inverse_dynamics(CIRCLE, TIMES)
    angle, rate, torque = angle_and_torque(TIMES)
    np.testing.assert_allclose(found.controls, np.outer(torque, [0.2, 0.4]), atol=1e-11)
    assert (found.freedom == 1).all()
    assert found.feasible.all()
    # J = (x, y): the multiplier is the force along the rod over its length
    tension = -1.3 * 0.8 * rate**2 + 1.3 * 9.81 * np.sin(angle)
    np.testing.assert_allclose(found.multipliers[:, 0], tension / 0.8, atol=1e-11)
    np.testing.assert_allclose(
        found.reactions["rod"].force[:, :2],
        (tension * [np.cos(angle), np.sin(angle)]).T,
        atol=1e-10,
    )


def test_a_control_that_acts_along_a_constraint_is_left_alone() -> None:
    found = solver_of_rod(along=True).inverse_dynamics({"x": 0, "y": -0.8}, TIMES)
    np.testing.assert_array_equal(found.controls, 0.0)
    assert (found.freedom == 1).all()
    assert found.feasible.all()  # it hangs
    np.testing.assert_allclose(found.multipliers[:, 0], -1.3 * 9.81 / 0.8, rtol=1e-13)


def test_forces_that_balance_but_for_rounding_are_feasible() -> None:
    """A constant force holds a spring without help of the control, which acts in another direction."""
    x, y, u, v, control = me.dynamicsymbols("x y u v control")
    k, F, N, O = sm.Symbol("k"), sm.Symbol("F"), me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    model = kg.Model(
        name="held",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff() - u, y.diff() - v],
        bodies=[me.Particle("bob", P, 1)],
        loads=[(P, (F - k * x) * N.x + control * N.y)],
        inputs=[control],
        parameters={k: 100.0, F: 100.0},
    )
    solver = kg.build(model)
    for error, feasible in ((1e-12, True), (1e-7, False)):
        found = solver.with_parameters(F=100.0 * (1.0 + error)).inverse_dynamics({"x": 1.0, "y": 0.0}, [0.0, 1.0])
        assert found.feasible.tolist() == [feasible] * 2


def test_what_the_controls_cannot_supply_is_the_residual() -> None:
    solver = solver_for("cart_pole", task="cart")
    p = solver.parameters
    found = solver.inverse_dynamics({"x": 0, "theta": 0.2}, [0.0, 1.0])
    assert not found.feasible.any()
    torque = -p["m_p"] * p["g"] * p["l"] * np.sin(0.2)  # holds the pole that leans
    np.testing.assert_allclose(found.residual, [[0.0, torque]] * 2, atol=1e-12)
    np.testing.assert_allclose(found.controls, 0.0, atol=1e-12)


def test_splines_and_functions_of_the_model_may_stand_in_a_path() -> None:
    samples = np.linspace(0.0, 3.0, 61)
    angle, turn = kg.Spline(samples, np.sin(samples), name="angle"), kg.Spline(samples, np.cos(samples), name="turn")
    solver = solver_for("energy_servo")
    bare = solver.inverse_dynamics({"theta1": angle, "theta2": turn}, TIMES)
    within = solver.inverse_dynamics({"theta1": sm.Integer(1) * angle(t), "theta2": 2 * turn(t) - turn(t)}, TIMES)
    exact = solver.inverse_dynamics({"theta1": sm.sin(t), "theta2": sm.cos(t)}, TIMES)
    np.testing.assert_allclose(within.controls, bare.controls, atol=1e-12)
    np.testing.assert_allclose(bare.q, exact.q, atol=1e-6)
    np.testing.assert_allclose(bare.controls, exact.controls, atol=1e-2)  # second derivatives of cubic splines
    with raises(kg.SolveError, "theta1", "0.0", "3.0", "4.0"):
        solver.inverse_dynamics({"theta1": angle, "theta2": 0}, [4.0])


def test_more_coordinates_than_speeds() -> None:
    """The steering angle is in the kinematics, so F alone is solved for."""
    solver = models.solver_of("steered_particle")
    path = {"x": sm.Symbol("R") * sm.cos(t**2 / 4), "y": sm.Symbol("R") * sm.sin(t**2 / 4)}
    times = np.array([0.5, 1.0, 2.0])
    knots = np.linspace(0.0, 3.0, 31)
    delta = CubicSpline(knots, np.pi / 2 + knots**2 / 4)
    found = solver.inverse_dynamics(path, times, {"delta": delta})
    assert found.control_names == ("F",)
    np.testing.assert_allclose(found.u[:, 0], 2.0 * times / 2.0, atol=1e-9)
    np.testing.assert_allclose(found.controls[:, 0], 1.5 * 2.0 / 2.0, atol=1e-6)
    with raises(kg.SolveError, "kinematics", "x"):
        solver.inverse_dynamics({"x": t, "y": t}, times, {"delta": delta})


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ({"x": 0}, ("y",)),
        ({"x": 0, "z": 0}, ("'z'",)),
        ({"x": sm.Symbol("k"), "y": 0}, ("time", "k")),
        ({"x": me.dynamicsymbols("y"), "y": 0}, ("time", "y")),
        ({"x": "0", "y": 0}, ("x", "str")),
        ({"x": sm.sqrt(t - 1), "y": 0}, ("x", "nan", "t = 0.0")),
        ((TIMES, TIMES), ("(31,)", "(n,)", "(n, 2)")),
        ((TIMES[::-1], np.zeros((31, 2))), ("times", "increasing")),
        ((TIMES[:10], np.zeros((10, 2))), ("0.0", "0.9", "1.0")),
        ({"x": 0.1, "y": -0.8}, ("1", "x(t)", "residual", "0.005", "t = 0.0")),
        ({"x": t, "y": 0.8}, ("d/dt", "residual", "3", "t = 3.0")),
    ],
)
def test_wrong_paths_are_refused(path: Any, names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        solver_of_rod().inverse_dynamics(path, TIMES)


@pytest.mark.parametrize("times", [[np.nan], [[0.0]], [], "now"])
def test_wrong_times_are_refused(times: Any) -> None:
    with raises(kg.SolveError, "times"):
        solver_of_rod().inverse_dynamics(CIRCLE, times)


def test_an_inconsistent_path_can_be_evaluated_all_the_same() -> None:
    found = solver_of_rod().inverse_dynamics({"x": 0.1, "y": -0.8}, [0.0], path_tolerance=None)
    assert np.isfinite(found.controls).all()


def test_singular_kinematics_are_named_with_the_time() -> None:
    solver = solver_for("particle_tracking")
    with raises(kg.SolveError, "1", "2", "t = 1.0", "r=0.0"):
        solver.inverse_dynamics({"r": 1 - t, "theta": 0, "phi": 0.5}, [0.5, 1.0], path_tolerance=None)


def test_models_without_controls_say_so() -> None:
    with raises(kg.SolveError, "spherical_pendulum", "control_forces"):
        solver_for("spherical_pendulum").inverse_dynamics({"theta": 0.5, "phi": t}, [0.0])


def test_controls_are_not_given() -> None:
    with raises(kg.SolveError, "r", "M1"):
        solver_of_rod().inverse_dynamics(CIRCLE, TIMES, {"M1": 1.0})
