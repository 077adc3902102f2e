"""Models for tests of identification: an oscillator, whose motion is known in closed form, and a pendulum on a rail."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIMES = np.linspace(0.0, 4.0, 81)


@cache
def oscillator() -> kg.Solver:
    """``m x'' = F - d x' - k x`` with the output ``both`` (x, x + v)."""
    x, v, F = me.dynamicsymbols("x v F")
    m, d, k = sm.symbols("m d k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    model = kg.Model(
        name="identified_oscillator",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[v - x.diff()],
        bodies=[me.Particle("block", P, m)],
        loads=[(P, (F - d * v - k * x) * N.x)],
        inputs=[kg.Input(F, default=0.0)],
        outputs={"both": [x, x + v]},
        parameters={m: 2.0, d: 0.3, k: 8.0},
        initial={x: 0.5, v: 0.0},
    )
    return kg.build(model)


@cache
def constrained() -> kg.Solver:
    """A pendulum in Cartesian coordinates: ``x^2 + y^2 = l^2``."""
    x, y, vx, vy = me.dynamicsymbols("x y vx vy")
    m, length, g = sm.symbols("m l g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    model = kg.Model(
        name="identified_pendulum",
        frame=N,
        coordinates=[x, y],
        speeds=[vx, vy],
        kinematics=[vx - x.diff(), vy - y.diff()],
        bodies=[me.Particle("bob", P, m)],
        gravity=-g * N.y,
        holonomic_constraints=[x**2 + y**2 - length**2],
        dependent_speeds=[vy],
        parameters={m: 1.0, length: 1.0, g: 9.81},
    )
    return kg.build(model)


def measured(solver: kg.Solver, times: np.ndarray = TIMES, sigma: float = 0.0, seed: int = 0, **run: Any) -> Any:
    """Times and coordinates of a motion, with normal errors."""
    solution = solver.integrate((0.0, times[-1]), t_eval=times, rtol=1e-11, atol=1e-13, **run)
    errors = sigma * np.random.default_rng(seed).normal(size=solution.q.shape)
    return {"t": times, **dict(zip(solver.description.coordinates, (solution.q + errors).T, strict=True))}
