"""Derivatives of motions under sampled feedback laws, against differences of order 6 and a closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from jump_models import TIME, a, c, e, end_state, k, mu, particle, v_x, v_z, x, z
from messages import raises
from numpy.testing import assert_allclose, assert_array_equal
from sensitivity_models import differences
from systems import solver_for

import kanegen as kg

TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12}
F, G, P, w = me.dynamicsymbols("F G P w")
k_p, k_d = sm.symbols("k_p k_d")
GAINS: Mapping[Any, float] = {k: 4.0, c: 0.1, k_p: 3.0, k_d: 0.5, a: 0.2}
NAMES = ("k", "c", "k_p", "k_d", "a", "m", "x", "v_x")


def shaken(*inputs: kg.Input, force: Any = 0, **more: Any) -> kg.Model:
    """A nonlinear oscillator under inputs with laws."""
    given: dict[str, Any] = {"parameters": GAINS, "outputs": {"power": F * v_x}, **more}
    total = sum((item.symbol for item in inputs), -k * x - c * v_x - x**3 + force)
    return particle("shaken", "x", (total,), gravity=None, inputs=inputs, **given)


def controller(**times: Any) -> kg.Input:
    return kg.Input(F, law=-k_p * x - k_d * v_x + a, **times)


def require_derivatives(
    model: kg.Model,
    names: Sequence[str],
    t1: float,
    start: Sequence[Sequence[float]],
    objective: kg.Objective,
    **more: Any,
) -> kg.Solution:
    """1e-8 of the largest one: of the end, and of an objective."""
    solver, (q, u, *s) = kg.build(model), start
    d, options = solver.description, {**TIGHT, "s0": s[0] if s else None, **more}
    known = {**dict(zip(d.coordinates, q, strict=True)), **dict(zip(d.speeds, u, strict=True))}

    def moved(name: str, change: float) -> tuple[Any, ...]:
        at = {**known, name: known.get(name, 0.0) + change}
        varied = solver
        if name in d.parameters:
            varied = solver.with_parameters({name: solver.parameters[name] + change})
        return varied, (0.0, t1), *({n: at[n] for n in part} for part in (d.coordinates, d.speeds))

    def end(name: str, change: float) -> Any:
        varied, *run = moved(name, change)
        return end_state(varied.integrate(*run, **options))

    def value(name: str, change: float) -> Any:
        varied, *run = moved(name, change)
        return varied.value_and_gradient(objective, *run, with_respect_to=names[:1], **options)[0]

    solution = solver.integrate(*moved("", 0.0)[1:], sensitivities=names, **options)
    if solution.status is not kg.Outcome.TERMINAL_EVENT:
        wanted = np.array([differences(lambda x, n=n: end(n, x), 1e-4) for n in names]).T  # type: ignore[misc]
        assert_allclose(solution.sensitivities.matrix[-1], wanted, rtol=0.0, atol=1e-8 * np.abs(wanted).max())
    _, gradient = solver.value_and_gradient(objective, *moved("", 0.0)[1:], with_respect_to=names, **options)
    slopes = [differences(lambda x, n=n: value(n, x), 1e-4) for n in names]  # type: ignore[misc]
    assert_allclose([gradient[n] for n in names], slopes, rtol=0.0, atol=1e-8 * np.abs(slopes).max())
    return solution


TIMES: dict[str, dict[str, Any]] = {
    "without delay": {"sample_time": 0.1},
    "a delay": {"sample_time": 0.1, "delay": 0.03},
    "several samples under way": {"sample_time": 0.1, "delay": 0.25},
    "a delay of one sample": {"sample_time": 0.1, "delay": 0.1},
    "saturation": {"sample_time": 0.3, "saturation": 0.8},
    "one sample": {"sample_time": 5.0},
}


@pytest.mark.parametrize("case", TIMES)
def test_a_sampled_law_moves_with_the_state_at_its_samples(case: str) -> None:
    samples = [(0.5, x * F), (1.3, x), (0.75, F * v_x)]
    objective = kg.Objective(terminal=x**2 + F * x, running=F**2 + v_x**2, samples=samples)
    require_derivatives(shaken(controller(**TIMES[case])), NAMES, 2.0, ([0.5], [0.3]), objective)


def test_a_double_integrator_has_its_derivatives_in_closed_form() -> None:
    """x+ = x + T v + T^2 / 2 F / m, v+ = v + T F / m with F = -k_p x - k_d v: a power of a matrix."""
    T, n = sm.Rational(1, 4), 8
    m, start = sm.Symbol("m"), sm.Matrix([sm.Rational(1, 2), sm.Rational(3, 10)])
    step = sm.Matrix([[1, T], [0, 1]]) - sm.Matrix([T**2 / 2, T]) * sm.Matrix([[k_p, k_d]]) / m
    state = start
    for _ in range(n):
        state = step * state
    gains = {k_p: 3.0, k_d: 0.5}
    inputs = [kg.Input(F, law=-k_p * x - k_d * v_x, sample_time=float(T))]
    solver = kg.build(particle("cart", "x", (F,), gravity=None, inputs=inputs, parameters=gains))
    solution = solver.integrate((0.0, n * float(T)), [0.5], [0.3], sensitivities=("k_p", "k_d", "m"), **TIGHT)
    wanted = np.array(state.jacobian([k_p, k_d, m]).subs({**gains, m: 1.2}), dtype=float)
    assert_allclose(solution.sensitivities.matrix[-1], wanted, rtol=1e-11)


def test_continuous_laws_and_two_clocks() -> None:
    inputs = (
        kg.Input(F, law=-k_p * x, sample_time=0.1),
        kg.Input(G, law=-k_d * v_x * x, saturation=0.2),
        kg.Input(P, law=a * sm.sin(x) - v_x / 3, sample_time=0.07, delay=0.02),
    )
    objective = kg.Objective(terminal=F * G + P, running=F * P + G, samples=[(0.7, F * P)])
    for given in ({}, {"G": 0.3}):
        require_derivatives(shaken(*inputs), NAMES, 2.0, ([0.5], [0.3]), objective, r=given)


def test_contacts_that_sampled_laws_move() -> None:
    contacts = [kg.Unilateral(z, kg.Restitution(e), kg.Coulomb(mu), v_x, "floor")]
    inputs = [
        kg.Input(F, law=-k_p * x - k_d * v_x + a, sample_time=0.1, delay=0.01),
        kg.Input(G, law=-k_p * z - 2 * v_z, sample_time=0.04),
    ]
    parameters = {k_p: 6.0, k_d: 0.5, a: 8.2}
    model = particle("hopper", force=(F, G), uses=(mu, e), contacts=contacts, inputs=inputs, parameters=parameters)
    objective = kg.Objective(terminal=x * F + kg.Multiplier("floor", 1), running=kg.Multiplier("floor") * F)
    names = ("mu", "e", "k_p", "k_d", "a", "m", "z", "v_x")
    flying = require_derivatives(model, names, 1.0, ([0.1, 0.5], [0.3, 0.0]), objective)
    assert {event.kind for event in flying.events} >= {"impact"}
    names = ("mu", "k_p", "k_d", "a", "m", "x")
    sliding = require_derivatives(model, names, 1.9, ([0.1, 0.0], [0.0, 0.0]), objective)
    assert {event.kind for event in sliding.events} >= {"sticks"}


def test_a_sample_that_overcomes_friction_does_so_at_its_time() -> None:
    contacts = [kg.Unilateral(z, kg.Restitution(), kg.Coulomb(mu), v_x, "floor")]
    inputs = [kg.Input(F, law=a * TIME - k_p * x, sample_time=0.1)]
    model = particle(
        "pulled", force=(F, 0), uses=(mu,), contacts=contacts, inputs=inputs, parameters={a: 6.0, k_p: 1.0}
    )
    run = 1.5, ([0.0, 0.0], [0.0, 0.0]), kg.Objective(terminal=x * F)
    solution = require_derivatives(model, ("mu", "a", "k_p", "m", "g"), *run)
    assert {event.kind for event in solution.events} == {"slips"}


HELD = kg.Input(F, law=-k_p * x + w * a, sample_time=0.125)
EVENTS: dict[str, kg.Event] = {
    "a blow and a reset": kg.Event("blow", w - 1, impulse="hammer", reset={w: w - 1 - F / 9}),
    "a reset at a sample": kg.Event("half", TIME - sm.Rational(1, 2), reset={w: w / 2 + x}),
    "an end at a place that the law gives": kg.Event("end", x - F / 20 - 0.1, terminal=True, direction=-1),
    "an end at a sample": kg.Event("end", F - 0.1 + x / 50, terminal=True),
}


@pytest.mark.parametrize("case", EVENTS)
def test_events_beside_samples(case: str) -> None:
    more = {"impulses": {"hammer": (F - v_x / 4,)}} if EVENTS[case].impulse else {}
    parameters = {k: 9.0, k_p: 2.0, a: 0.5}
    model = shaken(HELD, states={w: 1 + x / 4}, events=[EVENTS[case]], parameters={**parameters, c: 0.1}, **more)
    objective = kg.Objective(terminal=x * F + w + TIME, running=F * v_x)
    solution = require_derivatives(model, ("k", "k_p", "a", "x"), 1.9, ([0.3], [0.1], [0.0]), objective)
    assert solution.events


def test_a_reset_at_which_the_guard_jumps_ends_the_derivatives() -> None:
    event = kg.Event("over", F - 0.1 + x / 50, reset={w: w / 2 + 1})
    model = shaken(HELD, states={w: x}, events=[event], parameters={k: 9.0, k_p: 2.0, a: 0.5, c: 0.1})
    with pytest.warns(kg.ModelWarning, match="the event 'over' at t = .* an instant at which an input jumps"):
        kg.build(model).integrate((0.0, 1.9), [0.3], [0.1], s0=[0.0], sensitivities="k")


def test_a_law_that_reads_a_table() -> None:
    inputs = [kg.Input(F, law=-k_p * (x - G), sample_time=0.13, delay=0.05), kg.Input(G)]
    parameters = {k: 9.0, k_p: 2.0, c: 0.1}
    solver, run = kg.build(shaken(*inputs, parameters=parameters)), ((0.0, 2.0), [0.1], [0.2])
    times, values, unit = np.linspace(0.0, 2.0, 5), np.array([0.3, -0.2, 0.8, 0.1, 0.5]), np.eye(5)
    objective = kg.Objective(terminal=x * F, running=F * G + x, samples=[(0.4, F * x)])
    of_run = {"r": {"G": (times, values)}, **TIGHT}
    solution = solver.integrate(*run, sensitivities=("G", "k_p"), **of_run)
    _, gradient = solver.value_and_gradient(objective, *run, with_respect_to=("G", "k_p"), **of_run)

    def valued(moved: Any) -> Any:
        given = {"r": {"G": (times, moved)}, **TIGHT}
        end = end_state(solver.integrate(*run, sensitivities="G", **given))
        return np.append(end, solver.value_and_gradient(objective, *run, with_respect_to="G", **given)[0])

    wanted = np.array([differences(lambda d, j=j: valued(values + d * unit[j]), 1e-2) for j in range(5)])  # type: ignore[misc]
    found = np.column_stack([solution.sensitivities.matrix[-1, :, :5].T, gradient["G"]])
    assert_allclose(found, wanted, rtol=0.0, atol=1e-9)
    many = solver.integrate_many((0.0, 2.0), [[0.1], [0.3]], [0.2], sensitivities=("G", "k_p"), threads=2, **of_run)
    assert many.sensitivities is not None
    assert_array_equal(many.sensitivities.matrix[0, -1], solution.sensitivities.matrix[-1])


def test_outputs_and_requested_times() -> None:
    solver, times = kg.build(shaken(controller(sample_time=0.1, delay=0.03))), np.linspace(0.0, 2.0, 8)
    run = (0.0, 2.0), [0.5], [0.3]
    solution = solver.integrate(*run, t_eval=times, sensitivities="k_p", **TIGHT)

    def power(change: float) -> Any:
        moved = solver.with_parameters({"k_p": 3.0 + change})
        return moved.integrate(*run, t_eval=times, **TIGHT).outputs["power"]

    wanted = differences(power, 1e-3)
    assert_allclose(solution.sensitivities.of("power")[:, 0], wanted, rtol=0.0, atol=1e-9 * np.abs(wanted).max())
    assert_allclose(solution.sensitivities(times[3]), solution.sensitivities.matrix[3], rtol=1e-13)


def test_refusals() -> None:
    """Values of other kinds that are held, and periodic motions."""
    solver = solver_for("cart_pole")
    held, start = solver.description.inputs[0], np.zeros(2)
    with raises(kg.SolveError, f"sampled inputs ({held}): give laws of inputs, or leave out sample_time"):
        solver.integrate(
            (0.0, 1.0),
            start,
            start,
            {held: lambda t, q, u: -q[0]},
            sample_time=0.1,
            sensitivities=solver.description.parameters[:1],
        )
    shaking = kg.build(shaken(controller(sample_time=0.1)))
    with raises(kg.SolveError, "periodic motions are not available with sampled inputs (F)"):
        shaking.periodic_motion([0.1, 0.1], period=2.0)
