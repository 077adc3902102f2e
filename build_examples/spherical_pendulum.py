"""Spherical pendulum
==================

The spherical pendulum by Kane's, Lagrange's and Hamilton's equations.

A particle of mass ``m`` is attached to a massless rod of length ``l``. theta is measured from the downward vertical,
phi is the azimuth, and u = (theta', phi'). phi is cyclic: its momentum, the angular momentum about the vertical, is
conserved. So is the Hamiltonian, which equals Jacobi's integral and, since the system is natural, the energy.

Source: lecture notes on Lagrange's and Hamilton's equations (example "spherical pendulum"), whose equations are all
right. The potential energy is m g l (1 - cos theta). The script compares the motion with Hamilton's canonical
equations, integrated by SciPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m": 1.3, "l": 0.7, "g": 9.81}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.8, 0.2), "u": (0.5, 1.5), "r": None}


def model() -> kg.Model:
    """The pendulum in minimal coordinates.

    Outputs are the canonical momenta ``p_theta`` and ``p_phi``; their rates from the motion and from Hamilton's
    equations (``p_theta_rate``, ``hamilton_p_theta_rate``, ...); ``hamiltonian``, H(q, p); ``jacobi_integral``,
    T2 - T0 + V; ``angular_momentum`` about the vertical, computed from vectors; and ``lagrange_theta`` and
    ``lagrange_phi``, the left sides of Lagrange's equations, which are zero.
    """
    theta, phi = me.dynamicsymbols("theta phi")
    u1, u2 = me.dynamicsymbols("u1 u2")
    m, l, g = sm.symbols("m l g")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    azimuth = me.ReferenceFrame("azimuth")
    azimuth.orient_axis(N, N.z, phi)
    rod = me.ReferenceFrame("rod")
    rod.orient_axis(azimuth, azimuth.y, -theta)
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", -l * rod.z)

    velocity = P.pos_from(O).dt(N).subs({theta.diff(time): u1, phi.diff(time): u2})
    kinetic = m * l**2 * (u1**2 + u2**2 * sm.sin(theta) ** 2) / 2
    potential = m * g * l * (1 - sm.cos(theta))
    return kg.Model(
        name="spherical_pendulum",
        frame=N,
        coordinates=(theta, phi),
        speeds=(u1, u2),
        kinematics=(u1 - theta.diff(time), u2 - phi.diff(time)),
        bodies=(me.Particle("bob", P, m),),
        loads=((P, -m * g * N.z),),
        potential_energy=potential,
        outputs=_canonical_outputs((theta, phi), (u1, u2), kinetic, potential)
        | {"angular_momentum": P.pos_from(O).cross(m * velocity).dot(N.z)},
        parameters={m: DEFAULTS["m"], l: DEFAULTS["l"], g: DEFAULTS["g"]},
    )


def _canonical_outputs(
    q: tuple[sm.Expr, ...], u: tuple[sm.Expr, ...], kinetic: sm.Expr, potential: sm.Expr
) -> dict[str, sm.Expr]:
    """Lagrange's and Hamilton's functions of a natural system with u = q', as expressions in q, u and u'."""
    time = me.dynamicsymbols._t
    lagrangian = kinetic - potential
    rates = dict(zip((qi.diff(time) for qi in q), u, strict=True))
    momenta = [lagrangian.diff(ui) for ui in u]
    canonical = sm.symbols("p_theta p_phi")
    speeds = sm.solve([p - momentum for p, momentum in zip(canonical, momenta, strict=True)], u)
    hamiltonian = sum(p * speeds[ui] for p, ui in zip(canonical, u, strict=True)) - lagrangian.subs(speeds)
    back = dict(zip(canonical, momenta, strict=True))

    outputs = {"hamiltonian": hamiltonian.subs(back), "jacobi_integral": kinetic + potential}
    for qi, p, momentum in zip(q, canonical, momenta, strict=True):
        rate = momentum.diff(time).subs(rates)
        outputs[str(p)] = momentum
        outputs[f"{p}_rate"] = rate
        outputs[f"hamilton_{p}_rate"] = -hamiltonian.diff(qi).subs(back)
        outputs[f"lagrange_{qi.func.__name__}"] = rate - lagrangian.diff(qi)
    return outputs


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, 10.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def hamilton(t_eval: np.ndarray) -> np.ndarray:
    """Integrate the lecture's canonical equations with SciPy: (theta, phi, p_theta, p_phi) at ``t_eval``."""
    from scipy.integrate import solve_ivp

    m, l, g = (DEFAULTS[name] for name in ("m", "l", "g"))
    inertia = m * l**2

    def canonical(_: float, y: np.ndarray) -> list[float]:
        theta, _, p_theta, p_phi = y
        s, c = np.sin(theta), np.cos(theta)
        return [
            p_theta / inertia,
            p_phi / (inertia * s**2),
            p_phi**2 * c / (inertia * s**3) - m * g * l * s,
            0.0,
        ]

    (theta, phi), (u1, u2) = INITIAL["q"], INITIAL["u"]
    start = [theta, phi, inertia * u1, inertia * u2 * np.sin(theta) ** 2]
    span = (t_eval[0], t_eval[-1])
    return np.asarray(solve_ivp(canonical, span, start, "DOP853", t_eval, rtol=1e-12, atol=1e-13).y.T)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    canonical = hamilton(solution.t)
    yield "q against Hamilton's equations", np.abs(solution.q - canonical[:, :2]).max(), 1e-7
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    momenta = np.array([solver.momentum(*state) for state in states])
    yield "momenta against Hamilton's equations", np.abs(momenta - canonical[:, 2:]).max(), 1e-7
    outputs = [solver.outputs(*state) for state in states]
    for name in ("hamiltonian", "jacobi_integral", "angular_momentum"):
        yield f"drift of {name}", np.ptp([output[name] for output in outputs]), 1e-7
    for name in ("lagrange_theta", "lagrange_phi"):
        yield name, max(abs(output[name]) for output in outputs), 1e-12


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("theta", "speeds", ["kinetic_energy", "potential_energy"], ax=left)
    kg.plot.strobe(solution, _projection, times=np.linspace(0.0, 2.0, 13), ax=right).set_title("seen from above")


def _projection(theta: Any, phi: Any) -> list[tuple[Any, Any]]:
    radius = DEFAULTS["l"] * np.sin(theta)
    return [(0.0, 0.0), (radius * np.cos(phi), radius * np.sin(phi))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
