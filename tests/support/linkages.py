"""Small constrained models for consistent states and projections: loops, duplicates, Euler parameters with a joint."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t


def four_bar(copies: int = 1) -> kg.Model:
    """Three uniform rods (1, 2 and 1.6 m; absolute angles from x) between pins 2 m apart, the loop cut at one of them.

    ``copies``: how often each of the two loop equations is given.
    """
    angles, speeds = me.dynamicsymbols("a1:4"), me.dynamicsymbols("u1:4")
    lengths = sm.symbols("l1:4")
    N = me.ReferenceFrame("N")
    origin = me.Point("O")
    origin.set_vel(N, 0)
    joint, bodies = origin, []
    for k, (angle, length) in enumerate(zip(angles, lengths, strict=True)):
        frame = me.ReferenceFrame(f"B{k}")
        frame.orient_axis(N, N.z, angle)
        center = joint.locatenew(f"C{k}", length / 2 * frame.x)
        joint = joint.locatenew(f"J{k}", length * frame.x)
        bodies.append(
            me.RigidBody(f"rod {k}", center, frame, length, (me.inertia(frame, 0, 0, length**3 / 12), center))
        )
    loop = (
        sum(length * sm.cos(a) for a, length in zip(angles, lengths, strict=True)) - 2,
        sum(length * sm.sin(a) for a, length in zip(angles, lengths, strict=True)),
    )
    return kg.Model(
        name=f"four_bar_{copies}",
        frame=N,
        coordinates=angles,
        speeds=speeds,
        kinematics=[u - a.diff(TIME) for u, a in zip(speeds, angles, strict=True)],
        bodies=bodies,
        gravity=-9.81 * N.y,
        holonomic_constraints=[equation * (1 + k) for k in range(copies) for equation in loop],
        parameters=dict(zip(lengths, (1.0, 2.0, 1.6), strict=True)),
    )


def lifted_ball(massless: bool = False) -> kg.Model:
    """A particle (2 kg; x, y, z) at the distance r(t) from the origin, r an input with rate and acceleration.

    ``massless``: the particle moves by a slider along z that has no mass.
    """
    x, y, z, u1, u2, u3, r, r1, r2 = me.dynamicsymbols("x y z u1 u2 u3 r r1 r2")
    N = me.ReferenceFrame("N")
    origin = me.Point("O")
    origin.set_vel(N, 0)
    point = origin.locatenew("P", x * N.x + y * N.y + (0 if massless else z) * N.z)
    return kg.Model(
        name="lifted_ball" + ("_massless" if massless else ""),
        frame=N,
        coordinates=(x, y, z),
        speeds=(u1, u2, u3),
        kinematics=(u1 - x.diff(TIME), u2 - y.diff(TIME), u3 - z.diff(TIME)),
        bodies=(me.Particle("ball", point, sm.Integer(2)),),
        gravity=-9.81 * N.z,
        holonomic_constraints=(x**2 + y**2 + z**2 - r**2,),
        inputs=(kg.Input(r, rate=r1, acceleration=r2),),
    )


def hinged_body() -> kg.Model:
    """A body (inertia 2, 3, 5) about a point by Euler parameters, its axis b1 held in the plane n2 . b1 = 0."""
    e = e0, e1, e2, e3 = me.dynamicsymbols("e0:4")
    w = me.dynamicsymbols("w1:4")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    origin = me.Point("O")
    origin.set_vel(N, 0)
    rates = sm.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) * sm.Matrix(w) / 2
    return kg.Model(
        name="hinged_body",
        frame=N,
        coordinates=e,
        speeds=w,
        kinematics=[ei.diff(TIME) - rate for ei, rate in zip(e, rates, strict=True)],
        bodies=(me.RigidBody("body", origin, B, sm.Integer(1), (me.inertia(B, 2, 3, 5), origin)),),
        holonomic_constraints=(e0**2 + e1**2 + e2**2 + e3**2 - 1, 2 * (e1 * e2 + e0 * e3)),
        potential_energy=0,
    )


@cache
def solver_of(name: str, form: str = "auto", **options: Any) -> kg.Solver:
    """The compiled model made by the function ``name`` of this module, once per session."""
    return kg.build(globals()[name](**options), form=form)
