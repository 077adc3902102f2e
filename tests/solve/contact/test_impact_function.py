"""A ball on a floor with the IMPACT function, against its equation of motion integrated by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from scipy.integrate import solve_ivp

import kanegen as kg

M, G, STIFFNESS, DAMPING, DEPTH = 0.5, 9.81, 2e4, 15.0, 5e-3
HEIGHT, SPEED, END = 0.3, -1.0, 0.3
VALUES = {"m": M, "g": G, "k": STIFFNESS, "c": DAMPING, "d": DEPTH}


m, g, k, c, d = sm.symbols("m g k c d")


def ball(quantity: str, stiffness: Any = k, damping: Any = c, depth: Any = d) -> kg.Model:
    y, v = me.dynamicsymbols("y v")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", y * N.y)
    return kg.Model(
        name="ball",
        frame=N,
        coordinates=[y],
        speeds=[v],
        kinematics=[y.diff() - v],
        bodies=[me.Particle("ball", P, m)],
        gravity=-g * N.y,
        contacts=[kg.Unilateral(y, kg.ImpactFunction(stiffness, damping, depth, quantity=quantity), name="floor")],
        parameters={name: x for name, x in VALUES.items() if sm.Symbol(name) in (m, g, stiffness, damping, depth)},
    )


def response(y: float, v: float) -> float:
    """The law in numbers."""
    s = min(-y / DEPTH, 1.0)
    return STIFFNESS * (-y) ** 1.5 - DAMPING * s * s * (3.0 - 2.0 * s) * v


@pytest.mark.parametrize("quantity", ["force", "acceleration"])
def test_a_bounce_agrees_with_scipy(quantity: str) -> None:
    solver = kg.build(ball(quantity))
    times = np.linspace(0.0, END, 31)
    solution = solver.integrate((0.0, END), [HEIGHT], [SPEED], t_eval=times, rtol=1e-12, atol=1e-14)
    # With quantity="acceleration" the law alone prescribes the motion in contact, whatever the mass and the weight.
    factor, weight = (1.0 / M, G) if quantity == "force" else (1.0, 0.0)

    def motion(t: float, x: Any) -> list[float]:
        # The floor does not pull.
        return [x[1], max(factor * response(*x) - weight, -G) if x[0] < 0.0 else -G]

    expected = solve_ivp(motion, (0.0, END), [HEIGHT, SPEED], "DOP853", times, rtol=1e-12, atol=1e-14, max_step=1e-4)
    assert np.abs(solution.q[:, 0] - expected.y[0]).max() < 1e-8
    assert np.abs(solution.u[:, 0] - expected.y[1]).max() < 1e-7
    energy = solution.u[:, 0] ** 2 / 2 + G * solution.q[:, 0]
    assert solution.q[:, 0].min() < -DEPTH
    assert solution.q[-1, 0] > 0.0
    assert energy[-1] < 0.99 * energy[0]


@pytest.mark.parametrize(("values", "name"), [((k, c, 0), "depth"), ((k, -1, d), "damping"), ((-1, c, d), "stiffness")])
def test_values_outside_their_limits_are_refused(values: tuple[Any, ...], name: str) -> None:
    with raises(kg.ModelError, name):
        ball("force", *values)
