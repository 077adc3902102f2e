"""Motions on vector lanes: those of `integrate` within the tolerance, with the same bits wherever they are computed."""

from __future__ import annotations

import os
import platform
import signal
import threading
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, says
from scipy.integrate import solve_ivp
from state_models import point_mass, solver_of
from systems import initial, solver_for
from tolerances import LANES

import kanegen as kg
from kanegen import Outcome
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.codegen.methods.table import ADAPTIVE, IMPLICIT

SPAN, COUNT = (0.0, 0.6), 21
TIMES = np.array([0.0, 0.1, 0.1, 0.33, 0.6])
EXPLICIT = [method for method in ADAPTIVE if method not in IMPLICIT]


@cache
def disks() -> tuple[Any, Any]:
    """Starts of the rolling disk with speeds from rest to three times those of the example; consistent, as they are
    linear in the speeds."""
    start = initial("rolling_disk")
    return np.tile(start["q"], (COUNT, 1)), np.outer(np.linspace(0.0, 3.0, COUNT), start["u"])


@cache
def cranks() -> tuple[Any, Any]:
    """Starts of the slider crank at any crank angle, some beyond 1e5 rad, which scalar code evaluates."""
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    q, u = (np.tile(start[key], (COUNT, 1)) for key in "qu")
    q[:, 0] = 0.3 * np.arange(COUNT)
    states = [solver.make_consistent(0.0, q[k], u[k], fixed=["theta"]) for k in range(COUNT)]
    q, u = (np.array(part) for part in zip(*states, strict=True))
    q[[4, 5], 0] += 2.0 * np.pi * 1e6
    return q, u


def states_of(many: Any) -> Any:
    return np.concatenate([many.q, many.u, many.s], axis=2)


@pytest.mark.parametrize("method", EXPLICIT)
def test_motions_agree_with_integrate(method: str) -> None:
    solver, (q, u) = solver_for("rolling_disk"), disks()
    many = solver.integrate_many(SPAN, q, u, method=method, t_eval=TIMES)
    assert many.lanes > 1
    for k in range(0, COUNT, 4):
        own = solver.integrate(SPAN, q[k], u[k], method=method, t_eval=TIMES)
        assert abs(many.n_steps[k] - own.statistics.steps) <= 1
        np.testing.assert_allclose(many.q[k], own.q, rtol=0.0, atol=1e-7)
        np.testing.assert_allclose(many.u[k], own.u, rtol=0.0, atol=1e-7)


def test_motions_agree_with_scipy() -> None:
    solver, (q, u) = solver_for("rolling_disk"), disks()
    many = solver.integrate_many(SPAN, q, u, t_eval=TIMES, rtol=1e-9, atol=1e-11)
    for k in (1, 10, 20):
        start = np.concatenate([q[k], u[k]])
        reference = solve_ivp(solver.ode, SPAN, start, "DOP853", TIMES[[0, 1, 3, 4]], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(states_of(many)[k, [0, 2, 3, 4]], reference.y.T, rtol=0.0, atol=1e-7)
        np.testing.assert_array_equal(states_of(many)[k, 0], start)


@pytest.mark.parametrize(("name", "starts"), [("rolling_disk", disks), ("slider_crank", cranks)])
def test_bits_do_not_depend_on_number_place_or_threads(name: str, starts: Any) -> None:
    solver, (q, u) = solver_for(name), starts()
    options = {"t_eval": TIMES, "method": "dop853", "reduce": ("max", "kinetic_energy")}
    whole = solver.integrate_many(SPAN, q, u, **options)
    assert whole.lanes > 1
    assert whole.success.all()
    order = np.random.default_rng(3).permutation(COUNT)
    for rows, threads in ((slice(None), 3), (order, 1), (order[:3], 2), *((slice(k, k + 1), 1) for k in (0, 4, 20))):
        part = solver.integrate_many(SPAN, q[rows], u[rows], threads=threads, **options)
        np.testing.assert_array_equal(states_of(part), states_of(whole)[rows])
        for field in ("values", "n_steps", "n_evaluations", "t_end"):
            np.testing.assert_array_equal(getattr(part, field), getattr(whole, field)[rows])
    plain = solver.integrate_many(SPAN, q, u, method="dop853")
    np.testing.assert_array_equal(states_of(plain)[:, 0], states_of(whole)[:, -1])


def test_rows_that_need_the_general_path_stay_in_their_lanes() -> None:
    """Rows 4 and 5 have large angles; row 6 starts where other speeds are dependent, off the constraints."""
    solver, (q, u), options = solver_for("slider_crank"), cranks(), {"start_tolerance": None}
    q, u = q.copy(), u.copy()
    q[6, 1], u[6] = 1e-5, 0.0
    many = solver.integrate_many(SPAN, q, u, **options)
    steps = [solver.integrate(SPAN, q[k], u[k], **options).statistics for k in range(COUNT)]
    assert steps[6].repartitions > 0
    np.testing.assert_allclose(many.n_steps, [statistics.steps for statistics in steps], rtol=0.0, atol=1)
    for k in (0, 4, 5, 6, 10):
        own = solver.integrate(SPAN, q[k], u[k], **options).last
        np.testing.assert_allclose(many.q[k, 0], own[1], rtol=1e-12, atol=1e-7)
        np.testing.assert_allclose(many.u[k, 0], own[2], rtol=0.0, atol=1e-6)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="for the vector units of x86")
