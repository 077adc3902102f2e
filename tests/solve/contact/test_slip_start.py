"""Slip in a plane that starts smoothly: where friction is exhausted little by little the slip velocity starts at zero
with an acceleration of zero, and its direction relaxes infinitely fast."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import kanegen as kg

MU_G = 0.3 * 9.81
END = 1.5


def puck_model() -> kg.Model:
    """A puck of 1 kg on the rough ground under the force (3 t, 1 + sin 2 t) N."""
    x, y, u1, u2 = me.dynamicsymbols("x y u1 u2")
    mu_s, mu_k = sm.symbols("mu_s mu_k")
    time = me.dynamicsymbols._t
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    puck = me.Particle("puck", O.locatenew("center", x * N.x + y * N.y), 1)
    return kg.Model(
        name="puck",
        frame=N,
        coordinates=(x, y),
        speeds=(u1, u2),
        kinematics=(u1 - x.diff(time), u2 - y.diff(time)),
        bodies=(puck,),
        loads=((puck.point, 3 * time * N.x + (1 + sm.sin(2 * time)) * N.y),),
        contacts=(kg.Friction((u1, u2), kg.Coulomb(mu_s, mu_k), sm.Float(9.81), name="ground"),),
        parameters={mu_s: 0.3, mu_k: 0.3},
    )


@cache
def puck() -> kg.Solver:
    return kg.build(puck_model())


def pull(t: float) -> NDArray[np.float64]:
    """The force on the puck, N."""
    return np.array([3 * t, 1 + np.sin(2 * t)])


@cache
def reference() -> tuple[float, tuple[float, ...]]:
    """The onset of slip, and the speeds at END by an implicit method from the expansion of the slip velocity.

    With s the time since the onset, F = F0 + F1 s the pull and d0 = F0 / |F0|: v = s^2 (F1 . d0) / 2 (d0 + d1 s) with
    d1 = (F1 - d0 (F1 . d0)) / |F0|, to the next order.
    """
    onset = brentq(lambda t: np.hypot(*pull(t)) - MU_G, 0.0, 1.0, xtol=1e-15)
    d0, F1 = pull(onset) / MU_G, np.array([3.0, 2 * np.cos(2 * onset)])
    s = 1e-6
    v = s**2 / 2 * (F1 @ d0) * (d0 + (F1 - d0 * (F1 @ d0)) / MU_G * s)
    run = solve_ivp(
        lambda t, v: pull(t) - MU_G * v / np.hypot(*v), (onset + s, END), v, "Radau", rtol=1e-11, atol=1e-17
    )
    return onset, tuple(run.y[:, -1].tolist())


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas"])
def test_slip_starts_in_a_plane_without_a_break(method: str) -> None:
    """One switch, at the right time; few steps, although the direction of v is stiff where v is small."""
    onset, speeds = reference()
    run = puck().integrate((0.0, END), (0, 0), (0, 0), method=method, rtol=1e-9, atol=1e-12)
    assert [event.kind for event in run.events] == ["slips"]
    assert run.events[0].t == pytest.approx(onset, abs=1e-10)
    assert run.u[-1] == pytest.approx(speeds, abs=5e-9)
    assert run.statistics.steps < 3000


def test_slip_that_starts_with_a_jump_of_friction_has_the_same_direction() -> None:
    """mu_s > mu_k: the acceleration jumps along the force that held the puck."""
    solver = puck().with_parameters(mu_k=0.2)
    onset, _ = reference()
    run = solver.integrate((0.0, END), (0, 0), (0, 0), rtol=1e-10, atol=1e-13)
    s = 1e-7
    start = s * (pull(onset) - 0.2 * 9.81 * pull(onset) / MU_G)
    exact = solve_ivp(
        lambda t, v: pull(t) - 0.2 * 9.81 * v / np.hypot(*v), (onset + s, END), start, "Radau", rtol=1e-11, atol=1e-14
    )
    assert run.u[-1] == pytest.approx(exact.y[:, -1], abs=5e-9)
    assert run.statistics.steps < 1000


def test_loose_tolerances_do_not_lose_the_direction() -> None:
    """An error of the speeds as large as the slip velocity would leave it without a direction."""
    _, speeds = reference()
    run = puck().integrate((0.0, END), (0, 0), (0, 0), rtol=1e-5, atol=1e-7)
    assert run.u[-1] == pytest.approx(speeds, abs=1e-5)
    assert run.statistics.steps < 1000
