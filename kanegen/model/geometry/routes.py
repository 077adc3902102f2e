"""The frames and points that a model reaches: one walk, which the checks and the derivation share.

SymPy keeps frames and points in two graphs of neighbors, which may hold much that a model never uses: the end of the
last link, a spare frame, a second model on the same origin. The rules of the walk are those of SymPy:

* A frame is oriented, and turns, by the shortest chain of neighbors that leads to it from the inertial frame.
* A point moves with the velocity the user set; without one, its velocity follows from the nearest point along
  positions that has one.

A point whose velocity is set is also followed along positions from a point at rest, where these are known: when both
give the same velocity, the derivation takes the positions, which make shorter code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kanegen.model.expressions import atoms, vector_expressions, vector_frames
from kanegen.model.records import FrozenMapping

Pair = tuple[Any, Any]


def breadth_first(root: Any, neighbors: Callable[[Any], Iterable[Any]]) -> dict[Any, Any]:
    """Parent of every node that can be reached from ``root`` (whose parent is None), nearest first."""
    parents: dict[Any, Any] = {root: None}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for neighbor in neighbors(node):
            if neighbor not in parents:
                parents[neighbor] = node
                queue.append(neighbor)
    return parents


def orientation_tree(frame: Any) -> dict[Any, Any]:
    """Parents of the frames that are oriented relative to ``frame``."""
    return breadth_first(frame, lambda node: node._dcm_dict)


def motion_tree(frame: Any) -> dict[Any, Any]:
    """Parents of the frames whose angular velocity relative to ``frame`` is known."""
    return breadth_first(frame, lambda node: node._ang_vel_dict)


def path(parents: Mapping[Any, Any], node: Any) -> list[Pair]:
    """``(parent, child)`` pairs from the root of ``parents`` to ``node``."""
    pairs = []
    while parents[node] is not None:
        pairs.append((parents[node], node))
        node = parents[node]
    return pairs[::-1]


def position_path(start: Any, end: Any) -> list[Any] | None:
    """Points from ``start`` to ``end`` along known positions; None when there is no such chain."""
    parents = breadth_first(start, lambda node: node._pos_dict)
    return [start, *(child for _, child in path(parents, end))] if end in parents else None


def velocity_source(point: Any, frame: Any) -> list[Any] | None:
    """Points from the nearest one with a velocity set in ``frame`` to ``point``, both included, or None."""
    parents = breadth_first(point, lambda node: () if frame in node._vel_dict else node._pos_dict)
    source = next((node for node in parents if frame in node._vel_dict), None)
    return None if source is None else [*(child for _, child in reversed(path(parents, source))), point]


def is_ground(body: Any, frame: Any) -> bool:
    """Whether a body is fixed in the inertial ``frame``: it can do nothing, so that its mass is never needed."""
    return getattr(body, "frame", frame) is frame and body.masscenter._vel_dict.get(frame) == 0


@dataclass(frozen=True)
class Route:
    """How the motion of a point is found.

    ``along``: points from one with a set velocity, at rest if possible, to the ``source``, the nearest point with a
    set velocity. ``beyond``: points from the source to the point itself. Both include their ends.
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

    ``is_known`` says whether the motion of a symbol is known. Positions with other symbols are not followed where
    they would only confirm a velocity that is set.
    """

    def __init__(self, frame: Any, oriented: dict[Any, Any], is_known: Callable[[Any], bool]) -> None:
        self._frame = frame
        self._oriented = oriented
        self._is_known = is_known
        self._trees: dict[Any, dict[Any, Any]] = {}

    def route(self, point: Any) -> Route | None:
        """The route of ``point``; None when no point with a known velocity is connected with it."""
        beyond = velocity_source(point, self._frame)
        if beyond is None:
            return None
        tree = self._tree(beyond[0])
        root = next(iter(tree))
        return Route((root, *(child for _, child in path(tree, beyond[0]))), tuple(beyond))

    def _tree(self, point: Any) -> dict[Any, Any]:
        """The tree of positions that holds a point with a set velocity, from the point whose velocity is simplest."""
        if point not in self._trees:
            connected = breadth_first(point, self._followed)
            given = [node for node in connected if self._frame in node._vel_dict]
            at_rest = (node for node in given if node._vel_dict[self._frame] == 0)
            tree = breadth_first(next(at_rest, given[0]), self._followed)
            self._trees.update(dict.fromkeys(tree, tree))
        return self._trees[point]

    def _followed(self, point: Any) -> list[Any]:
        return [
            other
            for other, position in point._pos_dict.items()
            if all(frame in self._oriented for frame in vector_frames(position))
            and all(map(self._is_known, atoms(vector_expressions(position))))
        ]


@dataclass(frozen=True)
class Geometry:
    """What a model reads of SymPy's frames and points.

    ``parents`` and ``rate_parents`` lead from each frame towards the inertial one, by orientations and by angular
    velocities. ``routes`` has the route of every point whose velocity is needed. ``orientations`` and ``rates`` are
    pairs (parent, child) of frames, ``positions`` pairs (point, point it is positioned from), ``velocities`` the
    points whose set velocity is read.
    """

    parents: Mapping[Any, Any] = field(default_factory=FrozenMapping)
    rate_parents: Mapping[Any, Any] = field(default_factory=FrozenMapping)
    routes: Mapping[Any, Route] = field(default_factory=FrozenMapping)
    orientations: tuple[Pair, ...] = ()
    rates: tuple[Pair, ...] = ()
    positions: tuple[Pair, ...] = ()
    velocities: tuple[Any, ...] = ()


def connected_symbols(geometry: Geometry) -> frozenset[Any]:
    """The symbols of all frames and points that are connected with those of a model, needed or not."""
    frames = {*geometry.parents, *geometry.rate_parents}
    points: dict[Any, Any] = {}
    for start in (*geometry.routes, *(point for pair in geometry.positions for point in pair)):
        if start not in points:
            points.update(breadth_first(start, lambda node: node._pos_dict))
    vectors = [
        *(vector for point in points for vector in (*point._pos_dict.values(), *point._vel_dict.values())),
        *(vector for frame in frames for vector in frame._ang_vel_dict.values()),
    ]
    expressions = [expr for vector in vectors if vector != 0 for expr in vector_expressions(vector)]
    cosines = [expr for frame in frames for matrix in frame._dcm_dict.values() for expr in matrix]
    return atoms((*expressions, *cosines))


def steps(points: Sequence[Any]) -> list[Pair]:
    """``(point, the one it is positioned from)`` along a chain of points."""
    return [(point, other) for other, point in pairwise(points)]
