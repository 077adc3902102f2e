"""Newton's method on graphs, in whatever units residuals and unknowns are."""

from __future__ import annotations

import pytest

from kanegen.graph import Graph, Newton


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("length", [1e-9, 1e-6, 1.0, 1e3])
def test_a_circle_of_any_size_is_met(factor, length):
    """Beside other rows a small one was lost, and below 1e-5 m every state satisfied a closure in square meters."""
    graph = Graph()
    x, y, z = (graph.input("q", i) for i in range(3))
    scale, square = graph.const(factor), graph.const(length**2)
    found = Newton([scale * (x * x + y * y - square), z - x], (x, y, z)).solve({"q": [0.7 * length, 0.3 * length, 0.1]})
    assert found is not None
    a, b, c = found["q"]
    assert a * a + b * b == pytest.approx(length**2, rel=1e-13)
    assert c == pytest.approx(a, rel=1e-13)


def test_an_unknown_that_vanishes_is_found():
    graph = Graph()
    x, y = graph.input("q", 0), graph.input("q", 1)
    found = Newton([3 * x, y - x - graph.one], (x, y)).solve({"q": [0.3, 0.7]})
    assert found is not None
    assert abs(found["q"][0]) < 1e-15
    assert found["q"][1] == pytest.approx(1.0, rel=1e-15)


def test_rounding_of_terms_that_are_no_unknowns_is_no_residual():
    """A bar of 1 m that swings by 1 nm."""
    graph = Graph()
    x, y = graph.input("q", 0), graph.input("q", 1)
    one = graph.one
    residual = (one + x) * (one + x) + (graph.const(0.1) + y) * (graph.const(0.1) + y) - graph.const(1.01)
    assert Newton([residual], (x, y)).solve({"q": [1e-9, -2e-9]}) is not None


def test_contradicting_rows_have_no_solution():
    graph = Graph()
    x = graph.input("q", 0)
    assert Newton([x * x + graph.const(1e-9)], (x,)).solve({"q": [0.4]}) is None
    assert Newton([x - graph.one, x - graph.const(2)], (x,)).solve({"q": [0.4]}) is None
