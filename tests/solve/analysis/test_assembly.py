"""Inverse dynamics of paths of some coordinates and outputs: closed-form positions, forward motions, refusals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import sympy as sm
from closed_loops import BASE, LINK, RADIUS, solver_of, t
from messages import raises
from scipy.interpolate import make_interp_spline
from tolerances import EVALUATION, SOLVE

import kanegen as kg

GUESS = {"a2": 0.3, "a3": -1.5}


def require_motion(solver: kg.Solver, found: kg.results.InverseDynamics, accuracy: float = 1e-8) -> None:
    """The derivatives agree with splines through the positions, and the controls drive the motion forward.

    ``accuracy``: of the splines through the positions and the controls, degree 7, in between.
    """
    positions, speeds, *controls = (make_interp_spline(found.t, x, k=7) for x in (found.q, found.u, *found.controls.T))
    inner = slice(found.t.size // 4, -(found.t.size // 4))
    rates = [solver.rhs(t, q, u, r)[0] for t, q, u, r in zip(found.t, found.q, found.u, found.controls, strict=True)]
    np.testing.assert_allclose(positions.derivative(1)(found.t)[inner], rates[inner], atol=accuracy)
    np.testing.assert_allclose(speeds.derivative(1)(found.t)[inner], found.udot[inner], atol=10 * accuracy)
    forward = solver.integrate(
        (found.t[0], found.t[-1]),
        found.q[0],
        found.u[0],
        dict(zip(found.control_names, controls, strict=True)),
        method="dop853",
        rtol=1e-11,
        atol=1e-12,
    )
    np.testing.assert_allclose(forward.q[-1], found.q[-1], atol=100 * accuracy)
    np.testing.assert_allclose(forward.u[-1], found.u[-1], atol=100 * accuracy)


# -- motions in closed form ----------------------------------------------------------------------------------


def four_bar_angles(crank: np.ndarray) -> np.ndarray:
    """Angles of the two other rods, from the triangle of the rods 2 and 3 over the diagonal."""
    x, y = 2.0 - np.cos(crank), -np.sin(crank)
    diagonal = np.hypot(x, y)
    inside = np.arccos((diagonal**2 + 4.0 - 1.6**2) / (4.0 * diagonal))
    second = np.arctan2(y, x) + inside
    return np.stack([second, np.arctan2(y - 2.0 * np.sin(second), x - 2.0 * np.cos(second))], axis=1)


@pytest.mark.parametrize("samples", [301, 7, 2])
def test_a_four_bar_follows_its_crank(samples: int) -> None:
    """Also over long intervals, which are divided, and with a redundant constraint."""
    solver, times = solver_of("four_bar"), np.linspace(0.0, 3.0, samples)
    found = solver.inverse_dynamics({"a1": 1.0 + 0.8 * t}, times, q0=GUESS)
    np.testing.assert_allclose(found.q[:, 1:], four_bar_angles(1.0 + 0.8 * times), atol=EVALUATION)
    assert found.feasible.all()
    if samples == 301:
        require_motion(solver, found)


def test_times_may_run_backward_and_stand_still() -> None:
    solver = solver_of("four_bar")
    found = solver.inverse_dynamics({"a1": 1.0 + 0.8 * t}, [0.0, 2.0, 2.0, 0.0], q0=GUESS)
    np.testing.assert_allclose(found.q[:2], found.q[[3, 2]], atol=EVALUATION)


def test_a_path_of_an_output() -> None:
    solver, times = solver_of("four_bar"), np.linspace(0.0, 2.0, 201)
    found = solver.inverse_dynamics({"middle": 1.47 - 0.4 * sm.sin(t)}, times, q0={"a1": 1.0, **GUESS})
    np.testing.assert_allclose(solver.output("middle", found.t, found.q, found.u), 1.47 - 0.4 * np.sin(times))
    np.testing.assert_allclose(found.q[:, 1:], four_bar_angles(found.q[:, 0]), atol=EVALUATION)
    require_motion(solver, found)


def test_a_slider_crank_follows_its_slider() -> None:
    solver, times = solver_of("slider_crank"), np.linspace(0.0, 3.0, 301)
    found = solver.inverse_dynamics({"x": 1.3 + 0.3 * sm.cos(t)}, times)
    x = 1.3 + 0.3 * np.cos(times)
    np.testing.assert_allclose(np.cos(found.q[:, 0]), (0.25 + x**2 - 1.44) / x, atol=EVALUATION)
    np.testing.assert_allclose(found.q[:, 2], x, atol=1e-15)
    assert (found.q[:, 0] > 0.0).all()
    require_motion(solver, found)
    below = solver.inverse_dynamics({"x": 1.3 + 0.3 * sm.cos(t)}, times, q0={"a": -1.0, "b": 0.4})
    np.testing.assert_allclose(below.q[:, :2], -found.q[:, :2], atol=EVALUATION)


def leg_angles(pose: np.ndarray, bends: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Angles a (n, 3) and b (n, 3) of the rods of the legs; ``bends``: the sides to which the elbows point."""
    x, y, phi = pose.T
    cranks, rods = [], []
    for angle, bend in zip((np.pi / 2, 7 * np.pi / 6, 11 * np.pi / 6), bends, strict=True):
        along_x = x + RADIUS * np.cos(phi + angle) - BASE * np.cos(angle)
        along_y = y + RADIUS * np.sin(phi + angle) - BASE * np.sin(angle)
        inside = bend * np.arccos(np.hypot(along_x, along_y) / (2.0 * LINK))
        direction = np.arctan2(along_y, along_x)
        cranks.append(direction + inside)
        rods.append(direction - inside)
    return np.stack(cranks, axis=1), np.stack(rods, axis=1)


