"""Points: inertial velocities, and accelerations at u' = 0, each in the frame where it costs least.

A point's velocity comes from the point it is positioned from, segment by segment, unless the user set a velocity
that its position does not explain (a contact point of a rolling wheel): then the user's velocity holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from kanegen.derivation.geometry.frames import Frame, Frames
from kanegen.derivation.geometry.vectors import Triple, cross, is_null, mapped, null, plus, scaled, times
from kanegen.errors import DerivationError
from kanegen.graph.nodes import Graph, Node
from kanegen.model.geometry import Route, position_path

Point: TypeAlias = Any  # sympy.physics.vector.Point


@dataclass(frozen=True)
class Motion:
    """Velocity (m/s) and acceleration at u' = 0 (m/s^2) of a point, components in ``frame``."""

    frame: Frame
    velocity: Triple
    acceleration: Triple


@dataclass(frozen=True)
class Segment:
    """The offset ``components`` in ``frame`` from one point to the next, m."""

    frame: Frame
    components: Triple


@dataclass(frozen=True)
class Placement:
    """How a point is reached: from ``base`` along ``segments``; the base's velocity is given, not derived."""

    base: Point
    segments: tuple[Segment, ...]


def total_offset(segments: Iterable[Segment]) -> dict[Frame, Triple]:
    """The sum of segments as components by frame, m."""
    total: dict[Frame, Triple] = {}
    for segment in segments:
        known = total.get(segment.frame)
        total[segment.frame] = segment.components if known is None else plus(known, segment.components)
    return total


