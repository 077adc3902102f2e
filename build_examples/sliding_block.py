"""Block over a hill in least time
===============================

A block that is pushed over a hill as fast as possible: an optimal control that jumps from one bound to the other.

The block is a particle of mass ``m`` on the road ``y = a x^2 exp(b - x / c)`` without friction, with x to the right, y
up and gravity ``g`` along -y. The force F along the road is the control, between ``F_MIN`` and ``F_MAX``. q = (x,), u =
(x',), named ``v``. The block moves from rest at x = 0 to rest at x = ``END``. The road and its parameters are those of
an example of opty (Moore and van den Bogert 2018, "opty: software for trajectory optimization and parameter
identification").

The fastest motion has the largest force up to a point, and the smallest from there on. Work and energy give the speed
at every point of the road, and a quadrature the time, without equations of motion. The script compares the optimal
motion with these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import quad
from scipy.optimize import brentq

import kanegen as kg

DEFAULTS = {"m": 1.0, "g": 9.81, "a": 1.5, "b": 2.5, "c": 1.0}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.5,), "u": (1.0,), "r": (0.0,)}
F_MIN, F_MAX, END = -10.0, 15.0, 10.0


def model() -> kg.Model:
    """The block with the force along the road as its input."""
    x, v, F = me.dynamicsymbols("x v F")
    m, g, a, b, c = sm.symbols("m g a b c")
    height = a * x**2 * sm.exp(b - x / c)
    slope = height.diff(x)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    block = O.locatenew("block", x * N.x + height * N.y)
    block.set_vel(N, v * N.x + slope * v * N.y)
    along = (N.x + slope * N.y) / sm.sqrt(1 + slope**2)
    return kg.Model(
        name="sliding_block",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(me.dynamicsymbols._t),),
        bodies=(me.Particle("block", block, m),),
        gravity=-g * N.y,
        loads=((block, F * along),),
        inputs=(F,),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in (m, g, a, b, c)},
    )


@cache
def optimum() -> kg.OptimalMotion:
    """The motion of least duration."""
    bounds = {"F": (F_MIN, F_MAX), "x": (0.0, END), "v": (0.0, None)}
    ends = {"x": 0.0, "v": 0.0}, {"x": END, "v": 0.0}
    return kg.OptimalControl(model(), kg.Duration, (0.5, 30.0), *ends, bounds).solve()


def simulate() -> tuple[kg.Solver, kg.Solution]:
    motion = optimum()
    return motion.solver, motion.solution


def road(x: float) -> tuple[float, float]:
    """Height and slope of the road."""
    e = DEFAULTS["a"] * np.exp(DEFAULTS["b"] - x)
    return e * x**2, e * x * (2.0 - x)


def fastest() -> tuple[float, float]:
    """Duration and place of the switch, from work and energy."""

    def path(x: float) -> float:
        return float(np.hypot(1.0, road(x)[1]))

    def length(first: float, last: float) -> float:
        return float(quad(path, first, last, epsabs=1e-12, limit=200)[0])

    def energies(x: float) -> tuple[float, float]:
        """Kinetic energy per mass of the motions from the start and to the end."""
        gained = F_MAX * length(0.0, x) - DEFAULTS["g"] * road(x)[0]
        left = -F_MIN * length(x, END) - DEFAULTS["g"] * (road(x)[0] - road(END)[0])
        return gained, left

    switch = brentq(lambda x: float(np.subtract(*energies(x))), 1.0, END - 0.1, xtol=1e-13)

    def slowness(x: float, which: int) -> float:
        return float(path(x) / np.sqrt(2.0 * energies(x)[which]))

    # Speeds grow as roots of the distances from the ends: x = s^2, and x = END - s^2.
    first = quad(lambda s: 2.0 * s * slowness(s**2, 0), 0.0, np.sqrt(switch), epsabs=1e-9)[0]
    last = quad(lambda s: 2.0 * s * slowness(END - s**2, 1), 0.0, np.sqrt(END - switch), epsabs=1e-9)[0]
    return float(first + last), float(switch)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    motion = optimum()
    duration, switch = fastest()
    yield "duration against work and energy, relative", motion.duration / duration - 1.0, 1e-4
    early, late = (solution["F"][beyond] for beyond in (solution["x"] < switch - 0.1, solution["x"] > switch + 0.1))
    yield "largest force before the switch", np.abs(early - F_MAX).max(), 1e-3
    yield "smallest force after it", np.abs(late - F_MIN).max(), 1e-3
    yield "error of mesh intervals against the integrator", motion.error, 1e-6
    yield "error of the whole motion", motion.replay_error, 1e-3


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    upper, lower = figure.subfigures(2, 1, height_ratios=(2, 3))
    axis = upper.subplots()
    x = np.linspace(0.0, END, 300)
    axis.plot(x, [road(each)[0] for each in x], color="0.6")
    times = np.linspace(0.0, solution.t[-1], 25)
    places = np.array([solution(t)[0][0] for t in times])
    axis.plot(places, [road(each)[0] for each in places], "o", markersize=4.0)
    axis.set(xlabel="x (m)", ylabel="y (m)")
    solution.plot("v", "F", ax=lower)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
