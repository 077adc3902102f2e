"""Derivatives with respect to the ordinates of inputs that tables and splines give, against differences of order 6."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy.physics.mechanics as me
from jump_models import TIME, c, end_state, k, mu, particle, v_x, v_z, x, z
from messages import raises
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.interpolate import BSpline, CubicSpline, PchipInterpolator, PPoly
from sensitivity_models import differences

import kanegen as kg

Array = NDArray[np.float64]
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12}
TIMES = np.linspace(0.0, 2.0, 6)
VALUES = np.array([0.4, 1.2, -2.0, 0.3, 1.9, -1.1])
F, G, rate, acceleration, P, w = me.dynamicsymbols("F G rate acceleration P w")
FORMS: dict[str, Callable[[Array], Any]] = {
    "a table": lambda values: (TIMES, values),
    "steps": lambda values: PPoly(values[None, :], np.linspace(0.0, 2.0, 7)),
    "a line of polynomials": lambda values: PPoly(np.stack([np.diff(values) / 0.4, values[:-1]]), TIMES),
    "a B-spline": lambda values: BSpline([0.0] * 4 + [0.7, 1.1] + [2.0] * 4, values, 3),
    "a cubic spline": lambda values: CubicSpline(TIMES, values),
    "a natural spline": lambda values: CubicSpline(TIMES, values, bc_type="natural"),
}


@cache
def oscillator() -> kg.Solver:
    force = (F - k * x - c * v_x - x**3,)
    return kg.build(particle("shaken", "x", force, gravity=None, inputs=[kg.Input(F)], parameters={k: 4.0, c: 0.1}))


def require_derivatives(
    solver: kg.Solver, name: str, form: Callable[[Array], Any], values: Array, objective: kg.Objective, *run: Any
) -> kg.Solution:
    """1e-8 of the largest one: of the end, and of an objective. Steps of the differences end at the knots, too."""
    span, q0, u0, *more = run
    options = {**TIGHT, "s0": more[0] if more else None, "r": {name: form(values)}}
    units, n = np.eye(len(values)), len(values)

    def end(moved: Array) -> Array:
        return end_state(solver.integrate(span, q0, u0, **{**options, "r": {name: form(moved)}}, sensitivities=name))

    def value(moved: Array) -> float:
        given = {**options, "r": {name: form(moved)}}
        return solver.value_and_gradient(objective, span, q0, u0, **given, with_respect_to=name)[0]

    solution = solver.integrate(span, q0, u0, sensitivities=name, **options)
    assert solution.sensitivities.names == tuple(f"{name}[{i}]" for i in range(n))
    found = solution.sensitivities.matrix[-1]
    if not any(event.terminal for event in solver.description.events):
        wanted = [differences(lambda e, unit=unit: end(values + e * unit), 1e-3) for unit in units]  # type: ignore[misc]
        assert_allclose(found, np.transpose(wanted), rtol=0.0, atol=1e-8 * np.abs(wanted).max())
    _, gradient = solver.value_and_gradient(objective, span, q0, u0, with_respect_to=name, **options)
    slopes = [differences(lambda e, unit=unit: value(values + e * unit), 1e-3) for unit in units]  # type: ignore[misc]
    assert_allclose(gradient[name], slopes, rtol=0.0, atol=1e-8 * np.abs(slopes).max())
    return solution


@pytest.mark.parametrize(
    ("form", "size"), [*((form, 1.0) for form in FORMS), ("a table", 0.0), ("steps", 0.0), ("a B-spline", 0.0)]
)
def test_ordinates_of_a_force(form: str, size: float) -> None:
    """A force that is zero has derivatives at its knots, too, although nothing happens there in the motion."""
    objective = kg.Objective(terminal=x**2 + F * x, running=F**2 + v_x**2, samples=[(0.5, x * F), (1.3, x)])
    values = size * VALUES
    solution = require_derivatives(oscillator(), "F", FORMS[form], values, objective, (0.0, 2.0), [0.3], [0.1])
    found = solution.sensitivities
    assert found["x", "F"].shape == (len(solution.t), len(values))
    assert_array_equal(found["x", (F, 2)], found["x", "F"][:, 2])
    assert_array_equal(found["x", "F[2]"], found["x", "F"][:, 2])


def test_inputs_given_as_a_whole_and_a_parameter_beside_them() -> None:
    solver, run = oscillator(), ((0.0, 2.0), [0.3], [0.1])
    named = solver.integrate(*run, {"F": FORMS["a table"](VALUES)}, sensitivities=("k", "F"), **TIGHT).sensitivities
    whole = solver.integrate(*run, FORMS["a table"](VALUES), sensitivities=("k", "F"), **TIGHT).sensitivities
    assert_array_equal(whole.matrix, named.matrix)
    assert whole["x", "k"].shape == whole.t.shape
    force = solver.integrate(*run, {"F": FORMS["a table"](VALUES)}, sensitivities=("F",), **TIGHT)
    assert_allclose(force.sensitivities.matrix, named.matrix[:, :, 1:], rtol=1e-13, atol=1e-13)


def test_rates_of_an_input_follow_it_in_a_constraint() -> None:
    """A particle on a curve that moves; the start moves with it."""
    inputs = [kg.Input(G, rate=rate, acceleration=acceleration)]
    more: dict[str, Any] = {"inputs": inputs, "holonomic_constraints": [z - G - x**2 / 4]}
    solver = kg.build(particle("raised", "xz", (-k * x + z, -c * v_z), parameters={k: 9.0, c: 0.5}, **more))
    objective = kg.Objective(terminal=x * G, running=G * rate * v_x)

    def form(values: Array) -> Any:
        return BSpline([0.0] * 6 + [2.0] * 6, values, 5)

    solution = require_derivatives(solver, "G", form, VALUES, objective, (0.0, 2.0), {"x": 0.2}, {"v_x": 0.0})
    assert solution.sensitivities["z", "G"][0, 0] == pytest.approx(1.0)
    assert solution.sensitivities.of("multipliers").shape == (len(solution.t), 1, 6)


def pushed() -> kg.Solver:
    """A block on a rough floor."""
    contacts = [kg.Unilateral(z, kg.Restitution(), kg.Coulomb(mu), v_x, "floor")]
    return kg.build(particle("pushed", force=(F, 0), uses=(mu,), contacts=contacts, inputs=[kg.Input(F)]))


def test_a_table_moves_the_times_at_which_friction_sticks_and_slips() -> None:
    solver, values = pushed(), np.array([0.0, 4.0, 9.0, 2.0, -8.0, -3.0])
    objective = kg.Objective(terminal=x * F + kg.Multiplier("floor", 1), running=F * v_x)
    run = (0.0, 1.9), [0.0, 0.0], [0.0, 0.0]
    solution = require_derivatives(solver, "F", FORMS["a table"], values, objective, *run)
    assert {event.kind for event in solution.events} >= {"slips"}


@pytest.mark.parametrize("force", [(TIMES, [0.0, 4.0, 9.0, 2.0, -8.0, -3.0]), lambda t: 9.0 * np.sin(t)])
def test_forces_in_time_move_what_they_start(force: Any) -> None:
    """The rate of a stick margin contains that of the force."""
    solver, run = pushed(), ((0.0, 1.9), [0.0, 0.0], [0.0, 0.0])
    solution = solver.integrate(*run, {"F": force}, sensitivities="mu", **TIGHT)
    assert "slips" in {event.kind for event in solution.events}

    def end(e: float) -> Array:
        return end_state(solver.with_parameters({"mu": 0.3 + e}).integrate(*run, {"F": force}, **TIGHT))

    wanted = differences(end, 1e-4)
    assert_allclose(solution.sensitivities.matrix[-1, :, 0], wanted, rtol=0.0, atol=1e-8 * np.abs(wanted).max())


def test_guards_resets_and_impulses_contain_an_input() -> None:
    blow = kg.Event("blow", w - 1 - F / 20, impulse="hammer", reset={w: w - 1 - F / 9})
    more: dict[str, Any] = {"states": {w: 1 + x / 4}, "events": [blow], "impulses": {"hammer": (F - v_x / 4,)}}
    model = particle("struck", "x", (-k * x,), gravity=None, inputs=[kg.Input(F)], parameters={k: 9.0}, **more)
    objective = kg.Objective(terminal=x * F, running=F * v_x)
    run = (0.0, 1.9), [0.1], [0.0], [0.0]
    solution = require_derivatives(kg.build(model), "F", FORMS["a table"], VALUES, objective, *run)
    assert solution.events


def test_a_terminal_event_at_a_place_that_an_input_gives() -> None:
    event = kg.Event("reached", x - F / 10 - 0.5, terminal=True, direction=1)
    model = particle(
        "reaches", "x", (F - k * x,), gravity=None, inputs=[kg.Input(F)], events=[event], parameters={k: 2.0}
    )
    objective = kg.Objective(terminal=x * F + TIME, running=F * v_x)
    values = np.array([0.0, 1.6, 3.6, 2.0, 1.0, 0.3])
    solution = require_derivatives(kg.build(model), "F", FORMS["a table"], values, objective, (0.0, 2.0), [0.0], [0.0])
    assert solution.status is kg.Outcome.TERMINAL_EVENT


def test_laws_act_beside_a_table() -> None:
    inputs = [kg.Input(F), kg.Input(P, law=-k * x - v_x + F / 3, saturation=1)]
    model = particle("held", "x", (F + P,), gravity=None, inputs=inputs, parameters={k: 9.0})
    objective = kg.Objective(terminal=x * F, running=P * F * v_x)
    require_derivatives(kg.build(model), "F", FORMS["a table"], VALUES, objective, (0.0, 2.0), [0.2], [0.0])


def test_ensembles_and_tables_have_a_column_for_each_ordinate() -> None:
    solver, r, times = oscillator(), {"F": FORMS["a table"](VALUES)}, [1.0, 2.0]
    many = solver.integrate_many(
        (0.0, 2.0), [[0.1], [0.3]], [0.1], r=r, sensitivities=("k", "F"), t_eval=times, **TIGHT
    )
    one = solver.integrate((0.0, 2.0), [0.3], [0.1], r, sensitivities=("k", "F"), t_eval=times, **TIGHT)
    assert many.sensitivities is not None
    assert_array_equal(many.sensitivities["x", "F"][1], one.sensitivities["x", "F"])
    assert_array_equal(many.sensitivities["x", ("F", 2)], many.sensitivities["x", "F"][:, :, 2])
    of_energy = one.sensitivities.of("kinetic_energy")
    assert_allclose(of_energy, 1.2 * one.u * one.sensitivities.matrix[:, 1], rtol=1e-12)
    labels = one.to_xarray()["sensitivities"]["with_respect_to"]
    assert labels.values.tolist() == ["k", *(f"F[{i}]" for i in range(6))]


def test_refusals_say_which_inputs_have_ordinates() -> None:
    solver, run = oscillator(), ((0.0, 2.0), [0.3], [0.1])
    for given, words in (
        (CubicSpline(TIMES, 0.0 * TIMES), ("cannot be told from its coefficients", "make_interp_spline")),
        (PchipInterpolator(TIMES, VALUES), ("the input F is a PchipInterpolator", "values of tables")),
        (lambda t: t, ("the input F is not constant in this run, nor given by a table or spline",)),
        (kg.Signal(lambda t: t, [1.0]), ("the input F is not constant in this run",)),
    ):
        with raises(kg.SolveError, *words):
            solver.integrate(*run, {"F": given}, sensitivities="F")
    found = solver.integrate(*run, FORMS["a table"](VALUES), sensitivities="F").sensitivities
    with raises(kg.SolveError, "there is no quantity that varies 'F[9]'"):
        found["x", ("F", 9)]
