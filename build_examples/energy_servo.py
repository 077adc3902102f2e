"""A disc with a bar on its rim whose motors bring the total energy to a wanted value.

The mechanism of ``obstructed_pendulum`` without the obstacle: disc (radius ``R``, central inertia ``I_D``, centre
fixed), uniform bar (``m_B``, ``L``, ``I_B``) hinged at its rim; i is vertically down, j horizontal; theta1 and theta2
are absolute. Controls are the motor torques ``tau1`` (ground on disc) and ``tau2`` (disc on bar, with its reaction on
the disc). The servo-constraint is psi = E - E_f with E' = Theta (E - E_f); the energy E is zero at theta1 = theta2 = 0.

Two controls and one constraint leave a choice: any y of ``tau = S^+ z + (I - S^+ S) y``, or the ideal controls, which
act as the forces of a passive constraint would (Gauss' principle). Every choice gives the same energy.
``model(path=True)`` adds the holonomic servo-constraint R cos theta1 + L sin theta2 = 0; the controls are then unique.

Source: Bajodah (2003), Example 7.1 and the remark on (497)-(502), whose second row is the derivative of psi2 by the
coordinates: the system then has a solution. E(t) = E_f + (E0 - E_f) exp(Theta t) is what the script checks.
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
INITIAL = {"t": 0.0, "q": (0.1, -0.1), "u": (0.3, -0.2), "r": (0.0, 0.0)}


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
    centre = hinge.locatenew("centre", L / 2 * bar_frame.x)
    disc = me.RigidBody("disc", O, disc_frame, 0, (me.inertia(disc_frame, 0, 0, I_D), O))
    bar = me.RigidBody("bar", centre, bar_frame, m_B, (me.inertia(bar_frame, 0, 0, I_B), centre))

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
        loads=((disc_frame, (tau1 - tau2) * N.z), (bar_frame, tau2 * N.z), (centre, m_B * g * N.x)),
        potential_energy=potential,
        inputs=(tau1, tau2),
        parameters={**values, **({Theta21: PATH_GAINS["Theta21"], Theta22: PATH_GAINS["Theta22"]} if path else {})},
        servo=kg.Servo(constraints, theta=gains, resolution=resolution, y=y, damping=damping),
    )
