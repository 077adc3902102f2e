"""User functions, splines and stabilization gains."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from messages import raises
from scipy.interpolate import CubicSpline

from kanegen.errors import DerivationError, ModelError, SolveError
from kanegen.graph.functions import Function, Spline
from kanegen.model import Baumgarte

x, y = sm.symbols("x y")

square = Function("square", 1, python=lambda v: v * v, c="x*x", derivatives=(lambda v: 2 * v,))
product = Function(
    "product",
    2,
    python=lambda a, b: a * b,
    c="double p = x1*x2; return p;",
    derivatives=(lambda a, b: b, lambda a, b: a),
)


def test_function_in_sympy():
    expr = square(sm.sin(x)) + 3 * product(x, y)
    assert type(square(x)).kanegen_function is square
    assert str(square(x)) == "square(x)"
    assert sm.expand(expr.diff(x) - (2 * sm.sin(x) * sm.cos(x) + 3 * y)) == 0
    assert square(sm.Float(1.5)).evalf() == pytest.approx(2.25, rel=1e-15)
    assert sm.lambdify((x, y), expr)(0.3, 2.0) == pytest.approx(np.sin(0.3) ** 2 + 1.8, rel=1e-15)


def test_function_c_body():
    assert square.c_body == "return x*x;"
    assert square.arguments == ("x",)
    assert product.c_body == "double p = x1*x2; return p;"
    assert product.arguments == ("x1", "x2")


def test_derivative_by_another_function():
    slope = Function("slope", 1, python=np.cos, c="cos(x)")
    wave = Function("wave", 1, python=np.sin, c="sin(x)", derivatives=(slope,))
    assert wave(2 * x).diff(x) == 2 * slope(2 * x)
    with raises(DerivationError, "'slope'", "derivatives="):
        slope(x).diff(x)


def test_function_problems():
    with pytest.raises(ModelError) as caught:
        Function("f", 2, python=3, c=" ", derivatives=(1,), arguments=("a b", "c"))
    assert len(caught.value.problems) == 5
    with raises(ModelError, "arity", "0"):
        Function("f", 0, python=abs, c="x")


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=9), st.floats(-1.5, 10.5))
def test_cubic_spline_is_scipys_with_derivatives(ordinates, at):
    abscissae = np.linspace(0.0, 8.0, len(ordinates)) ** 1.1
    spline = Spline(abscissae, ordinates, extrapolate="polynomial")
    reference = CubicSpline(abscissae, ordinates)
    for order in range(4):
        assert spline.derivative(order).python(at) == pytest.approx(float(reference(at, order)), abs=1e-8)
    grid = np.linspace(-1.0, 12.0, 7)
    assert spline.python(grid) == pytest.approx(reference(grid), abs=1e-8)
    assert spline.derivative(4).python(at) == 0.0


def test_spline_kinds():
    points = [0.0, 1.0, 3.0, 4.0], [1.0, 2.0, 0.0, 5.0]
    natural = Spline(*points, kind="natural")
    assert natural.derivative(2).python(0.0) == pytest.approx(0.0, abs=1e-12)
    assert natural.derivative(2).python(4.0) == pytest.approx(0.0, abs=1e-12)
    linear = Spline(*points, kind="linear", name="ramp", extrapolate="polynomial")
    assert linear.python(2.0) == pytest.approx(1.0, rel=1e-15)
    assert linear.python(5.0) == pytest.approx(10.0, rel=1e-15)
    assert linear.derivative().python(np.array([0.5, 2.0])) == pytest.approx([1.0, -1.0], rel=1e-15)


def test_spline_in_sympy():
    spline = Spline([0, 1, 2, 3], [0, 1, 4, 9], name="s")
    second = spline(x**2).diff(x).diff(x)
    assert float(second.subs(x, 1.3).evalf()) == pytest.approx(12 * 1.3**2, rel=1e-12)
    assert spline(x).diff(x) == spline.derivative()(x)
    assert spline.derivative() is spline.derivative()


@pytest.mark.parametrize(
    ("x_points", "y_points", "options", "names"),
    [
        ([0, 1, 1], [0, 1, 2], {}, ("x[1]", "1.0", "x[2]")),
        ([0, 1], [0, 1, 2], {}, ("x", "(2,)", "y", "(3,)")),
        ([0], [0], {}, ("2", "points")),
        ([0, np.nan], [0, 1], {}, ("finite",)),
        ([0, "a"], [0, 1], {}, ("numbers",)),
        ([0, 1], [0, 1], {"kind": "wild"}, ("'wild'", "'cubic'", "'natural'", "'linear'")),
        ([0, 1], [0, 1], {"name": ""}, ("name", "''")),
        ([0, 1], [0, 1], {"extrapolate": "zero"}, ("'zero'", "'error'", "'constant'", "'polynomial'")),
    ],
)
def test_spline_problems(x_points, y_points, options, names):
    with raises(ModelError, *names):
        Spline(x_points, y_points, **options)


@pytest.mark.parametrize("kind", ["cubic", "natural", "linear"])
def test_a_spline_is_constant_beyond_its_points(kind):
    points = [0.0, 1.0, 3.0, 4.0], [1.0, 2.0, 0.0, 5.0]
    held, inside = (Spline(*points, kind=kind, extrapolate=way) for way in ("constant", "polynomial"))
    grid = np.linspace(0.0, 3.999, 50)
    for order in range(3):
        np.testing.assert_array_equal(held.derivative(order).python(grid), inside.derivative(order).python(grid))
        beyond = held.derivative(order).python(np.array([-300.0, -1e-9, 4.0, 4.5, 1e6]))
        np.testing.assert_array_equal(beyond, [1.0, 1.0, 5.0, 5.0, 5.0] if order == 0 else np.zeros(5))


def test_a_spline_has_no_value_beyond_its_points():
    """It continued its last cubic: 1 became -194."""
    spline = Spline([0.0, 1.0, 2.0, 4.0], [0.0, 1.0, 0.0, 1.0], name="lift")
    assert spline.python(4.0) == pytest.approx(1.0)
    assert spline.python(np.array([0.0, -3e-9, 4.0 + 3e-9])) == pytest.approx([0.0, 0.0, 1.0], abs=1e-7)
    for function in (spline, spline.derivative(), spline.derivative(2)):
        for outside in (4.1, -0.5, np.array([1.0, 4.1])):
            with raises(SolveError, "spline 'lift'", "from 0 to 4"):
                function.python(outside)
    with raises(SolveError, "'lift' is 9.5"):
        sm.lambdify(x, spline(x) + x)(9.5)


@pytest.mark.parametrize("name", ["", "a\0b", "a\ud800", 3])
def test_names_that_no_file_can_hold(name):
    with raises(ModelError, "kg.Function", repr(name)):
        Function(name, 1, np.sin, "sin(x)")
    with raises(ModelError, "kg.Spline", repr(name)):
        Spline([0, 1], [0, 1], "linear", name=name)


def test_gains_of_alpha_and_beta():
    G1, G2, G = Baumgarte(alpha=10, beta=5).gains(2, 1)
    assert np.array_equal(G1, -20 * np.eye(2))
    assert np.array_equal(G2, -25 * np.eye(2))
    assert np.array_equal(G, [[-10.0]])
    assert Baumgarte(10, 5).flatten(1, 2).tolist() == [-20, -25, -10, 0, 0, -10]
    assert Baumgarte(10, 5).flatten(0, 0).size == 0


@given(st.floats(0.01, 50), st.floats(0.01, 50))
def test_holonomic_gains_decay(alpha, beta):
    G1, G2, _ = Baumgarte(alpha, beta).gains(1, 0)
    assert np.all(np.linalg.eigvals([[0, 1], [G2[0, 0], G1[0, 0]]]).real < 0)


def test_gains_as_matrices():
    G1 = [[-3.0, 1.0], [0.0, -2.0]]
    stabilization = Baumgarte(G1=G1, G2=-4.0, G=-1.0)
    assert np.array_equal(stabilization.gains(2, 1)[0], G1)
    with raises(ModelError, "G1", "(2, 2)", "3"):
        stabilization.gains(3, 1)


@pytest.mark.parametrize(
    ("gains", "names"),
    [
        (
            {"alpha": -1.0, "beta": 2.0},
            ("phi'' - G1 phi' - G2 phi", "1+1.73205j"),
        ),
        ({"alpha": 1.0, "beta": 0.0}, ("eigenvalue", "0")),
        ({"G": 3.0}, ("psi' - G psi", "3")),
        ({"G1": [[-1, 0], [0, -1]], "G2": [[0, 4], [-4, 0]]}, ("decay",)),
        ({"beta": 1.0}, ("beta", "alpha")),
        ({"G1": -1.0}, ("G1", "G2")),
        ({}, ("gains",)),
        ({"alpha": 1.0, "G": -1.0}, ("gains", "one kind")),
        ({"alpha": "fast"}, ("alpha", "'fast'")),
        ({"G": [[1.0, 2.0]]}, ("G", "square")),
        ({"G": float("inf")}, ("G", "finite")),
    ],
)
def test_gains_that_are_refused(gains, names):
    with raises(ModelError, *names):
        Baumgarte(**gains)


def test_gains_that_rows_need():
    with raises(ModelError, "2", "G1"):
        Baumgarte(alpha=1.0).gains(2, 0)
    assert Baumgarte(alpha=1.0).gains(0, 1)[2].tolist() == [[-1.0]]


def test_gains_are_frozen():
    stabilization = Baumgarte(1.0, 1.0)
    with pytest.raises(AttributeError):
        stabilization.alpha = 2.0
    with raises(ValueError, "read-only"):
        stabilization.G[...] = 1.0
