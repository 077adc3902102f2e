"""Slider-crank
============

A slider-crank mechanism in a vertical plane, with loop constraints and pin reactions.

The crank is a uniform bar (``l1``, ``m1``) pinned at O, with the angle theta from +x. The rod is a uniform bar
(``l2``, ``m2``) along l2 (sin beta, -cos beta) from the crank pin to the slider, which is a particle ``m3`` at
(x, 0). y points up, ``g`` is gravity, and the torque ``tau`` acts on the crank. u = (theta', beta', x').

Source: lecture notes on Kane's equations (example "slider-crank, motion in vertical plane"). Their equation of motion
has several misprints; with the generalized force -(g l1 / 2) (m1 + m2) cos theta + tau it is right. The multipliers
of the two loop equations are the components of the force of the slider's pin on the rod. The script compares them
with Newton's and Euler's equations of the separate bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import acos, cos, sin
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"l1": 0.5, "l2": 1.2, "m1": 1.5, "m2": 2.0, "m3": 0.8, "g": 9.81, "tau": 3.5}


def _start(theta: float = 0.3, rate: float = 0.5) -> dict[str, Any]:
    """The initial state on the branch sin beta > 0 of the loop, with the speeds that follow from theta'."""
    l1, l2 = DEFAULTS["l1"], DEFAULTS["l2"]
    beta = acos(l1 * sin(theta) / l2)
    x = l1 * cos(theta) + l2 * sin(beta)
    beta_rate = -l1 * cos(theta) / (l2 * sin(beta)) * rate
    x_rate = -l1 * cos(theta - beta) / sin(beta) * rate
    return {"t": 0.0, "q": (theta, beta, x), "u": (rate, beta_rate, x_rate), "r": None}


INITIAL: dict[str, Any] = _start()


def model() -> kg.Model:
    """The mechanism cut at the slider's pin: two holonomic loop constraints on three coordinates.

    Outputs (N, components along x and y) are the forces of the ground on the crank at O (``ground_pin_x``,
    ``ground_pin_y``), of the crank on the rod (``crank_pin_x``, ``crank_pin_y``) and of the slider on the rod
    (``slider_pin_x``, ``slider_pin_y``), and the vertical force of the guide on the slider (``guide``).
    """
    theta, beta, x = me.dynamicsymbols("theta beta x")
    u1, u2, u3 = me.dynamicsymbols("u1 u2 u3")
    l1, l2, m1, m2, m3, g, tau = symbols = sm.symbols("l1 l2 m1 m2 m3 g tau")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    crank = me.ReferenceFrame("crank")
    crank.orient_axis(N, N.z, theta)
    rod = me.ReferenceFrame("rod")
    rod.orient_axis(N, N.z, beta)

    O = me.Point("O")
    O.set_vel(N, 0)
    crank_center = O.locatenew("crank_center", l1 / 2 * crank.x)
    pin = O.locatenew("crank_pin", l1 * crank.x)
    rod_center = pin.locatenew("rod_center", -l2 / 2 * rod.y)
    slider = O.locatenew("slider", x * N.x)

    bodies = (
        me.RigidBody("crank", crank_center, crank, m1, (me.inertia(crank, 0, 0, m1 * l1**2 / 12), crank_center)),
        me.RigidBody("rod", rod_center, rod, m2, (me.inertia(rod, 0, 0, m2 * l2**2 / 12), rod_center)),
        me.Particle("slider", slider, m3),
    )
    return kg.Model(
        name="slider_crank",
        frame=N,
        coordinates=(theta, beta, x),
        speeds=(u1, u2, u3),
        kinematics=(u1 - theta.diff(time), u2 - beta.diff(time), u3 - x.diff(time)),
        bodies=bodies,
        loads=((crank, tau * N.z),),
        gravity=-g * N.y,
        holonomic_constraints=(
            l1 * sm.sin(theta) - l2 * sm.cos(beta),
            l1 * sm.cos(theta) + l2 * sm.sin(beta) - x,
        ),
        dependent_speeds=(u2, u3),
        outputs=_reactions((theta, beta), (u1, u2, u3), symbols),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
        shapes={"slider": kg.shapes.Cuboid(0.16, 0.1, 0.1)},
    )


def _reactions(q: tuple[sm.Expr, ...], u: tuple[sm.Expr, ...], parameters: tuple[sm.Symbol, ...]) -> dict[str, sm.Expr]:
    """Pin forces from Newton's and Euler's equations of slider, rod and crank, solved in this order."""
    (theta, beta), (u1, u2, u3) = q, u
    l1, l2, m1, m2, m3, g, _ = parameters
    time = me.dynamicsymbols._t
    crank_vector = sm.Matrix([sm.cos(theta), sm.sin(theta)])
    rod_vector = sm.Matrix([sm.sin(beta), -sm.cos(beta)])
    up = sm.Matrix([0, 1])

    def acceleration(vector: sm.Matrix, angle: sm.Expr, speed: sm.Expr) -> sm.Matrix:
        return vector.diff(angle) * speed.diff(time) - vector * speed**2

    crank_acceleration = l1 * acceleration(crank_vector, theta, u1)
    rod_force = m2 * (crank_acceleration + l2 / 2 * acceleration(rod_vector, beta, u2) + g * up)
    half = l2 / 2 * rod_vector
    pin_x = -m3 * u3.diff(time)
    spin = m2 * l2**2 / 12 * u2.diff(time)
    pin_y = (rod_force[1] + (spin + half[1] * (2 * pin_x - rod_force[0])) / half[0]) / 2
    slider_pin = sm.Matrix([pin_x, pin_y])
    crank_pin = rod_force - slider_pin
    ground_pin = m1 * (crank_acceleration / 2 + g * up) + crank_pin
    pins = {"ground_pin": ground_pin, "crank_pin": crank_pin, "slider_pin": slider_pin}
    outputs = {f"{name}_{axis}": force[i] for name, force in pins.items() for i, axis in enumerate("xy")}
    return outputs | {"guide": m3 * g + pin_y}


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 5.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    energy = np.array([solver.energy(*state) for state in states])
    work = DEFAULTS["tau"] * (solution.q[:, 0] - INITIAL["q"][0])
    yield "energy minus the work of tau (J)", np.ptp(energy - work), 1e-7
    yield "loop closure (m)", max(np.abs(solver.residuals(*state)[0]).max() for state in states), 1e-8
    errors = []
    for state in states:
        outputs = solver.outputs(*state)
        pin = np.array([outputs["slider_pin_y"], outputs["slider_pin_x"]])
        errors.append(np.abs(solver.multipliers(*state) - pin).max())
    yield "multipliers against the slider's pin force (N)", max(errors), 1e-8


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    *panels, forces = left.subplots(3, 1, sharex=True)
    solution.plot("coordinates", "speeds", ax=panels)
    for name in ("ground_pin", "crank_pin", "slider_pin"):
        size = np.hypot(solution[f"{name}_x"], solution[f"{name}_y"])
        forces.plot(solution.t, size, label=name.replace("_", " "))
    forces.set(xlabel="t (s)", ylabel="pin forces (N)")
    forces.legend(fontsize="small")
    kg.plot.strobe(solution, _crank_and_rod, times=np.linspace(0.0, 1.0, 13), ax=right).set_title("0 to 1 s")


def _crank_and_rod(theta: Any, beta: Any, x: Any) -> list[tuple[Any, Any]]:
    return [(0.0, 0.0), (DEFAULTS["l1"] * np.cos(theta), DEFAULTS["l1"] * np.sin(theta)), (x, 0.0)]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
