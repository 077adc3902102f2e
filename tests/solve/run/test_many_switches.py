"""Motions on lanes under forces that begin and end at times of their own: against SciPy with steps that end there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

import kanegen as kg

t = me.dynamicsymbols._t
x, v = me.dynamicsymbols("x v")
a, b = sm.symbols("a b")
END = 25.0
STARTS = np.linspace(0.3, 19.7, 7)

KNOTS = np.array([0.0, 5.0, 5.001, 5.4, 5.401, 25.0])
HEIGHTS = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])


def sawtooth(time: Any, start: float) -> Any:
    return np.where((time >= start) & (np.mod(time - start, 3.0) < 0.05), 1.0, 0.0)


FORCES: dict[str, tuple[sm.Expr, Callable[[float, float], Any], Callable[[float], Sequence[float]]]] = {
    "pulse": (
        sm.Piecewise((0, t < a), (1, t < a + b), (0, True)),
        lambda time, start: float(start <= time < start + 0.1),
        lambda start: [start, start + 0.1],
    ),
    "triangle": (
        sm.Max(0, 1 - sm.Abs(t - a) / b),
        lambda time, start: max(0.0, 1.0 - abs(time - start) / 0.1),
        lambda start: [start - 0.1, start, start + 0.1],
    ),
    "train": (
        sm.Heaviside(t - a) * sm.Piecewise((1, sm.Mod(t - a, 30 * b) < b / 2), (0, True)),
        sawtooth,
        lambda start: [start + 3.0 * k + offset for k in range(9) for offset in (0.0, 0.05)],
    ),
    "angle": (
        sm.Piecewise((1, sm.sin(t + a) > 1 - b / 20), (0, True)),
        lambda time, start: float(np.sin(time + start) > 0.995),
        lambda start: [
            np.pi / 2 + offset * np.arccos(0.995) - start + 2 * np.pi * k for k in range(9) for offset in (-1, 1)
        ],
    ),
    "spline": (
        kg.Spline(KNOTS, HEIGHTS, kind="linear", name="f", extrapolate="constant")(t - a) * b * 10,
        lambda time, start: np.interp(time - start, KNOTS, HEIGHTS),
        lambda start: list(KNOTS + start),
    ),
}


@cache
def solver(name: str) -> kg.Solver:
    """A particle with a spring and a damper, at rest until the force acts."""
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, x * N.x)
    P.set_vel(N, v * N.x)
    force = FORCES[name][0] - x / 2 - v / 8
    model = kg.Model(
        name=f"driven_{name}",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[v - x.diff(t)],
        bodies=[me.Particle("P", P, 1)],
        loads=[(P, force * N.x)],
        parameters={a: 1.0, b: 0.1},
    )
    return kg.build(model)


@cache
def reference(name: str, start: float, span: tuple[float, float], y: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """(x, v) at the end, with steps that end where the force has kinks or jumps, and times within each part."""
    _, force, kinks = FORCES[name]
    low, high = sorted(span)
    inside = sorted(time for time in kinks(start) if low < time < high)
    stops = [low, *inside, high] if span[0] < span[1] else [high, *inside[::-1], low]
    state = np.array(y, dtype=float)
    for begin, end in pairwise(stops):
        margin = 1e-13 * abs(end - begin)

        def rhs(time: float, y: np.ndarray, ends: Sequence[float] = sorted((begin, end)), m: float = margin) -> Any:
            return [y[1], force(np.clip(time, ends[0] + m, ends[1] - m), start) - y[0] / 2 - y[1] / 8]

        state = solve_ivp(rhs, (begin, end), state, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    return state


@pytest.mark.parametrize(
    ("name", "method"), [*((name, "dopri5") for name in FORCES), ("train", "dop853"), ("triangle", "verner9")]
)
def test_no_lane_steps_over_what_begins_in_time(name: str, method: str) -> None:
    found = solver(name).integrate_many(
        (0.0, END), [0.0], [0.0], parameters={"a": STARTS}, method=method, rtol=1e-8, atol=1e-10
    )
    assert found.lanes > 1
    assert found.success.all()
    expected = np.array([reference(name, start, (0.0, END)) for start in STARTS])
    assert np.abs(expected).max(axis=0).min() > 1e-3  # something has happened
    assert np.abs(np.column_stack([found.q[:, 0], found.u[:, 0]]).reshape(-1, 2) - expected).max() < 1e-7


def test_backward_and_at_requested_times() -> None:
    times = np.array([END, 12.5, 5.0, 0.0])
    found = solver("pulse").integrate_many(
        (END, 0.0), [0.01], [0.0], parameters={"a": STARTS}, rtol=1e-8, atol=1e-10, t_eval=times
    )
    for k, start in enumerate(STARTS):
        for row, time in enumerate(times[1:], 1):
            expected = reference("pulse", start, (END, time), (0.01, 0.0))
            assert abs(found.q[k, row, 0] - expected[0]) < 1e-7


def test_a_reduction_sees_the_motion() -> None:
    found = solver("pulse").integrate_many((0.0, END), [0.0], [0.0], parameters={"a": STARTS}, reduce=("max_abs", "x"))
    assert np.all(found.values > 0.01)
    energy = solver("pulse").integrate_many(
        (0.0, END), [0.0], [0.0], parameters={"a": STARTS}, reduce=("max", "kinetic_energy")
    )
    assert np.abs(energy.values / 0.005 - 1.0).max() < 0.02  # half the square of a speed of 0.1


def test_each_motion_is_the_same_alone_and_among_others() -> None:
    driven = solver("train")
    together = driven.integrate_many((0.0, END), [0.0], [0.0], parameters={"a": STARTS})
    for k in (0, 3, 6):
        alone = driven.integrate_many((0.0, END), [0.0], [0.0], parameters={"a": STARTS[k : k + 1]})
        assert alone.q[0].tobytes() == together.q[k].tobytes()
        assert alone.n_evaluations[0] == together.n_evaluations[k]
