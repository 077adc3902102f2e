"""Small models for the self-checks: one on which every check applies, mistakes of users, special contents."""

from __future__ import annotations

from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t


def cart(name: str, inertia_frame: str = "bar", spin: Any = 1, **options: Any) -> kg.Model:
    """A cart with a pendulous bar, its position bound to the bar's angle and time; gravity is the only load."""
    x, theta, u, w = me.dynamicsymbols("x theta u w")
    N, bar = me.ReferenceFrame("N"), me.ReferenceFrame("bar")
    bar.orient_axis(N, N.y, theta)
    bar.set_ang_vel(N, spin * w * N.y)
    O = me.Point("O")
    O.set_vel(N, 0)
    pivot = O.locatenew("pivot", x * N.x)
    center = pivot.locatenew("center", -0.4 * bar.z)
    frame = {"bar": bar, "N": N}[inertia_frame]
    inertia = me.inertia(frame, sm.Rational(1, 3), sm.Rational(1, 2), sm.Rational(1, 4), sm.Rational(1, 20))
    settings = {
        "name": name,
        "frame": N,
        "coordinates": (x, theta),
        "speeds": (u, w),
        "kinematics": (x.diff(TIME) - u, theta.diff(TIME) - w),
        "bodies": (me.Particle("cart", pivot, 2), me.RigidBody("bar", center, bar, sm.Symbol("m"), (inertia, center))),
        "gravity": -9.81 * N.z,
        "holonomic_constraints": (x - sm.sin(theta) / 2 - TIME**2 / 5,),
        "parameters": {"m": 1.5},
    }
    return kg.Model(**{**settings, **options})


def set_velocity(factor: Any) -> kg.Model:
    """A pendulum whose velocity the user sets; right for ``factor`` 1, which the model does not check here."""
    theta, w = me.dynamicsymbols("theta w")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_axis(N, N.z, theta)
    O = me.Point("O")
    O.set_vel(N, 0)
    bob = O.locatenew("bob", -B.y / 2)
    bob.set_vel(N, factor * w * B.x / 2)
    return kg.Model(
        name=f"pendulum with velocity times {factor}",
        frame=N,
        coordinates=(theta,),
        speeds=(w,),
        kinematics=(theta.diff(TIME) - w,),
        bodies=(me.Particle("bob", bob, 1),),
        loads=((bob, -9.81 * N.y),),
        check_kinematics=False,
    )


def gimballed(inertia_frame: str) -> kg.Model:
    """A body about a fixed point that turns by two angles, its inertia given in one of the frames."""
    phi, theta, u, w = me.dynamicsymbols("phi theta u w")
    N, yaw, body = (me.ReferenceFrame(name) for name in ("N", "yaw", "body"))
    yaw.orient_axis(N, N.z, phi)
    body.orient_axis(yaw, yaw.x, theta)
    O = me.Point("O")
    O.set_vel(N, 0)
    inertia = me.inertia({"N": N, "body": body}[inertia_frame], 1, 2, 3)
    return kg.Model(
        name=f"gimballed body, inertia in {inertia_frame}",
        frame=N,
        coordinates=(phi, theta),
        speeds=(u, w),
        kinematics=(phi.diff(TIME) - u, theta.diff(TIME) - w),
        bodies=(me.RigidBody("body", O, body, 1, (inertia, O)),),
    )


def rolling_wheel() -> kg.Model:
    """A rolling disk whose contact point is given the velocity zero, as in the SymPy documentation."""
    q = q1, q2, q3 = me.dynamicsymbols("q1:4")
    u = u1, u2, u3 = me.dynamicsymbols("u1:4")
    N, yaw, lean, disk = (me.ReferenceFrame(name) for name in ("N", "yaw", "lean", "disk"))
    yaw.orient_axis(N, N.z, q1)
    lean.orient_axis(yaw, yaw.x, q2)
    disk.orient_axis(lean, lean.y, q3)
    disk.set_ang_vel(N, u1 * lean.x + u2 * lean.y + u3 * lean.z)
    contact = me.Point("contact")
    contact.set_vel(N, 0)
    center = contact.locatenew("center", sm.Rational(3, 10) * lean.z)
    center.v2pt_theory(contact, N, disk)
    inertia = me.inertia(lean, 1, 2, 1)
    return kg.Model(
        name="rolling wheel",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=(
            q2.diff(TIME) - u1,
            q1.diff(TIME) * sm.sin(q2) + q3.diff(TIME) - u2,
            q1.diff(TIME) * sm.cos(q2) - u3,
        ),
        bodies=(me.RigidBody("wheel", center, disk, 1, (inertia, center)),),
        loads=((center, -9.81 * N.z),),
    )


def spring_load(N: Any, x: Any, spring: kg.Function) -> dict[str, Any]:
    u = me.dynamicsymbols("u")
    O = me.Point("O")
    O.set_vel(N, 0)
    place = O.locatenew("P", x * N.x)
    return {
        "coordinates": (x,),
        "speeds": (u,),
        "kinematics": (x.diff(TIME) - u,),
        "bodies": (me.Particle("cart", place, 2),),
        "loads": ((place, -spring(x) * N.x),),
        "gravity": None,
        "holonomic_constraints": (),
        "parameters": {},
    }