def test_every_processor_of_the_family_has_lanes() -> None:
    """Two lanes, without the vector units of newer processors."""
    solver, (q, u) = solver_for("rolling_disk"), disks()
    options = CompilerOptions(lanes=("-std=c99", "-O1", "-Wno-psabi"))
    plain = kg.Solver(replace(solver.extension, options=options), solver.description, solver.parameters)
    many = plain.integrate_many(SPAN, q, u, t_eval=TIMES)
    assert many.lanes == 2
    np.testing.assert_allclose(many.q, solver.integrate_many(SPAN, q, u, t_eval=TIMES).q, rtol=0.0, atol=1e-7)


def test_parameters_inputs_and_states_have_rows() -> None:
    """The linear model of the cart has a solution in closed form; backwards in time it returns to the start."""
    from scipy.linalg import expm
    from state_models import cart_matrix

    solver, count = solver_of("cart"), 11
    rng = np.random.default_rng(9)
    q, u, s = (rng.standard_normal((count, n)) for n in (1, 1, 2))
    springs, forces = rng.uniform(5.0, 50.0, count), rng.standard_normal(count)
    options = {"parameters": {"k": springs}, "rtol": 1e-10, "atol": 1e-12}
    many = solver.integrate_many((0.0, 1.0), q, u, {"f": forces}, s0=s, **options)
    assert many.lanes > 1
    for k in range(count):
        A, B = cart_matrix(k=springs[k])
        augmented = np.zeros((5, 5))
        augmented[:4, :4], augmented[:4, 4] = A, B * forces[k]
        expected = (expm(augmented) @ np.concatenate([q[k], u[k], s[k], [1.0]]))[:4]
        np.testing.assert_allclose(states_of(many)[k, 0], expected, rtol=0.0, atol=1e-8)
    rows = solver.integrate_many((0.0, 1.0), q, u, forces[:, np.newaxis], s0=s, **options)
    np.testing.assert_array_equal(states_of(rows), states_of(many))
    back = solver.integrate_many(
        (1.0, 0.0), many.q[:, 0], many.u[:, 0], forces[:, np.newaxis], s0=many.s[:, 0], **options
    )
    np.testing.assert_allclose(states_of(back)[:, 0], np.hstack([q, u, s]), rtol=0.0, atol=1e-6)


@cache
def abyss() -> kg.Solver:
    """A particle of 1 kg that is drawn into x = 0 by -a / x^2, and under b sqrt(x + c), which does not always exist."""
    x, (a, b, c) = me.dynamicsymbols("x"), sm.symbols("a b c")
    model = point_mass("abyss", -a / x**2 + b * sm.sqrt(x + c), outputs={"root": sm.sqrt(x)}, parameters={"m": 1.0})
    return kg.build(model, functions=("rhs", "outputs"))


