"""Surfaces of bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, Final

import sympy
from sympy.physics.vector import Vector

from kanegen.errors import ModelError, brief
from kanegen.geometry.directions import fixed_tangents
from kanegen.geometry.features import Ball, Features, Ground, Oval, Ring, rim
from kanegen.geometry.seats import Seat, length, only_frame, seat, unit

_NOWHERE: Final = Vector(0)


@dataclass(frozen=True)
class Surface:
    """The surface of a body. Constructors: :func:`sphere`, :func:`plane` and others.

    Attributes
    ----------
    seat
        The point from which the surface is described, and the frame of its body or None.
    """

    kind: ClassVar[str] = "surface"
    seat: Seat

    def features(self) -> Features:
        """What can touch a plane."""
        return {}


@dataclass(frozen=True)
class Plane(Surface):
    """A plane with its unit normal, which points out of the ground."""

    kind: ClassVar[str] = "plane"
    normal: Any

    @property
    def ground(self) -> Ground:
        """The plane with two tangents."""
        return Ground(self.seat, self.normal, fixed_tangents(self.normal, self.seat.frame))


@dataclass(frozen=True)
class Sphere(Surface):
    """A sphere; radius 0: a point."""

    kind: ClassVar[str] = "sphere"
    radius: Any

    def features(self) -> Features:
        """The sphere itself."""
        return {"": Ball(_NOWHERE, self.radius)}


@dataclass(frozen=True)
class Bowl(Surface):
    """The inside of a sphere."""

    kind: ClassVar[str] = "hollow sphere"
    radius: Any


@dataclass(frozen=True)
class Cylinder(Surface):
    """A solid cylinder along its axis; length 0: a disk. ``rim``: points of each edge in place of the circle."""

    kind: ClassVar[str] = "cylinder"
    axis: Any
    radius: Any
    length: Any
    rim: int | None = None

    def features(self) -> Features:
        """The edges, as circles or points."""
        if self.length.is_zero:
            return _edges({"": Ring(_NOWHERE, self.axis, self.radius, sympy.S.Zero)}, self.seat.frame, self.rim)
        half = self.length / 2 * self.axis
        ends = {"front": half, "back": -half}
        rings = {name: Ring(offset, self.axis, self.radius, sympy.S.Zero) for name, offset in ends.items()}
        return _edges(rings, self.seat.frame, self.rim)


@dataclass(frozen=True)
class Capsule(Surface):
    """A cylinder between two half spheres, whose centers have the distance ``length``."""

    kind: ClassVar[str] = "capsule"
    axis: Any
    radius: Any
    length: Any

    def features(self) -> Features:
        """The spheres at both ends."""
        half = self.length / 2 * self.axis
        return {"front": Ball(half, self.radius), "back": Ball(-half, self.radius)}


@dataclass(frozen=True)
class Ellipsoid(Surface):
    """An ellipsoid with semi-axes along the axes of its frame."""

    kind: ClassVar[str] = "ellipsoid"
    halves: tuple[Any, Any, Any]

    def features(self) -> Features:
        """The ellipsoid itself."""
        return {"": Oval(_NOWHERE, tuple(zip(self.seat.frame, self.halves, strict=True)))}


@dataclass(frozen=True)
class Torus(Surface):
    """A ring about its axis: radius of the center line and of the cross section."""

    kind: ClassVar[str] = "torus"
    axis: Any
    radius: Any
    tube: Any

    def features(self) -> Features:
        """The torus itself."""
        return {"": Ring(_NOWHERE, self.axis, self.radius, self.tube)}


@dataclass(frozen=True)
class Cone(Surface):
    """A cone with the center of its base at the seat and the tip along the axis."""

    kind: ClassVar[str] = "cone"
    axis: Any
    radius: Any
    height: Any
    rim: int | None = None

    def features(self) -> Features:
        """The tip, and the edge of the base."""
        base = {"base": Ring(_NOWHERE, self.axis, self.radius, sympy.S.Zero)}
        tip = Ball(self.height * self.axis, sympy.S.Zero)
        return {"tip": tip, **_edges(base, self.seat.frame, self.rim)}


@dataclass(frozen=True)
class Box(Surface):
    """A box with edges along the axes of its frame."""

    kind: ClassVar[str] = "box"
    edges: tuple[Any, Any, Any]

    def features(self) -> Features:
        """The eight corners."""
        return {f"corner {k + 1}": Ball(place, sympy.S.Zero) for k, place in enumerate(self._corners())}

    def _corners(self) -> Iterator[Any]:
        halves = [edge / 2 for edge in self.edges]
        for signs in product((-1, 1), repeat=3):
            yield sum((s * h * axis for s, h, axis in zip(signs, halves, self.seat.frame, strict=True)), _NOWHERE)


@dataclass(frozen=True)
class HeightField(Surface):
    """The surface z = height(x, y) in the axes of its frame, solid below."""

    kind: ClassVar[str] = "height field"
    height: Callable[[Any, Any], Any] = field(repr=False)


@dataclass(frozen=True)
class Cam(Surface):
    """The cylinder with the outline radius(angle) about the z axis of its frame; the angle counts from the x axis."""

    kind: ClassVar[str] = "cam"
    radius: Callable[[Any], Any] = field(repr=False)


@dataclass(frozen=True)
class Implicit(Surface):
    """The surface on which an expression of three symbols, the coordinates in its frame, is zero; positive outside."""

    kind: ClassVar[str] = "implicit surface"
    expression: Any
    symbols: tuple[Any, Any, Any]


def _edges(rings: dict[str, Ring], frame: Any, number: int | None) -> Features:
    if number is None:
        return rings
    return {
        f"{name} {point}".strip(): ball
        for name, ring in rings.items()
        for point, ball in rim(ring, frame, number).items()
    }


# -- constructors ------------------------------------------------------------------------------------------------------


def point(place: Any, *, frame: Any = None) -> Sphere:
    """A point of a body, such as a foot or a corner, as a surface.

    Parameters
    ----------
    place
        A ``Point``; of a ``RigidBody`` or ``Particle``, its mass center.
    frame
        The frame of the body. A point does not need it.
    """
    return Sphere(seat(place, frame, "kg.geometry.point"), sympy.S.Zero)


def sphere(place: Any, radius: Any, *, frame: Any = None, hollow: bool = False) -> Surface:
    """A sphere.

    Parameters
    ----------
    place
        The center: a ``Point``, or a ``RigidBody`` or ``Particle`` with its mass center there.
    radius
        Radius, m: a number or an expression of parameters.
    frame
        The frame of the body at a ``Point``. Contacts without friction do not need it. For what does not rotate, the
        inertial frame.
    hollow
        Whether the inside of the sphere is the surface, as of a bowl.
    """
    what = "kg.geometry.sphere"
    found = seat(place, frame, what), length(radius, "radius", what)
    return Bowl(*found) if hollow else Sphere(*found)


def plane(place: Any, normal: Any, *, frame: Any = None) -> Plane:
    """A plane, with the ground below.

    Parameters
    ----------
    place
        A ``Point`` of the plane, or a body with its mass center in the plane.
    normal
        Vector normal to the plane, out of the ground, such as ``N.z``; its length has no effect.
    frame
        The frame in which the plane is fixed. None: that of the body or of the normal.
    """
    what = "kg.geometry.plane"
    direction = unit(normal, "normal", what)
    return Plane(seat(place, frame or _own(place, direction), what, oriented=True), direction)


def _own(place: Any, direction: Any) -> Any:
    """The frame of the body, else the one in which the direction is written."""
    return getattr(place, "frame", None) or only_frame(direction)


def disk(place: Any, radius: Any, *, axis: Any = None, frame: Any = None, rim: int | None = None) -> Cylinder:
    """A thin disk: its edge touches planes, all of it touches spheres.

    Parameters
    ----------
    place, frame
        The center: a ``Point`` with the ``frame`` of its body, or a ``RigidBody``.
    radius
        Radius, m.
    axis
        Vector along the axis. None: the z axis of the frame.
    rim
        Number of points on the edge, fixed in the body, that touch planes in its place. A disk that can come to lie
        flat needs them: the edge then has no lowest point.
    """
    return _cylinder("disk", place, frame, axis, radius, 0, rim)


def cylinder(
    place: Any, radius: Any, length: Any, *, axis: Any = None, frame: Any = None, rim: int | None = None
) -> Cylinder:
    """A solid cylinder: both edges touch planes, all of it touches spheres.

    Parameters
    ----------
    place, frame
        The center: a ``Point`` with the ``frame`` of its body, or a ``RigidBody``.
    radius, length
        Radius and length, m.
    axis
        Vector along the axis. None: the z axis of the frame.
    rim
        Number of points on each edge that touch planes in its place, for a cylinder that can stand.
    """
    return _cylinder("cylinder", place, frame, axis, radius, length, rim)


def _cylinder(kind: str, place: Any, frame: Any, axis: Any, radius: Any, long: Any, rim: Any) -> Cylinder:
    what = f"kg.geometry.{kind}"
    where = seat(place, frame, what, oriented=True)
    lengths = length(radius, "radius", what), length(long, "length", what, zero=kind == "disk")
    return Cylinder(where, _axis(axis, where, what), *lengths, _number(rim, what))


def _axis(axis: Any, place: Seat, what: str) -> Any:
    return place.frame.z if axis is None else unit(axis, "axis", what)


def _number(rim: Any, what: str) -> int | None:
    if rim is None or (isinstance(rim, int) and not isinstance(rim, bool) and 3 <= rim <= 100):
        return rim
    raise ModelError(f"{what} has rim={brief(rim)}: expected a number of points from 3 to 100, or None")


def capsule(place: Any, radius: Any, length: Any, *, axis: Any = None, frame: Any = None) -> Capsule:
    """A cylinder of this ``length`` between two half spheres.

    ``place``, ``frame`` and ``axis`` are those of :func:`cylinder`; the whole is ``length + 2 radius`` long, m.
    """
    what = "kg.geometry.capsule"
    where = seat(place, frame, what, oriented=True)
    return Capsule(where, _axis(axis, where, what), _length(radius, "radius", what), _length(length, "length", what))


_length = length


def ellipsoid(place: Any, x: Any, y: Any, z: Any, *, frame: Any = None) -> Ellipsoid:
    """An ellipsoid with the semi-axes ``x``, ``y``, ``z``, m, along those of its frame.

    ``place``, the center, and ``frame`` are those of :func:`cylinder`.
    """
    what = "kg.geometry.ellipsoid"
    halves = tuple(length(value, name, what) for value, name in ((x, "x"), (y, "y"), (z, "z")))
    return Ellipsoid(seat(place, frame, what, oriented=True), halves)


def torus(place: Any, radius: Any, tube: Any, *, axis: Any = None, frame: Any = None) -> Torus:
    """A ring: ``radius`` of its center line and of its cross section, ``tube``, m.

    ``place``, ``frame`` and ``axis`` are those of :func:`cylinder`.
    """
    what = "kg.geometry.torus"
    where = seat(place, frame, what, oriented=True)
    return Torus(where, _axis(axis, where, what), length(radius, "radius", what), length(tube, "tube", what))


def cone(place: Any, radius: Any, height: Any, *, axis: Any = None, frame: Any = None, rim: int | None = None) -> Cone:
    """A cone: the center of its base is at ``place``, and its tip at the distance ``height`` along the axis, m.

    ``place``, ``frame``, ``axis`` and ``rim`` are those of :func:`cylinder`.
    """
    what = "kg.geometry.cone"
    where = seat(place, frame, what, oriented=True)
    lengths = length(radius, "radius", what), length(height, "height", what)
    return Cone(where, _axis(axis, where, what), *lengths, _number(rim, what))


def box(place: Any, x: Any, y: Any, z: Any, *, frame: Any = None) -> Box:
    """A box with edges of the lengths ``x``, ``y``, ``z``, m, along the axes of its frame.

    Its corners touch planes; its faces, edges and corners touch spheres. ``place``, the center, and ``frame`` are those
    of :func:`cylinder`.
    """
    what = "kg.geometry.box"
    edges = tuple(length(value, name, what) for value, name in ((x, "x"), (y, "y"), (z, "z")))
    return Box(seat(place, frame, what, oriented=True), edges)


def height_field(height: Callable[[Any, Any], Any], place: Any, *, frame: Any = None) -> HeightField:
    """The surface z = height(x, y), with the ground below.

    Parameters
    ----------
    height
        A :class:`kanegen.Table` of two arguments, m, of the kind ``"cubic"`` or ``"natural"``; or a function that takes
        and returns SymPy expressions.
    place, frame
        The point at x = y = z = 0, and the frame in whose axes x, y and z count; or a ``RigidBody``.
    """
    what = "kg.geometry.height_field"
    return HeightField(seat(place, frame, what, oriented=True), _function(height, 2, "height", what))


def cam(radius: Callable[[Any], Any], place: Any, *, frame: Any = None) -> Cam:
    """A cam disk with any outline about the z axis of its frame.

    Parameters
    ----------
    radius
        Radius over the angle from the x axis, m: a function that takes and returns SymPy expressions, with the period
        2 pi; or a :class:`kanegen.Table` from -pi to pi or beyond, such as :func:`periodic` makes.
    place, frame
        The point on the axis of rotation and the frame of the cam; or a ``RigidBody``.
    """
    what = "kg.geometry.cam"
    return Cam(seat(place, frame, what, oriented=True), _function(radius, 1, "radius", what))


def _function(value: Any, arity: int, name: str, what: str) -> Callable[..., Any]:
    """A function of expressions; of tables, one that is smooth enough."""
    if not callable(value) or getattr(value, "arity", arity) != arity:
        arguments = "one argument" if arity == 1 else "two arguments"
        raise ModelError(f"{what} has {name}={brief(value)}: expected a kg.Table or a function of {arguments}")
    if getattr(value, "kind", "cubic") not in ("cubic", "natural"):
        raise ModelError(
            f"{what} has a table of the kind {value.kind!r}: contacts need second derivatives, as those of the kinds "
            "'cubic' and 'natural'"
        )
    function: Callable[..., Any] = value
    return function


def implicit(expression: Any, symbols: Any, place: Any, *, frame: Any = None) -> Implicit:
    """The surface on which ``expression`` is zero.

    Parameters
    ----------
    expression
        SymPy expression of three symbols and of parameters, positive outside of the body. Its gradient must not be zero
        on the surface.
    symbols
        The three symbols, coordinates from ``place`` along the axes of ``frame``, m.
    place, frame
        A ``Point`` with the frame of its body, or a ``RigidBody``.
    """
    what = "kg.geometry.implicit"
    names = tuple(symbols)
    if len(names) != 3 or not all(isinstance(name, sympy.Symbol) for name in names):
        raise ModelError(f"{what} has symbols={brief(symbols)}: expected three SymPy symbols")
    if not isinstance(expression, sympy.Expr) or not expression.free_symbols & {*names}:
        raise ModelError(f"{what} has the expression {brief(expression)}: expected one of {', '.join(map(str, names))}")
    return Implicit(seat(place, frame, what, oriented=True), expression, names)
