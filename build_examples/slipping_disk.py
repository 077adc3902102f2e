"""Slipping disk
=============

A thin uniform disk that slips without friction on a horizontal plane.

The disk is that of ``rolling_disk`` (same coordinates, speeds and parameters) without the rolling constraints. The
height R sin theta of its center keeps it in contact with the plane; it is otherwise free.

Source: lecture notes on generalized speeds (example "rolling disk with slip"). Five integrals of motion are known:
X', Y', the spin u3, the angular momentum about the vertical, and the energy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m": 1.2, "R": 0.3, "g": 9.81}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.2, 0.3, 0.0, 0.0, 0.0), "u": (0.2, 0.4, -6.0, 0.5, -0.25), "r": None}


def model() -> kg.Model:
    """The unconstrained disk; the output ``vertical_momentum`` is its angular momentum about the vertical."""
    theta, phi, psi, X, Y = me.dynamicsymbols("theta phi psi X Y")
    u1, u2, u3, u4, u5 = me.dynamicsymbols("u1 u2 u3 u4 u5")
    m, R, g = symbols = sm.symbols("m R g")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    yaw = me.ReferenceFrame("yaw")
    yaw.orient_axis(N, N.z, phi)
    lean = me.ReferenceFrame("lean")
    lean.orient_axis(yaw, yaw.x, theta)
    disk = me.ReferenceFrame("disk")
    disk.orient_axis(lean, lean.z, psi)
    disk.set_ang_vel(N, u1 * lean.x + u2 * lean.y + u3 * lean.z)

    O = me.Point("O")
    O.set_vel(N, 0)
    center = O.locatenew("center", X * N.x + Y * N.y + R * sm.sin(theta) * N.z)
    # The disk is symmetric about k0, so that its inertia is constant in the frame that does not spin with it.
    inertia = me.inertia(lean, m * R**2 / 4, m * R**2 / 4, m * R**2 / 2)

    return kg.Model(
        name="slipping_disk",
        frame=N,
        coordinates=(theta, phi, psi, X, Y),
        speeds=(u1, u2, u3, u4, u5),
        kinematics=(
            u1 - theta.diff(time),
            u2 - phi.diff(time) * sm.sin(theta),
            u3 - phi.diff(time) * sm.cos(theta) - psi.diff(time),
            u4 - X.diff(time),
            u5 - Y.diff(time),
        ),
        bodies=(me.RigidBody("disk", center, disk, m, (inertia, center)),),
        gravity=-g * N.z,
        outputs={"vertical_momentum": m * R**2 / 4 * (u2 * sm.sin(theta) + 2 * u3 * sm.cos(theta))},
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
    )


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 10.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    yield "energy drift (J)", np.ptp([solver.energy(*state) for state in states]), 1e-7
    momentum = [solver.outputs(*state)["vertical_momentum"] for state in states]
    yield "drift of the vertical angular momentum (N m s)", np.ptp(momentum), 1e-8
    yield "drift of u3, X', Y'", np.ptp(solution.u[:, 2:], axis=0).max(), 1e-10


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot(["theta", "phi"], ["u1", "u2", "u3"], ["kinetic_energy", "potential_energy"], ax=left)
    times = np.linspace(solution.t[0], solution.t[-1], 25)
    kg.plot.strobe(solution, _contact_and_center, times=times, ax=right).set_title("seen from above")


def _contact_and_center(theta: Any, phi: Any, psi: Any, X: Any, Y: Any) -> list[tuple[Any, Any]]:
    tilt = DEFAULTS["R"] * np.cos(theta)
    return [(X, Y), (X + tilt * np.sin(phi), Y - tilt * np.cos(phi))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
