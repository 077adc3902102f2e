"""Tracking by a servo-constraint
==============================

A particle on the surface r phi = c that a force drives into a vertical plane.

The particle is that of ``constrained_particle``: its position is r (sin phi cos theta, sin phi sin theta, cos phi),
its speeds are the components of the velocity on the moving triad i, j, k, and its passive holonomic constraint
is r phi = c. The control is the azimuthal force ``F_theta``; ``F_r`` and ``F_phi`` are constant. The servo-constraint
is psi = theta - k with psi'' = Theta1 psi' + Theta2 psi.

Source: Bajodah (2003), Example 7.2. The script compares the control with a corrected form of (520):

    F_theta = m r sin phi ((2 u1 u2 sin phi - 2 u2 u3 cos phi) / (r sin phi)^2 + Theta1 u2 / (r sin phi)
              + Theta2 (theta - k))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import cos, sin
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.2, 0.4, 0.75), "u": (0.5, -0.8, 0.375), "r": (0.0,)}


def model(resolution: str = "moore_penrose") -> kg.Model:
    """The particle with its passive constraint and the servo-constraint; u3 is dependent."""
    r, theta, phi = me.dynamicsymbols("r theta phi")
    u1, u2, u3, F_theta = me.dynamicsymbols("u1 u2 u3 F_theta")
    m, c, F_r, F_phi, k, Theta1, Theta2 = sm.symbols("m c F_r F_phi k Theta1 Theta2")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    azimuth = me.ReferenceFrame("azimuth")
    azimuth.orient_axis(N, N.z, theta)
    triad = me.ReferenceFrame("triad")
    triad.orient_axis(azimuth, azimuth.y, phi - sm.pi / 2)

    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", r * triad.x)
    P.set_vel(N, u1 * triad.x + u2 * triad.y + u3 * triad.z)

    return kg.Model(
        name="particle_tracking",
        frame=N,
        coordinates=(r, theta, phi),
        speeds=(u1, u2, u3),
        kinematics=(
            u1 - r.diff(time),
            u2 - r * sm.sin(phi) * theta.diff(time),
            u3 + r * phi.diff(time),
        ),
        bodies=(me.Particle("particle", P, m),),
        loads=((P, F_r * triad.x + F_theta * triad.y + F_phi * triad.z),),
        holonomic_constraints=(r * phi - c,),
        dependent_speeds=(u3,),
        inputs=(F_theta,),
        parameters={m: 1.5, F_r: 1.3, F_phi: 2.1, c: 0.9, k: 1.0, Theta1: -2.0, Theta2: -1.0},
        control=kg.Servo(theta - k, theta=(Theta1, Theta2), resolution=resolution),
    )


def control_law(q: np.ndarray, u: np.ndarray, p: Mapping[str, float]) -> float:
    """F_theta from the corrected equation (520) of Bajodah (2003)."""
    r, theta, phi = q
    u1, u2, u3 = u
    arm = r * sin(phi)
    inertial = (2 * u1 * u2 * sin(phi) - 2 * u2 * u3 * cos(phi)) / arm**2
    return float(p["m"] * arm * (inertial + p["Theta1"] * u2 / arm + p["Theta2"] * (theta - p["k"])))


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    start = INITIAL["q"], INITIAL["u"]
    return solver, solver.integrate((0.0, 10.0), *start, control=True, rtol=1e-11, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p = solver.parameters
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    law = np.array([control_law(q, u, p) for _, q, u in states])
    yield "F_theta against equation (520)", np.abs(solution.control.values[:, 0] - law).max(), 1e-10
    psi, rate = solution.control.errors[0]
    decay = (psi + (rate + psi) * solution.t) * np.exp(-solution.t)
    yield "theta - k against its desired dynamics", np.abs(solution.q[:, 1] - p["k"] - decay).max(), 1e-8
    yield "drift of r phi - c", np.abs(solution.q[:, 0] * solution.q[:, 2] - p["c"]).max(), 1e-8


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axes = solution.plot("r", ["theta", "phi"], "controls", ax=left)
    axes[1].axhline(solver.parameters["k"], color="gray", linestyle="dotted")
    kg.plot.strobe(solution, _projection, times=9, ax=right).set_title("seen from above")


def _projection(r: Any, theta: Any, phi: Any) -> list[tuple[Any, Any]]:
    return [(0.0, 0.0), (r * np.sin(phi) * np.cos(theta), r * np.sin(phi) * np.sin(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
