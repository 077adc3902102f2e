"""States and tolerances by name, and starts that constraints complete."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, warns
from state_models import cart
from systems import initial, solver_for
from tolerances import PROJECTED

import kanegen as kg

x, v, a, z = me.dynamicsymbols("x v a z")
theta, u1 = me.dynamicsymbols("theta u1")
Q = {"x": 0.1}
U = {v: -0.2}
S = {"a": 0.3, z: 0.4}
ARRAYS = ([0.1], [-0.2], [0.3, 0.4])


def cart_solver() -> kg.Solver:
    return kg.build(cart(), functions="all")


def crank() -> kg.Solver:
    return solver_for("slider_crank")


def assembled(angle: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The slider-crank with beta in (0, pi): ``sin(theta) l1 = cos(beta) l2``, and its speeds."""
    l1, l2 = 0.5, 1.2
    beta = np.arccos(l1 * np.sin(angle) / l2)
    beta_rate = -l1 * np.cos(angle) / (l2 * np.sin(beta)) * rate
    position = np.array([angle, beta, l1 * np.cos(angle) + l2 * np.sin(beta)])
    return position, np.array([rate, beta_rate, -l1 * np.sin(angle) * rate + l2 * np.cos(beta) * beta_rate])


def same(found: kg.Solution, expected: kg.Solution) -> None:
    for name in ("t", "q", "u", "s"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_names_give_the_same_run_as_arrays() -> None:
    solver = cart_solver()
    expected = solver.integrate((0.5, 1.0), *ARRAYS[:2], s0=ARRAYS[2])
    same(solver.integrate((0.5, 1.0), Q, U, s0=S), expected)
    same(solver.integrate((0.5, 1.0), ARRAYS[0], U, s0=S), expected)
    start = {**Q, **U, **S, "t": 0.5}
    same(solver.with_initial(start).integrate((0.5, 1.0)), expected)
    same(solver.with_initial(start).integrate(1.0), expected)
    same(solver.with_initial(start | {"x": 7.0, z: 8.0}).integrate(1.0, Q, s0={"z": 0.4}), expected)
    same(kg.build(cart(initial=start)).integrate(1.0), expected)


def test_momentum_forms_take_names() -> None:
    solver = kg.build(cart(), form="momentum")
    expected = solver.integrate((0.0, 0.5), *ARRAYS[:2], s0=ARRAYS[2], atol=np.array([1e-10, 1e-6, 1e-10, 1e-10]))
    same(solver.with_initial(Q | U | S).integrate((0.0, 0.5), atol={v: 1e-6}), expected)


def test_one_state_is_read_in_the_same_way_everywhere() -> None:
    solver = cart_solver()
    named = solver.with_initial(Q | U | S)
    for found in (solver.linearize(0.0, Q, U, s=S), named.linearize(0.0, None, U)):
        np.testing.assert_array_equal(found.A, solver.linearize(0.0, *ARRAYS[:2], s=ARRAYS[2]).A)
    np.testing.assert_array_equal(solver.jacobian(0.0, Q, U, s=S).u, solver.jacobian(0.0, *ARRAYS[:2], s=ARRAYS[2]).u)
    np.testing.assert_array_equal(
        solver.impulse(0.0, Q, U, [2.0], s=S).u, solver.impulse(0.0, *ARRAYS[:2], [2.0], s=ARRAYS[2]).u
    )
    with raises(kg.SolveError, "speed", "v", "initial"):
        solver.linearize(0.0, Q, {}, s=S)
    with raises(kg.SolveError, "state", "z"):
        solver.linearize(0.0, Q, U, s={"a": 1.0})
    with raises(kg.SolveError, "coordinate", "v"):
        solver.linearize(0.0, {"v": 1.0}, U, s=S)


def test_contacts_take_names() -> None:
    solver = solver_for("bouncing_ball")
    start = initial("bouncing_ball")
    names = solver.description
    q, u = dict(zip(names.coordinates, start["q"], strict=True)), dict(zip(names.speeds, start["u"], strict=True))
    expected = solver.contacts(0.0, start["q"], start["u"])
    np.testing.assert_array_equal(solver.contacts(0.0, q, u).udot, expected.udot)
    np.testing.assert_array_equal(solver.with_initial(q | u).contacts(0.0, None, None).udot, expected.udot)


WRONG: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"q0": {"y": 1.0}}, ("coordinate", "y", "x")),
    ({"q0": {"x": 1.0, x: 2.0}}, ("x", "twice")),
    ({"q0": {"x": np.nan}}, ("x", "nan")),
    ({"q0": {"x": "one"}}, ("x", "one")),
    ({"q0": [1.0, 2.0], "u0": U}, ("q0", "(2,)", "(1,)")),
    ({"q0": "x", "u0": U}, ("q0", "'x'")),
    ({"q0": {}}, ("cart", "x", "q0")),
    ({"u0": None}, ("cart", "v", "u0")),
    ({"s0": {"a": 1.0}}, ("cart", "z", "s0")),
    ({"t_span": 1.0}, ("t_span", "initial")),
    ({"t_span": True}, ("t_span", "True")),
    ({"atol": {"y": 1.0}}, ("atol", "y")),
    ({"atol": {"x": -1.0}}, ("atol", "negative")),
    ({"rtol": {"x": 0.0}}, ("rtol", "positive")),
    ({"rtol": {"x": None}}, ("rtol", "x", "None")),
]