def test_motions_end_like_those_of_integrate() -> None:
    solver, u = abyss(), np.array([[0.0], [0.0], [-3.0], [3.0], [-1.5]])
    a, b, c = np.array([[0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0], [9.0, 9.0, 0.0, 0.0, 9.0]])
    rows = {"a": a, "b": b, "c": c}
    expected = ("FINISHED", "STEP_COLLAPSED", "NOT_FINITE", "FINISHED", "FINISHED")
    for method in ("dopri5", "dop853"):  # with and without the derivative at the end among the stages
        many = solver.integrate_many((0.0, 5.0), [1.0], u, parameters=rows, method=method)
        assert many.lanes > 1
        outcomes = []
        for k in range(len(u)):
            own = solver.with_parameters({name: values[k] for name, values in rows.items()})
            try:
                last = own.integrate((0.0, 5.0), [1.0], u[k], method=method)
            except kg.IntegrationError as error:
                last = error.solution
            outcomes.append(last.status)
            np.testing.assert_allclose(many.t_end[k], last.last[0], rtol=1e-5)
        assert [Outcome.from_code(code) for code in many.status] == outcomes
        assert tuple(outcome.name for outcome in outcomes) == expected
        assert [failure.index for failure in many.failures] == [1, 2]
        says(many.failures[0].reason, "stopped", repr(float(many.t_end[1])), 5.0, Outcome.STEP_COLLAPSED.advice)
        assert np.isnan(states_of(many)[[1, 2]]).all()


def test_a_reduction_that_is_not_finite_fails_alone() -> None:
    free = {"a": 0, "b": 0, "c": 9}
    many = abyss().integrate_many((0.0, 1.0), [1.0], [[0.5], [-3.0]], parameters=free, reduce="root")
    assert many.values is not None
    np.testing.assert_allclose(many.values, [np.sqrt(1.5), np.nan], rtol=1e-12)
    assert [failure.index for failure in many.failures] == [1]
    says(many.failures[0].reason, "reduced", "finite")
    assert many.t_end[1] == 1.0


def test_a_singular_start_fails_alone() -> None:
    solver, (q, u) = solver_for("slider_crank"), cranks()
    zero = np.arange(COUNT) == 7
    lengths = {name: np.where(zero, 0.0, solver.parameters[name]) for name in ("l1", "l2")}
    positions = np.where(zero[:, np.newaxis], [1.0, 1.0, 0.0], q)
    many = solver.integrate_many((0.0, 0.01), positions, np.where(zero[:, np.newaxis], 0.0, u), parameters=lengths)
    assert [failure.index for failure in many.failures] == [7]
    assert Outcome.from_code(many.status[7]) is Outcome.RIGHT_HAND_SIDE_FAILED
    says(many.failures[0].reason, "singular")


def test_steps_are_limited() -> None:
    solver, (q, u) = solver_for("rolling_disk"), disks()
    many = solver.integrate_many(SPAN, q[:3], u[:3], max_step=0.01, first_step=1e-4)
    own = solver.integrate(SPAN, q[1], u[1], max_step=0.01, first_step=1e-4)
    assert many.n_steps[1] == own.statistics.steps >= 60
    few = solver.integrate_many(SPAN, q[:3], u[:3], max_steps=5, rtol=[1e-8] * 10)
    assert (few.n_steps == 5).all()
    assert {Outcome.from_code(code) for code in few.status} == {Outcome.TOO_MANY_STEPS}


def test_steps_have_a_smallest_size() -> None:
    """Steps are raised to it, and motions that would need smaller ones end, with and without lanes."""
    solver, (q, u) = solver_for("rolling_disk"), disks()
    free = solver.integrate(SPAN, q[1], u[1], first_step=1e-8)
    raised = solver.integrate(SPAN, q[1], u[1], first_step=1e-8, min_step=1e-5)
    assert free.t[1] == 1e-8
    assert raised.t[1] == 1e-5
    assert np.diff(raised.t)[:-1].min() >= 1e-5 * (1.0 - 1e-12)
    many = solver.integrate_many(SPAN, q[:3], u[:3], first_step=1e-8, min_step=1e-5)
    assert many.n_steps[1] == raised.statistics.steps < free.statistics.steps
    too_large = 10.0 * free.statistics.largest_step
    with raises(kg.IntegrationError, "min_step") as caught:
        solver.integrate(SPAN, q[20], u[20], min_step=too_large, rtol=1e-12)
    assert caught.value.solution.status is Outcome.STEP_COLLAPSED
    stopped = solver.integrate_many(SPAN, q[20:], u[20:], min_step=too_large, rtol=1e-12)
    assert Outcome.from_code(stopped.status[0]) is Outcome.STEP_COLLAPSED


