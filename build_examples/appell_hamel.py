"""Appell-Hamel mechanism
======================

The Appell-Hamel mechanism, with constraints that are nonlinear or linear in the speeds.

A massless frame slides on a horizontal plane and keeps a wheel (radius ``a``, mass ``M``, spherical central inertia
``I``) upright. A thread wound on a drum of radius ``b``, which is fixed to the wheel, runs over pulleys at the
distance ``rho`` and carries a weight of mass ``m`` at (x, y, z). theta is the heading of the wheel and phi its
rotation; u = (theta', phi', x', y', z').

Rolling without slip can be written with one constraint nonlinear in the speeds and one linear, (157) and (158), or
with two linear ones, (206) and (207). The motion is the same, but the numerical drift is not.

Source: Bajodah (2003), Example 3.1, section 3.7 and figures 3 to 10. The potential energy omits the constant M g a of
the wheel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0, 0.0, 30.0, 0.0, 0.0), "u": (1.0, 1.0, 1.0, 5.0, -0.5), "r": None}
CASES = {
    "nonlinear": {"constraints": "nonlinear"},
    "linear": {"constraints": "linear"},
}


def model(constraints: str = "nonlinear") -> kg.Model:
    """The mechanism with ``constraints="nonlinear"``, (157)-(159), or ``"linear"``, (206)-(208)."""
    if constraints not in ("nonlinear", "linear"):
        raise ValueError(f'constraints={constraints!r} is not known; use "nonlinear" or "linear"')
    x, y, z, theta, phi = me.dynamicsymbols("x y z theta phi")
    u1, u2, u3, u4, u5 = me.dynamicsymbols("u1 u2 u3 u4 u5")
    a, b, rho, m, M, I, g, z0 = sm.symbols("a b rho m M I g z0")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    heading = me.ReferenceFrame("heading")
    heading.orient_axis(N, N.z, theta)
    spin = me.ReferenceFrame("spin")
    spin.orient_axis(heading, heading.y, phi)

    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y + z * N.z)
    center = O.locatenew("wheel_center", x * N.x + y * N.y - rho * heading.x)
    wheel = me.RigidBody("wheel", center, spin, M, (me.inertia(heading, I, I, I), center))

    x_center = u3 + rho * u1 * sm.sin(theta)
    y_center = u4 - rho * u1 * sm.cos(theta)
    rolling = {
        "nonlinear": (
            x_center**2 + y_center**2 - a**2 * u2**2,
            u3 * sm.sin(theta) - u4 * sm.cos(theta) + rho * u1,
        ),
        "linear": (a * u2 * sm.cos(theta) - x_center, a * u2 * sm.sin(theta) - y_center),
    }

    return kg.Model(
        name=f"appell_hamel_{constraints}",
        frame=N,
        coordinates=(x, y, z, theta, phi),
        speeds=(u1, u2, u3, u4, u5),
        kinematics=(
            u1 - theta.diff(time),
            u2 - phi.diff(time),
            u3 - x.diff(time),
            u4 - y.diff(time),
            u5 - z.diff(time),
        ),
        bodies=(me.Particle("weight", P, m), wheel),
        loads=((P, -m * g * N.z),),
        holonomic_constraints=(z + b * phi - z0,),
        nonholonomic_constraints=rolling[constraints],
        dependent_speeds=(u3, u4, u5),
        potential_energy=m * g * z,
        parameters={a: 1.0, b: 0.5, rho: 5.0, m: 1.0, M: 5.0, I: 2.5, g: 9.81, z0: 30.0},
    )


def simulate(constraints: str = "nonlinear") -> tuple[kg.Solver, kg.Solution]:
    """Integrate with the method of the thesis and a fixed step, to show the drift and compare it.

    The drift is visible after 40 s. (The weight would reach the plane of the wheel after about 14 s.)
    """
    solver = kg.build(model(constraints))
    return solver, solver.integrate((0.0, 40.0), INITIAL["q"], INITIAL["u"], method="kutta_merson", step=0.01)


def energy_drift(solver: kg.Solver, solution: kg.Solution) -> np.ndarray:
    states = zip(solution.t, solution.q, solution.u, strict=True)
    energy = np.array([solver.energy(*state) for state in states])
    return np.asarray(energy - energy[0])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    theta, phi, z = solution.q[:, 3], solution.q[:, 4], solution.q[:, 2]
    u1, u2, u3, u4, _ = solution.u.T
    yield "energy drift (J)", np.abs(energy_drift(solver, solution)).max(), 1e-6
    yield "drift of z + b phi - z0 (m)", np.abs(z + 0.5 * phi - 30.0).max(), 1e-8
    slip = (
        u3 + 5.0 * u1 * np.sin(theta) - u2 * np.cos(theta),
        u4 - 5.0 * u1 * np.cos(theta) - u2 * np.sin(theta),
    )
    yield "slip of the wheel (m/s)", np.abs(slip).max(), 1e-7


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Figures 3 to 9 of the thesis (nonlinear constraints), and the drift with both sets of constraints (10)."""
    _, solution = runs["nonlinear"]
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    panels = left.subplots(4, 2)
    for axis, name in zip(panels.flat, ("theta", "phi", "u1", "u2", "z"), strict=False):
        solution.plot(name, ax=axis)
    kg.plot.phase(solution, "phi", "u1", ax=panels[2, 1])
    kg.plot.phase(solution, "x", "y", ax=panels[3, 0])
    kg.plot.phase(solution, "theta", "z", ax=panels[3, 1])
    kg.plot.drift({name: run for name, (_, run) in runs.items()}, ax=right.subplots(3, 1, sharex=True))


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
