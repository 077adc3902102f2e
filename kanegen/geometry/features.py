"""What a surface can touch a plane with: balls, rings and ovals, each with one closest point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy

from kanegen.geometry.directions import components, fixed_tangents
from kanegen.geometry.nearest import Nearest, apart
from kanegen.geometry.seats import Seat


@dataclass(frozen=True)
class Ball:
    """A ball about the point with the position ``offset`` from that of the seat; radius 0: a point of the body."""

    offset: Any
    radius: Any


@dataclass(frozen=True)
class Ring:
    """A circle about ``axis`` with a round cross section of radius ``tube``; 0: the edge of a disk."""

    offset: Any
    axis: Any
    radius: Any
    tube: Any


@dataclass(frozen=True)
class Oval:
    """An ellipsoid with pairs (unit vector, semi-axis)."""

    offset: Any
    axes: tuple[tuple[Any, Any], ...]


Feature: TypeAlias = Ball | Ring | Oval
Features: TypeAlias = Mapping[str, Feature]
"""The features of a surface by what distinguishes them, such as "corner 3"; "" for the only one."""


@dataclass(frozen=True)
class Ground:
    """A plane: its place, its unit normal, and two tangents."""

    seat: Seat
    normal: Any
    tangents: tuple[Any, ...]


def above(feature: Feature, place: Seat, ground: Ground, contact: str) -> Nearest:
    """The closest point of a feature of the body at ``place`` to a plane."""
    normal = ground.normal
    height = (place.position(ground.seat.point) + feature.offset).dot(normal)
    depth, below = _support(feature, ground, contact)
    return Nearest(height - depth, normal, feature.offset + below, place, ground.seat, ground.tangents)


def _support(feature: Feature, ground: Ground, contact: str) -> tuple[Any, Any]:
    """How far a feature reaches from its center towards the plane, and the vector to its lowest point."""
    normal = ground.normal
    if isinstance(feature, Ball):
        return feature.radius, -feature.radius * normal
    if isinstance(feature, Oval):
        shares = [(axis, half**2 * normal.dot(axis)) for axis, half in feature.axes]
        depth = sympy.sqrt(sum(share * normal.dot(axis) for axis, share in shares))
        return depth, sum((-share / depth * axis for axis, share in shares), 0 * normal)
    # The sine of the angle between axis and normal as a sum of squares: nothing cancels near the flat disk.
    tilt = sympy.sqrt(sum(feature.axis.dot(tangent) ** 2 for tangent in ground.tangents))
    sine, divisor = apart(
        tilt, contact, "the sine of the angle between the axis of the circle and the normal of the plane"
    )
    inward = normal - normal.dot(feature.axis) * feature.axis
    return feature.radius * sine + feature.tube, -feature.radius / divisor * inward - feature.tube * normal


def rim(ring: Ring, frame: Any, number: int) -> dict[str, Ball]:
    """Points of the body on a circle, with the radius of its cross section."""
    x, y = fixed_tangents(ring.axis, frame)
    angles = [2 * sympy.pi * k / number for k in range(number)]
    places = [ring.offset + ring.radius * (sympy.cos(a) * x + sympy.sin(a) * y) for a in angles]
    return {f"rim {k + 1}": Ball(place, ring.tube) for k, place in enumerate(places)}


def local(place: Seat, offset: Any, solid: Seat) -> tuple[Any, Any, Any]:
    """The components of a point of the body at ``place`` along the axes of the frame of ``solid``, from its point."""
    return components(place.position(solid.point) + offset, solid.frame)
