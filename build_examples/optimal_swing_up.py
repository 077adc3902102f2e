"""Swing-up of least effort
========================

A cart that swings up a pole with the least effort: the first example of most texts on optimal control.

The cart of mass ``m_c`` moves on a horizontal rail, with x to the right. The massless pole of length ``l`` carries a
point mass ``m_p`` at its tip; theta is its angle from the downward vertical, positive when the tip is to the right.
Gravity ``g`` acts downward, the force F on the cart is the control. q = (x, theta), u = q', named ``v`` and ``w``.
Within ``SWING`` = 2 s the pole moves from hanging at x = 0 to standing at x = ``SHIFT`` = 1 m, at rest at both ends,
with ``|F| <= F_MAX`` and ``|x| <= X_MAX``, and the integral of F^2 is minimal (Kelly 2017, "An introduction to
trajectory optimization", section 6).

The equations do not depend on the time, so that along an optimal motion the Hamiltonian ``F^2 + p . z'`` is constant,
with the costates p of z = (q, u). They are the multipliers of the problem. The script computes z' with equations
written by hand, and compares the motion with an integration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m_c": 1.0, "m_p": 0.3, "l": 0.5, "g": 9.81}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0, 0.3), "u": (0.0, 0.0), "r": (0.0,)}
F_MAX, X_MAX, SWING, SHIFT = 20.0, 2.0, 2.0, 1.0


def model() -> kg.Model:
    """The cart-pole with the force on the cart as its input."""
    x, theta, v, w, F = me.dynamicsymbols("x theta v w F")
    m_c, m_p, l, g = sm.symbols("m_c m_p l g")
    time = me.dynamicsymbols._t

    N, pole, O = me.ReferenceFrame("N"), me.ReferenceFrame("pole"), me.Point("O")
    O.set_vel(N, 0)
    cart = O.locatenew("cart", x * N.x)
    cart.set_vel(N, v * N.x)
    pole.orient_axis(N, N.z, theta)
    pole.set_ang_vel(N, w * N.z)
    tip = cart.locatenew("tip", -l * pole.y)
    tip.v2pt_theory(cart, N, pole)
    return kg.Model(
        name="optimal_swing_up",
        frame=N,
        coordinates=(x, theta),
        speeds=(v, w),
        kinematics=(v - x.diff(time), w - theta.diff(time)),
        bodies=(me.Particle("cart", cart, m_c), me.Particle("tip", tip, m_p)),
        gravity=-g * N.y,
        loads=((cart, F * N.x),),
        inputs=(F,),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in (m_c, m_p, l, g)},
    )


@cache
def optimum() -> kg.OptimalMotion:
    """The motion of least effort, from a straight line."""
    system = model()
    F = system.inputs[0].symbol
    rest = {"v": 0.0, "w": 0.0}
    problem = kg.OptimalControl(
        system,
        minimize=kg.Integral(F**2),
        duration=SWING,
        start={"x": 0.0, "theta": 0.0, **rest},
        end={"x": SHIFT, "theta": np.pi, **rest},
        bounds={"F": (-F_MAX, F_MAX), "x": (-X_MAX, X_MAX)},
    )
    return problem.solve()


def simulate() -> tuple[kg.Solver, kg.Solution]:
    motion = optimum()
    return motion.solver, motion.solution


def by_hand(z: np.ndarray, F: np.ndarray) -> np.ndarray:
    """z' for rows z = (x, theta, x', theta')."""
    (m_c, m_p, l, g), (_, theta, v, w) = DEFAULTS.values(), z.T
    s, c = np.sin(theta), np.cos(theta)
    a = (F + m_p * s * (l * w**2 + g * c)) / (m_c + m_p * s**2)
    return np.column_stack([v, w, a, -(c * a + g * s) / l])


def hamiltonian(motion: kg.OptimalMotion) -> tuple[np.ndarray, float]:
    """The Hamiltonian at the stages of the scheme, with the costates there, and the largest of its terms."""
    z, F = np.hstack([motion.solution.q, motion.solution.u]), motion.solution["F"]
    terms = np.column_stack([F**2, motion.multipliers["states"] * by_hand(z, F)])
    return terms.sum(axis=1), float(np.abs(terms).max())


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    motion = optimum()
    inside = np.abs(motion.inputs["F"](solution.t)).max() - F_MAX
    yield "largest force over its limit (N)", max(inside, 0.0), 1e-6
    run = solver.integrate((0.0, SWING), [0.0, 0.0], [0.0, 0.0], motion.inputs, rtol=1e-10, atol=1e-10)
    yield "the pole stands after an integration (rad)", run["theta"][-1] - np.pi, 1e-3
    yield "error of mesh intervals against the integrator", motion.error, 1e-6
    values, largest = hamiltonian(motion)
    yield "change of the Hamiltonian, relative to its terms", np.ptp(values) / largest, 2e-2


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("x", "theta", "F", ax=left)
    kg.plot.strobe(solution, _cart_and_tip, times=np.linspace(0.0, SWING, 21), ax=right)


def _cart_and_tip(x: Any, theta: Any) -> list[tuple[Any, Any]]:
    return [(x, 0.0), (x + DEFAULTS["l"] * np.sin(theta), -DEFAULTS["l"] * np.cos(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
