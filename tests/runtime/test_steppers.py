"""The C steppers: orders of convergence, step control, dense output, outcomes, and strict compilers."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import steppers as st
from ccompile import (
    SANITIZERS,
    Compiler,
    compile_source,
    host_source,
    run_program,
    with_each_compiler,
    with_each_sanitizer,
)
from scipy.integrate import solve_ivp
from steppers import Host, Run, exact
from tolerances import (
    ADAPTIVE_PEER_EVALUATIONS,
    COARSE_INTEGRATION,
    CONVERGENCE_ORDER,
    FINE_INTEGRATION,
    SINGLE_PRECISION,
    STEPPER_ROUNDING,
    TOLERANCE_PROPORTIONALITY,
)

from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.methods.table import ADAPTIVE
from kanegen.codegen.methods.table import FIXED_STEP as FIXED

WITH_PEER = ("dopri5", "dop853")
START = tuple(exact(0.0))
# Of the solution; dense output loses nothing against it, since its local error is of the same order at least.
ORDERS = [(name, method.coefficients.order) for name, method in METHODS.items()]
# Sizes at which the leading error term dominates and rounding does not: high orders have room for one halving only.
HALVINGS = {name: 2 if order > 5 else 3 for name, order in ORDERS}
SIZES = {name: 0.25 if order > 5 else 0.02 if name in FIXED else 0.05 for name, order in ORDERS}


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(tmp_path_factory.mktemp("steppers"))


def with_step(host: Host, method: str, step: float, **options: object) -> Run:
    """An integration of SMOOTH over [0, 2] whose steps all have one size."""
    if method in FIXED:
        return host.integrate(method, st.SMOOTH, START, 0.0, 2.0, step=step, **options)
    huge = {"rtol": 1e6, "atol": 1e6, "first_step": step, "max_step": step}
    return host.integrate(method, st.SMOOTH, START, 0.0, 2.0, **huge, **options)


def observed_orders(errors: list[float]) -> list[float]:
    return [float(np.log2(coarse / fine)) for coarse, fine in pairwise(errors)]


@pytest.mark.parametrize(("method", "order"), ORDERS)
def test_order_of_convergence(host: Host, method: str, order: int) -> None:
    sizes = [SIZES[method] / 2**k for k in range(HALVINGS[method])]
    # At t = 2 the leading error terms of verner9 almost cancel: there it would seem to be of order 10.
    points = slice(None) if method == "verner9" else slice(-1, None)
    runs = [with_step(host, method, h) for h in sizes]
    errors = [np.abs(run.y[points] - exact(run.t[points])).max() for run in runs]
    assert observed_orders(errors) == pytest.approx([order] * len(errors[1:]), abs=CONVERGENCE_ORDER)


@pytest.mark.parametrize(("method", "order"), ORDERS)
def test_order_of_dense_output(host: Host, method: str, order: int) -> None:
    times = np.linspace(0.0, 2.0, 1001)
    sizes = [SIZES[method] / 2**k for k in range(HALVINGS[method])]
    errors = [np.abs(with_step(host, method, h, t_eval=times).queried - exact(times)).max() for h in sizes]
    assert observed_orders(errors) == pytest.approx([order] * len(errors[1:]), abs=CONVERGENCE_ORDER)


@pytest.mark.parametrize("method", st.METHODS)
def test_stored_dense_output_is_the_streamed_one(host: Host, method: str) -> None:
    times = np.linspace(0.0, 2.0, 37)
    run = with_step(host, method, 0.1, t_eval=times, dense=True)
    assert run.dense.shape[0] == len(run.t) - 1
    for t, y in zip(times, run.queried, strict=True):
        assert host.evaluate(run, t) == pytest.approx(y, rel=STEPPER_ROUNDING)


@pytest.mark.parametrize("method", st.METHODS)
def test_output_at_accepted_points_is_exact(host: Host, method: str) -> None:
    free = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, step=0.125)
    run = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, step=0.125, t_eval=free.t)
    assert run.t[0] == 0.0
    assert run.t[-1] == 2.0
    np.testing.assert_array_equal(run.queried, free.y)
    np.testing.assert_array_equal(run.queried[0], START)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_output_times_do_not_change_the_steps(host: Host, method: str) -> None:
    free = host.integrate(method, st.SMOOTH, START, 0.0, 2.0)
    run = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, t_eval=np.linspace(0, 2, 50), dense=True)
    np.testing.assert_array_equal(run.y, free.y)
    extra = run.statistics.evaluations - free.statistics.evaluations
    steps = run.statistics.steps
    # Stages of dense output in each step, and the derivative at the very end.
    assert extra == {"dopri5": 0, "dop853": 3 * steps + 1, "verner9": 4 * steps + 1, "rodas": 1}[method]


@pytest.mark.parametrize("method", st.METHODS)
def test_evaluations_are_not_wasted(host: Host, method: str) -> None:
    run = with_step(host, method, 0.1)
    per_step = {"rk4": 4, "kutta_merson": 5, "dopri5": 6, "dop853": 12, "verner9": 16, "rodas": 6}[method]
    assert run.statistics.rejected == 0
    assert run.statistics.steps == 20
    # DOPRI5 evaluates the derivative at the start besides; the others need none at the end.
    assert run.statistics.evaluations == per_step * 20 + (method == "dopri5")


@pytest.mark.parametrize("method", st.METHODS)
def test_backward_integration_returns_to_the_start(host: Host, method: str) -> None:
    options = {"step": 0.01, "rtol": 1e-10, "atol": 1e-10}
    times = [2.0, 1.3, 0.4, 0.0]
    end = exact(2.0)
    run = host.integrate(method, st.SMOOTH, tuple(end), 2.0, 0.0, t_eval=times, dense=True, **options)
    assert run.status == st.FINISHED
    assert np.all(np.diff(run.t) < 0)
    assert run.queried == pytest.approx(exact(times), abs=FINE_INTEGRATION)
    assert host.evaluate(run, 0.4) == pytest.approx(run.queried[2], rel=STEPPER_ROUNDING)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_error_is_proportional_to_the_tolerance(host: Host, method: str) -> None:
    errors = []
    for tolerance in (1e-5, 1e-7, 1e-9, 1e-11):
        run = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, rtol=tolerance, atol=tolerance)
        assert run.statistics.largest_error <= 1.0
        errors.append(np.abs(run.y[-1] - exact(2.0)).max() / tolerance)
    assert max(errors) < TOLERANCE_PROPORTIONALITY
    assert max(errors) / min(errors) < TOLERANCE_PROPORTIONALITY


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("method", WITH_PEER)
def test_costs_what_the_peer_in_scipy_costs(host: Host, method: str, tolerance: float) -> None:
    peer = {"dopri5": "RK45", "dop853": "DOP853"}[method]
    reference = solve_ivp(st.smooth_rhs, (0, 20), START, peer, rtol=tolerance, atol=tolerance)
    run = host.integrate(method, st.SMOOTH, START, 0.0, 20.0, rtol=tolerance, atol=tolerance)
    assert run.t[1] == pytest.approx(reference.t[1], rel=STEPPER_ROUNDING)
    assert run.statistics.evaluations < reference.nfev * ADAPTIVE_PEER_EVALUATIONS
    error = np.abs(run.y[-1] - exact(20.0)).max()
    assert error < 3 * np.abs(reference.y[:, -1] - exact(20.0)).max()


@pytest.mark.parametrize("method", ADAPTIVE)
def test_tolerances_of_single_components(host: Host, method: str) -> None:
    """A loose tolerance on three components leaves the fourth in charge of the steps."""
    tight = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, rtol=0.0, atol=1e-9)
    mixed = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, rtol=0.0, atol=[1e-9, 1.0, 1.0, 1.0])
    loose = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, rtol=0.0, atol=1e-3)
    assert loose.statistics.steps < mixed.statistics.steps <= tight.statistics.steps
    assert abs(mixed.y[-1, 0] - exact(2.0)[0]) < 1e-8


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_component_that_stays_zero_needs_no_absolute_tolerance(host: Host, method: str) -> None:
    run = host.integrate(method, st.CONSTANT, (0.0, 1.0), 0.0, 3.0, rtol=1e-8, atol=0.0)
    assert run.status == st.FINISHED
    assert run.y[-1] == pytest.approx([0.0, 4.0], rel=STEPPER_ROUNDING)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_step_limits(host: Host, method: str) -> None:
    run = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, first_step=0.01, max_step=0.03)
    assert run.t[1] == 0.01
    assert run.statistics.largest_step == pytest.approx(0.03, rel=STEPPER_ROUNDING)
    assert run.statistics.smallest_step == np.diff(run.t).min()
    assert run.statistics.last_step == run.t[-1] - run.t[-2]


@pytest.mark.parametrize("method", FIXED)
def test_a_fixed_step_does_not_add_up_rounding(host: Host, method: str) -> None:
    run = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, step=0.001)
    np.testing.assert_array_equal(run.t, np.append(np.arange(2000) * 0.001, 2.0))
    cut = host.integrate(method, st.SMOOTH, START, 0.0, 0.25, step=0.1)
    np.testing.assert_array_equal(cut.t, [0.0, 0.1, 0.2, 0.25])


def test_kutta_merson_records_its_estimate(host: Host) -> None:
    coarse = host.integrate("kutta_merson", st.SMOOTH, START, 0.0, 2.0, step=0.1, rtol=1e-8, atol=1e-8)
    fine = host.integrate("kutta_merson", st.SMOOTH, START, 0.0, 2.0, step=0.05, rtol=1e-8, atol=1e-8)
    order = np.log2(coarse.statistics.largest_error / fine.statistics.largest_error)
    assert order == pytest.approx(4, abs=1.0)


@pytest.mark.parametrize("method", FIXED)
def test_single_steps_are_those_of_the_stepper(host: Host, method: str) -> None:
    y, error = np.array(START), np.zeros(4)
    status = host.library.single_steps(
        method == "kutta_merson", 8, ctypes.c_double(0.25), st.pointer(y), st.pointer(error)
    )
    run = host.integrate(method, st.SMOOTH, START, 0.0, 2.0, step=0.25)
    assert status == 0
    np.testing.assert_array_equal(y, run.y[-1])
    assert np.any(error != 0) == (method == "kutta_merson")


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_blow_up_collapses_the_step(host: Host, method: str) -> None:
    run = host.integrate(method, st.BLOW_UP, (1.0,), 0.0, 2.0, rtol=1e-8, atol=1e-8)
    assert run.status == st.COLLAPSED
    assert run.t[-1] == pytest.approx(1.0, abs=FINE_INTEGRATION)
    assert np.all(np.isfinite(run.y))


def test_a_blow_up_with_fixed_steps_is_not_finite(host: Host) -> None:
    run = host.integrate("rk4", st.BLOW_UP, (1.0,), 0.0, 50.0, step=0.5)
    assert run.status == st.NOT_FINITE
    assert np.all(np.isfinite(run.y))


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_jump_is_crossed(host: Host, method: str) -> None:
    run = host.integrate(method, st.JUMP, (0.0,), 0.0, 2.0, rtol=1e-8, atol=1e-8)
    assert run.status == st.FINISHED
    assert run.statistics.rejected > 0
    assert run.y[-1, 0] == pytest.approx(0.0, abs=FINE_INTEGRATION)


@pytest.mark.parametrize("method", st.METHODS)
def test_max_steps(host: Host, method: str) -> None:
    run = host.integrate(method, st.SMOOTH, START, 0.0, 20.0, step=0.01, max_steps=5)
    assert run.status == st.TOO_MANY
    assert run.statistics.steps == 5
    assert run.y[-1] == pytest.approx(exact(run.t[-1]), rel=COARSE_INTEGRATION)


@pytest.mark.parametrize("method", st.METHODS)
@pytest.mark.parametrize(
    ("problem", "outcome", "own"),
    [
        (st.SINGULAR_AFTER, st.FAILED, st.SINGULAR),
        (st.OWN_FAILURE, st.FAILED, st.OWN_STATUS),
        (st.NAN_AFTER, st.NOT_FINITE, 0),
    ],
)
def test_failures_of_the_right_hand_side(host: Host, method: str, problem: int, outcome: int, own: int) -> None:
    run = host.integrate(method, problem, (1.0,), 0.0, 2.0, step=0.0625)
    assert run.status == outcome
    assert run.rhs_status == own
    assert run.t[-1] <= 1.0
    if method in ADAPTIVE and problem != st.OWN_FAILURE:
        # A smaller step is tried, so that the solution is known up to the point of failure.
        assert run.t[-1] == pytest.approx(1.0, abs=STEPPER_ROUNDING)
    assert run.y[-1] == pytest.approx(np.exp(-run.t[-1:]), rel=COARSE_INTEGRATION)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_run_does_not_crawl_towards_a_state_it_cannot_reach(host: Host, method: str) -> None:
    run = host.integrate(method, st.WALL, (999.0,), 0.0, 2.0, rtol=1e-8, atol=1e-8)
    assert run.status == st.FAILED
    assert run.rhs_status == st.SINGULAR
    assert run.y[-1, 0] == pytest.approx(1000.0, rel=STEPPER_ROUNDING)
    assert run.statistics.steps < 2000


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_run_does_not_crawl_from_a_state_it_cannot_leave(host: Host, method: str) -> None:
    start = float(np.nextafter(1000.0, 0.0))
    for end in (2.0, 1e12):
        run = host.integrate(method, st.WALL, (start,), 0.0, end, rtol=1e-8, atol=1e-8)
        assert run.rhs_status == st.SINGULAR
        assert run.statistics.steps < 2000


def test_five_hundred_short_steps_in_a_row_end_a_run(host: Host) -> None:
    start = float(np.nextafter(1000.0, 0.0))
    assert host.integrate("dopri5", st.WALL, (start,), 0.0, 2.0, rtol=1e-8, atol=1e-8).statistics.steps == 500


@pytest.mark.parametrize("end", [1e12, -1e12, 1e100, 1e308])
@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_span_does_not_limit_the_steps_of_a_fast_motion(host: Host, method: str, end: float) -> None:
    run = host.integrate(method, st.SMOOTH, START, 0.0, end, rtol=1e-8, atol=1e-8, max_steps=2000)
    assert run.status == st.TOO_MANY
    assert abs(run.t[-1]) > 10.0
    assert run.y[-1] == pytest.approx(exact(run.t[-1]), rel=COARSE_INTEGRATION, abs=COARSE_INTEGRATION)


@pytest.mark.parametrize("method", FIXED)
def test_fixed_steps_keep_their_size_in_a_long_span(host: Host, method: str) -> None:
    run = host.integrate(method, st.SMOOTH, START, 0.0, 1e12, step=1e-3, max_steps=1000)
    assert run.status == st.TOO_MANY
    np.testing.assert_allclose(run.t, 1e-3 * np.arange(1001), rtol=1e-15)


def test_repartitions_are_counted(host: Host) -> None:
    run = host.integrate("dopri5", st.REPARTITIONS, (1.0,), 0.0, 2.0)
    assert run.status == st.FINISHED
    assert run.statistics.repartitions == run.statistics.evaluations > 0


@pytest.mark.parametrize("method", st.METHODS)
def test_an_empty_interval_is_finished_at_once(host: Host, method: str) -> None:
    run = host.integrate(method, st.SMOOTH, START, 1.0, 1.0, step=0.1)
    assert run.status == st.FINISHED
    assert run.statistics.evaluations == 0


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("rk4", {"step": 0.0}),
        ("rk4", {"step": float("nan")}),
        ("kutta_merson", {"step": -0.1}),
        ("dopri5", {"rtol": -1.0}),
        ("dopri5", {"rtol": 0.0, "atol": 0.0}),
        ("dopri5", {"atol": float("nan")}),
        ("dop853", {"first_step": -1.0}),
        ("dop853", {"max_step": float("nan")}),
        ("dop853", {"max_steps": -1}),
    ],
)
def test_invalid_options_are_refused(host: Host, method: str, options: dict[str, float]) -> None:
    assert host.integrate(method, st.SMOOTH, START, 0.0, 1.0, **options).status == st.INVALID
    assert host.integrate("dopri5", st.SMOOTH, START, 0.0, float("inf")).status == st.INVALID
    assert host.integrate("dopri5", st.SMOOTH, START, -1e308, 1e308).status == st.INVALID


@pytest.mark.parametrize("method", st.METHODS)
def test_a_start_that_is_not_finite_is_refused(host: Host, method: str) -> None:
    start = (1.0, float("nan"), 0.0, 0.0)
    assert host.integrate(method, st.SMOOTH, start, 0.0, 1.0, step=0.1).status == st.NOT_FINITE


def test_a_step_below_the_rounding_of_t_collapses(host: Host) -> None:
    run = host.integrate("rk4", st.SMOOTH, START, 1e17, 1e17 + 1e6, step=1e-3)
    assert run.status == st.COLLAPSED
    run = host.integrate("dopri5", st.SMOOTH, START, 1e17, 1e17 + 1e6, first_step=1e-3)
    assert run.status == st.COLLAPSED


def test_messages_tell_what_to_do(host: Host) -> None:
    messages = {status: host.message(status) for status in (2, 1, 0, -1, -10, -11, -12, -13, -14, -15, -100)}
    assert len(set(messages.values())) == len(messages)
    assert "max_steps" in messages[st.TOO_MANY]
    assert "tolerances" in messages[st.COLLAPSED]


@with_each_sanitizer
def test_steppers_under_sanitizers(compiler: Compiler, tmp_path: Path) -> None:
    output = run_program(compiler, host_source("steppers_sanitized.c"), tmp_path, *SANITIZERS)
    statuses = np.array(output.split(), int).reshape(len(st.METHODS), 8)
    assert np.all(statuses[:, st.SMOOTH] == st.FINISHED)
    assert np.all(statuses[:, st.OWN_FAILURE] == st.FAILED)


@with_each_compiler
@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
def test_unused_headers_do_not_warn(compiler: Compiler, optimization: str, tmp_path: Path) -> None:
    source = '#include "kg_steppers.h"\n#include "kg_linalg.h"\nint main(void) { return 0; }\n'
    compile_source(compiler, source, tmp_path / "program", optimization)


@with_each_sanitizer
def test_the_same_text_serves_single_precision(compiler: Compiler, tmp_path: Path) -> None:
    output = run_program(compiler, host_source("steppers_float.c"), tmp_path, "-Wdouble-promotion", *SANITIZERS)
    results = np.array(output.split(), float).reshape(-1, 2)
    assert np.all(results[:, 0] == st.FINISHED)
    assert results[:, 1] == pytest.approx(np.full(len(st.METHODS), exact(2.0)[1]), rel=SINGLE_PRECISION)


@with_each_compiler
def test_the_headers_of_runs_compile_without_warnings(compiler: Compiler, tmp_path: Path) -> None:
    source = '#include "kg_run_hybrid.h"\nint main(void) { kg_run run; (void)run; return (int)sizeof run == 0; }\n'
    compile_source(compiler, source, tmp_path / "program", "-O1")
