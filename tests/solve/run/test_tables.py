"""Splines that end: runs that leave them end there by name, steps that only try to are repeated."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, says
from scipy.integrate import solve_ivp
from state_models import point_mass

import kanegen as kg

x, v = me.dynamicsymbols("x v")
t = me.dynamicsymbols._t

POINTS = np.linspace(0.0, 3.0, 13)
LIFT = kg.Spline(POINTS, np.cos(POINTS), name="lift")
RAMP = kg.Spline([0, 1, 2], [0, 1, 0.5], kind="linear", name="ramp")

FUNCTIONS = ("rhs", "residuals", "jacobians")


@cache
def solver(kind: str, **options: Any) -> kg.Solver:
    forces = {
        "fall": 2 + 0 * x + LIFT(x) * 0 if kind == "none" else 2 - 0.1 * LIFT(x),
        "spring": -100 * (x - sm.Rational(3, 2)) + LIFT(x),
        "time": RAMP(t),
        "guarded": sm.Piecewise((RAMP(t), t < 2), (sm.Rational(1, 2), True)),
        "none": sm.sin(x),
    }
    return kg.build(point_mass(f"table {kind}", forces[kind], parameters={"m": 1.0}), functions=FUNCTIONS, **options)


def crossing() -> float:
    """When the bead of "fall" reaches x = 3 from rest at x = 0: DOP853 on the interpolated points."""

    def rates(_: float, y: Any) -> list[float]:
        return [y[1], 2 - 0.1 * float(LIFT.extended(y[0]))]

    def end(_: float, y: Any) -> float:
        return float(y[0] - 3.0)

    end.terminal = True  # type: ignore[attr-defined]
    return float(solve_ivp(rates, (0, 9), [0, 0], "DOP853", events=end, rtol=1e-12, atol=1e-13).t_events[0][0])


@pytest.mark.parametrize("method", ["dopri5", "dop853", "verner9", "rodas"])
def test_a_run_ends_at_the_end_of_a_spline(method: str) -> None:
    with pytest.raises(kg.IntegrationError) as caught:
        solver("fall").integrate((0.0, 9.0), [0.0], [0.0], method=method)
    solution = caught.value.solution
    assert solution.status is kg.Outcome.OUTSIDE_TABLE
    assert solution.last[0] == pytest.approx(crossing(), abs=1e-6)
    assert solution.last[1][0] == pytest.approx(3.0, abs=1e-6)
    says(caught.value, "lift", "from 0 to 3", "extrapolate=", "3", "Piecewise")
    assert f"t = {solution.last[0]:.9g} s" in str(caught.value)


@pytest.mark.parametrize("method", ["rk4", "kutta_merson"])
def test_steps_of_a_fixed_size_end_before_the_end_of_a_spline(method: str) -> None:
    with pytest.raises(kg.IntegrationError) as caught:
        solver("fall").integrate((0.0, 9.0), [0.0], [0.0], method=method, step=0.1)
    assert caught.value.solution.status is kg.Outcome.OUTSIDE_TABLE
    assert crossing() - 0.1 < caught.value.solution.last[0] < crossing()
    says(caught.value, "lift")


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas"])
def test_a_motion_inside_goes_on_though_trial_steps_leave_the_spline(method: str) -> None:
    solution = solver("spring").integrate((0.0, 5.0), [2.9], [0.0], method=method, first_step=0.3)
    assert solution.status is kg.Outcome.FINISHED
    assert solution.statistics.rejected > 0
    reference = solve_ivp(
        lambda _, y: [y[1], -100 * (y[0] - 1.5) + float(LIFT.extended(y[0]))],
        (0, 5),
        [2.9, 0],
        "DOP853",
        rtol=1e-12,
        atol=1e-12,
    )
    assert solution.q[-1, 0] == pytest.approx(reference.y[0, -1], abs=1e-4)


@pytest.mark.parametrize(("method", "options"), [("dopri5", {}), ("dop853", {}), ("rodas", {}), ("rk4", {"step": 0.1})])
def test_the_last_time_of_a_table_of_t_is_inside(method: str, options: dict[str, float]) -> None:
    solution = solver("time").integrate((0.0, 2.0), [0.0], [0.0], method=method, **options)
    assert solution.u[-1, 0] == pytest.approx(1.25, abs=1e-9)
    with raises(kg.IntegrationError, "ramp", "2"):
        solver("time").integrate((0.0, 2.5), [0.0], [0.0], method=method, **options)


def test_the_last_time_is_inside_in_single_precision(tmp_path: Any) -> None:
    program = solver("time").sources.text(solver("time").sources.kernel)
    assert "KG_OUTSIDE_TABLE" in program
    single = kg.emit(point_mass("single", RAMP(t)), tmp_path / "m", values={"m": 1.0}, precision="float")
    kernels = [path.read_text() for path in single.rglob("*.c")]
    assert any("2.00002" in text and "KG_OUTSIDE_TABLE" in text for text in kernels)


def test_a_branch_that_is_not_chosen_needs_no_value() -> None:
    solution = solver("guarded").integrate((0.0, 3.0), [0.0], [0.0])
    assert solution.u[-1, 0] == pytest.approx(1.75, abs=1e-9)


def test_single_evaluations_name_the_spline_and_the_argument() -> None:
    s = solver("fall")
    for evaluate in (s.rhs, s.jacobian, s.linearize):
        with raises(kg.SolveError, "lift", "3.5", "from 0 to 3"):
            evaluate(0.0, [3.5], [0.0])
    with raises(kg.SolveError, "lift", "3.5"):
        s.ode(0.0, [3.5, 0.0])
    with raises(kg.SolveError, "lift", "3.5", "row 1"):
        s.rhs(0.0, [[1.0], [3.5]], [0.0])
    s.rhs(0.0, [3.0], [0.0])
    s.rhs(0.0, [0.0], [0.0])
    assert np.isfinite(s.jacobian(0.0, [3.0], [0.0]).q).all()


def test_rows_beyond_a_spline_fail_alone_in_batches() -> None:
    values = solver("fall").rhs_batch(0.0, np.array([[1.0], [3.5], [2.0]]), np.zeros((3, 1)))
    assert np.isnan(values[1][1]).all()
    assert np.isfinite(values[1][[0, 2]]).all()


def test_motions_on_lanes_that_leave_a_spline_fail_alone() -> None:
    many = solver("fall").integrate_many((0.0, 1.0), q0=[[0.0], [2.5], [1.0], [0.5]], u0=[[0.0]] * 4)
    assert many.success.tolist() == [True, False, True, True]
    (failure,) = many.failures
    assert failure.index == 1
    says(failure.reason, "lift", "from 0 to 3")
    assert kg.Outcome.from_code(int(many.status[1])) is kg.Outcome.OUTSIDE_TABLE


def test_a_start_beyond_a_spline() -> None:
    with raises(kg.SolveError, "lift", "3.5"):
        solver("fall").integrate((0.0, 1.0), [3.5], [0.0])


def test_interpreted_runs_do_the_same() -> None:
    s = solver("fall", backend="interpreted")
    with pytest.raises(kg.IntegrationError) as caught:
        s.integrate((0.0, 9.0), [0.0], [0.0])
    assert caught.value.solution.status is kg.Outcome.OUTSIDE_TABLE
    assert caught.value.solution.last[0] == pytest.approx(crossing(), abs=1e-5)
    says(caught.value, "lift", "from 0 to 3")
    with raises(kg.SolveError, "lift", "3.5"):
        s.rhs(0.0, [3.5], [0.0])
    with raises(kg.SolveError, "lift", "3.5"):
        s.integrate((0.0, 1.0), [3.5], [0.0])


def test_a_model_without_splines_has_no_trace_of_them() -> None:
    text = solver("none").sources.text(solver("none").sources.kernel)
    assert "OUTSIDE" not in text
    assert "kg_table_info" not in text


@pytest.mark.parametrize("extrapolate", ["error", "constant", "polynomial"])
def test_a_spline_counts_its_breakpoints(extrapolate: str) -> None:
    """Constant pieces beyond the points were counted as points."""
    spline = kg.Spline([0.0, 1.0, 2.0, 4.0], [0.0, 1.0, 0.0, 2.0], name="lift", extrapolate=extrapolate)
    assert repr(spline) == f"<Spline 'lift': {len(spline.breakpoints)} breakpoints, degree 3>"
    assert len(spline.breakpoints) == (6 if extrapolate == "constant" else 4)


def test_a_constant_argument_beyond_is_refused() -> None:
    with raises(kg.KanegenError, "ramp", "5", "from 0 to 2"):
        kg.build(point_mass("fixed", RAMP(sm.Integer(5))))


def test_a_cubic_of_sympy_is_read_as_a_spline() -> None:
    """It was refused: "has no value where none of its conditions holds"."""
    heights = [0, 1, 4, 1, 0]
    force = sm.interpolating_spline(3, x, [0, 1, 2, 3, 5], heights)
    s = kg.build(point_mass("interpolated", force, parameters={"m": 1.0}), functions=FUNCTIONS)
    f = sm.lambdify(x, force)
    for place in (0.0, 0.7, 1.0, 2.0, 3.3, 5.0):
        assert s.rhs(0.0, [place], [0.0])[1][0] == pytest.approx(float(f(place)), rel=1e-12, abs=1e-12)
    assert "kg_polynomial(" in s.sources.text(s.sources.kernel)
    with raises(kg.SolveError, "Piecewise in x(t)", "5.5", "from 0 to 5"):
        s.rhs(0.0, [5.5], [0.0])


@pytest.mark.parametrize(
    ("expression", "places", "outside"),
    [
        (sm.Piecewise((x, x < 0), (x**2, (x >= 0) & (x <= 1)), (3, x > 1)), (-1.0, 0.0, 0.5, 1.0, 2.0), ()),
        (sm.Piecewise((1, (x >= 0) & (x < 1)), (2, (x >= 1) & (x <= 2))), (0.0, 0.5, 1.0, 2.0), (-0.5, 2.5)),
        (sm.Piecewise((sm.sqrt(x), x >= 0)), (0.0, 0.5, 4.0), (-1.0,)),
        (sm.Piecewise((1, 2 * x < 3), (sm.exp(x), 2 * x >= 3)), (1.0, 1.5, 2.0), ()),
    ],
)
def test_conditions_that_cover_an_interval(expression: Any, places: tuple[float, ...], outside: Any) -> None:
    s = kg.build(point_mass("covered", expression, parameters={"m": 1.0}), backend="interpreted")
    f = sm.lambdify(x, expression)
    for place in places:
        assert s.rhs(0.0, [place], [0.0])[1][0] == pytest.approx(float(f(place)), rel=1e-12)
    for place in outside:
        with raises(kg.SolveError, "Piecewise"):
            s.rhs(0.0, [place], [0.0])


@pytest.mark.parametrize(
    "expression",
    [
        sm.Piecewise((1, x < 0), (2, x > 0)),
        sm.Piecewise((1, (x > 0) & (x < 1)), (2, (x > 3) & (x < 4))),
        sm.Piecewise((1, x < v), (2, x > v + 1)),
    ],
)
def test_conditions_with_gaps_are_refused(expression: Any) -> None:
    with raises(kg.KanegenError, "(value, True)"):
        kg.build(point_mass("gaps", expression, parameters={"m": 1.0}), backend="interpreted")


def test_states_of_verify_are_inside() -> None:
    model = point_mass("verified", LIFT(x + 1) * x, parameters={"m": 1.0}, initial={"x": 0.5, "v": 0.0})
    kg.verify(model)


def test_the_emitted_step_says_so(tmp_path: Any) -> None:
    header = kg.emit(point_mass("stepped", LIFT(x)), tmp_path / "m", values={"m": 1.0})
    texts = "\n".join(path.read_text() for path in header.rglob("*.h"))
    assert "OUTSIDE_TABLE = -3" in texts
