"""Sizes of rounding errors: sums of absolute terms through sums, products and quotients."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import mul

import pytest

from kanegen.graph import Graph, Node
from kanegen.graph.interpret import evaluate
from kanegen.graph.sums import absolute_terms


def size(make: Callable[..., Node], *values: float) -> float:
    """The size of the expression that ``make`` forms of inputs, at their values."""
    graph = Graph()
    (found,) = absolute_terms([make(*(graph.input("q", k) for k in range(len(values))))])
    return float(evaluate([found], {"q": list(values)})[0])


def test_terms_of_sums_products_and_quotients() -> None:
    assert size(lambda a, b: a - b, 3.0, 2.0) == 5.0
    assert size(lambda a, b, c: (a - b) * c, 3.0, 2.0, -4.0) == 20.0
    assert size(lambda a, b, c: (a - b) / c, 3.0, 2.0, -4.0) == 1.25
    assert size(lambda a, b, c: c / (a - b), 3.0, 2.0, -4.0) == 20.0  # the denominator loses digits


def test_a_product_has_the_relative_error_of_its_worst_factor() -> None:
    """Twenty differences of the size 2001 and the value 1 have lost three digits, and so has their product."""

    def product(*x: Node) -> Node:
        return reduce(mul, (a - b for a, b in zip(x[::2], x[1::2], strict=True)))

    assert size(product, *(20 * [1001.0, 1000.0])) == pytest.approx(2001.0)
