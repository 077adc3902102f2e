"""Pendulum of n links
===================

A planar pendulum of n point masses on a cart.

The cart of mass ``m_0`` moves along x. Link i is massless, has the length ``l_i`` and the direction (cos theta_i, sin
theta_i) with theta_i measured from +x, and carries the point mass ``m_i``. Gravity ``g`` acts along -y; u = q'. The
system is often used to study how a method scales with the number of links: the mass matrix is full, but absolute
angles keep it simple.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import pi
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

LINKS = 3


def initial(n: int = LINKS) -> dict[str, Any]:
    """The initial state: at rest with x = 0 and theta_i = -pi/2 + 0.1 i."""
    q = (0.0, *(-pi / 2 + 0.1 * i for i in range(1, n + 1)))
    return {"t": 0.0, "q": q, "u": (0.0,) * (n + 1), "r": None}


INITIAL: dict[str, Any] = initial()


def model(n: int = LINKS) -> kg.Model:
    """The pendulum with ``n`` links: n + 1 degrees of freedom, defaults m_i = 1 kg and l_i = 1/n m."""
    x, *theta = coordinates = me.dynamicsymbols(f"x theta_1:{n + 1}")
    speeds = me.dynamicsymbols(f"u_0:{n + 1}")
    masses = sm.symbols(f"m_0:{n + 1}")
    lengths = sm.symbols(f"l_1:{n + 1}")
    g = sm.Symbol("g")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    point = O.locatenew("cart", x * N.x)
    bodies = [me.Particle("cart", point, masses[0])]
    for i in range(n):
        link = me.ReferenceFrame(f"link_{i + 1}")
        link.orient_axis(N, N.z, theta[i])
        point = point.locatenew(f"P_{i + 1}", lengths[i] * link.x)
        bodies.append(me.Particle(f"mass_{i + 1}", point, masses[i + 1]))

    return kg.Model(
        name=f"n_link_pendulum_{n}",
        frame=N,
        coordinates=coordinates,
        speeds=speeds,
        kinematics=[u - q.diff(time) for q, u in zip(coordinates, speeds, strict=True)],
        bodies=bodies,
        gravity=-g * N.y,
        parameters={g: 9.81} | dict.fromkeys(masses, 1.0) | dict.fromkeys(lengths, 1.0 / n),
    )


def simulate(n: int = LINKS) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(n))
    start = initial(n)
    return solver, solver.integrate((0.0, 5.0), start["q"], start["u"], rtol=1e-10, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    yield "energy drift (J)", np.ptp([solver.energy(*state) for state in states]), 1e-6
    # x is cyclic and no horizontal force acts, so that the horizontal momentum stays zero.
    yield "horizontal momentum (N s)", max(abs(solver.momentum(*state)[0]) for state in states), 1e-6


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("x", list(solver.description.coordinates[1:]), ["kinetic_energy", "potential_energy"], ax=left)
    times = np.linspace(0.0, 0.6, 7)
    kg.plot.strobe(solution, partial(_chain, solver), times=times, ax=right).set_title("0 to 0.6 s")


def _chain(solver: kg.Solver, x: Any, *angles: Any) -> list[tuple[Any, Any]]:
    """Cart and masses."""
    points = [(x, 0.0 * x)]
    for i, theta in enumerate(angles, start=1):
        length = solver.parameters[f"l_{i}"]
        points.append((points[-1][0] + length * np.cos(theta), points[-1][1] + length * np.sin(theta)))
    return points


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
