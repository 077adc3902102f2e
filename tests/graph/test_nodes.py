"""The graph: one node per value, folding, and rules of construction that never change a value."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from graph_trees import (
    DIGITS,
    N_P,
    N_Q,
    Undefined,
    in_graph,
    in_mpmath,
    is_well_conditioned,
    numbers,
    trees,
    value,
)
from hypothesis import assume, given
from messages import raises
from tolerances import GRAPH_EXACT, GRAPH_FOLDED, GRAPH_ILL_CONDITIONED

from kanegen.graph import Graph, Node, count_operations, evaluate, mpmath_context, reachable, substitute


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def xy(graph: Graph) -> tuple[Node, Node]:
    return graph.input("q", 0), graph.input("q", 1)


@given(trees(smooth=False), numbers(N_Q), numbers(N_P))
def test_rules_of_construction_keep_the_value(tree, q, p):
    assume(is_well_conditioned(tree, q, p, GRAPH_ILL_CONDITIONED))
    node = in_graph(Graph(), tree)
    with mpmath.workdps(DIGITS):
        inputs = {"q": in_mpmath(q), "p": in_mpmath(p)}
        expected = value(tree, inputs["q"], inputs["p"])
        (found,) = evaluate([node], inputs, mpmath_context(DIGITS))
        folded = any(isinstance(n.payload, float) for n in reachable([node]))
        tolerance = GRAPH_FOLDED if folded else GRAPH_EXACT
        assert abs(found - expected) <= tolerance * max(1, abs(expected))


@given(trees(smooth=False))
def test_operands_stand_before_results_and_nodes_are_unique(tree):
    graph = Graph()
    try:
        in_graph(graph, tree)
    except ZeroDivisionError:
        assume(False)
    assert [node.index for node in graph.nodes] == list(range(len(graph)))
    assert all(a.index < node.index for node in graph.nodes for a in node.args)
    keys = [(n.op, tuple(a.index for a in n.args), type(n.payload), n.payload) for n in graph.nodes]
    assert len(set(keys)) == len(keys)


@given(trees(smooth=False))
def test_same_tree_is_the_same_node(tree):
    graph = Graph()
    try:
        first = in_graph(graph, tree)
    except ZeroDivisionError:
        assume(False)
    size = len(graph)
    assert in_graph(graph, tree) is first
    assert len(graph) == size


@given(trees(smooth=False))
def test_constant_means_parameters_only(tree):
    graph = Graph()
    try:
        node = in_graph(graph, tree)
    except ZeroDivisionError:
        assume(False)
    arrays = {n.payload[0] for n in reachable([node]) if n.op == "input"}
    assert node.constant == (arrays <= {"p"})


@given(trees(smooth=False), trees(), numbers(N_Q), numbers(N_P))
def test_substitution_is_evaluation_at_the_replacement(tree, replacement, q, p):
    assume(is_well_conditioned(replacement, q, p, GRAPH_ILL_CONDITIONED))
    graph = Graph()
    with mpmath.workdps(DIGITS):
        inputs = in_mpmath(q), in_mpmath(p)
        moved = [value(replacement, *inputs), *inputs[0][1:]]
        try:
            expected = value(tree, moved, inputs[1])
            rough = value(tree, [float(x) for x in moved], [float(x) for x in p], math)
            (node,) = substitute([in_graph(graph, tree)], {graph.input("q", 0): in_graph(graph, replacement)})
        except (Undefined, ZeroDivisionError):
            assume(False)
        assume(abs(rough - expected) <= GRAPH_ILL_CONDITIONED * max(1, abs(expected)))
        (found,) = evaluate([node], {"q": inputs[0], "p": inputs[1]}, mpmath_context(DIGITS))
        assert abs(found - expected) <= GRAPH_FOLDED * max(1, abs(expected))


def test_commutative_operands_share_a_node(xy):
    x, y = xy
    assert x + y is y + x
    assert x * y is y * x
    assert x - y is not y - x


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda g, x, y: x + 0, lambda g, x, y: x),
        (lambda g, x, y: 0 * x, lambda g, x, y: g.zero),
        (lambda g, x, y: x * 1, lambda g, x, y: x),
        (lambda g, x, y: x - x, lambda g, x, y: g.zero),
        (lambda g, x, y: x / x, lambda g, x, y: g.one),
        (lambda g, x, y: x + x, lambda g, x, y: 2 * x),
        (lambda g, x, y: g.neg(g.neg(x)), lambda g, x, y: x),
        (lambda g, x, y: -x + y, lambda g, x, y: y - x),
        (lambda g, x, y: x + (-y), lambda g, x, y: x - y),
        (lambda g, x, y: x + (-1), lambda g, x, y: x - 1),
        (lambda g, x, y: x - (-1), lambda g, x, y: 1 + x),
        (lambda g, x, y: -1 - x, lambda g, x, y: -(x + 1)),
        (lambda g, x, y: -(x - y), lambda g, x, y: y - x),
        (lambda g, x, y: (-x) * (-y), lambda g, x, y: x * y),
        (lambda g, x, y: 2 * (3 * x), lambda g, x, y: 6 * x),
        (lambda g, x, y: 3 * x - 3 * x, lambda g, x, y: g.zero),
        (lambda g, x, y: x / 4, lambda g, x, y: g.const(Fraction(1, 4)) * x),
        (lambda g, x, y: g.apply("cos", -x), lambda g, x, y: g.apply("cos", x)),
        (lambda g, x, y: g.apply("sin", -x), lambda g, x, y: -g.apply("sin", x)),
        (lambda g, x, y: g.apply("sin", y - x), lambda g, x, y: -g.apply("sin", x - y)),
        (lambda g, x, y: g.apply("cos", y - x), lambda g, x, y: g.apply("cos", x - y)),
        (lambda g, x, y: g.apply("pow", x, g.const(2)), lambda g, x, y: x * x),
        (lambda g, x, y: g.apply("pow", x, g.const(0.5)), lambda g, x, y: g.apply("sqrt", x)),
        (lambda g, x, y: g.apply("min", x, x), lambda g, x, y: x),
        (lambda g, x, y: g.apply("le", x, x), lambda g, x, y: g.one),
        (lambda g, x, y: g.apply("lt", x, x), lambda g, x, y: g.zero),
        (lambda g, x, y: g.apply("abs", g.apply("abs", x)), lambda g, x, y: g.apply("abs", x)),
        (lambda g, x, y: g.select(g.apply("lt", x, y), x, x), lambda g, x, y: x),
        (lambda g, x, y: g.select(g.one, x, y), lambda g, x, y: x),
        (lambda g, x, y: g.apply("and", g.apply("lt", x, y), g.one), lambda g, x, y: g.apply("lt", x, y)),
        (lambda g, x, y: g.apply("or", g.apply("lt", x, y), g.one), lambda g, x, y: g.one),
    ],
)
def test_rule(graph, xy, build, expected):
    assert build(graph, *xy) is expected(graph, *xy)


def test_sine_and_cosine_squared_make_one(graph, xy):
    s, c = graph.apply("sin", xy[0]), graph.apply("cos", xy[0])
    assert s * s + c * c is graph.one
    assert c * c + s * s is graph.one


def test_composite_masses_are_gathered(graph, xy):
    m1, m2, x = graph.input("p", 0), graph.input("p", 1), xy[0]
    assert m1 * x + m2 * x is (m1 + m2) * x
    assert m1 * x - m2 * x is (m1 - m2) * x
    assert m1 * (m2 * x) is (m1 * m2) * x
    assert count_operations([m1 * (m2 * x) + m2 * x]) == 1


def test_exact_numbers_stay_exact(graph):
    third = graph.const(Fraction(1, 3))
    assert (third + third + third) is graph.one
    assert (graph.const(7) / 21) is third
    assert graph.apply("sqrt", graph.const(Fraction(9, 4))) is graph.const(Fraction(3, 2))
    assert graph.apply("floor", graph.const(Fraction(-1, 3))) is graph.const(-1)
    assert graph.const(2.0) is graph.const(2)
    assert graph.const(0.5) is not graph.const(Fraction(1, 2))


def test_floats_divide_with_one_rounding(graph, xy):
    assert (graph.const(0.3) / 0.7).payload == 0.3 / 0.7


def test_division_by_what_is_constant_is_multiplication(graph, xy):
    x, m = xy[0], graph.input("p", 0)
    assert x / 0.25 is 4 * x
    assert (x / m).op == "mul"
    assert count_operations([x / m]) == 1


def test_undefined_constants_are_left_for_run_time(graph):
    assert graph.apply("log", graph.const(-1)).op == "log"
    assert graph.apply("acos", graph.const(2)).op == "acos"
    with pytest.raises(ZeroDivisionError):
        graph.one / graph.zero


def test_unknown_operation_or_arity_is_refused(graph, xy):
    with raises(ValueError, "gamma"):
        graph.apply("gamma", xy[0])
    with raises(ValueError, "2"):
        graph.apply("sin", *xy)


def test_operation_count_leaves_out_parameters_and_counts_shared_once(graph, xy):
    x, y = xy
    m = graph.input("p", 0)
    shared = x * y
    roots = [graph.apply("sin", shared) + shared, m * m * shared]
    assert count_operations(roots) == 4
    assert count_operations(roots, excluding_constant=False) == 5
