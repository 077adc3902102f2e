"""A block on a rough floor, for runs with contacts and events: motions in closed form."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

MASS, GRAVITY, MU_S, MU_K, RATE = 2.0, 10.0, 0.5, 0.3, 4.0
SLIPS_AT = MU_S * MASS * GRAVITY / RATE


def rough_block(e: Any = 0, hold: tuple[float, float] | None = None) -> kg.Model:
    """A block (2 kg) over a floor z >= 0, pushed by an input F along x.

    With ``hold`` F is the control of a servo-constraint x = 0.3 m with these gains.

    Events: it passes x = 0.5 m and x = 1 m ("far", the end of a run); it is hit by 3 N s at t = 1 s; its normal force
    passes 15 N.
    """
    x, z, u, w, F = me.dynamicsymbols("x z u w F")
    mu_s, mu_k = sm.symbols("mu_s mu_k")
    time = me.dynamicsymbols._t
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    center = O.locatenew("center", x * N.x + z * N.z)
    floor = kg.Unilateral(z, kg.Restitution(e), friction=kg.Coulomb(mu_s, mu_k), slip=(u,), name="floor")
    return kg.Model(
        name="rough_block",
        frame=N,
        coordinates=(x, z),
        speeds=(u, w),
        kinematics=(x.diff(time) - u, z.diff(time) - w),
        bodies=(me.Particle("block", center, sm.Integer(2)),),
        gravity=-10 * N.z,
        loads=((center, F * N.x),),
        inputs=(kg.Input(F, default=0.0),),
        contacts=(floor,),
        impulses={"hit": [(center, 3 * N.x)]},
        events=(
            kg.Event("passes", x - sm.Rational(1, 2), direction=1),
            kg.Event("far", x - 1, terminal=True),
            kg.Event("hit", time - 1, direction=1, impulse="hit"),
            kg.Event("loaded", kg.Multiplier("floor") - 15),
        ),
        parameters={mu_s: MU_S, mu_k: MU_K},
        control=None if hold is None else kg.Servo((x - sm.Rational(3, 10),), theta=(hold,)),
    )


@cache
def block() -> kg.Solver:
    return kg.build(rough_block(), functions=("rhs", "momentum", "jacobians"))


def pushed(t: Any) -> tuple[np.ndarray, np.ndarray]:
    """Position and speed along x under F = 4 N/s t from rest on the floor, without other events."""
    s = np.maximum(np.asarray(t) - SLIPS_AT, 0.0)
    start = (MU_S - MU_K) * GRAVITY
    speed = start * s + 0.5 * RATE / MASS * s**2
    return 0.5 * start * s**2 + RATE / MASS * s**3 / 6.0, speed


@cache
def painleve(friction: kg.Coulomb = kg.Coulomb(2), e: float = 0.0) -> kg.Solver:  # noqa: B008
    """Painleve's rod (2 m, 1 kg, uniform) whose lower tip slides on a floor with mu = 2.

    ``gap'' = sin(theta) theta'^2 - 10 + (1 + 3 c^2 + 3 mu d s c) N`` while it slips in the direction d: at
    tan(theta) = 2 and d = -1 the factor of N is -0.8.
    """
    x, y, theta, u, v, w = me.dynamicsymbols("x y theta u v w")
    time = me.dynamicsymbols._t
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_axis(N, N.z, theta)
    O = me.Point("O")
    O.set_vel(N, 0)
    center = O.locatenew("center", x * N.x + y * N.y)
    slip = u + sm.sin(theta) * w
    tip = kg.Unilateral(y - sm.sin(theta), kg.Restitution(e), friction, (slip,), "tip")
    model = kg.Model(
        name="painleve",
        frame=N,
        coordinates=(x, y, theta),
        speeds=(u, v, w),
        kinematics=(x.diff(time) - u, y.diff(time) - v, theta.diff(time) - w),
        bodies=(me.RigidBody("rod", center, B, sm.Integer(1), (me.inertia(B, 0, 0, sm.Rational(1, 3)), center)),),
        gravity=-10 * N.y,
        contacts=(tip,),
    )
    return kg.build(model, functions=("rhs", "Q", "momentum"))


def sliding_rod(rate: float) -> tuple[np.ndarray, np.ndarray]:
    """State of Painleve's rod at tan(theta) = 2, its tip sliding backwards at 1 m/s, turning at ``rate``, rad/s."""
    c, s = np.sqrt(0.2), np.sqrt(0.8)
    return np.array([0.0, s, np.arctan(2.0)]), np.array([-1.0 - s * rate, c * rate, rate])


@cache
def wall_pendulum() -> kg.Solver:
    """A particle (1 kg) on a circle of 1 m: it hits a wall x >= d (at the bottom, d = 0), and is caught at z = -0.6 m.

    Events: "caught" closes the latch where it rises through that height, "released" opens it at t = 3 s.
    """
    x, z, u, w = me.dynamicsymbols("x z u w")
    e, d = sm.symbols("e d")
    time = me.dynamicsymbols._t
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    bob = O.locatenew("bob", x * N.x + z * N.z)
    height = z + sm.Rational(3, 5)
    model = kg.Model(
        name="wall_pendulum",
        frame=N,
        coordinates=(x, z),
        speeds=(u, w),
        kinematics=(x.diff(time) - u, z.diff(time) - w),
        bodies=(me.Particle("bob", bob, sm.Integer(1)),),
        gravity=-10 * N.z,
        holonomic_constraints=(x**2 + z**2 - 1,),
        contacts=(kg.Unilateral(x - d, kg.Restitution(e), name="wall"), kg.Latch("catch", height)),
        events=(
            kg.Event("caught", height, direction=1, impose=("catch",)),
            kg.Event("released", time - 3, direction=1, remove=("catch",)),
        ),
        parameters={e: 0.9, d: 0.0},
    )
    return kg.build(model, stabilization=kg.Projection(integrals=("energy",)))
