"""Rheonomic nonholonomic particle
===============================

A particle with a nonholonomic constraint that depends on time, y' = z x' + alpha(t).

A particle of mass ``m`` in Cartesian coordinates moves under the constant force (``Fx``, ``Fy``, ``Fz``), with
alpha = 0.3 sin 2t. The speeds are u = (x', z', y'), in this order.

Source: Bajodah (2003), Example 2.2. The script compares the accelerations with equations (94)-(96), and z with the
exact parabola.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import cos
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0, 0.0, 0.5), "u": (1.0, -0.3, 0.5), "r": None}


def model() -> kg.Model:
    """The particle with its rheonomic constraint; u3 = y' is dependent."""
    x, y, z = me.dynamicsymbols("x y z")
    u1, u2, u3 = me.dynamicsymbols("u1 u2 u3")
    m, Fx, Fy, Fz = sm.symbols("m Fx Fy Fz")
    time = me.dynamicsymbols._t
    alpha = sm.Rational(3, 10) * sm.sin(2 * time)

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y + z * N.z)

    return kg.Model(
        name="rheonomic_particle",
        frame=N,
        coordinates=(x, y, z),
        speeds=(u1, u2, u3),
        kinematics=(u1 - x.diff(time), u2 - z.diff(time), u3 - y.diff(time)),
        bodies=(me.Particle("particle", P, m),),
        loads=((P, Fx * N.x + Fy * N.y + Fz * N.z),),
        nonholonomic_constraints=(u3 - z * u1 - alpha,),
        dependent_speeds=(u3,),
        parameters={m: 2.0, Fx: 0.6, Fy: -0.8, Fz: 0.25},
    )


def accelerations(t: float, q: np.ndarray, u: np.ndarray, p: Mapping[str, float]) -> np.ndarray:
    """u' from equations (94)-(96) of Bajodah (2003)."""
    z = q[2]
    m = p["m"]
    a = m * (1 + z**2)
    transport = u[0] * u[1] + 0.6 * cos(2 * t)
    push = (p["Fx"] + p["Fy"] * z) / a
    return np.array([-m * z / a * transport + push, p["Fz"] / m, m / a * transport + z * push])


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 10.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p = {str(symbol): value for symbol, value in model().parameters.items()}
    t, q, u = solution.t, solution.q, solution.u
    difference = [np.abs(solver.rhs(*state)[1] - accelerations(*state, p)).max() for state in zip(t, q, u, strict=True)]
    yield "u' against equations (94)-(96)", max(difference), 1e-12
    parabola = INITIAL["q"][2] + INITIAL["u"][1] * t + p["Fz"] / p["m"] * t**2 / 2
    yield "z against its parabola (m)", np.abs(q[:, 2] - parabola).max(), 1e-8
    residual = u[:, 2] - q[:, 2] * u[:, 0] - 0.3 * np.sin(2 * t)
    yield "drift of y' - z x' - alpha (m/s)", np.abs(residual).max(), 1e-8


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("coordinates", "speeds", "multipliers", ax=left)
    kg.plot.phase(solution, "x", "z", ax=right)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
