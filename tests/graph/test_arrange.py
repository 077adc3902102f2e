"""Sums and products in another order: the same values, fewer operations, and less waiting."""

from __future__ import annotations

from operator import add, mul, sub

import pytest
from random_sums import check_rearranged

from kanegen.graph import Graph, Node, arranged, count_operations


@pytest.fixture
def graph() -> Graph:
    return Graph()


def inputs(graph: Graph, name: str, count: int) -> list[Node]:
    return [graph.input(name, k) for k in range(count)]


@pytest.mark.parametrize("seed", range(40))
def test_values_stay_and_no_operation_is_repeated(seed: int) -> None:
    """Sums of products with shared operands, powers, signs and constants."""
    check_rearranged(
        arranged, seed, (add, sub, mul, mul, lambda a, b: a * b - b, lambda a, b: -a * b, lambda a, b: 3 * a + b)
    )


def test_the_factor_of_most_terms_is_taken_first(graph: Graph) -> None:
    v, w, x, y, z = inputs(graph, "q", 5)
    (found,) = arranged([x * (y * z) + y * (x * w) - x * v])
    assert found is x * (y * (z + w) - v)


def test_coefficients_are_computed_before_the_run(graph: Graph) -> None:
    """l_1 s_1 l_2 s_2 + l_1 c_1 l_2 c_2, from the product of two velocities: five products become two."""
    (s1, c1, s2, c2), (l1, l2) = inputs(graph, "q", 4), inputs(graph, "p", 2)
    (found,) = arranged([(l1 * s1) * (l2 * s2) + (l1 * c1) * (l2 * c2)])
    assert found is (l1 * l2) * (s1 * s2 + c1 * c2)
    assert count_operations([found]) == 4


def test_a_sum_inside_can_cancel(graph: Graph) -> None:
    (x, y, z), (m, n) = inputs(graph, "q", 3), inputs(graph, "p", 2)
    (found,) = arranged([x * (m * y) - (x * (n * z) + m * (x * y))])
    assert found is -(x * (n * z))


def test_products_that_are_used_elsewhere_stay(graph: Graph) -> None:
    x, y, z = inputs(graph, "q", 3)
    first, second = x * y, x * z
    assert arranged([first + second, first, second]) == [first + second, first, second]
    assert arranged([x + x * y]) == [x + x * y]


def test_a_factor_stays_inside_if_the_sum_would_be_known_later(graph: Graph) -> None:
    """x*y and x*w are known when the exponentials are; a product of x with the sum would wait for the sum."""
    x, y, z, w, v = inputs(graph, "q", 5)
    early, late = (x * y) * z + (x * w) * v, (x * y) * graph.apply("exp", z) + (x * w) * graph.apply("exp", v)
    assert arranged([early]) == [x * (y * z + w * v)]
    assert arranged([late]) == [late]


def test_an_early_numerator_does_not_wait_for_an_inverse(graph: Graph) -> None:
    u, x = inputs(graph, "q", 2)
    sine, late = graph.apply("sin", x), graph.apply("exp", u)
    assert arranged([u * (1 / sine)]) == [u / sine]
    assert arranged([late * (1 / sine)]) == [late * (1 / sine)]


def test_small_savings_change_nothing(graph: Graph) -> None:
    """The order of operations, and with it the last bits, changes for at least 3 % fewer operations only."""
    x, y, z = inputs(graph, "q", 3)
    long = x
    for _ in range(50):
        long = (long + y).graph.apply("sin", long + y)
    roots = [x * y + x * z, long]
    assert arranged(roots) == roots
    assert arranged(roots[:1]) == [x * (y + z)]
