"""Control of energy
=================

A disc with a bar on its rim, whose motors bring the total energy to a desired value.

The mechanism is that of ``obstructed_pendulum`` without the obstacle: a disc (radius ``R``, central inertia ``I_D``,
fixed center) and a uniform bar (``m_B``, ``L``, ``I_B``) hinged at its rim. i points down and j is horizontal; theta1
and theta2 are absolute angles. The controls are the motor torques ``tau1`` (ground on disc) and ``tau2`` (disc on
bar, with its reaction on the disc). The servo-constraint is psi = E - E_f with E' = Theta (E - E_f); the energy E is
zero at theta1 = theta2 = 0.

With two controls and one constraint the controls are not unique. They are ``tau = S^+ z + (I - S^+ S) y`` for any y,
or the ideal controls, which act like the forces of a passive constraint (Gauss' principle). The energy is the same
for all of them. ``model(path=True)`` adds the holonomic servo-constraint R cos theta1 + L sin theta2 = 0, which makes
the controls unique.

Source: Bajodah (2003), Example 7.1 and the remark on (497)-(502). The second row there is the derivative of psi2 with
respect to the coordinates; with this row the system has a solution. The script checks that E(t) = E_f + (E0 - E_f)
exp(Theta t).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"R": 0.5, "L": 1.0, "m_B": 2.0, "I_D": 0.8, "I_B": 1.0 / 6.0, "g": 9.81, "Theta": -1.0, "E_f": 1.0}
PATH_GAINS = {"Theta21": -4.0, "Theta22": -4.0}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.1, -0.1), "u": (0.3, -0.2), "r": (0.0, 0.0)}


def model(path: bool = False, resolution: str = "moore_penrose", y: Any = None, damping: Any = None) -> kg.Model:
    """The mechanism with its servo-constraints; ``resolution``, ``y`` and ``damping`` as for ``kg.Servo``."""
    theta1, theta2, u1, u2 = me.dynamicsymbols("theta1 theta2 u1 u2")
    tau1, tau2 = me.dynamicsymbols("tau1 tau2")
    R, L, m_B, I_D, I_B, g, Theta, E_f = symbols = sm.symbols("R L m_B I_D I_B g Theta E_f")
    Theta21, Theta22 = sm.symbols("Theta21 Theta22")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    disc_frame = me.ReferenceFrame("disc")
    disc_frame.orient_axis(N, N.z, theta1)
    bar_frame = me.ReferenceFrame("bar")
    bar_frame.orient_axis(N, N.z, theta2)
    disc_frame.set_ang_vel(N, u1 * N.z)
    bar_frame.set_ang_vel(N, u2 * N.z)

    O = me.Point("O")
    O.set_vel(N, 0)
    hinge = O.locatenew("hinge", R * disc_frame.x)
    center = hinge.locatenew("center", L / 2 * bar_frame.x)
    disc = me.RigidBody("disc", O, disc_frame, 0, (me.inertia(disc_frame, 0, 0, I_D), O))
    bar = me.RigidBody("bar", center, bar_frame, m_B, (me.inertia(bar_frame, 0, 0, I_B), center))

    potential = m_B * g * (R * (1 - sm.cos(theta1)) + L / 2 * (1 - sm.cos(theta2)))
    constraints, gains = [me.kinetic_energy(N, disc, bar) + potential - E_f], [Theta]
    if path:
        constraints.append(R * sm.cos(theta1) + L * sm.sin(theta2))
        gains.append((Theta21, Theta22))

    values = {symbol: DEFAULTS[str(symbol)] for symbol in symbols}
    return kg.Model(
        name="energy_servo",
        frame=N,
        coordinates=(theta1, theta2),
        speeds=(u1, u2),
        kinematics=(u1 - theta1.diff(time), u2 - theta2.diff(time)),
        bodies=(disc, bar),
        loads=((disc_frame, (tau1 - tau2) * N.z), (bar_frame, tau2 * N.z), (center, m_B * g * N.x)),
        potential_energy=potential,
        inputs=(tau1, tau2),
        parameters={**values, **({Theta21: PATH_GAINS["Theta21"], Theta22: PATH_GAINS["Theta22"]} if path else {})},
        control=kg.Servo(constraints, theta=gains, resolution=resolution, y=y, damping=damping),
    )


CASES: dict[str, dict[str, Any]] = {
    "y = 0": {},
    "y = (2, -1)": {"y": (2.0, -1.0)},
    "ideal": {"resolution": "ideal"},
    "with path": {"path": True, "E_f": 30.0},
}


def simulate(y: Any = None, E_f: float = 1.0, **options: Any) -> tuple[kg.Solver, kg.Solution]:
    """Integrate the closed loop.

    On the path the energy is at least m_B g L / 2 (1 - cos(asin(R / L))) = 1.314 J, so that E_f = 1 J is out of reach.
    """
    solver = kg.build(model(**options)).with_parameters(E_f=E_f)
    start = INITIAL["q"], INITIAL["u"]
    return solver, solver.integrate((0.0, 5.0), *start, control=True, y=y, rtol=1e-11, atol=1e-12)


def energies(solver: kg.Solver, solution: kg.Solution) -> np.ndarray:
    states = zip(solution.t, solution.q, solution.u, solution.control.values, strict=True)
    return np.array([solver.energy(t, q, u, tau) for t, q, u, tau in states])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p, E = solver.parameters, energies(solver, solution)
    law = p["E_f"] + (E[0] - p["E_f"]) * np.exp(p["Theta"] * solution.t)
    yield "E(t) against E_f + (E0 - E_f) exp(Theta t), relative", np.abs(E / law - 1).max(), 1e-8
    # Torques on the disc and on the bar: tau1 - tau2 and tau2.
    power = solution.control.values[:, 0] * solution.u[:, 0] + solution.control.values[:, 1] * (
        solution.u[:, 1] - solution.u[:, 0]
    )
    desired = p["Theta"] * (E - p["E_f"])
    yield "power of the controls against Theta (E - E_f), relative", np.abs(power / desired - 1).max(), 1e-8
    path = 0.0
    if "Theta21" in p:
        # Both roots of s**2 - Theta21 s - Theta22 are Theta21 / 2.
        psi, rate = solution.control.errors[:, 1:].T
        s = p["Theta21"] / 2
        path = np.abs(psi - (psi[0] + (rate[0] - s * psi[0]) * solution.t) * np.exp(s * solution.t)).max()
    yield "R cos theta1 + L sin theta2 against its desired dynamics", path, 1e-8


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Figures 41 (error of the energy) to 44 (controls) of the thesis, for every choice of the controls."""
    panels = figure.subplots(4, len(runs), sharex=True)
    for column, (name, (_, solution)) in zip(panels.T, runs.items(), strict=True):
        solution.plot("energy", "coordinates", "speeds", "controls", ax=column)
        column[0].set_title(name)
        column[0].axhline(solution.run.parameters["E_f"], color="k", linewidth=0.5)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
