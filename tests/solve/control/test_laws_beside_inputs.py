"""An input with a law beside one without: a law gives its input wherever ``r`` does not, in every way to ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from feedback_models import F, G, H, particle, v, w, x, y
from messages import raises

import kanegen as kg

Q, U = np.array([0.3, -0.4]), np.array([0.5, 0.2])
PULL = 0.2


def law(q: Any, u: Any, pull: float = PULL) -> float:
    return float(-3 * q[0] - u[0] + pull * q[1])


@cache
def solver() -> kg.Solver:
    """F follows a law that reads G, which has neither a law nor a default; both act on the particle of 2 kg."""
    inputs = [kg.Input(F, law=-3 * x - v + G * y), kg.Input(G)]
    outputs = {"push": F + 10 * G}
    return kg.build(particle((F + G, G - 5 * y), inputs=inputs, outputs=outputs), functions="all")


def expected(q: Any = Q, u: Any = U, force: float | None = None) -> np.ndarray:
    force = law(q, u) if force is None else force
    return np.array([force + PULL, PULL - 5 * q[1]]) / 2


WAYS: dict[str, Callable[[Any], Any]] = {
    "rhs": lambda r: solver().rhs(0.0, Q, U, r)[1],
    "rhs of rows": lambda r: solver().rhs(0.0, [Q, Q], [U, U], r)[1][1],
    "rhs_batch": lambda r: solver().rhs_batch(0.0, np.array([Q, Q]), np.array([U, U]), r)[1][1],
    "ode": lambda r: solver().ode(0.0, np.r_[Q, U], r)[2:],
    "acceleration by names": lambda r: solver().rhs(0.0, {"x": Q[0], "y": Q[1]}, {"v": U[0], "w": U[1]}, r)[1],
    "integrate": lambda r: _slope(solver().integrate((0.0, 1e-5), Q, U, r).u[-1]),
    "integrate_many": lambda r: _slope(solver().integrate_many((0.0, 1e-5), np.array([Q, Q]), U, r).u[1, -1]),
    "forces": lambda r: solver().F(0.0, Q, U, r) / 2,
    "batch": lambda r: solver().batch("F", 0.0, np.array([Q, Q]), np.array([U, U]), r).values[1] / 2,
}


def _slope(u: Any) -> Any:
    return np.round((u - U) / 1e-5, 3)


@pytest.mark.parametrize("way", WAYS)
def test_the_law_acts_beside_the_given_input(way: str) -> None:
    tolerance = 2e-3 if way.startswith("integrate") else 1e-13
    for r, force in (({"G": PULL}, None), ({G: PULL}, None), ({"F": 7.0, "G": PULL}, 7.0), ([7.0, PULL], 7.0)):
        np.testing.assert_allclose(WAYS[way](r), expected(force=force), atol=tolerance)


@pytest.mark.parametrize("way", WAYS)
def test_the_input_without_a_law_needs_a_value(way: str) -> None:
    for r in (None, {}, {"F": 1.0}):
        with raises(kg.SolveError, "G"):
            WAYS[way](r)


def test_outputs_and_other_functions() -> None:
    r = {"G": PULL}
    assert solver().output("push", 0.0, Q, U, r) == pytest.approx(law(Q, U) + 10 * PULL, rel=1e-13)
    assert solver().Q(0.0, Q, U, r) == pytest.approx(2 * np.eye(2))  # reads neither input
    assert solver().make_consistent(0.0, Q, U, r)[0] == pytest.approx(Q)
    assert [part.size for part in solver().residuals(0.0, Q, U, r)] == [0, 0]
    # The functions of rows with a value for each row.
    pulls = np.array([0.1, 0.7])
    rows = solver().rhs_batch(0.0, np.array([Q, Q]), np.array([U, U]), {"G": pulls})[1]
    single = [solver().rhs(0.0, Q, U, {"G": pull})[1] for pull in pulls.tolist()]
    np.testing.assert_allclose(rows, single, rtol=1e-13)
    np.testing.assert_allclose(rows[:, 0], [(law(Q, U, pull) + pull) / 2 for pull in pulls], rtol=1e-13)
    np.testing.assert_allclose(solver().rhs(0.0, [Q, Q], [U, U], {"G": pulls})[1], single, rtol=1e-13)


def test_linear_models_and_equilibria() -> None:
    # Without G the particle rests at the origin; the law then is -3 x - v + G y.
    rest = solver().equilibrium([0.1, 0.1], r={"G": 0.5})
    at = np.linalg.solve([[-3.0, 0.5], [0.0, -5.0]], [-0.5, -0.5])
    np.testing.assert_allclose(rest.q, at, atol=1e-12)
    open_loop = solver().linearize(0.0, Q, U, {"G": 0.5})
    closed = solver().linearize(0.0, Q, U, {"G": 0.5}, closed_loop=True)
    assert (open_loop.inputs, closed.inputs) == (("F", "G"), ("G",))
    np.testing.assert_allclose(closed.A[2:], [[-1.5, 0.25, -0.5, 0.0], [0.0, -2.5, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(open_loop.A[2:], [[0.0, 0.0, 0.0, 0.0], [0.0, -2.5, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(closed.B[2:, 0], [(1 + Q[1]) / 2, 0.5], atol=1e-12)


def test_a_given_input_takes_its_rate_with_it() -> None:
    """The rate of F is that of its law only while the law gives F."""
    F1 = me.dynamicsymbols("F1")
    inputs = [kg.Input(F, law=sm.sin(x), rate=F1), kg.Input(G)]
    model = particle((G - x, 0), inputs=inputs, nonholonomic_constraints=[w - F * v])
    one = kg.build(model)
    assert one.description.inputs == ("F", "G", "F1")
    q, u = [0.4, 0.0], [1.2, 1.2 * np.sin(0.4)]
    by_law = one.rhs(0.0, q, u, {"G": PULL})[1]
    np.testing.assert_allclose(one.rhs(0.0, q, u, [np.sin(0.4), PULL, np.cos(0.4) * 1.2])[1], by_law, rtol=1e-13)
    with raises(kg.SolveError, "F1"):
        one.rhs(0.0, q, u, {"G": PULL, "F": 0.3})
    assert one.rhs(0.0, q, u, {"G": PULL, "F": 0.3, "F1": 0.0})[1] == pytest.approx(
        one.rhs(0.0, q, u, [0.3, PULL, 0.0])[1]
    )
    # Constraints that read the law find a start beside the other input.
    start = one.make_consistent(0.0, q, [1.2, 0.0], {"G": PULL})
    assert start[1][1] == pytest.approx(np.sin(start[0][0]) * start[1][0], rel=1e-12)


def test_servo_functions_beside_a_law() -> None:
    servo = kg.Servo([x - 1], [(-4, -4)], [G])
    inputs = [kg.Input(F, law=-3 * y - x * w + H), G, kg.Input(H)]
    one = kg.build(particle((G + F, F), inputs=inputs, control=servo), functions="all")
    (control,) = one.control(0.0, Q, U, r={"H": 0.5})
    force = -3 * Q[1] - Q[0] * U[1] + 0.5
    # x'' + 4 x' + 4 (x - 1) = 0
    assert control == pytest.approx(2 * (-4 * U[0] - 4 * (Q[0] - 1)) - force, rel=1e-12)
    with raises(kg.SolveError, "H"):
        one.control(0.0, Q, U)
    run = one.integrate((0.0, 0.1), Q, U, r={"H": 0.5}, control=True)
    assert run.control is not None
    assert run.control.values[0, 0] == pytest.approx(control, rel=1e-12)