@pytest.mark.parametrize(("change", "names"), WRONG, ids=[str(change) for change, _ in WRONG])
def test_what_is_refused(change: dict[str, Any], names: tuple[str, ...]) -> None:
    arguments: dict[str, Any] = {"t_span": (0.0, 1.0), "q0": Q, "u0": U, "s0": S}
    with raises(kg.SolveError, *names):
        cart_solver().integrate(**(arguments | change))


def test_tolerances_by_name_leave_the_others() -> None:
    solver = cart_solver()
    expected = solver.integrate(
        (0.0, 1.0), *ARRAYS[:2], s0=ARRAYS[2], atol=[1e-3, 1e-10, 1e-10, 1e-4], rtol=[1e-8, 1e-5, 1e-8, 1e-8]
    )
    same(solver.integrate((0.0, 1.0), Q, U, s0=S, atol={"x": 1e-3, z: 1e-4}, rtol={v: 1e-5}), expected)


@pytest.mark.parametrize("angle", [0.3, 1.2, 2.5])
def test_constraints_complete_the_speeds(angle: float) -> None:
    q, u = assembled(angle, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = crank().integrate((0.0, 0.01), q, {"u1": 2.0})
        np.testing.assert_allclose(crank().make_consistent(0.0, q, {u1: 2.0})[1], u, atol=PROJECTED)
    np.testing.assert_array_equal(solution.q[0], q)
    np.testing.assert_allclose(solution.u[0], u, atol=PROJECTED)


def test_speeds_follow_from_positions_of_few_digits() -> None:
    q, u = assembled(0.3, 2.0)
    solution = crank().integrate((0.0, 0.01), np.round(q, 7), {"u3": np.round(u[2], 12)})
    np.testing.assert_array_equal(solution.q[0], np.round(q, 7))
    np.testing.assert_allclose(solution.u[0], u, atol=1e-5)
    with raises(kg.SolveError, "u2, u3", "theta", "beta", "x"):
        crank().integrate((0.0, 0.01), np.round(q, 3), {"u1": 2.0})


def test_constraints_complete_the_positions() -> None:
    q, u = assembled(0.3, 2.0)
    # The loop closes with the slider on either side.
    with warns(kg.ModelWarning, "beta", "x", "1.66854", "-0.7132", "make_consistent"):
        solution = crank().with_initial(theta=0.3, u1=2.0).integrate((0.0, 0.01))
    assert solution.q[0, 0] == 0.3
    assert solution.u[0, 0] == 2.0
    np.testing.assert_allclose(solution.q[0], q, atol=PROJECTED)
    np.testing.assert_allclose(solution.u[0], u, atol=PROJECTED)
    with raises(kg.SolveError, "beta", "fixed"):  # the slider cannot be there
        crank().integrate((0.0, 0.01), {"theta": 0.3, "x": 1.0}, {"u1": 2.0})


def test_positions_of_initial_move_and_speeds_are_completed() -> None:
    q, _ = assembled(0.3, 0.0)
    start = crank().with_initial(theta=q[0], beta=q[1], x=q[2], u1=2.0)
    solution = start.integrate((0.0, 0.01), {"theta": 0.4})
    for found, expected in zip((solution.q[0], solution.u[0]), assembled(0.4, 2.0), strict=True):
        np.testing.assert_allclose(found, expected, atol=PROJECTED)
    assert solution.q[0, 0] == 0.4
    assert solution.u[0, 0] == 2.0
    np.testing.assert_array_equal(start.integrate((0.0, 0.01), None, {"u1": 1.0}).q[0], q)
    rough = crank().make_consistent(0.0, [0.35, 1.4, 1.6], {"u1": 2.0}, fixed="x")
    assert rough[0][2] == 1.6
    assert rough[1][0] == 2.0
    np.testing.assert_allclose(crank().residuals(0.0, *rough)[0], 0.0, atol=PROJECTED)


def test_euler_parameters_are_completed_by_their_norm() -> None:
    e, w = me.dynamicsymbols("e0:4"), me.dynamicsymbols("w1:4")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Quaternion", e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    rates = sm.Matrix([[-e[1], -e[2], -e[3]], [e[0], -e[3], e[2]], [e[3], e[0], -e[1]], [-e[2], e[1], e[0]]])
    model = kg.Model(
        name="spinning body",
        frame=N,
        coordinates=e,
        speeds=w,
        kinematics=[x.diff() - y / 2 for x, y in zip(e, rates * sm.Matrix(w), strict=True)],
        bodies=[me.RigidBody("body", O, B, 1, (me.inertia(B, 1, 2, 3), O))],
    )
    solver = kg.build(model)
    # The norm does not determine the sign, which is that of the opposite orientation about the same axis.
    with warns(kg.ModelWarning, "e0", "0.8", "-0.8"):
        solution = solver.integrate((0.0, 0.1), {"e1": 0.6, "e2": 0.0, "e3": 0.0}, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(solution.q[0], [0.8, 0.6, 0.0, 0.0], atol=PROJECTED)
    with raises(kg.SolveError, "e0, e3"):
        solver.integrate((0.0, 0.1), {"e1": 0.6, "e2": 0.0}, [1.0, 2.0, 3.0])


def test_what_constraints_leave_open_is_named() -> None:
    with raises(kg.SolveError, "slider_crank", "u1, u2, u3", "u0"):
        crank().integrate((0.0, 1.0), assembled(0.3, 0.0)[0])
    with raises(kg.SolveError, "theta, beta, x", "q0", "u1, u2, u3", "initial"):
        crank().integrate((0.0, 1.0))
    with raises(kg.SolveError, "theta, phi, psi, Y", "q0"):
        solver_for("rolling_disk").integrate((0.0, 1.0), {"X": 0.0}, [0.0] * len(initial("rolling_disk")["u"]))


def test_values_of_initial_move_as_little_as_needed() -> None:
    q, u = assembled(0.3, 2.0)
    names = crank().description
    start = crank().with_initial(dict(zip((*names.coordinates, *names.speeds), (*q, *u), strict=True)))
    same(start.integrate((0.0, 0.1)), crank().integrate((0.0, 0.1), q, u))
    moved = start.integrate((0.0, 0.1), {"theta": 0.4})
    expected = crank().make_consistent(0.0, [0.4, q[1], q[2]], u, fixed=[theta])
    np.testing.assert_array_equal(moved.q[0], expected[0])
    np.testing.assert_array_equal(moved.u[0], expected[1])
    np.testing.assert_allclose(moved.q[0], assembled(0.4, 0.0)[0], atol=PROJECTED)


@pytest.mark.parametrize(("difference", "determined"), [(1e-4, True), (1e-8, False)])
def test_constraints_that_hardly_differ_determine_values(difference: float, determined: bool) -> None:
    """Two lines that meet at x = 0.5, y = 0.5, at a small angle."""
    q, u = me.dynamicsymbols("x y z"), me.dynamicsymbols("u v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q[0] * N.x + q[1] * N.y + q[2] * N.z)
    P.set_vel(N, u[0] * N.x + u[1] * N.y + u[2] * N.z)
    model = kg.Model(
        name=f"lines_{determined}",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff() - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("bob", P, 1)],
        holonomic_constraints=[q[0] + q[1] - 1, q[0] + (1 + difference) * q[1] - 1 - difference / 2],
    )
    solver = kg.build(model, form="pseudoinverse").with_initial({"z": 0.2, "w": 0.0})
    if determined:
        np.testing.assert_allclose(solver.integrate((0.0, 0.1)).q[0], [0.5, 0.5, 0.2], atol=1e-8)
    else:
        with raises(kg.SolveError, "x, y"):
            solver.integrate((0.0, 0.1))
