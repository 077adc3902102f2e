"""Results that are NaN or infinite are errors that name the entry and the state; so are such arguments everywhere."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
from messages import raises
from scipy.integrate import solve_ivp
from scipy_calls import call_rates
from sympy.physics import mechanics as me
from systems import initial, solver_for

import kanegen as kg
from kanegen.solve.solution import Outcome

TIME = me.dynamicsymbols._t


@cache
def slider() -> kg.Solver:
    """A particle whose force, mass, energy and output have values at some states and times only; no constraints."""
    x, v = me.dynamicsymbols("x v")
    m, k = sm.symbols("m k")
    force = me.dynamicsymbols("f")
    frame, origin = me.ReferenceFrame("N"), me.Point("O")
    origin.set_vel(frame, 0)
    point = origin.locatenew("P", x * frame.x)
    point.set_vel(frame, v * frame.x)
    model = kg.Model(
        name="slider",
        frame=frame,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(TIME),),
        bodies=(me.Particle("bead", point, m * sm.log(TIME + 3) / sm.log(3)),),
        loads=((point, (-k * sm.sqrt(x + 1) + force) * frame.x),),
        inputs=(kg.Input(force, default=0.0),),
        parameters={m: 1.0, k: 2.0},
        potential_energy=k / x,
        outputs={"inverse": 1 / v},
    )
    return kg.build(model, functions="all")


@pytest.mark.parametrize(
    ("name", "state", "names"),
    [
        ("rhs", (0.5, -2.0, 0.5), ("rhs", "udot[0]", "v'", "nan", "t=0.5", "x=-2.0", "v=0.5", "f=0.0")),
        ("P", (0.5, -2.0, 0.5), ("P", "P[0]", "nan")),
        ("Q", (-4.0, 1.0, 0.5), ("Q", "Q[0, 0]", "nan", "t=-4.0")),
        ("potential_energy", (0.5, 0.0, 0.5), ("potential_energy", "inf")),
        ("momentum", (-4.0, 1.0, 0.5), ("momentum", "momentum[0]", "nan")),
        ("ode", (0.5, -2.0, 0.5), ("udot[0]", "v'", "nan")),
        ("outputs", (0.5, 0.5, 0.0), ("inverse", "inf")),
        ("jacobian", (0.5, -2.0, 0.5), ("jacobian_q[1, 0]", "d v' / d x", "nan")),
        ("linearize", (0.5, -2.0, 0.5), ("nan",)),
        ("impulse", (-4.0, 1.0, 0.5), ("nan",)),
    ],
)
def test_the_entry_and_the_state_are_named(
    name: str, state: tuple[float, float, float], names: tuple[str, ...]
) -> None:
    method = getattr(slider(), name)
    arguments: tuple[Any, ...] = ([state[1]], [state[2]])
    if name == "ode":
        arguments = (list(state[1:]),)
    with raises(kg.SolveError, *names) as caught:
        method(state[0], *arguments, **({"impulses": [1.0]} if name == "impulse" else {}))
    if name not in ("impulse",):
        assert "division by zero" in str(caught.value)


def test_out_is_not_written_when_the_right_hand_side_is_not_finite() -> None:
    out = (np.array([7.0]), np.array([8.0]))
    with raises(kg.SolveError, "udot[0]"):
        slider().rhs(0.0, [-2.0], [0.5], out=out)
    assert out[0][0] == 7.0
    assert out[1][0] == 8.0


def test_a_start_whose_residuals_cannot_be_judged_says_so() -> None:
    """The message named no entry, because the residuals themselves are finite."""
    solver, start = solver_for("rolling_disk"), initial("rolling_disk")
    with raises(kg.SolveError, "residuals", "too large", "1e+308"):
        solver.integrate((0.0, 1.0), start["q"], [1e308, *start["u"][1:]])


def test_a_mass_that_is_not_a_number_is_not_called_singular() -> None:
    """The Cholesky factorization fails on NaN as on a singular matrix; the message tells them apart."""
    with raises(kg.SolveError, "nan"):
        slider().rhs(-4.0, [1.0], [0.5])


@pytest.mark.parametrize("method", ["dopri5", "rodas", "rk4"])
def test_integrate_names_the_entry_at_the_start(method: str) -> None:
    step = {"step": 0.1} if method == "rk4" else {}
    with raises(kg.IntegrationError, "udot[0]", "v'", "nan", "x=-2.0") as caught:
        slider().integrate((0.0, 1.0), [-2.0], [0.0], method=method, **step)
    assert caught.value.solution.status is Outcome.NOT_FINITE


def test_a_jacobian_that_is_not_finite_ends_a_stiff_run_as_such() -> None:
    """1/v has no derivative at v = 0 where Max keeps the value finite: atan2 at its origin."""
    x, v = me.dynamicsymbols("x v")
    frame, origin = me.ReferenceFrame("N"), me.Point("O")
    origin.set_vel(frame, 0)
    point = origin.locatenew("P", x * frame.x)
    point.set_vel(frame, v * frame.x)
    model = kg.Model(
        name="slip_angle",
        frame=frame,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(TIME),),
        bodies=(me.Particle("bead", point, 1),),
        loads=((point, -sm.atan2(x, v) * frame.x),),
    )
    solver = kg.build(model, functions=("rhs", "residuals", "jacobians"))
    assert solver.rhs(0.0, [0.0], [0.0])[1] == 0.0
    with raises(kg.IntegrationError, "jacobian_q[1, 0]", "d v' / d x", "nan") as caught:
        solver.integrate((0.0, 1.0), [0.0], [0.0], method="rodas")
    assert caught.value.solution.status is Outcome.NOT_FINITE
    assert "redundant" not in str(caught.value)


def test_scipy_is_stopped_where_it_would_not_return() -> None:
    with raises(kg.SolveError, "udot[0]", "v'", "nan"):
        solve_ivp(slider().ode, (0.0, 1.0), [-2.0, 0.0])
    solution = solve_ivp(slider().ode, (0.0, 0.1), [0.5, 0.0], rtol=1e-10, atol=1e-10)
    expected = slider().integrate((0.0, 0.1), [0.5], [0.0], rtol=1e-11, atol=1e-11)
    assert solution.y[0, -1] == pytest.approx(expected.q[-1, 0], rel=1e-8)


def test_the_c_function_reports_a_negative_status() -> None:
    function = slider().low_level_callable()
    status, rates = call_rates(function, 0.0, [0.5, 0.2])
    assert status == 0
    assert rates[0] == 0.2
    assert call_rates(function, 0.0, [-2.0, 0.2])[0] < 0


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((0.0, [np.nan], [0.0]), ("x", "q[0]", "nan")),
        ((0.0, [0.0], [-np.inf]), ("v", "u[0]", "-inf")),
        ((np.nan, [0.0], [0.0]), ("t", "nan")),
        ((0.0, [0.0], [0.0], [np.inf]), ("f", "r[0]", "inf")),
        ((0.0, [0.0, 1.0], [0.0]), ("q", "(2,)", "(1,)")),
        ((0.0, ["a"], [0.0]), ("q",)),
    ],
)
@pytest.mark.parametrize("name", ["residuals", "make_consistent"])
def test_states_are_checked_without_constraints(name: str, arguments: tuple[Any, ...], names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        getattr(slider(), name)(*arguments)


def test_states_without_constraints_are_copied() -> None:
    start = np.array([0.3])
    q, u = slider().make_consistent(0.0, start, [1])
    assert q is not start
    assert (q[0], u[0]) == (0.3, 1.0)
    assert [x.shape for x in slider().residuals(0.0, q, u)] == [(0,), (0,)]
