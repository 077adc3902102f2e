"""Random sums and products, and what a function that rearranges them must keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import mpmath
from critical_path import waiting

from kanegen.graph import Graph, Node, count_operations, evaluate, mpmath_context

DIGITS = 2000
"""Enough for sums and products of integers without rounding."""


def check_rearranged(
    rearranged: Callable[[Sequence[Node]], list[Node]], seed: int, operations: Sequence[Callable[[Node, Node], Node]]
) -> None:
    """Equal values of random expressions with shared operands, no more operations, no longer sequence of them."""
    random, graph = Random(seed), Graph()
    nodes = [graph.input(name, k) for name in "qp" for k in range(3)]
    for _ in range(60):
        nodes.append(random.choice(operations)(*random.choices(nodes[-12:], k=2)))
    roots = nodes[-4:]
    found = rearranged(roots)
    values = {name: [random.randint(-9, 9) for _ in range(3)] for name in "qp"}
    with mpmath.workdps(DIGITS):
        assert evaluate(found, values, mpmath_context(DIGITS)) == evaluate(roots, values, mpmath_context(DIGITS))
    assert count_operations(found) <= count_operations(roots)
    assert max(map(waiting, found)) <= max(map(waiting, roots))
