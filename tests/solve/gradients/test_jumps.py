"""Derivatives through contacts, impacts, impulses and latches: closed forms, differences of accurate runs, refusals."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import jump_models
import numpy as np
import pytest
import sympy as sm
from jump_models import CASES, FALLING, ROD, TIGHT, difference_quotients, sensitivities_at, start_of
from messages import raises
from numpy.testing import assert_allclose
from sensitivity_models import differences
from systems import solver_for

import kanegen as kg


@cache
def built(name: str) -> kg.Solver:
    return kg.build(getattr(jump_models, name)())


@pytest.mark.parametrize("case", CASES)
def test_sensitivities_are_differences_of_runs(case: str) -> None:
    """1e-7 of the largest one: differences of order 6 of runs with rtol 1e-12, which events move."""
    name, t1, start, names, kinds = CASES[case]
    solver = built(name)
    solution, found = sensitivities_at(solver, t1, start, names)
    assert {event.kind for event in solution.events} >= kinds
    wanted = difference_quotients(solver, t1, start, names)
    assert_allclose(found, wanted, rtol=0.0, atol=1e-7 * np.abs(wanted).max())


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_the_sensitivity_of_its_objective(case: str) -> None:
    """A linear function of the end: the adjoint method takes the same steps from the end to the start."""
    name, t1, start, names, _ = CASES[case]
    solver = built(name)
    _, at_end = sensitivities_at(solver, t1, start, names)
    state = (*solver.model.coordinates, *solver.model.speeds, *solver.model.states)
    weights = np.arange(1.0, len(state) + 1.0)
    objective = kg.Objective(terminal=sum(w * x for w, x in zip(weights, state, strict=True)))
    q, u, s = start_of(solver, start)
    _, gradient = solver.value_and_gradient(objective, (0.0, t1), q, u, s0=s, with_respect_to=names, **TIGHT)
    wanted = weights @ at_end
    assert_allclose([gradient[n] for n in names], wanted, rtol=0.0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("case", ["a dragged block", "a compliant floor with friction", "friction in a joint"])
def test_contact_forces_have_derivatives(case: str) -> None:
    """At requested times between the events; one row for each contact row, those of the run."""
    name, t1, start, names, _ = CASES[case]
    solver, times = built(name), np.linspace(0.0, 0.9 * t1, 7)
    q, u, _ = start_of(solver, start)

    def forces(moved: kg.Solver) -> Any:
        return moved.integrate((0.0, t1), q, u, t_eval=times, **TIGHT).contacts.forces

    varied = [n for n in names if n in solver.parameters]
    solution = solver.integrate((0.0, t1), q, u, t_eval=times, sensitivities=varied, **TIGHT)
    found = solution.sensitivities.of("contact_forces")
    for k, n in enumerate(varied):
        value = solver.parameters[n]
        by = differences(lambda x, n=n, p=value: forces(solver.with_parameters({n: p * (1 + x)})), 1e-4) / value
        assert_allclose(found[..., k], by, rtol=0.0, atol=1e-7 * np.abs(solution.contacts.forces).max() / value)
    of_steps = solver.integrate((0.0, t1), q, u, sensitivities=varied, **TIGHT)
    assert of_steps.sensitivities.of("contact_forces").shape == (*of_steps.contacts.forces.shape, len(varied))


def test_creep_begins_where_friction_can_hold_the_block() -> None:
    """It is slow enough from the start, but too large a force drives it at first."""
    solver, names = kg.build(jump_models.creeping(falling=True)), ("mu", "delta", "rate", "size", "omega", "m", "v_x")
    start = {"x": 0.0, "z": 0.0, "v_x": 0.05, "v_z": 0.0}
    solution, found = sensitivities_at(solver, 0.15, start, names)
    (event,) = solution.events
    assert event.kind == "sticks"
    assert 0.1 < event.u_before[0] < 0.2
    wanted = difference_quotients(solver, 0.15, start, names)
    assert_allclose(found, wanted, rtol=0.0, atol=1e-7 * np.abs(wanted).max())


def test_quantities_of_contact_forces_end_with_the_derivatives() -> None:
    """A ball that comes to rest: its normal force is m g then, and the derivatives are NaN."""
    solver = solver_for("bouncing_ball")
    with pytest.warns(kg.ModelWarning, match="accumulate"):
        solution = solver.integrate((0.0, 6.0), {"z": 1.0}, {"u1": 0.0}, sensitivities=("g",), rtol=1e-9)
    found, known = solution.sensitivities.of("contact_forces"), solution.t < solution.sensitivities.valid_until
    assert not found[known].any()
    assert np.isnan(found[-1]).all()


def test_objectives_contain_contact_forces_and_accelerations() -> None:
    """The work of friction, and forces at single times, against differences of order 6."""
    name, t1, start, names, _ = CASES["a dragged block"]
    solver = built(name)
    q, u, _ = start_of(solver, start)
    normal, friction = (kg.Multiplier("floor", i) for i in (0, 1))
    (place, _), (speed, _) = solver.model.coordinates, solver.model.speeds
    samples = [(1.0, friction**2 * jump_models.TIME), (2.0, normal * speed.diff())]
    objective = kg.Objective(terminal=normal + friction * place, running=friction * speed, samples=samples)

    def valued(moved: kg.Solver) -> Any:
        return moved.value_and_gradient(objective, (0.0, t1), q, u, with_respect_to=names, **TIGHT)

    _, gradient = valued(solver)
    for n in names[:-1]:
        value = solver.parameters[n]
        by = differences(lambda x, n=n, p=value: valued(solver.with_parameters({n: p * (1 + x)}))[0], 1e-4) / value
        assert_allclose(gradient[n], by, rtol=1e-7, atol=1e-7 / value)


def test_twenty_bounces_have_derivatives_in_closed_form() -> None:
    e, g, h, t = sm.symbols("e g h t", positive=True)
    first = sm.sqrt(2 * h / g)
    v, start = sm.sqrt(2 * g * h), first
    for _ in range(20):
        v = e * v
        start, before = start + 2 * v / g, start
    z = v * (t - before) - g * (t - before) ** 2 / 2
    solver, at = solver_for("bouncing_ball"), {e: 0.8, g: 9.81, h: 1.0}
    t1 = float(((start + 3 * before) / 4).subs(at))
    solution = solver.integrate(
        (0.0, t1), {"z": 1.0}, {"u1": 0.0}, sensitivities=("e", "g", "z"), rtol=1e-12, atol=1e-14
    )
    assert sum(event.kind == "impact" for event in solution.events) == 20
    wanted = [[float(row.diff(x).subs({**at, t: t1})) for x in (e, g, h)] for row in (z, z.diff(t))]
    assert_allclose(solution.sensitivities.matrix[-1], wanted, rtol=1e-8)


def test_a_restitution_of_zero_has_one_sided_derivatives() -> None:
    """With a small restitution, the bounces end at once; where the ball slides then does not depend on it."""
    solver = built("slope").with_parameters(e=0.0)
    start = start_of(solver, FALLING)

    def end(e: float) -> Any:
        return jump_models.end_state(solver.with_parameters(e=e).integrate((0.0, 1.2), *start[:2], **TIGHT))

    found = solver.integrate((0.0, 1.2), *start[:2], sensitivities=("e", "g"), **TIGHT).sensitivities
    assert found.reason is None
    assert_allclose(found.matrix[-1][:, 0], (end(1e-3) - end(0.0)) / 1e-3, atol=1e-9)
    assert found.matrix[-1][0, 1] == pytest.approx(0.198165138, rel=1e-8)


def test_the_time_at_which_impacts_come_to_rest_has_derivatives() -> None:
    """t0 (1 + e) / (1 - e) with t0 = sqrt(2 h / g)."""
    solver, names = solver_for("bouncing_ball"), ("e", "g", "z")
    with pytest.warns(kg.ModelWarning, match="the sensitivities end at t = 4.06.*infinitely many impacts accumulate"):
        solution = solver.integrate((0.0, 6.0), {"z": 1.0}, {"u1": 0.0}, sensitivities=names, rtol=1e-11, atol=1e-12)
    found = solution.sensitivities
    e, t0 = 0.8, np.sqrt(2.0 / 9.81)
    rest = t0 * (1.0 + e) / (1.0 - e)
    wanted = [2.0 * t0 / (1.0 - e) ** 2, -0.5 * rest / 9.81, 0.5 * rest]
    assert_allclose([found.accumulation_time[n] for n in names], wanted, rtol=1e-9)
    known = solution.t < found.valid_until
    assert_allclose(found.valid_until, rest, rtol=1e-5)
    assert np.isfinite(found.matrix[known]).all()
    assert np.isnan(found.matrix[-1]).all()
    assert "accumulate" in str(found.reason)


def test_a_gradient_beyond_an_accumulation_needs_consent() -> None:
    """The motion after it hardly depends on the impacts that are left out; differences of the run of 70 impacts."""
    solver = solver_for("bouncing_ball")
    (z,) = solver.model.coordinates
    arguments: dict[str, Any] = {"with_respect_to": ("e", "z"), "rtol": 1e-11, "atol": 1e-12}
    run = kg.Objective(running=z**2), (0.0, 6.0), {"z": 1.0}, {"u1": 0.0}
    with raises(kg.SolveError, "not available beyond the event 'closes'", "accumulate"):
        solver.value_and_gradient(*run, **arguments)
    with pytest.warns(kg.ModelWarning, match="accumulate"):
        value, gradient = solver.value_and_gradient(*run, nondifferentiable="warn", **arguments)
    e = 0.8

    def exact(e: float, h: float) -> float:
        """The integral of z^2 over the first fall, and over flights of the initial speeds e^n sqrt(2 g h)."""
        fall = 8.0 / 15.0 * h**2.5 * np.sqrt(2.0 / 9.81)
        return float(fall + 2.0 * fall * e**5 / (1.0 - e**5))

    assert_allclose(value, exact(e, 1.0), rtol=1e-9)
    step = 1e-6
    wanted = [(exact(e + step, 1.0) - exact(e - step, 1.0)) / (2 * step), 2.5 * exact(e, 1.0)]
    assert_allclose([gradient["e"], gradient["z"]], wanted, rtol=1e-7)
    with raises(kg.SolveError, "nondifferentiable is 'ignore'", "'error' or 'warn'"):
        solver.value_and_gradient(*run, nondifferentiable="ignore", **arguments)


def test_elastic_balls_exchange_their_speeds() -> None:
    """Equal masses: what moves one ball before the impact moves the other one after it."""
    start = {"x1": 0.0, "x2": 1.0, "v1": 1.0, "v2": 0.0}
    _, found = sensitivities_at(built("balls"), 1.5, start, ("x1", "x2", "v1", "v2"))
    wanted = [[0.0, 1.0, 0.0, 1.5], [1.0, 0.0, 1.5, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]]
    assert_allclose(found, wanted, atol=1e-12)


def test_impacts_at_the_same_instant_have_no_derivative() -> None:
    q, u, _ = start_of(built("rod"), {**ROD, "th": 0.0})
    with pytest.warns(kg.ModelWarning, match="'end 1' and 'impact' of contact 'end 2' occur at the same instant"):
        solution = built("rod").integrate((0.0, 0.5), q, u, sensitivities=("e", "l"))
    found = solution.sensitivities
    assert_allclose(found.valid_until, np.sqrt(2.0 / 9.81), rtol=1e-8)
    assert np.isfinite(found(0.4)).all()
    assert np.isnan(found(0.48)).all()


def test_a_run_that_ends_as_a_contact_begins_to_slip_has_the_derivatives_of_a_longer_run() -> None:
    q, u, _ = start_of(built("slope"), FALLING)
    names = ("mu", "g", "z", "v_x")
    ended, longer = (
        kg.build(jump_models.landing(terminal)).integrate((0.0, 0.6), q, u, sensitivities=names, rtol=1e-11, atol=1e-12)
        for terminal in (True, False)
    )
    assert ended.t[-1] == longer.events[0].t
    assert [event.kind for event in ended.events] == ["user", "impact", "closes"]
    wanted = longer.sensitivities(ended.t[-1])
    assert_allclose(ended.sensitivities.matrix[-1], wanted, rtol=0.0, atol=1e-9 * np.abs(wanted).max())


def test_slip_that_starts_in_a_plane_ends_the_derivatives() -> None:
    solver = built("puck_in_wind")
    start = {"x": 0.0, "y": 0.0, "z": 0.0, "v_x": 0.0, "v_y": 0.0, "v_z": 0.0}
    q, u, _ = start_of(solver, start)
    with pytest.warns(kg.ModelWarning, match="it begins to slip in a plane"):
        solver.integrate((0.0, 1.0), q, u, sensitivities="mu")


def test_a_closed_contact_completes_the_start() -> None:
    """A ball of radius R that rests on the floor: its center moves with R. A height that is given cannot."""
    solver = built("resting")
    free = solver.with_initial({"z": 0.2, "v_z": 0.0})
    solution = free.integrate((0.0, 0.5), None, None, sensitivities=("R",))
    assert_allclose(solution.sensitivities["z", "R"], 1.0, rtol=1e-12)
    with raises(kg.SolveError, "the parameter R cannot vary"):
        solver.integrate((0.0, 0.5), {"z": 0.2}, {"v_z": 0.0}, sensitivities=("R",))


def test_no_warning_where_all_derivatives_exist() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution, _ = sensitivities_at(built("slope"), 1.2, FALLING, ("e",))
    assert solution.sensitivities.reason is None
    assert solution.sensitivities.valid_until == solution.t[-1]
    with raises(kg.SolveError, "no impacts came to rest"):
        _ = solution.sensitivities.accumulation_time


@pytest.mark.parametrize("form", ["augmented", "pseudoinverse"])
def test_forms_have_the_same_derivatives(form: str) -> None:
    names = ("e", "mu", "l", "th")
    _, wanted = sensitivities_at(built("rod"), 0.5, ROD, names)
    _, found = sensitivities_at(kg.build(jump_models.rod(), form=form), 0.5, ROD, names)
    assert_allclose(found, wanted, rtol=0.0, atol=1e-9 * np.abs(wanted).max())


def test_laws_act_beside_contacts() -> None:
    """A spring that is a feedback law presses a block that slides to rest."""
    solver = built("pressed")
    start = {"x": 0.0, "z": 0.0, "v_x": 1.0, "v_z": 0.0}
    names = ("k", "mu", "v_x")
    _, found = sensitivities_at(solver, 0.6, start, names)
    assert_allclose(found, difference_quotients(solver, 0.6, start, names), atol=1e-8)
