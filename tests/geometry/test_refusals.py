"""Surfaces and pairs that cannot be used are refused by name, with what to do instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from two_bodies import A, B, N, O, P, S

import kanegen as kg

shapes = kg.geometry
PLANE, BALL = shapes.plane(S, B.z), shapes.sphere(P, 0.2, frame=A)
BOX, ELLIPSOID = shapes.box(P, 1, 2, 3, frame=A), shapes.ellipsoid(S, 1, 2, 3, frame=B)
FIELD = shapes.height_field(lambda x, y: x * y, S, frame=B)
x, z = me.dynamicsymbols("x z")
C = O.locatenew("C", x * N.x + z * N.z)
FLAT = kg.Table([0, 1, 2], [0, 1, 2], np.zeros((3, 3)), kind="linear")


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda: shapes.sphere(P, -1), ("kg.geometry.sphere", "radius=-1", "positive")),
        (lambda: shapes.sphere(N, 1), ("kg.geometry.sphere", "Point, a Particle or a RigidBody")),
        (lambda: shapes.disk(P, 1), ("kg.geometry.disk", "no frame", "frame=")),
        (lambda: shapes.disk(P, 1, frame=A, rim=2), ("rim=2", "3 to 100")),
        (lambda: shapes.plane(P, 0 * N.x), ("kg.geometry.plane", "normal=0", "not zero")),
        (lambda: shapes.plane(P, A.x + N.x), ("kg.geometry.plane", "frame=")),
        (lambda: shapes.box(P, 1, float("nan"), 1, frame=A), ("kg.geometry.box", "y=nan", "positive")),
        (lambda: shapes.height_field(FLAT, P, frame=A), ("'linear'", "second derivatives")),
        (lambda: shapes.height_field(kg.Table([0, 1], [0, 1]), P, frame=A), ("height=", "two arguments")),
        (lambda: shapes.cam(3, P, frame=A), ("kg.geometry.cam", "radius=3", "one argument")),
        (lambda: shapes.implicit(sm.S(1), sm.symbols("x y z"), P, frame=A), ("expression 1", "x, y, z")),
        (lambda: shapes.periodic([0, 1, 2], [1, 1, 1]), ("at least 8 angles",)),
        (lambda: shapes.contact("c", BALL, P), ("contact 'c'", "surface of kg.geometry")),
        (lambda: shapes.contact("c", BOX, PLANE), ("contact 'c'", "8 places", "corner 8", "kg.geometry.contacts")),
        (lambda: shapes.contact("c", BOX, ELLIPSOID), ("box and ellipsoid", "planes only", "kg.geometry.sphere")),
        (lambda: shapes.contact("c", BALL, ELLIPSOID), ("sphere and ellipsoid", "planes only")),
        (lambda: shapes.contact("c", BALL, FIELD), ("no closed form", "kg.geometry.foot('c'")),
        (lambda: shapes.contact("c", BOX, FIELD), ("box and height field", "kg.geometry.point")),
        (
            lambda: shapes.contact(
                "c", BALL, FIELD, foot=shapes.foot("f", BALL, FIELD), law=kg.Restitution(0), restitution=1
            ),
            ("give one of both",),
        ),
        (lambda: shapes.contact("c", BALL, PLANE, foot=shapes.foot("f", BALL, FIELD)), ("foot=", "same two surfaces")),
        (lambda: shapes.foot("f", BOX, FIELD), ("a sphere, and a height field or a cam",)),
        (lambda: shapes.contact("c", shapes.point(P), shapes.point(S)), ("two points", "give the point a radius")),
        (lambda: shapes.contact("c", shapes.sphere(P, 1), PLANE, friction=1), ("point 'P' has no frame", "frame=")),
        (lambda: shapes.contact("c", BALL, PLANE, friction=1, along=(N.x, N.x)), ("along=", "orthonormal")),
        (lambda: shapes.contact("c", shapes.sphere(me.Point("far"), 1), PLANE), ("'far'", "'S'", "not known")),
    ],
)
def test_it_is_refused(make: Any, texts: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *texts):
        make()


def test_pairs_of_many_bodies() -> None:
    balls = [BALL, shapes.sphere(S, 0.3, frame=B), shapes.sphere(P, 0.1, frame=A)]
    names = [made.name for made in shapes.contacts("ball", balls, restitution=0.5)]
    assert names == ["ball 1", "ball 2"]  # not the two of one body
    corners = shapes.contacts("box", BOX, PLANE)
    assert [made.name for made in corners] == [f"box corner {k}" for k in range(1, 9)]
    (flat,) = shapes.contacts("flat", shapes.sphere(C, 0.1, frame=N), shapes.plane(O, N.z), friction=0.3)
    assert flat.slip == (C.pos_from(O).dt(N).dot(N.x),)  # not along y, in which nothing moves
    assert len(shapes.contacts("both", balls, [PLANE, PLANE])) == 6
