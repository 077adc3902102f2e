"""Slopes at the points of tables: of cubic splines, and of interpolants that rise and fall with the points.

The ordinates are numbers of any kind (floats, mpmath, rows of arrays) or nodes of a graph, of which the slopes are
then nodes. Abscissae are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

KINDS: Final = ("cubic", "natural", "monotone", "linear")
"""Kinds of tables; those of the last kind have no slopes."""

Choose: TypeAlias = Callable[[Any, Any, Any], Any]
"""The second value where the first one is positive, else the third one."""


def choose(x: Any, positive: Any, other: Any) -> Any:
    """`Choose` for plain numbers."""
    return positive if x > 0 else other


def slopes(x: Sequence[Any], y: Sequence[Any], kind: str, choose: Choose = choose) -> list[Any]:
    """The slopes at each point of an interpolant of a kind with slopes; ``x`` increases.

    ``"cubic"``: a cubic spline whose first two and last two pieces are one polynomial each (not-a-knot), a parabola for
    3 points; ``"natural"``: a cubic spline without curvature at the ends; ``"monotone"``: weighted harmonic means
    (Fritsch and Butland 1984), zero at a turning point. 2 points have the slope of the line.
    """
    h = [b - a for a, b in pairwise(x)]
    rises = [(b - a) * (1 / length) for (a, b), length in zip(pairwise(y), h, strict=True)]
    if len(rises) == 1:
        return [rises[0], rises[0]]
    return _monotone(h, rises, choose) if kind == "monotone" else _spline(h, rises, kind)


def pieces(x: Sequence[Any], y: Sequence[Any], slope: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The cubics between the points: coefficients of ascending powers of the distance from the point before."""
    result = []
    for k, (a, b) in enumerate(pairwise(x)):
        inverse = 1 / (b - a)
        rise = (y[k + 1] - y[k]) * inverse
        bend = (slope[k] - rise) + (slope[k + 1] - rise)
        result.append((y[k], slope[k], ((rise - slope[k]) - bend) * inverse, bend * (inverse * inverse)))
    return result


# -- splines -----------------------------------------------------------------------------------------------------------


def _spline(h: Sequence[Any], rises: Sequence[Any], kind: str) -> list[Any]:
    """Solve the tridiagonal equations of the slopes; what depends on the abscissae alone is a number."""
    below, diagonal, above, right = _equations(h, rises, kind)
    for k in range(1, len(right)):
        factor = below[k] / diagonal[k - 1]
        diagonal[k] -= factor * above[k - 1]
        right[k] -= right[k - 1] * factor
    found = [right[-1] * (1 / diagonal[-1])]
    for k in range(len(right) - 2, -1, -1):
        found.append((right[k] - found[-1] * above[k]) * (1 / diagonal[k]))
    return found[::-1]


def _equations(h: Sequence[Any], rises: Sequence[Any], kind: str) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """The lower, main and upper diagonal, and the right sides: equal curvatures on both sides of each inner point."""
    inner = range(1, len(h))
    below = [0, *h[1:], 0]
    diagonal = [0, *(2 * (h[k - 1] + h[k]) for k in inner), 0]
    above = [0, *h[:-1], 0]
    right = [None, *(rises[k - 1] * (3 * h[k]) + rises[k] * (3 * h[k - 1]) for k in inner), None]
    for end, (a, b), (near, next_) in ((0, h[:2], rises[:2]), (-1, h[:-3:-1], rises[:-3:-1])):
        if kind == "natural":
            diagonal[end], beside, right[end] = 2, 1, near * 3
        elif len(h) == 2:  # one parabola
            diagonal[end], beside, right[end] = 1, 1, near * 2
        else:
            diagonal[end], beside = b, a + b
            right[end] = near * ((3 * a + 2 * b) * b / (a + b)) + next_ * (a * a / (a + b))
        (below if end else above)[end] = beside
    return below, diagonal, above, right


# -- monotone interpolants ---------------------------------------------------------------------------------------------


def _monotone(h: Sequence[Any], rises: Sequence[Any], choose: Choose) -> list[Any]:
    inner = []
    for (a, b), (before, after) in zip(pairwise(h), pairwise(rises), strict=True):
        product = before * after
        # Where the points are level or turn, the slope is zero, and the divisor, which can be zero too, is not used.
        divisor = choose(product, after * (a + 2 * b) + before * (2 * a + b), before * 0 + 1)
        inner.append(choose(product, product * (3 * (a + b)) / divisor, before * 0))
    first = _end(h[0], h[1], rises[0], rises[1], choose)
    return [first, *inner, _end(h[-1], h[-2], rises[-1], rises[-2], choose)]


def _end(a: Any, b: Any, near: Any, next_: Any, choose: Choose) -> Any:
    """The slope of the parabola through three points, limited so that the last piece does not turn."""
    slope = near * ((2 * a + b) / (a + b)) - next_ * (a / (a + b))
    steepest = near * 3
    # Where the rises have opposite signs, slopes beyond three times the rise turn.
    limited = choose(choose(near, slope - steepest, steepest - slope), steepest, slope)
    return choose(slope * near, choose(near * next_, slope, limited), near * 0)
