"""Quantities at states and inputs by name, one state or many; what is missing is never invented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy.physics.mechanics as me
from linkages import solver_of
from messages import raises
from state_models import cart
from systems import initial, solver_for

import kanegen as kg

x, v = me.dynamicsymbols("x v")
Q, U, S = {"x": 0.1}, {v: -0.2}, {"a": 0.3, "z": 0.4}
ARRAYS = ([0.1], [-0.2])
STATES = [0.3, 0.4]


def cart_solver() -> kg.Solver:
    return kg.build(cart(), functions="all")


def by_name(solver: kg.Solver, q: Any, u: Any) -> tuple[dict[str, float], dict[str, float]]:
    d = solver.description
    return dict(zip(d.coordinates, q, strict=True)), dict(zip(d.speeds, u, strict=True))


def test_names_give_the_values_of_arrays() -> None:
    solver = cart_solver()
    for found, expected in zip(solver.rhs(0.0, Q, U, s=S), solver.rhs(0.0, *ARRAYS, s=STATES), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert solver.kinetic_energy(0.0, Q, U) == solver.kinetic_energy(0.0, *ARRAYS)
    for name in ("P", "state_rates"):
        expected = getattr(solver, name)(0.0, *ARRAYS, s=STATES)
        np.testing.assert_array_equal(getattr(solver, name)(0.0, Q, ARRAYS[1], None, S), expected)
    inputs = {"f": 2.0}
    np.testing.assert_array_equal(solver.P(0.0, Q, U, inputs, S), solver.P(0.0, *ARRAYS, [2.0], STATES))
    np.testing.assert_array_equal(solver.P(0.0, *ARRAYS, inputs, STATES), solver.P(0.0, *ARRAYS, [2.0], STATES))


def test_states_are_completed_by_the_start_of_the_model() -> None:
    solver = cart_solver()
    started = solver.with_initial({"x": 0.1, "v": -0.2, "a": 0.3, "z": 0.4})
    expected = solver.rhs(0.0, *ARRAYS, s=STATES)
    for found in (started.rhs(0.0, None, None), started.rhs(0.0, {}, U), started.rhs(0.0, Q, None, s={"z": 0.4})):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_rows_by_name() -> None:
    solver, places = cart_solver(), np.linspace(-1.0, 1.0, 5)
    table = np.stack([places, places**2], axis=1)
    found = solver.rhs(0.0, {"x": places}, {"v": 0.5}, {"f": 2 * places}, {"a": places, "z": places**2})
    expected = solver.rhs(0.0, places[:, None], [0.5], 2 * places[:, None], table)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_constraints_and_reactions_take_names() -> None:
    solver = solver_for("slider_crank")
    t, q, u = (initial("slider_crank")[key] for key in "tqu")
    state = (t, *by_name(solver, q, u))
    for found, expected in zip(solver.residuals(*state), solver.residuals(t, q, u), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(solver.multipliers(*state), solver.multipliers(t, q, u))
    assert solver.outputs(*state) == solver.outputs(t, q, u)
    assert solver.partition(*state) == solver.partition(t, q, u)
    assert solver.redundant_constraints(*state) == ()


def test_inputs_by_name_everywhere() -> None:
    """The radius r of a ball and its two rates are inputs without defaults."""
    solver = solver_of("lifted_ball")
    q, u, r = [0.3, 0.4, 0.0], [0.1, 0.0, 0.0], {"r": 0.5, "r1": 0.06, "r2": 0.0}
    np.testing.assert_array_equal(solver.rhs(0.0, q, u, r)[1], solver.rhs(0.0, q, u, [0.5, 0.06, 0.0])[1])
    found, expected = (solver.make_consistent(0.0, q, u, given) for given in (r, [0.5, 0.06, 0.0]))
    np.testing.assert_array_equal(found, expected)
    with raises(kg.SolveError, "r1", "r2", "default"):
        solver.rhs(0.0, q, u, {"r": 0.5})


def test_servo_controls_by_name() -> None:
    solver = solver_for("particle_tracking")
    t, q, u = (initial("particle_tracking")[key] for key in "tqu")
    named = by_name(solver, q, u)
    np.testing.assert_array_equal(solver.control(t, *named), solver.control(t, q, u))
    assert solver.feasibility(t, *named, {}).kind == solver.feasibility(t, q, u).kind
    with raises(kg.SolveError, "one state"):
        solver.feasibility(t, {**named[0], "theta": [0.1, 0.2]}, u)


def test_an_interpreted_model_takes_names() -> None:
    solver = kg.build(cart(), backend="interpreted")
    for found, expected in zip(solver.rhs(0.0, Q, U, s=S), solver.rhs(0.0, *ARRAYS, s=STATES), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (({}, U, None, S), ("coordinate", "x", "initial")),
        ((Q, None, None, S), ("speed", "v", "initial")),
        ((Q, U, None, {"a": 1.0}), ("state", "z", "initial")),
        ((Q, U), ("states", "a", "z")),
        (({"y": 1.0}, U, None, S), ("coordinate", "'y'", "x")),
        (({"x": "1"}, U, None, S), ("x", "'1'", "number")),
        (({"x": [[1.0]]}, U, None, S), ("x", "(1, 1)", "(N,)")),
        (({"x": None}, U, None, S), ("x", "None")),
        (({"x": float("nan")}, U, None, S), ("x", "nan")),
        (({"x": [0.0, np.inf]}, U, None, S), ("x", "inf", "row 1")),
        (({"x": [1.0, 2.0]}, {"v": [1.0, 2.0, 3.0]}, None, S), ("q", "2", "u", "3")),
        ((Q, U, {"g": 1.0}, S), ("input", "'g'", "f")),
        ((Q, U, {"f": "1"}, S), ("f", "'1'")),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        cart_solver().rhs(0.0, *arguments)
