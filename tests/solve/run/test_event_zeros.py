"""Zeros of guards where they are hard to find: kinks, double zeros, close zeros, small units."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from numpy.testing import assert_allclose
from state_models import point_mass

import kanegen as kg

METHODS = ["dopri5", "dop853", "verner9", "rodas", "rk4"]


@cache
def passing() -> kg.Solver:
    """A mass moves uniformly, x = t, along guards about c."""
    x, t = me.dynamicsymbols("x"), me.dynamicsymbols._t
    c, d = sm.symbols("c d")
    guards = {
        "kink": sm.Abs(x - c),
        "kink of t": sm.Abs(t - c),
        "square": (x - c) ** 2,
        "square of t": (t - c) ** 2,
        "cosine": 1 - sm.cos(x - c),
        "close": (t - c) * (t - c - d),
        "tiny": 1e-11 * (x - c),
    }
    return kg.build(
        point_mass(
            "passing",
            0,
            events=[kg.Event(name, guard) for name, guard in guards.items()],
            parameters={"m": 1.0, "c": 8.0, "d": 2.6e-6},
        )
    )


def times(event: str, c: float, method: str) -> list[float]:
    """Times of the event, from 3 s before c to 3 s after it."""
    options = {"step": 0.11} if method == "rk4" else {"rtol": 1e-10, "atol": 1e-10}
    span = (c - 3.0, c + 3.0)
    solution = (
        passing().with_parameters(c=c).integrate(span, [span[0]], [1.0], method=method, events=[event], **options)
    )
    return [found.t for found in solution.events]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("c", [8.0, 7.93, 6.1])
@pytest.mark.parametrize("event", ["square", "square of t", "cosine"])
def test_a_guard_that_touches_zero_has_one_event(event: str, c: float, method: str) -> None:
    assert_allclose(times(event, c, method), [c], rtol=0, atol=1e-7 if event == "cosine" else 1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("c", [8.0, 7.93, 6.1, 1.3277881914895575])
@pytest.mark.parametrize("event", ["kink", "kink of t"])
def test_a_guard_with_a_kink_at_zero_has_one_event(event: str, c: float, method: str) -> None:
    """Also where the kink falls on the end of a step, as that of a function of t always does with adaptive steps."""
    assert_allclose(times(event, c, method), [c], rtol=0, atol=1e-8)


@pytest.mark.parametrize("rtol", [1e-10, 1e-8, 1e-4])
@pytest.mark.parametrize("method", [method for method in METHODS if method != "rk4"])
def test_kinks_at_zero_anywhere_in_a_step_have_one_event(method: str, rtol: float) -> None:
    """Away from the kink of t, at which a step ends; a unit of tolerance of x is at most 10 rtol."""
    rng = np.random.default_rng(3)
    for c in rng.uniform(0.5, 9.5, 12):
        solver = passing().with_parameters(c=c)
        solution = solver.integrate(
            (0.0, 10.0), [0.37], [1.0], method=method, rtol=rtol, atol=0.01 * rtol, events=["kink"]
        )
        assert_allclose([event.t for event in solution.events], [c - 0.37], rtol=0, atol=20 * rtol)


@pytest.mark.parametrize("method", METHODS)
def test_two_zeros_a_few_microseconds_apart_are_two_events(method: str) -> None:
    assert_allclose(times("close", 8.0, method), [8.0, 8.0 + 2.6e-6], rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_guard_of_small_values_has_its_event(method: str) -> None:
    assert_allclose(times("tiny", 8.0, method), [8.0], rtol=0, atol=1e-9)
