"""Motions for the tests of animations: given functions of time in place of an integration, so that nothing is compiled.

The steady rolling of a disk in a circle is known in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg
from kanegen.backends.points import Point
from kanegen.view.motion import Motion

RADIUS, LEAN, TURN, SPIN = 0.4, 1.1, 1.3, -2.9
"""Of the disk in m, rad and rad/s."""


Columns = Callable[[Any], Any]


def given(model: kg.Model, times: np.ndarray, q: Columns, u: Columns) -> Motion:
    """The motion with coordinates and speeds that are functions of time, each returning a sequence of arrays."""

    def state(t: np.ndarray) -> Point:
        return Point(t, *(np.stack([np.broadcast_to(x, t.shape) for x in part], axis=-1) for part in (q(t), u(t))))

    values = np.array(list(model.parameters.values()), dtype=float)
    return Motion("given", model, values, times, times, state)


def rolling_disk(oriented: bool = True) -> kg.Model:
    """A disk without coordinates of the contact; ``oriented=False``: its frame has an angular velocity only."""
    yaw, lean, spin = me.dynamicsymbols("yaw lean spin")
    u1, u2, u3 = me.dynamicsymbols("u1 u2 u3")
    t, R = me.dynamicsymbols._t, sm.Symbol("R")
    N, Y, L, B = (me.ReferenceFrame(name) for name in "NYLB")
    Y.orient_axis(N, N.z, yaw)
    L.orient_axis(Y, Y.x, lean)
    if oriented:
        B.orient_axis(L, L.z, spin)
    B.set_ang_vel(N, u1 * L.x + u2 * L.y + u3 * L.z)
    contact = me.Point("contact")
    contact.set_vel(N, 0)
    center = contact.locatenew("center", R * L.y)
    center.v2pt_theory(contact, N, B)
    disk = me.RigidBody("disk", center, B, 1, (me.inertia(L, 0.04, 0.04, 0.08), center))
    angles = (yaw, lean, spin) if oriented else (yaw, lean)
    rates = [u2 - yaw.diff(t) * sm.sin(lean), u1 - lean.diff(t), u3 - yaw.diff(t) * sm.cos(lean) - spin.diff(t)]
    return kg.Model(
        name="disk",
        frame=N,
        coordinates=angles,
        speeds=(u1, u2, u3),
        kinematics=rates[: len(angles)],
        bodies=[disk],
        gravity=-9.81 * N.z,
        parameters={R: RADIUS},
    )


def steady_disk(times: np.ndarray, oriented: bool = True) -> Motion:
    """The disk that rolls in a circle at a constant lean."""
    speeds = 0.0, TURN * np.sin(LEAN), TURN * np.cos(LEAN) + SPIN
    angles = lambda t: (TURN * t, LEAN, SPIN * t)[: 2 + oriented]  # noqa: E731
    return given(rolling_disk(oriented), times, angles, lambda t: speeds)


def steady_center(t: np.ndarray) -> np.ndarray:
    """The path (n, 3) of the center of the steady disk from its start, the contact at the origin at t = 0.

    The velocity ``omega x R j`` is along the horizontal axis of the leaning frame and constant in it.
    """
    speed = -RADIUS * (TURN * np.cos(LEAN) + SPIN)
    x = speed / TURN * np.sin(TURN * t)
    y = RADIUS * np.cos(LEAN) + speed / TURN * (1.0 - np.cos(TURN * t))
    return np.stack([x, y, np.full_like(t, RADIUS * np.sin(LEAN))], axis=-1)


def chain(n: int) -> tuple[kg.Model, Columns, Columns]:
    """A chain of ``n`` rods with joints in two directions, and angles and speeds as functions of time."""
    q, u = me.dynamicsymbols(f"q1:{n + 1}"), me.dynamicsymbols(f"u1:{n + 1}")
    N = before = me.ReferenceFrame("N")
    joint = me.Point("O")
    joint.set_vel(N, 0)
    bodies = []
    for k in range(n):
        B = me.ReferenceFrame(f"B{k}")
        B.orient_axis(before, (before.z, before.x)[k % 2], q[k])
        center = joint.locatenew(f"center{k}", -0.5 * B.y)
        joint = joint.locatenew(f"joint{k}", -B.y)
        bodies.append(me.RigidBody(f"link{k}", center, B, 1, (me.inertia(B, 1 / 12, 0.01, 1 / 12), center)))
        before = B
    kinematics = [x.diff(me.dynamicsymbols._t) - y for x, y in zip(q, u, strict=True)]
    model = kg.Model(
        name="chain",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=kinematics,
        bodies=bodies,
        gravity=-9.81 * N.y,
        check_kinematics=False,  # takes longer than everything else
    )
    rates = np.linspace(1.0, 3.0, n)[:, None]
    return model, lambda t: 0.3 * np.sin(rates * t), lambda t: 0.3 * rates * np.cos(rates * t)
