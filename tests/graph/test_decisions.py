"""Decisions "zero", "constant", "equal": exact where residues decide, in any units where values do."""

from __future__ import annotations

import random

import pytest

from kanegen.graph import Graph, Node
from kanegen.graph.decisions import Decisions

graph = Graph()
x, y, z = (graph.input("q", i) for i in range(3))
generator = random.Random(5)
decisions = Decisions([{"q": [generator.uniform(0.2, 1.1) for _ in range(3)]} for _ in range(3)], everywhere=True)


def sine(a: Node) -> Node:
    return graph.apply("sin", a)


def cosine(a: Node) -> Node:
    return graph.apply("cos", a)


def root(a: Node) -> Node:
    return graph.apply("sqrt", a)


ZERO = {
    "Pythagoras": sine(x) * sine(x) + cosine(x) * cosine(x) - graph.one,
    "sum of angles": sine(x + y) - sine(x) * cosine(y) - cosine(x) * sine(y),
    "root": root(x * x * y) - x * root(y),
    "rounded constants": 0.3 * (0.1 * x + 0.2 * y) - 0.03 * x - 0.06 * y,
    "ten digits": 0.8660254038 * x - root(0.75 * x * x),
}
NOT_ZERO = {
    "sum": x * y - y * z,
    "difference of sines": sine(x) - sine(y),
    "root": root(x) - x,
    "rounded factor": 0.1 * x * y,
    "eight digits": 0.86602540 * x - root(0.75 * x * x),
    "exponential": graph.apply("exp", x) - graph.one - x,
}


@pytest.mark.parametrize("factor", [1, 1e-12, 1e12, 1e-150])
@pytest.mark.parametrize("name", ZERO)
def test_zero_in_any_units(name, factor):
    node = graph.const(factor) * ZERO[name]
    assert decisions.are_zero([node])
    assert decisions.are_equal([node, x], [graph.zero, x])


@pytest.mark.parametrize("factor", [1, 1e-12, 1e12, 1e-150])
@pytest.mark.parametrize("name", NOT_ZERO)
def test_not_zero_in_any_units(name, factor):
    node = graph.const(factor) * NOT_ZERO[name]
    assert not decisions.are_zero([node])
    assert not decisions.are_equal([node], [graph.zero])


def test_a_small_difference_of_exact_terms():
    """Where residues decide, no term is too small."""
    small = graph.one / graph.const(10**30)
    assert not decisions.are_zero([x + small * y - x])
    assert not decisions.are_equal([x + small * y], [x])


@pytest.mark.parametrize("factor", [1, 1e-9, 1e9])
def test_affine_beside_a_small_square(factor):
    """The slope of V + 2e-11 V**2 changes by 4e-11 of its size."""
    assert decisions.are_constant([graph.const(factor) * y], [x])
    assert not decisions.are_constant([graph.const(factor) * (1.0 + 4e-11 * x)], [x])


def test_values_without_a_number_count_as_equal_and_not_as_zero():
    undefined = root(-x)
    assert decisions.are_equal([undefined], [y])
    assert not decisions.are_zero([undefined])
