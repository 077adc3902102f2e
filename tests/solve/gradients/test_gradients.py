"""Adjoint gradients: against forward sensitivities, closed forms and differences, through samples and events."""

from __future__ import annotations

from typing import Any

import jump_models
import numpy as np
import pytest
import sympy
import sympy.physics.mechanics as me
from messages import raises
from numpy.testing import assert_allclose
from sensitivity_models import F, c, differences, k, line, m, v, x
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP, IMPLICIT

EXPLICIT = [name for name in (*ADAPTIVE, *FIXED_STEP) if name not in IMPLICIT]
TIGHT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-13}


@pytest.mark.parametrize("method", EXPLICIT)
def test_the_adjoint_is_the_transpose_of_the_forward_derivative(method: str) -> None:
    """Both are derivatives of the same steps, so that they differ by rounding errors only."""
    options = {"step": 5e-3} if method in FIXED_STEP else {"rtol": 1e-8, "atol": 1e-10, "max_step": 0.02}
    solver, start = solver_for("rolling_disk"), initial("rolling_disk")
    run, names = ((0.0, 0.7), start["q"], start["u"]), (*solver.description.parameters, "theta", "u1")
    symbols = model_of("rolling_disk").coordinates
    objective = kg.Objective(terminal=symbols[0] ** 2 + sympy.sin(symbols[3]))
    value, gradient = solver.value_and_gradient(objective, *run, with_respect_to=names, method=method, **options)
    solution = solver.integrate(*run, sensitivities=names, method=method, **options)
    q, X = solution.q[-1], solution.sensitivities.matrix[-1]
    expected = 2 * q[0] * X[0] + np.cos(q[3]) * X[3]
    assert value == pytest.approx(q[0] ** 2 + np.sin(q[3]), rel=1e-14)
    assert_allclose([gradient[name] for name in names], expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize(("name", "tolerance"), [("dc_motor_arm", 1e-5), ("muscle_arm", 1e-9)])
@pytest.mark.filterwarnings("ignore:the derivatives of the motion have local errors")
def test_forward_and_adjoint_agree_in_stiff_models(name: str, tolerance: float) -> None:
    """Steps at the limit of stability would let rounding errors grow, if states and derivatives did not match.

    The two runs have different steps: the derivatives of the motor, whose load has a kink, have errors of 3e-6.
    """
    solver, start = solver_for(name), initial(name)
    run = ((0.0, 0.5), start["q"], start["u"], start["r"])
    names = solver.description.parameters[:6]
    options: dict[str, Any] = {"s0": start["s"], "rtol": 1e-9, "atol": 1e-11}
    angle = model_of(name).coordinates[0]
    _, gradient = solver.value_and_gradient(kg.Objective(terminal=angle), *run, with_respect_to=names, **options)
    expected = solver.integrate(*run, sensitivities=names, **options).sensitivities.matrix[-1][0]
    found = [gradient[name] for name in names]
    assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_all_parts_of_an_objective_against_closed_forms() -> None:
    """x = x0 cos wt: the terminal energy, the integral of k x^2, and a sample, with respect to k and x0."""
    solver, T, s = kg.build(line("oscillator", -k * x, {k: 4.0})), 1.1, 0.4
    objective = kg.Objective(terminal=m * v**2 / 2, running=k * x**2, samples=[(s, k * x)])
    value, gradient = solver.value_and_gradient(
        objective, (0.0, T), {"x": 0.8}, {"v": 0.0}, with_respect_to=(k, "x"), **TIGHT
    )

    def exact(k: float, x0: float) -> float:
        w = np.sqrt(k)
        integral = k * x0**2 * (T / 2 + np.sin(2 * w * T) / (4 * w))
        return float((x0 * w * np.sin(w * T)) ** 2 / 2 + integral + k * x0 * np.cos(w * s))

    assert_allclose(value, exact(4.0, 0.8), rtol=1e-10)
    by = [differences(lambda d: exact(4.0 + d, 0.8), 1e-2), differences(lambda d: exact(4.0, 0.8 + d), 1e-2)]
    assert_allclose([gradient["k"], gradient["x"]], by, rtol=1e-9)


@pytest.mark.parametrize("form", ["nonminimal", "reduced", "augmented"])
def test_forms_that_solve_with_pivots_have_the_same_gradients(form: str) -> None:
    solver, start = kg.build(model_of("slider_crank"), form=form), initial("slider_crank")
    x, run = model_of("slider_crank").coordinates[2], ((0.0, 0.6), start["q"], start["u"])
    objective, names = kg.Objective(terminal=x, running=x**2), ("l1", "m1", "tau")
    value, gradient = solver.value_and_gradient(objective, *run, with_respect_to=names, **TIGHT)
    of_auto = solver_for("slider_crank").value_and_gradient(objective, *run, with_respect_to=names, **TIGHT)
    assert_allclose(value, of_auto[0], rtol=1e-9)
    assert_allclose([gradient[name] for name in names], [of_auto[1][name] for name in names], rtol=1e-8)


@pytest.mark.parametrize("form", ["auto", "nonminimal"])
def test_objectives_contain_accelerations(form: str) -> None:
    """Also where they are not straight-line code, against differences of order 6."""
    solver, start = solver_for("slider_crank", form=form), initial("slider_crank")
    rate = solver.model.speeds[-1].diff()
    objective = kg.Objective(terminal=rate**2, running=rate, samples=[(0.2, rate)])

    def valued(moved: kg.Solver) -> Any:
        return moved.value_and_gradient(objective, (0.0, 0.4), start["q"], start["u"], with_respect_to="m2", **TIGHT)

    m2 = solver.parameters["m2"]
    wanted = differences(lambda d: valued(solver.with_parameters({"m2": m2 + d}))[0], 1e-3)
    assert_allclose(valued(solver)[1]["m2"], wanted, rtol=1e-7)


def test_forms_without_unique_multipliers_have_no_gradients() -> None:
    solver, start = kg.build(model_of("slider_crank"), form="pseudoinverse"), initial("slider_crank")
    objective = kg.Objective(terminal=model_of("slider_crank").coordinates[2])
    with raises(kg.errors.BuildError, "redundant constraints", "forward sensitivities"):
        solver.value_and_gradient(objective, (0.0, 0.1), start["q"], start["u"], with_respect_to="l1")


def test_a_motion_at_rest_has_steps_that_are_short_enough_for_its_gradient() -> None:
    """All states are zero, so that the largest steps are accurate; d x(1) / d x(0) = cos 2."""
    solver = kg.build(line("oscillator", -k * x, {k: 4.0}))
    _, gradient = solver.value_and_gradient(
        kg.Objective(terminal=x), (0.0, 1.0), [0.0], [0.0], with_respect_to=("x", "k")
    )
    assert gradient == {"x": pytest.approx(np.cos(2.0), rel=1e-6), "k": 0.0}


def test_samples_at_the_start_the_end_and_twice() -> None:
    solver = kg.build(line("oscillator", -k * x, {k: 4.0}))
    objective = kg.Objective(samples=[(0.0, x), (0.5, x), (0.5, 2 * x), (1.0, v)])
    value, gradient = solver.value_and_gradient(objective, (0.0, 1.0), [1.0], [0.0], with_respect_to="x", **TIGHT)
    expected = 1.0 + 3 * np.cos(1.0) - 2 * np.sin(2.0)
    assert_allclose([value, gradient["x"]], [expected, expected], rtol=1e-10)
    with raises(kg.SolveError, "the sample at t = 2.0 s is not at a state of the motion"):
        late = kg.Objective(samples=[(2.0, x)])
        solver.value_and_gradient(late, (0.0, 1.0), [1.0], [0.0], with_respect_to="x")


def test_a_gradient_through_resets_and_a_terminal_event() -> None:
    """The end moves with the parameters, and so does the integral up to it."""
    z, w = me.dynamicsymbols("z w")
    g, e = sympy.symbols("g e")
    events = [
        kg.Event("floor", z, direction=-1, reset={z: 0 * z, w: -e * w}),
        kg.Event("third top", w - c * x, direction=-1, terminal=True),
    ]
    model = line("ball", F - x, {g: 10.0, e: 0.9, c: 0.1, F: 3.0}, states={z: w, w: -g}, events=events)
    solver = kg.build(model)
    names = ("g", "e", "c", "F", "z", "w")
    objective = kg.Objective(terminal=z**2 + x, running=z * g + v**2)
    run: dict[str, Any] = {"t_span": (0.0, 5.0), "q0": [0.3], "u0": [0.0]}

    def value(name: str, d: float) -> float:
        s0 = np.array([1.0, -0.5])
        here = solver
        if name in solver.parameters:
            here = solver.with_parameters({name: solver.parameters[name] + d})
        else:
            s0[("z", "w").index(name)] += d
        return here.value_and_gradient(objective, s0=s0, with_respect_to="g", **run, **TIGHT)[0]

    solution = solver.integrate(s0=[1.0, -0.5], **run, **TIGHT)
    assert solution.status is kg.Outcome.TERMINAL_EVENT
    assert [event.name for event in solution.events] == ["floor", "third top"]
    _, gradient = solver.value_and_gradient(objective, s0=[1.0, -0.5], with_respect_to=names, **run, **TIGHT)
    for name in names:
        assert_allclose(gradient[name], differences(lambda d, name=name: value(name, d), 1e-3), rtol=1e-7, atol=1e-9)  # type: ignore[misc]


def test_inputs_and_laws() -> None:
    f, g = me.dynamicsymbols("f g")
    held = kg.Input(f, law=-c * v, saturation=0.5)
    solver = kg.build(line("pushed", f + g - k * x, {k: 1.0, c: 0.4}, inputs=[held, kg.Input(g, default=0.3)]))
    names, objective = ("k", "c", "g", "x"), kg.Objective(terminal=x, running=g * v**2)
    run = ((0.0, 2.0), [2.0], [0.0])
    value, gradient = solver.value_and_gradient(objective, *run, with_respect_to=names, **TIGHT)

    def of(name: str, d: float) -> float:
        here, q, r = solver, [2.0], None
        if name in solver.parameters:
            here = solver.with_parameters({name: solver.parameters[name] + d})
        elif name == "g":
            r = {"g": 0.3 + d}
        else:
            q = [2.0 + d]
        return here.value_and_gradient(objective, (0.0, 2.0), q, [0.0], r, with_respect_to="k", **TIGHT)[0]

    assert value == pytest.approx(of("k", 0.0))
    for name in names:
        assert_allclose(gradient[name], differences(lambda d, name=name: of(name, d), 1e-3), rtol=1e-7)  # type: ignore[misc]


def test_objectives_say_what_they_expect() -> None:
    y = me.dynamicsymbols("y")
    solver = kg.build(line("oscillator", -k * x, {k: 4.0}))
    run = ((0.0, 1.0), [1.0], [0.0])
    with raises(kg.SolveError, "the objective has no part", "terminal=", "samples="):
        kg.Objective()
    with raises(kg.SolveError, "not a text"):
        kg.Objective(terminal="x")
    with raises(kg.SolveError, "expected pairs (t, expression)"):
        kg.Objective(samples=[x])
    with raises(kg.SolveError, "the time of a sample is inf", "finite real number"):
        kg.Objective(samples=[(np.inf, x)])
    with raises(kg.SolveError, "the objective:", "'y'"):
        solver.value_and_gradient(kg.Objective(terminal=x + y), *run, with_respect_to="k")
    with raises(kg.SolveError, "expected a kanegen.Objective"):
        solver.value_and_gradient(x**2, *run, with_respect_to="k")  # type: ignore[arg-type]
    with raises(kg.SolveError, "with_respect_to", "'q'"):
        solver.value_and_gradient(kg.Objective(terminal=x), *run, with_respect_to="q")


def test_a_contact_at_rest_has_steps_that_are_short_enough_for_its_gradient() -> None:
    """The steps are exact for the motion, but the decay of the gap is unstable in steps of a second.

    A force that grows with k t lifts a body until the floor bears 3 N of its weight; then it ends.
    """
    c = me.dynamicsymbols("c")
    lifted = jump_models.particle(
        "lifted",
        "xz",
        (c, k * c),
        uses=(),
        contacts=[kg.Unilateral(jump_models.z, kg.Restitution(0), name="floor")],
        states={c: 1},
        events=[kg.Event("light", kg.Multiplier("floor") - 3, direction=-1, reset={c: 0})],
        parameters={k: 2.0},
    )
    run = ((0.0, 5.0), [0.0, 0.0], [0.0, 0.0])
    solver = kg.build(lifted)
    found = solver.integrate(*run, s0=[0.0], sensitivities=("k",)).sensitivities["x", "k"][-1]
    objective = kg.Objective(terminal=jump_models.x)
    _, gradient = solver.value_and_gradient(objective, *run, s0=[0.0], with_respect_to=("k",))
    assert gradient["k"] == pytest.approx(found, rel=1e-10)
