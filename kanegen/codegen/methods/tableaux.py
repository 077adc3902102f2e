"""Butcher tableaux of the integrators: records of coefficients that check their order conditions.

A method with ``s`` stages has ``s + 1 + e`` rows of derivatives: its own stages, the derivative at the end of
the step (row ``s``, whose row of ``a`` is ``b``), and ``e`` rows that only dense output needs. The dense output
of every method has the nested form of Hairer's codes, with theta = (t - t_old) / h:

    y(t) = y_old + theta (F0 + (1 - theta) (F1 + theta (F2 + (1 - theta) (F3 + theta (F4 + ...)))))
    F0 = y - y_old,  F1 = h f_old - F0,  F2 = 2 F0 - h (f_old + f),  F3 ... = h ``dense`` times derivatives

Cubic Hermite interpolation is the case without the rows F3, F4, ...

Order conditions belong to rooted trees (Butcher 1963). A tree is the sorted tuple of the subtrees at its root; the
single node is ``()``. Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed.,
section II.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property
from math import prod
from typing import Final, TypeAlias

Tree: TypeAlias = tuple["Tree", ...]
Row: TypeAlias = tuple[Fraction, ...]

# The import of this module must take milliseconds only, and exact products of long decimals are slow.
CHEAP_ORDER_RATIONAL: Final = 5
CHEAP_ORDER_DECIMAL: Final = 2


@cache
def order_of(tree: Tree) -> int:
    """Number of nodes of a tree."""
    return 1 + sum(map(order_of, tree))


@cache
def density(tree: Tree) -> int:
    """The density gamma: a method of sufficient order gives the tree the weight 1 / gamma."""
    return order_of(tree) * prod(map(density, tree))


@cache
def trees_of_order(order: int) -> tuple[Tree, ...]:
    """All rooted trees with ``order`` >= 1 nodes: 1, 1, 2, 4, 9, 20, 48, 115 of them for orders 1 to 8."""
    if order == 1:
        return ((),)
    return tuple(sorted({larger for tree in trees_of_order(order - 1) for larger in _grown(tree)}))


def _grown(tree: Tree) -> Iterator[Tree]:
    """The trees with one leaf more: at the root, or somewhere in one of the branches."""
    yield tuple(sorted((*tree, ())))
    for k, branch in enumerate(tree):
        for larger in _grown(branch):
            yield tuple(sorted((*tree[:k], larger, *tree[k + 1 :])))


def all_trees(order: int) -> list[Tree]:
    """All rooted trees with 1 to ``order`` nodes."""
    return [tree for size in range(1, order + 1) for tree in trees_of_order(size)]


def bushy_tree(order: int) -> Tree:
    """The tree whose condition is the quadrature condition sum b_i c_i^(order - 1) = 1 / order."""
    return ((),) * (order - 1)


@dataclass(frozen=True)
class ErrorEstimate:
    """A local error estimate ``h sum weights_i k_i``; the weights annihilate all trees up to ``order``."""

    order: int
    weights: Row


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta method with error estimates and dense output.

    Parameters
    ----------
    order : order of the solution that the next step starts from
    dense_order : order of the dense output (one less than that of its local error)
    c : nodes, (s + 1 + e,)
    a : strictly lower triangular coefficients, rows of any length up to their own index, (s + 1 + e) rows
    stages : s
    errors : error estimates with (s + 1) weights
    dense : rows 3, 4, ... of the dense output, (s + 1 + e) weights each
    tolerance : largest permitted defect of a condition: 0 for rational coefficients, else the rounding of decimals

    Raises
    ------
    ValueError
        If a row sum, an order condition of the method, of an error estimate or of the dense output is violated.
        All trees up to order 5 are checked for rational coefficients, the bushy trees (quadrature) and all trees up to
        order 2 for decimals; :meth:`defects` checks any others.
    """

    order: int
    dense_order: int
    stages: int
    c: Row
    a: tuple[Row, ...]
    errors: tuple[ErrorEstimate, ...] = ()
    dense: tuple[Row, ...] = ()
    tolerance: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        problems = self._shape_problems()
        if not problems:
            cheap = CHEAP_ORDER_DECIMAL if self.tolerance else CHEAP_ORDER_RATIONAL
            bushy = map(bushy_tree, range(cheap + 1, self.order + 1))
            trees = [*all_trees(min(self.order, cheap)), *bushy]
            problems = [*self._row_sum_problems(), *self.defects(trees)]
        if problems:
            raise ValueError("wrong coefficients: " + "; ".join(problems))

    @property
    def rows(self) -> int:
        """Number of rows of derivatives, including those of dense output."""
        return len(self.a)

    @property
    def b(self) -> Row:
        """Weights of the solution, (s,)."""
        return self.a[self.stages]

    @property
    def dense_rows(self) -> int:
        """Number of rows of stored dense output: the state at the start of the step, F0, F1, F2, ..."""
        return 4 + len(self.dense)

    @property
    def estimates_from_end(self) -> bool:
        """Whether an error estimate uses the derivative at the end, so that a trial step must evaluate it."""
        return any(estimate.weights[self.stages] for estimate in self.errors)

    @cached_property
    def _weights(self) -> Callable[[Tree], Row]:
        """The elementary weights Phi_i(tree) of every row i; ``sum b_i Phi_i(tree)`` is the weight of the method."""
        rows = [terms(row) for row in self.a]

        def of_stages(tree: Tree) -> Row:
            weights = (Fraction(1),) * len(rows)
            for branch in tree:
                weights = tuple(x * y for x, y in zip(weights, summed(branch), strict=True))
            return weights

        @cache
        def summed(tree: Tree) -> Row:
            stages = of_stages(tree)
            return tuple(sum((x * stages[j] for j, x in row), Fraction(0)) for row in rows)

        return of_stages

    def defects(self, trees: Sequence[Tree]) -> list[str]:
        """Messages on the order conditions of ``trees``, up to the order of the method, that are violated."""
        problems = []
        for tree in trees:
            size = order_of(tree)
            phi = self._weights(tree)
            if size <= self.order and self._is_wrong(_dot(self.b, phi) - Fraction(1, density(tree))):
                problems.append(f"the solution violates the condition of order {size} of the tree {tree}")
            problems.extend(
                f"an error estimate does not annihilate the tree {tree} of order {size}"
                for estimate in self.errors
                if size <= estimate.order and self._is_wrong(_dot(estimate.weights, phi))
            )
            if size <= self.dense_order and not self._dense_holds(phi, size, Fraction(1, density(tree))):
                problems.append(f"the dense output violates the condition of order {size} of the tree {tree}")
        return problems

    def _shape_problems(self) -> list[str]:
        rows, problems = len(self.a), []
        if len(self.c) != rows or not 0 < self.stages < rows:
            problems.append(f"{len(self.c)} nodes and {self.stages} stages do not fit {rows} rows")
        problems.extend(f"row {i} of a is not explicit" for i, row in enumerate(self.a) if len(row) > i)
        problems.extend(
            f"an error estimate has {len(e.weights)} weights" for e in self.errors if len(e.weights) != self.stages + 1
        )
        problems.extend(f"a dense row has {len(row)} weights" for row in self.dense if len(row) != rows)
        return problems

    def _row_sum_problems(self) -> list[str]:
        pairs = enumerate(zip(self.a, self.c, strict=True))
        return [f"row {i} of a does not sum to its node" for i, (row, c) in pairs if self._is_wrong(sum(row, start=-c))]

    def _dense_holds(self, phi: Row, size: int, weight: Fraction) -> bool:
        """Whether the interpolant equals theta^size * weight, tested at as many points as it has coefficients."""
        f0 = _dot(self.b, phi)
        f1 = phi[0] - f0
        f2 = 2 * f0 - phi[0] - phi[self.stages]
        coefficients = [f0, f1, f2, *(_dot(row, phi) for row in self.dense)]
        points = [Fraction(i, len(coefficients)) for i in range(1, len(coefficients) + 1)]
        return not any(self._is_wrong(_nested(coefficients, x) - x**size * weight) for x in points)

    def _is_wrong(self, defect: Fraction) -> bool:
        return abs(defect) > self.tolerance


