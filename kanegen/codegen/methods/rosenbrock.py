"""Rosenbrock methods for stiff equations: records of coefficients that check their order conditions.

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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kanegen.codegen.methods.tableaux import Row, Tree, all_trees, density, order_of

Matrix: TypeAlias = tuple[Row, ...]
Exact: TypeAlias = NDArray[Any]
"""An array of fractions."""


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
    tolerance : largest permitted defect of a condition: rounding of the printed coefficients and cancellation

    Raises
    ------
    ValueError
        If a node or weight of df/dt is not its row sum, if an order condition of the solution, of the embedded
        solution or of the dense output is violated, or if the method is not stiffly accurate.
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
    def Gamma(self) -> Exact:
        """Lower triangular, (s, s): the inverse of ``1 / gamma - C``."""
        result, couplings = np.diag(np.full(self.stages, self.gamma, dtype=object)), _square(self.C)
        for i in range(self.stages):
            result[i, :i] = self.gamma * couplings[i, :i] @ result[:i, :i]
        return result

    @cached_property
    def alpha(self) -> Exact:
        """Strictly lower triangular, (s, s): the arguments of the stages in their derivatives."""
        return _square(self.a) @ self.Gamma

    @cached_property
    def b(self) -> Exact:
        """Weights of the stages' derivatives in the solution, (s,)."""
        return np.array(self.m) @ self.Gamma

    def growth(self, z: complex) -> complex:
        """The factor R(z) by which a step multiplies the solution of ``y' = lambda y``, z = h lambda."""
        a, C = _square(self.a).astype(float), _square(self.C).astype(float)
        k = np.linalg.solve((1 / float(self.gamma) - z) * np.eye(self.stages) - z * a - C, np.full(self.stages, z))
        return complex(1 + np.array(self.m).astype(float) @ k)

    def defects(self, trees: Sequence[Tree]) -> list[str]:
        """Messages on the order conditions of ``trees``, up to the order of the method, that are violated."""
        problems = []
        embedded = np.array((*self.m[:-1], Fraction(0))) @ self.Gamma
        for tree in trees:
            size, weight, phi = order_of(tree), Fraction(1, density(tree)), self._weights(tree)
            solution = self.b @ phi
            dense = [solution, *(np.array(self.dense) @ self.Gamma @ phi)]
            for name, order, holds in (
                ("solution", self.order, not self._is_wrong(solution - weight)),
                ("embedded solution", self.order - 1, not self._is_wrong(embedded @ phi - weight)),
                ("dense output", self.dense_order, self._dense_holds(dense, size, weight)),
            ):
                if size <= order and not holds:
                    problems.append(f"the {name} violates the condition of order {size} of the tree {tree}")
        return problems

    def _weights(self, tree: Tree) -> Exact:
        """Elementary weights of the stages: a node with one branch passes through alpha + Gamma, others through
        alpha (section IV.7, theorem 7.4)."""
        if len(tree) == 1:
            return (self.alpha + self.Gamma) @ self._weights(tree[0])
        result = np.full(self.stages, Fraction(1))
        for child in tree:
            result = result * (self.alpha @ self._weights(child))
        return result

    def _dense_holds(self, coefficients: Sequence[Fraction], size: int, weight: Fraction) -> bool:
        f0, f1, f2 = coefficients
        points = [Fraction(i, 4) for i in range(1, 4)]
        return not any(self._is_wrong(x * (f0 + (1 - x) * (f1 + x * f2)) - x**size * weight) for x in points)

    def _shape_problems(self) -> list[str]:
        s, problems = self.stages, []
        if not len(self.a) == len(self.C) == len(self.d) == len(self.m) == s:
            problems.append(f"a, C, c, d and m do not all have {s} stages")
        for name, matrix in (("a", self.a), ("C", self.C)):
            problems += [f"row {i} of {name} is not explicit" for i, row in enumerate(matrix) if len(row) > i]
        if [len(row) for row in self.dense] != [s, s]:
            problems.append(f"the dense output does not have two rows of {s} weights")
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
        """The last stage must equal the solution, so that R vanishes at infinity and stiff components are damped."""
        last = self.alpha[-1] + self.Gamma[-1]
        if any(map(self._is_wrong, last - self.b)):
            return ["the weights are not the last row of alpha + Gamma: the method is not stiffly accurate"]
        return []

    def _is_wrong(self, defect: Fraction) -> bool:
        return abs(defect) > self.tolerance


def _square(rows: Matrix) -> Exact:
    result = np.full((len(rows), len(rows)), Fraction(0))
    for i, row in enumerate(rows):
        result[i, : len(row)] = row
    return result
