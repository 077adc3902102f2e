"""Surfaces that are given by functions: height fields, cams, implicit surfaces.

A point has a contact with them in closed form: the expression that is zero on the surface, divided by the length of its
gradient. It is the distance to first order, and at the contact the distance itself with its first derivatives. For a
sphere the closest point on the surface is found by surface coordinates (:class:`Foot`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import sympy
from sympy.physics.mechanics import dynamicsymbols

from kanegen.errors import ModelError
from kanegen.geometry.directions import combined
from kanegen.geometry.features import Ball, local
from kanegen.geometry.nearest import Nearest
from kanegen.geometry.seats import Seat
from kanegen.geometry.surfaces import Cam, HeightField, Implicit, Surface
from kanegen.graph.tables import Table

_BEYOND: Final = 20
"""Points of a periodic table beyond a revolution: the effect of an end decreases by 2 - sqrt(3) at each point."""

_A, _B = sympy.symbols("a b", real=True)


@dataclass(frozen=True)
class Spot:
    """A place on a surface: ``position`` and unit ``normal`` by components, ``slopes`` along its coordinates."""

    position: tuple[Any, Any, Any]
    normal: tuple[Any, Any, Any]
    slopes: tuple[tuple[Any, Any, Any], ...]


@cache
def _height_with_slopes(height: Callable[..., Any]) -> tuple[Any, ...]:
    value = height(_A, _B)
    return value, sympy.diff(value, _A), sympy.diff(value, _B)


@cache
def _radius_with_slope(radius: Callable[..., Any]) -> tuple[Any, ...]:
    value = radius(_A)
    return value, sympy.diff(value, _A)


def _at(expressions: Sequence[Any], *arguments: Any) -> list[Any]:
    places = dict(zip((_A, _B), arguments, strict=False))
    return [sympy.sympify(value).subs(places, simultaneous=True) for value in expressions]


def _height_spot(surface: HeightField, x: Any, y: Any) -> Spot:
    z, z_x, z_y = _at(_height_with_slopes(surface.height), x, y)
    root = sympy.sqrt(1 + z_x**2 + z_y**2)
    return Spot((x, y, z), (-z_x / root, -z_y / root, 1 / root), ((1, 0, z_x), (0, 1, z_y)))


def _cam_spot(surface: Cam, angle: Any) -> Spot:
    cosine, sine = sympy.cos(angle), sympy.sin(angle)
    # Between -pi and pi at any number of turns; its derivative is 1.
    r, slope = _at(_radius_with_slope(surface.radius), sympy.atan2(sine, cosine))
    along = (slope * cosine - r * sine, slope * sine + r * cosine, sympy.S.Zero)
    root = sympy.sqrt(r**2 + slope**2)
    return Spot((r * cosine, r * sine, sympy.S.Zero), (along[1] / root, -along[0] / root, sympy.S.Zero), (along,))


# -- points ----------------------------------------------------------------------------------------------------------


def point_on_field(ball: Ball, place: Seat, surface: Surface, contact: str) -> Nearest:
    """The contact of a point of the body at ``place``."""
    values = local(place, ball.offset, surface.seat)
    gap, normal, tangents = _POINT[type(surface)](surface, values)
    frame = surface.seat.frame
    directions = tuple(combined(tangent, frame) for tangent in tangents)
    return Nearest(gap, combined(normal, frame), ball.offset, place, surface.seat, directions)


def _point_on_height(surface: HeightField, values: Any) -> tuple[Any, ...]:
    x, y, z = values
    spot = _height_spot(surface, x, y)
    return (z - spot.position[2]) * spot.normal[2], spot.normal, _tangents(spot)


def _point_on_cam(surface: Cam, values: Any) -> tuple[Any, ...]:
    x, y, _ = values
    distance, angle = sympy.sqrt(x**2 + y**2), sympy.atan2(y, x)
    r, slope = _at(_radius_with_slope(surface.radius), angle)
    root = sympy.sqrt(1 + (slope / distance) ** 2)
    # The gradient of distance - radius(angle), over its length.
    normal = ((x + slope * y / distance) / (distance * root), (y - slope * x / distance) / (distance * root), 0)
    return (distance - r) / root, normal, ((-normal[1], normal[0], 0), (0, 0, 1))


def _point_on_implicit(surface: Implicit, values: Any) -> tuple[Any, ...]:
    gradient = [surface.expression.diff(symbol) for symbol in surface.symbols]
    root = sympy.sqrt(sum(slope**2 for slope in gradient))
    places = dict(zip(surface.symbols, values, strict=True))
    gap, *normal = (
        value.subs(places, simultaneous=True) for value in (surface.expression / root, *(s / root for s in gradient))
    )
    return gap, tuple(normal), ()


def _tangents(spot: Spot) -> tuple[Any, ...]:
    """Two orthonormal vectors by components, the first one along the first coordinate."""
    first = spot.slopes[0]
    size = sympy.sqrt(sum(x**2 for x in first))
    one = tuple(x / size for x in first)
    (a, b, c), (x, y, z) = spot.normal, one
    return one, (b * z - c * y, c * x - a * z, a * y - b * x)


_POINT: Final[Mapping[type, Callable[..., tuple[Any, ...]]]] = {
    HeightField: _point_on_height,
    Cam: _point_on_cam,
    Implicit: _point_on_implicit,
}
FIELDS: Final = tuple(_POINT)


# -- spheres: surface coordinates ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Foot:
    """The point of a surface that is closest to the center of a sphere, by coordinates on the surface.

    The coordinates are further coordinates of the model without mass, and the conditions are configuration constraints
    that hold no force: the vector from the surface to the center is normal to the surface.

    Attributes
    ----------
    coordinates, speeds, kinematics, constraints
        What the model needs in ``coordinates``, ``speeds``, ``kinematics`` and ``holonomic_constraints``.
    """

    name: str
    coordinates: tuple[Any, ...]
    speeds: tuple[Any, ...]
    kinematics: tuple[Any, ...]
    constraints: tuple[Any, ...]
    sphere: Surface
    surface: Surface
    spot: Spot


_COORDINATES: Final[Mapping[type, tuple[tuple[str, ...], Callable[..., Spot]]]] = {
    HeightField: (("x", "y"), _height_spot),
    Cam: (("angle",), _cam_spot),
}
FOOTED: Final = tuple(_COORDINATES)


def make_foot(name: str, place: Seat, sphere: Surface, surface: Surface) -> Foot:
    """Coordinates on a surface for a sphere whose center is at ``place``."""
    labels, spot_at = _COORDINATES[type(surface)]
    coordinates = tuple(dynamicsymbols(f"{name}_{label}") for label in labels)
    speeds = tuple(dynamicsymbols(f"{name}_{label}_rate") for label in labels)
    spot = spot_at(surface, *coordinates)
    away = _away(place, surface, spot)
    conditions = tuple(sum(x * slope for x, slope in zip(away, row, strict=True)) for row in spot.slopes)
    time = dynamicsymbols._t
    kinematics = tuple(speed - q.diff(time) for speed, q in zip(speeds, coordinates, strict=True))
    return Foot(name, coordinates, speeds, kinematics, conditions, sphere, surface, spot)


def _away(place: Seat, surface: Surface, spot: Spot) -> list[Any]:
    """The vector from a place on the surface to the center of a sphere, by components."""
    return [x - y for x, y in zip(local(place, 0 * surface.seat.frame.x, surface.seat), spot.position, strict=True)]


def sphere_on_foot(ball: Ball, place: Seat, foot: Foot) -> Nearest:
    """The contact of a sphere at the foot of its center."""
    surface, spot = foot.surface, foot.spot
    frame, away = surface.seat.frame, _away(place, surface, spot)
    gap = sum(x * n for x, n in zip(away, spot.normal, strict=True)) - ball.radius
    normal = combined(spot.normal, frame)
    tangents = tuple(combined(tangent, frame) for tangent in _tangents(spot))
    return Nearest(gap, normal, ball.offset - ball.radius * normal, place, surface.seat, tangents)


# -- tables of an angle ----------------------------------------------------------------------------------------------


def periodic(angle: Any, radius: Any, name: str = "cam") -> Table:
    """A table over one revolution, for :func:`cam`.

    Parameters
    ----------
    angle, radius
        Arrays (n,) of one revolution: angles that increase from any start within less than 2 pi, rad, and radii, m. At
        least 8 points.
    name
        The name of the table.

    Returns
    -------
    kanegen.Table
        From -pi to pi and beyond: the points are repeated on both sides, so that the ends have no effect within a
        revolution, and value and derivatives agree at -pi and pi to 1e-9 of their size.
    """
    angles, radii = np.asarray(angle, dtype=float), np.asarray(radius, dtype=float)
    fits = angles.ndim == 1 and angles.shape == radii.shape and angles.size >= 8
    if not fits or not np.all(np.diff(angles) > 0) or not angles[-1] - angles[0] < 2 * np.pi:
        raise ModelError(
            f"kg.geometry.periodic has angles of shape {angles.shape} and radii of shape {radii.shape}: expected at "
            "least 8 angles that increase within less than one revolution, 2 pi rad, and as many radii"
        )
    turns = 2 * np.pi * np.arange(-4, 5)
    first = angles - 2 * np.pi * np.round(angles.mean() / (2 * np.pi))
    spread, values = (turns[:, None] + first[None, :]).ravel(), np.tile(radii, turns.size)
    inside = np.flatnonzero(np.abs(spread) <= np.pi)
    kept = slice(inside[0] - _BEYOND, inside[-1] + _BEYOND + 1)
    return Table(spread[kept], values[kept], name=name, extrapolate="polynomial")
