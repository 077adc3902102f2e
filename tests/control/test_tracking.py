"""Feedback about optimal motions against closed forms, costs of disturbed motions, and refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from controlled import F, T, block, everything, omega, pendulum, plane, rod, theta, v, x
from messages import raises
from numpy.testing import assert_allclose
from scipy.integrate import simpson
from scipy.linalg import solve_continuous_are

import kanegen as kg


@cache
def push() -> kg.OptimalMotion:
    return kg.OptimalControl(
        block(), kg.Integral(F**2), 1.0, {x: 0, v: 0}, {x: 1, v: 0}, bounds={F: (-7, 7)}, intervals=10
    ).solve()


@cache
def swing() -> kg.OptimalMotion:
    ends = {theta: 0, omega: 0}, {theta: 2, omega: 0}
    return kg.OptimalControl(pendulum(), kg.Integral(T**2), 1.0, *ends, intervals=40).solve()


def test_gains_of_a_double_integrator_are_those_of_the_steady_regulator() -> None:
    """With the steady solution at the end, S is constant: [[sqrt 2, 1], [1, sqrt 2]] for Q = diag(1, 0) and R = 1."""
    feedback = push().to_feedback({x: 1, "v": 0}, {F: 1})
    root = np.sqrt(2.0)
    assert_allclose(feedback.cost_to_go, np.tile([[root, 1.0], [1.0, root]], (21, 1, 1)), atol=1e-6)
    assert_allclose(feedback.gain(0.37), [[1.0, root]], atol=1e-6)


def test_the_final_weights_and_riccati_equation_have_a_closed_form() -> None:
    """A disturbed speed costs 1/(1/c + (T - t)/R) by feedback without weights on the way (m v' = F, m = 1)."""
    feedback = push().to_feedback(np.zeros((2, 2)), [[0.5]], np.diag([0.0, 3.0]))
    expected = 1.0 / (1.0 / 3.0 + (1.0 - feedback.times) / 0.5)
    assert_allclose(feedback.cost_to_go[:, 1, 1], expected, rtol=1e-6)


@pytest.mark.parametrize("weight", [1e2, 1e6, 1e12])
def test_final_weights_can_be_as_large_as_one_likes(weight: float) -> None:
    """Without weights on the way, S^-1 is that at the end plus the controllability Gramian of the double integrator."""
    feedback = push().to_feedback(np.zeros((2, 2)), [[1.0]], np.diag([weight, weight]))
    gramian, back = np.array([[1 / 3, -1 / 2], [-1 / 2, 1.0]]), np.array([[1.0, -1.0], [0.0, 1.0]])
    expected = np.linalg.inv(back @ back.T / weight + gramian)
    assert_allclose(feedback.cost_to_go[0], expected, rtol=1e-8)


def test_states_of_very_different_sizes_do_not_disturb_each_other() -> None:
    """A block in a plane that moves 1e-5 m one way and 1 m the other, each way as a block on a line."""
    small, (X, Y), (V, W) = 1e-5, rod().coordinates, rod().speeds
    bounds = {F: (-7, 7), T: (-7 * small, 7 * small)}
    cost = kg.Integral(F**2 + (T / small) ** 2)
    ends: tuple[Any, ...] = {X: 0, Y: 0, V: 0, W: 0}, {X: 1, Y: small, V: 0, W: 0}
    motion = kg.OptimalControl(plane(), cost, 1.0, *ends, bounds=bounds, intervals=10).solve()
    gains, alone = motion.to_feedback().gains, push().to_feedback().gains
    assert_allclose(gains[:, 0][:, [0, 2]], alone[:, 0], rtol=1e-6)
    assert_allclose(gains[:, 1][:, [1, 3]], alone[:, 0], rtol=1e-6)
    assert_allclose(gains[:, 0][:, [1, 3]], 0.0, atol=1e-6)


@pytest.mark.parametrize("start", [(1e-3, 0.0), (0.0, 1e-2), (-1e-3, 5e-3)])
def test_the_cost_to_go_is_the_cost_of_a_disturbed_motion(start: tuple[float, float]) -> None:
    """The rest is of third order in the disturbance, and linear interpolation of the gains."""
    motion, Q, R, final = swing(), np.diag([3.0, 0.5]), np.array([[0.2]]), np.diag([10.0, 1.0])
    feedback = motion.to_feedback(Q, R, final)
    times = np.linspace(0.0, 1.0, 401)
    run = motion.solver.integrate((0, 1), [start[0]], [start[1]], feedback, t_eval=times, rtol=1e-11, atol=1e-13)
    z = np.hstack([run.q, run.u]) - np.array([motion.state_at(t) for t in times])
    w = (run["T"] - motion.inputs["T"](times))[:, None]
    costs = np.einsum("ni,ij,nj->n", z, Q, z) + np.einsum("ni,ij,nj->n", w, R, w)
    found = simpson(costs, x=times) + z[-1] @ final @ z[-1]
    assert found == pytest.approx(np.array(start) @ feedback.cost_to_go[0] @ np.array(start), rel=1e-2)


def test_the_end_is_held_with_the_inputs_that_hold_it() -> None:
    """A torque of 9.81 sin 2 holds the pendulum at theta = 2 rad; the motion ends with another one."""
    motion = swing()
    feedback = motion.to_feedback(input_weights={T: 1e-4})
    run = motion.solver.integrate((0, 10), [0.1], [0.0], feedback, sample_time=0.005)
    assert_allclose([run["theta"][-1], run["omega"][-1]], [2.0, 0.0], atol=1e-6)
    assert_allclose(feedback.final_inputs, [9.81 * np.sin(2.0)], rtol=1e-9)
    Q, R = np.diag(1.0 / motion.trajectory.scale**2), np.array([[1e-4]])
    A = np.array([[0.0, 1.0], [-9.81 * np.cos(2.0), 0.0]])
    assert_allclose(feedback.cost_to_go[-1], solve_continuous_are(A, np.array([[0.0], [1.0]]), Q, R), rtol=1e-6)


def test_a_motion_of_nanometers_that_ends_moving_is_not_held() -> None:
    """Whether the end is at rest depends on the rates of the motion, whatever the units."""
    ends: tuple[Any, ...] = {x: 0, v: 0}, {x: 1e-9, v: 2e-9}
    motion = kg.OptimalControl(block(), kg.Integral((1e9 * F) ** 2), 1.0, *ends, intervals=5).solve(1.0)
    assert_allclose(motion.to_feedback().final_inputs, motion.inputs_at(1.0))


def test_inputs_stay_within_their_bounds() -> None:
    feedback = push().to_feedback({x: 1e6})
    assert feedback(0.0, np.array([1.0]), np.array([0.0])) == -7.0
    assert feedback(0.5, np.array([-9.0]), np.array([0.0])) == 7.0
    assert repr(feedback) == "<TrackingFeedback of F over 1 s>"


def test_feedback_follows_a_motion_on_constraints() -> None:
    """A pendulum in Cartesian coordinates, whose end is no equilibrium of the linear model in all coordinates."""
    start, end = ({"x": 0, "y": -1, "v": 0, "w": 0}, {"x": 1, "y": 0, "v": 0, "w": 0})
    motion = kg.OptimalControl(rod(), kg.Integral(T**2), 1.0, start, end, intervals=20).solve()
    run = motion.solver.integrate((0, 1), [0.05, -np.sqrt(1 - 0.05**2)], [0, 0], motion.to_feedback(), rtol=1e-8)
    open_loop = motion.solver.integrate((0, 1), [0.05, -np.sqrt(1 - 0.05**2)], [0, 0], motion.inputs, rtol=1e-8)
    assert abs(run["y"][-1]) < 0.5 * abs(open_loop["y"][-1])


@pytest.mark.parametrize("angle", [0.3, 1.2])
def test_the_end_on_constraints_is_held_at_the_cost_of_the_reduced_model(angle: float) -> None:
    """A torque holds the pendulum in Cartesian coordinates; Riccati's algebraic equation for its angle."""
    s, c = np.sin(angle), np.cos(angle)
    start, end = ({"x": 0, "y": -1, "v": 0, "w": 0}, {"x": s, "y": -c, "v": 0, "w": 0})
    motion = kg.OptimalControl(rod(), kg.Integral(T**2), 1.0, start, end, bounds={T: (-30, 30)}, intervals=20).solve()
    feedback, Q = motion.to_feedback(), np.diag(1.0 / motion.trajectory.scale**2)
    tangent = np.array([[c, 0.0], [s, 0.0], [0.0, c], [0.0, s]])  # of (x, y, v, w) along the angle and its rate
    A, B = np.array([[0.0, 1.0], [-9.81 * c, 0.0]]), np.array([[0.0], [1.0]])
    expected = solve_continuous_are(A, B, tangent.T @ Q @ tangent, np.array([[1.0 / 900.0]]))
    assert_allclose(tangent.T @ feedback.cost_to_go[-1] @ tangent, expected, rtol=1e-6)
    assert np.isfinite(feedback.gains).all()


def test_feedback_that_is_too_fast_for_the_motion_is_refused() -> None:
    with raises(kg.SolveError, "Riccati's equation was not solved", "state_weights"):
        push().to_feedback({x: 1e30})


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"state_weights": {"z": 1}}, ["state_weights", "z"]),
        ({"state_weights": np.eye(3)}, ["state_weights", "(2, 2)"]),
        ({"state_weights": [[1, 2], [0, 1]]}, ["state_weights", "symmetric"]),
        ({"state_weights": {x: -1}}, ["state_weights", "negative"]),
        ({"input_weights": {F: 0}}, ["input_weights", "positive"]),
        ({"final_weights": {x: np.nan}}, ["final_weights", "finite"]),
    ],
)
def test_wrong_weights_are_refused(arguments: dict[str, Any], texts: list[str]) -> None:
    with raises(kg.SolveError, *texts):
        push().to_feedback(**arguments)


def test_inputs_with_rates_have_no_feedback() -> None:
    problem = kg.OptimalControl(everything(), kg.Integral(F**2), 1.0, {"x": 0, "v": 1}, {"x": 1}, intervals=5)
    motion = problem.solve(1.0, max_refinements=0)
    with raises(kg.SolveError, "to_feedback", "the rate of a"):
        motion.to_feedback()
