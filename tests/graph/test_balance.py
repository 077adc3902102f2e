"""Sums from the terms that are known first: the same values, no more operations, less waiting."""

from __future__ import annotations

from operator import add, mul, sub
from random import Random

import mpmath
import pytest
from critical_path import waiting

from kanegen.graph import Graph, balanced, count_operations, evaluate, mpmath_context, reachable


@pytest.mark.parametrize("seed", range(20))
def test_values_stay_and_nothing_waits_longer(seed: int) -> None:
    """Sums in sums, with shared operands, products and constants; integers are added without rounding."""
    random, graph = Random(seed), Graph()
    nodes = [graph.input(name, k) for name in "qp" for k in range(3)]
    operations = (add, add, sub, sub, mul, lambda a, b: a - (b + a))
    for _ in range(60):
        nodes.append(random.choice(operations)(*random.choices(nodes[-12:], k=2)))
    roots = nodes[-4:]
    found = balanced(roots)
    values = {name: [random.randint(-9, 9) for _ in range(3)] for name in "qp"}
    with mpmath.workdps(200):
        assert evaluate(found, values, mpmath_context(200)) == evaluate(roots, values, mpmath_context(200))
    assert count_operations(found) <= count_operations(roots)
    assert max(map(waiting, found)) <= max(map(waiting, roots))


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
