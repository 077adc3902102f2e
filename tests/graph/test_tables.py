"""kg.Table against SciPy, cubics in 30 digits, and differences: values, derivatives, ends, files, wrong points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sm
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PchipInterpolator, RectBivariateSpline

import kanegen as kg
from kanegen.graph import Graph, Lowering, Tangent, evaluate, gradient, mpmath_context, numpy_context, to_sympy

Array = NDArray[np.float64]
GENERATOR = np.random.default_rng(35)
X = np.cumsum(GENERATOR.exponential(size=24) + 0.02)
Y = GENERATOR.normal(size=24)
U, V = np.sort(GENERATOR.uniform(-2.0, 3.0, 9)), np.sort(GENERATOR.uniform(0.0, 1.0, 7))
Z = GENERATOR.normal(size=(9, 7))
x, y = sm.symbols("x y", real=True)
REFERENCES: dict[str, Callable[..., Any]] = {
    "cubic": CubicSpline,
    "natural": lambda points, values: CubicSpline(points, values, bc_type="natural"),
    "monotone": PchipInterpolator,
    "linear": lambda points, values: lambda at, order=0: np.interp(at, points, values),
}


def value_of(expression: Any, **known: Any) -> Any:
    """An expression at numbers or arrays, by the graph that its lowering gives."""
    graph = Graph()
    symbols = sorted(expression.free_symbols, key=str)
    node = Lowering(graph, {symbol: graph.input("p", k) for k, symbol in enumerate(symbols)}).lower(expression)
    return evaluate([node], {"p": [known[str(symbol)] for symbol in symbols]}, numpy_context())[0]


def given(table: kg.Table) -> dict[str, float]:
    return {str(symbol): value for symbol, value in table.parameters.items()}


@pytest.mark.parametrize("parameters", [False, True], ids=["numbers", "parameters"])
@pytest.mark.parametrize("kind", REFERENCES)
def test_values_are_those_of_scipy(kind: str, parameters: bool) -> None:
    """At random arguments, at the points, and first and second derivatives that SymPy takes."""
    table, reference = kg.Table(X, Y, kind=kind, parameters=parameters), REFERENCES[kind](X, Y)
    at = np.concatenate([GENERATOR.uniform(X[0], X[-1], 200), X])
    assert table.python(at) == pytest.approx(reference(at), abs=1e-13)
    assert value_of(table(x), x=at, **given(table)) == pytest.approx(reference(at), abs=1e-13)
    if kind != "linear":
        for order in (1, 2):
            found = value_of(table(x).diff(x, order), x=at, **given(table))
            scale = np.abs(reference(at, order)).max()
            assert found == pytest.approx(reference(at, order), abs=1e-12 * scale)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("kind", ["cubic", "natural", "monotone"])
def test_few_points(kind: str, n: int) -> None:
    table = kg.Table(X[:n], Y[:n], kind=kind, parameters=True)
    at = np.linspace(X[0], X[n - 1], 50)
    expected = np.interp(at, X[:n], Y[:n]) if n == 2 else REFERENCES[kind](X[:n], Y[:n])(at)
    assert kg.Table(X[:n], Y[:n], kind=kind).python(at) == pytest.approx(expected, abs=1e-12)
    assert table.python(at) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("values", ["steps", "turns", "flat", "steep end"])
def test_monotone_tables_do_not_overshoot(values: str) -> None:
    points = np.array([0.0, 1.0, 1.5, 4.0, 4.1, 6.0])
    ordinates = {
        "steps": np.array([0.0, 0.0, 1.0, 1.0, 5.0, 5.0]),
        "turns": np.array([0.0, 2.0, -1.0, 3.0, 3.0, -2.0]),
        "flat": np.ones(6),
        "steep end": np.array([0.0, 10.0, 9.0, 8.0, -20.0, -19.0]),
    }[values]
    table, at = kg.Table(points, ordinates, kind="monotone", parameters=True), np.linspace(0.0, 6.0, 601)
    found = table.python(at)
    assert found == pytest.approx(PchipInterpolator(points, ordinates)(at), abs=1e-12)
    assert kg.Table(points, ordinates, kind="monotone").python(at) == pytest.approx(found, abs=1e-12)
    piece = np.clip(np.searchsorted(points, at, side="right") - 1, 0, 4)
    low = np.minimum(ordinates[piece], ordinates[piece + 1])
    high = np.maximum(ordinates[piece], ordinates[piece + 1])
    assert np.all(found >= low - 1e-12)
    assert np.all(found <= high + 1e-12)


def solved_in_digits(points: Array, values: Array, at: float) -> Any:
    """A not-a-knot spline from its conditions: dense equations for the coefficients of all pieces, in 30 digits."""
    n = len(points) - 1
    X_, Y_ = [mpmath.mpf(a) for a in points], [mpmath.mpf(a) for a in values]
    rows, right = [], []

    def row(piece: int, d: Any, order: int, sign: int = 1, into: list[Any] | None = None) -> list[Any]:
        line = [mpmath.mpf(0)] * (4 * n) if into is None else into
        for power in range(order, 4):
            line[4 * piece + power] += sign * mpmath.ff(power, order) * d ** (power - order)
        return line

    for k in range(n):
        h = X_[k + 1] - X_[k]
        rows += [row(k, mpmath.mpf(0), 0), row(k, h, 0)]
        right += [Y_[k], Y_[k + 1]]
        if k < n - 1:
            orders = (1, 2, 3) if k in (0, n - 2) else (1, 2)
            for order in orders:
                rows.append(row(k + 1, mpmath.mpf(0), order, -1, row(k, h, order)))
                right.append(0)
    c = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix(right))
    piece = min(int(np.searchsorted(points, at, side="right")) - 1, n - 1)
    d = mpmath.mpf(at) - X_[piece]
    return sum(c[4 * piece + power] * d**power for power in range(4))


def test_values_in_30_digits() -> None:
    """The table of parameters is the spline of its conditions, to all digits."""
    table, points = kg.Table(X[:8], Y[:8], parameters=True), (X[0] + 0.1, X[4] + 0.01, X[7] - 0.003)
    graph = Graph()
    symbols = {symbol: graph.input("p", k) for k, symbol in enumerate(table.parameters)}
    node = Lowering(graph, {x: graph.input("q", 0), **symbols}).lower(table(x))
    with mpmath.workdps(30):
        values = [mpmath.mpf(value) for value in Y[:8]]
        for at in points:
            (found,) = evaluate([node], {"q": [mpmath.mpf(at)], "p": values}, mpmath_context(30))
            exact = solved_in_digits(X[:8], Y[:8], at)
            assert abs(found - exact) < 1e-13 * max(abs(exact), 1)  # constants of the graph are doubles
            assert kg.Table(X[:8], Y[:8]).python(at) == pytest.approx(float(exact), abs=1e-13)


# -- two arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [False, True], ids=["numbers", "parameters"])
@pytest.mark.parametrize("kind", ["cubic", "linear"])
def test_surfaces_are_those_of_scipy(kind: str, parameters: bool) -> None:
    """Against tensor products of B-splines, with the derivatives of orders up to 2."""
    table = kg.Table(U, V, Z, kind=kind, parameters=parameters)
    degree = 3 if kind == "cubic" else 1
    reference = RectBivariateSpline(U, V, Z, kx=degree, ky=degree)
    a, b = GENERATOR.uniform(U[0], U[-1], 200), GENERATOR.uniform(V[0], V[-1], 200)
    assert table.python(a, b) == pytest.approx(reference.ev(a, b), abs=1e-11)
    if kind == "linear":  # in each cell, differences are exact
        dx = value_of(table(x, y).diff(x), x=a, y=b, **given(table))
        assert dx == pytest.approx((reference.ev(a + 1e-9, b) - reference.ev(a, b)) / 1e-9, rel=1e-4, abs=1e-4)
        assert value_of(table(x, y).diff(x, 2), x=a, y=b, **given(table)) == 0.0
        return
    for orders in [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1)]:
        expression = table(x, y).diff(*([x] * orders[0] + [y] * orders[1]))
        found, expected = value_of(expression, x=a, y=b, **given(table)), reference.ev(a, b, *orders)
        assert found == pytest.approx(expected, abs=1e-11 * max(1.0, np.abs(expected).max()))


def test_second_derivatives_are_continuous_at_the_lines_of_a_grid() -> None:
    table = kg.Table(U, V, Z)
    for orders in [(2, 0), (1, 1), (0, 2)]:
        curvature = table(x, y).diff(*([x] * orders[0] + [y] * orders[1]))
        below, above = (value_of(curvature, x=U[1:-1] + side, y=np.full(7, V[3] + side)) for side in (-1e-9, 1e-9))
        assert below == pytest.approx(above, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("parameters", [False, True], ids=["numbers", "parameters"])
@pytest.mark.parametrize("extrapolate", ["constant", "polynomial"])
def test_beyond_the_points(extrapolate: str, parameters: bool) -> None:
    """Values and slopes of curves and surfaces, on both sides and beyond a corner."""
    options: dict[str, Any] = {"extrapolate": extrapolate, "parameters": parameters}
    curve, surface = kg.Table(X, Y, **options), kg.Table(U, V, Z, **options)
    spline = CubicSpline(X, Y)
    at = np.array([X[0] - 0.5, X[-1] + 0.7])
    held = extrapolate == "constant"
    assert curve.python(at) == pytest.approx(Y[[0, -1]] if held else spline(at), rel=1e-11)
    slope = value_of(curve(x).diff(x), x=at, **given(curve))
    assert slope == pytest.approx(np.zeros(2) if held else spline(at, 1), rel=1e-11)
    a, b = np.array([U[0] - 0.2, U[2], U[-1] + 0.1]), np.array([V[1], V[-1] + 0.05, V[0] - 0.04])
    inside = np.clip(a, U[0], U[-1]), np.clip(b, V[0], V[-1])
    within = kg.Table(U, V, Z)
    if held:
        assert surface.python(a, b) == pytest.approx(within.python(*inside), abs=1e-12)
        along = value_of(surface(x, y).diff(x), x=a, y=b, **given(surface))
        expected = value_of(within(x, y).diff(x), x=inside[0], y=inside[1])
        assert along == pytest.approx(np.where(inside[0] == a, expected, 0.0), abs=1e-11)
    else:
        rows = np.array([CubicSpline(V, CubicSpline(U, Z)(p))(q) for p, q in zip(a, b, strict=True)])
        assert surface.python(a, b) == pytest.approx(rows, abs=1e-10 * np.abs(rows).max())


def test_numbers_outside_are_refused() -> None:
    curve, surface = kg.Table(X, Y, name="lift"), kg.Table(U, V, Z, name="map", parameters=True)
    with pytest.raises(kg.SolveError, match=r"the argument of the table 'lift' is 99, but it has values from"):
        curve.python(99.0)
    with pytest.raises(kg.SolveError, match=r"the argument of the table 'map' in y is 99, but it has values from"):
        surface.python(U[2], 99.0)
    with pytest.raises(kg.DerivationError, match="the table 'lift' is 99"):
        Lowering(Graph(), {}).lower(curve(sm.Integer(99)))


# -- derivatives with respect to values --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cubic", "monotone", "linear", "surface"])
def test_derivatives_with_respect_to_values(kind: str) -> None:
    """Forward and reverse, against differences of order 4; and those that SymPy takes."""
    table = kg.Table(U, V, Z, parameters=True) if kind == "surface" else kg.Table(X, Y, kind=kind, parameters=True)
    n, arguments = len(table.parameters), (x, y) if kind == "surface" else (x,)
    at = (0.31, 0.52) if kind == "surface" else (X[0] + 3.3,)
    graph = Graph()
    leaves = [graph.input("q", k) for k in range(len(arguments))]
    values = [graph.input("p", k) for k in range(n)]
    symbols = dict(zip((*arguments, *table.parameters), (*leaves, *values), strict=True))
    node = Lowering(graph, symbols).lower(table(*arguments) ** 2)
    start = np.array(list(table.parameters.values()))

    def value(root: Any, p: Any) -> float:
        return float(evaluate([root], {"q": at, "p": p})[0])

    h, units = 1e-3, np.eye(n)
    expected = [
        (8 * (value(node, start + h * e) - value(node, start - h * e)) - value(node, start + 2 * h * e)
         + value(node, start - 2 * h * e)) / (12 * h)
        for e in units
    ]  # fmt: skip
    scale = np.abs(expected).max()
    forward = [value(Tangent(graph, {p: graph.one})(node), start) for p in values]
    reverse = evaluate(gradient([node], [graph.one], values), {"q": at, "p": start})
    assert forward == pytest.approx(expected, abs=1e-8 * scale)
    assert reverse == pytest.approx(forward, abs=1e-13 * scale)
    if kind == "monotone":
        with pytest.raises(kg.DerivationError, match="not linear in them"):
            table(x).diff(next(iter(table.parameters)))
    else:
        symbol, number = list(table.parameters)[3], dict(zip(map(str, arguments), at, strict=True))
        by_sympy = value_of((table(*arguments) ** 2).diff(symbol), **number, **given(table))
        assert by_sympy == pytest.approx(forward[3], abs=1e-12 * scale)


def test_values_of_expressions() -> None:
    """Values that follow from parameters; a scale has a derivative, too. Other symbols are refused by name."""
    scale, q = sm.Symbol("scale"), sm.Function("q")(sm.Symbol("t"))
    table = kg.Table(X, [scale * value for value in Y])
    at = X[0] + 2.0
    assert value_of(table(x), x=at, scale=3.0) == pytest.approx(3.0 * CubicSpline(X, Y)(at), rel=1e-13)
    assert value_of(table(x).diff(scale), x=at, scale=3.0) == pytest.approx(CubicSpline(X, Y)(at), rel=1e-12)
    graph = Graph()
    with pytest.raises(kg.DerivationError, match="the values of the table 'wet' depend on more than parameters"):
        Lowering(graph, {q: graph.input("q", 0), x: graph.input("q", 1)}).lower(kg.Table([0, 1], [q, 1], name="wet")(x))


def test_sympy_shows_and_evaluates_tables() -> None:
    table = kg.Table(X, Y, name="lift", parameters=True)
    assert (str(table(x)), str(table(x).diff(x))) == ("lift(x)", "lift'(x)")
    assert sm.latex(table(x)) == r"\operatorname{lift}\left(x\right)"
    assert table(x).free_symbols == {x, *table.parameters}
    number = table(x).subs({x: X[0] + 1.0, **table.parameters})
    assert float(number.evalf()) == pytest.approx(CubicSpline(X, Y)(X[0] + 1.0), rel=1e-12)
    assert float(kg.Table(U, V, Z)(0.1, 0.5).evalf()) == pytest.approx(RectBivariateSpline(U, V, Z)(0.1, 0.5)[0, 0])
    graph = Graph()
    leaves = {x: graph.input("q", 0), **{symbol: graph.input("p", k) for k, symbol in enumerate(table.parameters)}}
    names = {node.payload: symbol for symbol, node in leaves.items()}
    (shown,) = to_sympy([Lowering(graph, leaves).lower(table(x))], names)
    assert "coefficient(lift(x))" in str(shown)
    assert float(shown.subs({x: X[0] + 1.0, **table.parameters})) == pytest.approx(CubicSpline(X, Y)(X[0] + 1.0))
    (again,) = evaluate([Lowering(graph, leaves).lower(shown)], {"q": [X[0] + 1.0], "p": Y})
    assert again == pytest.approx(float(CubicSpline(X, Y)(X[0] + 1.0)))


# -- construction ------------------------------------------------------------------------------------------------------


def test_new_values() -> None:
    table = kg.Table([0, 1, 2], [3, 4, 5], name="lift", parameters=True)
    assert given(table) == {"lift_0": 3.0, "lift_1": 4.0, "lift_2": 5.0}
    assert list(table.assign([6, 7, 8]).values()) == [6.0, 7.0, 8.0]
    surface = kg.Table([0, 1], [0, 1], [[1, 2], [3, 4]], kind="linear", name="map", parameters=True)
    assert given(surface) == {"map_0_0": 1.0, "map_0_1": 2.0, "map_1_0": 3.0, "map_1_1": 4.0}
    for wrong, message in (([1, 2], "shape"), ([1, np.nan, 2], "finite"), ([1, x, 2], "numbers")):
        with pytest.raises(kg.ModelError, match=message):
            table.assign(wrong)
    with pytest.raises(kg.ModelError, match="parameters=True"):
        kg.Table([0, 1], [0, 1]).assign([1, 2])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1, 1], [0, 1, 2]), {}, r"kg.Table 'table' has x\[1\] = 1.0 and x\[2\] = 1.0: x must increase strictly"),
        (([0, 2, 1], [0, 1], np.zeros((3, 2))), {}, r"x\[1\] = 2.0 and x\[2\] = 1.0"),
        (([0, 1], [1, 0], np.zeros((2, 2))), {}, r"y\[0\] = 1.0 and y\[1\] = 0.0"),
        (([0, np.nan], [0, 1]), {}, r"x\[1\] that is not finite"),
        (([0, 1, 2], [0, np.inf, 1]), {}, r"y\[1\] that is not finite"),
        (([0, 1], [0, 1], [[0, 1], [np.nan, 1]]), {}, r"z\[1, 0\] that is not finite"),
        (([0], [0]), {}, "at least 2 points"),
        (([[0, 1]], [0, 1]), {}, "expected one dimension"),
        (([0, 1], [0, 1, 2]), {}, r"y of shape \(3,\): expected \(2,\)"),
        (([0, 1], [0, 1, 2], np.zeros((3, 2))), {}, r"z of shape \(3, 2\): expected \(2, 3\)"),
        ((["a", 1], [0, 1]), {}, "x must be an array of numbers"),
        (([0, 1], ["a", 1]), {}, "y must be an array of numbers or SymPy expressions"),
        (([0, 1], [sm.oo, x]), {}, "expected finite numbers or expressions"),
        (([-1e308, 1e308], [0, 1]), {}, "must increase strictly"),
        (([0, 1], [0, 1]), {"kind": "quintic"}, "expected 'cubic', 'natural', 'monotone' or 'linear'"),
        (([0, 1], [0, 1], np.zeros((2, 2))), {"kind": "monotone"}, "expected 'cubic', 'natural' or 'linear'"),
        (([0, 1], [0, 1]), {"extrapolate": "no"}, "expected 'error', 'constant' or 'polynomial'"),
        (([0, 1], [0, 1]), {"units": "m"}, "expected 2 units, of the argument and of the value"),
        (([0, 1], [0, 1]), {"name": ""}, "expected text that is not empty"),
        (([0, 1], [x, 1]), {"parameters": True}, "values that are expressions"),
    ],
)
def test_wrong_points(arguments: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(kg.ModelError, match=message):
        kg.Table(*arguments, **options)
    with pytest.raises(TypeError, match="has 2 argument"):
        kg.Table([0, 1], [0, 1], np.zeros((2, 2)))(x)


def test_tables_of_files(tmp_path: Path) -> None:
    """A curve and a grid whose rows come in another order; messages name file, line and column."""
    path = tmp_path / "cam.csv"
    lines = [f"{a},{b},{a * 10 + b}" for a in (2.0, 0.0, 1.0) for b in (5.0, 4.0)]
    path.write_text("angle, radius, lift\n" + "\n".join(lines), encoding="utf-8")
    surface = kg.Table.from_csv(path, "angle", "radius", "lift", kind="linear", units=("rad", "m", "m"))
    assert surface.name == "lift"
    assert surface.python(1.5, 4.25) == pytest.approx(19.25)
    frame = {"a": [0.0, 1.0, 3.0], "b": np.array([1.0, 2.0, 5.0])}
    assert kg.Table.from_frame(frame, "a", "b", kind="linear", name="named").python(2.0) == pytest.approx(3.5)
    with pytest.raises(kg.ModelError, match="no full grid"):
        kg.Table.from_frame({"a": [0, 1, 1], "b": [0, 0, 1], "c": [0, 1, 2]}, "a", "b", "c")
    with pytest.raises(kg.ModelError, match="KeyError"):
        kg.Table.from_frame(frame, "a", "missing")
    with pytest.raises(kg.ModelError, match=r"cam.csv has no column 'force'; its columns are"):
        kg.Table.from_csv(path, "angle", "force")
    path.write_text("a;b\n0;1\n1;two\n", encoding="utf-8")
    with pytest.raises(kg.ModelError, match=r"cam.csv, line 3, column 'b': 'two' is no number"):
        kg.Table.from_csv(path, "a", "b", delimiter=";")