POSE = {"x": 0.1 * sm.sin(t), "y": 0.1 * sm.cos(t) - 0.1, "phi": 0.2 * sm.sin(2 * t)}


def pose_at(times: np.ndarray) -> np.ndarray:
    return np.stack([0.1 * np.sin(times), 0.1 * np.cos(times) - 0.1, 0.2 * np.sin(2 * times)], axis=1)


@pytest.mark.parametrize("bends", [(1, 1, 1), (1, -1, 1)])
def test_a_platform_follows_its_pose_in_every_assembly(bends: tuple[int, int, int]) -> None:
    solver, times = solver_of("platform"), np.linspace(0.0, 3.0, 301)
    cranks, rods = leg_angles(pose_at(times), bends)
    guess = {f"{letter}{k + 1}": x[0, k] + 0.1 for letter, x in (("a", cranks), ("b", rods)) for k in range(3)}
    found = solver.inverse_dynamics(POSE, times, q0=guess)
    np.testing.assert_allclose(np.exp(1j * found.q[:, 3:6]), np.exp(1j * cranks), atol=EVALUATION)
    np.testing.assert_allclose(np.exp(1j * found.q[:, 6:]), np.exp(1j * rods), atol=EVALUATION)
    assert found.feasible.all()
    assert (found.freedom == 0).all()
    if bends == (1, 1, 1):
        require_motion(solver, found)


def test_a_platform_follows_its_tool() -> None:
    """The tool (2,) and the rotation determine the same motion as the pose."""
    solver, times = solver_of("platform"), np.linspace(0.0, 2.0, 41)
    cranks, rods = leg_angles(pose_at(times), (1, 1, 1))
    guess = dict(zip(solver.description.coordinates, [*pose_at(times)[0], *cranks[0], *rods[0]], strict=True))
    tool = [POSE["x"] + sm.cos(POSE["phi"]) / 10, POSE["y"] + sm.sin(POSE["phi"]) / 10]
    found = solver.inverse_dynamics({"tool": tool, "phi": POSE["phi"]}, times, q0=guess)
    by_pose = solver.inverse_dynamics(POSE, times, q0=guess)
    np.testing.assert_allclose(found.q, by_pose.q, atol=EVALUATION)
    np.testing.assert_allclose(found.controls, by_pose.controls, atol=SOLVE)
    fine = np.linspace(-0.1, 2.1, 400)
    table = (fine, np.stack([sm.lambdify(t, part)(fine) for part in tool], axis=1))
    sampled = solver.inverse_dynamics({"tool": table, "phi": POSE["phi"]}, times, q0=guess)
    np.testing.assert_allclose(sampled.controls, by_pose.controls, atol=1e-5)  # second derivatives of the spline


def test_an_orientation_by_outputs() -> None:
    """Euler parameters: the norm is one of the equations."""
    solver, times = solver_of("pointed_body"), np.linspace(0.0, 2.0, 201)
    found = solver.inverse_dynamics({"tilt": [sm.sin(t) / 3, sm.sin(t) ** 2 / 5], "turn": sm.sin(2 * t) / 4}, times)
    np.testing.assert_allclose(np.linalg.norm(found.q, axis=1), 1.0, atol=1e-14)
    tilt = np.stack([np.sin(times) / 3, np.sin(times) ** 2 / 5], axis=1)
    np.testing.assert_allclose(solver.output("tilt", found.t, found.q, found.u), tilt, atol=1e-14)
    np.testing.assert_allclose(solver.output("turn", found.t, found.q, found.u), np.sin(2 * times) / 4, atol=1e-14)
    require_motion(solver, found)


