"""Positions of points and orientations of frames along a motion.

Where the model knows only a velocity or an angular velocity, it is integrated along the motion, between the steps of
the integration with two Gauss points (order 4), which lie inside the intervals, so that jumps of the speeds do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
from sympy.physics.vector import ReferenceFrame

from kanegen.arrays import Array
from kanegen.derivation import lower_model
from kanegen.errors import DerivationError
from kanegen.graph import Node, evaluate
from kanegen.graph.domains import requirements
from kanegen.graph.interpret import numpy_context
from kanegen.model.geometry import Route, breadth_first, path, position_path
from kanegen.view.motion import Motion, Rows
from kanegen.view.rotations import gauss_points, integrated, rotated

CHUNK: Final = 20_000
"""Rows that are evaluated at once; more would take memory for every node of the graph."""

SAME_PATH: Final = 1e-3
"""A position that is written in the coordinates is used if it moves as the integral of the velocity does, within this
fraction of the path: an integration with the default tolerances is far better, other motions differ much more."""


def _held(function: Any, arguments: Sequence[Any]) -> Any:
    """The value of a function of the user or of a table; beyond the ends of a table, that at the end."""
    inside = (
        x if domain is None else np.clip(x, domain.lowest, domain.highest)
        for domain, x in zip(function.domains, arguments, strict=True)
    )
    return function.extended(*inside)


_HELD: Final = replace(numpy_context(), call=_held)


class NotKnownError(Exception):
    """The position of a point or the orientation of a frame is not known; the message says why."""


class Poses:
    """Positions (n, 3) of points in the inertial frame and rotation matrices (n, 3, 3) of frames, at times (n,).

    ``notices`` collects what had to be assumed, in sentences for the user.
    """

    def __init__(self, motion: Motion) -> None:
        self.motion, self.model = motion, motion.model
        self.notices: dict[str, None] = {}
        self._system = lower_model(motion.model)
        self._frames = self._system.frames
        self._tables: dict[int, tuple[Array, Any]] = {}
        self._fixed: dict[Any, Array] = {}
        self._turns: dict[Any, Array] = {}  # at the times of the pictures
        self._steps: dict[tuple[Any, Any], Array] = {}
        roots = [route.along[0] for route in self.model.geometry.routes.values()]
        self._origin = next(filter(self._is_fixed, roots), next(iter(roots), None))

    # -- evaluation -----------------------------------------------------------------------------------------

    def values(self, nodes: Sequence[Node], times: Array) -> Array:
        """Values (n, k) of nodes of the graph at ``times`` (n,)."""
        parts = []
        for start in range(0, times.size, CHUNK):
            chunk = times[start : start + CHUNK]
            rows = self._picture_rows if times is self.motion.times else self.motion.rows(chunk)
            columns = evaluate(nodes, rows, _HELD)
            self._mention_ends(nodes, rows)
            parts.append(np.stack([np.broadcast_to(column, chunk.shape) for column in columns], axis=-1))
        return np.concatenate(parts).astype(np.float64)

    def _mention_ends(self, nodes: Sequence[Node], rows: Rows) -> None:
        """Add a notice for each table that the nodes need beyond its ends."""
        for need in requirements(nodes):
            if not np.all(evaluate([need.condition], rows, _HELD)[0]):
                domain = need.domain
                self.notices[
                    f"{domain.label} has values from {domain.lowest:.9g} to {domain.highest:.9g} only: beyond them, "
                    "what depends on it is drawn with its value at the end"
                ] = None

    @cached_property
    def _picture_rows(self) -> Rows:
        """The values of the input arrays at the times of the pictures, at which most is evaluated."""
        return self.motion.rows(self.motion.times)

    def expressions(self, expressions: Iterable[Any], times: Array) -> Array:
        """Values (n, k) of SymPy expressions. Raises :class:`NotKnownError` for symbols that are not of the model."""
        try:
            return self.values([self._system.lower(expression) for expression in expressions], times)
        except DerivationError as error:
            raise NotKnownError(str(error)) from error

    def vector(self, vector: Any, times: Array) -> Array:
        """Inertial components (n, 3) of a SymPy vector, the number 0 for the null vector."""
        total = np.zeros((times.size, 3))
        for components, frame in vector.args if vector != 0 else ():
            own = self.expressions(components, times)
            total += np.einsum("nij,nj->ni", self.orientation(frame, times), own)
        return total

    # -- frames ---------------------------------------------------------------------------------------------

    def orientation(self, frame: Any, times: Array) -> Array:
        """Rotation matrices (n, 3, 3): inertial components = R components in ``frame``."""
        if frame is self.model.frame:
            return np.broadcast_to(np.eye(3), (times.size, 3, 3))
        if times is not self.motion.times:
            return self._orientation(frame, times)
        if frame not in self._turns:
            self._turns[frame] = self._orientation(frame, times)
        return self._turns[frame]

    def _orientation(self, frame: Any, times: Array) -> Array:
        if not self._frames.is_oriented(frame):
            return self._known_at(frame, times, lambda nodes: self._turned(frame, nodes), fine=True)
        parent = self.orientation(self._frames.parent(frame), times)
        entries = [x for row in self._rotation(frame) for x in row]
        return parent @ self.values(entries, times).reshape(-1, 3, 3).transpose(0, 2, 1)

    def _rotation(self, frame: Any) -> Any:
        try:
            return self._frames.rotation(frame)
        except DerivationError as error:
            raise NotKnownError(str(error)) from error

    def _turned(self, frame: Any, nodes: Array) -> Array:
        """The orientation of a frame of which only the angular velocity is known, from that of its base at first."""
        self.notices[
            f"the orientation of frame {frame} is not known: it is integrated from its angular velocity, and starts "
            "with that of the frame relative to which the angular velocity is given"
        ] = None
        points = gauss_points(nodes)
        inertial, own = np.zeros((2, points.size, 3))
        rates = self.model.geometry.rate_parents
        if frame not in rates:
            raise NotKnownError(f"frame {frame} has neither an orientation nor an angular velocity")
        for parent, child in path(rates, frame):
            vector = child._ang_vel_dict[parent]
            for components, written_in in vector.args if vector != 0 else ():
                values = self.expressions(components, points.ravel())
                if written_in is frame:
                    own += values
                elif self._frames.is_oriented(written_in):
                    R = self.orientation(written_in, points.ravel())
                    inertial += np.einsum("nij,nj->ni", R, values)
                else:
                    raise NotKnownError(
                        f"the angular velocity of frame {frame} is written in {written_in}, whose orientation is not "
                        "known"
                    )
        # R' = w1~ R + R w2~ has the solution R = U R0 V with U' = w1~ U and V' = V w2~.
        U, V = (
            rotated(nodes, rate.reshape(-1, 2, 3), is_inertial)
            for rate, is_inertial in ((inertial, True), (own, False))
        )
        base = rates[frame]
        start = self.orientation(base, nodes[:1]) if self._frames.is_oriented(base) else np.eye(3)[None]
        return U @ start @ V

    # -- points ---------------------------------------------------------------------------------------------

    def position(self, point: Any, times: Array) -> Array:
        """Inertial components (n, 3) of the vector from the origin to ``point``, m. Raises :class:`NotKnownError`."""
        routes = self.model.geometry.routes
        carrier = self._carrier(point)
        if carrier is not None:
            return self._source_position(carrier, times) + self._along(carrier.along[::-1], times)
        near = breadth_first(point, lambda node: node._pos_dict)
        known = [node for node in near if node in routes]  # nearest first
        if not known:
            fixed = [node for node in near if self._is_fixed(node)]
            if not fixed:
                raise NotKnownError(f"no position connects point {point} with a point of the model: use set_pos")
            return self._rest(fixed[0], times) + self._along(position_path(fixed[0], point) or [], times)
        chain = [known[0]]
        while near[chain[-1]] is not None:
            chain.append(near[chain[-1]])
        return self._routed(known[0], times) + self._along(chain, times)

    def _along(self, points: Sequence[Any], times: Array) -> Array:
        """The vector from the first point of a chain to its last one, (n, 3)."""
        total = np.zeros((times.size, 3))
        for before, after in pairwise(points):
            if times is not self.motion.times:
                total += self.vector(after._pos_dict[before], times)
                continue
            if (before, after) not in self._steps:
                self._steps[before, after] = self.vector(after._pos_dict[before], times)
            total += self._steps[before, after]
        return total

    def _routed(self, point: Any, times: Array) -> Array:
        """The position of a point of the model, along its route."""
        route = self.model.geometry.routes[point]
        return self._source_position(route, times) + self._along(route.beyond, times)

    def at_rest(self, place: Any) -> bool:
        """Whether a point or a frame is that of the ground, on which forces do nothing."""
        if isinstance(place, ReferenceFrame):
            return place is self.model.frame
        return self._is_fixed(place) and self._carrier(place) is None

    def _is_fixed(self, point: Any) -> bool:
        return bool(point._vel_dict.get(self.model.frame, None) == 0)

    def _carrier(self, point: Any) -> Route | None:
        """The route of a moving point from which the position of ``point`` counts though its velocity is zero.

        The contact point of a rolling disk is an example: the material point is at rest, and the contact moves on.
        """
        if not self._is_fixed(point):
            return None
        routes = (route for route in self.model.geometry.routes.values() if route.along[0] is point)
        return next((x for x in routes if x.source is not point and self._confirmed(x) is None), None)

    def _rest(self, point: Any, times: Array) -> Array:
        """The position of a point at rest: that from the origin, if it is known."""
        if point not in self._fixed:
            chain = position_path(self._origin, point) if self._origin is not None else None
            try:
                self._fixed[point] = self._along(chain or [], times[:1])[0]
            except NotKnownError:
                chain, self._fixed[point] = None, np.zeros(3)
            if chain is None and self._origin is not None:
                self.notices[
                    f"the position of the fixed point {point} from {self._origin} is not known: drawn at the origin"
                ] = None
        return np.broadcast_to(self._fixed[point], (times.size, 3))

    def _source_position(self, route: Route, times: Array) -> Array:
        """The position of the source of a route, the nearest point with a set velocity.

        It is that of the coordinates where both give the same velocity, or where they give the same path.
        """
        base = self._confirmed(route)
        if base is not None:
            return self._rest(base, times) + self._along(route.along[route.along.index(base) :], times)
        return self._known_at(route.source, times, lambda nodes: self._moved(route, nodes))

    def _confirmed(self, route: Route) -> Any:
        """A point at rest from which positions give the velocity of the source, or None."""
        try:
            placement = self._system.points.placement(route.beyond[-1])
        except DerivationError:
            placement = None
        if placement is not None and self._is_fixed(placement.base) and placement.base in route.along:
            return placement.base
        return None

    def _moved(self, route: Route, nodes: Array) -> Array:
        """The position of the source from its velocity; from the coordinates, if they give the same path."""
        source, points = route.source, gauss_points(nodes)
        rates = self.vector(source._vel_dict[self.model.frame], points.ravel()).reshape(-1, 2, 3)
        path = integrated(nodes, rates)
        written = self._written(route, nodes)
        if written is not None:
            length = np.abs(np.diff(path, axis=0)).sum(axis=0).max(initial=0.0)
            if np.abs(written - written[0] - path).max() <= SAME_PATH * length:
                return written
            path += written[0]
        self.notices[
            f"the position of point {source} is not known: it is integrated from its velocity in {self.model.frame}"
        ] = None
        return path

    def _written(self, route: Route, nodes: Array) -> Array | None:
        """The source of a route from its first point along positions, or None if these are not known."""
        root = route.along[0]
        try:
            first = self._rest(root, nodes) if self._is_fixed(root) else np.zeros(3)
            return np.asarray(first + self._along(route.along, nodes)) if len(route.along) > 1 else None
        except NotKnownError:
            return None

    # -- along the whole motion -----------------------------------------------------------------------------

    def _known_at(self, key: Any, times: Array, compute: Callable[[Array], Array], fine: bool = False) -> Array:
        """What ``compute`` gives at the nodes of the motion, at ``times``, which are added to the nodes.

        The nodes of orientations (``fine``) contain the Gauss points at which velocities need them.
        """
        nodes, table = self._tables.get(id(key), (np.empty(0), None))
        if table is None or not np.isin(times, nodes).all():
            fixed = np.union1d(self.motion.nodes, self.motion.times)
            nodes = np.union1d(np.union1d(fixed, gauss_points(fixed).ravel()) if fine else fixed, times)
            table = compute(nodes)
            self._tables[id(key)] = (nodes, table)
        return np.asarray(table[np.searchsorted(nodes, times)])
