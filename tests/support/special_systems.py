"""Small systems, each with one feature that trees of joints do not have, and with equations known by hand."""

from __future__ import annotations

from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t


def _fixed_point(frame: Any) -> Any:
    point = me.Point("O")
    point.set_vel(frame, 0)
    return point


def shaken_pendulum() -> kg.Model:
    """A pendulum (2 kg, 0.5 m) whose pivot moves by an input with rate and acceleration."""
    theta, u, r, rate, acceleration = me.dynamicsymbols("theta u r r1 r2")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_axis(N, N.z, theta)
    bob = _fixed_point(N).locatenew("pivot", r * N.y).locatenew("P", -B.y / 2)
    return kg.Model(
        name="shaken_pendulum",
        frame=N,
        coordinates=(theta,),
        speeds=(u,),
        kinematics=(u - theta.diff(TIME),),
        bodies=(me.Particle("bob", bob, sm.Integer(2)),),
        gravity=-10 * N.y,
        inputs=(kg.Input(r, rate=rate, acceleration=acceleration),),
    )


def turning_rod() -> kg.Model:
    """A bead (2 kg) on a rod that turns at 3 rad/s: the kinetic energy has a term without speeds."""
    s, u = me.dynamicsymbols("s u")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_axis(N, N.z, 3 * TIME)
    bead = me.Particle("bead", _fixed_point(N).locatenew("P", s * B.x), sm.Integer(2))
    return kg.Model(
        name="turning_rod",
        frame=N,
        coordinates=(s,),
        speeds=(u,),
        kinematics=(u - s.diff(TIME),),
        bodies=(bead,),
        potential_energy=0,
    )


def free_body() -> kg.Model:
    """A body (inertia 2, 3, 5) about a point by Euler parameters: n_q = 4, n_u = 3, an invariant."""
    e = e0, e1, e2, e3 = me.dynamicsymbols("e0:4")
    w = me.dynamicsymbols("w1:4")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    O = _fixed_point(N)
    rates = sm.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) * sm.Matrix(w) / 2
    return kg.Model(
        name="free_body",
        frame=N,
        coordinates=e,
        speeds=w,
        kinematics=[ei.diff(TIME) - rate for ei, rate in zip(e, rates, strict=True)],
        bodies=(me.RigidBody("body", O, B, sm.Integer(1), (me.inertia(B, 2, 3, 5), O)),),
        holonomic_constraints=(e0**2 + e1**2 + e2**2 + e3**2 - 1,),
        potential_energy=0,
    )
