"""Derivatives: forward against reverse mode, against SymPy and the complex step, and on the active branch."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy
from graph_trees import (
    DIGITS,
    N_P,
    N_Q,
    in_graph,
    in_mpmath,
    in_sympy,
    is_well_conditioned,
    numbers,
    p_symbols,
    q_symbols,
    trees,
)
from hypothesis import assume, given
from messages import raises
from tolerances import GRAPH_FOLDED, GRAPH_ILL_CONDITIONED

from kanegen.errors import DerivationError
from kanegen.graph import Function, Graph, Spline, Tangent, evaluate, gradient, mpmath_context, numpy_context


def jacobian_forward(graph, nodes):
    tangents = [Tangent(graph, {graph.input("q", i): graph.one}) for i in range(N_Q)]
    return [[tangent(node) for tangent in tangents] for node in nodes]


def close(a, b, tolerance=GRAPH_FOLDED):
    return abs(a - b) <= tolerance * max(1, abs(a), abs(b))


@given(trees(), trees(), numbers(N_Q), numbers(N_P))
def test_forward_mode_is_reverse_mode(first, second, q, p):
    assume(all(is_well_conditioned(tree, q, p, GRAPH_ILL_CONDITIONED) for tree in (first, second)))
    graph = Graph()
    nodes = [in_graph(graph, first), in_graph(graph, second)]
    weights = [graph.input("w", 0), graph.input("w", 1)]
    try:
        forward = jacobian_forward(graph, nodes)
        reverse = gradient(nodes, weights, [graph.input("q", i) for i in range(N_Q)])
    except ZeroDivisionError:
        assume(False)
    weighted = [weights[0] * a + weights[1] * b for a, b in zip(*forward, strict=True)]
    with mpmath.workdps(DIGITS):
        values = {"q": in_mpmath(q), "p": in_mpmath(p), "w": [mpmath.mpf(3) / 7, mpmath.mpf(-5) / 3]}
        found = evaluate(weighted + reverse, values, mpmath_context(DIGITS))
        assume(all(mpmath.isfinite(x) and abs(x) < 1e9 for x in found))
        assert all(close(a, b) for a, b in zip(found[:N_Q], found[N_Q:], strict=True))


@given(trees(), numbers(N_Q), numbers(N_P))
def test_derivative_is_that_of_sympy(tree, q, p):
    assume(is_well_conditioned(tree, q, p, GRAPH_ILL_CONDITIONED))
    graph = Graph()
    expression = in_sympy(tree)
    symbols = dict(zip((*q_symbols, *p_symbols), (*q, *p), strict=True))
    point = {s: sympy.Rational(v.numerator, v.denominator) for s, v in symbols.items()}
    with mpmath.workdps(DIGITS):
        values = {"q": in_mpmath(q), "p": in_mpmath(p)}
        (row,) = jacobian_forward(graph, [in_graph(graph, tree)])
        found = evaluate(row, values, mpmath_context(DIGITS))
        for symbol, ours in zip(q_symbols, found, strict=True):
            theirs = sympy.diff(expression, symbol).xreplace(point).evalf(30)
            assume(theirs.is_Float or theirs.is_Integer)
            assume(abs(theirs) < 1e9)
            assert close(ours, mpmath.mpf(theirs))


@given(trees(), numbers(N_Q), numbers(N_P))
def test_derivative_is_the_complex_step(tree, q, p):
    assume(is_well_conditioned(tree, q, p, GRAPH_ILL_CONDITIONED))
    graph = Graph()
    node = in_graph(graph, tree)
    (row,) = jacobian_forward(graph, [node])
    context = numpy_context()
    exact = evaluate(row, {"q": [float(x) for x in q], "p": [float(x) for x in p]}, context)
    assume(all(np.isfinite(x) and abs(x) < 1e6 for x in exact))
    for i in range(N_Q):
        stepped = [complex(x) for x in q]
        stepped[i] += 1e-30j
        (moved,) = evaluate([node], {"q": stepped, "p": [float(x) for x in p]}, context)
        assert close(np.imag(moved) / 1e-30, exact[i])


ONE_ARGUMENT = {
    "asin": 0.3, "acos": -0.4, "acosh": 1.7, "atanh": 0.6, "cbrt": -0.8, "erf": 0.5, "abs": -2.0,
    "floor": 1.3, "ceil": 1.3, "tan": 0.9, "log": 2.5,
}  # fmt: skip


@pytest.mark.parametrize("op", sorted(ONE_ARGUMENT))
def test_every_function_against_the_complex_step(op):
    graph = Graph()
    x = graph.input("q", 0)
    node = graph.apply(op, x * x * x + x)
    at = ONE_ARGUMENT[op]
    root = float(mpmath.findroot(lambda z: z**3 + z - at, at))
    (exact,) = evaluate([Tangent(graph, {x: graph.one})(node)], {"q": [root]})
    (moved,) = evaluate([node], {"q": [root + 1e-30j]}, numpy_context())
    assert exact == pytest.approx(np.imag(moved) / 1e-30, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("op", ["atan2", "pow", "min", "max"])
@pytest.mark.parametrize("at", [(0.7, 1.3), (1.9, 0.4)])
def test_functions_of_two_arguments_against_the_complex_step(op, at):
    graph = Graph()
    xy = [graph.input("q", 0), graph.input("q", 1)]
    node = graph.apply(op, *xy)
    reverse = gradient([node], [graph.one], xy)
    for i, x in enumerate(xy):
        forward = Tangent(graph, {x: graph.one})(node)
        exact = evaluate([forward, reverse[i]], {"q": at})
        (moved,) = evaluate([node], {"q": [a + 1e-30j * (k == i) for k, a in enumerate(at)]}, numpy_context())
        assert exact == pytest.approx([np.imag(moved) / 1e-30] * 2, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize(("x", "slope"), [(-1.5, -3.0), (0.5, 2.0)])
def test_select_has_the_derivative_of_the_active_branch(x, slope):
    graph = Graph()
    node = graph.input("q", 0)
    chosen = graph.select(graph.apply("lt", node, graph.zero), node * node, 2 * node)
    (reverse,) = gradient([chosen], [graph.one], [node])
    assert evaluate([Tangent(graph, {node: graph.one})(chosen), reverse], {"q": [x]}) == [slope, slope]


def test_seeds_may_be_any_nodes():
    graph = Graph()
    q, u = graph.input("q", 0), graph.input("u", 0)
    rate = Tangent(graph, {q: u * graph.apply("cos", q)})
    assert rate(graph.apply("sin", q)) is graph.apply("cos", q) * (u * graph.apply("cos", q))
    assert rate(u) is graph.zero


def test_functions_of_the_user_are_asked_only_for_what_moves():
    square = Function("square", 1, python=lambda x: x * x, c="x*x", derivatives=(lambda x: 2 * x,))
    half = Function("half", 2, python=lambda a, b: a * b / 2, c="x1*x2/2")
    graph = Graph()
    q, p = graph.input("q", 0), graph.input("p", 0)
    derivative = Tangent(graph, {q: graph.one})
    assert derivative(graph.call(square, q)) is 2 * q
    assert derivative(graph.call(half, p, p)) is graph.zero
    with raises(DerivationError, "half", "x1", "derivatives="):
        derivative(graph.call(half, q, p))
    partial = Function("partial", 2, lambda a, b: a * b, "x1*x2", (lambda a, b: b, half))
    assert derivative(graph.call(partial, q, p)) is p


def test_spline_derivative_is_a_spline():
    spline = Spline([0.0, 1.0, 2.0, 4.0], [1.0, 0.0, 2.0, 1.0])
    graph = Graph()
    q = graph.input("q", 0)
    (slope,) = gradient([graph.call(spline, q)], [graph.one], [q])
    (found,) = evaluate([slope], {"q": [1.3]})
    assert found == pytest.approx((spline.python(1.3 + 1e-6) - spline.python(1.3 - 1e-6)) / 2e-6, rel=1e-8)


def test_gradient_of_no_outputs_is_empty():
    assert gradient([], [], []) == []
