"""Balls and solids: closest points in closed form.

A solid is convex or a torus. Its closest point to the center of a ball is found by clamping coordinates in its frame;
the ball's is on the line between both. No expression divides by what vanishes where the closest point is unique.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Final, TypeAlias

import sympy

from kanegen.errors import ModelError
from kanegen.geometry.choices import at_least, clamped, larger, smaller
from kanegen.geometry.directions import combined, fixed_tangents
from kanegen.geometry.features import Ball, local
from kanegen.geometry.nearest import LEAST, Nearest, apart
from kanegen.geometry.seats import Seat
from kanegen.geometry.surfaces import Bowl, Box, Capsule, Cylinder, Sphere, Surface, Torus

_AXIS: Final = "the distance of the center from the axis of the torus over its radius"
_CENTERS: Final = "the distance of the centers over the sum of the radii"
_RADIUS: Final = "give the point a radius, kg.geometry.sphere"


def ball_on_solid(ball: Ball, place: Seat, solid: Surface, contact: str) -> Nearest:
    """The closest points of a ball of the body at ``place`` and a solid."""
    if isinstance(solid, Bowl):
        return _in_bowl(ball, place, solid)
    if isinstance(solid, Box | Cylinder):
        return _on_faces(ball, place, solid, contact)
    vector = place.position(solid.seat.point) + ball.offset
    if isinstance(solid, Sphere):
        return _outside(ball, place, solid.seat, vector, solid.radius, contact)
    if isinstance(solid, Torus):
        return _outside(ball, place, solid.seat, _from_circle(vector, solid, contact), solid.tube, contact)
    assert isinstance(solid, Capsule)
    away = vector - clamped(vector.dot(solid.axis), solid.length / 2) * solid.axis
    return _outside(ball, place, solid.seat, away, solid.radius, contact)


def _outside(ball: Ball, place: Seat, solid: Seat, vector: Any, radius: Any, contact: str) -> Nearest:
    """Two balls whose centers are connected by ``vector``, from that of the solid to that of the ball."""
    both = ball.radius + radius
    if both.is_zero:
        raise ModelError(f"contact {contact!r} is one of two points: {_RADIUS}")
    size, divisor = apart(sympy.sqrt(vector.dot(vector)) / both, contact, _CENTERS)
    normal = vector / (both * divisor)
    return Nearest(both * (size - 1), normal, ball.offset - ball.radius * normal, place, solid)


def _on_faces(ball: Ball, place: Seat, solid: Box | Cylinder, contact: str) -> Nearest:
    """A ball on a solid with faces. With its center inside, the gap is that of the nearest face."""
    if ball.radius.is_zero:
        raise ModelError(f"contact {contact!r} is one of a point and a {solid.kind}: {_RADIUS}")
    away, faces = _of_box(ball, place, solid) if isinstance(solid, Box) else _of_cylinder(ball, place, solid)
    square, highest = away.dot(away), reduce(larger, (excess for excess, _ in faces))
    normal = away / sympy.sqrt(larger(square, (LEAST * ball.radius) ** 2))
    for excess, direction in faces:
        normal += (1 - at_least(highest, 0)) * at_least(excess, highest) * direction
    gap = sympy.sqrt(square) + smaller(highest, 0) - ball.radius
    return Nearest(gap, normal, ball.offset - ball.radius * normal, place, solid.seat)


def _in_bowl(ball: Ball, place: Seat, bowl: Bowl) -> Nearest:
    """A ball inside of a hollow sphere. Near its center the contact is open, and the normal has no meaning."""
    vector = place.position(bowl.seat.point) + ball.offset
    square, room = vector.dot(vector), bowl.radius - ball.radius
    normal = -vector / sympy.sqrt(larger(square, room**2 / 4))
    return Nearest(room - sympy.sqrt(square), normal, ball.offset - ball.radius * normal, place, bowl.seat)


Faces: TypeAlias = list[tuple[Any, Any]]
"""How far the center of a ball is beyond each face, m, and the normal of the face."""


def _of_box(ball: Ball, place: Seat, solid: Box) -> tuple[Any, Faces]:
    """The vector from the closest point of a box to the center of a ball; zero inside."""
    values, frame = local(place, ball.offset, solid.seat), solid.seat.frame
    away = [x - clamped(x, edge / 2) for x, edge in zip(values, solid.edges, strict=True)]
    faces = [_pair(x, edge / 2, axis) for x, edge, axis in zip(values, solid.edges, frame, strict=True)]
    return combined(away, frame), faces


def _of_cylinder(ball: Ball, place: Seat, solid: Cylinder) -> tuple[Any, Faces]:
    """The vector from the closest point of a cylinder to the center of a ball; zero inside."""
    vector, half = place.position(solid.seat.point) + ball.offset, solid.length / 2
    high, across, square = _about_axis(vector, solid)
    # The larger of both squares, so that the root has a derivative on the axis.
    away = (1 - solid.radius / sympy.sqrt(larger(square, solid.radius**2))) * across
    away += (high - clamped(high, half)) * solid.axis
    outward = across / sympy.sqrt(larger(square, (LEAST * solid.radius) ** 2))
    return away, [(sympy.sqrt(square) - solid.radius, outward), _pair(high, half, solid.axis)]


def _pair(x: Any, half: Any, axis: Any) -> tuple[Any, Any]:
    """The nearer of two opposite faces."""
    return larger(x, -x) - half, (2 * at_least(x, 0) - 1) * axis


def _from_circle(vector: Any, solid: Torus, contact: str) -> Any:
    """The vector from the closest point of the center line of a torus."""
    high, across, square = _about_axis(vector, solid)
    _, ratio = apart(sympy.sqrt(square) / solid.radius, contact, _AXIS)
    return (1 - 1 / ratio) * across + high * solid.axis


def _about_axis(vector: Any, solid: Cylinder | Torus) -> tuple[Any, Any, Any]:
    """The component of a vector along an axis, the vector normal to the axis that remains, and its square."""
    one, two = fixed_tangents(solid.axis, solid.seat.frame)
    x, y = vector.dot(one), vector.dot(two)
    return vector.dot(solid.axis), x * one + y * two, x**2 + y**2


SOLIDS: Final = (Sphere, Bowl, Capsule, Cylinder, Box, Torus)
