"""Identification of a double pendulum
===================================

A double pendulum whose masses, lengths and joints are found from noisy angles.

Link i is massless, has the length ``l_i`` and hangs at the angle theta_i from the vertical; it carries the point mass
``m_i``. The joints have the viscous friction ``c_1`` and ``c_2``, and the second one the torsion spring ``k``. The
angles are measured 100 times per second for 5 s with errors of 0.01 rad (normal, seeded). ``kg.fit`` estimates six
parameters and the start of the second link from values that are up to 30 % wrong. ``m_1`` is known: angles alone do not
tell a pendulum from one with twice the masses, friction and stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.2, 0.8), "u": (0.0, 0.0), "r": None}

TRUE: Final = {"m_2": 0.7, "l_1": 0.5, "l_2": 0.4, "c_1": 0.02, "c_2": 0.01, "k": 0.1}
"""The parameters with which the measurements are made."""

NOISE: Final = 0.01
"""Standard deviation of a measured angle, rad."""


def model() -> kg.Model:
    """The pendulum, with the parameters that are known before."""
    theta_1, theta_2 = angles = me.dynamicsymbols("theta_1 theta_2")
    omega_1, omega_2 = speeds = me.dynamicsymbols("omega_1 omega_2")
    m_1, m_2, l_1, l_2, c_1, c_2, k, g = sm.symbols("m_1 m_2 l_1 l_2 c_1 c_2 k g")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    upper, lower = me.ReferenceFrame("upper"), me.ReferenceFrame("lower")
    upper.orient_axis(N, N.z, theta_1)
    lower.orient_axis(N, N.z, theta_2)
    O = me.Point("O")
    O.set_vel(N, 0)
    P_1 = O.locatenew("P_1", -l_1 * upper.y)
    P_2 = P_1.locatenew("P_2", -l_2 * lower.y)
    torque = -(c_2 * (omega_2 - omega_1) + k * (theta_2 - theta_1)) * N.z

    return kg.Model(
        name="identify_double_pendulum",
        frame=N,
        coordinates=angles,
        speeds=speeds,
        kinematics=[u - q.diff(time) for q, u in zip(angles, speeds, strict=True)],
        bodies=[me.Particle("mass_1", P_1, m_1), me.Particle("mass_2", P_2, m_2)],
        gravity=-g * N.y,
        loads=[(upper, -c_1 * omega_1 * N.z - torque), (lower, torque)],
        outputs={"tip": P_2.pos_from(O).to_matrix(N)[:2]},
        parameters={m_1: 1.0, m_2: 0.9, l_1: 0.55, l_2: 0.36, c_1: 0.015, c_2: 0.013, k: 0.12, g: 9.81},
    )


def measurements(solver: kg.Solver) -> dict[str, Any]:
    """Times and noisy angles of the true motion."""
    times = np.linspace(0.0, 5.0, 501)
    motion = solver.with_parameters(TRUE).integrate((0.0, 5.0), INITIAL["q"], INITIAL["u"], t_eval=times, rtol=1e-10)
    angles = motion.q + NOISE * np.random.default_rng(1).normal(size=motion.q.shape)
    return {"t": times, "theta_1": angles[:, 0], "theta_2": angles[:, 1]}


@cache
def identified() -> kg.results.Fit:
    """The fit to the measurements, which starts from the parameters of the model."""
    solver = kg.build(model())
    return kg.fit(
        solver,
        measurements(solver),
        parameters=dict.fromkeys(TRUE, (0.0, None)),
        start=("theta_2",),
        q0={"theta_1": INITIAL["q"][0], "theta_2": 0.9},
        u0=INITIAL["u"],
        sigma=NOISE,
    )


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver: kg.Solver = identified().solver
    return solver, solver.integrate((0.0, 5.0))


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    fit, true = identified(), {**TRUE, "theta_2": INITIAL["q"][1]}
    estimates = {**fit.parameters, **fit.start}
    for name, error in fit.standard_errors.items():
        yield f"error of {name} over its standard error", (estimates[name] - true[name]) / error, 3.0
    # The sum of the squares of n normal residuals less the 7 of the estimates has the variance 2 n.
    n = fit.degrees_of_freedom
    yield "chi-square, in standard deviations from its mean", (2.0 * fit.cost - n) / np.sqrt(2.0 * n), 3.0


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    fit = identified()
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2)
    axis = solution.plot(["theta_1", "theta_2"], ax=left)[0]
    for name, values in fit.motions[0].measured.items():
        axis.plot(fit.motions[0].t, values, ".", markersize=1, color="0.5", label=f"_{name}")
    fit.plot(ax=right)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
