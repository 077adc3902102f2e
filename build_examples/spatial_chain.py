"""Spatial chain
=============

A chain of n rigid links connected by universal joints.

In its reference position link i hangs along -z. Its frame is turned by q_(2i-1) about the x axis of the frame before
and by q_(2i) about the new y axis. The link has the length ``l_i``, the mass ``m_i`` with its center half-way, and
the central inertia diag(``Ixx_i``, ``Iyy_i``, ``Izz_i``). Gravity ``g`` acts along -z; u = q'. The chain has 2n
degrees of freedom. Symbolic derivations of its equations suffer from expression swell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

LINKS = 2


def initial(n: int = LINKS) -> dict[str, Any]:
    """The initial state: at rest with q = 0.3, -0.2, 0.3, ... rad."""
    return {"t": 0.0, "q": (0.3, -0.2) * n, "u": (0.0, 0.0) * n, "r": None}


INITIAL: dict[str, Any] = initial()


def model(n: int = LINKS) -> kg.Model:
    """The chain with ``n`` links; defaults m_i = 1 kg, l_i = 1 m, inertias 1/12, 1/12, 1/200 kg m^2."""
    coordinates = me.dynamicsymbols(f"q_1:{2 * n + 1}")
    speeds = me.dynamicsymbols(f"u_1:{2 * n + 1}")
    masses, lengths, Ixx, Iyy, Izz = (sm.symbols(f"{name}_1:{n + 1}") for name in ("m", "l", "Ixx", "Iyy", "Izz"))
    g = sm.Symbol("g")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    joint = me.Point("O")
    joint.set_vel(N, 0)
    parent = N
    bodies = []
    for i in range(n):
        cross = me.ReferenceFrame(f"cross_{i + 1}")
        cross.orient_axis(parent, parent.x, coordinates[2 * i])
        link = me.ReferenceFrame(f"link_{i + 1}")
        link.orient_axis(cross, cross.y, coordinates[2 * i + 1])
        center = joint.locatenew(f"center_{i + 1}", -lengths[i] / 2 * link.z)
        inertia = me.inertia(link, Ixx[i], Iyy[i], Izz[i])
        bodies.append(me.RigidBody(f"link_{i + 1}", center, link, masses[i], (inertia, center)))
        joint = joint.locatenew(f"joint_{i + 1}", -lengths[i] * link.z)
        parent = link

    return kg.Model(
        name=f"spatial_chain_{n}",
        frame=N,
        coordinates=coordinates,
        speeds=speeds,
        kinematics=[u - q.diff(time) for q, u in zip(coordinates, speeds, strict=True)],
        bodies=bodies,
        gravity=-g * N.z,
        parameters={g: 9.81}
        | dict.fromkeys((*masses, *lengths), 1.0)
        | dict.fromkeys((*Ixx, *Iyy), 1.0 / 12.0)
        | dict.fromkeys(Izz, 1.0 / 200.0),
    )


def simulate(n: int = LINKS) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(n))
    start = initial(n)
    return solver, solver.integrate((0.0, 5.0), start["q"], start["u"], rtol=1e-10, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    yield "energy drift (J)", np.ptp([solver.energy(*state) for state in states]), 1e-6
    power = [u @ solver.P(t, q, u) - u @ solver.Q(t, q, u) @ solver.rhs(t, q, u)[1] for t, q, u in states]
    yield "u . (P - Q u') (W)", np.abs(power).max(), 1e-9


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("coordinates", "speeds", ["kinetic_energy", "potential_energy"], ax=left)
    times = np.linspace(0.0, 1.0, 9)
    side = kg.plot.strobe(solution, partial(_joints, solver), times=times, ax=right)
    side.set(title="seen along y, 0 to 1 s", ylabel="z (m)")


def _joints(solver: kg.Solver, *angles: Any) -> list[tuple[Any, Any]]:
    """x and z of the joints, from the rotations of the links about x and y one after the other."""
    zero, one = np.zeros_like(angles[0]), np.ones_like(angles[0])
    frame, place, points = np.broadcast_to(np.eye(3), (zero.size, 3, 3)), np.zeros((zero.size, 3)), [(zero, zero)]
    for i in range(len(angles) // 2):
        (cx, sx), (cy, sy) = ((np.cos(angle), np.sin(angle)) for angle in angles[2 * i : 2 * i + 2])
        about_x = np.moveaxis(np.array([[one, zero, zero], [zero, cx, -sx], [zero, sx, cx]]), -1, 0)
        about_y = np.moveaxis(np.array([[cy, zero, sy], [zero, one, zero], [-sy, zero, cy]]), -1, 0)
        frame = frame @ about_x @ about_y
        place = place - solver.parameters[f"l_{i + 1}"] * frame[:, :, 2]
        points.append((place[:, 0], place[:, 2]))
    return points


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