@pytest.mark.parametrize("implied", [False, True])
def test_nonholonomic_constraints_do_not_reduce_what_the_path_must_give(implied: bool) -> None:
    solver, times = solver_of("sled", implied=implied), np.linspace(0.0, 2.0, 101)
    path = {"x": sm.sin(t), "y": 1 - sm.cos(t), "psi": t}
    found = solver.inverse_dynamics(path, times)
    np.testing.assert_allclose(found.q[:, 3], 2 * np.sin(times), atol=1e-14)
    # the tangential equation of the body, with the weight, which accelerates at 2 x''
    np.testing.assert_allclose(found.controls, [[-4 * np.sin(x) * np.cos(x), 0.0] for x in times], atol=EVALUATION)
    with raises(kg.SolveError, "2", "x", "y", "3", "degrees"):
        solver.inverse_dynamics({"x": sm.sin(t), "y": 1 - sm.cos(t)}, times)
    with raises(kg.SolveError, "sin(psi(t))", "residual"):
        solver.inverse_dynamics({**path, "psi": 2 * t}, times)


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ({"a1": 1, "a2": 0.3}, ("2", "a1", "a2", "1", "degrees")),
        ({"middle": 1.2, "a1": 1}, ("2", "a1", "middle", "1")),
        ({"rate": 1}, ("rate", "speeds")),
        ({"midle": 1}, ("'midle'", "'middle'")),
        ({}, ("empty",)),
        ({"middle": 9}, ("t = 0.0", "middle = 9", "q0=")),
        ({"a1": sm.Piecewise((1, t < 1), (2, True))}, ("t = 1.0", "a1", "jump")),
        ({"a1": sm.sqrt(t - 1)}, ("a1", "nan", "t = 0.0")),
        ({"middle": [1, 2]}, ("2", "middle", "1")),
    ],
)
def test_wrong_paths_are_refused(path: Any, names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        solver_of("four_bar").inverse_dynamics(path, np.linspace(0.0, 2.0, 21), q0={"a1": 1.0, **GUESS})


def test_too_few_are_refused() -> None:
    with raises(kg.SolveError, "1", "x", "3", "degrees"):
        solver_of("platform").inverse_dynamics({"x": 0}, [0.0], q0=np.linspace(0.1, 2.0, 9))


def test_a_guess_is_needed_for_what_the_path_leaves_open() -> None:
    with raises(kg.SolveError, "a2", "a3", "q0"):
        solver_of("four_bar").inverse_dynamics({"a1": 1}, [0.0])
    with raises(kg.SolveError, "a2", "'x'"):
        solver_of("four_bar").inverse_dynamics({"a1": 1}, [0.0], q0={"a2": "x", "a3": 1})


def test_the_end_of_the_workspace_is_named() -> None:
    """The crank folds with the rod where the slider has no further position, at x = 1.7."""
    with raises(kg.SolveError, "t = 1.0", "jump"):
        solver_of("slider_crank").inverse_dynamics({"x": 1.4 + 0.3 * t}, np.linspace(0.0, 2.0, 21))
    # This path only touches the end: rounding decides by how much less than t = 1 s it is reached.
    with raises(kg.SolveError, "singular", "a") as refusal:
        solver_of("slider_crank").inverse_dynamics({"x": 1.7 - 0.3 * (1 - t) ** 2}, np.linspace(0.0, 2.0, 21))
    (reached,) = re.findall(r"t = ([\d.]+) s", str(refusal.value))
    assert abs(float(reached) - 1.0) < 1e-3


@pytest.mark.parametrize("samples", [21, 20])
def test_a_singular_position_is_found_at_a_time_and_between_times(samples: int) -> None:
    """With a crank as long as the distance of the fixed pins the rods 2 and 3, of equal length, fold at a1 = 0."""
    solver = solver_of("four_bar").with_parameters(l1=2.0, l2=1.5, l3=1.5)
    with raises(kg.SolveError, "singular", "a2"):
        solver.inverse_dynamics({"a1": 1 - t}, np.linspace(0.0, 2.0, samples), q0={"a2": 2.0, "a3": -1.4})


def test_derivatives_of_outputs_are_compiled_on_request() -> None:
    with raises(kg.SolveError, "height", '"output_motions"'):
        solver_of("slider_crank").inverse_dynamics({"height": 0.3}, [0.0])
