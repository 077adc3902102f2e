"""The tree of joints of a model and its composite rigid bodies (Featherstone 2008, section 6.2).

Written for any generalized speeds: the relative velocity at a joint is ``S u`` with a sparse S, and
``Q = sum_j S_j^T M_j S_j + S_j^T M_j X_j J_parent + transpose`` with the composite inertia M_j beyond joint j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kanegen.derivation.geometry.frames import Frame
from kanegen.derivation.geometry.points import Segment
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import (
    Matrix,
    Triple,
    cross,
    dot,
    is_null,
    mapped,
    null,
    plus,
    scaled,
    times,
    transposed,
)
from kanegen.derivation.inertia.bodies import Body
from kanegen.derivation.inertia.tensors import Inertia, added, product
from kanegen.graph import Graph, Node


@dataclass(frozen=True)
class RigidMass:
    """Mass, first moment (kg m) and inertia (kg m^2) about a joint's base point, components in the joint's frame."""

    mass: Node
    moment: Triple
    inertia: Inertia

    @staticmethod
    def none(graph: Graph) -> RigidMass:
        zero = graph.zero
        return RigidMass(zero, null(graph), (zero,) * 6)

    def plus(self, other: RigidMass) -> RigidMass:
        return RigidMass(self.mass + other.mass, plus(self.moment, other.moment), added(self.inertia, other.inertia))

    def moved(self, rho: Triple) -> RigidMass:
        """The same mass seen from a base point from which the old one lies at ``rho``."""
        if is_null(rho):
            return self
        c = self.moment
        e = plus(c, scaled(self.mass, rho))
        d = plus(c, e)
        x, y, z = rho
        # I + (2 c.rho + m rho.rho) 1 - (c rho + rho c + m rho rho), with e = c + m rho and d = c + e
        xx, yy, zz = x * d[0], y * d[1], z * d[2]
        i = self.inertia
        inertia = (
            i[0] + (yy + zz),
            i[1] + (xx + zz),
            i[2] + (xx + yy),
            i[3] - (e[0] * y + x * c[1]),
            i[4] - (e[0] * z + x * c[2]),
            i[5] - (e[1] * z + y * c[2]),
        )
        return RigidMass(self.mass, e, inertia)

    def rotated_inwards(self, rotation: Matrix) -> RigidMass:
        """Components in the parent frame, ``rotation`` leading from parent to joint components."""
        return RigidMass(self.mass, times(transposed(rotation), self.moment), _rotated(self.inertia, rotation))


@dataclass
class Joint:
    """A base point and frame that move relative to those of the parent joint by some of the speeds.

    ``base`` is the base point from the parent's, components in the parent's frame; ``rotates`` tells whether the
    frame differs from the parent's. ``omega`` and ``velocity`` are the columns of S by speed, in the joint's frame.
    """

    parent: Joint | None
    frame: Frame
    base: Triple
    rotates: bool
    omega: dict[int, Triple]
    velocity: dict[int, Triple]
    own: RigidMass
    children: dict[tuple[object, ...], Joint] = field(default_factory=dict)


class JointTree:
    """The joints of a model, parents before children."""

    def __init__(self, system: System) -> None:
        self._system = system
        graph = system.graph
        self.root = Joint(None, system.model.frame, null(graph), False, {}, {}, RigidMass.none(graph))
        self.joints = [self.root]

    @classmethod
    def of(cls, system: System, bodies: Sequence[Body]) -> JointTree | None:
        """The tree, or None where the bodies do not form one (frames that branch off further in, given velocities)."""
        tree = cls(system)
        return tree if all(tree._attach(body) for body in bodies) else None

    def _attach(self, body: Body) -> bool:
        system = self._system
        place = system.points.placement(body.point)
        if not system.points.is_at_rest(place.base):
            return False
        joint, rho = self.root, null(system.graph)
        for segment in place.segments:
            turned = self._turn(joint, rho, segment.frame)
            if turned is None:
                return False
            joint, rho = self._slide(*turned, segment)
        if not body.mass.is_zero:
            zero = system.graph.zero
            joint.own = joint.own.plus(RigidMass(body.mass, null(system.graph), (zero,) * 6).moved(rho))
        if body.inertia is not None:
            if not system.frames.is_oriented(body.inertia_frame):
                return False
            turned = self._turn(joint, rho, body.inertia_frame)
            if turned is None or body.frame is not body.inertia_frame:
                return False
            turned[0].own = turned[0].own.plus(RigidMass(system.graph.zero, null(system.graph), body.inertia))
        return True

    def _turn(self, joint: Joint, rho: Triple, frame: Frame) -> tuple[Joint, Triple] | None:
        """The joint carrying ``frame`` at offset ``rho`` of ``joint``; None where the frame lies further in."""
        frames = self._system.frames
        if frame is joint.frame:
            return joint, rho
        if not frames.is_below(frame, joint.frame):
            return None
        path = [frame]
        while frames.parent(path[-1]) is not joint.frame:
            path.append(frames.parent(path[-1]))
        for inner in reversed(path):
            if not frames.moves_with_orientation(inner):
                return None
            relative = self._system.partial_velocities(frames.relative_omega(inner, inner))
            joint = self._child(joint, inner, rho, True, relative, {})
            rho = null(self._system.graph)
        return joint, rho

    def _slide(self, joint: Joint, rho: Triple, segment: Segment) -> tuple[Joint, Triple]:
        """Along a segment: a fixed one moves the offset on, a varying one is a joint of its own."""
        system = self._system
        rate = mapped(system.rate, segment.components)
        rho = plus(rho, segment.components)
        velocity = system.partial_velocities(rate)
        if not velocity:
            return joint, rho
        return self._child(joint, joint.frame, rho, False, {}, velocity), null(system.graph)

    def _child(
        self,
        parent: Joint,
        frame: Frame,
        base: Triple,
        rotates: bool,
        omega: dict[int, Triple],
        velocity: dict[int, Triple],
    ) -> Joint:
        key = (frame, *base)
        if key not in parent.children:
            joint = Joint(parent, frame, base, rotates, omega, velocity, RigidMass.none(self._system.graph))
            parent.children[key] = joint
            self.joints.append(joint)
        return parent.children[key]


def _rotated(inertia: Inertia, rotation: Matrix) -> Inertia:
    """``R^T I R``; rotations about an axis of the frame cost 16 operations instead of 45."""
    for axis in range(3):
        if rotation[axis][axis].is_one:
            return _rotated_about(inertia, axis, rotation)
    xx, yy, zz, xy, xz, yz = inertia
    rows = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    columns = transposed(rotation)
    half = [[dot(row, column) for column in columns] for row in rows]
    full = [[dot(column, [half[k][j] for k in range(3)]) for j in range(3)] for column in columns]
    return (full[0][0], full[1][1], full[2][2], full[0][1], full[0][2], full[1][2])


def _rotated_about(inertia: Inertia, axis: int, rotation: Matrix) -> Inertia:
    j, k = (axis + 1) % 3, (axis + 2) % 3
    tensor = {
        (0, 0): inertia[0], (1, 1): inertia[1], (2, 2): inertia[2],
        (0, 1): inertia[3], (0, 2): inertia[4], (1, 2): inertia[5],
    }  # fmt: skip

    def entry(a: int, b: int) -> tuple[int, int]:
        return (min(a, b), max(a, b))

    # R = [[c, s], [-s, c]] in the plane (j, k)
    c, s = rotation[j][j], rotation[j][k]
    jj, kk, jk = tensor[j, j], tensor[k, k], tensor[entry(j, k)]
    aj, ak = tensor[entry(axis, j)], tensor[entry(axis, k)]
    g = c * (jj - kk) - s * (2 * jk)
    tensor[j, j] = kk + c * g
    tensor[k, k] = jj - c * g
    tensor[entry(j, k)] = jk + s * g
    tensor[entry(axis, j)] = c * aj - s * ak
    tensor[entry(axis, k)] = s * aj + c * ak
    return (tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2])


def composite_matrix(system: System, tree: JointTree) -> list[list[Node]]:
    """The lower triangle of Q, column by column from the composite inertia beyond each joint."""
    n = len(system.u)
    lower = [[system.graph.zero] * (r + 1) for r in range(n)]
    composites = _composites(system, tree)
    for joint in tree.joints:
        mass = composites[id(joint)]
        for s in sorted({*joint.omega, *joint.velocity}):
            _column(system, lower, joint, s, mass)
    return lower


def _composites(system: System, tree: JointTree) -> dict[int, RigidMass]:
    total = {id(joint): joint.own for joint in tree.joints}
    for joint in reversed(tree.joints):
        if joint.parent is not None:
            mass = total[id(joint)]
            if joint.rotates:
                mass = mass.rotated_inwards(system.frames.rotation(joint.frame))
            total[id(joint.parent)] = total[id(joint.parent)].plus(mass.moved(joint.base))
    return total


def _column(system: System, lower: list[list[Node]], joint: Joint, s: int, mass: RigidMass) -> None:
    """Add what the motion of speed ``s`` at ``joint`` contributes to Q, from the joint down to the root."""
    zero = null(system.graph)
    omega, velocity = joint.omega.get(s, zero), joint.velocity.get(s, zero)
    linear = plus(scaled(mass.mass, velocity), cross(omega, mass.moment))
    angular = plus(product(mass.inertia, omega), cross(mass.moment, velocity))
    for r in sorted({*joint.omega, *joint.velocity}):
        if r <= s:
            _add(lower, r, s, _conjugate(joint, r, linear, angular, zero))
    while joint.parent is not None and _moved_within(joint.parent):
        if joint.rotates:
            linear = system.frames.inward(joint.frame, linear)
            angular = system.frames.inward(joint.frame, angular)
        angular = plus(angular, cross(joint.base, linear))
        joint = joint.parent
        for r in sorted({*joint.omega, *joint.velocity}):
            value = _conjugate(joint, r, linear, angular, zero)
            _add(lower, r, s, value + value if r == s else value)


def _conjugate(joint: Joint, r: int, linear: Triple, angular: Triple, zero: Triple) -> Node:
    return dot(joint.omega.get(r, zero), angular) + dot(joint.velocity.get(r, zero), linear)


def _add(lower: list[list[Node]], r: int, s: int, value: Node) -> None:
    row, column = max(r, s), min(r, s)
    lower[row][column] = lower[row][column] + value


def _moved_within(joint: Joint | None) -> bool:
    """Whether any speed moves this joint or one nearer to the root."""
    while joint is not None:
        if joint.omega or joint.velocity:
            return True
        joint = joint.parent
    return False
