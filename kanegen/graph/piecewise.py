"""Piecewise expressions without a last branch ``(value, True)``, such as those of SymPy's ``interpolating_spline``.

Their conditions compare one argument with numbers. If they cover all numbers, the last one is always true where it is
needed; if they cover an interval, the argument must lie in it, as that of a spline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isclose
from typing import Any, Final

import sympy

from kanegen.graph.functions import Domain, Spline

_CONTINUOUS: Final = 1e-9
"""Largest jump at the end of a piece, relative to the terms there, that is a rounding error of coefficients."""


@dataclass(frozen=True)
class Cover:
    """What the conditions of a Piecewise cover: the sets of ``argument`` that select each piece, and the ``domain``.

    ``domain``: None where the conditions cover all numbers.
    """

    argument: Any
    sets: tuple[Any, ...]
    domain: Domain | None


def cover_of(expr: Any) -> Cover | None:
    """What the conditions cover; None if they leave gaps, or compare other things than one argument with numbers."""
    argument = _argument(expr)
    if argument is None:
        return None
    x = sympy.Dummy(real=True)
    sets, rest = [], sympy.S.Reals
    try:
        for _, condition in expr.args:
            own = condition.xreplace({argument: x}).as_set()
            sets.append(own & rest)
            rest -= own
        whole = sympy.Union(*sets)
    except (NotImplementedError, TypeError, AttributeError):
        return None
    if whole == sympy.S.Reals:
        return Cover(argument, tuple(sets), None)
    if not isinstance(whole, sympy.Interval):
        return None
    return Cover(argument, tuple(sets), Domain(f"the Piecewise in {argument}", float(whole.inf), float(whole.sup)))


def _argument(expr: Any) -> Any:
    """The expression that all conditions compare with numbers, or None."""
    found = set()
    for _, condition in expr.args:
        for relation in condition.atoms(sympy.core.relational.Relational):
            left, right = relation.args
            if left.is_number == right.is_number:
                return None
            found.add(right if left.is_number else left)
    return found.pop() if len(found) == 1 else None


def spline_of(expr: Any, cover: Cover) -> Any | None:
    """The expression by a spline whose pieces are the values, if these are polynomials that fit together."""
    if cover.domain is None:
        return None
    branches = zip(cover.sets, expr.args, strict=True)
    found = [_polynomial(own, value, cover.argument) for own, (value, _) in branches if own is not sympy.S.EmptySet]
    known = sorted(piece for piece in found if piece is not None)
    if len(known) < len(found):
        return None
    longest = max(len(piece) for *_, piece in known)
    pieces = [(*piece, *(0.0,) * (longest - len(piece))) for *_, piece in known]
    breakpoints = [*(first for first, *_ in known), known[-1][1]]
    if not _fits(breakpoints, pieces):
        return None
    return Spline.of_pieces(cover.domain.label, breakpoints, pieces, cover.domain)(cover.argument)


def _polynomial(own: Any, value: Any, argument: Any) -> tuple[float, float, tuple[float, ...]] | None:
    """The ends of a finite interval, and the coefficients there of a polynomial; None for another set or value."""
    x = sympy.Dummy(real=True)
    replaced = value.xreplace({argument: x})
    if not isinstance(own, sympy.Interval) or not (own.inf.is_finite and own.sup.is_finite):
        return None
    if replaced.free_symbols - {x} or not replaced.is_polynomial(x):
        return None
    moved = sympy.Poly(replaced.subs(x, x + own.inf), x)
    return float(own.inf), float(own.sup), tuple(map(float, reversed(moved.all_coeffs())))


def _fits(breakpoints: Sequence[float], pieces: Sequence[tuple[float, ...]]) -> bool:
    """Whether each piece begins where the one before ends."""
    for k, (piece, after) in enumerate(pairwise(pieces)):
        terms = [c * (breakpoints[k + 1] - breakpoints[k]) ** power for power, c in enumerate(piece)]
        size = max(map(abs, terms))
        if not isclose(sum(terms), after[0], rel_tol=_CONTINUOUS, abs_tol=_CONTINUOUS * size):
            return False
    return True


def within(cover: Cover) -> Any:
    """The argument as an expression that has a value in the domain only."""
    domain = cover.domain
    if domain is None:
        return cover.argument
    ends = [x for x in (domain.lowest, domain.highest) if abs(x) != inf]
    breakpoints = ends if len(ends) == 2 else [ends[0], ends[0] + 1.0]
    return Spline.of_pieces(domain.label, breakpoints, [(breakpoints[0], 1.0)], domain)(cover.argument)
