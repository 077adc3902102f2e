"""The frames and points that a model uses, and the coordinates that are Euler parameters.

SymPy stores frames and points in two graphs of neighbors, which can contain objects that a model does not use: the end
of the last link, a spare frame, a second model with the same origin. The graphs are searched with SymPy's rules:

* The orientation and the angular velocity of a frame follow from the shortest chain of neighbors that connects it with
  the inertial frame.
* The velocity of a point is the one that the user set, or follows from the nearest point, along positions, whose
  velocity is set.

If a velocity is set, the position of the point from a point at rest is read as well, if it is known. If both give the
same velocity, the derivation uses the position, because this gives shorter code.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kanegen.model.expressions import atoms, vector_expressions, vector_frames
from kanegen.model.records import FrozenMapping

Pair = tuple[Any, Any]


def breadth_first(root: Any, neighbors: Callable[[Any], Iterable[Any]]) -> dict[Any, Any]:
    """The parent of every node that can be reached from ``root`` (whose parent is None), nearest first."""
    parents: dict[Any, Any] = {root: None}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for neighbor in neighbors(node):
            if neighbor not in parents:
                parents[neighbor] = node
                queue.append(neighbor)
    return parents


def path(parents: Mapping[Any, Any], node: Any) -> list[Pair]:
    """``(parent, child)`` pairs from the root of ``parents`` to ``node``."""
    pairs = []
    while parents[node] is not None:
        pairs.append((parents[node], node))
        node = parents[node]
    return pairs[::-1]


def position_path(start: Any, end: Any) -> list[Any] | None:
    """Points from ``start`` to ``end`` along known positions, or None."""
    parents = breadth_first(start, lambda node: node._pos_dict)
    return [start, *(child for _, child in path(parents, end))] if end in parents else None


def velocity_source(point: Any, frame: Any) -> list[Any] | None:
    """Points from the nearest one with a velocity set in ``frame`` to ``point``, both included, or None."""
    parents = breadth_first(point, lambda node: () if frame in node._vel_dict else node._pos_dict)
    source = next((node for node in parents if frame in node._vel_dict), None)
    return None if source is None else [*(child for _, child in reversed(path(parents, source))), point]


def is_ground(body: Any, frame: Any) -> bool:
    """Whether a body is fixed in the inertial ``frame``, so that its mass is not needed."""
    return getattr(body, "frame", frame) is frame and body.masscenter._vel_dict.get(frame) == 0


@dataclass(frozen=True)
class Route:
    """The chain of points from which the motion of a point follows.

    ``along`` contains the points from one with a set velocity, at rest if possible, to the ``source``, the nearest
    point with a set velocity. ``beyond`` contains the points from the source to the point itself. Both include ends.
    """

    along: tuple[Any, ...]
    beyond: tuple[Any, ...]

    @property
    def source(self) -> Any:
        return self.along[-1]

    @property
    def points(self) -> tuple[Any, ...]:
        """All points, each followed by one that is positioned from it."""
        return (*self.along, *self.beyond[1:])


class Routes:
    """The routes of points in one inertial frame.

    ``is_known`` returns whether the rates of a symbol are known. A position that contains other symbols is not used to
    check or replace a velocity that is set.
    """

    def __init__(self, frame: Any, oriented: dict[Any, Any], is_known: Callable[[Any], bool]) -> None:
        self._frame, self._oriented, self._is_known = frame, oriented, is_known
        self._trees: dict[Any, dict[Any, Any]] = {}

    def route(self, point: Any) -> Route | None:
        """The route of ``point``; None if no point with a known velocity is connected with it."""
        beyond = velocity_source(point, self._frame)
        if beyond is None:
            return None
        tree = self._tree(beyond[0])
        root = next(iter(tree))
        return Route((root, *(child for _, child in path(tree, beyond[0]))), tuple(beyond))

    def _tree(self, point: Any) -> dict[Any, Any]:
        """The tree of positions around a point with a set velocity; its root is at rest if possible."""
        if point not in self._trees:
            connected = breadth_first(point, self._followed)
            given = [node for node in connected if self._frame in node._vel_dict]
            at_rest = (node for node in given if node._vel_dict[self._frame] == 0)
            tree = breadth_first(next(at_rest, given[0]), self._followed)
            self._trees.update(dict.fromkeys(tree, tree))
        return self._trees[point]

    def _followed(self, point: Any) -> list[Any]:
        return [other for other, position in point._pos_dict.items() if self._can_follow(position)]

    def _can_follow(self, position: Any) -> bool:
        known = map(self._is_known, atoms(vector_expressions(position)))
        return all(frame in self._oriented for frame in vector_frames(position)) and all(known)


@dataclass(frozen=True)
class Geometry:
    """The SymPy frames and points that a model uses.

    ``parents`` and ``rate_parents`` map each frame to the next one towards the inertial frame, along orientations and
    along angular velocities. ``routes`` contains the route of every point whose velocity is needed. ``orientations``
    and ``rates`` are pairs (parent, child) of frames, ``positions`` pairs (point, point it is positioned from),
    ``velocities`` the points whose set velocity is used.
    """

    parents: Mapping[Any, Any] = field(default_factory=FrozenMapping)
    rate_parents: Mapping[Any, Any] = field(default_factory=FrozenMapping)
    routes: Mapping[Any, Route] = field(default_factory=FrozenMapping)
    orientations: tuple[Pair, ...] = ()
    rates: tuple[Pair, ...] = ()
    positions: tuple[Pair, ...] = ()
    velocities: tuple[Any, ...] = ()


def connected_symbols(geometry: Geometry) -> frozenset[Any]:
    """The symbols of all frames and points that are connected with those of a model, whether or not it needs them."""
    frames, points = {*geometry.parents, *geometry.rate_parents}, dict[Any, Any]()
    for start in (*geometry.routes, *(point for pair in geometry.positions for point in pair)):
        if start not in points:
            points.update(breadth_first(start, lambda node: node._pos_dict))
    vectors = [vector for point in points for vector in (*point._pos_dict.values(), *point._vel_dict.values())]
    vectors += [vector for frame in frames for vector in frame._ang_vel_dict.values()]
    components = [expr for vector in vectors if vector != 0 for expr in vector_expressions(vector)]
    cosines = [expr for frame in frames for matrix in frame._dcm_dict.values() for expr in matrix]
    return atoms((*components, *cosines))


def steps(points: Sequence[Any]) -> list[Pair]:
    """Pairs ``(point, point it is positioned from)`` along a chain of points."""
    return [(point, other) for other, point in pairwise(points)]


_EQUAL: Final = 1e-10
"""Tolerance of direction cosines: they are at most 1 and come from a few operations in double precision."""

_NORMS: Final = (1.0, 1.0, 1.5)
"""Norms of the test points: two on the unit sphere, one off it. A coincidence at all three has probability zero."""


def euler_parameter_groups(
    coordinates: Sequence[Any], matrices: Iterable[Iterable[Any]]
) -> tuple[tuple[Any, Any, Any, Any], ...]:
    """The groups of four ``coordinates`` that these direction-cosine matrices use as Euler parameters, each once.

    Euler parameters are the components of a unit quaternion: a matrix written in them is a rotation only if the sum of
    their squares is one. This property identifies them, whether ``ReferenceFrame.orient_quaternion`` or the user wrote
    the matrix, and for any order and signs. A matrix that is divided by the sum of the squares is always a rotation; it
    needs no norm constraint, so its parameters are not returned. ``matrices`` have nine entries each. The members of a
    group are in the order of the coordinates, because the norm does not depend on which one is the scalar part.
    """
    groups: dict[tuple[Any, ...], None] = {}
    for matrix in matrices:
        entries = tuple(matrix)
        if len(coordinates) < 4 or any(entry.is_Number for entry in entries):
            continue  # a rotation about an axis of the frame
        symbols = atoms(entries)
        group = tuple(q for q in coordinates if q in symbols)
        if len(group) == 4 and group not in groups and _needs_unit_norm(entries, group, symbols):
            groups[group] = None
    return tuple(groups)


def _needs_unit_norm(entries: Sequence[Any], group: Sequence[Any], symbols: Iterable[Any]) -> bool:
    """Whether the matrix is a rotation if and only if the sum of the squares of the group is one."""
    generator = random.Random(1843)
    others = sorted(set(symbols) - set(group), key=str)
    for norm in _NORMS:
        direction = np.array([generator.choice((-1.0, 1.0)) * generator.uniform(0.2, 1.1) for _ in group])
        values = {symbol: generator.uniform(0.2, 1.1) for symbol in others}
        values.update(zip(group, (norm * direction / np.linalg.norm(direction)).tolist(), strict=True))
        if _is_rotation(entries, values) != (norm == 1.0):
            return False
    return True


def _is_rotation(entries: Sequence[Any], values: Mapping[Any, float]) -> bool:
    """Whether the rows are orthonormal at these values; False if they cannot be evaluated."""
    try:
        matrix = np.array([float(entry.xreplace(values)) for entry in entries]).reshape(3, 3)
    except (TypeError, ValueError):
        return False
    return bool(np.abs(matrix @ matrix.T - np.eye(3)).max() <= _EQUAL)
