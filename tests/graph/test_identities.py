"""Identities modulo a prime: equal values become one node, and no value ever changes."""

from __future__ import annotations

import mpmath
import pytest
from graph_trees import DIGITS, N_P, N_Q, in_graph, in_mpmath, is_well_conditioned, numbers, trees, value
from hypothesis import assume, given
from tolerances import GRAPH_EXACT, GRAPH_FOLDED, GRAPH_ILL_CONDITIONED

from kanegen.graph import Graph, Identities, Node, evaluate, mpmath_context, reachable


@pytest.fixture
def graph() -> Graph:
    return Graph()


def canonical(node: Node) -> Node:
    return Identities(node.graph).canonical([node])[0]


def trig(graph: Graph, index: int) -> tuple[Node, Node]:
    angle = graph.input("q", index)
    return graph.apply("sin", angle), graph.apply("cos", angle)


@given(trees(smooth=False), numbers(N_Q), numbers(N_P))
def test_canonical_nodes_keep_the_value(tree, q, p):
    assume(is_well_conditioned(tree, q, p, GRAPH_ILL_CONDITIONED))
    node = canonical(in_graph(Graph(), tree))
    with mpmath.workdps(DIGITS):
        inputs = {"q": in_mpmath(q), "p": in_mpmath(p)}
        expected = value(tree, inputs["q"], inputs["p"])
        (found,) = evaluate([node], inputs, mpmath_context(DIGITS))
        folded = any(isinstance(n.payload, float) for n in reachable([node]))
        assert abs(found - expected) <= (GRAPH_FOLDED if folded else GRAPH_EXACT) * max(1, abs(expected))


def test_products_of_direction_cosines_cancel(graph: Graph) -> None:
    (s, c), (v, w) = trig(graph, 0), trig(graph, 1)
    assert canonical((s * v) * (s * v) + (s * w) * (s * w) + c * c) is graph.one
    assert canonical((s * v) * (c * w) - (c * v) * (s * w)) is graph.zero


def test_same_value_in_another_shape_is_the_same_node(graph: Graph) -> None:
    x, y, z = (graph.input("q", i) for i in range(3))
    identities = Identities(graph)
    first, second, opposite = identities.canonical([x * (y + z), x * y + x * z, -(z * x) - y * x])
    assert second is first
    assert opposite is graph.neg(first)


def test_what_depends_on_parameters_alone_is_written_with_parameters_alone(graph: Graph) -> None:
    s, c = trig(graph, 0)
    mass, length, inertia = (graph.input("p", i) for i in range(3))
    moving = inertia + (mass * (length * s)) * (length * s) + (mass * (length * c)) * (length * c)
    assert not moving.constant
    settled = canonical(moving)
    assert settled.constant
    state = {"p": [1.5, 0.7, 0.2], "q": [0.3]}
    assert evaluate([settled], state)[0] == pytest.approx(evaluate([moving], state)[0], rel=1e-15)


def test_values_that_differ_are_kept_apart(graph: Graph) -> None:
    x = graph.input("q", 0)
    tiny = graph.const(1e-300)
    assert canonical(x + tiny) is not x
    s, c = trig(graph, 0)
    other_s, _ = trig(graph, 1)
    assert canonical(other_s * other_s + c * c) is not graph.one
    assert canonical(s * s - c * c) is not graph.zero


def test_functions_other_than_sine_and_cosine_are_opaque_but_never_confused(graph: Graph) -> None:
    x, y = graph.input("q", 0), graph.input("q", 1)
    identities = Identities(graph)
    a, b = identities.canonical([graph.apply("exp", x + y - y), graph.apply("exp", x)])
    assert a is b
    assert identities.canonical([graph.apply("exp", y)])[0] is not b
    assert identities.canonical([graph.apply("atan2", x, y)])[0] is not graph.apply("atan2", y, x)


def test_sines_of_opposite_angles(graph: Graph) -> None:
    x, y = graph.input("q", 0), graph.input("q", 1)
    total = graph.apply("sin", x + y - x) + graph.apply("sin", -y)
    assert canonical(total) is graph.zero


def test_division_by_what_is_identically_zero_is_left_for_run_time(graph: Graph) -> None:
    x, y, z = (graph.input("q", i) for i in range(3))
    denominator = x * (y + z) - (x * y + x * z)
    assert canonical(denominator) is graph.zero
    undefined = canonical(y / denominator)
    assert undefined.op == "div"


def test_long_chains_of_parameters_need_no_deep_recursion(graph: Graph) -> None:
    """The slopes of a spline through 400 parameters are sums in sums of the parameters before."""
    x = y = graph.input("p", 0)
    for k in range(1, 3000):
        x, y = x * 0.5 + graph.input("p", k), y * 0.5 + graph.input("p", k)
    factor = graph.input("q", 0)
    assert canonical(factor * (x + 1) - factor * y - factor) is graph.zero
    assert canonical(graph.apply("sin", x) * factor) is not graph.zero
