"""A body at rest, driven by forces that are known in time, and its motion integrated between their kinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp
from state_models import point_mass

import kanegen as kg

t = me.dynamicsymbols._t
x, v = me.dynamicsymbols("x v")


class Force(NamedTuple):
    """A force (N) as SymPy and as Python has it, and the times (s) at which it has a kink or jumps."""

    expression: Any
    value: Callable[[float], float]
    kinks: tuple[float, ...]


TABLE = ([0.0, 5.0, 5.001, 6.999, 7.0, 25.0], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
KNOTS = (5.0, 5.001, 6.999, 7.0)

FORCES = {
    "pulse": Force(sm.Max(0, 1 - sm.Abs(t - 6) / 1.5), lambda t: max(0.0, 1 - abs(t - 6) / 1.5), (4.5, 6.0, 7.5)),
    "step": Force(sm.Piecewise((1, (t > 5) & (t < 5.5)), (0, True)), lambda t: float(5 < t < 5.5), (5.0, 5.5)),
    "table": Force(kg.Spline(*TABLE, kind="linear", name="push")(t), lambda t: float(np.interp(t, *TABLE)), KNOTS),
    "curved": Force(
        sm.Piecewise((1, t**2 > 30), (0, True)), lambda t: float(t * t > 30), (float(np.sqrt(30.0)),)
    ),
}  # fmt: skip
"""Forces of which a method that does not know them sees nothing: the body is at rest when they begin."""


def driven(name: str, **options: Any) -> kg.Model:
    """``x'' = F(t) - 9 x - v/2``, at rest at the start."""
    start = {"initial": {"x": 0.0, "v": 0.0}, "parameters": {"m": 1.0}}
    return point_mass(name, FORCES[name].expression - 9 * x - v / 2, **(start | options))


@cache
def reference(name: str, t1: float) -> np.ndarray[Any, Any]:
    """x and v at ``t1``, of DOP853 at 1e-13 from kink to kink."""
    force, y, t0 = FORCES[name], np.zeros(2), 0.0
    for end in (*(kink for kink in force.kinks if kink < t1), t1):
        y = _part(force.value, t0, end, y)
        t0 = end
    return y


def _part(force: Callable[[float], float], t0: float, t1: float, y: Sequence[float]) -> np.ndarray[Any, Any]:
    def rate(time: float, y: np.ndarray[Any, Any]) -> list[float]:
        inside = min(max(time, t0 + 1e-12), t1 - 1e-12)
        return [y[1], force(inside) - 9 * y[0] - y[1] / 2]

    return solve_ivp(rate, (t0, t1), y, "DOP853", rtol=1e-13, atol=1e-15).y[:, -1]
