"""The three arithmetics of the interpreter agree, broadcast, and follow C where Python would raise."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from graph_trees import N_P, N_Q, in_graph, is_well_conditioned, numbers, trees
from hypothesis import assume, given
from messages import raises
from tolerances import GRAPH_FOLDED, GRAPH_ILL_CONDITIONED

from kanegen.graph import Graph, Spline, evaluate, mpmath_context, numpy_context
from kanegen.graph.nodes import BINARY, COMPARISONS, LOGICAL, UNARY


@given(trees(smooth=False), numbers(N_Q), numbers(N_P))
def test_floats_arrays_and_mpmath_agree(tree, q, p):
    assume(is_well_conditioned(tree, q, p, GRAPH_ILL_CONDITIONED))
    node = in_graph(Graph(), tree)
    values = {"q": [float(x) for x in q], "p": [float(x) for x in p]}
    (one,) = evaluate([node], values)
    (many,) = evaluate([node], {**values, "q": [np.full(3, x) for x in values["q"]]}, numpy_context())
    (precise,) = evaluate([node], {k: [mpmath.mpf(x) for x in v] for k, v in values.items()}, mpmath_context())
    assume(math.isfinite(one) and abs(one) < 1e6)
    assert np.broadcast_to(many, 3) == pytest.approx(np.full(3, one), rel=1e-12, abs=1e-12)
    assert float(precise) == pytest.approx(one, rel=GRAPH_FOLDED, abs=GRAPH_FOLDED)


@pytest.mark.parametrize("op", sorted(UNARY | BINARY | COMPARISONS | LOGICAL))
def test_every_operation_in_every_arithmetic(op):
    graph = Graph()
    arity = 1 if op in UNARY or op == "not" else 2
    at = [1.25 if op == "acosh" else 0.625, 0.5][:arity]
    node = graph.apply(op, *(graph.input("q", i) for i in range(arity)))
    values = [evaluate([node], {"q": at}, context)[0] for context in (None, numpy_context())]
    (precise,) = evaluate([node], {"q": [mpmath.mpf(x) for x in at]}, mpmath_context(30))
    (folded,) = evaluate([graph.apply(op, *(graph.const(x) for x in at))], {})
    assert [*map(float, values), folded] == pytest.approx([float(precise)] * 3, rel=1e-15)


def test_exact_constants_have_the_precision_of_the_context():
    graph = Graph()
    node = graph.const(Fraction(1, 3)) * graph.input("q", 0)
    (found,) = evaluate([node], {"q": [mpmath.mpf(1)]}, mpmath_context(60))
    with mpmath.workdps(60):
        assert abs(found - mpmath.mpf(1) / 3) < mpmath.mpf(10) ** -59


@pytest.mark.parametrize("context", [None, numpy_context(), mpmath_context()], ids=["float", "numpy", "mpmath"])
def test_undefined_values_are_those_of_c(context):
    graph = Graph()
    x, zero = graph.input("q", 0), graph.input("q", 1)
    number = float if context is None else np.float64 if context.number is float else mpmath.mpf
    roots = [graph.apply("sqrt", x), graph.apply("log", x), graph.apply("asin", 3 * x), x / zero]
    *undefined, infinite = evaluate(roots, {"q": [number(-1), number(0)]}, context)
    assert all(math.isnan(float(v)) for v in undefined)
    assert float(infinite) == -math.inf


def test_arrays_broadcast_over_leading_axes():
    graph = Graph()
    q, t = graph.input("q", 0), graph.input("t", 0)
    roots = [q * t, graph.select(graph.apply("lt", q, t), q, t), graph.call(Spline([0, 1, 2], [0, 1, 4]), q)]
    rows, column = np.linspace(0.1, 1.9, 4), np.array([[0.5], [1.5]])
    product, least, curve = evaluate(roots, {"q": [rows], "t": [column]}, numpy_context())
    np.testing.assert_array_equal(product, rows * column)
    np.testing.assert_array_equal(least, np.minimum(rows, column))
    assert curve.shape == (4,)


def test_missing_arrays_are_named():
    graph = Graph()
    with raises(KeyError, "r"):
        evaluate([graph.input("r", 0)], {"q": []})
