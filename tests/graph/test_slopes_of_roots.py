"""Derivatives where a root or power has no finite slope, but the expression around it has one; branches not taken."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sm
from sympy.physics import mechanics as me
from tolerances import FINE_INTEGRATION, LINEAR_SOLVE

import kanegen as kg
from kanegen.graph import Graph, Lowering, Tangent, count_operations, evaluate, gradient, mpmath_context, numpy_context

q, u, n = sm.symbols("q u n", real=True)
DIGITS = 120
STEP = sm.Rational(1, 10**40)
CONTEXTS = {"float": None, "numpy": numpy_context(), "mpmath": mpmath_context(DIGITS)}
NUMBERS = {"float": float, "numpy": np.float64, "mpmath": mpmath.mpf}
HALF = sm.Rational(1, 2)

# Expression, and states (q, u, n) at which it is differentiable.
CASES: dict[str, tuple[Any, list[tuple[Any, Any, Any]]]] = {
    "Hertz": (sm.Max(-q, 0) ** (3 * HALF), [(0, 0, 0), (HALF, 0, 0), (-HALF, 0, 0)]),
    "product": (sm.Max(q, 0) * sm.sqrt(3 * sm.Max(q, 0)), [(0, 0, 0), (HALF, 0, 0), (-1, 0, 0)]),
    "norm": (sm.sqrt(q**2 + u**2) * u, [(0, 0, 0), (HALF, -2, 0), (0, 1, 0)]),
    "turbulent": (q * sm.sqrt(sm.Abs(q)), [(0, 0, 0), (-HALF, 0, 0)]),
    "five halves": (sm.Max(q, 0) ** (5 * HALF), [(0, 0, 0), (-1, 0, 0), (2, 0, 0)]),
    "third": (q * sm.sign(q) * sm.Abs(q) ** sm.Rational(1, 3), [(0, 0, 0), (-HALF, 0, 0)]),
    "root off": (sm.Max(q, 0) ** sm.Rational(2, 3) + sm.sqrt(sm.Max(q, 0)), [(-1, 0, 0), (HALF, 0, 0)]),
    "exponent": (sm.Max(q, 0) ** n, [(0, 0, 2), (0, 0, 3 * HALF), (-1, 0, HALF), (-1, 0, 1), (HALF, 0, 1)]),
    "slope": (sm.Abs(q) ** n * u, [(0, 0, HALF), (0, 0, 2), (0, 1, 2)]),
    "saturated": (sm.asin(sm.Max(-1, sm.Min(1, q))), [(2, 0, 0), (-2, 0, 0), (HALF, 0, 0)]),
    "Piecewise": (sm.Piecewise((sm.sqrt(q), q > 1), (q**2, True)) * u, [(0, 1, 0), (-1, 1, 0), (2, 1, 0)]),
    "logarithm": (sm.Piecewise((q * sm.log(q), q > 0), (0, True)) * u, [(-1, 1, 0), (2, 1, 0)]),
    "limited": (sm.Min(sm.Max(1, 1 / q), 2) + sm.Max(2, sm.sqrt(q)), [(HALF / 2, 0, 0)]),
    "nested": (
        sm.Piecewise((sm.Piecewise((sm.log(q), q > 2), (sm.sqrt(q), True)), q > 0), (sm.Max(q, u), True)),
        [(-1, 2, 0), (-2, -3, 0), (1, 0, 0), (3, 0, 0)],
    ),
}
EVERY = [(name, at) for name, (_, states) in CASES.items() for at in states]


def nodes_of(expression: Any) -> tuple[Graph, Any, list[Any]]:
    graph = Graph()
    inputs = [graph.input("q", k) for k in range(3)]
    return graph, Lowering(graph, dict(zip((q, u, n), inputs, strict=True))).lower(expression), inputs


def difference(expression: Any, at: tuple[Any, ...], *along: int) -> Any:
    """A central difference quotient by SymPy in 120 digits, in one argument or in two of them."""
    if not along:
        return expression.xreplace(dict(zip((q, u, n), map(sm.sympify, at), strict=True))).evalf(DIGITS)
    moved = [[x + s * STEP if k == along[0] else x for k, x in enumerate(at)] for s in (1, -1)]
    above, below = (difference(expression, tuple(x), *along[1:]) for x in moved)
    return (above - below) / (2 * STEP)


@pytest.mark.parametrize(("name", "at"), EVERY)
def test_slopes_forward_and_reverse_in_every_arithmetic(name: str, at: tuple[Any, ...]) -> None:
    expression = CASES[name][0]
    graph, node, inputs = nodes_of(expression)
    reverse = gradient([node], [graph.one], inputs)
    forward = [Tangent(graph, {x: graph.one})(node) for x in inputs]
    moving = [k for k in range(3) if (q, u, n)[k] in expression.free_symbols]
    exact = [float(difference(expression, at, k)) for k in moving]
    for context in CONTEXTS:
        values = {"q": [NUMBERS[context](sm.Float(x, 30)) for x in at]}
        found = evaluate(forward + reverse, values, CONTEXTS[context])
        for side in (found[:3], found[3:]):
            np.testing.assert_allclose([float(side[k]) for k in moving], exact, atol=1e-14, rtol=1e-14)


SECOND = {
    "five halves": [(0, 0, 0), (-1, 0, 0), (2, 0, 0)],
    "exponent": [(0, 0, 3), (-1, 0, HALF), (-1, 0, 1), (HALF, 0, 3 * HALF)],
    "norm": [(HALF, -2, 0)],
    "Hertz": [(HALF, 0, 0), (-HALF, 0, 0)],
    "saturated": [(2, 0, 0), (HALF, 0, 0)],
    "logarithm": [(-1, 1, 0), (2, 1, 0)],
}


@pytest.mark.parametrize(("name", "at"), [(name, at) for name, states in SECOND.items() for at in states])
def test_second_derivatives(name: str, at: tuple[Any, ...]) -> None:
    graph, node, inputs = nodes_of(CASES[name][0])
    for first in range(2):
        slope = Tangent(graph, {inputs[first]: graph.one})(node)
        reverse = gradient([slope], [graph.one], inputs)
        for second in range(2):
            twice = Tangent(graph, {inputs[second]: graph.one})(slope)
            exact = float(difference(CASES[name][0], at, first, second))
            found = evaluate([twice, reverse[second]], {"q": [float(x) for x in at]})
            assert found == pytest.approx([exact, exact], rel=1e-13, abs=1e-13)


def test_integer_values_of_a_symbolic_exponent_keep_their_slope_at_zero() -> None:
    """x**n has the slope 1 for n = 1 and the second derivative 2 for n = 2, although pow has none for n < 1."""
    graph, node, inputs = nodes_of(q**n)
    slope = Tangent(graph, {inputs[0]: graph.one})
    assert evaluate([slope(node)], {"q": [0.0, 0.0, 1.0]}) == [1.0]
    assert evaluate([slope(slope(node))], {"q": [0.0, 0.0, 2.0]}) == [2.0]
    assert evaluate([slope(slope(node))], {"q": [0.0, 0.0, 1.0]}) == [0.0]


def test_the_slope_of_a_root_at_zero_is_taken_as_zero() -> None:
    graph, node, inputs = nodes_of(sm.sqrt(q))
    slope = Tangent(graph, {inputs[0]: graph.one})(node)
    assert evaluate([slope], {"q": [0.0, 0.0, 0.0]}) == [0.0]
    assert evaluate([slope], {"q": [4.0, 0.0, 0.0]}) == [0.25]
    assert np.isnan(evaluate([slope], {"q": [-1.0, 0.0, 0.0]})[0])


def test_smooth_models_pay_nothing() -> None:
    """The slope of a root takes 2 operations, and a power 3/2 no division; select appears under branches only."""
    graph, node, inputs = nodes_of(sm.sqrt(q**2 + u**2))
    slopes = gradient([node], [graph.one], inputs[:2])
    # Root and its argument 4, 1/2 of the reciprocal 2, a product for each slope with 2 q and 2 u 4.
    assert count_operations(slopes) == 10
    graph, node, inputs = nodes_of((q**2 + u**2) ** (3 * HALF))
    slopes = gradient([node], [graph.one], inputs[:2])
    assert count_operations(slopes) == 9
    assert not {"div", "reciprocal", "select"} & {x.op for x in graph.nodes}


# --- compiled ------------------------------------------------------------------------------------------------------

FORCES = {
    "Hertz": lambda x, v, k, e: k * sm.Max(-x, 0) ** (3 * HALF),
    "product": lambda x, v, k, e: -sm.Max(x, 0) * sm.sqrt(k * sm.Max(x, 0)),
    "norm": lambda x, v, k, e: -sm.sqrt(x**2 + v**2) * v,
    "turbulent": lambda x, v, k, e: -v * sm.sqrt(sm.Abs(v)),
    "exponent": lambda x, v, k, e: k * sm.Max(x, 0) ** e,
    "branch": lambda x, v, k, e: sm.Piecewise((sm.log(x), x > 1), (-x, True)),
}


@cache
def beads() -> kg.Solver:
    """Beads on parallel wires, each under a force of its own; the mass of each is 2."""
    time = me.dynamicsymbols._t
    x, v = me.dynamicsymbols(f"x:{len(FORCES)}"), me.dynamicsymbols(f"v:{len(FORCES)}")
    k, e, m = sm.symbols("k e m")
    frame, origin = me.ReferenceFrame("N"), me.Point("O")
    origin.set_vel(frame, 0)
    bodies, loads = [], []
    for i, force in enumerate(FORCES.values()):
        point = origin.locatenew(f"P{i}", x[i] * frame.x)
        point.set_vel(frame, v[i] * frame.x)
        bodies.append(me.Particle(f"bead{i}", point, m))
        loads.append((point, force(x[i], v[i], k, e) * frame.x))
    model = kg.Model(
        name="beads_under_roots",
        frame=frame,
        coordinates=x,
        speeds=v,
        kinematics=[speed - place.diff(time) for speed, place in zip(v, x, strict=True)],
        bodies=bodies,
        loads=loads,
        parameters={k: 3.0, e: 1.5, m: 2.0},
    )
    return kg.build(model, functions=("rhs", "residuals", "jacobians"))


@pytest.mark.parametrize("place", [0.0, 0.7, -0.7])
@pytest.mark.parametrize("speed", [0.0, -0.4])
def test_compiled_jacobians(place: float, speed: float) -> None:
    count = len(FORCES)
    found = beads().jacobian(0.0, [place] * count, [speed] * count)
    x, v, k, e = q, u, sm.Integer(3), 3 * HALF
    at = (sm.nsimplify(place), sm.nsimplify(speed), 0)
    for i, force in enumerate(FORCES.values()):
        exact = [float(difference(force(x, v, k, e), at, j)) / 2 for j in (0, 1)]
        row = np.array([found.q[count + i, i], found.u[count + i, i]])
        np.testing.assert_allclose(row, exact, rtol=LINEAR_SOLVE, atol=LINEAR_SOLVE)
    order = list(beads().parameters)
    power = found.p[count + list(FORCES).index("exponent")]
    slope = float(3 * max(place, 0) ** 1.5 * np.log(max(place, 1e-300)) / 2)
    assert power[order.index("e")] == pytest.approx(slope, rel=LINEAR_SOLVE, abs=LINEAR_SOLVE)
    assert np.isfinite(found.p).all()


def test_the_stiff_method_runs_through_a_hertz_contact() -> None:
    """From rest above the wall, where the Jacobian is zero, through the contact and back."""
    count = len(FORCES)
    start, speeds = np.zeros(count), np.zeros(count)
    start[0], speeds[0] = 0.1, -1.0
    tolerances = {"rtol": 1e-9, "atol": 1e-9}
    stiff = beads().integrate((0.0, 3.0), start, speeds, method="rodas", **tolerances)
    exact = beads().integrate((0.0, 3.0), start, speeds, method="dop853", **tolerances)
    np.testing.assert_allclose(stiff.q[-1], exact.q[-1], atol=FINE_INTEGRATION)
    assert exact.q[:, 0].min() < -0.5
    assert exact.u[-1, 0] == pytest.approx(1.0, abs=FINE_INTEGRATION)
