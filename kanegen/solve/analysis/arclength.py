"""Curves of solutions through folds, by arc length.

The method is that of H. B. Keller ("Numerical solution of bifurcation and nonlinear eigenvalue problems", in
P. H. Rabinowitz (ed.), Applications of Bifurcation Theory, Academic Press 1977, 359-384): the parameter is an unknown,
each step goes along the tangent of the curve, and the corrections are perpendicular to it.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError

_SMALLEST = 1e-7
"""Steps below this fraction of the largest step end the curve with an error."""
_TURN = 0.95
"""Cosine of the largest angle between the tangents at both ends of a step."""
_GROWTH = 1.4
_DEPENDENT = 1e-9

P = TypeVar("P")


class Line(Protocol[P]):
    """A curve of points whose parameter is an unknown, the last one, as a fraction of its interval."""

    @property
    def name(self) -> str:
        """The name of the parameter."""

    @property
    def what(self) -> str:
        """The points in messages, such as ``"equilibria of 'ring'"``."""

    @property
    def weights(self) -> Array:
        """The weights of the unknowns in the arc length, (n + 1,)."""

    @property
    def reason(self) -> str:
        """Why the last point was not found; empty if that is not known."""

    def parameter(self, point: P) -> float:
        """The value of the parameter."""

    def tangent(self, point: P) -> Array:
        """The unit tangent (n + 1,); its sign is arbitrary. Raises `SolveError` where the curve is not unique."""

    def corrected(self, last: P, tangent: Array, length: float) -> P | None:
        """The point near the end of the tangent, on the plane perpendicular to it; None if there is none."""

    def at_limit(self, inside: P, outside: P, limit: float) -> P:
        """The point with this value of the parameter between two points."""


def follow(line: Line[P], start: P, end: float, step: float, most: int) -> list[tuple[P, Array]]:
    """The points of the curve with their tangents, from ``start`` until the parameter leaves the interval to ``end``.

    The last point is at a limit of the interval, unless ``most`` steps do not leave it. Raises `SolveError` if a step
    fails.
    """
    first, tangent = line.parameter(start), line.tangent(start)
    tangent *= np.sign(tangent[-1] * (end - first)) or 1.0
    points, length = [(start, tangent)], step
    for _ in range(most):
        last, tangent = points[-1]
        point, new, length = _step(line, last, tangent, length, step)
        p = line.parameter(point)
        if not min(first, end) <= p <= max(first, end):
            limit = first if abs(p - first) < abs(p - end) else end
            points.append((line.at_limit(last, point, limit), new))
            break
        points.append((point, new))
    return points


def _step(line: Line[P], last: P, tangent: Array, length: float, largest: float) -> tuple[P, Array, float]:
    """The next point with its tangent, and the length of the next step."""
    start = length
    while length > _SMALLEST * largest:
        found = line.corrected(last, tangent, length)
        if found is not None:
            new = line.tangent(found)
            cosine = float((line.weights * tangent) @ (line.weights * new))
            if abs(cosine) >= _TURN or length <= 1e3 * _SMALLEST * largest:
                growth = _GROWTH if length == start else 1.0
                return found, new * (np.sign(cosine) or 1.0), min(largest, length * growth)
        length /= 2.0
    raise SolveError(
        f"the curve of {line.what} cannot be followed beyond {line.name} = {line.parameter(last):.6g}: none was found "
        f"at a distance of {length:.3g}{f'; {line.reason}' if line.reason else ''}"
    )


def unit_tangent(line: Line[Any], matrix: Array, p: float, advice: str) -> Array:
    """The unit tangent (n + 1,) from the derivatives (m, n + 1) of the equations; its sign is arbitrary.

    Raises `SolveError` with the advice where the solutions are no curve.
    """
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    _, values, V = np.linalg.svd(matrix / np.where(sizes > 0.0, sizes, 1.0))
    rank = int((values > _DEPENDENT * values[0]).sum()) if values.size else 0
    length = float(np.linalg.norm(line.weights * V[-1]))
    if rank != len(V) - 1 or length == 0.0:
        raise SolveError(
            f"the {line.what} at {line.name} = {p:.6g} are no curve: {len(V) - rank} directions of neighboring ones; "
            f"{advice}"
        )
    direction: Array = V[-1] / length
    return direction
