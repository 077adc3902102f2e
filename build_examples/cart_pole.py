"""Cart with a pole
================

A cart with a pole: one force on the cart, two degrees of freedom.

The cart of mass ``m_c`` moves on a horizontal rail, with x to the right. The massless pole of length ``l`` carries a
point mass ``m_p`` at its tip; theta is its angle from the upward vertical, positive when the tip is to the right.
Gravity ``g`` acts downward. The control is the force ``F`` on the cart. u = (x', theta').

The system is underactuated. For every F the accelerations satisfy the second-order nonholonomic constraint

    cos theta x'' + l theta'' = g sin theta

(Bajodah 2003, section 1.3). A servo-constraint on one coordinate leaves the other one to this equation:

``model(task="cart")``
    x = A sin(omega t): the cart follows its target, and the pole, which hangs at first, is moved by its pivot.
``model(task="pole")``
    theta = B sin(omega t) about the upright position: the pole is balanced, and the cart moves as this requires. The
    control is singular at theta = +-pi/2, where the force does not move the pole.

The script compares the tracking errors with their desired dynamics, and the other coordinate with its own
differential equation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import cos, exp, pi, sin
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

import kanegen as kg

DEFAULTS = {"m_c": 1.0, "m_p": 0.3, "l": 0.6, "g": 9.81, "A": 0.2, "B": 0.15, "omega": 2.0, "s": 3.0}
STARTS = {
    "cart": {"t": 0.0, "q": (0.1, pi - 0.05), "u": (0.0, 0.0), "r": (0.0,)},
    "pole": {"t": 0.0, "q": (0.0, 0.2), "u": (0.0, 0.0), "r": (0.0,)},
}
INITIAL: dict[str, Any] = STARTS["cart"]
CASES = {task: {"task": task} for task in STARTS}


def model(task: str = "cart") -> kg.Model:
    """The cart-pole with a servo-constraint on the cart or on the pole; errors decay like (1 + s t) exp(-s t)."""
    x, theta, v, w, F = me.dynamicsymbols("x theta v w F")
    m_c, m_p, l, g, A, B, omega, s = sm.symbols("m_c m_p l g A B omega s")
    time = me.dynamicsymbols._t
    targets = {"cart": (x, A), "pole": (theta, B)}
    coordinate, amplitude = targets[task]

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    cart = O.locatenew("cart", x * N.x)
    cart.set_vel(N, v * N.x)
    pole = me.ReferenceFrame("pole")
    pole.orient_axis(N, N.z, -theta)
    pole.set_ang_vel(N, -w * N.z)
    tip = cart.locatenew("tip", l * pole.y)
    used = (m_c, m_p, l, g, amplitude, omega, s)

    return kg.Model(
        name=f"cart_pole_{task}",
        frame=N,
        coordinates=(x, theta),
        speeds=(v, w),
        kinematics=(v - x.diff(time), w - theta.diff(time)),
        bodies=(me.Particle("cart", cart, m_c), me.Particle("tip", tip, m_p)),
        loads=((cart, F * N.x),),
        gravity=-g * N.y,
        inputs=(F,),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in used},
        control=kg.Servo(coordinate - amplitude * sm.sin(omega * time), theta=(-2 * s, -(s**2))),
    )


def simulate(task: str) -> tuple[kg.Solver, kg.Solution]:
    solver, start = kg.build(model(task), functions="all"), STARTS[task]
    span = (0.0, 10.0) if task == "cart" else (0.0, 3.0)
    return solver, solver.integrate(span, start["q"], start["u"], control=True, rtol=1e-11, atol=1e-12)


def error_law(t: float, psi: float, rate: float, s: float) -> float:
    """psi(t) of psi'' + 2 s psi' + s**2 psi = 0."""
    return (psi + (rate + s * psi) * t) * exp(-s * t)


def internal_motion(solver: kg.Solver, solution: kg.Solution) -> np.ndarray:
    """The coordinate without a servo-constraint, from its own equation with the other coordinate prescribed."""
    p = solver.parameters
    on_cart = "A" in p
    amplitude, omega, s = p["A" if on_cart else "B"], p["omega"], p["s"]
    first, other = (0, 1) if on_cart else (1, 0)
    psi, rate = solution.q[0, first], solution.u[0, first] - amplitude * omega

    def acceleration(t: float, y: np.ndarray) -> tuple[float, float]:
        a, b = psi, rate + s * psi
        error = (-2 * s * b + s**2 * (a + b * t)) * exp(-s * t)
        forced = error - amplitude * omega**2 * sin(omega * t)
        if on_cart:
            return y[1], (p["g"] * sin(y[0]) - cos(y[0]) * forced) / p["l"]
        theta = error_law(t, psi, rate, s) + amplitude * sin(omega * t)
        return y[1], (p["g"] * sin(theta) - p["l"] * forced) / cos(theta)

    start = (solution.q[0, other], solution.u[0, other])
    span = (solution.t[0], solution.t[-1])
    return np.asarray(solve_ivp(acceleration, span, start, "DOP853", solution.t, rtol=1e-11, atol=1e-12).y[0])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    psi, rate = solution.control.errors.T
    s = solver.parameters["s"]
    law = [error_law(t, psi[0], rate[0], s) for t in solution.t]
    yield "tracking error against its desired dynamics", np.abs(psi - law).max(), 1e-8
    other = 1 if "A" in solver.parameters else 0
    yield (
        "the other coordinate against its own equation",
        np.abs(solution.q[:, other] - internal_motion(solver, solution)).max(),
        1e-7,
    )
    states = list(zip(solution.t, solution.q, solution.u, solution.control.values, strict=True))
    equations = [solver.underactuation(t, q, u) for t, q, u, _ in states]
    rates = [solver.rhs(t, q, u, F)[1] for t, q, u, F in states]
    left = [np.abs(row.matrix @ udot - row.right_side).max() for row, udot in zip(equations, rates, strict=True)]
    yield "second-order nonholonomic constraint", max(left), 1e-10


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    panels = figure.subplots(4, len(runs), height_ratios=(2, 1, 1, 1))
    for (top, *column), (name, (_, solution)) in zip(panels.T, runs.items(), strict=True):
        times = np.linspace(0.0, 3.0, 16)
        kg.plot.strobe(solution, _cart_and_tip, times=times, ax=top).set_title(f"servo-constraint on the {name}")
        solution.plot("x", "theta", "F", ax=column)


def _cart_and_tip(x: Any, theta: Any) -> list[tuple[Any, Any]]:
    return [(x, 0.0), (x + DEFAULTS["l"] * np.sin(theta), DEFAULTS["l"] * np.cos(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
