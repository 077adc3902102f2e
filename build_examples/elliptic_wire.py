"""Bead on an elliptic wire
========================

A bead on a frictionless elliptic wire, attached to a spring.

A particle of mass ``m`` in a horizontal plane follows the wire ``a`` (x - ``x0``)^2 + ``b`` y^2 = ``c``. A spring of
stiffness ``K`` and zero natural length connects it with the origin. u = (x', y').

Source: Bajodah (2003), Example 4.1. The script compares the reaction of the wire, which is computed without auxiliary
speeds, with equation (269). ``--plot`` draws figures 12 to 14.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import hypot, sqrt
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m": 0.5, "a": 1.0, "b": 2.0, "c": 3.0, "x0": 0.4, "K": 3.5}


def _start() -> dict[str, Any]:
    """On the wire with y > 0, moving along it (counterclockwise) at 1.5 m/s."""
    a, b, c, x0 = (DEFAULTS[name] for name in ("a", "b", "c", "x0"))
    x = 1.4766600475360685
    y = sqrt((c - a * (x - x0) ** 2) / b)
    normal = (a * (x - x0), b * y)
    speed = 1.5 / hypot(*normal)
    return {"t": 0.0, "q": (x, y), "u": (-speed * normal[1], speed * normal[0]), "r": None}


INITIAL: dict[str, Any] = _start()


def model() -> kg.Model:
    """The bead with its holonomic constraint; outputs ``reaction_x`` and ``reaction_y`` (N) of the wire."""
    x, y = me.dynamicsymbols("x y")
    u1, u2 = me.dynamicsymbols("u1 u2")
    m, a, b, c, x0, K = symbols = sm.symbols("m a b c x0 K")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)

    return kg.Model(
        name="elliptic_wire",
        frame=N,
        coordinates=(x, y),
        speeds=(u1, u2),
        kinematics=(u1 - x.diff(time), u2 - y.diff(time)),
        bodies=(me.Particle("bead", P, m),),
        loads=((P, -K * (x * N.x + y * N.y)),),
        holonomic_constraints=(a * (x - x0) ** 2 + b * y**2 - c,),
        potential_energy=K * (x**2 + y**2) / 2,
        outputs={
            "reaction_x": m * u1.diff(time) + K * x,
            "reaction_y": m * u2.diff(time) + K * y,
        },
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
    )


def reaction(q: np.ndarray, u: np.ndarray, p: Mapping[str, float]) -> np.ndarray:
    """The reaction of the wire, Bajodah (2003), equation (269)."""
    x, y = q
    bar = x - p["x0"]
    epsilon = p["a"] * bar / (p["b"] * y)
    e1 = p["a"] * p["b"] * u[0] * (-y * u[0] + bar * u[1]) / (p["b"] * y) ** 2
    along = (p["m"] * e1 + p["K"] * (epsilon * x + y)) / (epsilon**2 + 1)
    return np.asarray(along * np.array([epsilon, 1.0]))


def simulate() -> tuple[kg.Solver, kg.Solution]:
    """Integrate; where the wire is parallel to y, u1 cannot be independent, and the solver chooses u2 instead."""
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 10.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def _reactions(solver: kg.Solver, solution: kg.Solution) -> np.ndarray:
    states = zip(solution.t, solution.q, solution.u, strict=True)
    return np.array([solver.constraint_force(*state) for state in states])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    forces = _reactions(solver, solution)
    # Equation (269) divides by y: compare only where y is not small.
    difference = [
        np.abs(force - reaction(q, u, DEFAULTS)).max()
        for force, q, u in zip(forces, solution.q, solution.u, strict=True)
        if abs(q[1]) > 0.1
    ]
    yield "reaction of the wire against (269) (N)", max(difference), 1e-7
    energy = [solver.energy(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)]
    yield "energy drift (J)", np.abs(np.array(energy) - energy[0]).max(), 1e-7
    wire = (solution.q[:, 0] - 0.4) ** 2 + 2.0 * solution.q[:, 1] ** 2 - 3.0
    yield "distance function of the wire (m^2)", np.abs(wire).max(), 1e-7


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Figures 12 (coordinates), 13 (speeds) and 14 (constraint forces) of the thesis, and the path on the wire."""
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("coordinates", "speeds", "outputs", ax=left)
    path = kg.plot.strobe(solution, lambda x, y: [(0.0, 0.0), (x, y)], times=np.linspace(0.0, 1.0, 9), ax=right)
    path.set_title("bead and spring, 0 to 1 s")


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
