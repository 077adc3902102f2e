"""Functions without a lowering rule of their own, written by SymPy with functions that have one.

The characteristic curves of ``sympy.physics.biomechanics`` know their expression (``doit``), ``log1p`` and its like
expand, ``sinc``, ``erfc`` and others can be rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import sympy

_TARGETS: Final = (sympy.Piecewise, sympy.sin, sympy.erf, sympy.atan2)


def in_known_functions(expr: Any, is_known: Callable[[type], bool]) -> Any:
    """An expression equal to ``expr`` in known functions, apart from what its arguments hold; None where there is none.

    ``is_known`` says whether a type has a lowering rule. Integrals are not tried: that may take forever.
    """
    if not isinstance(expr, sympy.Function | sympy.Sum | sympy.Product):
        return None
    allowed = {cls for argument in expr.args for cls in _unknown(argument, is_known)}
    for candidate in _candidates(expr):
        if candidate != expr and not candidate.has(sympy.I) and _unknown(candidate, is_known) <= allowed - {type(expr)}:
            return candidate
    return None


def _candidates(expr: Any) -> Iterator[Any]:
    if not isinstance(expr, sympy.Function):
        yield expr.doit()
        return
    # Unevaluated, the curves keep the order of operations in which they are stable.
    yield expr.doit(deep=False, evaluate=False)
    yield expr.expand(deep=False, func=True)
    for target in _TARGETS:
        yield expr.rewrite(target, deep=False)


def _unknown(expr: Any, is_known: Callable[[type], bool]) -> set[type]:
    """Types of the functions in an expression that have no lowering rule."""
    return {type(part) for part in expr.atoms(sympy.Function, sympy.Sum, sympy.Product) if not is_known(type(part))}
