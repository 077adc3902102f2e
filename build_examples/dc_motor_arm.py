"""Arm with a geared motor
=======================

An arm that is driven by a geared direct-current motor, with a PID controller whose voltage is limited.

The arm is a uniform bar (``l``, ``m``) on a horizontal hinge; theta is its angle from the horizontal, y points up, and
gravity is -g y. The hinge has the viscous friction ``b``. u = (theta',).

The rotor turns ``N`` times as fast as the arm, so that its inertia ``Jr`` loads the arm by the torque -N^2 Jr theta'',
a load that depends on an acceleration. The torque of the motor on the arm is N kt i. The additional states are the
current i of the motor and the integral z of the controller:

    La i' = V - R i - ke N theta'        V = min(max(v, -Vmax), Vmax)
    z' = e + Kaw (V - v)                 v = Kp e + Ki z - Kd theta', e = theta_ref - theta

While the voltage is limited, the term Kaw (V - v) keeps the integral from growing (anti-windup by back-calculation;
Astrom and Hagglund 1995, "PID Controllers", section 3.5).

The time constant La/R of the current is 0.4 ms, while the arm moves in tenths of a second: the equations are stiff, and
``method="rodas"`` integrates them. The script compares the motion with the equations written by hand, also for a supply
of 6 V, with which the overshoot without anti-windup is five times as large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import cos
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

import kanegen as kg

DEFAULTS = {
    **{"l": 0.5, "m": 1.5, "g": 9.81, "b": 0.02, "N": 50.0, "Jr": 1e-5},
    **{"R": 1.2, "La": 5e-4, "kt": 0.05, "ke": 0.05},
    **{"Kp": 60.0, "Ki": 40.0, "Kd": 4.0, "Vmax": 24.0, "Kaw": 0.02, "theta_ref": 0.8},
}
UNITS = {
    **{"theta": "deg", "omega": "rad/s", "theta_ref": "deg", "z": "rad s", "V": "V", "v": "V"},
    **{"i": "A", "R": "ohm", "La": "mH", "kt": "N m/A", "ke": "V s/rad", "N": ""},
    **{"Kp": "V/rad", "Ki": "V/(rad s)", "Kd": "V s/rad", "Kaw": "rad/V"},
}
"""Units of display; those of lengths, masses and friction follow from the equations."""

CASES = {"24 V": {}, "6 V": {"Vmax": 6.0}, "6 V, no anti-windup": {"Vmax": 6.0, "Kaw": 0.0}}


def model() -> kg.Model:
    """The arm with motor and controller; outputs are the voltage ``V`` and the voltage ``v`` without limits."""
    theta, omega, i, z = me.dynamicsymbols("theta omega i z")
    l, m, g, b, N, Jr, R, La, kt, ke = sm.symbols("l m g b N Jr R La kt ke")
    Kp, Ki, Kd, Vmax, Kaw, theta_ref = sm.symbols("Kp Ki Kd Vmax Kaw theta_ref")
    time = me.dynamicsymbols._t

    ground, arm = me.ReferenceFrame("ground"), me.ReferenceFrame("arm")
    arm.orient_axis(ground, ground.z, theta)
    arm.set_ang_vel(ground, omega * ground.z)
    hinge = me.Point("hinge")
    hinge.set_vel(ground, 0)
    center = hinge.locatenew("center", l / 2 * arm.x)
    center.v2pt_theory(hinge, ground, arm)
    bar = me.RigidBody("bar", center, arm, m, (me.inertia(arm, 0, 0, m * l**2 / 12), center))

    e = theta_ref - theta
    v = Kp * e + Ki * z - Kd * omega
    V = sm.Min(sm.Max(v, -Vmax), Vmax)
    torque = N * kt * i - b * omega - N**2 * Jr * omega.diff(time)
    return kg.Model(
        name="dc_motor_arm",
        frame=ground,
        coordinates=(theta,),
        speeds=(omega,),
        kinematics=(omega - theta.diff(time),),
        bodies=(bar,),
        gravity=-g * ground.y,
        loads=((arm, torque * ground.z),),
        states={i: (V - R * i - ke * N * omega) / La, z: e + Kaw * (V - v)},
        outputs={"V": V, "v": v},
        parameters=DEFAULTS,
        units=UNITS,
        initial={"t": 0.0, theta: 0.0, omega: 0.0, i: 0.0, z: 0.0},
    )


def simulate(**parameters: Any) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(), functions="all").with_parameters(**parameters)
    return solver, solver.integrate(10.0, method="rodas", rtol=1e-9, atol=1e-10)


def by_hand(p: Mapping[str, float], y: np.ndarray) -> np.ndarray:
    """y' for y = (theta, theta', i, z), written by hand."""
    theta, omega, i, z = y
    e = p["theta_ref"] - theta
    v = p["Kp"] * e + p["Ki"] * z - p["Kd"] * omega
    V = min(max(v, -p["Vmax"]), p["Vmax"])
    inertia = p["m"] * p["l"] ** 2 / 3 + p["N"] ** 2 * p["Jr"]
    torque = p["N"] * p["kt"] * i - p["b"] * omega - p["m"] * p["g"] * p["l"] / 2 * cos(theta)
    current = (V - p["R"] * i - p["ke"] * p["N"] * omega) / p["La"]
    return np.array([omega, torque / inertia, current, e + p["Kaw"] * (V - v)])


def overshoot(solver: kg.Solver, solution: kg.Solution) -> float:
    """How far the arm moves beyond theta_ref, rad."""
    return float(solution.q.max() - solver.parameters["theta_ref"])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p = dict(solver.parameters)
    motion = np.hstack([solution.q, solution.u, solution.s])
    rates = [np.concatenate(solver.rhs(t, y[:1], y[1:2], None, y[2:])) for t, y in zip(solution.t, motion, strict=True)]
    exact = np.array([by_hand(p, y) for y in motion])
    yield "q', u', s' by hand, relative", (np.abs(rates - exact) / (1 + np.abs(exact).max(axis=0))).max(), 1e-11
    options = {"t_eval": solution.t, "method": "Radau", "rtol": 1e-10, "atol": 1e-11}
    peer = solve_ivp(lambda t, y: by_hand(p, y), solution.t[[0, -1]], motion[0], **options).y.T
    yield "motion against SciPy", np.abs(motion - peer).max(), 1e-6
    theta, _, i, _ = motion[-1]
    weight = p["m"] * p["g"] * p["l"] / 2 * cos(theta)
    yield "the motor holds the weight at the end (N m)", p["N"] * p["kt"] * i - weight, 1e-2
    if p["Kaw"] and p["Vmax"] < DEFAULTS["Vmax"]:
        without = overshoot(*simulate(Vmax=p["Vmax"], Kaw=0.0))
        yield "overshoot relative to that without anti-windup", overshoot(solver, solution) / without, 0.2


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axes = left.subplots(4, 1, sharex=True)
    for name, (_, solution) in runs.items():
        solution.plot("theta", "V", "i", "z", ax=axes, label=name)
    axes[0].axhline(np.degrees(DEFAULTS["theta_ref"]), color="k", linewidth=0.5)
    for axis in axes[1:]:
        axis.get_legend().remove()
    axes[-1].set_xlim(0.0, 4.0)
    arm = kg.plot.strobe(runs["24 V"][1], _arm, times=np.linspace(0.0, 1.0, 21), ax=right)
    arm.set_title("24 V, 0 to 1 s")


def _arm(theta: Any) -> list[tuple[Any, Any]]:
    return [(0.0, 0.0), (DEFAULTS["l"] * np.cos(theta), DEFAULTS["l"] * np.sin(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
