"""Reference frames: rotations between neighbors, angular velocities and accelerations at u' = 0.

Vectors keep the frames in which the user wrote them. Components are rotated only when they are needed: sums accumulate
along the frame tree from its far end (as in Horner's scheme), with one rotation per pair of neighbors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kanegen.derivation.geometry.vectors import Matrix, Triple, cross, is_null, mapped, null, plus, times
from kanegen.errors import DerivationError
from kanegen.graph.nodes import Graph, Node
from kanegen.model.geometry import Geometry

Frame: TypeAlias = Any  # sympy.physics.vector.ReferenceFrame
FrameVector: TypeAlias = Mapping[Frame, Triple]
Rate: TypeAlias = Callable[[Frame, Frame], Triple]
Known: TypeAlias = dict[tuple[Frame, Frame], Triple]


@dataclass(eq=False)
class Frames:
    """The frame tree below the inertial frame, over the graph.

    ``lower`` turns the user's scalars into nodes; ``rate`` differentiates a node with respect to time at u' = 0.
    """

    graph: Graph
    inertial: Frame
    geometry: Geometry
    lower: Callable[[Any], Node]
    rate: Callable[[Node], Node]

    def __post_init__(self) -> None:
        self._depth: dict[Frame, int] = {}
        for frame, parent in self.geometry.parents.items():
            self._depth[frame] = 0 if parent is None else self._depth[parent] + 1
        self._rotations: dict[Frame, Matrix] = {}
        self._transport: dict[Frame, Matrix] = {}
        self._relative, self._omega, self._alpha = Known(), Known(), Known()

    # -- the tree -------------------------------------------------------------------------------------------

    def parent(self, frame: Frame) -> Frame:
        return self.geometry.parents[frame]

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
        """Whether ``ancestor`` lies on the path from ``frame`` to the inertial frame (or is ``frame``)."""
        while self.depth(frame) > self.depth(ancestor):
            frame = self.geometry.parents[frame]
        return frame is ancestor

    def common_ancestor(self, a: Frame, b: Frame) -> Frame:
        while a is not b:
            if self.depth(a) >= self.depth(b):
                a = self.geometry.parents[a]
            else:
                b = self.geometry.parents[b]
        return a

    def moves_with_orientation(self, frame: Frame) -> bool:
        """Whether the angular velocity of ``frame`` is given relative to the frame it is oriented in."""
        return self.geometry.rate_parents.get(frame) is self.geometry.parents.get(frame)

    # -- components -----------------------------------------------------------------------------------------

    def lower_vector(self, vector: Any) -> dict[Frame, Triple]:
        """A SymPy vector as components by frame; the number 0 is the null vector."""
        if vector == 0:
            return {}
        parts: dict[Frame, Triple] = {}
        for (x, y, z), frame in vector.args:
            triple = (self.lower(x), self.lower(y), self.lower(z))
            parts[frame] = plus(parts[frame], triple) if frame in parts else triple
        return parts

    def rotation(self, frame: Frame) -> Matrix:
        """Direction cosines R of ``frame`` in its parent: components in the frame = R components in the parent."""
        if frame not in self._rotations:
            self.depth(frame)
            flat = [self.lower(entry) for entry in frame._dcm_dict[self.geometry.parents[frame]]]
            self._rotations[frame] = (tuple(flat[0:3]), tuple(flat[3:6]), tuple(flat[6:9]))
        return self._rotations[frame]

    def outward(self, frame: Frame, a: Triple) -> Triple:
        """Components in ``frame`` of components in its parent."""
        return times(self.rotation(frame), a)

    def inward(self, frame: Frame, a: Triple) -> Triple:
        """Components in the parent of ``frame`` of components in ``frame``."""
        return times(tuple(zip(*self.rotation(frame), strict=True)), a)

    def express(self, vector: FrameVector, target: Frame) -> Triple:
        """The components of a sum of vectors in ``target``."""
        sums = {frame: a for frame, a in vector.items() if not is_null(a)}
        if not sums.keys() - {target}:
            # The target may have an unknown orientation, like the frame of Euler's equations.
            return sums.get(target, null(self.graph))
        # First inward to ancestors of the target, beginning with the deepest frames, then outward along its branch.
        self.depth(target)
        branch = [target]
        while branch[-1] is not self.inertial:
            branch.append(self.geometry.parents[branch[-1]])
        on_branch = set(branch)
        pending = [frame for frame in sums if frame not in on_branch]
        while pending:
            frame = max(pending, key=self.depth)
            pending.remove(frame)
            a = self.inward(frame, sums.pop(frame))
            inner = self.geometry.parents[frame]
            if inner not in on_branch and inner not in sums:
                pending.append(inner)
            sums[inner] = plus(sums[inner], a) if inner in sums else a
        total = null(self.graph)
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
        if frame not in self.geometry.rate_parents:
            raise DerivationError(
                f"the angular velocity of frame {frame.name} is not defined: orient it, or use set_ang_vel, relative "
                f"to a frame connected to the inertial frame {self.inertial.name}"
            )
        return self.geometry.rate_parents[frame]

    def omega(self, frame: Frame, target: Frame) -> Triple:
        """Inertial angular velocity of ``frame``, components in ``target``, rad/s."""
        return self._accumulated(self._omega, self.omega, self.relative_omega, frame, target)

    def alpha(self, frame: Frame, target: Frame) -> Triple:
        """Inertial angular acceleration of ``frame`` at u' = 0, components in ``target``, rad/s^2."""
        return self._accumulated(self._alpha, self.alpha, self._relative_alpha, frame, target)

    def _relative_alpha(self, frame: Frame, target: Frame) -> Triple:
        relative = self.relative_omega(frame, target)
        return plus(mapped(self.rate, relative), cross(self.omega(target, target), relative))

    def _accumulated(self, known: Known, total: Rate, relative: Rate, frame: Frame, target: Frame) -> Triple:
        """The ``total`` rate of the frame's base plus the ``relative`` rate of the frame, cached in ``known``."""
        key = (frame, target)
        if key not in known:
            if frame is self.inertial:
                known[key] = null(self.graph)
            else:
                base, own = self._rate_base(frame), relative(frame, target)
                if frame is target and base is not target and self.geometry.parents.get(target) is base:
                    carried = self.outward(target, total(base, base))  # fewer operations than in the target
                else:
                    carried = total(base, target)
                known[key] = plus(carried, own)
        return known[key]

    def transport(self, frame: Frame) -> Matrix:
        """W of ``W d = alpha x d + omega x (omega x d)`` at u' = 0, for points fixed in ``frame`` at offsets d.

        Components are in the frame. All points of one body share the entries of W.
        """
        if frame not in self._transport:
            (x, y, z), alpha = self.omega(frame, frame), self.alpha(frame, frame)
            xx, yy, zz = x * x, y * y, z * z
            xy, xz, yz = x * y, x * z, y * z
            self._transport[frame] = (
                (-(yy + zz), xy - alpha[2], xz + alpha[1]),
                (xy + alpha[2], -(xx + zz), yz - alpha[0]),
                (xz - alpha[1], yz + alpha[0], -(xx + yy)),
            )
        return self._transport[frame]
