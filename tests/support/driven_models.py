"""A damped mass on a spring under forces that begin, end and bend at known times, and its motion in closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from kanegen.codegen.methods.table import ADAPTIVE as ADAPTIVE

Floats = NDArray[np.float64]
TIME = me.dynamicsymbols._t
FUNCTIONS = ("rhs", "residuals", "jacobians")


@dataclass(frozen=True)
class Drive:
    """A force that is a polynomial of degree 3 or less between ``times``, where it may jump."""

    times: tuple[float, ...]
    value: Callable[[float], float]

    def __call__(self, t: float) -> float:
        return float(self.value(t))

    def __add__(self, other: Drive) -> Drive:
        return Drive((*self.times, *other.times), lambda t: self(t) + other(t))


def table(times: Sequence[float], values: Sequence[float]) -> Drive:
    """Linear interpolation; 0 before and after."""
    return Drive(tuple(times), lambda t: float(np.interp(t, times, values, left=0.0, right=0.0)))


def stairs(times: Sequence[float], values: Sequence[float]) -> Drive:
    """Each value from its time on; 0 before."""
    return Drive(tuple(times), lambda t: [0.0, *values][int(np.searchsorted(times, t, side="right"))])


def sawtooth(period: float, height: float, end: float) -> Drive:
    """A value that rises from 0 to ``height`` in each period."""
    times = np.arange(1, int(end / period) + 1) * period
    return Drive(tuple(times), lambda t: height * (t / period - np.floor(t / period)))


@dataclass(frozen=True)
class Oscillator:
    """``v' = F - k x - c v`` for a mass of 1."""

    k: float = 9.0
    c: float = 0.5

    def move(self, drive: Drive, start: ArrayLike, times: ArrayLike) -> Floats:
        """States (n_t, 2) at increasing ``times``, the first of which has the state ``start``: matrix exponentials."""
        wanted = np.asarray(times, dtype=np.float64)
        inner = [t for t in drive.times if wanted[0] < t < wanted[-1]]
        y, states, places = np.asarray(start, dtype=np.float64), {}, np.union1d(wanted, inner)
        for a, b in zip(places, [*places[1:], places[-1]], strict=True):
            states[a] = y
            y = self._piece(drive, y, a, b)
        return np.array([states[t] for t in wanted])

    def _piece(self, drive: Drive, y: Floats, a: float, b: float) -> Floats:
        """The state at ``b``; the force is a cubic from ``a`` to ``b``, whatever it is at the ends."""
        if b - a <= 1e-14 * abs(a):
            return y
        places = np.array([0.1, 0.35, 0.65, 0.9])
        cubic = np.linalg.solve(np.vander(places, increasing=True), [drive(a + x * (b - a)) for x in places])
        matrix = np.zeros((6, 6))
        matrix[:2, :2] = [[0, 1], [-self.k, -self.c]]
        matrix[1, 2:] = cubic
        matrix[[3, 4, 5], [2, 3, 4]] = np.array([1, 2, 3]) / (b - a)
        ends: Floats = expm(matrix * (b - a)) @ [*y, 1, 0, 0, 0]
        return ends[:2]


def triangle(middle: float, half: float, height: float) -> Drive:
    """A pulse that rises and falls in the time ``half``."""
    return table((middle - half, middle, middle + half), (0.0, height, 0.0))


def symbolic_triangle(middle: Any, half: Any, height: Any) -> Any:
    """The same pulse as a function of the time."""
    return height * sm.Max(0, 1 - sm.Abs(TIME - middle) / half)


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
        ),
        functions=FUNCTIONS,
    )


@cache
def switched() -> kg.Solver:
    """Loads that begin, end and jump: a triangle, a step that is switched on and off, a sawtooth."""
    forces, values = _switching()
    force = forces + _restoring(*sm.symbols("k c"))
    model = point_mass("switched", force, parameters={"m": 1.0, "k": 9.0, "c": 0.5} | values)
    return kg.build(model, functions=FUNCTIONS)


@cache
def lawful() -> kg.Solver:
    """The same force as an input with a law."""
    F = me.dynamicsymbols("F")
    forces, values = _switching()
    force = F + _restoring(*sm.symbols("k c"))
    inputs = [kg.Input(F, law=forces)]
    model = point_mass("lawful", force, inputs=inputs, parameters={"m": 1.0, "k": 9.0, "c": 0.5} | values)
    return kg.build(model, functions=FUNCTIONS)


def _switching() -> tuple[Any, dict[str, float]]:
    middle, half, height, on, off, push, period, ramp = sm.symbols("middle half height on off push period ramp")
    step = sm.Piecewise((push, (on <= TIME) & (off > TIME)), (0, True))
    force = symbolic_triangle(middle, half, height) + step + ramp * (TIME / period - sm.floor(TIME / period))
    values = {"middle": 6.0, "half": 1.5, "height": 0.0, "on": 7.0, "off": 8.0, "push": 0.0, "period": 1e3, "ramp": 0.0}
    return force, values