def terms(row: Row) -> list[tuple[int, Fraction]]:
    """The nonzero weights of a row with their indices, for a generated sum."""
    return [(j, weight) for j, weight in enumerate(row) if weight]


def literal(value: Fraction) -> str:
    """A nonnegative coefficient in C: its exact decimal if that is finite, else a quotient of integers."""
    numerator, denominator = value.as_integer_ratio()
    rest = denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    if rest != 1:
        return f"KG_C({numerator}.0) / KG_C({denominator}.0)"
    with localcontext() as context:
        context.prec = 60
        text = format(Decimal(numerator) / Decimal(denominator), "f")
    return f"KG_C({text if '.' in text else text + '.0'})"


def _dot(weights: Row, values: Row) -> Fraction:
    return sum((w * x for w, x in zip(weights, values, strict=False) if w), Fraction(0))


def _nested(coefficients: Sequence[Fraction], theta: Fraction) -> Fraction:
    value = Fraction(0)
    for index in reversed(range(len(coefficients))):
        value = (value + coefficients[index]) * (theta if index % 2 == 0 else 1 - theta)
    return value


def nested_form(polynomial: Row) -> Row:
    """Coefficients F0, F1, ... of a polynomial in theta without constant term in the nested form of dense output."""
    rest = list(polynomial)
    nested: list[Fraction] = []
    while rest:
        if len(nested) % 2 == 0:
            # rest = F + (1 - theta) quotient
            nested.append(sum(rest, Fraction(0)))
            rest = [-sum(rest[k:], Fraction(0)) for k in range(1, len(rest))]
        else:
            # rest = F + theta quotient
            nested.append(rest.pop(0))
    return tuple(nested)
