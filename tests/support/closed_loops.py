"""Driven closed loops for inverse dynamics along paths of some coordinates and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

t = me.dynamicsymbols._t

BASE, RADIUS, LINK = 1.0, 0.3, 0.7
"""The platform: radius of its base, its own radius, length of its links (m)."""


def _ground() -> tuple[Any, Any]:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O


def _uniform_rod(name: str, N: Any, start: Any, angle: Any, length: Any, mass: Any) -> tuple[me.RigidBody, Any]:
    """A rod from ``start`` at an angle from x of N, and its end."""
    frame = me.ReferenceFrame(f"frame of {name}")
    frame.orient_axis(N, N.z, angle)
    center, end = start.locatenew(f"center of {name}", length / 2 * frame.x), start.locatenew(name, length * frame.x)
    return me.RigidBody(name, center, frame, mass, (me.inertia(frame, 0, 0, mass * length**2 / 12), center)), end


def _model(name: str, N: Any, q: Sequence[Any], bodies: Sequence[Any], **fields: Any) -> kg.Model:
    speeds = [me.dynamicsymbols(f"{x.name}_speed") for x in q]
    kinematics = [x.diff(t) - u for x, u in zip(q, speeds, strict=True)]
    return kg.Model(name=name, frame=N, coordinates=q, speeds=speeds, kinematics=kinematics, bodies=bodies, **fields)


def four_bar() -> kg.Model:
    """Three rods between pins 2 m apart with a torque M on the first; one loop equation is given twice.

    Outputs: the middle of the second rod, and a function of a speed.
    """
    angles, M = me.dynamicsymbols("a1:4"), me.dynamicsymbols("M")
    lengths = sm.symbols("l1:4")
    N, joint = _ground()
    bodies = []
    for k, (angle, length) in enumerate(zip(angles, lengths, strict=True)):
        body, joint = _uniform_rod(f"rod {k}", N, joint, angle, length, length)
        bodies.append(body)
    terms = list(zip(angles, lengths, strict=True))
    width, height = sum(length * sm.cos(a) for a, length in terms) - 2, sum(length * sm.sin(a) for a, length in terms)
    middle = lengths[0] * sm.cos(angles[0]) + lengths[1] / 2 * sm.cos(angles[1])
    return _model(
        "driven_four_bar",
        N,
        angles,
        bodies,
        gravity=-9.81 * N.y,
        holonomic_constraints=[width, height, 2 * width],
        loads=[(bodies[0].frame, M * N.z)],
        inputs=[M],
        outputs={"middle": middle, "rate": angles[0].diff(t)},
        parameters=dict(zip(lengths, (1.0, 2.0, 1.6), strict=True)),
    )


def slider_crank() -> kg.Model:
    """A crank (0.5 m) at the angle a, a rod (1.2 m) at the angle b and a slider at x with a force F."""
    a, b, x, F = me.dynamicsymbols("a b x F")
    N, O = _ground()
    crank, pin = _uniform_rod("crank", N, O, a, sm.Rational(1, 2), 1)
    rod, _ = _uniform_rod("rod", N, pin, b, sm.Rational(6, 5), 2)
    place = O.locatenew("S", x * N.x)
    return _model(
        "driven_slider_crank",
        N,
        (a, b, x),
        [crank, rod, me.Particle("slider", place, sm.Integer(1))],
        gravity=-9.81 * N.y,
        holonomic_constraints=[sm.cos(a) / 2 + 1.2 * sm.cos(b) - x, sm.sin(a) / 2 + 1.2 * sm.sin(b)],
        loads=[(place, F * N.x)],
        inputs=[F],
        outputs={"height": sm.sin(a) / 2},
        initial={a: 1.0, b: -0.35, x: 1.4},
    )


def platform() -> kg.Model:
    """A planar 3RRR platform (x, y, phi) on three legs of two rods (angles a_k, b_k), torques on the rods at the base.

    The output "tool" is a point of the platform at the distance 0.1 m from its center.
    """
    pose = x, y, phi = me.dynamicsymbols("x y phi")
    cranks, rods, torques = me.dynamicsymbols("a1:4"), me.dynamicsymbols("b1:4"), me.dynamicsymbols("tau1:4")
    N, O = _ground()
    P, center = me.ReferenceFrame("P"), O.locatenew("C", x * N.x + y * N.y)
    P.orient_axis(N, N.z, phi)
    inertia = (me.inertia(P, 0, 0, sm.Rational(1, 20)), center)
    bodies, loads, loops = [me.RigidBody("platform", center, P, sm.Integer(2), inertia)], [], []
    for k, angle in enumerate((sm.pi / 2, 7 * sm.pi / 6, 11 * sm.pi / 6)):
        pin = O.locatenew(f"base {k}", BASE * (sm.cos(angle) * N.x + sm.sin(angle) * N.y))
        pin.set_vel(N, 0)
        crank, elbow = _uniform_rod(f"crank {k}", N, pin, cranks[k], LINK, 1)
        rod, tip = _uniform_rod(f"rod {k}", N, elbow, rods[k], LINK, 1)
        corner = center.locatenew(f"corner {k}", RADIUS * (sm.cos(angle) * P.x + sm.sin(angle) * P.y))
        bodies += [crank, rod]
        loads.append((crank.frame, torques[k] * N.z))
        gap = tip.pos_from(O) - corner.pos_from(O)
        loops += [gap.dot(N.x), gap.dot(N.y)]
    return _model(
        "platform",
        N,
        (*pose, *cranks, *rods),
        bodies,
        holonomic_constraints=loops,
        loads=loads,
        inputs=torques,
        outputs={"tool": sm.Matrix([x + sm.cos(phi) / 10, y + sm.sin(phi) / 10])},
    )


def pointed_body() -> kg.Model:
    """A body by Euler parameters about a fixed point, torques about its axes; outputs: direction of its axis b3, angle.

    For small rotations the outputs "tilt" (2,) and "turn" are independent: they replace the orientation.
    """
    e = e0, e1, e2, e3 = me.dynamicsymbols("e0:4")
    w, torques = me.dynamicsymbols("w1:4"), me.dynamicsymbols("T1:4")
    N, O = _ground()
    B = me.ReferenceFrame("B")
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    rates = sm.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) * sm.Matrix(w) / 2
    return kg.Model(
        name="pointed_body",
        frame=N,
        coordinates=e,
        speeds=w,
        kinematics=[x.diff(t) - rate for x, rate in zip(e, rates, strict=True)],
        bodies=(me.RigidBody("body", O, B, sm.Integer(1), (me.inertia(B, 2, 3, 5), O)),),
        loads=[(B, sum(T * axis for T, axis in zip(torques, (B.x, B.y, B.z), strict=True)))],
        inputs=torques,
        outputs={
            "tilt": sm.Matrix([B.z.dot(N.x), B.z.dot(N.y)]),
            "turn": 2 * (e1 * e2 + e0 * e3),
        },
        initial=dict(zip(e, (1.0, 0.0, 0.0, 0.0), strict=True)),
    )


def sled(implied: bool = False) -> kg.Model:
    """A sled at (x, y) that moves along its direction psi only, with a weight at z = 2 x.

    A force F acts along the sled, a torque M turns it. ``implied``: the weight is bound by its speed, z' = 2 x'.
    """
    q = x, y, psi, z = me.dynamicsymbols("x y psi z")
    F, M = me.dynamicsymbols("F M")
    N, O = _ground()
    B, P, W = me.ReferenceFrame("B"), O.locatenew("P", x * N.x + y * N.y), O.locatenew("W", z * N.x)
    B.orient_axis(N, N.z, psi)
    body = me.RigidBody("body", P, B, sm.Integer(2), (me.inertia(B, 0, 0, sm.Rational(1, 3)), P))
    slip = -sm.sin(psi) * x.diff(t) + sm.cos(psi) * y.diff(t)
    if implied:
        constraints = {
            "nonholonomic_constraints": [slip, z.diff(t) - 2 * x.diff(t)],
            "implied_constraints": [z - 2 * x],
        }
    else:
        constraints = {"nonholonomic_constraints": [slip], "holonomic_constraints": [z - 2 * x]}
    return _model(
        f"sled_{implied}",
        N,
        q,
        [body, me.Particle("weight", W, sm.Integer(1))],
        loads=[(P, F * B.x), (B, M * N.z)],
        inputs=[F, M],
        initial=dict.fromkeys(q, 0.5),
        **constraints,
    )


@cache
def solver_of(name: str, **options: Any) -> kg.Solver:
    """The compiled model made by the function ``name`` of this module, once per session."""
    motions = () if name == "slider_crank" else ("output_motions",)
    functions = ("rhs", "P", "J", "b", "consistency", "outputs", "control_forces", "kinematics", *motions)
    form = "pseudoinverse" if name == "four_bar" else "auto"
    return kg.build(globals()[name](**options), form=form, functions=functions)
