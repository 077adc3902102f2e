"""Slider-crank with an elastic rod
================================

A slider-crank whose rod bends and stretches, the problem "Slider Crank" of the Test Set for IVP Solvers.

Simeon (1996), "Modelling a flexible slider crank mechanism by a mixed system of DAEs and PDEs", Mathematical Modelling
of Systems 2(1); Mazzia and Magherini (2008), "Test Set for Initial Value Problem Solvers", release 2.4. The crank turns
with 150 rad/s, without gravity and damping.

phi1 and phi2 are the angles of the crank (`l1` = 0.15 m) and of the rod (`L2` = 0.3 m) from the x axis, x3 is the
position of the slider. q_rod = (q1, q2, q3, q4): lateral shapes sin(pi x/L2) and sin(2 pi x/L2), m, and the axial
displacements of the middle and of the end, m, with polynomials of second degree between them. Loop constraints: the end
of the rod is at the slider; the crank turns as prescribed.

The test set describes the rod by integrals of its shape functions over the mass, with 15 times those of the axial
shapes with each other; its numbers are kept. Accelerations at the start and the state after 0.1 s are compared with
those that it publishes. The nine digits of the start determine the axial displacements, 1e-5 m, to five digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

PI = 3.1415927
"""As in the test set."""

DEFAULTS = {"l1": 0.15, "m1": 0.36, "m3": 0.075552, "J1": 0.002727, "Omega": 150.0}
L2, M2, J2 = 0.3, 0.151104, 0.0045339259
WIDTH, DENSITY, YOUNGS_MODULUS = 0.008, 7870.0, 2e11
END = 0.1

START_Q = (0.0, 0.0, 0.450016933, 0.0, 0.0, 0.103339863e-4, 0.169327969e-4)
START_U = (150.0, -74.9957670, -0.268938672e-5, 0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5)
START_ACCELERATIONS = (0.0, -1.344541576e-3, -5.062194923e3, -6.8331427e-5, 1.4e-8, -4.268463211, 2.098334688e-1)
END_Q = (
    15.0,
    -0.3311734987910881,
    0.1697373326718410,
    1.893192460e-4,
    2.375751866e-5,
    -5.323907989e-6,
    -8.363283142e-6,
)
END_U = (150.0, 60.25346682645789, -8.753116989887888, -3.005536801e-2, -5.500488292e-3, 4.978243405e-4, 1.104933471e-3)

INITIAL = {"t": 0.0, "q": START_Q, "u": START_U}
"""As published, with nine digits; runs begin at the nearest state that satisfies the constraints."""


def model() -> kg.Model:
    """The mechanism with the numbers of the test set."""
    phi1, phi2, x3, omega1, omega2, v3 = me.dynamicsymbols("phi1 phi2 x3 omega1 omega2 v3")
    l1, m1, m3, J1, Omega = sm.symbols("l1 m1 m3 J1 Omega")
    t = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = N.orientnew("A", "Axis", (phi1, N.z)), N.orientnew("B", "Axis", (phi2, N.z))
    A.set_ang_vel(N, omega1 * N.z)
    B.set_ang_vel(N, omega2 * N.z)
    S = O.locatenew("S", x3 * N.x)
    S.set_vel(N, v3 * N.x)
    rod = elastic_rod(B, O.locatenew("C", l1 * A.x))
    gap = rod.point("end").pos_from(O) - x3 * N.x
    inertia = me.inertia(A, 0, 0, J1)
    return kg.Model(
        name="elastic_slider_crank",
        frame=N,
        coordinates=(phi1, phi2, x3),
        speeds=(omega1, omega2, v3),
        kinematics=(omega1 - phi1.diff(t), omega2 - phi2.diff(t), v3 - x3.diff(t)),
        bodies=(me.RigidBody("crank", O, A, m1, (inertia, O)), rod, me.Particle("slider", S, m3)),
        holonomic_constraints=(gap.dot(N.y), gap.dot(N.x), phi1 - Omega * t),
        shapes={"crank": kg.shapes.Link(O, rod.origin, color="#e69f00")},
        parameters=DEFAULTS,
    )


def elastic_rod(frame: Any, origin: Any) -> kg.FlexibleBody:
    """The rod from the integrals of its shape functions, with nine nodes to draw it."""
    x = np.linspace(0.0, L2, 9)
    nodes, modes, s = np.zeros((9, 3)), np.zeros((4, 9, 3)), x / L2
    nodes[:, 0] = x
    modes[:2, :, 1] = np.sin(np.pi * s), np.sin(2.0 * np.pi * s)
    modes[2:, :, 0] = 4.0 * s * (1.0 - s), s * (2.0 * s - 1.0)
    modes[:, -1, 1] = 0.0
    area = WIDTH**2
    stiffness = np.zeros((4, 4))
    bending = YOUNGS_MODULUS * area / L2 * PI**4 / 24.0 * (WIDTH / L2) ** 2
    stiffness[0, 0], stiffness[1, 1] = bending, 16.0 * bending
    stiffness[2:, 2:] = YOUNGS_MODULUS * area / L2 / 3.0 * np.array([[16.0, -8.0], [-8.0, 7.0]])
    return kg.FlexibleBody(
        "rod",
        frame,
        origin,
        nodes=nodes,
        modes=modes,
        integrals=integrals(),
        stiffness=stiffness,
        names={"end": 8},
    )


def integrals() -> np.ndarray:
    """The integrals over the mass of all products of 1, x, y, z and the components of the modes, (16, 16)."""
    one, x, y1, y2, x3, x4 = 0, 1, 4 + 1, 7 + 1, 10, 13
    m = DENSITY * WIDTH**2 * L2
    G = np.zeros((16, 16))
    G[one, [one, x, y1, x3, x4]] = M2, M2 * L2 / 2.0, m * 2.0 / PI, m * 2.0 / 3.0, m / 6.0
    G[x, [x, y1, y2, x3, x4]] = J2, m * L2 / PI, -m * L2 / (2.0 * PI), m * L2 / 3.0, m * L2 / 6.0
    G[y1, [y1, x3, x4]] = m / 2.0, m * 16.0 / PI**3, m * (1.0 / PI - 8.0 / PI**3)
    G[y2, [y2, x4]] = m / 2.0, -m / (2.0 * PI)
    G[x3, [x3, x4]] = 8.0 * m, m
    G[x4, x4] = 2.0 * m
    return G + np.triu(G, 1).T


def start(solver: kg.Solver) -> tuple[np.ndarray, np.ndarray]:
    """The start of the test set, with the constraints satisfied to rounding."""
    q, u = solver.make_consistent(0.0, START_Q, START_U)
    return q, u


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, END), *start(solver), method="dop853", rtol=1e-10, atol=1e-16)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    accelerations = solver.rhs(0.0, START_Q, START_U)[1]
    yield "accelerations at the start", np.abs(accelerations - START_ACCELERATIONS).max(), 1e-6
    q, u = solution.q[-1], solution.u[-1]
    relative = np.abs(q - END_Q) / np.abs(END_Q)
    yield "angles and slider after 0.1 s, relative", relative[:3].max(), 1e-9
    yield "lateral displacements, relative", relative[3:5].max(), 1e-6
    yield "axial displacements, relative", relative[5:].max(), 5e-6
    yield "error of the test set, |e| / (1 + |y|)", (np.abs(q - END_Q) / (1.0 + np.abs(END_Q))).max(), 1e-9
    yield "speeds of the mechanism, relative", (np.abs(u - END_U) / np.abs(END_U))[:3].max(), 1e-6


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    axes = figure.subplots(3, 1, sharex=True)
    for name, (_, solution) in runs.items():
        solution.plot("phi2", "q_rod_1", "q_rod_4", ax=axes, label=name)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
