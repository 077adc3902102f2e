"""Derivatives of motions by the Rosenbrock method: of its own steps, closed forms, explicit methods, refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jump_models
import numpy as np
import pytest
import sympy
import sympy.physics.mechanics as me
from jump_models import CASES, TIGHT, start_of
from messages import raises
from numpy.testing import assert_allclose
from sensitivity_models import F, a, c, k, line, m, v, x
from systems import initial, model_of

import kanegen as kg
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.methods.rosenbrock import Rosenbrock

STIFF = ("rhs", "consistency", "jacobians")
RODAS: dict[str, Any] = {"method": "rodas", "rtol": 1e-8, "atol": 1e-10}
TIME = me.dynamicsymbols._t

Rates = Callable[[complex, Any, Any], Any]


def damped(**more: Any) -> kg.Model:
    """A stiff nonlinear oscillator that depends on the time."""
    force = -k * x - c * v**3 - 50 * v + a * k * sympy.sin(3 * TIME) + F * sympy.cos(x)
    return line("damped", force, {k: 4.0, c: 0.2, a: 0.3}, **{"inputs": [kg.Input(F)], **more})


@cache
def damped_solver() -> kg.Solver:
    return kg.build(damped(), functions=STIFF)


def rosenbrock_end(p: Any, times: Any, start: Any) -> Any:
    """The end of the motion of `damped` for complex parameters (k, c, a, F), by steps between the given times."""
    method = METHODS["rodas"].coefficients
    assert isinstance(method, Rosenbrock)
    (stiffness, damping, drive, push), y = p, np.array(start, dtype=complex)

    def rates(t: float, y: Any) -> Any:
        force = -stiffness * y[0] - damping * y[1] ** 3 - 50 * y[1] + drive * stiffness * np.sin(3 * t)
        return np.array([y[1], force + push * np.cos(y[0])])

    for t, h in zip(times[:-1], np.diff(times), strict=True):
        J = np.array([[0, 1], [-stiffness - push * np.sin(y[0]), -3 * damping * y[1] ** 2 - 50]])
        f_t = np.array([0, 3 * drive * stiffness * np.cos(3 * t)])
        W, stages = np.eye(2) / (h * float(method.gamma)) - J, list[Any]()
        for i in range(method.stages):
            inside = y + sum((float(w) * s for w, s in zip(method.a[i], stages, strict=False)), start=0 * y)
            coupled = sum((float(w) * s for w, s in zip(method.C[i], stages, strict=False)), start=0 * y) / h
            right = rates(t + float(method.c[i]) * h, inside) + coupled + float(method.d[i]) * h * f_t
            stages.append(np.linalg.solve(W, right))
        y = y + sum(float(w) * s for w, s in zip(method.m, stages, strict=True))
    return y


def test_derivatives_are_those_of_the_steps() -> None:
    """The same steps in NumPy, by complex steps of 1e-30 in each parameter; both round alike but for their order."""
    values, start = np.array([4.0, 0.2, 0.3, 0.7]), np.array([0.7, -0.4])
    options: dict[str, Any] = {**RODAS, "rtol": 1e-5, "atol": 1e-7, "sensitivity_tolerance": 1.0}
    solution = damped_solver().integrate(
        (0.0, 2.0), *start[:, None], [0.7], sensitivities=(k, c, a, F, x, v), **options
    )
    wanted = []
    for unit in np.eye(6):
        at, moved = values + 1e-30j * unit[:4], start + 1e-30j * unit[4:]
        wanted.append(rosenbrock_end(at, solution.t, moved).imag / 1e-30)
    assert_allclose(solution.sensitivities.matrix[-1], np.transpose(wanted), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("form", ["constant", "table", "spline"])
def test_gradients_are_sensitivities(form: str) -> None:
    """A terminal cost, a running cost that a state integrates, and samples; inputs by ordinates."""
    from scipy.interpolate import make_interp_spline

    knots, values = np.linspace(0.0, 2.0, 5), np.array([0.3, 0.1, -0.4, 0.5, 0.2])
    given = {"constant": 0.3, "table": (knots, values), "spline": make_interp_spline(knots, values)}[form]
    w, names = me.dynamicsymbols("w"), ("k", "c", "a", "m", "x", "v", "F")
    running = x * v + F**2 + k * x**2
    counted = kg.build(damped(states={w: running}), functions=STIFF)
    run = ((0.0, 2.0), [0.7], [-0.4], {"F": given})
    objective = kg.Objective(terminal=x**2 + m * v, running=running, samples=[(0.5, x**2), (1.0, v * c)])
    value, gradient = damped_solver().value_and_gradient(objective, *run, with_respect_to=names, **RODAS)
    options = {**RODAS, "rtol": 1e-10, "atol": 1e-12, "t_eval": [0.0, 0.5, 1.0, 2.0]}
    solution = counted.integrate(*run, s0=[0.0], sensitivities=names, **options)
    (_, x5, _, x2), (_, _, v1, v2), S = solution.q[:, 0], solution.u[:, 0], solution.sensitivities
    assert_allclose(value, x2**2 + v2 + solution.s[-1, 0] + x5**2 + 0.2 * v1, rtol=1e-8)
    found = np.concatenate([np.ravel(gradient[name]) for name in names])
    wanted = 2 * x2 * S.matrix[-1, 0] + S.matrix[-1, 1] + S.matrix[-1, 2]
    wanted += 2 * x5 * S.matrix[1, 0] + 0.2 * S.matrix[2, 1]
    wanted[1] += v1
    wanted[3] += v2
    assert_allclose(found, wanted, rtol=0.0, atol=2e-7 * np.abs(wanted).max())


def test_a_slow_motion_of_a_stiff_state_has_its_derivatives_in_closed_form() -> None:
    """Prothero and Robinson's equation s' = L (a cos t - s) - a sin t for L = 1e6: s = a cos t + (s0 - a) exp(-L t).

    The motion is slow, but its derivatives decay within microseconds, with local errors of at most 100 rtol. Steps
    become short there only.
    """
    s, rate = me.dynamicsymbols("s"), sympy.Symbol("L", real=True)
    states = {s: rate * (a * sympy.cos(TIME) - s) - a * sympy.sin(TIME)}
    solver = kg.build(line("slow", -x, {rate: 1e6, a: 1.0}, states=states), functions=STIFF)
    solution = solver.integrate((0.0, 2.0), [1.0], [0.0], s0=[1.0], sensitivities=(a, rate, s, "x"), **RODAS)
    S, decay = solution.sensitivities, np.exp(-1e6 * solution.t)
    assert_allclose(S[s, a], np.cos(solution.t) - decay, rtol=0.0, atol=3e-6)
    assert_allclose(S[s, s], decay, rtol=0.0, atol=3e-6)
    assert_allclose(S[s, rate], 0.0, atol=1e-12)
    assert_allclose(S["x", "x"], np.cos(solution.t), rtol=0.0, atol=1e-7)
    times = np.linspace(0.1, 1.9, 7)
    assert_allclose(S(times)[:, 2, 0], np.cos(times), rtol=0.0, atol=1e-6)
    assert solution.t.size < 300


@pytest.mark.parametrize("name", ["slider_crank", "muscle_arm"])
def test_constrained_models_agree_with_explicit_methods(name: str) -> None:
    """1e-6 of the largest derivative with respect to the same parameter."""
    solver, start = kg.build(model_of(name), functions=STIFF), initial(name)
    names, states = tuple(map(str, solver.model.parameters))[:4], {"s0": start["s"]} if "s" in start else {}
    run = ((0.0, 0.3), start["q"], start["u"], start["r"])
    found = solver.integrate(*run, sensitivities=names, **RODAS, **states).sensitivities
    wanted = solver.integrate(*run, sensitivities=names, **TIGHT, **states).sensitivities
    scale = np.abs(wanted.matrix).max(axis=(0, 1))
    assert (np.abs(found.matrix[-1] - wanted.matrix[-1]) <= 1e-6 * scale + 1e-12).all()


@pytest.mark.parametrize("case", ["a compliant floor with friction", "friction in a joint"])
def test_contacts_agree_with_explicit_methods(case: str) -> None:
    name, t1, start, names, kinds = CASES[case]
    solver = kg.build(getattr(jump_models, name)(), functions=STIFF)
    q, u, s = start_of(solver, start)
    run: dict[str, Any] = {"t_span": (0.0, t1), "q0": q, "u0": u, "s0": s}
    found = solver.integrate(**run, sensitivities=names, **RODAS)
    assert {event.kind for event in found.events} >= kinds
    matrix = found.sensitivities.matrix[-1]
    wanted = solver.integrate(**run, sensitivities=names, **TIGHT).sensitivities.matrix[-1]
    assert_allclose(matrix, wanted, rtol=0.0, atol=1e-6 * np.abs(wanted).max())
    state = (*solver.model.coordinates, *solver.model.speeds)
    weights = np.arange(1.0, len(state) + 1.0)
    objective = kg.Objective(terminal=sum(w * y for w, y in zip(weights, state, strict=True)))
    _, gradient = solver.value_and_gradient(objective, **run, with_respect_to=names, **RODAS)
    assert_allclose(
        [gradient[n] for n in names], weights @ matrix, rtol=0.0, atol=1e-8 * np.abs(weights @ matrix).max()
    )


@pytest.mark.parametrize("sampling", [{}, {"sample_time": 0.1, "delay": 0.03}])
def test_laws_agree_with_explicit_methods(sampling: dict[str, float]) -> None:
    gain = sympy.Symbol("gain", real=True)
    law = kg.Input(F, law=-gain * x - v**3, saturation=(-0.4, 1.0), **sampling)
    solver = kg.build(line("held stiff", F - 40 * v - k * x, {k: 9.0, gain: 30.0}, inputs=[law]), functions=STIFF)
    run, names = ((0.0, 1.0), [0.7], [-0.4]), ("k", "gain", "x", "v")
    objective = kg.Objective(terminal=x + 2 * v, running=F**2 + x**2)
    found = solver.integrate(*run, sensitivities=names, **RODAS).sensitivities.matrix[-1]
    wanted = solver.integrate(*run, sensitivities=names, **TIGHT).sensitivities.matrix[-1]
    assert_allclose(found, wanted, rtol=0.0, atol=1e-6 * np.abs(wanted).max())
    gradients = [
        list(solver.value_and_gradient(objective, *run, with_respect_to=names, **options)[1].values())
        for options in (RODAS, TIGHT)
    ]
    assert_allclose(*gradients, rtol=0.0, atol=1e-6 * np.abs(gradients[1]).max())


def test_stiff_models_are_fitted() -> None:
    """Estimates from angles without noise, with steps of 2 ms where the damping allows explicit ones of 20 us."""
    model = line("fitted", -k * x - c * v, {k: 40.0, c: 1e5})
    solver, t = kg.build(model, functions=STIFF), np.linspace(0.0, 1e4, 30)
    data = {"t": t, "x": np.exp(-3e-4 * t)}  # k / c, for a mass without effect
    solver = solver.with_initial({"x": 1.0, "v": -3e-4})
    fit = kg.fit(solver, data, parameters={"k": (1.0, 100.0)}, **RODAS)
    assert_allclose(fit.parameters["k"], 30.0, rtol=1e-6)


def test_a_stiff_oscillation_is_periodic() -> None:
    """Van der Pol's oscillator for mu = 20: the period that an explicit method gives."""
    solver = kg.build(line("relaxation", a * (1 - x**2) * v - x, {a: 20.0}), functions=STIFF)
    found, wanted = (
        solver.periodic_motion({"x": 2.0, "v": 0.0}, period=34.7, **options)
        for options in ({"method": "rodas", "rtol": 1e-8, "atol": 1e-9}, {})
    )
    assert_allclose(found.period, wanted.period, rtol=1e-6)
    assert found.stable


def test_what_has_no_derivatives_is_refused() -> None:
    puck = kg.build(jump_models.puck(), functions=STIFF)
    with raises(kg.SolveError, 'method="rodas"', "friction in a plane", "explicit"):
        q, u, _ = start_of(puck, CASES["sliding in a plane"][2])
        puck.integrate((0.0, 0.1), q, u, sensitivities="mu", method="rodas")
    crank = kg.build(model_of("slider_crank"), form="pseudoinverse", functions=STIFF)
    start = initial("slider_crank")
    with raises(kg.BuildError, "redundant constraints", "rodas", 'form="auto"'):
        name = str(next(iter(crank.model.parameters)))
        crank.integrate((0.0, 0.1), start["q"], start["u"], sensitivities=name, **RODAS)