def test_runs_with_events_end_where_steps_become_too_small() -> None:
    """A step that is shortened to an event and rejected there is not repeated for ever."""
    solver, start = solver_for("bouncing_ball"), initial("bouncing_ball")
    whole = solver.integrate((0.0, 1.0), start["q"], start["u"], min_step=1e-9)
    assert whole.success
    assert len(whole.events) > 0


@pytest.mark.parametrize("kind", ["final", "min", "max", "max_abs", "max_change"])
def test_reductions(kind: str) -> None:
    solver, (q, u) = solver_for("rolling_disk"), disks()
    functions: dict[str, Any] = {
        "final": lambda x: x[-1],
        "min": np.min,
        "max": np.max,
        "max_abs": lambda x: np.abs(x).max(),
        "max_change": lambda x: np.abs(x - x[0]).max(),
    }
    for name in ("kinetic_energy", solver.description.speeds[0]):
        many = solver.integrate_many(SPAN, q, u, method="dop853", reduce=(kind, name))
        assert many.lanes > 1
        assert many.q.shape == (COUNT, 0, 5)
        own = solver.integrate(SPAN, q[8], u[8], method="dop853")
        values = own.kinetic_energy if name == "kinetic_energy" else own[name]
        assert many.values is not None
        np.testing.assert_allclose(many.values[8], functions[kind](values), rtol=0.0, atol=1e-7)


def test_no_motions_and_one() -> None:
    solver, (q, u) = solver_for("rolling_disk"), disks()
    assert solver.integrate_many(SPAN, q[:0], u[:0]).q.shape == (0, 1, 5)
    one = solver.integrate_many(SPAN, q[3], u[3])
    np.testing.assert_array_equal(one.q[0], solver.integrate_many(SPAN, q, u).q[3])
    assert solver.integrate_many((0.0, 0.0), q, u).success.all()


def test_other_models_and_methods_take_a_run_each() -> None:
    solver, (q, u) = solver_for("rolling_disk"), disks()
    stiff = solver.integrate_many(SPAN, q[:2], u[:2], method="rk4", step=0.01)
    assert stiff.lanes == 1
    assert stiff.n_steps.tolist() == [60, 60]
    projected = solver_for("slider_crank").with_stabilization(kg.Projection())
    assert projected.integrate_many((0.0, 0.01), *(part[:2] for part in cranks())).lanes == 1


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_keeps_the_motions_that_are_complete(threads: int) -> None:
    solver, (q, u) = solver_for("rolling_disk"), disks()
    rows = np.arange(20000) % COUNT
    solver.integrate_many((0.0, 0.001), q, u)  # compiled before the clock runs
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(kg.IntegrationInterrupted) as caught:
        solver.integrate_many((0.0, 20.0), q[rows], u[rows], threads=threads)
    timer.join()
    many = caught.value.solution
    assert 0 < many.completed.sum() < len(rows)
    assert np.isfinite(many.q[many.success]).all()
    assert np.isnan(many.q[~many.completed]).all()
    assert np.isnan(many.t_end[~many.completed]).all()


def test_a_user_function_and_the_c_library_are_called_for_each_lane() -> None:
    x = me.dynamicsymbols("x")
    cube = kg.Function("cube", 1, lambda a: a**3, "return a * a * a;", arguments=("a",))
    force = -cube(x) - sm.exp(-x) + kg.Spline((-9.0, -1.0, 0.5, 9.0), (0.1, 0.7, -0.3, 0.4), name="spline")(x)
    solver = kg.build(point_mass("many_functions", force, parameters={"m": 1.3}), functions=("rhs",))
    starts = np.linspace(-1.0, 1.0, 9)[:, np.newaxis]
    many = solver.integrate_many((0.0, 2.0), starts, [0.0], method="verner9")
    assert many.lanes > 1
    own = solver.integrate((0.0, 2.0), starts[5], [0.0], method="verner9")
    np.testing.assert_allclose(many.q[5, 0], own.q[-1], rtol=0.0, atol=1e3 * LANES)
