"""Minimal linear models against closed forms, for every kind of constraint."""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
import pytest
import sympy as sm
from messages import raises
from special_systems import TIME, free_body
from sympy.physics import mechanics as me
from systems import example, initial, model_of
from tolerances import EVALUATION, SOLVE

import kanegen as kg

FUNCTIONS = ("rhs", "residuals", "consistency", "outputs", "jacobians")


def driven_pendulum() -> kg.Model:
    """A bob on a bar of constant length in Cartesian coordinates; its pivot moves along x by an input."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    s, rate, acceleration, push = me.dynamicsymbols("s s1 s2 push")
    m, l, g = sm.symbols("m l g")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    bob = O.locatenew("bob", x * N.x + y * N.y)
    return kg.Model(
        name="driven_pendulum",
        frame=N,
        coordinates=(x, y),
        speeds=(u, v),
        kinematics=(u - x.diff(TIME), v - y.diff(TIME)),
        bodies=(me.Particle("bob", bob, m),),
        loads=((bob, push * N.x),),
        gravity=-g * N.y,
        holonomic_constraints=((x - s) ** 2 + y**2 - l**2,),
        inputs=(kg.Input(s, rate=rate, acceleration=acceleration, default=0.0), kg.Input(push, default=0.0)),
        parameters={m: 2.0, l: 0.4, g: 9.81},
        outputs={
            "angle": sm.atan2(x - s, -y),
            "pull": sm.Matrix([[m * u.diff(TIME) - push], [m * (v.diff(TIME) + g)]]),
            "lead": x * v - y * u + rate**2,
        },
    )


@pytest.fixture(scope="module")
def pendulum() -> kg.Solver:
    return kg.build(driven_pendulum(), functions=FUNCTIONS)


def test_pendulum_with_a_moving_pivot(pendulum: kg.Solver) -> None:
    """m x'' = m g (s - x) / l + push about the hanging position; y follows at second order only."""
    linear = pendulum.linearize(0.0, [0.0, -0.4], [0.0, 0.0], [0.0] * len(pendulum.description.inputs))
    m, l, g = 2.0, 0.4, 9.81
    assert linear.states == ("x", "u")
    assert linear.steady
    np.testing.assert_allclose(linear.A, [[0, 1], [-g / l, 0]], atol=EVALUATION)
    at = {name: k for k, name in enumerate(linear.inputs)}
    expected = np.zeros((2, len(linear.inputs)))
    expected[1, at["s"]], expected[1, at["push"]] = g / l, 1 / m
    np.testing.assert_allclose(linear.B, expected, atol=EVALUATION)
    np.testing.assert_allclose(linear.C, [[1, 0], [0, 0], [0, 1], [0, 0]], atol=EVALUATION)
    np.testing.assert_allclose(linear.D, np.zeros_like(linear.D), atol=EVALUATION)
    np.testing.assert_allclose(linear.eigenvalues, [1j * sqrt(g / l), -1j * sqrt(g / l)], atol=EVALUATION)


def test_either_coordinate_may_be_chosen_where_both_determine_the_state(pendulum: kg.Solver) -> None:
    """Held at an angle by the push: the frequency does not depend on the coordinate."""
    angle, l = 0.6, 0.4
    q, r = [l * sin(angle), -l * cos(angle)], [0.0] * len(pendulum.description.inputs)
    r[pendulum.description.inputs.index("push")] = 2.0 * 9.81 * np.tan(angle)
    by_x, by_y = (pendulum.linearize(0.0, q, [0.0, 0.0], r, coordinates=(c,), speeds=(s,)) for c, s in ("xu", "yv"))
    assert (by_x.states, by_y.states) == (("x", "u"), ("y", "v"))
    assert by_x.steady
    expected = 1j * sqrt(9.81 / (l * cos(angle)))
    for linear in (by_x, by_y):
        np.testing.assert_allclose(linear.eigenvalues, [expected, -expected], atol=SOLVE)
    # The pivot moved sideways carries the bob along: dx = ds + ..., dy from the bar.
    column = by_y.inputs.index("s")
    np.testing.assert_allclose(by_y.D[:2, column], [1.0, 0.0], atol=EVALUATION)


def test_outputs_are_linearized_with_the_accelerations_in_them(pendulum: kg.Solver) -> None:
    """Against differences of the outputs at neighboring states that the constraints allow."""
    q, u, at = [0.24, -0.32], [-1.6, -1.2], dict.fromkeys(pendulum.description.inputs, 0.0)
    at["push"] = 0.7
    linear = pendulum.linearize(0.0, q, u, list(at.values()), coordinates=("x",), speeds=("u",))
    assert linear.outputs == ("angle", "pull[0]", "pull[1]", "lead")
    assert not linear.steady

    def outputs(x: float, speed: float, **inputs: float) -> np.ndarray:
        r = list((at | inputs).values())
        state = pendulum.make_consistent(0.0, [x, q[1]], [speed, u[1]], r, fixed=("x", "u"))
        return np.concatenate([np.ravel(value) for value in pendulum.outputs(0.0, *state, r).values()])

    h = 1e-5
    for k, (dx, du) in enumerate(((h, 0.0), (0.0, h))):
        slope = (outputs(q[0] + dx, u[0] + du) - outputs(q[0] - dx, u[0] - du)) / (2 * h)
        np.testing.assert_allclose(linear.C_outputs[:, k], slope, rtol=1e-8, atol=1e-8)
    for k, name in enumerate(linear.inputs):
        slope = (outputs(q[0], u[0], **{name: at[name] + h}) - outputs(q[0], u[0], **{name: at[name] - h})) / (2 * h)
        np.testing.assert_allclose(linear.D_outputs[:, k], slope, rtol=1e-8, atol=1e-8)
    assert np.abs(linear.C_outputs[1:]).min() > 1e-2
    assert linear.without_ignorable().C_outputs.shape == (4, 2)


def test_outputs_that_were_not_built_have_no_rows() -> None:
    rates = ("jacobian_q", "jacobian_u", "jacobian_r", "jacobian_t")
    solver = kg.build(
        driven_pendulum(), functions=("rhs", "residuals", *rates, "residuals_q", "residuals_u", "residuals_r")
    )
    linear = solver.linearize(0.0, [0.0, -0.4], [0.0, 0.0], [0.0] * 4)
    assert linear.outputs == ()
    assert linear.C_outputs.shape == (0, 2)
    assert linear.D_outputs.shape == (0, 4)


@pytest.mark.parametrize("spin", [-6.0, -1.5, 2.5])
def test_rolling_disk(spin: float) -> None:
    """Upright straight rolling: 5 theta'' = (4 g / R - 12 spin^2) theta + ..., the other eigenvalues are zero."""
    R, g = 0.3, 9.81
    disk = kg.build(model_of("rolling_disk"), functions=FUNCTIONS)
    phi = 0.4
    u = (0.0, 0.0, spin, -R * cos(phi) * spin, -R * sin(phi) * spin)
    linear = disk.linearize(2.0, (pi / 2, phi, 0.0, 1.0, 2.0), u, speeds=("u1", "u2", "u3"))
    assert linear.steady
    assert len(linear.coordinates) == 5
    root = np.sqrt(complex((4 * g / R - 12 * spin**2) / 5))
    lean = linear.without_ignorable()
    assert lean.states == ("theta", "u1", "u2", "u3")
    values = lean.eigenvalues
    for expected in (root, -root, 0.0):
        assert np.abs(values - expected).min() < 1e-6  # zero is a double eigenvalue: half the digits


def test_forces_that_balance_but_for_rounding_are_steady() -> None:
    """A part in a hundred million of the terms is the limit."""
    x, v, F = me.dynamicsymbols("x v F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    model = kg.Model(
        name="held_spring",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[x.diff(TIME) - v],
        bodies=[me.Particle("bob", P, 1)],
        loads=[(P, (F - 100 * x) * N.x)],
        inputs=[F],
    )
    solver = kg.build(model, functions=("rhs", "residuals", "jacobians"))
    for error, steady in ((1e-10, True), (1e-6, False)):
        assert solver.linearize(0.0, [1.0], [0.0], [100.0 * (1.0 + error)]).steady == steady


def test_disk_in_a_steady_turn_and_one_that_falls() -> None:
    """In a turn of constant lean X' and Y' change, the independent speeds do not; a falling disk is not steady."""
    R, g, theta, u2 = 0.3, 9.81, 1.2, 0.7
    disk = kg.build(model_of("rolling_disk"), functions=FUNCTIONS)
    u3 = (u2**2 / np.tan(theta) - 4 * g / R * cos(theta)) / (6 * u2)
    steady = disk.linearize(0.0, (theta, 0.0, 0.0, 0.0, 0.0), (0.0, u2, u3, -R * u3, 0.0), speeds=("u1", "u2", "u3"))
    assert steady.steady
    start = initial("rolling_disk")
    assert not disk.linearize(0.0, start["q"], start["u"]).steady


def test_without_constraints_nothing_is_eliminated() -> None:
    """A hanging bar (1 kg, 1 m, 1/12 kg m^2) about either axis of its joint: q'' = -(3 g / 2) q."""
    chain = kg.build(model_of("spatial_chain", n=1), functions=FUNCTIONS)
    linear = chain.linearize(0.0, [0.0, 0.0], [0.0, 0.0])
    zero, one = np.zeros((2, 2)), np.eye(2)
    np.testing.assert_allclose(linear.A, np.block([[zero, one], [-1.5 * 9.81 * one, zero]]), atol=EVALUATION)
    np.testing.assert_allclose(linear.C, np.eye(4))
    assert linear.without_ignorable().states == linear.states


def test_euler_parameters_leave_three_coordinates() -> None:
    """A body turning about its axis of inertia 3 of 2, 3, 5 is unstable: growth w sqrt((3-2)(5-3)/(2 5)) (Euler)."""
    body = kg.build(free_body(), functions=FUNCTIONS)
    spin = 1.3
    linear = body.linearize(0.0, [1.0, 0.0, 0.0, 0.0], [0.0, spin, 0.0])
    assert linear.coordinates == ("e1", "e2", "e3")
    assert not linear.B.size
    growth = spin * sqrt((3 - 2) * (5 - 3) / (2 * 5))
    np.testing.assert_allclose(linear.eigenvalues.real.max(), growth, rtol=SOLVE)


def test_linear_model_predicts_the_motion_nearby(pendulum: kg.Solver) -> None:
    """Off equilibrium, too: z' of a neighbor on the constraints is that of the linear model to second order."""
    q, u, r = [0.1, -sqrt(0.16 - 0.01)], [0.3, 0.3 * 0.1 / sqrt(0.15)], [0.0] * len(pendulum.description.inputs)
    linear = pendulum.linearize(0.0, q, u, r, coordinates="x", speeds="u")
    assert not linear.steady
    h = 1e-6
    x, rate = q[0] + h, u[0] - 2 * h
    y = -sqrt(0.16 - x**2)
    neighbor = pendulum.rhs(0.0, [x, y], [rate, -x * rate / y], r)
    change = np.array([a[0] - b[0] for a, b in zip(neighbor, pendulum.rhs(0.0, q, u, r), strict=True)])
    np.testing.assert_allclose(change / h, linear.A @ [1.0, -2.0], atol=1e-3)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"q": [0.1, -0.4]}, ("position level", "residual", "0.01", "allowed", "make_consistent")),
        ({"u": [0.0, 0.2]}, ("d/dt", "velocity level", "residual", "-0.16")),
        ({"coordinates": ("z",)}, ("'z'",)),
        ({"coordinates": ("x", "y")}, ("2", "x", "y", "1")),
        ({"coordinates": ("y",)}, ("y", "x")),
        ({"speeds": ("v",)}, ("speeds", "v")),
    ],
)
def test_points_and_choices_that_cannot_be_honored(
    pendulum: kg.Solver, change: dict[str, Any], names: tuple[str, ...]
) -> None:
    arguments = {"q": [0.0, -0.4], "u": [0.0, 0.0], "r": None} | change
    with raises(kg.SolveError, *names):
        pendulum.linearize(0.0, **arguments)
    if "q" in change:
        assert pendulum.linearize(0.0, **(arguments | {"tolerance": 0.1})).coordinates == ("x",)


