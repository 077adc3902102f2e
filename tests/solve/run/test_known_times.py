"""What is known to change in time is not stepped over: tables, splines, functions with breakpoints and of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import driven_models as dm
import numpy as np
import pytest
from driven_models import ADAPTIVE, Drive, Floats, Oscillator
from messages import raises
from scipy.interpolate import CubicSpline, PPoly

import kanegen as kg
from kanegen.errors import SolveError
from kanegen.solve.inputs.instants import Changes
from kanegen.solve.inputs.polynomials import from_scipy, table

END = 25.0
PULSE = ([0.0, 5.0, 5.001, 6.999, 7.0, END], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
GLOBAL = 100.0
"""Largest error of a damped motion over the relative tolerance, over some tens of seconds."""
SHARE, CAMPAIGN = 24, 2000
"""Random runs in every test run, and in the campaign."""


def check(solution: kg.Solution, oscillator: Oscillator, drive: Drive, rtol: float) -> None:
    """The motion is that in closed form at 30 stored times, and no accepted step exceeds the tolerance."""
    places = np.unique(np.linspace(0, solution.t.size - 1, 30).astype(int))
    states = np.column_stack([solution.q, solution.u])
    expected = oscillator.move(drive, states[0], solution.t[places])
    assert solution.success
    assert solution.statistics.largest_error <= 1.0
    assert np.abs(states[places] - expected).max() <= GLOBAL * rtol * max(np.abs(expected).max(), 1e-2)


# -- by name -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_pulse_of_a_table_on_a_body_at_rest(method: str) -> None:
    """The result was x = 0 exactly."""
    solution = dm.driven().integrate((0.0, END), [0.0], [0.0], {"F": PULSE}, method=method)
    check(solution, Oscillator(), dm.table(*PULSE), 1e-8)
    assert set(PULSE[0]) <= set(solution.t)


@pytest.mark.parametrize("way", ["switched", "lawful"])
@pytest.mark.parametrize("method", ADAPTIVE)
def test_pulses_of_functions_of_time(method: str, way: str) -> None:
    solver = getattr(dm, way)().with_parameters({"height": 1.0, "half": 0.01, "push": 2.0, "on": 15.0, "off": 15.5})
    solution = solver.integrate((0.0, END), [0.0], [0.0], method=method)
    check(solution, Oscillator(), dm.triangle(6.0, 0.01, 1.0) + dm.stairs((15.0, 15.5), (2.0, 0.0)), 1e-8)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_a_function_of_python_with_breakpoints(method: str) -> None:
    drive = dm.stairs((5.0, 5.002), (1.0, 0.0))
    for r in ({"F": kg.Signal(drive, [5.002, 5.0])}, kg.Signal(lambda t: [drive(t)], breakpoints=(5.0, 5.002))):
        solution = dm.driven().integrate((0.0, END), [0.0], [0.0], r, method=method)
        check(solution, Oscillator(), drive, 1e-8)
        assert {5.0, 5.002} <= set(solution.t)


def test_jumps_need_no_rejected_steps() -> None:
    """The step that ends at a jump sees the value before it, and the next one the value after it."""
    drive = dm.stairs((5.0, 7.0), (1.0, 0.0))
    spline = PPoly(np.array([[0.0, 1.0, 0.0]]), [0.0, 5.0, 7.0, END])
    for r in ({"F": spline}, {"F": kg.Signal(drive, (5.0, 7.0))}):
        solution = dm.driven().integrate((0.0, END), [0.0], [0.0], r, max_step=0.05, rtol=1e-6, atol=1e-8)
        assert solution.statistics.rejected == 0
        check(solution, Oscillator(), drive, 1e-6)


def test_dense_output_is_right_on_both_sides_of_a_jump() -> None:
    drive = dm.stairs((5.0,), (1.0,))
    solution = dm.driven().integrate((0.0, END), [0.0], [0.0], {"F": kg.Signal(drive, (5.0,))})
    times = np.concatenate([[0.0], 5.0 + np.array([-1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1])])
    states = np.column_stack(solution(times)[:2])
    assert states == pytest.approx(Oscillator().move(drive, [0.0, 0.0], times), abs=1e-9)


def test_backward_in_time() -> None:
    end = Oscillator(c=0.0).move(dm.table(*PULSE), [0.1, 0.0], [0.0, END])[-1]
    solver = dm.driven().with_parameters({"c": 0.0})
    solution = solver.integrate((END, 0.0), end[:1], end[1:], {"F": PULSE})
    assert [solution.q[-1, 0], solution.u[-1, 0]] == pytest.approx([0.1, 0.0], abs=1e-6)
    assert set(PULSE[0]) <= set(solution.t)


def test_ensembles() -> None:
    parameters = {"k": np.array([4.0, 9.0, 16.0])}
    results = dm.driven().integrate_many((0.0, END), [0.0], [0.0], {"F": PULSE}, parameters=parameters)
    for k, q, u in zip(parameters["k"], results.q, results.u, strict=True):
        expected = Oscillator(k=k).move(dm.table(*PULSE), [0.0, 0.0], [0.0, END])[-1]
        assert [*np.ravel(q), *np.ravel(u)] == pytest.approx(expected, abs=1e-7)


def test_times_that_are_asked_for_do_not_change() -> None:
    times = np.linspace(0.0, END, 11)
    solution = dm.driven().integrate((0.0, END), [0.0], [0.0], {"F": PULSE}, t_eval=times)
    assert np.array_equal(solution.t, times)
    check(solution, Oscillator(), dm.table(*PULSE), 1e-8)


def test_an_event_at_the_instant_of_a_jump() -> None:
    """A guard that reads the time only, at a breakpoint of the input."""
    solver = dm.driven().with_parameters({"t_a": 5.0})
    solution = solver.integrate((0.0, END), [0.0], [0.0], {"F": PULSE})
    assert [event.t for event in solution.events] == pytest.approx([5.0], abs=1e-12)
    check(solution, Oscillator(), dm.table(*PULSE), 1e-8)


def test_signals_that_make_no_sense() -> None:
    with raises(SolveError, "expected a callable"):
        kg.Signal(PULSE, [1.0])
    with raises(SolveError, "expected a sequence of times"):
        kg.Signal(np.sin, 1.0)
    with raises(SolveError, "a time in breakpoints"):
        kg.Signal(np.sin, [np.nan])


# -- which times of a table matter -------------------------------------------------------------------------------------


def instants(given: Any, rtol: float = 1e-8) -> Floats:
    polynomial = table(given, "it") if isinstance(given, tuple) else from_scipy(given, "it")
    found = Changes((polynomial,)).instants((float(polynomial.x[0]), float(polynomial.x[-1])), rtol)
    assert found is not None
    return found


def test_every_kink_of_a_short_table_matters() -> None:
    assert list(instants(PULSE)) == PULSE[0][1:-1]


def test_a_fine_table_of_a_smooth_function_has_only_its_turns() -> None:
    t = np.linspace(0.0, 100.0, 100_001)
    found = instants((t, np.sin(t)))
    assert found == pytest.approx((np.arange(32) + 0.5) * np.pi, abs=1e-3)


@pytest.mark.parametrize("width", [1e-3, 1e-2, 0.3, 3.0])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_pulse_in_a_fine_table(width: float, smooth: bool) -> None:
    """Its peak is found, and the motion of a body at rest is right."""
    t = np.linspace(0.0, END, 100_001)
    t = np.union1d(t[np.abs(t - 12.0) > width], 12.0 + np.linspace(-width, width, 201))
    F = np.exp(-(((t - 12.0) / (0.2 * width)) ** 2)) if smooth else np.clip(1.0 - np.abs(t - 12.0) / width, 0.0, None)
    F = np.where(np.abs(t - 12.0) < 0.999 * width, F, 0.0)
    assert np.abs(instants((t, F)) - 12.0).min() < 1e-3
    inside = np.flatnonzero(F)
    chosen = [0, *range(inside[0] - 1, inside[-1] + 2), t.size - 1]
    drive = dm.table(t[chosen], F[chosen])
    solution = dm.driven().integrate((0.0, END), [0.0], [0.0], {"F": (t, F)})
    expected = Oscillator().move(drive, [0.0, 0.0], [0.0, 20.0, END])
    states = np.column_stack(solution([0.0, 20.0, END])[:2])
    assert states == pytest.approx(expected, abs=GLOBAL * 1e-8 * max(np.abs(expected).max(), 1e-2))


def test_noise_leaves_the_largest_turns() -> None:
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 100.0, 100_001)
    found = instants((t, np.sin(t) + 1e-3 * rng.normal(size=t.size)), 1e-5)
    assert 32 <= found.size <= 1100


def test_a_smooth_spline_has_only_its_turns() -> None:
    t = np.linspace(0.0, 10.0, 101)
    assert instants(CubicSpline(t, np.sin(t))) == pytest.approx([1.57, 4.71, 7.85], abs=0.04)


def test_a_sawtooth_of_jumps() -> None:
    saw = PPoly(np.array([[1.0] * 4, [0.0] * 4]), [0.0, 1.0, 2.0, 3.0, 4.0])
    assert list(instants(saw)) == [1.0, 2.0, 3.0]


# -- random runs -------------------------------------------------------------------------------------------------------


def random_table(rng: np.random.Generator) -> Drive:
    """Pulses and ramps between pauses."""
    times, values = [0.0], [0.0]
    for _ in range(rng.integers(1, 4)):
        widths = 10.0 ** rng.uniform(-3.0, 0.3, rng.integers(2, 5))
        times += [*(times[-1] + rng.uniform(0.1, 5.0) + np.concatenate([[0.0], np.cumsum(widths)]))]
        values += [0.0, *rng.normal(size=widths.size - 1), 0.0]
    return dm.table([*times, times[-1] + END], [*values, 0.0])


def random_stairs(rng: np.random.Generator) -> Drive:
    times = np.cumsum(10.0 ** rng.uniform(-3.0, 0.7, rng.integers(2, 7)))
    return dm.stairs(times.tolist(), rng.normal(size=times.size).tolist())


def random_spline(rng: np.random.Generator) -> tuple[Drive, CubicSpline]:
    times = np.concatenate([[0.0], np.cumsum(10.0 ** rng.uniform(-2.0, 0.7, rng.integers(2, 12))), [2.0 * END + 50.0]])
    spline = CubicSpline(times, [0.0, *rng.normal(size=times.size - 2), 0.0], bc_type="natural")
    return Drive(tuple(times), lambda t: float(spline(t))), spline


def as_input(rng: np.random.Generator) -> tuple[Any, dict[str, float], Any, Drive]:
    """A solver, parameters, r and the force: a table, a polynomial, a function."""
    if rng.integers(0, 2):
        drive = random_table(rng)
        values = [drive(t) for t in drive.times]
        r: Any = {"F": (drive.times, values)}
        if rng.integers(0, 2):
            slopes = np.diff(values) / np.diff(drive.times)
            r = {"F": PPoly(np.array([slopes, values[:-1]]), drive.times)}
    else:
        drive = random_stairs(rng)
        levels = [drive(t) for t in (-1.0, *drive.times)]
        r = {"F": PPoly(np.array([levels]), [-1.0, *drive.times, drive.times[-1] + END])}
    if rng.integers(0, 3) == 0:
        r = {"F": kg.Signal(drive, drive.times)}
    values = {"level": rng.normal() * 0.1}
    if rng.integers(0, 2):  # events at times at which nothing else happens
        values |= dict(zip(("t_a", "t_b", "t_c"), rng.uniform(0.0, END, 3), strict=True))
    return dm.driven(), values, r, drive


def as_spline(rng: np.random.Generator) -> tuple[Any, dict[str, float], Any, Drive]:
    """The same for cubic splines, whose third derivative jumps at their knots."""
    solver, values, _, _ = as_input(rng)
    drive, spline = random_spline(rng)
    return solver, values, {"F": spline}, drive


def as_function(rng: np.random.Generator) -> tuple[Any, dict[str, float], Any, Drive]:
    """The same for functions of time in loads and laws."""
    half, on = 10.0 ** rng.uniform(-3.0, 0.4), rng.uniform(0.0, 20.0)
    middle, off = rng.uniform(half, 20.0), on + 10.0 ** rng.uniform(-3.0, 0.4)
    height, push, ramp = rng.normal(size=3)
    period = 10.0 ** rng.uniform(0.0, 1.0)
    values = {"half": half, "middle": middle, "height": height, "on": on, "off": off, "push": push}
    drive = dm.triangle(middle, half, height) + dm.stairs((on, off), (push, 0.0))
    if rng.integers(0, 2):
        values |= {"period": period, "ramp": ramp}
        drive = drive + dm.sawtooth(period, ramp, END)
    return dm.lawful() if rng.integers(0, 2) else dm.switched(), values, None, drive


def random_run(rng: np.random.Generator, kinds: Sequence[Any]) -> None:
    method, rtol = str(rng.choice(ADAPTIVE)), 10.0 ** rng.uniform(-10.0, -5.0)
    oscillator = Oscillator(k=10.0 ** rng.uniform(-1.0, 2.0), c=10.0 ** rng.uniform(-1.5, 0.5))
    start = rng.normal(size=2) * rng.integers(0, 2)
    solver, values, r, drive = kinds[rng.integers(0, len(kinds))](rng)
    solver = solver.with_parameters({"k": oscillator.k, "c": oscillator.c} | values)
    options: dict[str, Any] = {"method": method, "rtol": rtol, "atol": 1e-2 * rtol}
    solution = solver.integrate((0.0, END), start[:1], start[1:], r, **options)
    check(solution, oscillator, drive, rtol)
    if rng.integers(0, 4) == 0:
        many = solver.integrate_many((0.0, END), [start[:1]] * 2, [start[1:]] * 2, r, **options)
        expected = oscillator.move(drive, start, [0.0, END])[-1]
        size = max(np.abs(np.column_stack([solution.q, solution.u])).max(), 1e-2)
        for q, u in zip(many.q, many.u, strict=True):
            assert np.abs([*np.ravel(q), *np.ravel(u)] - expected).max() <= GLOBAL * rtol * size


@pytest.mark.parametrize("seed", range(SHARE))
def test_driven_runs(seed: int) -> None:
    random_run(np.random.default_rng([6, seed]), (as_function, as_input))


@pytest.mark.parametrize("seed", range(SHARE // 4))
def test_runs_driven_by_splines(seed: int) -> None:
    random_run(np.random.default_rng([7, seed]), (as_spline,))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SHARE // 4, CAMPAIGN // 4))
def test_runs_driven_by_splines_in_the_campaign(seed: int) -> None:
    random_run(np.random.default_rng([7, seed]), (as_spline,))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SHARE, CAMPAIGN))
def test_driven_runs_in_the_campaign(seed: int) -> None:
    random_run(np.random.default_rng([6, seed]), (as_function, as_input))
