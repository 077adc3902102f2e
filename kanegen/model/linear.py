"""Affine dependence of expressions on some of their symbols: read from the structure, else from their slopes.

Symbolic simplification would take seconds. The structure decides for the usual expressions, decisions on the graph
(:mod:`kanegen.graph.decisions`) for all others that have no cases.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import DerivationError
from kanegen.graph import Graph, Lowering, evaluate, gradient, ranks
from kanegen.graph.decisions import Decisions
from kanegen.model.expressions import atoms

#: A relative difference of numbers below this size is a rounding error.
ROUNDING = 1e-8


def affine_coefficients(expr: Any, variables: frozenset[Any]) -> dict[Any, Any] | None:
    """Coefficient of every variable in ``expr``; None if the structure of ``expr`` does not show that it is affine.

    The part without variables has the key None.
    """
    if expr in variables:
        return {expr: sympy.S.One}
    if isinstance(expr, sympy.Piecewise):
        return _cases(expr, variables)
    if not expr.is_Add and not expr.is_Mul:
        return None if atoms((expr,)) & variables else {None: expr}
    parts = [affine_coefficients(item, variables) for item in expr.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return _sum(known) if expr.is_Add else _product(known)


def _sum(parts: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
    total: dict[Any, Any] = {}
    for part in parts:
        for key, coefficient in part.items():
            total[key] = total[key] + coefficient if key in total else coefficient
    return total


def _cases(expr: sympy.Piecewise, variables: frozenset[Any]) -> dict[Any, Any] | None:
    parts = [affine_coefficients(value, variables) for value, _ in expr.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or atoms(condition for _, condition in expr.args) & variables:
        return None
    conditions = [condition for _, condition in expr.args]
    return {
        key: sympy.Piecewise(*((part.get(key, 0), c) for part, c in zip(known, conditions, strict=True)))
        for key in _sum(known)
    }


def _product(parts: Sequence[dict[Any, Any]]) -> dict[Any, Any] | None:
    varying = [part for part in parts if set(part) != {None}]
    constant = sympy.Mul(*(part[None] for part in parts if set(part) == {None}))
    if len(varying) > 1:
        return None
    return {key: value * constant for key, value in varying[0].items()} if varying else {None: constant}


def numeric_function(expressions: Sequence[Any], symbols: Sequence[Any]) -> Callable[..., list[float]]:
    """``expressions`` as a Python function of the values of ``symbols`` and time.

    The function raises ``ArithmeticError`` if they have no finite real value or cannot be evaluated.
    """
    time = sympy.physics.vector.dynamicsymbols._t
    compiled = sympy.lambdify([[*symbols], time], list(expressions), modules=["math", "sympy"], dummify=True)

    def evaluate(values: Sequence[float], t: float) -> list[float]:
        try:
            numbers = [float(value) for value in compiled([*values], t)]
        except (TypeError, ValueError, ZeroDivisionError, OverflowError, NameError, AttributeError) as error:
            raise ArithmeticError(str(error)) from error
        if not all(math.isfinite(value) for value in numbers):
            raise ArithmeticError("not finite")
        return numbers

    return evaluate


def states(symbols: Sequence[Any], count: int = 3, seed: int = 20240607) -> list[tuple[list[float], float]]:
    """Random values of ``symbols`` and of time, the same in every run; positive, so that roots exist."""
    stream = random.Random(seed)
    return [([stream.uniform(0.2, 1.1) for _ in symbols], stream.uniform(0.2, 1.1)) for _ in range(count)]


_CASES: Final = (
    *(sympy.Abs, sympy.Max, sympy.Min, sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling),
    *(sympy.Piecewise, sympy.core.relational.Relational),
)
"""Functions with cases: values at some states do not show whether they are affine."""


def is_affine(expr: Any, variables: frozenset[Any]) -> bool:
    """Whether ``expr`` is affine in ``variables``; True if it cannot be evaluated (the derivation checks again)."""
    if affine_coefficients(expr, variables) is not None:
        return True
    if any(atoms((case,)) & variables for case in expr.atoms(*_CASES)):
        return False
    graph = Graph()
    symbols = sorted({*atoms((expr,)), dynamicsymbols._t}, key=str)
    nodes = {symbol: graph.input("x", i) for i, symbol in enumerate(symbols)}
    moving = [nodes[symbol] for symbol in symbols if symbol in variables]
    try:
        node = Lowering(graph, nodes).lower(expr)
        slopes = gradient([node], [graph.one], moving)
        samples = [{"x": values} for values, _ in states(symbols)]
        known = [sample for sample in samples if math.isfinite(evaluate([node], sample)[0])]
        return not known or Decisions(known, everywhere=True).are_constant(slopes, moving)
    except (DerivationError, ArithmeticError):
        return True


def coefficients(expr: Any, variables: frozenset[Any]) -> dict[Any, Any]:
    """Coefficients of the variables that occur in an affine ``expr``."""
    by_variable = affine_coefficients(expr, variables)
    if by_variable is None:
        # SymPy confuses the derivatives by q' and q unless q' is a symbol of its own.
        stand_in = {variable: sympy.Dummy() for variable in atoms((expr,)) & variables}
        replaced, back = expr.xreplace(stand_in), {dummy: variable for variable, dummy in stand_in.items()}
        by_variable = {variable: replaced.diff(dummy).xreplace(back) for dummy, variable in back.items()}
    return {key: value for key, value in by_variable.items() if key is not None and value != 0}


def is_regular(rows: Sequence[dict[Any, Any]], columns: Sequence[Any]) -> bool:
    """Whether the square matrix with these coefficients is regular at a random state."""
    if all(len(row) == 1 for row in rows):
        return len({next(iter(row)) for row in rows}) == len(columns)
    entries = [sympy.sympify(row.get(column, 0)) for row in rows for column in columns]
    symbols = sorted(atoms(entries), key=str)
    try:
        function = numeric_function(entries, symbols)
        matrices = [np.reshape(function(*state), (len(rows), len(columns))) for state in states(symbols)]
    except ArithmeticError:
        return True
    return any(map(ranks.is_regular, matrices))


def in_span(expr: Any, basis: Sequence[Any], variables: frozenset[Any]) -> bool:
    """Whether ``expr`` is a linear combination of ``basis`` with factors that do not depend on ``variables``.

    Decided at random states: the variables are sampled while all other symbols are fixed. False if the expressions
    cannot be evaluated.
    """
    if not basis:
        return False
    symbols = sorted(atoms((expr, *basis)), key=str)
    moving = [symbol in variables for symbol in symbols]
    try:
        function = numeric_function((expr, *basis), symbols)
        for k, (fixed, t) in enumerate(states(symbols)):
            samples = states(symbols, count=sum(moving) + 2, seed=k)
            table = np.array([function(np.where(moving, varied, fixed).tolist(), t) for varied, _ in samples])
            target, columns = table[:, 0], table[:, 1:]
            residual = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
            if np.linalg.norm(residual) > ROUNDING * np.linalg.norm(target):
                return False
    except ArithmeticError:
        return False
    return True
