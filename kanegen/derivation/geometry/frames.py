"""Reference frames: rotations between neighbors, angular velocities and accelerations at u' = 0.

Vectors stay in the frames in which the user wrote them. Components are rotated only where they are needed,
accumulating along the frame tree from the far end (Horner), one rotation per neighbor passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kanegen.derivation.geometry.vectors import (
    Matrix,
    Triple,
    cross,
    is_null,
    mapped,
    null,
    plus,
    rotating_frame_acceleration,
    times,
    transposed,
)
from kanegen.errors import DerivationError
from kanegen.graph.nodes import Graph, Node
from kanegen.model.geometry import Geometry

Frame: TypeAlias = Any  # sympy.physics.vector.ReferenceFrame
FrameVector: TypeAlias = Mapping[Frame, Triple]
Lower: TypeAlias = Callable[[Any], Node]
Rate: TypeAlias = Callable[[Frame, Frame], Triple]


class Frames:
    """The frame tree below the inertial frame, over the graph.

    ``lower`` turns the user's scalars into nodes; ``rate`` differentiates a node with respect to time at u' = 0.
    """

    def __init__(
        self, graph: Graph, inertial: Frame, geometry: Geometry, lower: Lower, rate: Callable[[Node], Node]
    ) -> None:
        self._graph = graph
        self._lower = lower
        self._rate = rate
        self.inertial = inertial
        self._parent = geometry.parents
        self._rate_parent = geometry.rate_parents
        self._depth: dict[Frame, int] = {}
        for frame, parent in geometry.parents.items():
            self._depth[frame] = 0 if parent is None else self._depth[parent] + 1
        self._rotations: dict[Frame, Matrix] = {}
        self._relative: dict[tuple[Frame, Frame], Triple] = {}
        self._omega: dict[tuple[Frame, Frame], Triple] = {}
        self._alpha: dict[tuple[Frame, Frame], Triple] = {}
        self._transport: dict[Frame, Matrix] = {}

    # -- the tree -------------------------------------------------------------------------------------------

    def parent(self, frame: Frame) -> Frame:
        return self._parent[frame]

    def depth(self, frame: Frame) -> int:
        if frame not in self._depth:
            raise DerivationError(
                f"frame {frame.name} is not oriented with respect to the inertial frame {self.inertial.name}: "
                f"orient it (orient_axis, orient_body_fixed, ...) relative to a frame connected to it"
            )
        return self._depth[frame]

    def is_oriented(self, frame: Frame) -> bool:
        """Whether the orientation of ``frame`` is known, not only its angular velocity."""
        return frame in self._depth

    def is_below(self, frame: Frame, ancestor: Frame) -> bool:
        """Whether ``ancestor`` lies on the way from ``frame`` to the inertial frame (or is ``frame``)."""
        while self.depth(frame) > self.depth(ancestor):
            frame = self._parent[frame]
        return frame is ancestor

    def common_ancestor(self, a: Frame, b: Frame) -> Frame:
        while a is not b:
            if self.depth(a) >= self.depth(b):
                a = self._parent[a]
            else:
                b = self._parent[b]
        return a

    def moves_with_orientation(self, frame: Frame) -> bool:
        """Whether the angular velocity of ``frame`` is given relative to the frame it is oriented in."""
        return self._rate_parent.get(frame) is self._parent.get(frame)

    # -- components -----------------------------------------------------------------------------------------

    def lower_vector(self, vector: Any) -> dict[Frame, Triple]:
        """A SymPy vector as components by frame; the number 0 is the null vector."""
        if vector == 0:
            return {}
        parts: dict[Frame, Triple] = {}
        for components, frame in vector.args:
            x, y, z = components
            triple = (self._lower(x), self._lower(y), self._lower(z))
            parts[frame] = plus(parts[frame], triple) if frame in parts else triple
        return parts

    def rotation(self, frame: Frame) -> Matrix:
        """Direction cosines R of ``frame`` in its parent: components in the frame = R components in the parent."""
        known = self._rotations.get(frame)
        if known is None:
            self.depth(frame)
            flat = [self._lower(entry) for entry in frame._dcm_dict[self._parent[frame]]]
            known = self._rotations[frame] = (tuple(flat[0:3]), tuple(flat[3:6]), tuple(flat[6:9]))
        return known

    def outward(self, frame: Frame, a: Triple) -> Triple:
        """Components in ``frame`` of components in its parent."""
        return times(self.rotation(frame), a)

    def inward(self, frame: Frame, a: Triple) -> Triple:
        """Components in the parent of ``frame`` of components in ``frame``."""
        return times(transposed(self.rotation(frame)), a)

    def express(self, vector: FrameVector, target: Frame) -> Triple:
        """The components of a sum of vectors in ``target``."""
        sums = {frame: a for frame, a in vector.items() if not is_null(a)}
        if not sums.keys() - {target}:
            # Also in a frame whose orientation is not known, such as that of Euler's equations.
            return sums.get(target, null(self._graph))
        # First inwards to the ancestors of the target, deepest frames first, then outwards along its own branch.
        self.depth(target)
        branch = [target]
        while branch[-1] is not self.inertial:
            branch.append(self._parent[branch[-1]])
        on_branch = set(branch)
        pending = [frame for frame in sums if frame not in on_branch]
        while pending:
            frame = max(pending, key=self.depth)
            pending.remove(frame)
            a = self.inward(frame, sums.pop(frame))
            inner = self._parent[frame]
            if inner not in on_branch and inner not in sums:
                pending.append(inner)
            sums[inner] = plus(sums[inner], a) if inner in sums else a
        total = null(self._graph)
        for frame in reversed(branch):
            if frame is not self.inertial and not is_null(total):
                total = self.outward(frame, total)
            if frame in sums:
                total = plus(total, sums[frame])
        return total

    # -- rotation rates -------------------------------------------------------------------------------------

    def relative_omega(self, frame: Frame, target: Frame) -> Triple:
        """Angular velocity of ``frame`` relative to the frame its rate is given in, components in ``target``."""
        key = (frame, target)
        if key not in self._relative:
            given = frame._ang_vel_dict[self._rate_base(frame)]
            self._relative[key] = self.express(self.lower_vector(given), target)
        return self._relative[key]

    def _rate_base(self, frame: Frame) -> Frame:
        if frame not in self._rate_parent:
            raise DerivationError(
                f"the angular velocity of frame {frame.name} is not defined: orient it, or use set_ang_vel, relative "
                f"to a frame connected to the inertial frame {self.inertial.name}"
            )
        return self._rate_parent[frame]

    def omega(self, frame: Frame, target: Frame) -> Triple:
        """Inertial angular velocity of ``frame``, components in ``target``, rad/s."""
        return self._accumulated(self._omega, self.omega, self.relative_omega, frame, target)

    def alpha(self, frame: Frame, target: Frame) -> Triple:
        """Inertial angular acceleration of ``frame`` at u' = 0, components in ``target``, rad/s^2."""
        return self._accumulated(self._alpha, self.alpha, self._relative_alpha, frame, target)

    def _relative_alpha(self, frame: Frame, target: Frame) -> Triple:
        relative = self.relative_omega(frame, target)
        return plus(mapped(self._rate, relative), cross(self.omega(target, target), relative))

    def _accumulated(
        self, known: dict[tuple[Frame, Frame], Triple], total: Rate, relative: Rate, frame: Frame, target: Frame
    ) -> Triple:
        """The ``total`` rate of the frame's base plus the ``relative`` one of the frame, kept in ``known``."""
        key = (frame, target)
        if key not in known:
            if frame is self.inertial:
                known[key] = null(self._graph)
            else:
                base = self._rate_base(frame)
                own = relative(frame, target)
                known[key] = plus(self._carried(total, base, frame, target), own)
        return known[key]

    def _carried(self, quantity: Rate, base: Frame, frame: Frame, target: Frame) -> Triple:
        """``quantity`` of the base frame in ``target``, through the base's own components where that is shorter."""
        if frame is target and base is not target and self._parent.get(target) is base:
            return self.outward(target, quantity(base, base))
        return quantity(base, target)

    def transport(self, frame: Frame) -> Matrix:
        """W of a point fixed in ``frame`` at offset d: acceleration ``W d`` at u' = 0 (components in the frame)."""
        if frame not in self._transport:
            omega, alpha = self.omega(frame, frame), self.alpha(frame, frame)
            self._transport[frame] = rotating_frame_acceleration(omega, alpha)
        return self._transport[frame]
