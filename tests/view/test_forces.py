"""Forces as arrows, planes of contacts, and models of which nothing can be drawn, without an integration."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from given_motions import given
from messages import says

import kanegen as kg
from kanegen.view.forces import arrows
from kanegen.view.poses import Poses
from kanegen.view.scene import scene
from kanegen.view.stage import LARGEST, Wishes

TIMES = np.linspace(0.0, 1.0, 11)
x, z, u, w, F = me.dynamicsymbols("x z u w F")
k = sm.Symbol("k")
N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
B.orient_axis(N, N.y, x)
O = me.Point("O")
O.set_vel(N, 0)
P = O.locatenew("P", x * N.x + z * N.z)
Q = P.locatenew("Q", B.z)
WISHES = Wishes("forces", (), False, (), False, True, np.zeros((1, 3)))


def slider(**options: Any) -> Any:
    """The motion x = t, z = 1 + t of a body with the input F = 2 t, on a plane whose force is 5 N."""
    t = me.dynamicsymbols._t
    body = me.RigidBody("body", P, B, 1, (me.inertia(B, 1, 1, 2), P))
    contact = kg.Unilateral(z, name="floor", applied_at=[[(P, N.z)]])
    model = kg.Model(
        name="slider",
        frame=N,
        coordinates=(x, z),
        speeds=(u, w),
        kinematics=(u - x.diff(t), w - z.diff(t)),
        bodies=[body],
        loads=[(P, F * B.x), (B, -k * x * N.y), (Q, -3 * u.diff(t) * N.x)],
        inputs=[F],
        contacts=[contact],
        parameters={k: 3.0},
        gravity=-9.81 * N.z,
        **options,
    )
    motion = given(model, TIMES, lambda s: (s, 1 + s), lambda s: (1.0, 1.0))
    return replace(motion, state=lambda s: motion.state(s)._replace(r=2 * s[:, None], forces=np.array([5.0])))


def test_arrows_are_the_forces_in_inertial_components() -> None:
    found = {(arrow.kind, str(arrow.foot)): arrow for arrow in arrows(Poses(slider()))}
    contact, control, spring = found["contact", "P"], found["control", "P"], found["load", "P"]
    assert contact.vector == pytest.approx(np.tile([0.0, 0.0, 5.0], (11, 1)))
    along = np.stack([np.cos(TIMES), 0 * TIMES, -np.sin(TIMES)], axis=-1)  # B.x
    assert control.vector == pytest.approx(2 * TIMES[:, None] * along)
    assert (spring.unit, control.unit) == ("N m", "N")
    assert spring.vector[:, 1] == pytest.approx(-3.0 * TIMES)


def test_loads_in_accelerations_need_accelerations() -> None:
    poses = Poses(slider())
    assert not [arrow for arrow in arrows(poses) if arrow.foot is Q]
    says("\n".join(poses.notices), "Q", "accelerations")
    motion = replace(slider(), accelerations=np.stack([TIMES, 0 * TIMES], axis=-1))
    (inerter,) = (arrow for arrow in arrows(Poses(motion)) if arrow.foot is Q)
    assert inerter.vector[:, 0] == pytest.approx(-3.0 * TIMES)


def test_the_torque_on_a_massless_rod_is_drawn_at_its_end() -> None:
    """The page said that no body turns with the frame; so did that of the model of ``kanegen new``."""
    rod = me.ReferenceFrame("rod")
    rod.orient_axis(N, N.z, z)
    bob = P.locatenew("bob", -k * rod.y)
    model = kg.Model(
        name="cart with a pendulum",
        frame=N,
        coordinates=(x, z),
        speeds=(u, w),
        kinematics=(u - x.diff(), w - z.diff()),
        bodies=[me.Particle("cart", O.locatenew("C", x * N.x), 1), me.Particle("bob", bob, 1)],
        loads=[(rod, -0.1 * w * N.z)],
        parameters={k: 3.0},
    )
    poses = Poses(given(model, TIMES, lambda s: (s, s), lambda s: (1.0, 1.0)))
    (torque,) = arrows(poses)
    assert (torque.foot, torque.unit) == (P, "N m")
    assert torque.vector == pytest.approx(np.tile([0.0, 0.0, -0.1], (11, 1)))
    assert not poses.notices


def test_reactions_are_drawn_at_their_points() -> None:
    reaction = kg.Reaction(["body"], P, B)
    force = np.tile([1.0, 0.0, 0.0], (11, 1))
    motion = replace(slider(reactions={"joint": reaction}), wrenches={"joint": (force, 0 * force)})
    (arrow,) = (arrow for arrow in arrows(Poses(motion)) if arrow.kind == "reaction")
    assert arrow.foot is P
    assert arrow.vector[-1] == pytest.approx([np.cos(1.0), 0.0, -np.sin(1.0)])


def test_the_largest_force_has_the_longest_arrow_and_the_plane_is_where_the_gap_closes() -> None:
    data = scene([slider()], WISHES)
    (motion,) = data["motions"]
    (contact,) = (item for item in motion["items"] if item.get("type") == "contact")
    vector = np.frombuffer(base64.b64decode(motion["tracks"][contact["vector"]]["p"]), "<f4")
    assert vector == pytest.approx([0, 0, LARGEST["N"] * data["size"]], rel=1e-6)
    assert data["peaks"]["N"] == pytest.approx(5.0)
    (plane,) = (item for item in motion["items"] if item["name"] == "floor")
    foot = np.frombuffer(base64.b64decode(motion["tracks"][plane["track"]]["p"]), "<f4")
    assert foot == pytest.approx([0.0, 0.0, 0.0])  # z = 1 and the gap is 1
    assert data["up"] == pytest.approx([0.0, 0.0, 1.0])


def test_a_model_without_bodies_says_that_nothing_is_drawn() -> None:
    t = me.dynamicsymbols._t
    model = kg.Model(
        name="oscillator",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[u - x.diff(t)],
        lagrangian=x.diff(t) ** 2 - x**2,
    )
    data = scene([given(model, TIMES, lambda s: (s,), lambda s: (1.0,))], WISHES)
    says("\n".join(data["notices"]), "shapes")
