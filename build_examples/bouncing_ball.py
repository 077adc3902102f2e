"""Bouncing ball
=============

A ball that bounces until it is at rest.

A particle of mass ``m`` falls under gravity ``g`` from the height z = 1 m onto a floor with the coefficient of
restitution ``e``. It bounces infinitely often in a finite time (Zeno behavior): each flight between two impacts takes
e times as long as the one before, and all bounces are over at t0 (1 + e) / (1 - e), where t0 is the time of the first
fall. After that the contact stays closed under the weight of the ball.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m": 0.5, "g": 9.81, "e": 0.8}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.0,), "u": (0.0,), "r": None}
CONTACT = "floor"


def model() -> kg.Model:
    """The ball with its unilateral constraint z >= 0."""
    z = me.dynamicsymbols("z")
    u1 = me.dynamicsymbols("u1")
    m, g, e = symbols = sm.symbols("m g e")

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    ball = me.Particle("ball", O.locatenew("center", z * N.z), m)

    return kg.Model(
        name="bouncing_ball",
        frame=N,
        coordinates=(z,),
        speeds=(u1,),
        kinematics=(u1 - z.diff(me.dynamicsymbols._t),),
        bodies=(ball,),
        gravity=-g * N.z,
        contacts=(kg.Unilateral(z, law=kg.Restitution(e), name=CONTACT),),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
        shapes={ball: kg.shapes.Sphere(0.04, offset=(0, 0, 0.04)), N: kg.shapes.Plane(0.6)},
    )


def impact_times(count: int, p: Mapping[str, float] = DEFAULTS) -> np.ndarray:
    """Times of the first ``count`` impacts, s."""
    fall = sqrt(2.0 * INITIAL["q"][0] / p["g"])
    flights = 2.0 * fall * p["e"] ** np.arange(1, count)
    return fall + np.concatenate([[0.0], np.cumsum(flights)])


def zeno_time(p: Mapping[str, float] = DEFAULTS) -> float:
    """The accumulation point of the impacts, s."""
    return sqrt(2.0 * INITIAL["q"][0] / p["g"]) * (1.0 + p["e"]) / (1.0 - p["e"])


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 6.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def bounces(solution: kg.Solution) -> list[kg.results.EventRecord]:
    """The impacts with a rebound. The last impact, before the ball comes to rest, has none."""
    return [event for event in solution.events if event.kind == "impact" and event.u_after[0] > 0.0]


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    impacts = bounces(solution)
    times = np.array([event.t for event in impacts])
    yield "times of all impacts (s)", np.abs(times - impact_times(len(times))).max(), 1e-10
    (rest,) = (event.t for event in solution.events if event.kind == "rests")
    yield "time of rest (s)", rest - zeno_time(), 1e-10
    lost = [_kinetic(event.u_before) * (1.0 - DEFAULTS["e"] ** 2) - _lost(event) for event in impacts]
    yield "energy lost in an impact (J)", max(map(abs, lost)), 1e-12
    at_rest = solution.t > zeno_time() + 1e-3
    yield "speed at rest (m/s)", np.abs(solution.u[at_rest]).max(), 1e-12
    weight = DEFAULTS["m"] * DEFAULTS["g"]
    yield "contact force at rest less the weight (N)", np.abs(solution.contacts.forces[at_rest] - weight).max(), 1e-9


def _kinetic(u: np.ndarray) -> float:
    return float(DEFAULTS["m"] * u[0] ** 2 / 2)


def _lost(event: kg.results.EventRecord) -> float:
    return _kinetic(event.u_before) - _kinetic(event.u_after)


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axes = solution.plot("z", "u1", "contact forces", ax=left)
    for axis in axes:
        axis.axvline(zeno_time(), color="k", linestyle=":")
    kg.plot.phase(solution, "z", "u1", ax=right)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
