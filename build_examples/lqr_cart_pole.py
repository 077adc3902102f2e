"""Linear-quadratic regulator
==========================

A cart that balances a pole with a linear-quadratic regulator whose force is limited.

The cart of mass ``m_c`` moves on a horizontal rail, with x to the right. The massless pole of length ``l`` carries a
point mass ``m_p`` at its tip; theta is its angle from the upward vertical, positive when the tip is to the right.
Gravity ``g`` acts downward. u = (x', theta'), named ``v`` and ``w``. The force on the cart is a feedback law of the
model, compiled with the equations,

    F = -k_x x - k_theta theta - k_v x' - k_w theta',    -F_max <= F <= F_max.

The gains minimize the integral of ``z^T Q z + R F^2`` for the linear model about the upright position, z = (x, theta,
x', theta'), ``Q = diag(10, 1, 1, 1)``, ``R = 0.1`` (Anderson and Moore 1990, "Optimal Control", chapter 3):
``solver.linearize`` gives A and B, SciPy solves Riccati's equation for S, and ``K = B^T S / R``. Gains are parameters,
so that ``with_parameters`` sets them without a new build.

The script compares the eigenvalues of the closed loop with those of the Hamiltonian matrix of the problem, the cost of
a small motion with ``z0^T S z0``, and the motion from a start in which the force is limited at first with the equations
written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import cos, sin
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import simpson, solve_ivp
from scipy.linalg import solve_continuous_are

import kanegen as kg

GAINS = ("k_x", "k_theta", "k_v", "k_w")
DEFAULTS = {
    **{"m_c": 1.0, "m_p": 0.3, "l": 0.6, "g": 9.81, "F_max": 8.0},
    **{"k_x": -10.0, "k_theta": -65.3, "k_v": -10.8, "k_w": -15.7},  # rounded
}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0, 0.3), "u": (0.0, 0.5), "r": None}
Q, R = np.diag([10.0, 1.0, 1.0, 1.0]), np.array([[0.1]])
END = 10.0
SMALL = np.array([1e-3, -2e-3, 1e-3, 0.0])
"""A start at which the linear model holds to six digits."""


def model(limited: bool = True) -> kg.Model:
    """The cart-pole with the law of its force, which is also the output ``force``; ``limited``: with saturation."""
    x, theta, v, w, F = me.dynamicsymbols("x theta v w F")
    m_c, m_p, l, g, F_max = sm.symbols("m_c m_p l g F_max")
    gains = sm.symbols(GAINS)
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    cart = O.locatenew("cart", x * N.x)
    cart.set_vel(N, v * N.x)
    pole = me.ReferenceFrame("pole")
    pole.orient_axis(N, N.z, -theta)
    pole.set_ang_vel(N, -w * N.z)
    tip = cart.locatenew("tip", l * pole.y)
    tip.v2pt_theory(cart, N, pole)

    law = -sum(gain * z for gain, z in zip(gains, (x, theta, v, w), strict=True))
    return kg.Model(
        name="lqr_cart_pole",
        frame=N,
        coordinates=(x, theta),
        speeds=(v, w),
        kinematics=(v - x.diff(time), w - theta.diff(time)),
        bodies=(me.Particle("cart", cart, m_c), me.Particle("tip", tip, m_p)),
        gravity=-g * N.y,
        loads=((cart, F * N.x),),
        inputs=(kg.Input(F, law=law, saturation=(-F_max, F_max) if limited else None),),
        outputs={"force": F},
        parameters={name: value for name, value in DEFAULTS.items() if limited or name != "F_max"},
    )


def regulator(solver: kg.Solver) -> tuple[kg.Solver, np.ndarray, kg.results.Linearization]:
    """The solver with optimal gains, the matrix S of Riccati's equation, and the linear model without the law."""
    linear = solver.linearize(0.0, np.zeros(2), np.zeros(2))
    S = solve_continuous_are(linear.A, linear.B, Q, R)
    K = np.linalg.solve(R, linear.B.T @ S)[0]
    return solver.with_parameters(dict(zip(GAINS, K, strict=True))), S, linear


