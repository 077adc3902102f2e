"""Points: inertial velocities, and accelerations at u' = 0, each in the frame with the shortest components.

The velocity of a point follows segment by segment from the point relative to which it is positioned. If the user set a
velocity that differs from it (the contact point of a rolling wheel), the user's velocity is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

from kanegen.derivation.geometry.frames import Frame, Frames
from kanegen.derivation.geometry.vectors import Triple, cross, is_null, mapped, null, plus, scaled, times
from kanegen.errors import DerivationError
from kanegen.graph.nodes import Node
from kanegen.model.geometry import Route, position_path

Point: TypeAlias = Any  # sympy.physics.vector.Point


@dataclass(frozen=True)
class PointMotion:
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
    """The path to a point from ``base``, a point whose velocity the user set, along ``segments``."""

    base: Point
    segments: tuple[Segment, ...]


def total_offset(segments: Iterable[Segment]) -> dict[Frame, Triple]:
    """The sum of segments as components by frame, m."""
    total: dict[Frame, Triple] = {}
    for segment in segments:
        known = total.get(segment.frame)
        total[segment.frame] = segment.components if known is None else plus(known, segment.components)
    return total


@dataclass(eq=False)
class Points:
    """The points of a model over the graph, placed along ``routes``; ``rate`` is d/dt at u' = 0.

    ``same(a, b)`` returns whether two vectors agree at random states. ``base_acceleration`` (inertial components) is
    added to every acceleration.
    """

    frames: Frames
    routes: Mapping[Point, Route]
    rate: Callable[[Node], Node]
    same: Callable[[Triple, Triple], bool]
    base_acceleration: Triple | None = None

    def __post_init__(self) -> None:
        self._pieces: dict[tuple[Point, Point], tuple[Segment, ...]] = {}
        self._placements: dict[Point, Placement] = {}
        self._steps: dict[tuple[Point, Point], Placement] = {}
        self._motions: dict[tuple[Placement, bool], PointMotion] = {}

    def with_gravity(self, gravity: Triple | None) -> Points:
        """Points with gravity subtracted from their accelerations, so that inertia forces include the weights."""
        if gravity is None:
            return self
        x, y, z = gravity
        return replace(self, base_acceleration=(-x, -y, -z))

    def motion(self, point: Point) -> PointMotion:
        return self._motion(self.placement(point))

    def placement(self, point: Point) -> Placement:
        if point not in self._placements:
            self._placements[point] = self._reached(point)
        return self._placements[point]

    def is_at_rest(self, base: Point) -> bool:
        """Whether the base of a placement has zero velocity."""
        return is_null(self._motion(Placement(base, ())).velocity)

    def position(self, point: Point) -> dict[Frame, Triple]:
        """The vector from the first point of the route of ``point`` to it, as components by frame, m."""
        return self._offset_along(self.routes[point].points)

    def offset(self, point: Point, base: Point) -> dict[Frame, Triple]:
        """The vector from ``base`` to ``point`` as components by frame, m."""
        chain = position_path(base, point)
        if chain is None:
            raise DerivationError(f"no position connects point {point.name} with point {base.name}: use set_pos")
        return self._offset_along(chain)

    def _offset_along(self, chain: Sequence[Point]) -> dict[Frame, Triple]:
        return total_offset(segment for known, after in pairwise(chain) for segment in self._segments(known, after))

    # -- walking the tree -----------------------------------------------------------------------------------

    def _reached(self, point: Point) -> Placement:
        """The placement of a point along its route; DerivationError if the point does not belong to the model."""
        route = self.routes.get(point)
        if route is None:
            raise DerivationError(
                f"the velocity of point {point.name} in frame {self.frames.inertial.name} is not known to the model: "
                "no body, load or reaction of it has this point"
            )
        placement = Placement(route.along[0], ())
        for before, after in pairwise(route.along):
            placement = self._confirmed(placement, before, after)
        for before, after in pairwise(route.beyond):
            placement = self._further(placement, before, after)
        return placement

    def _confirmed(self, placement: Placement, before: Point, after: Point) -> Placement:
        """The placement of the next point of a route; a new base if the user set a different velocity for it."""
        if (before, after) not in self._steps:
            further, inertial = self._further(placement, before, after), self.frames.inertial
            if inertial in after._vel_dict:
                motion = self._motion(further)
                given = self.frames.lower_vector(after._vel_dict[inertial])
                if not self.same(motion.velocity, self.frames.express(given, motion.frame)):
                    further = Placement(after, ())
            self._steps[before, after] = further
        return self._steps[before, after]

    def _further(self, placement: Placement, before: Point, after: Point) -> Placement:
        return Placement(placement.base, (*placement.segments, *self._segments(before, after)))

    def _segments(self, known: Point, point: Point) -> tuple[Segment, ...]:
        """The segments from ``known`` to ``point``, frames nearest to the inertial one first."""
        if (known, point) not in self._pieces:
            parts = self.frames.lower_vector(point._pos_dict[known])
            frames = (frame for frame in sorted(parts, key=self.frames.depth) if not is_null(parts[frame]))
            self._pieces[known, point] = tuple(Segment(frame, parts[frame]) for frame in frames)
        return self._pieces[known, point]

    # -- motions --------------------------------------------------------------------------------------------

    def _motion(self, placement: Placement) -> PointMotion:
        """The motion, in the last segment's frame if each frame is below the one before, or else in a common frame."""
        frames = [segment.frame for segment in placement.segments]
        return self._along(placement, all(self.frames.is_below(outer, inner) for inner, outer in pairwise(frames)))

    def _along(self, placement: Placement, outwards: bool) -> PointMotion:
        key = (placement, outwards)
        if key not in self._motions:
            if placement.segments:
                before = self._along(Placement(placement.base, placement.segments[:-1]), outwards)
                self._motions[key] = self._advance(before, placement.segments[-1], outwards)
            else:
                self._motions[key] = self._given(placement.base)
        return self._motions[key]

    def _given(self, point: Point) -> PointMotion:
        """The motion of a point from the velocity the user set."""
        frames = self.frames
        parts = frames.lower_vector(point._vel_dict[frames.inertial])
        home = frames.inertial
        for frame in parts:
            home = frame if frames.is_below(frame, home) else frames.common_ancestor(frame, home)
        velocity = frames.express(parts, home)
        acceleration = plus(mapped(self.rate, velocity), cross(frames.omega(home, home), velocity))
        if self.base_acceleration is not None:
            acceleration = plus(frames.express({frames.inertial: self.base_acceleration}, home), acceleration)
        return PointMotion(home, velocity, acceleration)

    def _advance(self, motion: PointMotion, segment: Segment, outwards: bool) -> PointMotion:
        """The motion one segment further, in the segment's frame or in the common ancestor of both frames."""
        frames, frame, d = self.frames, segment.frame, segment.components
        below = outwards and frames.is_below(frame, motion.frame)
        home = frame if below else frames.common_ancestor(motion.frame, frame)

        def total(before: Triple, own: Triple) -> Triple:
            one_frame = motion.frame is frame
            return frames.express({frame: plus(before, own)} if one_frame else {motion.frame: before, frame: own}, home)

        velocity = plus(mapped(self.rate, d), cross(frames.omega(frame, frame), d))
        acceleration = self._relative_acceleration(segment)
        return PointMotion(home, total(motion.velocity, velocity), total(motion.acceleration, acceleration))

    def _relative_acceleration(self, segment: Segment) -> Triple:
        """The inertial second derivative of a segment at u' = 0."""
        frames, frame, d = self.frames, segment.frame, segment.components
        first = mapped(self.rate, d)
        fixed = null(frames.graph) if frame is frames.inertial else times(frames.transport(frame), d)
        if is_null(first):
            return fixed
        coriolis = scaled(frames.graph.const(2), cross(frames.omega(frame, frame), first))
        return plus(plus(fixed, coriolis), mapped(self.rate, first))
