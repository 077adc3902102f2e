"""Balls and solids: closest points in closed form.

A solid is convex or a torus. Its closest point to the center of a ball is found by clamping coordinates in its frame;
the ball's is on the line between both. No expression divides by what vanishes where the closest point is unique.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import sympy

from kanegen.errors import ModelError
from kanegen.geometry.directions import combined, fixed_tangents
from kanegen.geometry.features import Ball, local
from kanegen.geometry.nearest import Nearest, apart
from kanegen.geometry.seats import Seat
from kanegen.geometry.surfaces import Bowl, Box, Capsule, Cylinder, Sphere, Surface, Torus

_AXIS: Final = "the distance of the center from the axis of the torus over its radius"
_CENTERS: Final = "the distance of the centers over the sum of the radii"


def ball_on_solid(ball: Ball, place: Seat, solid: Surface, contact: str) -> Nearest:
    """The closest points of a ball of the body at ``place`` and a solid."""
    if isinstance(solid, Bowl):
        return _in_bowl(ball, place, solid)
    if isinstance(solid, Sphere):
        vector, radius = place.position(solid.seat.point) + ball.offset, solid.radius
        return _outside(ball, place, solid.seat, vector, radius, (contact, _CENTERS))
    away, radius, reason = _AWAY[type(solid)](ball, place, solid, contact)
    return _outside(ball, place, solid.seat, away, radius, (contact, reason))


def _outside(ball: Ball, place: Seat, solid: Seat, vector: Any, radius: Any, where: tuple[str, str]) -> Nearest:
    """Two balls whose centers are connected by ``vector``, from that of the solid to that of the ball."""
    sum_of_radii = ball.radius + radius
    if sum_of_radii.is_zero:
        raise ModelError(
            f"contact {where[0]!r} is one of two points or of a point and a body with faces: give the point a radius, "
            "kg.geometry.sphere"
        )
    distance = sum_of_radii * apart(sympy.sqrt(vector.dot(vector)) / sum_of_radii, *where)
    normal = vector / distance
    return Nearest(distance - sum_of_radii, normal, ball.offset - ball.radius * normal, place, solid)


def _in_bowl(ball: Ball, place: Seat, bowl: Bowl) -> Nearest:
    """A ball inside of a hollow sphere. Near its center the contact is open, and the normal has no meaning."""
    vector = place.position(bowl.seat.point) + ball.offset
    square, room = vector.dot(vector), bowl.radius - ball.radius
    normal = -vector / sympy.sqrt(larger(square, room**2 / 4))
    return Nearest(room - sympy.sqrt(square), normal, ball.offset - ball.radius * normal, place, bowl.seat)


def _from_capsule(ball: Ball, place: Seat, solid: Capsule, _: str) -> tuple[Any, Any, str]:
    vector = place.position(solid.seat.point) + ball.offset
    return vector - _clamped(vector.dot(solid.axis), solid.length / 2) * solid.axis, solid.radius, _CENTERS


def _from_box(ball: Ball, place: Seat, solid: Box, _: str) -> tuple[Any, Any, str]:
    values = local(place, ball.offset, solid.seat)
    away = [x - _clamped(x, edge / 2) for x, edge in zip(values, solid.edges, strict=True)]
    return combined(away, solid.seat.frame), sympy.S.Zero, "the distance of the center from the box over the radius"


def _from_cylinder(ball: Ball, place: Seat, solid: Cylinder, _: str) -> tuple[Any, Any, str]:
    high, across, square = _about_axis(ball, place, solid)
    # The largest of both squares, so that the root has a derivative on the axis.
    radial = 1 - solid.radius / sympy.sqrt(larger(square, solid.radius**2))
    away = radial * across + (high - _clamped(high, solid.length / 2)) * solid.axis
    return away, sympy.S.Zero, "the distance of the center from the cylinder over the radius"


def _from_torus(ball: Ball, place: Seat, solid: Torus, contact: str) -> tuple[Any, Any, str]:
    high, across, square = _about_axis(ball, place, solid)
    ratio = apart(sympy.sqrt(square) / solid.radius, contact, _AXIS)
    return (1 - 1 / ratio) * across + high * solid.axis, solid.tube, _CENTERS


def _about_axis(ball: Ball, place: Seat, solid: Cylinder | Torus) -> tuple[Any, Any, Any]:
    """The height of a ball along an axis, the vector from the axis to its center, and the square of its length."""
    vector = place.position(solid.seat.point) + ball.offset
    one, two = fixed_tangents(solid.axis, solid.seat.frame)
    x, y = vector.dot(one), vector.dot(two)
    return vector.dot(solid.axis), x * one + y * two, x**2 + y**2


def _clamped(value: Any, half: Any) -> Any:
    return sympy.Min(larger(value, -half), half, evaluate=False) if half != 0 else half


def larger(first: Any, second: Any) -> Any:
    """The maximum, without SymPy's search for a simpler one, which is slow for large expressions."""
    return sympy.Max(first, second, evaluate=False)


_AWAY: Final[Mapping[type, Callable[..., tuple[Any, Any, str]]]] = {
    Capsule: _from_capsule,
    Box: _from_box,
    Cylinder: _from_cylinder,
    Torus: _from_torus,
}
"""By kind of solid: the vector from its core to the center of a ball, the radius about the core, and what is small
where the closest point is not unique."""
SOLIDS: Final = (Sphere, Bowl, *_AWAY)
