"""Reading SymPy expressions, vectors and dyadics: names and the symbols they contain.

SymPy's own ``free_symbols`` of vectors walks the frame tree and simplifies. These functions read the expressions term
by term as they are written, so that a model of hundreds of expressions is read in milliseconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import sympy
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import brief
from kanegen.graph.lower import is_delayed


def is_time_function(expr: Any) -> bool:
    """Whether ``expr`` is a dynamic symbol ``f(t)``."""
    return isinstance(expr, AppliedUndef) and expr.args == (dynamicsymbols._t,)


def symbol_name(expr: Any) -> str:
    """The name a user reads: ``"theta1"`` for ``theta1(t)``, ``"theta1'"`` for its rate."""
    if isinstance(expr, AppliedUndef):
        return str(expr.func.__name__) if is_time_function(expr) else str(expr)
    if isinstance(expr, sympy.Derivative) and is_time_function(expr.expr):
        return symbol_name(expr.expr) + "'" * derivative_order(expr)
    return str(expr) if isinstance(expr, sympy.Basic | str) else brief(expr)


def symbol_names(symbols: Iterable[Any]) -> str:
    """Names for a message, separated by commas."""
    return ", ".join(map(symbol_name, symbols))


def derivative_order(expr: Any) -> int:
    """The number of time derivatives of a dynamic symbol: 0 for ``q``, 1 for ``q'``; 0 for a plain symbol."""
    return int(expr.derivative_count) if isinstance(expr, sympy.Derivative) else 0


def base_symbol(expr: Any) -> Any:
    """The dynamic symbol under the derivatives: ``q`` for ``q''``."""
    return expr.expr if isinstance(expr, sympy.Derivative) else expr


def natural_key(name: str) -> tuple[Any, ...]:
    """Sorting key under which ``m_2`` comes before ``m_10``; different names have different keys."""
    parts = re.split(r"(\d+)", name, flags=re.ASCII)
    return tuple((1, int(part), "") if k % 2 else (0, 0, part) for k, part in enumerate(parts)), name


def subexpressions(expression: Any) -> Iterator[Any]:
    """Each subexpression once. SymPy's own traversal repeats what occurs again, in long laws thousands of times."""
    seen: set[Any] = set()
    stack = [expression]
    while stack:
        part = stack.pop()
        if part not in seen:
            seen.add(part)
            stack.extend(part.args)
            yield part


def atoms(expressions: Iterable[Any]) -> frozenset[Any]:
    """The symbols, dynamic symbols and their time derivatives in ``expressions``, except time itself.

    Functions of anything but time, and functions of time at another time, are included, so that a check can name them.
    """
    time = dynamicsymbols._t
    symbols: set[Any] = set()
    seen: set[Any] = set()
    stack = list(expressions)
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, (sympy.Symbol, AppliedUndef)):
            if expr != time:
                symbols.add(expr)
                # The arguments of a multiplier are the name of a contact and an index.
                stack.extend(expr.args if len(expr.args) == 1 else ())
        elif isinstance(expr, sympy.Subs) and is_delayed(expr):
            symbols.add(expr)
            stack.extend(expr.point)
        elif isinstance(expr, sympy.Derivative):
            if is_time_function(expr.expr) and all(variable == time for variable, _ in expr.variable_count):
                symbols.add(expr)
            else:
                stack.append(expr.expr)
        else:
            stack.extend(expr.args)
    return frozenset(symbols)


def not_real(expressions: Iterable[Any]) -> frozenset[Any]:
    """What is no real number in ``expressions``: nan, infinities, the imaginary unit, and the bounds of a limit."""
    found: set[Any] = set()
    seen: set[Any] = set()
    stack = list(expressions)
    while stack:
        expr = stack.pop()
        if isinstance(expr, sympy.AccumBounds):
            found.add(expr)
        elif expr.args and expr not in seen:
            seen.add(expr)
            stack.extend(expr.args)
        elif expr in _NOT_REAL:
            found.add(expr)
    return frozenset(found)


_NOT_REAL = frozenset((sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I))


def derivatives(expr: Any, symbols: Container[Any], order: int) -> frozenset[Any]:
    """The derivatives of this order of ``symbols`` that occur in ``expr``.

    Read from the atoms, because forming ``q.diff()`` for every coordinate takes longer than all other checks.
    """
    return frozenset(x for x in atoms((expr,)) if base_symbol(x) in symbols and derivative_order(x) == order)


def known_value(expr: Any, values: Mapping[Any, float]) -> float | None:
    """The value of ``expr`` at these parameter values; None if it is not a number, nan if it is not real."""
    if expr in values:
        return values[expr]
    if expr.args or expr.is_Symbol:
        expr = expr.xreplace(values)
    if not expr.is_number:
        return None
    try:
        return float(expr)
    except TypeError:
        return math.nan


def vector_expressions(vector: Any) -> tuple[Any, ...]:
    """The components of ``vector``, in the frames in which they are written."""
    # SymPy writes nan * N.x without a matrix.
    parts = (part if part.is_Matrix else (part,) for part, _ in vector.args)
    return tuple(chain.from_iterable(parts))


def vector_frames(vector: Any) -> tuple[Any, ...]:
    """The frames in which ``vector`` is written."""
    return tuple(frame for _, frame in vector.args)


def dyadic_expressions(dyadic: Any) -> tuple[Any, ...]:
    """The coefficients of the terms of ``dyadic``, components of its vectors included."""
    terms = ((term[0], *vector_expressions(term[1]), *vector_expressions(term[2])) for term in dyadic.args)
    return tuple(chain.from_iterable(terms))


def dyadic_frames(dyadic: Any) -> tuple[Any, ...]:
    """The frames in which the vectors of ``dyadic`` are written, each once."""
    return tuple(dict.fromkeys(frame for term in dyadic.args for side in term[1:] for frame in vector_frames(side)))


def dyadic_matrix(dyadic: Any) -> dict[Any, list[list[Any]]]:
    """For each frame, the 3 x 3 components of the part of ``dyadic`` written in it, without mixed terms."""
    blocks: dict[Any, list[list[Any]]] = {}
    for coefficient, left, right in dyadic.args:
        for left_components, frame in left.args:
            for right_components, other in right.args:
                if frame is not other and frame != other:
                    continue
                block = blocks.setdefault(frame, [[sympy.S.Zero] * 3 for _ in range(3)])
                for i, x in enumerate(left_components):
                    for j, y in enumerate(right_components):
                        if x != 0 and y != 0:
                            block[i][j] += coefficient * x * y
    return blocks
