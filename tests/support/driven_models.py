"""A damped mass on a spring under forces that begin, end and bend at known times, and its motion in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm
from state_models import point_mass

import kanegen as kg

Floats = NDArray[np.float64]
TIME = me.dynamicsymbols._t
ADAPTIVE = ("dopri5", "dop853", "verner9", "rodas")


@dataclass(frozen=True)
class Drive:
    """A force that is linear in between ``times`` (n,), with ``values`` (n,); 0 before and after."""

    times: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, t: Any) -> Any:
        return np.interp(t, self.times, self.values, left=0.0, right=0.0)


@dataclass(frozen=True)
class Oscillator:
    """``v' = F - k x - c v`` for a mass of 1."""

    k: float = 9.0
    c: float = 0.5

    def move(self, drive: Drive, start: ArrayLike, times: ArrayLike) -> Floats:
        """States (n_t, 2) at increasing ``times``, the first of which has the state ``start``: matrix exponentials."""
        wanted = np.asarray(times, dtype=np.float64)
        inner = [t for t in drive.times if wanted[0] < t < wanted[-1]]
        y, rows, all_times = np.asarray(start, dtype=np.float64), [], np.union1d(wanted, inner)
        for a, b in zip(all_times, [*all_times[1:], all_times[-1]], strict=True):
            if a in wanted:
                rows.append(y)
            y = self._piece(drive, y, a, b)
        return np.array(rows)

    def _piece(self, drive: Drive, y: Floats, a: float, b: float) -> Floats:
        """The state at ``b``; the force is linear from ``a`` to ``b``, whatever it is at the ends."""
        if a == b:
            return y
        first, second = drive(a + (b - a) / 3), drive(a + 2 * (b - a) / 3)
        slope = 3 * (second - first) / (b - a)
        matrix = np.zeros((4, 4))
        matrix[:2] = [[0, 1, 0, 0], [-self.k, -self.c, 1, 0]]
        matrix[2, 3] = 1
        ends: Floats = expm(matrix * (b - a)) @ [*y, 2 * first - second, slope]
        return ends[:2]


def triangle(middle: float, half: float, height: float) -> Drive:
    """A pulse that rises and falls in the time ``half``."""
    return Drive((middle - half, middle, middle + half), (0.0, height, 0.0))


def symbolic_triangle(middle: Any, half: Any, height: Any) -> Any:
    """The same pulse as a function of the time."""
    return sm.Max(0, height * (1 - sm.Abs(TIME - middle) / half))


def _restoring(k: Any, c: Any) -> Any:
    x, v = me.dynamicsymbols("x v")
    return -k * x - c * v


@cache
def pulse_as_law() -> kg.Solver:
    """The pulse from 4.5 s to 7.5 s as an input with a law."""
    F = me.dynamicsymbols("F")
    law = symbolic_triangle(6, sm.Rational(3, 2), 1)
    force = F + _restoring(9, sm.Rational(1, 2))
    return kg.build(point_mass("pulse_as_law", force, inputs=[kg.Input(F, law=law)], parameters={"m": 1.0}))


@cache
def pulse_as_load() -> kg.Solver:
    """The same pulse as a load, with an event at each kink."""
    events = [kg.Event(name, TIME - t) for name, t in (("begins", 4.5), ("peaks", 6), ("ends", 7.5))]
    force = symbolic_triangle(6, sm.Rational(3, 2), 1) + _restoring(9, sm.Rational(1, 2))
    return kg.build(point_mass("pulse_as_load", force, events=events, parameters={"m": 1.0}))


@cache
def driven() -> kg.Solver:
    """An input F, which is 0 by default, a triangular pulse, events at the times a, b, c and where x is ``level``."""
    F, x = me.dynamicsymbols("F x")
    k, c, middle, half, height, level = sm.symbols("k c middle half height level")
    events = [kg.Event(name, TIME - sm.Symbol(f"t_{name}")) for name in ("a", "b", "c")]
    return kg.build(
        point_mass(
            "driven",
            F + symbolic_triangle(middle, half, height) + _restoring(k, c),
            inputs=[kg.Input(F, default=0.0)],
            events=[*events, kg.Event("passes", x - level)],
            parameters={"m": 1.0, "k": 9.0, "c": 0.5, "middle": 6.0, "half": 1.5, "height": 0.0, "level": 1e3}
            | {"t_a": 1e3, "t_b": 1e3, "t_c": 1e3},
        )
    )
