"""Pendulum of varying length
==========================

A pendulum of varying length, and the effect of constraint stabilization.

A particle of mass ``m`` is attached to a massless rod whose length varies so that y + x^2 / ``l0`` = ``l0``. x is
horizontal, y points down, and gravity ``g`` acts along y. u = (x', y').

Source: Bajodah (2003), Example 4.3. The constraint is integrated as phi'' = 0 or, with Baumgarte's stabilization, as
phi'' + 20 phi' + 100 phi = 0. The script compares the drift of both after 500 s with the method and step of the
thesis (figures 17, 19, 20 and 22). The minimal equation (326) is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.0, 0.0), "u": (0.0, 0.0), "r": None}
CASES: dict[str, dict[str, Any]] = {
    "no stabilization": {},
    "Baumgarte (10, 10)": {"stabilization": kg.Baumgarte(alpha=10, beta=10)},
}


def model() -> kg.Model:
    """The particle with its holonomic constraint; the potential energy is zero at y = l0, (312)."""
    x, y = me.dynamicsymbols("x y")
    u1, u2 = me.dynamicsymbols("u1 u2")
    m, g, l0 = sm.symbols("m g l0")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)

    return kg.Model(
        name="varying_pendulum",
        frame=N,
        coordinates=(x, y),
        speeds=(u1, u2),
        kinematics=(u1 - x.diff(time), u2 - y.diff(time)),
        bodies=(me.Particle("particle", P, m),),
        loads=((P, m * g * N.y),),
        holonomic_constraints=(y + x**2 / l0 - l0,),
        dependent_speeds=(u2,),
        potential_energy=m * g * (l0 - y),
        parameters={m: 1.0, g: 9.81, l0: 1.0},
    )


def accelerations(q: np.ndarray, u: np.ndarray, g: float = 9.81, gains: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """u' for l0 = 1 from Bajodah (2003), (310)-(311), and (314)-(315) with gains (Gamma1, Gamma2)."""
    (x, y), (u1, u2) = q, u
    correction = gains[1] * (y + x**2 - 1) + gains[0] * (u2 + 2 * x * u1)
    denominator = 1 + 4 * x**2
    return np.array(
        [
            2 * x * (correction - g - 2 * u1**2) / denominator,
            (4 * g * x**2 + correction - 2 * u1**2) / denominator,
        ]
    )


def simulate(stabilization: kg.Baumgarte | None = None) -> tuple[kg.Solver, kg.Solution]:
    """Integrate 500 s by Kutta-Merson with the step 0.001 s of figures 17, 19, 20 and 22; store every 100th step."""
    solver = kg.build(model(), stabilization=stabilization)
    t_eval = np.linspace(0.0, 500.0, 5001)
    solution = solver.integrate(
        (0.0, 500.0), INITIAL["q"], INITIAL["u"], method="kutta_merson", step=0.001, t_eval=t_eval
    )
    return solver, solution


def violation(solution: kg.Solution) -> np.ndarray:
    return solution.q[:, 1] + solution.q[:, 0] ** 2 - 1.0


def energy_drift(solver: kg.Solver, solution: kg.Solution) -> np.ndarray:
    states = zip(solution.t, solution.q, solution.u, strict=True)
    energy = np.array([solver.energy(*state) for state in states])
    return np.asarray(energy - energy[0])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    yield "constraint violation (m)", np.abs(violation(solution)).max(), 1e-6
    yield "energy drift (J)", np.abs(energy_drift(solver, solution)).max(), 1e-5
    u1, x = solution.u[:, 0], solution.q[:, 0]
    first_integral = u1**2 * (1 + 4 * x**2) / 2 + 9.81 * x**2
    yield "first integral of the minimal equation (326)", np.ptp(first_integral), 1e-5


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Constraint violation (figures 17 and 20) and energy deviation (19 and 22), and the motion on the parabola."""
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    kg.plot.drift({name: run for name, (_, run) in runs.items()}, ax=left.subplots(3, 1, sharex=True))
    _, solution = next(iter(runs.values()))
    kg.plot.strobe(solution, lambda x, y: [(0.0, 0.0), (x, y)], times=np.linspace(0.0, 0.8, 9), ax=right)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