class Points:
    """The points of a model over the graph, placed along ``routes``.

    ``same`` tells whether two vectors agree at random states. ``base_acceleration`` (inertial components) is added
    to every acceleration: minus the gravity vector there gives all weights at the cost of none.
    """

    def __init__(
        self,
        graph: Graph,
        frames: Frames,
        routes: Mapping[Point, Route],
        rate: Callable[[Node], Node],
        same: Callable[[Triple, Triple], bool],
        base_acceleration: Triple | None = None,
    ) -> None:
        self._graph = graph
        self._frames = frames
        self._routes = routes
        self._rate = rate
        self._same = same
        self._base_acceleration = base_acceleration
        self._placements: dict[Point, Placement] = {}
        self._steps: dict[tuple[Point, Point], Placement] = {}
        self._motions: dict[tuple[Placement, bool], Motion] = {}

    def with_base_acceleration(self, base_acceleration: Triple) -> Points:
        return Points(self._graph, self._frames, self._routes, self._rate, self._same, base_acceleration)

    def motion(self, point: Point) -> Motion:
        return self._motion(self.placement(point))

    def placement(self, point: Point) -> Placement:
        if point not in self._placements:
            self._placements[point] = self._reached(point)
        return self._placements[point]

    def is_at_rest(self, base: Point) -> bool:
        """Whether the base of a placement has the velocity zero."""
        return is_null(self._motion(Placement(base, ())).velocity)

    def position(self, point: Point) -> dict[Frame, Triple]:
        """The vector from the first point of the route of ``point`` to it, as components by frame, m."""
        pairs = pairwise(self._routes[point].points)
        return total_offset(segment for known, after in pairs for segment in self._segments(known, after))

    def offset(self, point: Point, base: Point) -> dict[Frame, Triple]:
        """The vector from ``base`` to ``point`` as components by frame, m."""
        chain = position_path(base, point)
        if chain is None:
            raise DerivationError(f"no position connects point {point.name} with point {base.name}: use set_pos")
        return total_offset(segment for known, after in pairwise(chain) for segment in self._segments(known, after))

    # -- walking the tree -----------------------------------------------------------------------------------

    def _reached(self, point: Point) -> Placement:
        """The placement of a point along its route.

        Raises ``DerivationError`` for a point that is no part of the model.
        """
        route = self._routes.get(point)
        if route is None:
            raise DerivationError(
                f"the velocity of point {point.name} in frame {self._frames.inertial.name} is not known to the model: "
                "no body, load or reaction of it has this point"
            )
        placement = Placement(route.along[0], ())
        for before, after in pairwise(route.along):
            placement = self._confirmed(placement, before, after)
        for before, after in pairwise(route.beyond):
            placement = self._further(placement, before, after)
        return placement

    def _confirmed(self, placement: Placement, before: Point, after: Point) -> Placement:
        """How the next point on a route is placed, unless the velocity that the user set for it says otherwise."""
        if (before, after) not in self._steps:
            further, inertial = self._further(placement, before, after), self._frames.inertial
            if inertial in after._vel_dict:
                motion = self._motion(further)
                given = self._frames.lower_vector(after._vel_dict[inertial])
                if not self._same(motion.velocity, self._frames.express(given, motion.frame)):
                    further = Placement(after, ())
            self._steps[before, after] = further
        return self._steps[before, after]

    def _further(self, placement: Placement, before: Point, after: Point) -> Placement:
        return Placement(placement.base, (*placement.segments, *self._segments(before, after)))

    def _segments(self, known: Point, point: Point) -> Iterator[Segment]:
        """The segments from ``known`` to ``point``, frames nearest to the inertial one first."""
        parts = self._frames.lower_vector(point._pos_dict[known])
        for frame in sorted(parts, key=self._frames.depth):
            if not is_null(parts[frame]):
                yield Segment(frame, parts[frame])

    # -- motions --------------------------------------------------------------------------------------------

    def _motion(self, placement: Placement) -> Motion:
        """Outwards, in the frame of the last segment, where frames are nested; else in a frame common to all."""
        frames = [segment.frame for segment in placement.segments]
        nested = all(self._frames.is_below(outer, inner) for inner, outer in pairwise(frames))
        return self._along(placement, nested)

    def _along(self, placement: Placement, outwards: bool) -> Motion:
        key = (placement, outwards)
        if key not in self._motions:
            if placement.segments:
                before = self._along(Placement(placement.base, placement.segments[:-1]), outwards)
                motion = self._advance(before, placement.segments[-1], outwards)
            else:
                motion = self._given(placement.base)
            self._motions[key] = motion
        return self._motions[key]

    def _given(self, point: Point) -> Motion:
        """The motion of a point from the velocity the user set."""
        frames = self._frames
        parts = frames.lower_vector(point._vel_dict[frames.inertial])
        home = frames.inertial
        for frame in parts:
            home = frame if frames.is_below(frame, home) else frames.common_ancestor(frame, home)
        velocity = frames.express(parts, home)
        acceleration = plus(mapped(self._rate, velocity), cross(frames.omega(home, home), velocity))
        if self._base_acceleration is not None:
            acceleration = plus(frames.express({frames.inertial: self._base_acceleration}, home), acceleration)
        return Motion(home, velocity, acceleration)

    def _advance(self, motion: Motion, segment: Segment, outwards: bool) -> Motion:
        """The motion one segment further, in the segment's frame or, inwards, in the frame common to both."""
        frames, frame = self._frames, segment.frame
        below = outwards and frames.is_below(frame, motion.frame)
        home = frame if below else frames.common_ancestor(motion.frame, frame)
        velocity, acceleration = self._segment_velocity(segment), self._segment_acceleration(segment)
        return Motion(
            home,
            self._sum(motion.frame, motion.velocity, frame, velocity, home),
            self._sum(motion.frame, motion.acceleration, frame, acceleration, home),
        )

    def _sum(self, a_frame: Frame, a: Triple, b_frame: Frame, b: Triple, home: Frame) -> Triple:
        return self._frames.express({a_frame: plus(a, b)} if a_frame is b_frame else {a_frame: a, b_frame: b}, home)

    def _segment_velocity(self, segment: Segment) -> Triple:
        omega = self._frames.omega(segment.frame, segment.frame)
        return plus(mapped(self._rate, segment.components), cross(omega, segment.components))

    def _segment_acceleration(self, segment: Segment) -> Triple:
        frame, d = segment.frame, segment.components
        first = mapped(self._rate, d)
        fixed = null(self._graph) if frame is self._frames.inertial else times(self._frames.transport(frame), d)
        if is_null(first):
            return fixed
        coriolis = scaled(self._graph.const(2), cross(self._frames.omega(frame, frame), first))
        return plus(plus(fixed, coriolis), mapped(self._rate, first))
