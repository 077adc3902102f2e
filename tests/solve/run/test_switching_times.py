"""The times at which a model switches, for integrators of other software, and runs of the interpreted back end."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy as sm
from checkout import EXAMPLES, ROOT
from scipy.integrate import solve_ivp
from state_models import point_mass
from switching import FORCES, driven, reference, t, v, x

import kanegen as kg

T1 = 7.0
begin = sm.Symbol("begin")

KNOWN: dict[str, tuple[Any, list[float]]] = {
    "none": (sm.sin(t) - x, []),
    "state only": (sm.Max(x, 0), []),
    "relation": (sm.Piecewise((0, t < begin), (1, True)), [2.5]),
    "ramp": (sm.Max(0, 2 * t - 5) + sm.Abs(t - 4), [2.5, 4.0]),
    "floor": (sm.floor(t / 2), [2.0, 4.0, 6.0]),
    "sawtooth": (sm.Max(0, sm.Mod(t, 2) - 1), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "square of t": (sm.Heaviside(t**2 - 20), [float(np.sqrt(20.0))]),
    "sine": (sm.sign(sm.sin(3 * t)), [k * np.pi / 3 for k in range(1, 7)]),
}
"""Forces with their times between 0 and 7 s."""


@cache
def solver(name: str, backend: str = "cython") -> kg.Solver:
    force = KNOWN[name][0]
    parameters = {"m": 1.0} | ({"begin": 2.5} if force.has(begin) else {})
    model = point_mass("switching", force, initial={"x": 0.0, "v": 0.0}, parameters=parameters)
    return kg.build(model, backend=backend, functions=("rhs",))


@cache
def driven_solver(name: str, backend: str = "cython") -> kg.Solver:
    return kg.build(driven(name), backend=backend, functions=("rhs",))


@pytest.mark.parametrize("backend", ["cython", "interpreted"])
@pytest.mark.parametrize("name", KNOWN)
def test_times(name: str, backend: str) -> None:
    expected = KNOWN[name][1]
    times = solver(name, backend).switching_times((0.0, T1))
    assert times.dtype == np.float64
    assert times.shape == (len(expected),)
    assert np.abs(times - expected).max(initial=0.0) < 1e-12
    backward = solver(name, backend).switching_times((T1, 0.0))
    assert np.abs(backward[::-1] - expected).max(initial=0.0) < 1e-12


@pytest.mark.parametrize("backend", ["cython", "interpreted"])
def test_ends_of_the_span_are_not_among_the_times(backend: str) -> None:
    known = solver("floor", backend)
    assert known.switching_times((2.0, 6.0)).tolist() == [4.0]
    assert known.switching_times((2.0, 2.0)).size == 0
    assert solver("relation", backend).with_parameters(begin=6.0).switching_times((0.0, T1)).tolist() == [6.0]


def test_at_the_time_of_this_century() -> None:
    t0 = 1.7e9
    times = solver("sine").switching_times((t0, t0 + 3.0))
    assert np.abs(np.sin(3 * times)).max() < 1e-5
    assert times.size in (2, 3)


def test_breakpoints_of_tables_are_among_the_times() -> None:
    force = sm.Function("F")(t)
    model = point_mass("pulsed", force + KNOWN["relation"][0], inputs=[force], parameters={"m": 1.0, "begin": 2.5})
    pulsed = kg.build(model, functions=("rhs",))
    table = ([0.0, 5.0, 5.001, 6.999, 7.0, 25.0], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    times = pulsed.switching_times((0.0, 25.0), {force: table})
    assert {2.5, 5.0, 5.001, 6.999, 7.0} <= set(times.tolist())
    assert pulsed.switching_times((25.0, 0.0), {force: table}).tolist() == times[::-1].tolist()
    assert pulsed.switching_times((0.0, 25.0)).tolist() == [2.5]


@pytest.mark.parametrize("name", FORCES)
def test_scipy_from_one_time_to_the_next(name: str) -> None:
    """SciPy's DOP853 over the whole span returns 0 for forces that begin later; the loop of the page does not."""
    driven = driven_solver(name)
    y, ends = np.zeros(2), [0.0, *driven.switching_times((0.0, T1)), T1]
    for a, b in pairwise(ends):
        first, last = a + 8 * np.spacing(a), b - 8 * np.spacing(b)

        def rate(t: float, y: Any, first: float = first, last: float = last) -> Any:
            return driven.ode(min(max(t, first), last), y)

        y = solve_ivp(rate, (a, b), y, "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    assert np.abs(y - reference(name, T1)).max() < 1e-10


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
@pytest.mark.parametrize("name", FORCES)
def test_interpreted_runs_stop_at_the_times(name: str, method: str) -> None:
    solution = driven_solver(name, "interpreted").integrate((0.0, T1), method=method)
    assert np.abs(np.concatenate(solution.last[1:3]) - reference(name, T1)).max() < 1e-6
    for kink in FORCES[name].kinks:
        assert kink >= T1 or np.abs(solution.t - kink).min() < 1e-12


def test_interpreted_runs_stop_at_breakpoints_of_tables() -> None:
    force = sm.Function("F")(t)
    model = point_mass("pulsed", force - 9 * x - v / 2, inputs=[force], parameters={"m": 1.0})
    table = ([0.0, 4.5, 6.0, 7.5, 10.0], [0.0, 0.0, 1.0, 0.0, 0.0])
    start = {"x": 0.0}, {"v": 0.0}
    solution = kg.build(model, backend="interpreted").integrate((0.0, T1), *start, {force: table})
    assert np.abs(np.concatenate(solution.last[1:3]) - reference("pulse", T1)).max() < 1e-6


def test_an_interpreted_run_goes_backward_over_the_times() -> None:
    there = driven_solver("pulse", "interpreted").integrate((0.0, T1), rtol=1e-10, atol=1e-12)
    back = driven_solver("pulse", "interpreted").integrate((T1, 0.0), *there.last[1:3], rtol=1e-10, atol=1e-12)
    assert np.abs(np.concatenate(back.last[1:3])).max() < 1e-8


def test_the_loop_of_the_page() -> None:
    page = (ROOT / "docs" / "integration.md").read_text(encoding="utf-8")
    programs = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "switching_times" in text]
    for program in programs:
        code = program.replace('"build_examples"', repr(str(EXAMPLES)))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert programs
