"""Curves of equilibria through folds, by arc length.

The method is that of H. B. Keller ("Numerical solution of bifurcation and nonlinear eigenvalue problems", in
P. H. Rabinowitz (ed.), Applications of Bifurcation Theory, Academic Press 1977, 359-384): the parameter is an unknown,
each step goes along the tangent of the curve, and the corrections are perpendicular to it. The arc length is that of
coordinates and states, in their units, and of the parameter as a fraction of its interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.analysis.balance import Balance
from kanegen.solve.analysis.newton import Root, evaluated
from kanegen.solve.analysis.settle import is_settled, steady_state
from kanegen.solve.functions import CompiledFunctions

_CORRECTIONS = 12
_SMALLEST = 1e-7
"""Steps below this fraction of the largest step end the curve with an error."""
_TURN = 0.95
"""Cosine of the largest angle between the tangents at both ends of a step."""
_GROWTH = 1.4
_DIFFERENCE = 1e-6
"""Step of the difference in the parameter, relative to its interval."""
_DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class Family:
    """The equations of the equilibria as functions of the parameter p.

    ``functions`` (p) are those of the solver with this value; ``entry`` is the index in X of an input that is the
    parameter, or None. ``tolerance`` is that of :meth:`kanegen.Solver.equilibrium`.
    """

    name: str
    functions: Callable[[float], CompiledFunctions]
    entry: int | None
    tolerance: float


@dataclass(frozen=True, eq=False)
class Point:
    """An equilibrium on the curve with its equations."""

    p: float
    balance: Balance
    root: Root


@dataclass(frozen=True, eq=False)
class _Curve:
    """The curve in y = (unknowns, p), with the units of its entries and their weights in the arc length."""

    family: Family
    interval: float
    scale: Array
    weights: Array

    def placed(self, balance: Balance, X: Array, p: float) -> tuple[Balance, Array]:
        """The equations and X at a value of the parameter."""
        if self.family.entry is None:
            return replace(balance, functions=self.family.functions(p)), X
        X = X.copy()
        X[self.family.entry] = p
        return balance, X

    def moved(self, balance: Balance, X: Array, p: float, dy: Array) -> tuple[Balance, Array, float]:
        """The equations, X and p after the change ``dy``."""
        new = X.copy()
        new[list(balance.free)] += self.scale[:-1] * dy[:-1]
        value = p + self.interval * float(dy[-1])
        return *self.placed(balance, new, value), value

    def slopes(self, balance: Balance, X: Array, p: float) -> Array:
        """Derivatives of F in y, (m, n + 1)."""
        h = _DIFFERENCE * self.interval
        above, below = (placed.values(Y) for placed, Y in (self.placed(balance, X, p + d) for d in (h, -h)))
        on_p = (above - below) / (2.0 * h) * self.interval
        return np.column_stack([balance.jacobian(X) * self.scale[:-1], on_p])

    def tangent(self, balance: Balance, X: Array, p: float) -> Array:
        """The unit tangent (n + 1,); its sign is arbitrary. Raises `SolveError` where the curve is not unique."""
        J = self.slopes(balance, X, p)
        sizes = np.linalg.norm(J, axis=1, keepdims=True)
        _, values, V = np.linalg.svd(J / np.where(sizes > 0.0, sizes, 1.0))
        rank = int((values > _DEPENDENT * values[0]).sum()) if values.size else 0
        length = float(np.linalg.norm(self.weights * V[-1]))
        if rank != len(V) - 1 or length == 0.0:
            raise SolveError(
                f"the equilibria of {balance.description.name!r} at {self.family.name} = {p:.6g} are no curve: "
                f"{len(V) - rank} directions of neighboring equilibria; fix the coordinates that are undetermined, or "
                "use equilibria(), which returns the nearest one"
            )
        direction: Array = V[-1] / length
        return direction


def curve(start: Point, family: Family, end: float, step: float, most: int) -> list[Point]:
    """The points of the curve from ``start`` until p leaves the interval between its value there and ``end``.

    The last point is at a limit of the interval, unless ``most`` steps do not leave it. Raises `SolveError` if a step
    fails.
    """
    balance, root, first = start.balance, start.root, start.p
    n_q, n_u, n_s, *_ = (len(part) for part in balance.parts(root.X))
    counted = [float(entry < n_q or n_q + n_u <= entry < n_q + n_u + n_s) for entry in balance.free]
    scale = np.append(evaluated(balance, root.X).scale, 1.0)
    line = _Curve(family, abs(end - first), scale, np.array([*counted, 1.0]))
    tangent = line.tangent(balance, root.X, first)
    tangent *= np.sign(tangent[-1] * (end - first)) or 1.0
    points, length = [start], step
    for _ in range(most):
        point, tangent, length = _step(line, points[-1], tangent, length, step)
        if not min(first, end) <= point.p <= max(first, end):
            points.append(
                _at_limit(line, points[-1], point, first if abs(point.p - first) < abs(point.p - end) else end)
            )
            break
        points.append(point)
    return points


def _step(line: _Curve, last: Point, tangent: Array, length: float, largest: float) -> tuple[Point, Array, float]:
    """The next point with its tangent, and the length of the next step."""
    start = length
    while length > _SMALLEST * largest:
        found = _corrected(line, last, tangent, length)
        if found is not None:
            new = line.tangent(found.balance, found.root.X, found.p)
            cosine = float((line.weights * tangent) @ (line.weights * new))
            if abs(cosine) >= _TURN or length <= 1e3 * _SMALLEST * largest:
                return (
                    found,
                    new * (np.sign(cosine) or 1.0),
                    min(largest, length * (_GROWTH if length == start else 1.0)),
                )
        length /= 2.0
    raise SolveError(
        f"the curve of equilibria of {last.balance.description.name!r} cannot be followed beyond "
        f"{line.family.name} = {last.p:.6g}: no equilibrium was found at a distance of {length:.3g}"
    )


def _corrected(line: _Curve, last: Point, tangent: Array, length: float) -> Point | None:
    """The equilibrium near the end of the tangent, on the plane perpendicular to it; None if there is none."""
    balance, X, p = line.moved(last.balance, last.root.X, last.p, length * tangent)
    across = line.weights * tangent
    best: tuple[Balance, Root, float] | None = None
    try:
        for _ in range(_CORRECTIONS):
            root = evaluated(balance, X, line.family.tolerance)
            if best is not None and best[1].converged and root.error >= best[1].error:
                break
            best = balance, root, p
            matrix = np.vstack([line.slopes(balance, X, p), across])
            dy = -np.linalg.lstsq(matrix, np.append(root.F, 0.0), rcond=1e-14)[0]
            balance, X, p = line.moved(balance, X, p, dy)
        if best is None or not best[1].converged:
            return None
        balance, root, p = best
        if not is_settled(balance, root, line.family.tolerance):
            balance, root = steady_state(balance, root.X, line.family.tolerance)
    except SolveError:
        return None
    return Point(p, balance, root)


def _at_limit(line: _Curve, inside: Point, outside: Point, limit: float) -> Point:
    """The equilibrium at the limit between two points."""
    part = (limit - inside.p) / (outside.p - inside.p)
    balance, X = line.placed(inside.balance, inside.root.X + part * (outside.root.X - inside.root.X), limit)
    return Point(limit, *steady_state(balance, X, line.family.tolerance))
