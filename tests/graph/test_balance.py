"""Sums from the terms that are known first: the same values, no more operations, less waiting."""

from __future__ import annotations

from operator import add, mul, sub

import pytest
from critical_path import waiting
from random_sums import check_rearranged

from kanegen.graph import Graph, balanced, reachable


@pytest.mark.parametrize("seed", range(20))
def test_values_stay_and_nothing_waits_longer(seed: int) -> None:
    """Sums in sums, with shared operands, products and constants."""
    check_rearranged(balanced, seed, (add, add, sub, sub, mul, lambda a, b: a - (b + a)))


def test_a_long_sum_waits_for_few_of_its_terms() -> None:
    graph = Graph()
    q = [graph.input("q", k) for k in range(5000)]
    total = q[0]
    for x in q[1:]:
        total = total - x * x
    (found,) = balanced([total])
    assert waiting(total) == 5000
    assert waiting(found) == 14  # the product, and 2^13 > 5000


@pytest.mark.parametrize("sign", [1, -1])
def test_the_last_term_is_added_last_and_constants_first(sign: int) -> None:
    graph = Graph()
    a, b, c = (graph.input("q", k) for k in range(3))
    m, n = (graph.input("p", k) for k in range(2))
    late = 1 / (a * b + 1)
    (found,) = balanced([((sign * late + m) - b) + (n - c)])
    assert late in found.args
    assert waiting(found) == waiting(late) + 1
    assert m + n in reachable([found])
