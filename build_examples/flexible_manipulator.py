"""Flexible manipulator
====================

An arm of two thin links in a horizontal plane, whose motors turn it along a smooth path while the links vibrate.

The links are flat bars of aluminum (`L` = 1 m, EI = 38 N m^2), clamped in the rotors of the motors (`m_e`, `J`). The
motor of the elbow sits at the end of the first link, a load (`m_l`) at the end of the second. theta1 is the angle of
the first motor from the x axis, theta2 that of the second motor from the end of the first link; q_upper and q_lower are
modal coordinates, u = q'.

Each motor follows its path by the law ``tau = -k (theta - path) - d (theta' - path')``, a feedback law of the model;
the paths are polynomials of fifth degree until t = `T`. The links have 0.5 % damping. With these gains, the motors take
the energy of the vibrations: all of them decay with at least 2.9/s at the aim.

States: the work of the motors, and the energy that the links lose. The script compares the energy with their
difference, the mass matrix of the straight arm with that of rigid links, and the end with the aim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

LENGTH, AREA, SECOND_MOMENT, DENSITY, YOUNGS_MODULUS = 1.0, 1.8e-4, 5.4e-10, 2700.0, 7e10
AIMS = (1.0, -1.2)  # rad
DEFAULTS = {"m_e": 0.3, "m_l": 0.1, "J": 0.02, "T": 2.0, "k1": 53.0, "d1": 8.8, "k2": 1.7, "d2": 1.25}
END = 6.0
CASES = {"2 s": {}, "1 s": {"T": 1.0}}


def model() -> kg.Model:
    """The arm; outputs are the position of the ``load``, m, and the ``stress`` at the clamp of each link, Pa."""
    theta1, theta2, omega1, omega2, work, lost = me.dynamicsymbols("theta1 theta2 omega1 omega2 work lost")
    tau1, tau2 = me.dynamicsymbols("tau1 tau2")
    m_e, m_l, J, T, k1, d1, k2, d2 = sm.symbols("m_e m_l J T k1 d1 k2 d2")
    t = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)

    A = N.orientnew("A", "Axis", (theta1, N.z))
    A.set_ang_vel(N, omega1 * N.z)
    upper = link("upper", A, O)
    end, elbow = upper.node_frame("end"), upper.point("end")
    B = end.orientnew("B", "Axis", (theta2, N.z))
    B.set_ang_vel(end, omega2 * N.z)
    lower = link("lower", B, elbow)

    rotors = [
        me.RigidBody(f"rotor {k + 1}", point, frame, m_e, (me.inertia(frame, 0, 0, J), point))
        for k, (point, frame) in enumerate(((O, A), (elbow, B)))
    ]

    s = sm.Min(t / T, 1)
    path = s**3 * (10 - 15 * s + 6 * s**2)
    rate = 30 * s**2 * (1 - s) ** 2 / T
    laws = [
        -k * (theta - aim * path) - d * (omega - aim * rate)
        for k, d, theta, omega, aim in zip((k1, k2), (d1, d2), (theta1, theta2), (omega1, omega2), AIMS, strict=True)
    ]
    return kg.Model(
        name="flexible_manipulator",
        frame=N,
        coordinates=(theta1, theta2),
        speeds=(omega1, omega2),
        kinematics=(omega1 - theta1.diff(t), omega2 - theta2.diff(t)),
        bodies=(upper, lower, *rotors, me.Particle("load", lower.point("end"), m_l)),
        loads=((A, tau1 * N.z), (B, tau2 * N.z), (end, -tau2 * N.z)),
        inputs=(kg.Input(tau1, law=laws[0]), kg.Input(tau2, law=laws[1])),
        states={work: tau1 * omega1 + tau2 * omega2, lost: upper.dissipation + lower.dissipation},
        outputs={
            "load": (lower.point("end").pos_from(O), N),
            "stress": [body.stress(0.0, y=0.003) for body in (upper, lower)],
        },
        parameters=DEFAULTS,
        initial={"t": 0.0, **dict.fromkeys((theta1, theta2, omega1, omega2, work, lost), 0.0)}
        | dict.fromkeys((*upper.coordinates, *upper.speeds, *lower.coordinates, *lower.speeds), 0.0),
    )


def link(name: str, frame: Any, origin: Any) -> kg.Beam:
    """A link with polynomials as shapes, because loads act on its end."""
    return kg.beam(
        name,
        frame,
        origin,
        length=LENGTH,
        area=AREA,
        second_moment=SECOND_MOMENT,
        density=DENSITY,
        youngs_modulus=YOUNGS_MODULUS,
        damping_ratio=0.005,
        modes=3,
        shapes="polynomials",
    )


def simulate(**parameters: Any) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model()).with_parameters(**parameters)
    times = np.linspace(0.0, END, 601)
    return solver, solver.integrate(END, method="dop853", rtol=1e-9, atol=1e-12, t_eval=times)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    work, lost = solution.s.T
    yield "energy less work plus loss (J)", np.abs(solution.energy - work + lost).max(), 1e-8
    p, zero = dict(solver.parameters), np.zeros(len(solver.description.coordinates))
    straight = solver.Q(0.0, zero, zero)[:2, :2]
    yield "mass matrix of rigid links, relative", np.abs(straight / rigid_masses(p) - 1.0).max(), 1e-12
    shoulder, elbow = AIMS[0], sum(AIMS)
    aim = np.cos(shoulder) + np.cos(elbow), np.sin(shoulder) + np.sin(elbow)
    swing = np.linalg.norm(solution.outputs["load"][:, :2] - aim, axis=1)
    yield "the load arrives (m)", swing[-50:].max(), 1e-3


def rigid_masses(p: Mapping[str, float]) -> np.ndarray:
    """The mass matrix of the straight arm with rigid links, by hand."""
    m = DENSITY * AREA * LENGTH
    second = m / 3 + p["m_l"]
    coupled = second + m / 2 + p["m_l"]
    whole = m / 3 + m + p["m_e"] + p["m_l"] + second + 2 * (m / 2 + p["m_l"])
    rotors = p["J"] * np.array([[2.0, 1.0], [1.0, 1.0]])
    return LENGTH**2 * np.array([[whole, coupled], [coupled, second]]) + rotors


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    axes = figure.subplots(3, 1, sharex=True)
    for name, (_, solution) in runs.items():
        solution.plot("theta1", "theta2", ax=axes[:2], label=name)
        axes[2].plot(solution.t, solution.outputs["stress"][:, 0] / 1e6, label=name)
    axes[2].set(xlabel="t (s)", ylabel="stress (MPa)")


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