def test_symbols_name_states_too(pendulum: kg.Solver) -> None:
    model = driven_pendulum()
    linear = pendulum.linearize(
        0.0, [0.0, -0.4], [0.0, 0.0], coordinates=model.coordinates[:1], speeds=model.speeds[:1]
    )
    assert linear.states == ("x", "u")


def test_every_example_has_a_linear_model_at_its_start() -> None:
    """The columns of C are tangent to the constraints."""
    for name in ("slider_crank", "elliptic_wire", "varying_pendulum", "rolling_disk", "appell_hamel"):
        solver = kg.build(example(name).model(), functions=FUNCTIONS)
        start = initial(name)
        state = (start["t"], start["q"], start["u"])
        linear = solver.linearize(*state)
        position = len(solver.description.constraints.positions)
        slopes = {k: solver._functions.get(f"residuals_{k}").value(*state) for k in "qu"}
        n_q = len(start["q"])
        tangent = slopes["q"] @ linear.C[:n_q] + slopes["u"] @ linear.C[n_q:]
        np.testing.assert_allclose(tangent, 0.0, atol=SOLVE, err_msg=name)
        assert len(linear.coordinates) == n_q - np.linalg.matrix_rank(slopes["q"][:position]) if position else True


@pytest.mark.parametrize(("factor", "length"), [(1.0, 1.0), (1e-9, 1.0), (1e-12, 1.0), (1.0, 1e-6), (1e9, 1.0)])
def test_a_row_in_other_units_is_a_constraint_too(factor: float, length: float) -> None:
    """Two damped pendulums; the row of the second one is smaller or larger than that of the first one."""
    x, y, X, Y, *speeds = me.dynamicsymbols("x y X Y u1:5")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bobs = [O.locatenew(f"P{k}", a * N.x + b * N.y) for k, (a, b) in enumerate([(x, y), (X, Y)])]
    model = kg.Model(
        name="two_pendulums",
        frame=N,
        coordinates=(x, y, X, Y),
        speeds=speeds,
        kinematics=[u - q.diff(TIME) for q, u in zip((x, y, X, Y), speeds, strict=True)],
        bodies=[me.Particle(f"bob{k}", bob, sm.Integer(1)) for k, bob in enumerate(bobs)],
        gravity=-9.81 * N.y,
        loads=[(bob, -0.5 * speeds[2 * k] * N.x) for k, bob in enumerate(bobs)],
        holonomic_constraints=[x**2 + y**2 - 1, factor * (X**2 + Y**2 - length**2)],
    )
    hanging = kg.build(model, functions=FUNCTIONS, backend="interpreted").linearize(0.0, [0, -1, 0, -length], [0] * 4)
    assert hanging.coordinates == ("x", "X")
    expected = [complex(-0.25, sign * sqrt(9.81 / l - 0.0625)) for l in (1.0, length) for sign in (-1, 1)]
    order = np.argsort([value.imag for value in expected])
    found = sorted(np.linalg.eigvals(hanging.A), key=lambda value: value.imag)
    assert np.abs(np.array(found) / np.array(expected)[order] - 1).max() < 1e-7
