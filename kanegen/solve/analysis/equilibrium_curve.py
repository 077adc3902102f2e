"""Curves of equilibria through folds, by arc length (:mod:`kanegen.solve.analysis.arclength`).

The arc length is that of coordinates and states, in their units, and of the parameter as a fraction of its interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.analysis.arclength import follow, unit_tangent
from kanegen.solve.analysis.balance import Balance
from kanegen.solve.analysis.newton import Root, evaluated
from kanegen.solve.analysis.settle import is_settled, steady_state
from kanegen.solve.functions import CompiledFunctions

_CORRECTIONS = 12
_DIFFERENCE = 1e-6
"""Step of the difference in the parameter, relative to its interval."""


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
    what: str
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

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return self.family.name

    @property
    def reason(self) -> str:
        """Nothing more is known about a search that failed."""
        return ""

    def parameter(self, point: Point) -> float:
        """The value of the parameter."""
        return point.p

    def tangent(self, point: Point) -> Array:
        """The unit tangent (n + 1,); its sign is arbitrary. Raises `SolveError` where the curve is not unique."""
        advice = "fix the coordinates that are undetermined, or use equilibria(), which returns the nearest one"
        return unit_tangent(self, self.slopes(point.balance, point.root.X, point.p), point.p, advice)

    def corrected(self, last: Point, tangent: Array, length: float) -> Point | None:
        """The equilibrium near the end of the tangent, on the plane perpendicular to it; None if there is none."""
        balance, X, p = self.moved(last.balance, last.root.X, last.p, length * tangent)
        across = self.weights * tangent
        best: tuple[Balance, Root, float] | None = None
        try:
            for _ in range(_CORRECTIONS):
                root = evaluated(balance, X, self.family.tolerance)
                if best is not None and best[1].converged and root.error >= best[1].error:
                    break
                best = balance, root, p
                matrix = np.vstack([self.slopes(balance, X, p), across])
                dy = -np.linalg.lstsq(matrix, np.append(root.F, 0.0), rcond=1e-14)[0]
                balance, X, p = self.moved(balance, X, p, dy)
            if best is None or not best[1].converged:
                return None
            balance, root, p = best
            if not is_settled(balance, root, self.family.tolerance):
                balance, root = steady_state(balance, root.X, self.family.tolerance)
        except SolveError:
            return None
        return Point(p, balance, root)

    def at_limit(self, inside: Point, outside: Point, limit: float) -> Point:
        """The equilibrium at the limit between two points."""
        part = (limit - inside.p) / (outside.p - inside.p)
        balance, X = self.placed(inside.balance, inside.root.X + part * (outside.root.X - inside.root.X), limit)
        return Point(limit, *steady_state(balance, X, self.family.tolerance))


def curve(start: Point, family: Family, end: float, step: float, most: int) -> list[Point]:
    """The points of the curve from ``start`` until p leaves the interval between its value there and ``end``.

    The last point is at a limit of the interval, unless ``most`` steps do not leave it. Raises `SolveError` if a step
    fails.
    """
    balance, root, first = start.balance, start.root, start.p
    n_q, n_u, n_s, *_ = (len(part) for part in balance.parts(root.X))
    counted = [float(entry < n_q or n_q + n_u <= entry < n_q + n_u + n_s) for entry in balance.free]
    scale = np.append(evaluated(balance, root.X).scale, 1.0)
    name = balance.description.name
    line = _Curve(family, f"equilibria of {name!r}", abs(end - first), scale, np.array([*counted, 1.0]))
    return [point for point, _ in follow(line, start, end, step, most)]
