"""Rosenbrock methods for stiff equations, as records that cannot hold a wrong coefficient.

A step from (t, y) solves, with ``W = I / (h gamma) - df/dy`` and one factorization for all stages,

    W k_i = f(t + c_i h, y + sum a_ij k_j) + sum C_ij k_j / h + h d_i df/dt,    y_new = y + sum m_i k_i

where y_new - k_s is the embedded solution. In terms of the usual coefficients alpha and Gamma (lower triangular with
gamma on the diagonal) a = alpha Gamma^-1, C = 1 / gamma - Gamma^-1 and m = b Gamma^-1. Dense output is
``y + theta (F0 + (1 - theta) (F1 + theta F2))`` with ``F0 = y_new - y`` and ``F1``, ``F2`` sums of the k_j.

Source: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, 2nd ed. 1996, section IV.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from kanegen.codegen.methods.tableaux import Row, Tree, all_trees, density, order_of

Matrix: TypeAlias = tuple[Row, ...]


@dataclass(frozen=True)
class Rosenbrock:
    """A stiffly accurate Rosenbrock method with an embedded solution of one order less, and dense output.

    Parameters
    ----------
    order, dense_order : order of the solution; of the dense output (one less than that of its local error)
    gamma : the diagonal of Gamma
    a, C : strictly lower triangular, (s, s), rows of any length up to their own index
    c, d : nodes and weights of df/dt, (s,)
    m : weights of the solution, (s,), the last of them 1
    dense : F1 and F2, (s,) each
    tolerance : largest defect of a condition: the rounding of the printed coefficients, grown by cancellation

    Raises
    ------
    ValueError
        When a node or weight of df/dt is not its row sum, when an order condition of the solution, of the embedded
        solution or of the dense output does not hold, or when the method is not stiffly accurate.
    """

    order: int
    dense_order: int
    gamma: Fraction
    a: Matrix
    C: Matrix
    c: Row
    d: Row
    m: Row
    dense: Matrix
    tolerance: Fraction

    def __post_init__(self) -> None:
        problems = self._shape_problems()
        if not problems:
            problems = [*self._sum_problems(), *self.defects(all_trees(self.order)), *self._accuracy_problems()]
        if problems:
            raise ValueError("wrong coefficients: " + "; ".join(problems))

    @property
    def stages(self) -> int:
        """Number of stages s."""
        return len(self.c)

    @cached_property
    def Gamma(self) -> Matrix:
        """Lower triangular, (s, s): the inverse of ``1 / gamma - C``."""
        rows: list[Row] = []
        for i, couplings in enumerate(_square(self.C)):
            row = [sum((c * x[j] for c, x in zip(couplings, rows, strict=False)), Fraction(0)) for j in range(i)]
            rows.append(_padded([*(self.gamma * x for x in row), self.gamma], self.stages))
        return tuple(rows)

    @cached_property
    def alpha(self) -> Matrix:
        """Strictly lower triangular, (s, s): the arguments of the stages in their derivatives."""
        return tuple(_times(row, self.Gamma) for row in _square(self.a))

    @cached_property
    def b(self) -> Row:
        """Weights of the stages' derivatives in the solution, (s,)."""
        return _times(self.m, self.Gamma)

    def growth(self, z: complex) -> complex:
        """The factor R(z) by which a step multiplies the solution of ``y' = lambda y``, z = h lambda."""
        k: list[complex] = []
        for row, couplings in zip(_square(self.a), _square(self.C), strict=True):
            argument = 1 + sum(float(x) * y for x, y in zip(row, k, strict=False))
            coupling = sum(float(x) * y for x, y in zip(couplings, k, strict=False))
            k.append((z * argument + coupling) / (1 / float(self.gamma) - z))
        return 1 + sum(float(x) * y for x, y in zip(self.m, k, strict=True))

    def defects(self, trees: Sequence[Tree]) -> list[str]:
        """The conditions of ``trees`` that do not hold, as sentences; each up to the order claimed."""
        problems = []
        embedded = _times((*self.m[:-1], Fraction(0)), self.Gamma)
        dense = [_times(row, self.Gamma) for row in self.dense]
        for tree in trees:
            size, weight, phi = order_of(tree), Fraction(1, density(tree)), self._weights(tree)
            if size <= self.order and self._is_wrong(_dot(self.b, phi) - weight):
                problems.append(f"the solution violates the condition of order {size} of the tree {tree}")
            if size < self.order and self._is_wrong(_dot(embedded, phi) - weight):
                problems.append(f"the embedded solution violates the condition of order {size} of the tree {tree}")
            if size <= self.dense_order and not self._dense_holds(
                _dot(self.b, phi), [_dot(row, phi) for row in dense], size, weight
            ):
                problems.append(f"the dense output violates the condition of order {size} of the tree {tree}")
        return problems

    def _weights(self, tree: Tree) -> Row:
        """Elementary weights of the stages: a node with one branch passes through alpha + Gamma, others through
        alpha (section IV.7, theorem 7.4)."""
        if len(tree) == 1:
            inner = self._weights(tree[0])
            both = zip(self.alpha, self.Gamma, strict=True)
            return tuple(_dot(x, inner) + _dot(y, inner) for x, y in both)
        result = (Fraction(1),) * self.stages
        for child in tree:
            inner = self._weights(child)
            result = tuple(x * _dot(row, inner) for x, row in zip(result, self.alpha, strict=True))
        return result

    def _dense_holds(self, f0: Fraction, others: Sequence[Fraction], size: int, weight: Fraction) -> bool:
        f1, f2 = others
        points = [Fraction(i, 4) for i in range(1, 4)]
        values = [x * (f0 + (1 - x) * (f1 + x * f2)) for x in points]
        return not any(self._is_wrong(y - x**size * weight) for x, y in zip(points, values, strict=True))

    def _shape_problems(self) -> list[str]:
        s, problems = self.stages, []
        if not len(self.a) == len(self.C) == len(self.d) == len(self.m) == s:
            problems.append(f"a, C, c, d and m are not of the same {s} stages")
        for name, matrix in (("a", self.a), ("C", self.C)):
            problems += [f"row {i} of {name} is not explicit" for i, row in enumerate(matrix) if len(row) > i]
        if [len(row) for row in self.dense] != [s, s]:
            problems.append(f"the dense output has not two rows of {s} weights")
        return problems

    def _sum_problems(self) -> list[str]:
        sums = (("c", self.c, self.alpha), ("d", self.d, self.Gamma))
        return [
            f"{name}[{i}] is not the sum of its row"
            for name, values, rows in sums
            for i, (value, row) in enumerate(zip(values, rows, strict=True))
            if self._is_wrong(sum(row, start=-value))
        ]

    def _accuracy_problems(self) -> list[str]:
        """The solution is the last stage's own: then R vanishes at infinity, and stiff components are damped out."""
        last = (x + y for x, y in zip(self.alpha[-1], self.Gamma[-1], strict=True))
        if any(self._is_wrong(x - y) for x, y in zip(last, self.b, strict=True)):
            return ["the weights are not the last row of alpha + Gamma: the method is not stiffly accurate"]
        return []

    def _is_wrong(self, defect: Fraction) -> bool:
        return abs(defect) > self.tolerance


def _padded(row: Sequence[Fraction], length: int) -> Row:
    return (*row, *(Fraction(0),) * (length - len(row)))


def _square(rows: Matrix) -> Matrix:
    return tuple(_padded(row, len(rows)) for row in rows)


def _times(row: Row, matrix: Matrix) -> Row:
    return tuple(_dot(row, column) for column in zip(*matrix, strict=True))


def _dot(weights: Row, values: Row) -> Fraction:
    return sum((w * x for w, x in zip(weights, values, strict=True) if w), Fraction(0))
