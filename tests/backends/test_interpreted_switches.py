"""Runs of the interpreted back end end a step where forces begin and end in time: against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

t = me.dynamicsymbols._t
x, v = me.dynamicsymbols("x v")
a, b = sm.symbols("a b")
A, B, END = 5.0, 0.1, 25.0
FORCES: dict[str, tuple[Any, list[tuple[float, float]]]] = {
    "pulse": (sm.Piecewise((0, t < a), (1, t < a + b), (0, True)), [(A, A + B)]),
    "train": (
        sm.Heaviside(t - a) * sm.Piecewise((1, sm.Mod(t - a, 40 * b) < b), (0, True)),
        [(A + 4.0 * k, A + 4.0 * k + B) for k in range(5)],
    ),
    "angle": (
        sm.Piecewise((1, sm.cos(t / a) > 1 - b / 100), (0, True)),
        [(0.0, A * np.arccos(0.999))],
    ),
}
"""Forces, and the intervals in which they are 1."""


def particle(force: Any) -> kg.Solver:
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, x * N.x)
    P.set_vel(N, v * N.x)
    model = kg.Model(
        name="driven",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[v - x.diff(t)],
        bodies=[me.Particle("P", P, 1)],
        loads=[(P, force * N.x)],
        parameters={a: A, b: B},
    )
    return kg.build(model, backend="interpreted")


@pytest.mark.parametrize("name", list(FORCES))
def test_nothing_is_stepped_over(name: str) -> None:
    """Of a free particle: each interval adds its length to v, and moves x by that times the time since its middle."""
    force, intervals = FORCES[name]
    solver = particle(force)
    solution = solver.integrate((0.0, END), [0.0], [0.0])
    moved = sum((end - begin) * (END - (begin + end) / 2) for begin, end in intervals)
    assert np.allclose([solution.q[-1, 0], solution.u[-1, 0]], [moved, sum(end - begin for begin, end in intervals)])
    back = solver.integrate((END, 0.0), solution.q[-1], solution.u[-1])
    assert np.allclose([back.q[-1, 0], back.u[-1, 0]], 0.0, atol=1e-9)
