"""Particle on a surface
=====================

A particle on the surface r phi = c, in spherical coordinates.

A particle of mass ``m`` is at r (sin phi cos theta, sin phi sin theta, cos phi), where theta is the azimuth and phi
the cone angle from the vertical. The generalized speeds are the components of the velocity v = u1 i + u2 j + u3 k on
the moving triad i (radial, outward), j (azimuthal), k = i x j. A force with the constant components ``F_r``,
``F_theta``, ``F_phi`` on this triad acts on the particle; there is no gravity.

Source: Bajodah (2003), Examples 2.1 and 4.2. The script compares the accelerations with equations (73)-(75) and the
constraint forces with (281)-(283).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import tan
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.2, 0.4, 0.75), "u": (0.5, -0.8, 0.375), "r": None}


def model() -> kg.Model:
    """The particle with its holonomic constraint, differentiated twice by kanegen; u3 is dependent."""
    r, theta, phi = me.dynamicsymbols("r theta phi")
    u1, u2, u3 = me.dynamicsymbols("u1 u2 u3")
    m, c, F_r, F_theta, F_phi = sm.symbols("m c F_r F_theta F_phi")
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
        name="constrained_particle",
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
        parameters={m: 1.5, F_r: 1.3, F_theta: -0.7, F_phi: 2.1, c: 0.9},
    )


def accelerations(q: np.ndarray, u: np.ndarray, p: Mapping[str, float]) -> np.ndarray:
    """u' from equations (73)-(75) of Bajodah (2003)."""
    r, _, phi = q
    u1, u2, u3 = u
    m = p["m"]
    a = m**2 * (1 + phi**2)
    common = m / a * (p["F_r"] + phi * p["F_phi"]) + m**2 / (a * r) * (u2**2 + u3**2 - phi * u2**2 / tan(phi))
    return np.array([common, p["F_theta"] / m - (u1 * u2 - u2 * u3 / tan(phi)) / r, phi * common - u1 * u3 / r])


def constraint_forces(q: np.ndarray, u: np.ndarray, p: Mapping[str, float]) -> np.ndarray:
    """The generalized constraint forces of Bajodah (2003), equations (281)-(283)."""
    r, _, phi = q
    _, u2, u3 = u
    m = p["m"]
    a = m**2 * (1 + phi**2)
    azimuthal = u2**2 / tan(phi)
    radial = (
        (m**2 - a) / a * p["F_r"]
        + m**2 * phi / a * p["F_phi"]
        - m**3 * phi / (a * r) * azimuthal
        + (m**3 - a * m) * (u2**2 + u3**2) / (a * r)
    )
    polar = (
        m**2 * phi / a * p["F_r"]
        + (m**2 * phi**2 - a) / a * p["F_phi"]
        + m**3 * phi / (a * r) * (u2**2 + u3**2 - phi * azimuthal)
        + m * azimuthal / r
    )
    return np.array([radial, 0.0, polar])


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 4.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p = {str(symbol): value for symbol, value in model().parameters.items()}
    motion = list(zip(solution.t, solution.q, solution.u, strict=True))
    difference = [np.abs(solver.rhs(t, q, u)[1] - accelerations(q, u, p)).max() for t, q, u in motion]
    yield "u' against equations (73)-(75)", max(difference), 1e-8
    difference = [np.abs(solver.constraint_force(t, q, u) - constraint_forces(q, u, p)).max() for t, q, u in motion]
    yield "constraint force against (281)-(283)", max(difference), 1e-8
    power = [abs(u @ solver.constraint_force(t, q, u)) for t, q, u in motion]
    yield "power of the constraint force", max(power), 1e-8
    yield "drift of r phi - c", np.abs(solution.q[:, 0] * solution.q[:, 2] - p["c"]).max(), 1e-8


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("coordinates", "speeds", "constraint_force", ax=left)
    kg.plot.strobe(solution, _projection, times=9, ax=right).set_title("seen from above")


def _projection(r: Any, theta: Any, phi: Any) -> list[tuple[Any, Any]]:
    return [(0.0, 0.0), (r * np.sin(phi) * np.cos(theta), r * np.sin(phi) * np.sin(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
