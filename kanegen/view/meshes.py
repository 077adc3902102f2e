"""Triangle meshes of unit size; a motion moves and stretches them.

Bodies of revolution have the axis z. Alternate quarters are darker, so that one sees a disk or a ball roll.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import add
from typing import Final

import numpy as np

from kanegen.arrays import Array

SEGMENTS: Final = 8
"""Segments of a quarter of a circle."""

DARK: Final = 0.62
"""Brightness of the darker quarters."""


@dataclass(frozen=True, eq=False)
class Triangles:
    """``vertices`` (n, 3), ``shade`` (n, 3) that multiplies the color, ``faces`` (m, 3), and ``edges`` (k, 2).

    The edges are drawn where a browser has no WebGL.
    """

    vertices: Array
    shade: Array
    faces: Array
    edges: Array

    def __add__(self, other: Triangles) -> Triangles:
        n = len(self.vertices)
        return Triangles(
            np.vstack([self.vertices, other.vertices]),
            np.vstack([self.shade, other.shade]),
            np.vstack([self.faces, other.faces + n]),
            np.vstack([self.edges, other.edges + n]),
        )


def _revolved(profile: Sequence[tuple[float, float]], dark: float = DARK, circles: Sequence[int] = ()) -> Triangles:
    """The surface of a profile (r, z) turned about z; ``circles`` are the points of the profile that draw edges."""
    rows, n = len(profile), SEGMENTS + 1
    r, z = np.array(profile, dtype=float).T
    parts = []
    for quarter in range(4):
        angle = np.pi / 2 * (quarter + np.linspace(0.0, 1.0, n))
        x, y = np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle))
        vertices = np.stack([x, y, np.broadcast_to(z[:, None], x.shape)], axis=-1).reshape(-1, 3)
        i, j = np.meshgrid(np.arange(rows - 1), np.arange(n - 1), indexing="ij")
        a = (i * n + j).ravel()
        faces = np.vstack([np.column_stack([a, a + 1, a + n]), np.column_stack([a + 1, a + n + 1, a + n])])
        meridian = np.column_stack([np.arange(rows - 1) * n, np.arange(1, rows) * n])
        rings = [np.column_stack([row * n + np.arange(n - 1), row * n + np.arange(1, n)]) for row in circles]
        shade = np.full(vertices.shape, dark if quarter % 2 else 1.0)
        parts.append(Triangles(vertices, shade, faces, np.vstack([meridian, *rings])))
    return reduce(add, parts)


def _sphere() -> Triangles:
    angle = np.linspace(np.pi, 0.0, 2 * SEGMENTS + 1)
    return _revolved(list(zip(np.sin(angle), np.cos(angle), strict=True)), circles=[SEGMENTS])


def _cylinder() -> Triangles:
    """Radius 1, from z = -1/2 to 1/2."""
    side = _revolved([(1.0, -0.5), (1.0, 0.5)], circles=[0, 1])
    return side + _revolved([(0.0, -0.5), (1.0, -0.5)]) + _revolved([(1.0, 0.5), (0.0, 0.5)])


def _cone() -> Triangles:
    """Radius 1 at z = -1/2, tip at z = 1/2."""
    return _revolved([(1.0, -0.5), (0.0, 0.5)], circles=[0]) + _revolved([(0.0, -0.5), (1.0, -0.5)])


def _bar() -> Triangles:
    """Radius 1, from z = 0 to 1, in one color; for links and the shafts of arrows."""
    side = _revolved([(1.0, 0.0), (1.0, 1.0)], dark=1.0)
    return side + _revolved([(0.0, 0.0), (1.0, 0.0)], dark=1.0) + _revolved([(1.0, 1.0), (0.0, 1.0)], dark=1.0)


def _head() -> Triangles:
    """The head of an arrow: radius 1 at z = 0, tip at z = 1."""
    cone = _revolved([(1.0, 0.0), (0.0, 1.0)], dark=1.0, circles=[0])
    return cone + _revolved([(0.0, 0.0), (1.0, 0.0)], dark=1.0)


def _turn() -> Triangles:
    """The arrow of a torque about z: three quarters of a circle of radius 1 with a head, in one color."""
    angle = np.pi / 2 * np.linspace(0.0, 3.0, 3 * SEGMENTS + 1)
    around = np.linspace(0.0, 2.0 * np.pi, SEGMENTS + 1)
    radius = 1.0 + 0.05 * np.cos(around)
    height = np.broadcast_to(0.05 * np.sin(around), (angle.size, around.size))
    ring = [np.outer(np.cos(angle), radius), np.outer(np.sin(angle), radius), height]
    i, j = np.meshgrid(np.arange(angle.size - 1), np.arange(SEGMENTS), indexing="ij")
    a = (i * around.size + j).ravel()
    b = a + around.size
    faces = np.vstack([np.column_stack([a, b, a + 1]), np.column_stack([a + 1, b, b + 1])])
    vertices = np.stack(ring, axis=-1).reshape(-1, 3)
    middle = np.arange(angle.size) * around.size
    arc = Triangles(vertices, np.ones_like(vertices), faces, np.column_stack([middle[:-1], middle[1:]]))
    head = _head()
    tip = np.stack([head.vertices[:, 2] * 0.5, head.vertices[:, 0] * 0.17 - 1.0, head.vertices[:, 1] * 0.17], axis=-1)
    return arc + Triangles(tip, head.shade, head.faces, head.edges)


def torus(tube: float) -> Triangles:
    """A ring of radius 1 with the radius ``tube`` of its cross section."""
    angle = np.linspace(0.0, 2.0 * np.pi, 2 * SEGMENTS + 1)
    return _revolved(list(zip(1.0 + tube * np.cos(angle), tube * np.sin(angle), strict=True)), circles=[0, SEGMENTS])


def _cuboid() -> Triangles:
    """Edges 1, center at the origin; each face has its own vertices, so that its edges are sharp."""
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) / 2.0
    vertices: list[Array] = []
    shade: list[Array] = []
    faces: list[tuple[int, int, int]] = []
    edges: list[tuple[int, int]] = []
    for axis in range(3):
        for sign in (-1, 1):
            first = 4 * len(faces) // 2
            face = np.insert(corners[::sign], axis, sign / 2.0, axis=1)
            vertices.append(face if axis != 1 else face[::-1])
            faces += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
            edges += [(first + k, first + (k + 1) % 4) for k in range(4)]
            shade.append(np.full((4, 3), (1.0, 0.85, 0.7)[axis]))
    return Triangles(np.vstack(vertices), np.vstack(shade), np.array(faces), np.array(edges))


def _plane() -> Triangles:
    """A square of edges 1 in the plane z = 0, with a pattern of squares."""
    n = 10
    parts = []
    for i in range(n):
        for j in range(n):
            x, y = i / n - 0.5, j / n - 0.5
            corners = np.array([(x, y, 0), (x + 1 / n, y, 0), (x + 1 / n, y + 1 / n, 0), (x, y + 1 / n, 0)])
            shade = np.full((4, 3), 1.0 if (i + j) % 2 else 0.93)
            edges = np.array([(0, 1), (3, 0)])
            parts.append(Triangles(corners, shade, np.array([(0, 1, 2), (0, 2, 3)]), edges))
    return reduce(add, parts)


def _triad() -> Triangles:
    """Three arrows of length 1 along x, y, z in red, green, blue."""
    shaft, head = _bar(), _head()
    arrow = Triangles(shaft.vertices * (0.022, 0.022, 0.8), shaft.shade, shaft.faces, shaft.edges) + Triangles(
        head.vertices * (0.065, 0.065, 0.2) + (0.0, 0.0, 0.8), head.shade, head.faces, head.edges
    )
    parts = []
    for axis, color in enumerate(((0.85, 0.1, 0.1), (0.1, 0.6, 0.15), (0.15, 0.3, 0.9))):
        order = np.roll(np.arange(3), axis + 1)
        vertices = np.empty_like(arrow.vertices)
        vertices[:, order] = arrow.vertices
        parts.append(Triangles(vertices, np.tile(color, (len(vertices), 1)), arrow.faces, arrow.edges))
    return reduce(add, parts)


def custom(vertices: Array, faces: Array) -> Triangles:
    """Triangles of the user."""
    edges = np.unique(np.sort(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1), axis=0)
    return Triangles(vertices, np.ones_like(vertices), faces, edges)


_MESHES: Final[dict[str, Callable[[], Triangles]]] = {
    "sphere": _sphere,
    "cylinder": _cylinder,
    "cone": _cone,
    "cuboid": _cuboid,
    "plane": _plane,
    "bar": _bar,
    "head": _head,
    "turn": _turn,
    "triad": _triad,
}


@cache
def unit(name: str) -> Triangles:
    """One of the meshes that shapes, arrows and frames share."""
    return _MESHES[name]()
