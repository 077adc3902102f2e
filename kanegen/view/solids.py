"""Shapes as meshes with a place: shapes of the user, and shapes from the inertia of a rigid body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import sympy

from kanegen import shapes
from kanegen.arrays import Array
from kanegen.model.expressions import known_value
from kanegen.view.meshes import Triangles, custom, torus, unit
from kanegen.view.rotations import from_axis

ALIKE: Final = 0.02
"""Relative difference below which moments of inertia count as equal when a shape is guessed."""

FLAT: Final = 0.06
"""Smallest thickness of a guessed body relative to its largest dimension, so that it can be seen from the side."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A mesh that moves with ``point`` and turns with ``frame``: ``local`` (4, 4) maps its vertices to the frame."""

    mesh: Triangles
    local: Array
    point: Any
    frame: Any
    color: str | None = None
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Bar:
    """A bar between two points; ``radius`` in m, None: thin."""

    start: Any
    end: Any
    radius: float | None = None
    color: str | None = None
    opacity: float = 1.0


def placed(scale: Any, rotation: Array | None = None, offset: Any = (0.0, 0.0, 0.0)) -> Array:
    """The matrix (4, 4) that scales, rotates and moves."""
    local = np.eye(4)
    local[:3, :3] = (np.eye(3) if rotation is None else rotation) * np.asarray(scale, dtype=float)
    local[:3, 3] = offset
    return local


def drawn(shape: shapes.Shape, point: Any, frame: Any, values: Mapping[Any, float]) -> Solid | Bar:
    """A shape of the user with numbers for the parameters, at a ``point`` and in the axes of a ``frame``."""

    def number(expression: Any) -> float:
        value = known_value(sympy.sympify(expression), values)
        assert value is not None  # the model has checked the symbols
        return value

    if isinstance(shape, shapes.Link):
        radius = None if shape.radius is None else number(shape.radius)
        return Bar(shape.start, shape.end, radius, shape.color, shape.opacity)
    mesh, scale = _sized(shape, number)
    axis = shapes.AXES[shape.axis] if isinstance(shape.axis, str) else shape.axis
    offset = [number(x) for x in shape.offset]
    local = placed(scale, from_axis(np.array([number(x) for x in axis])), offset)
    return Solid(mesh, local, point if shape.at is None else shape.at, frame, shape.color, shape.opacity)


def _sized(shape: shapes.Shape, number: Callable[[Any], float]) -> tuple[Triangles, Any]:
    """The unit mesh of a shape and its scale along three axes."""
    lengths = [number(length) for length in shape.lengths]
    match shape:
        case shapes.Sphere():
            return unit("sphere"), lengths * 3
        case shapes.Ellipsoid():
            return unit("sphere"), lengths
        case shapes.Cuboid():
            return unit("cuboid"), lengths
        case shapes.Cylinder() | shapes.Cone():
            name = "cone" if isinstance(shape, shapes.Cone) else "cylinder"
            return unit(name), (lengths[0], lengths[0], lengths[1])
        case shapes.Torus():
            return torus(lengths[1] / lengths[0]), lengths[:1] * 3
        case shapes.Plane():
            return unit("plane"), (lengths[0], lengths[0], 1.0)
        case shapes.Mesh():
            return custom(np.array(shape.vertices, dtype=float), np.array(shape.faces, dtype=int)), (1.0, 1.0, 1.0)
    raise TypeError(f"no mesh for a {type(shape).__name__}")


def same_inertia(mass: float, inertia: Array) -> tuple[str, Array] | None:
    """The homogeneous body with this mass and central inertia (3, 3): name of its mesh and the matrix (3, 3) of scales.

    A thin rod or disk where the principal moments are those of one, or else an ellipsoid. The semi-axes of the
    ellipsoid follow from ``I_1 = m (b^2 + c^2) / 5``. None without mass or inertia.
    """
    moments, axes = np.linalg.eigh((inertia + inertia.T) / 2)
    if not (mass > 0.0 and moments[2] > 0.0):
        return None
    axes *= np.sign(np.linalg.det(axes))
    small, middle, large = np.clip(moments, 0.0, None)
    if large - middle <= ALIKE * large and small <= ALIKE * large:  # a rod along the first axis
        length = np.sqrt(12.0 * large / mass)
        return "cylinder", np.roll(axes, -1, axis=1) * np.array([FLAT / 2, FLAT / 2, 1.0]) * length
    # Of a plane problem the user may know the moment about the normal only.
    if middle - small <= ALIKE * large and (abs(small + middle - large) <= ALIKE * large or middle <= ALIKE * large):
        radius = np.sqrt(2.0 * large / mass)
        return "cylinder", axes * np.array([1.0, 1.0, FLAT]) * radius
    squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
    semi = np.sqrt(np.clip(squares, (FLAT / 2) ** 2 * squares.max(), None))
    return "sphere", axes * semi
