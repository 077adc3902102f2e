"""Inputs of an integration: every form a user may give them in, and their rates from splines."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy
from handmade import pendulum_module
from handmade_track import DESCRIPTION, extension, input_slots
from hypothesis import given
from hypothesis import strategies as st
from messages import raises
from scipy import LowLevelCallable
from scipy.interpolate import BPoly, BSpline, CubicSpline, PPoly, UnivariateSpline, make_interp_spline
from sympy.physics.vector import dynamicsymbols

from kanegen.codegen.description import Description, InputSlot
from kanegen.errors import SolveError
from kanegen.solve.inputs import RunInputs, run_inputs
from kanegen.solve.inputs.polynomials import combined, from_scipy, value_at

TIMES = np.linspace(0.0, 2.0, 9)
LIFT = np.sin(TIMES)
SPLINE = CubicSpline(TIMES, LIFT)
ALL = np.stack([LIFT, np.cos(TIMES), -LIFT], axis=1)

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)


@CALLBACK
def compiled_lift(t: float, r: Any, user_data: int | None) -> None:
    r[0], r[1], r[2] = t * t, 2.0 * t, 2.0


def inputs(r: Any, **changes: Any) -> RunInputs:
    return run_inputs(extension().module, replace(DESCRIPTION, **changes), r)


def one_input() -> Description:
    return replace(DESCRIPTION, input_slots=(InputSlot("lift"),))


@pytest.mark.parametrize(
    ("r", "expected"),
    [
        (None, lambda t: [0.0, 0.0, 0.0]),
        ([1, 2, 3], lambda t: [1.0, 2.0, 3.0]),
        ((1.0, 2.0, 3.0), lambda t: [1.0, 2.0, 3.0]),
        ((TIMES, ALL), lambda t: [np.interp(t, TIMES, column) for column in ALL.T]),
        (CubicSpline(TIMES, ALL), lambda t: CubicSpline(TIMES, ALL)(t)),
        (make_interp_spline(TIMES, ALL, k=5), lambda t: make_interp_spline(TIMES, ALL, k=5)(t)),
        (LowLevelCallable(compiled_lift), lambda t: [t * t, 2.0 * t, 2.0]),
        (lambda t: [t, 1.0, 0.0], lambda t: [t, 1.0, 0.0]),
        ({"lift": SPLINE}, lambda t: [SPLINE(t), SPLINE(t, 1), SPLINE(t, 2)]),
        ({"lift": 2.0}, lambda t: [2.0, 0.0, 0.0]),
        ({dynamicsymbols("lift"): SPLINE}, lambda t: [SPLINE(t), SPLINE(t, 1), SPLINE(t, 2)]),
        ({sympy.Symbol("lift_rate"): 3.0}, lambda t: [0.0, 3.0, 0.0]),
        ({"lift": (TIMES, LIFT), "lift_rate": 1.0}, lambda t: [np.interp(t, TIMES, LIFT), 1.0, 0.0]),
        (
            {"lift": np.sin, "lift_rate": SPLINE, "lift_acceleration": -1},
            lambda t: [np.sin(t), SPLINE(t), -1.0],
        ),
        ({"lift": lambda t: 0.0, "lift_rate": SPLINE}, lambda t: [0.0, SPLINE(t), SPLINE(t, 1)]),
    ],
)
def test_every_form_gives_its_values(r: Any, expected: Any) -> None:
    given = inputs(r)
    for t in (0.0, 0.4, 1.25, 2.0):
        np.testing.assert_allclose(given.at(t), expected(t), rtol=1e-13, atol=1e-14)


def test_rates_win_over_defaults_only_where_their_input_is_given() -> None:
    defaults = (5.0, 6.0, 7.0)
    np.testing.assert_array_equal(
        inputs({"lift_rate": 1.0}, input_slots=input_slots(*defaults)).at(0.0), [5.0, 1.0, 0.0]
    )
    np.testing.assert_array_equal(inputs({}, input_slots=input_slots(*defaults)).at(0.0), defaults)


@pytest.mark.parametrize(
    ("r", "names"),
    [
        ("lift", ("r", "'lift'", "array")),
        ([1.0], ("r", "(1,)", "(3,)")),
        ([1.0, np.nan, 0.0], ("lift_rate", "r[1]", "nan")),
        ((TIMES,), ("tuple", "1", "table")),
        ((TIMES, ALL[:3]), ("times", "(9,)", "values", "(3, 3)")),
        ((TIMES[::-1], ALL), ("increasing",)),
        ((TIMES, LIFT), ("r", "1", "3", "lift", "lift_rate")),
        (SPLINE, ("r", "1", "3")),
        (CubicSpline(TIMES, np.ones((9, 2, 2))), ("spline", "(2, 2)")),
        (PPoly([[np.nan]], [0.0, 1.0]), ("spline", "NaN")),
        ({"lif": 1.0}, ("'lif'", "'lift'")),
        ({"lift": "1"}, ("lift", "'1'")),
        ({"lift": np.inf}, ("lift", "inf")),
        ({"lift": (TIMES, ALL)}, ("lift", "3")),
        ({"lift": CubicSpline(TIMES, ALL)}, ("lift", "3")),
        ({"lift": LowLevelCallable(compiled_lift)}, ("C function", "inputs")),
        ({"lift": np.sin}, ("lift", "Python", "lift_rate")),
        ({"lift": (TIMES, LIFT)}, ("lift_rate", "lift_acceleration", "jumps")),
        ({"lift": PPoly([[0.0, 1.0]], [0.0, 1.0, 2.0])}, ("lift", "jumps", "1", "t = 1.0")),
        (
            {"lift": (TIMES, LIFT), "lift_rate": (TIMES + 5.0, LIFT), "lift_acceleration": 0.0},
            ("lift", "0.0", "2.0", "lift_rate", "5.0", "7.0"),
        ),
    ],
)
def test_wrong_inputs_are_refused(r: Any, names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        inputs(r)


def test_missing_inputs_are_named() -> None:
    without = (None, 0.0, None)
    with raises(SolveError, "lift", "lift_acceleration", "r="):
        inputs(None, input_slots=input_slots(*without))
    with raises(SolveError, "lift"):
        inputs({"lift_rate": 0.0}, input_slots=input_slots(*without))


def test_scalar_tables_and_splines_serve_one_input() -> None:
    for r in ((TIMES, LIFT), SPLINE):
        given = run_inputs(pendulum_module(), one_input(), r)
        assert given.at(0.5) == pytest.approx(LIFT[2])


def test_inputs_are_not_extrapolated() -> None:
    mixed = inputs({"lift": SPLINE, "lift_rate": np.cos, "lift_acceleration": 0.0})
    with raises(SolveError, "0.0", "2.0", "2.5"):
        mixed.at(2.5)


@pytest.mark.parametrize(
    "spline",
    [
        SPLINE,
        make_interp_spline(TIMES, LIFT, k=4),
        BSpline(np.arange(-3.0, 9.0), np.array([1.0, -1.0, 2.0, 0.5, 3.0, 1.0, 0.0, 2.0]), 3),
        BPoly([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]], [0.0, 1.0, 3.0]),
    ],
)
def test_scipy_objects_become_the_same_polynomials(spline: Any) -> None:
    polynomial = from_scipy(spline, "r")
    assert polynomial is not None
    first, last = polynomial.x[[0, -1]]
    for t in np.linspace(first, last, 23):
        np.testing.assert_allclose(value_at(polynomial, float(t))[0], spline(t), rtol=1e-12, atol=1e-12)


def test_other_objects_are_not_splines() -> None:
    assert from_scipy(UnivariateSpline(TIMES, LIFT), "r") is None
    assert from_scipy(1.0, "r") is None


@given(
    st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True),
    st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True),
    st.randoms(use_true_random=False),
)
def test_combined_polynomials_keep_their_values(first: list[int], second: list[int], random: Any) -> None:
    def polynomial(times: list[int], rows: int) -> PPoly:
        shape = (rows, len(times) - 1, 1)
        values = [random.uniform(-1.0, 1.0) for _ in range(int(np.prod(shape)))]
        return PPoly(np.reshape(values, shape), np.array(sorted(times), dtype=float))

    parts = [polynomial(first, 4), 0.5, polynomial(second, 2)]
    start, end = max(min(first), min(second)), min(max(first), max(second))
    if start >= end:
        with raises(SolveError, "time"):
            combined(parts, "abc")
        return
    whole = combined(parts, "abc")
    assert (whole.x[0], whole.x[-1]) == (start, end)
    # Midpoints of pieces: the value at a breakpoint is that of either side.
    for t in np.linspace(start, end, 48, endpoint=False) + (end - start) / 97.3:
        expected = [parts[0](t)[0], 0.5, parts[2](t)[0]]
        np.testing.assert_allclose(whole(t), expected, rtol=1e-9, atol=1e-9)
