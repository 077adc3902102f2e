"""Pendulum on an obstacle
=======================

A driven double pendulum that leans on an obstacle.

A disc (radius ``R``, central inertia ``I_D``, fixed center) carries at its rim the hinge of a uniform bar (``m_B``,
``L``, ``I_B``). x points down and y is horizontal; theta1 and theta2 are the absolute angles of the disc and of the
bar, measured from x. The loads are gravity ``g`` and constant motor torques, ``tau1`` of the ground on the disc and
``tau2`` of the disc on the bar. The obstacle limits the fall of the tip: gap = R + 3 L / 4 - R cos theta1 - L cos
theta2 >= 0. While the gap is negative and the required force compressive, gap'' = ``Delta1`` gap' + ``Delta2`` gap,
both negative.

Source: Bajodah (2003), Example 5.1. ``--plot`` draws figures 25 to 30. The thesis does not print R, L, m_B, I_D and
I_B, so that times and amplitudes are those of this system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"R": 0.5, "L": 1.0, "m_B": 2.0, "I_D": 0.8, "I_B": 1.0 / 6.0, "g": 9.81, "tau1": 1.0, "tau2": 3.0}
DEFAULTS |= {"Delta1": -300.0, "Delta2": -100.0}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.0, 1.0), "u": (0.0, 0.0), "r": None}
CONTACT = "obstacle"


def model() -> kg.Model:
    """The pendulum with one unilateral constraint; outputs ``gap`` (m) and ``gap_rate`` (m/s)."""
    theta1, theta2 = me.dynamicsymbols("theta1 theta2")
    u1, u2 = me.dynamicsymbols("u1 u2")
    R, L, m_B, I_D, I_B, g, tau1, tau2, Delta1, Delta2 = symbols = sm.symbols(tuple(DEFAULTS))
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    disc_frame, bar_frame = me.ReferenceFrame("disc"), me.ReferenceFrame("bar")
    disc_frame.orient_axis(N, N.z, theta1)
    bar_frame.orient_axis(N, N.z, theta2)
    O = me.Point("O")
    O.set_vel(N, 0)
    hinge = O.locatenew("hinge", R * disc_frame.x)
    center = hinge.locatenew("center", L / 2 * bar_frame.x)
    # The center of the disc does not move, so that only its inertia matters.
    disc = me.RigidBody("disc", O, disc_frame, sm.Integer(0), (me.inertia(disc_frame, 0, 0, I_D), O))
    bar = me.RigidBody("bar", center, bar_frame, m_B, (me.inertia(bar_frame, 0, 0, I_B), center))
    gap = R + 3 * L / 4 - R * sm.cos(theta1) - L * sm.cos(theta2)

    return kg.Model(
        name="obstructed_pendulum",
        frame=N,
        coordinates=(theta1, theta2),
        speeds=(u1, u2),
        kinematics=(u1 - theta1.diff(time), u2 - theta2.diff(time)),
        bodies=(disc, bar),
        loads=((disc_frame, (tau1 - tau2) * N.z), (bar_frame, tau2 * N.z)),
        gravity=g * N.x,
        contacts=(kg.Unilateral(gap, law=kg.Stabilized(damping=-Delta1, stiffness=-Delta2), name=CONTACT),),
        outputs={"gap": gap, "gap_rate": gap.diff(time)},
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
    )


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 10.0), INITIAL["q"], INITIAL["u"], rtol=1e-11, atol=1e-13)


def generalized_forces(solution: kg.Solution) -> np.ndarray:
    """Generalized contact forces (n_t, 2) in N m: the contact force times the gradient of the gap."""
    theta = solution.q
    normal = np.column_stack([DEFAULTS["R"] * np.sin(theta[:, 0]), DEFAULTS["L"] * np.sin(theta[:, 1])])
    return solution.contacts.forces[:, :1] * normal


def decayed_gap(gap: float, rate: float, t: np.ndarray, p: Mapping[str, float] = DEFAULTS) -> np.ndarray:
    """The gap at the time t after it had the value ``gap`` and the rate ``rate``, under the contact law."""
    discriminant = np.sqrt(p["Delta1"] ** 2 + 4 * p["Delta2"])
    fast, slow = (p["Delta1"] - discriminant) / 2, (p["Delta1"] + discriminant) / 2
    amplitude = (rate - slow * gap) / (fast - slow)
    return np.asarray(amplitude * np.exp(fast * t) + (gap - amplitude) * np.exp(slow * t))


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    yield "tensile contact force (N)", max(0.0, -solution.contacts.forces.min()), 1e-9
    closed, free = [], []
    for phase in solution.contacts.phases:
        times = np.linspace(phase.t_start, phase.t_end, 20)
        # Positions and speeds are continuous at a change of mode, so that both ends of a phase can be included.
        states = [(t, *solution(t)) for t in times]
        if phase.modes[CONTACT] == "closed":
            gaps = np.array([solver.output("gap", *state) for state in states])
            rate = solver.output("gap_rate", *states[0])
            closed.append(np.abs(gaps - decayed_gap(gaps[0], rate, times - times[0])).max())
        else:
            free.append(np.ptp([_energy_less_work(solver, *state) for state in states]))
    yield "gap in contact against the law's solution (m)", max(closed), 1e-9
    yield "energy less work of the motors without contact (J)", max(free), 1e-8


def _energy_less_work(solver: kg.Solver, t: float, q: np.ndarray, u: np.ndarray) -> float:
    work = DEFAULTS["tau1"] * q[0] + DEFAULTS["tau2"] * (q[1] - q[0])
    return float(solver.energy(t, q, u) - work)


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Figures 25 and 26 (motion), 27 and 28 (contact forces), 29 and 30 (first contact) of the thesis."""
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    forces = generalized_forces(solution)
    acting = [phase for phase in solution.contacts.phases if phase.modes[CONTACT] == "closed"]
    first = acting[0].t_start
    for k, (motion, force, start) in enumerate(left.subplots(2, 3), start=1):
        solution.plot(f"theta{k}", f"u{k}", ax=motion)
        motion.set(title=f"figure {24 + k}", ylabel="")
        motion.legend(handles=motion.get_lines(), fontsize="x-small")
        force.plot(solution.t, forces[:, k - 1])
        force.set(title=f"figure {26 + k}", ylabel=f"F{k}c (N m)", xlabel="t (s)")
        shown = (solution.t > first - 0.005) & (solution.t < first + 0.045)
        start.plot(solution.t[shown], forces[shown, k - 1])
        start.set(title=f"figure {28 + k}", xlim=(first - 0.005, first + 0.045), xlabel="t (s)")
    kg.plot.strobe(solution, _pendulum, times=np.linspace(0.0, first, 10), ax=right).set_title("until the contact")


def _pendulum(theta1: Any, theta2: Any) -> list[tuple[Any, Any]]:
    """Center and hinge of the disc, tip of the bar; x points down."""
    R, L = DEFAULTS["R"], DEFAULTS["L"]
    hinge = R * np.sin(theta1), -R * np.cos(theta1)
    return [(0.0, 0.0), hinge, (hinge[0] + L * np.sin(theta2), hinge[1] - L * np.cos(theta2))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
