"""Shapes in which an animation draws bodies (docs/animation.md).

Lengths are in m: numbers, or expressions of the parameters of the model. Every shape can be moved and turned in the
frame to which it belongs:

``offset``
    Position of the center of the shape relative to the mass center of the body, or to the point ``at``: three
    components in the frame of the body, m.
``axis``
    Direction of the axis of symmetry in the frame of the body: ``"x"``, ``"y"``, ``"z"`` or three components; the
    other two axes of the shape are then any that are normal to it.
``at``
    The ``Point`` from which the offset counts, if it is not the mass center.
``color``
    ``"#rrggbb"``; None: a color for each body.
``opacity``
    From 0, invisible, to 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import sympy
from sympy.physics.mechanics import Point

from kanegen.errors import ModelError, brief, text_of

AXES: Final = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Shape:
    """What all shapes have in common; not drawn itself."""

    offset: Any = (0.0, 0.0, 0.0)
    axis: Any = "z"
    at: Any = None
    color: str | None = None
    opacity: float = 1.0

    def __post_init__(self) -> None:
        problems = [*self._placement_problems(), *self._size_problems()]
        if problems:
            raise ModelError([f"{type(self).__name__}: {problem}" for problem in problems])

    @property
    def lengths(self) -> tuple[Any, ...]:
        """The sizes of the shape, m, numbers or expressions: all fields that not every shape has."""
        return tuple(getattr(self, field.name) for field in fields(self) if not field.kw_only)

    @property
    def points(self) -> tuple[Any, ...]:
        """The points that the shape names."""
        return () if self.at is None else (self.at,)

    def expressions(self) -> tuple[Any, ...]:
        """All numbers and expressions of the shape."""
        direction = () if isinstance(self.axis, str) else self.axis
        return (*self.lengths, *self.offset, *direction)

    def _placement_problems(self) -> Iterable[str]:
        if not _is_triple(self.offset):
            yield f"offset is {brief(self.offset)}: expected three components in the frame of the body, m"
        if isinstance(self.axis, str) and self.axis not in AXES:
            yield f"axis is {self.axis!r}: expected 'x', 'y', 'z' or three components"
        elif not isinstance(self.axis, str) and not (_is_triple(self.axis) and any(x != 0 for x in self.axis)):
            yield f"axis is {brief(self.axis)}: expected 'x', 'y', 'z' or three components, not all of them zero"
        for point in self.points:
            if not isinstance(point, Point):
                yield f"{brief(point)} is no point: expected a sympy.physics.mechanics Point"
        if self.color is not None and not (isinstance(self.color, str) and re.fullmatch("#[0-9a-fA-F]{6}", self.color)):
            yield f"color is {brief(self.color)}: expected '#rrggbb'"
        if not (_is_number(self.opacity) and 0.0 <= float(self.opacity) <= 1.0):
            yield f"opacity is {brief(self.opacity)}: expected a number from 0 to 1"

    def _size_problems(self) -> Iterable[str]:
        for length in self.lengths:
            if not _is_scalar(length):
                yield f"{brief(length)} is no length: expected a positive number or an expression of parameters, m"
            elif _is_number(length) and not (0.0 < float(length) < math.inf):
                yield f"the length {length} is not positive: expected a positive number, m"


@dataclass(frozen=True, eq=False)
class Sphere(Shape):
    """A sphere."""

    radius: Any


@dataclass(frozen=True, eq=False)
class Ellipsoid(Shape):
    """An ellipsoid with the semi-axes ``x``, ``y``, ``z``, the last one along ``axis``."""

    x: Any
    y: Any
    z: Any


@dataclass(frozen=True, eq=False)
class Cuboid(Shape):
    """A box with the edges ``x``, ``y``, ``z``, the last one along ``axis``."""

    x: Any
    y: Any
    z: Any


@dataclass(frozen=True, eq=False)
class Cylinder(Shape):
    """A cylinder of this ``length`` along ``axis``; a short one is a disk."""

    radius: Any
    length: Any


@dataclass(frozen=True, eq=False)
class Cone(Shape):
    """A cone whose base, half of ``length`` before the center, has this ``radius``; the tip points along ``axis``."""

    radius: Any
    length: Any


@dataclass(frozen=True, eq=False)
class Torus(Shape):
    """A ring about ``axis``: ``radius`` of its center line, and ``tube``, the radius of its cross section."""

    radius: Any
    tube: Any


@dataclass(frozen=True, eq=False)
class Plane(Shape):
    """A square with edges of length ``size`` normal to ``axis``."""

    size: Any


@dataclass(frozen=True, eq=False)
class Link(Shape):
    """A bar from one ``Point`` to another; they can belong to different bodies, as the ends of a spring do.

    ``radius`` None: thin compared with the mechanism. ``offset``, ``axis`` and ``at`` have no effect.
    """

    start: Any
    end: Any
    radius: Any = None

    @property
    def lengths(self) -> tuple[Any, ...]:
        return () if self.radius is None else (self.radius,)

    @property
    def points(self) -> tuple[Any, ...]:
        return (*super().points, self.start, self.end)


@dataclass(frozen=True, eq=False)
class Mesh(Shape):
    """Triangles: ``vertices`` (n, 3) in m, in the axes of the shape, and ``faces`` (m, 3), indices of vertices."""

    vertices: Any
    faces: Any

    @property
    def lengths(self) -> tuple[Any, ...]:
        return ()

    def _size_problems(self) -> Iterable[str]:
        if not _is_table(self.vertices, float):
            yield "vertices: expected finite numbers (n, 3), m"
        elif not (_is_table(self.faces, int) and all(0 <= k < len(self.vertices) for row in self.faces for k in row)):
            yield f"faces: expected indices (m, 3) from 0 to {len(self.vertices) - 1}"


def _is_table(rows: Any, kind: type) -> bool:
    """Whether ``rows`` are rows of three numbers, at least one."""
    try:
        return len(rows) > 0 and all(
            len(row) == 3 and all(kind(x) == x and math.isfinite(x) for x in row) for row in rows
        )
    except (TypeError, ValueError, OverflowError):
        return False


def _is_scalar(value: Any) -> bool:
    return isinstance(value, sympy.Expr) or _is_number(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bool):
        return False
    if isinstance(value, sympy.Expr):
        return bool(value.is_number and value.is_real)
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_triple(value: Any) -> bool:
    is_sequence = isinstance(value, Sequence) or hasattr(value, "__array__") or isinstance(value, sympy.MatrixBase)
    if isinstance(value, str) or not is_sequence:
        return False
    try:
        return len(value) == 3 and all(_is_scalar(x) for x in value)
    except TypeError:  # of arrays without dimensions
        return False


def normalized_shapes(value: Any, what: str, problems: list[str]) -> dict[Any, tuple[Shape, ...]]:
    """The shapes of each body, frame or point, from a mapping to a shape, to several, or to None for no shape."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.append(
            f"{what} is {brief(value)}: expected a mapping from a body to its shape, a kg.shapes.Sphere ..."
        )
        return {}
    shapes: dict[Any, tuple[Shape, ...]] = {}
    for key, given in value.items():
        items = () if given is None else tuple(given) if isinstance(given, list | tuple) else (given,)
        shapes[key] = tuple(item for item in items if _is_shape(item))
        where = entry(what, key)
        wrong = (item for item in items if not _is_shape(item))
        problems += [f"{where} contains {brief(item)}: expected a shape of kg.shapes" for item in wrong]
    return shapes


def entry(what: str, key: Any) -> str:
    """The place of the shapes of a body, frame or point in the messages."""
    return f"{what}[{key!r}]" if isinstance(key, str) else f"{what}[{text_of(getattr(key, 'name', key))}]"


def _is_shape(item: Any) -> bool:
    return isinstance(item, Shape) and type(item) is not Shape
