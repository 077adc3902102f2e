"""Brachistochrone
===============

A particle that slides from one point to another in the least time: the curve is what is looked for.

A particle of mass ``m`` slides without friction, with x to the right, y up and gravity ``g`` along -y. It moves along a
curve, whose angle beta against the horizontal is an input: the velocity is parallel to the curve, which is a
nonholonomic constraint. The equations contain the rate of beta, which is the control. q = (x, y), u = (x', y'), named
``v`` and ``w``. The particle starts at rest at the origin, and ends at ``END`` = (10, -6) m; the curve never ascends,
beta <= 0.

The fastest curve is a cycloid with the radius R = 3 m down to its lowest point, at the time pi sqrt(R / g), and from
there a horizontal line along which the particle keeps its speed 2 sqrt(R g) (Bernoulli 1696). The script compares
duration and motion with these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m": 1.0, "g": 9.81}
INITIAL: dict[str, Any] = {
    "t": 0.0, "q": (0.0, 0.0), "u": (1.0, -1.0), "r": (-np.pi / 4, 0.5),
}  # fmt: skip
END = (10.0, -6.0)


def model() -> kg.Model:
    """The particle with the angle of the curve and its rate as inputs."""
    x, y, v, w, beta, rate = me.dynamicsymbols("x y v w beta rate")
    m, g = sm.symbols("m g")
    time = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    return kg.Model(
        name="brachistochrone",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(v - x.diff(time), w - y.diff(time)),
        bodies=(me.Particle("particle", P, m),),
        gravity=-g * N.y,
        nonholonomic_constraints=(w * sm.cos(beta) - v * sm.sin(beta),),
        inputs=(kg.Input(beta, rate=rate),),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in (m, g)},
    )


@cache
def optimum() -> kg.OptimalMotion:
    """The motion of least duration; the guess is a curve that begins vertically, and elsewhere a straight line."""
    problem = kg.OptimalControl(
        model(),
        minimize=kg.Duration,
        duration=(0.2, 20.0),
        start={"x": 0.0, "y": 0.0, "v": 0.0, "w": 0.0},
        end=dict(zip("xy", END, strict=True)),
        bounds={"beta": (-np.pi / 2, 0.0), "rate": (-20.0, 20.0)},
        scheme="radau",
    )
    return problem.solve(guess={"beta": [-np.pi / 2, 0.0]})


def simulate() -> tuple[kg.Solver, kg.Solution]:
    motion = optimum()
    return motion.solver, motion.solution


def fastest(t: np.ndarray) -> tuple[float, np.ndarray]:
    """The least duration, and the places (n, 2) at times."""
    g, radius = DEFAULTS["g"], -END[1] / 2.0
    bottom, speed = np.pi * np.sqrt(radius / g), 2.0 * np.sqrt(radius * g)
    angle = np.minimum(t, bottom) * np.sqrt(g / radius)
    x = radius * (angle - np.sin(angle)) + speed * np.maximum(t - bottom, 0.0)
    return float(bottom + (END[0] - np.pi * radius) / speed), np.column_stack([x, radius * (np.cos(angle) - 1.0)])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    motion = optimum()
    duration, places = fastest(solution.t)
    yield "duration against the cycloid and the line, relative", motion.duration / duration - 1.0, 1e-4
    yield "largest distance from them (m)", np.abs(solution.q - places).max(), 0.02
    energy = (solution.u**2).sum(axis=1) / 2.0 + DEFAULTS["g"] * solution.q[:, 1]
    yield "energy per mass, relative to that at the end", np.abs(energy).max() / (-DEFAULTS["g"] * END[1]), 1e-5
    yield "error of mesh intervals against the integrator", motion.error, 1e-6


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axis = left.subplots()
    _, places = fastest(np.linspace(0.0, solution.t[-1], 200))
    axis.plot(*places.T, color="0.6", label="cycloid and line")
    found = np.array([solution(t)[0] for t in np.linspace(0.0, solution.t[-1], 25)])
    axis.plot(*found.T, "o", markersize=4.0, label="equal times")
    axis.set_aspect("equal")
    axis.set(xlabel="x (m)", ylabel="y (m)")
    axis.legend()
    solution.plot("v", "w", "beta", ax=right)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
