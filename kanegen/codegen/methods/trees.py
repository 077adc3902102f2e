"""Rooted trees and the order conditions of Runge-Kutta methods (Butcher 1963).

A tree is the sorted tuple of the subtrees at its root; the single node is ``()``. Source: E. Hairer,
S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., section II.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import TypeAlias

Tree: TypeAlias = tuple["Tree", ...]
Matrix: TypeAlias = Sequence[Sequence[Fraction]]


@cache
def order_of(tree: Tree) -> int:
    """Number of nodes of a tree."""
    return 1 + sum(order_of(child) for child in tree)


@cache
def density(tree: Tree) -> int:
    """The density gamma: a method of sufficient order gives the tree the weight 1 / gamma."""
    product = order_of(tree)
    for child in tree:
        product *= density(child)
    return product


@cache
def trees_of_order(order: int) -> tuple[Tree, ...]:
    """All rooted trees with ``order`` >= 1 nodes: 1, 1, 2, 4, 9, 20, 48, 115 of them for orders 1 to 8."""
    return tuple(sorted(_forests(order - 1, order - 1)))


def bushy_tree(order: int) -> Tree:
    """The tree whose condition is the quadrature condition sum b_i c_i^(order - 1) = 1 / order."""
    return ((),) * (order - 1)


@cache
def _forests(nodes: int, largest: int) -> tuple[Tree, ...]:
    """All multisets of trees with ``nodes`` nodes in total and at most ``largest`` nodes in each."""
    if nodes == 0:
        return ((),)
    if largest == 0:
        return ()
    forests: list[Tree] = []
    for count in range(nodes // largest + 1):
        for rest in _forests(nodes - count * largest, largest - 1):
            chosen = combinations_with_replacement(trees_of_order(largest), count) if count else [()]
            forests.extend(tuple(sorted((*rest, *trees))) for trees in chosen)
    return tuple(forests)


class ElementaryWeights:
    """Elementary weights of the stages of one method, computed once per tree.

    ``a`` is the strictly lower triangular (s, s) matrix of the method.
    """

    def __init__(self, a: Matrix) -> None:
        self._rows = tuple(tuple((j, x) for j, x in enumerate(row) if x) for row in a)
        self._inner: dict[Tree, tuple[Fraction, ...]] = {}

    def of_stages(self, tree: Tree) -> tuple[Fraction, ...]:
        """Phi_i(tree) of every stage i; ``sum b_i Phi_i(tree)`` is the weight of the method."""
        weights = (Fraction(1),) * len(self._rows)
        for child in tree:
            weights = tuple(x * y for x, y in zip(weights, self._summed(child), strict=True))
        return weights

    def _summed(self, tree: Tree) -> tuple[Fraction, ...]:
        """sum_j a_ij Phi_j(tree) for every stage i."""
        known = self._inner.get(tree)
        if known is None:
            stages = self.of_stages(tree)
            known = tuple(sum((x * stages[j] for j, x in row), Fraction(0)) for row in self._rows)
            self._inner[tree] = known
        return known
