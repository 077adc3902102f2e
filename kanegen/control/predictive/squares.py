"""Costs as sums of squares with weights, whose Gauss-Newton Hessian is convex, and what is left of them."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

import sympy

from kanegen.model.expressions import atoms


class Squares(NamedTuple):
    """The sum of ``weight * base**2 / 2`` over ``weights`` and ``bases``, and of ``rest``."""

    weights: tuple[Any, ...]
    bases: tuple[Any, ...]
    rest: Any

    @property
    def is_convex(self) -> bool:
        """Whether the Hessian is positive semidefinite for all values of the parameters."""
        return bool(self.rest == 0) and all(weight.is_number for weight in self.weights)


def squares(value: Any, varying: Set[Any]) -> Squares:
    """The squares in an expression as it is written; ``varying``: the symbols of states and inputs."""
    weights, bases, rest = [], [], []
    for term in sympy.Add.make_args(sympy.expand_mul(value, deep=False)):
        weight, base = _square(term, varying)
        if base is None or (weight.is_number and not weight.is_nonnegative):
            rest.append(term)
        else:
            weights.append(2 * weight)
            bases.append(base)
    return Squares(tuple(weights), tuple(bases), sympy.Add(*rest))


def _square(term: Any, varying: Set[Any]) -> tuple[Any, Any]:
    """The weight and the base of a term ``weight * base**2``; None as base for others."""
    weight, base, is_varying = sympy.Integer(1), sympy.Integer(1), False
    for factor in sympy.Mul.make_args(term):
        if not atoms([factor]) & varying:
            weight *= factor
        elif isinstance(factor, sympy.Pow) and factor.exp.is_Integer and factor.exp > 0 and factor.exp % 2 == 0:
            base *= factor.base ** (factor.exp / 2)
            is_varying = True
        else:
            return weight, None
    return weight, base if is_varying else None
