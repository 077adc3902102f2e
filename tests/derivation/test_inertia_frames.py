"""Inertias written in other frames, or about other points, than the body's own: what is legal, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from tolerances import SOLVE

import kanegen as kg
from kanegen.derivation.momenta import Momenta
from kanegen.graph import evaluate

t = me.dynamicsymbols._t


def spinning(inertia: Callable[[Any, Any, Any], Any], planar: bool = False) -> tuple[kg.Model, me.KanesMethod]:
    """A body about a fixed point with the inertia made of the frames (N, lean, body)."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    N, yaw, lean, B = (me.ReferenceFrame(name) for name in ("N", "yaw", "lean", "B"))
    if planar:
        q, u = q[:1], u[:1]
        lean.orient_axis(N, N.z, t)
        B.orient_axis(N, N.z, q[0])
    else:
        yaw.orient_axis(N, N.z, q[0])
        lean.orient_axis(yaw, yaw.x, q[1])
        B.orient_axis(lean, lean.y, q[2])
    O = me.Point("O")
    O.set_vel(N, 0)
    body = me.RigidBody("top", O, B, 1, (inertia(N, lean, B), O))
    kinematics = [x.diff(t) - v for x, v in zip(q, u, strict=True)]
    loads = [(B, N.x + 2 * N.y - N.z)]
    kane = me.KanesMethod(N, q, u, kinematics)
    kane.kanes_equations([body], loads)
    model = kg.Model(name="top", frame=N, coordinates=q, speeds=u, kinematics=kinematics, bodies=[body], loads=loads)
    return model, kane


def turned_by_time(N: Any, lean: Any, B: Any) -> Any:
    """An inertia in a frame that turns in the body by a motor: a function of time in the body."""
    rotor = me.ReferenceFrame("rotor")
    rotor.orient_axis(B, B.x + B.z, 2 * t)
    return me.inertia(rotor, 1, 2, sm.Rational(5, 2))


LEGAL: dict[str, tuple[Callable[..., Any], bool]] = {
    "disk of revolution in the lean frame": (lambda N, lean, B: me.inertia(lean, 1, 2, 1), False),
    "sphere in the inertial frame": (lambda N, lean, B: me.inertia(N, 2, 2, 2), False),
    "planar motion": (lambda N, lean, B: me.inertia(N, 1, 2, 3, sm.Rational(1, 2)), True),
    "frame turned by a motor": (turned_by_time, False),
    "disk of revolution that grows": (lambda N, lean, B: me.inertia(lean, 1 + t, 2 + t**2, 1 + t), False),
}


@pytest.mark.parametrize("name", LEGAL)
def test_inertias_that_are_functions_of_time_in_the_body(name: str) -> None:
    """Accelerations are those of KanesMethod, momenta change by the same law."""
    model, kane = spinning(*LEGAL[name])
    e = kg.derive(model)
    n = len(model.speeds)
    q, u = [0.4, 0.7, -0.3][:n], [0.9, -1.1, 0.6][:n]
    state = {"t": [0.6], "q": q, "u": u, "p": [], "r": []}
    udot = evaluate(e.udot.nodes, state)
    numbers = dict(zip((*kane.q, *kane.u), (*q, *u), strict=True))
    M, f = (x.xreplace(numbers).subs(t, 0.6) for x in (kane.mass_matrix, kane.forcing))
    expected = np.linalg.solve(np.array(M, dtype=float), np.array(f, dtype=float).ravel())
    np.testing.assert_allclose(udot, expected, rtol=0.0, atol=SOLVE * np.abs(expected).max())
    change = [e.system.full_rate(node) for node in e.momentum.nodes]
    values = evaluate([*change, *Momenta(e).rate], {**state, "udot": udot})
    np.testing.assert_allclose(values[:n], values[n:], rtol=0.0, atol=SOLVE * np.abs(values).max())


REFUSED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "body of three moments in N": (
        lambda N, lean, B: me.inertia(N, 1, 2, 3),
        ("top", "N", "B"),
    ),
    "disk of another axis in the lean frame": (
        lambda N, lean, B: me.inertia(lean, 2, 1, 1),
        ("top", "lean"),
    ),
    "parts in two frames": (
        lambda N, lean, B: me.inertia(lean, 1, 2, 1) + me.inertia(N, 1, 0, 0),
        ("top", "lean", "N"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_inertias_that_turn_in_the_body_are_refused(name: str) -> None:
    inertia, names = REFUSED[name]
    with raises(kg.ModelError, *names):
        _ = kg.derive(spinning(inertia)[0]).bodies


def test_an_inertia_about_a_point_that_moves_in_the_body_is_refused() -> None:
    x, v = me.dynamicsymbols("x v")
    q, u = me.dynamicsymbols("q u")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_axis(N, N.z, q)
    O = me.Point("O")
    O.set_vel(N, 0)
    moving = O.locatenew("moving", x * B.x)
    body = me.RigidBody("rod", O, B, 1, (me.inertia(B, 1, 2, 3), O))
    body.inertia = (me.inertia(B, 1, 2, 3), moving)
    model = kg.Model(
        name="rod",
        frame=N,
        coordinates=[q, x],
        speeds=[u, v],
        kinematics=[q.diff(t) - u, x.diff(t) - v],
        bodies=[body, me.Particle("bead", moving, 1)],
    )
    with raises(kg.ModelError, "inertia", "rod", "moving"):
        _ = kg.derive(model).bodies
