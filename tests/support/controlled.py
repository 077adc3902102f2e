"""Models for tests of optimal control."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sm
from sympy.physics import mechanics as me

import kanegen as kg

x, v, F, theta, omega, T = me.dynamicsymbols("x v F theta omega T")
y, w, a = me.dynamicsymbols("y w a")
m, c = sm.symbols("m c")
t = me.dynamicsymbols._t


@cache
def block() -> kg.Model:
    """A block of mass m on a line, pushed by F: m v' = F."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    return kg.Model(
        name="pushed block",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(x.diff() - v,),
        bodies=(me.Particle("block", P, m),),
        loads=((P, F * N.x),),
        inputs=(F,),
        parameters={m: 1.0},
    )


@cache
def pendulum() -> kg.Model:
    """A pendulum of mass and length 1 with the torque T."""
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, theta, N.z)
    A.set_ang_vel(N, omega * N.z)
    P = O.locatenew("P", -A.y)
    P.set_vel(N, omega * A.x)
    return kg.Model(
        name="driven pendulum",
        frame=N,
        coordinates=(theta,),
        speeds=(omega,),
        kinematics=(theta.diff() - omega,),
        bodies=(me.Particle("bob", P, 1),),
        gravity=-9.81 * N.y,
        loads=((P, T * A.x),),
        inputs=(T,),
    )


def _in_a_plane(name: str, force: tuple[Any, Any] = (0, 0), gravity: Any = 0, **more: Any) -> kg.Model:
    """A particle of mass 1 at (x, y) with the speeds v and w and a force; ``gravity`` along y."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    return kg.Model(
        name=name,
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(x.diff() - v, y.diff() - w),
        bodies=(me.Particle("particle", P, 1),),
        gravity=gravity * N.y,
        loads=((P, force[0] * N.x + force[1] * N.y),),
        **more,
    )


@cache
def rod(factor: float = 1.0) -> kg.Model:
    """The same pendulum in Cartesian coordinates, with the length as a constraint, times a factor."""
    constraint = factor * (x**2 + y**2 - 1)
    return _in_a_plane("pendulum on a rod", (-T * y, T * x), -9.81, holonomic_constraints=(constraint,), inputs=(T,))


@cache
def plane() -> kg.Model:
    """A block in a plane, with forces F and T along both axes."""
    return _in_a_plane("block in a plane", (F, T), inputs=(F, T))


@cache
def coupled() -> kg.Model:
    """The same block, whose accelerations along both axes have the sum zero."""
    return _in_a_plane("coupled block", (F, T), inputs=(F, T), acceleration_constraints=(v.diff(t) + w.diff(t),))


@cache
def falling() -> kg.Model:
    """The bob of this pendulum without the rod."""
    return _in_a_plane("falling bob", gravity=-9.81)


@cache
def satellite() -> kg.Model:
    """A free body with moments about its axes, whose orientation are Euler parameters."""
    e, rates, moments = (me.dynamicsymbols(f"{name}:{n}") for name, n in (("e", 4), ("w", 3), ("M", 3)))
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.orient_quaternion(N, e)
    axes, turning = (B.x, B.y, B.z), B.ang_vel_in(N)
    norm = sum(x * x.diff() for x in e)
    kinematics = [*(rate - turning.dot(axis) for rate, axis in zip(rates, axes, strict=True)), norm]
    B.set_ang_vel(N, sum((rate * axis for rate, axis in zip(rates, axes, strict=True)), 0 * B.x))
    return kg.Model(
        name="satellite",
        frame=N,
        coordinates=e,
        speeds=rates,
        kinematics=kinematics,
        bodies=(me.RigidBody("satellite", O, B, 1, (me.inertia(B, 1, 2, 3), O)),),
        loads=((B, sum((moment * axis for moment, axis in zip(moments, axes, strict=True)), 0 * B.x)),),
        inputs=moments,
    )


@cache
def everything() -> kg.Model:
    """A skate with a filtered drive: a constraint, a state, the time, an input with a rate, parameters, and q' != u."""
    rate, s = me.dynamicsymbols("rate s")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    slide = v * sm.cos(x / 5) + sm.sin(t)
    P.set_vel(N, slide * N.x + w * N.y)
    return kg.Model(
        name="skate",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(x.diff() - slide, y.diff() - w),
        bodies=(me.Particle("skate", P, m),),
        loads=((P, (s - c * v**3) * N.x + sm.cos(t) * F * N.y),),
        nonholonomic_constraints=(-slide * sm.sin(a) + w * sm.cos(a),),
        states={s: F * sm.cos(y) - s},
        inputs=(F, kg.Input(a, rate=rate)),
        parameters={m: 2.0, c: 0.1},
    )
