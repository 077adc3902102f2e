"""From where a scene is looked at: along the normal of a plane motion, or obliquely, with gravity downwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kanegen.arrays import Array

PLANAR: Final = 0.02
"""A motion is plane, or along a line, if it leaves the plane or line by less than this fraction of the mechanism."""

THICK: Final = 0.3
"""Bodies of a plane motion that are thicker than this fraction of their extent would hide each other."""

ALIGNED: Final = 0.05
"""A normal that is closer to an inertial axis (rad) is taken to be this axis."""


@dataclass(frozen=True, eq=False)
class View:
    """Unit vectors: upwards, from the scene to the camera, and from the scene to the camera of the front view."""

    up: Array
    look: Array
    front: Array


def view_of(moved: Array, points: Array, bodies: Array, size: float, weight: Array | None) -> View:
    """The view of a scene.

    ``moved`` (n, 3) are displacements of points of the bodies since the start, ``points`` (m, 3) positions of mass
    centers and joints, ``bodies`` (k, 3) points of all bodies at all times, from their center if the camera follows it,
    and ``size`` is the size of the mechanism. ``weight`` has the direction of gravity, None if it is not known.
    """
    up = None if weight is None or not weight.any() else -weight / np.linalg.norm(weight)
    normal = _normal(moved, points, size, np.eye(3)[2] if up is None else up)
    if normal is None or _thick(bodies, normal):
        return _oblique(np.eye(3)[2] if up is None else up)
    if up is None or abs(up @ normal) > np.cos(ALIGNED):  # as on a table
        above = _signed(normal) if up is None else up
        return View(above, above, np.cross(_first_axis(above), above))
    flat = normal - (normal @ up) * up
    flat /= np.linalg.norm(flat)
    if abs(up @ normal) > ALIGNED:  # a slope, seen from above
        side = np.sign(up @ normal)
        return View(up, side * normal, side * flat)
    right = np.cross(up, flat)
    flat = flat * np.sign(right[np.abs(right) > ALIGNED][0])  # the first inertial axis points to the right
    return View(up, flat, flat)


def _normal(moved: Array, points: Array, size: float, up: Array) -> Array | None:
    """The normal of the plane of the motion; of one that contains ``up`` for motions along a line; None in space."""
    lengths, axes = _principal(moved)
    if not lengths[0] > 0.0:  # at rest
        moved = points - points[:1]
        lengths, axes = _principal(moved)
    limit = PLANAR * min(size, float(lengths[0]))
    if not limit > 0.0 or lengths[2] > limit:
        return None
    if lengths[1] > limit:
        return _aligned(axes[2])
    line = _aligned(axes[0])
    if np.linalg.norm(np.cross(line, up)) > ALIGNED:
        return _aligned(np.cross(line, up))
    aside = points - points[:1]
    lengths, axes = _principal(aside - np.outer(aside @ line, line))
    if lengths[1] > limit:
        return None
    return _aligned(np.cross(line, axes[0] if lengths[0] > 0.0 else _first_axis(line)))


def _principal(vectors: Array) -> tuple[Array, Array]:
    """The largest components along the principal axes of vectors (n, 3), in falling order, and the axes as rows."""
    if not len(vectors):
        return np.zeros(3), np.eye(3)
    scale = np.abs(vectors).max() or 1.0
    axes = np.linalg.eigh((vectors / scale).T @ (vectors / scale))[1].T
    lengths = np.abs(vectors @ axes.T).max(axis=0)
    order = np.argsort(-lengths, kind="stable")
    return lengths[order], axes[order]


def _thick(bodies: Array, normal: Array) -> bool:
    """Whether the bodies extend along the normal by more than a part of their extent in the plane."""
    plane = bodies - np.outer(bodies @ normal, normal)
    return bool(np.ptp(bodies @ normal) > THICK * np.ptp(plane, axis=0).max())


def _aligned(vector: Array) -> Array:
    """A unit vector, that of an inertial axis if it is nearly one."""
    vector = vector / np.linalg.norm(vector)
    axis = int(np.argmax(np.abs(vector)))
    return np.eye(3)[axis] if abs(vector[axis]) > np.cos(ALIGNED) else vector


def _signed(normal: Array) -> Array:
    """The direction of a normal from which the first inertial axis points to the right and the next one upwards."""
    axis = int(np.argmax(np.abs(normal)))
    return np.asarray(normal * np.sign(normal[axis]) * (-1.0 if axis == 1 else 1.0))


def _first_axis(normal: Array) -> Array:
    """The first inertial axis that is not along a normal, projected on its plane."""
    axis = np.eye(3)[0 if abs(normal[0]) < 0.9 else 1]
    flat = axis - (axis @ normal) * normal
    return np.asarray(flat / np.linalg.norm(flat))


def _oblique(up: Array) -> View:
    side = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
    side /= np.linalg.norm(side)
    look = 0.45 * up - 0.55 * side - 0.8 * np.cross(up, side)
    return View(up, look / np.linalg.norm(look), np.cross(_first_axis(up), up))
