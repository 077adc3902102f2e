"""Where a wheel touches the road, and how it moves there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import sympy
from sympy.physics.vector import Point, ReferenceFrame, Vector

from kanegen.errors import ModelError
from kanegen.tires.functions import held, sqrt
from kanegen.tires.roads import Road
from kanegen.tires.tire import Tire

Triple: TypeAlias = tuple[Any, Any, Any]
"""Components in the frame of the road."""


_UNIT: Final = 1e-9
"""Largest error of the length of a unit vector."""


class Axes(NamedTuple):
    """The axes ISO-W: forward, to the left, normal to the road; and the radius through the contact point, upward."""

    forward: Triple
    side: Triple
    normal: Triple
    radial: Triple
    lean: Any
    upright: Any


@dataclass(frozen=True)
class Placement:
    """The contact of a wheel with the tangent plane of the road.

    deflection: m. load: N. speed: of the center, forward, m/s. slip_x, slip_y: velocity of slip, m/s. lean: sine of the
    inclination. offset: the contact point from the center.
    """

    frame: ReferenceFrame
    axes: Axes
    deflection: Any
    load: Any
    speed: Any
    slip_x: Any
    slip_y: Any
    offset: Vector

    @property
    def lean(self) -> Any:
        return self.axes.lean

    def vector(self, x: Any, y: Any, z: Any) -> Vector:
        """A vector from its components in the axes of the contact."""
        parts = zip(self.axes.forward, self.axes.side, self.axes.normal, strict=True)
        return to_vector(tuple(x * f + y * s + z * n for f, s, n in parts), self.frame)


def place(tire: Tire, center: Point, frame: ReferenceFrame, axis: Vector, road: Road, pressure: Any) -> Placement:
    """The contact of a wheel; arguments as those of `wheel`. Raises `ModelError` for an axis that is no unit vector."""
    size = sympy.Add(*(x**2 for part, _ in axis.args for x in part)) if len(axis.args) == 1 else sympy.S.One
    if size.is_number and abs(float(size) - 1.0) > _UNIT:
        raise ModelError(f"the axis of the wheel is {axis}, of length {float(size) ** 0.5:g}: expected a unit vector")
    N = road.frame
    position = components(center.pos_from(road.origin), N)
    height, *slopes = map(held, road.surface(position[0], position[1]))
    axes = _axes(components(axis, N), slopes)
    loaded_radius = held((position[2] - height) * axes.normal[2] / axes.upright)
    offset = scaled(axes.radial, -loaded_radius)
    velocity, turning = components(center.vel(N), N), components(frame.ang_vel_in(N), N)
    there = tuple(a + b for a, b in zip(velocity, cross(turning, offset), strict=True))
    spin = held(dot(turning, components(axis, N)))
    deflection = held(tire.free_radius(spin) - loaded_radius)
    load = held(tire.load(deflection, held(-dot(there, axes.normal) / axes.upright), spin, pressure))
    speed = held(dot(velocity, axes.forward))
    return Placement(
        N,
        axes,
        deflection,
        load,
        speed,
        held(speed - spin * tire.effective_radius(load, spin, pressure)),
        held(dot(there, axes.side)),
        to_vector(offset, N),
    )


def _axes(axis: Triple, slopes: list[Any]) -> Axes:
    steep = held(sqrt(1 + slopes[0] ** 2 + slopes[1] ** 2))
    normal = held_triple((-slopes[0] / steep, -slopes[1] / steep, 1 / steep))
    ahead = held_triple(cross(axis, normal))
    upright = held(sqrt(dot(ahead, ahead)))
    forward = held_triple(scaled(ahead, 1 / upright))
    side, radial = held_triple(cross(normal, forward)), held_triple(cross(forward, axis))
    return Axes(forward, side, normal, radial, held(dot(axis, normal)), upright)


def components(vector: Vector, frame: ReferenceFrame) -> Triple:
    """The components of a vector in a frame."""
    return held_triple(vector.to_matrix(frame) if vector != 0 else (0, 0, 0))


def to_vector(parts: Any, frame: ReferenceFrame) -> Vector:
    """A vector from its components in a frame."""
    return parts[0] * frame.x + parts[1] * frame.y + parts[2] * frame.z


def dot(a: Any, b: Any) -> Any:
    """The scalar product."""
    return sum((x * y for x, y in zip(a, b, strict=True)), sympy.Integer(0))


def cross(a: Any, b: Any) -> Triple:
    """The vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def held_triple(parts: Any) -> Triple:
    """Components that SymPy does not look into."""
    x, y, z = map(held, parts)
    return x, y, z


def scaled(a: Any, factor: Any) -> Triple:
    """A vector times a number."""
    x, y, z = (factor * part for part in a)
    return x, y, z