def simulate(**parameters: Any) -> tuple[kg.Solver, kg.Solution]:
    solver, _, _ = regulator(kg.build(model(), functions="all").with_parameters(**parameters))
    return solver, solver.integrate((0.0, END), INITIAL["q"], INITIAL["u"], method="dop853", rtol=1e-10, atol=1e-12)


def by_hand(p: Mapping[str, float], y: np.ndarray) -> np.ndarray:
    """y' for y = (x, theta, x', theta'), written by hand."""
    _, theta, v, w = y
    force = -sum(p[gain] * z for gain, z in zip(GAINS, y, strict=True))
    force = min(max(force, -p["F_max"]), p["F_max"])
    c, s = cos(theta), sin(theta)
    a = (force + p["m_p"] * s * (p["l"] * w**2 - p["g"] * c)) / (p["m_c"] + p["m_p"] * s**2)
    return np.array([v, w, a, (p["g"] * s - c * a) / p["l"]])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p = dict(solver.parameters)
    _, S, linear = regulator(solver)
    closed = solver.linearize(0.0, np.zeros(2), np.zeros(2), closed_loop=True)
    hamiltonian = np.block([[linear.A, -linear.B @ np.linalg.solve(R, linear.B.T)], [-Q, -linear.A.T]])
    stable = np.sort_complex([x for x in np.linalg.eigvals(hamiltonian) if x.real < 0.0])
    yield "eigenvalues against the Hamiltonian matrix", np.abs(np.sort_complex(closed.eigenvalues) - stable).max(), 1e-9

    small = solver.integrate((0.0, 20.0), SMALL[:2], SMALL[2:], rtol=1e-10, atol=1e-14, t_eval=np.linspace(0, 20, 4001))
    z, force = np.hstack([small.q, small.u]), small["F"]
    cost = simpson(np.einsum("ti,ij,tj->t", z, Q, z) + R[0, 0] * force**2, x=small.t)
    yield "cost of a small motion against z0^T S z0, relative", cost / (SMALL @ S @ SMALL) - 1.0, 1e-5

    motion = np.hstack([solution.q, solution.u])
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "max_step": 0.01, "t_eval": solution.t}
    peer = solve_ivp(lambda t, y: by_hand(p, y), (0.0, END), motion[0], **options).y.T
    yield "motion against SciPy", np.abs(motion - peer).max(), 1e-7
    yield "largest force over its limit", np.abs(solution["F"]).max() / p["F_max"] - 1.0, 1e-15
    yield "the pole is upright at the end (rad)", solution["theta"][-1], 1e-2
    at_limit = [abs(sum(p[k] * x for k, x in zip(GAINS, [*e.q, *e.u_after], strict=True))) for e in solution.events]
    K, fine = np.array([p[k] for k in GAINS]), np.hstack(solution(np.linspace(0.0, END, 20001)))
    passed = np.count_nonzero(np.diff(np.abs(fine @ K) > p["F_max"]))
    yield "limits passed, less those that were located", float(passed - len(solution.events)), 0.0
    yield "|K z| over F_max there", np.abs(np.array(at_limit) / p["F_max"] - 1.0).max(), 1e-9


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axes = solution.plot("x", "theta", "F", ax=left)
    axes[-1].axhline(solver.parameters["F_max"], color="k", linestyle=":")
    axes[-1].set_xlim(0.0, 6.0)
    kg.plot.strobe(solution, _cart_and_tip, times=np.linspace(0.0, 1.5, 11), ax=right).set_title("0 to 1.5 s")


def _cart_and_tip(x: Any, theta: Any) -> list[tuple[Any, Any]]:
    return [(x, 0.0), (x + DEFAULTS["l"] * np.sin(theta), DEFAULTS["l"] * np.cos(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
