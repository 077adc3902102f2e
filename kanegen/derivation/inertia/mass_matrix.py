"""The kinetic-energy matrix Q by two routes, which give the same matrix with different numbers of operations.

The direct route sums over bodies. The composite route applies if the bodies form a tree of joints. When only the speeds
of one joint differ from zero, all bodies beyond it move as one rigid body. Its composite inertia, propagated toward the
root, gives the columns of these speeds (Featherstone 2008, section 6.2). For any generalized speeds, the relative
velocity at a joint is ``S u`` with a sparse S, and ``Q = sum_j S_j^T M_j S_j + S_j^T M_j X_j J_parent + transpose``
with the composite inertia M_j beyond joint j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from kanegen.derivation.geometry.frames import Frame
from kanegen.derivation.geometry.points import Segment
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Matrix, Triple, cross, dot, is_null, mapped, null, plus, scaled, times
from kanegen.derivation.inertia.bodies import Body, Inertia, added, components, product, square
from kanegen.graph import Graph, Node, count_operations

Lower: TypeAlias = list[list[Node]]
"""The lower triangle of a symmetric matrix, row by row."""

MANY_SPEEDS = 6
"""With more speeds the direct route, of order n^3 compared with n^2 for the composite route, is not tried."""


def mass_matrix(system: System, bodies: Sequence[Body]) -> tuple[tuple[Node, ...], ...]:
    """The symmetric matrix Q, (n_u, n_u), by the route with fewer operations; kg for speeds in m/s."""
    n, tree = len(system.u), JointTree.of(system, bodies)
    lower = direct_matrix(system, bodies) if tree is None else composite_matrix(system, tree)
    if tree is not None and n <= MANY_SPEEDS:
        routes = (lower, direct_matrix(system, bodies))
        lower = min(routes, key=lambda rows: count_operations(x for row in rows for x in row))
    return tuple(tuple(lower[max(r, s)][min(r, s)] for s in range(n)) for r in range(n))


def direct_matrix(system: System, bodies: Sequence[Body]) -> Lower:
    """Lower triangle of ``Q_rs = sum m v_r . v_s + w_r . I . w_s`` from the partial velocities of every body."""
    zero, n = system.graph.zero, len(system.u)
    lower = [[zero] * (r + 1) for r in range(n)]
    for body in bodies:
        if not body.mass.is_zero:
            partial = system.partial_velocities(system.points.motion(body.point).velocity)
            for r, s in _pairs(partial):
                lower[r][s] = lower[r][s] + body.mass * dot(partial[r], partial[s])
        if body.inertia is not None:
            omega = system.frames.omega(body.frame, body.inertia_frame)
            partial = system.partial_velocities(omega)
            momenta = {s: product(body.inertia, partial[s]) for s in partial}
            for r, s in _pairs(partial):
                lower[r][s] = lower[r][s] + dot(partial[r], momenta[s])
    return lower


def _pairs(partial: dict[int, Triple]) -> list[tuple[int, int]]:
    return [(r, s) for r in partial for s in partial if s <= r]


# -- the composite route -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RigidMass:
    """Mass, first moment (kg m) and inertia (kg m^2) about a joint's base point, components in the joint's frame."""

    mass: Node
    moment: Triple
    inertia: Inertia

    @staticmethod
    def none(graph: Graph) -> RigidMass:
        return RigidMass(graph.zero, null(graph), (graph.zero,) * 6)

    def plus(self, other: RigidMass) -> RigidMass:
        return RigidMass(self.mass + other.mass, plus(self.moment, other.moment), added(self.inertia, other.inertia))

    def moved(self, rho: Triple) -> RigidMass:
        """The same mass about another base point, from which the old one has the position ``rho``."""
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
        columns = tuple(zip(*rotation, strict=True))
        return RigidMass(self.mass, times(columns, self.moment), _rotated(self.inertia, rotation))


@dataclass
class Joint:
    """A base point and frame that move relative to those of the parent joint by some of the speeds.

    ``base`` is the vector from the parent's base point, with components in the parent's frame. ``omega`` and
    ``velocity`` are the columns of S by speed, in the joint's frame.
    """

    parent: Joint | None
    frame: Frame
    base: Triple
    omega: dict[int, Triple]
    velocity: dict[int, Triple]
    own: RigidMass
    children: dict[tuple[object, ...], Joint] = field(default_factory=dict)

    @property
    def rotates(self) -> bool:
        """Whether the frame differs from the parent's."""
        return self.parent is not None and self.frame is not self.parent.frame

    @property
    def speeds(self) -> list[int]:
        """The speeds that move the joint relative to its parent."""
        return sorted({*self.omega, *self.velocity})

    @property
    def is_moved(self) -> bool:
        """Whether any speed moves this joint or one nearer to the root."""
        return bool(self.speeds) or (self.parent is not None and self.parent.is_moved)

    def conjugate(self, r: int, linear: Triple, angular: Triple) -> Node:
        """The momentum conjugate to speed ``r``: its columns of S times linear and angular momentum."""
        zero = null(linear[0].graph)
        return dot(self.omega.get(r, zero), angular) + dot(self.velocity.get(r, zero), linear)


class JointTree:
    """The joints of a model, parents before children."""

    def __init__(self, system: System) -> None:
        self._system = system
        graph = system.graph
        self.root = Joint(None, system.model.frame, null(graph), {}, {}, RigidMass.none(graph))
        self.joints = [self.root]

    @classmethod
    def of(cls, system: System, bodies: Sequence[Body]) -> JointTree | None:
        """The tree, or None if the bodies form none (a frame is not below the one before, or a velocity was set)."""
        tree = cls(system)
        return tree if all(tree._attach(body) for body in bodies) else None

    def _attach(self, body: Body) -> bool:
        system, none = self._system, RigidMass.none(self._system.graph)
        place = system.points.placement(body.point)
        if not system.points.is_at_rest(place.base):
            return False
        joint, rho = self.root, none.moment
        for segment in place.segments:
            turned = self._turn(joint, rho, segment.frame)
            if turned is None:
                return False
            joint, rho = self._slide(*turned, segment)
        if not body.mass.is_zero:
            joint.own = joint.own.plus(replace(none, mass=body.mass).moved(rho))
        if body.inertia is not None:
            if not system.frames.is_oriented(body.inertia_frame):
                return False
            turned = self._turn(joint, rho, body.inertia_frame)
            if turned is None or body.frame is not body.inertia_frame:
                return False
            turned[0].own = turned[0].own.plus(replace(none, inertia=body.inertia))
        return True

    def _turn(self, joint: Joint, rho: Triple, frame: Frame) -> tuple[Joint, Triple] | None:
        """The joint with ``frame`` at offset ``rho`` from ``joint``; None if ``frame`` is not below its frame."""
        frames = self._system.frames
        if not frames.is_below(frame, joint.frame):
            return None
        path: list[Frame] = []
        while frame is not joint.frame:
            path.append(frame)
            frame = frames.parent(frame)
        for inner in reversed(path):
            if not frames.moves_with_orientation(inner):
                return None
            relative = self._system.partial_velocities(frames.relative_omega(inner, inner))
            joint = self._child(joint, inner, rho, relative, {})
            rho = null(self._system.graph)
        return joint, rho

    def _slide(self, joint: Joint, rho: Triple, segment: Segment) -> tuple[Joint, Triple]:
        """Follow a segment: a constant segment is added to the offset, a varying one is a joint."""
        system = self._system
        rate = mapped(system.rate, segment.components)
        rho = plus(rho, segment.components)
        velocity = system.partial_velocities(rate)
        if not velocity:
            return joint, rho
        return self._child(joint, joint.frame, rho, {}, velocity), null(system.graph)

    def _child(
        self, parent: Joint, frame: Frame, base: Triple, omega: dict[int, Triple], velocity: dict[int, Triple]
    ) -> Joint:
        key = (frame, *base)
        if key not in parent.children:
            joint = Joint(parent, frame, base, omega, velocity, RigidMass.none(self._system.graph))
            parent.children[key] = joint
            self.joints.append(joint)
        return parent.children[key]


def _rotated(inertia: Inertia, rotation: Matrix) -> Inertia:
    """``R^T I R``; rotations about an axis of the frame cost 16 operations instead of 45."""
    for axis in range(3):
        if rotation[axis][axis].is_one:
            return _rotated_about(inertia, axis, rotation)
    columns = list(zip(*rotation, strict=True))
    half = [[dot(row, column) for column in columns] for row in square(inertia)]
    return components([[dot(column, other) for other in zip(*half, strict=True)] for column in columns])


def _rotated_about(inertia: Inertia, axis: int, rotation: Matrix) -> Inertia:
    tensor, j, k = square(inertia), (axis + 1) % 3, (axis + 2) % 3
    # R = [[c, s], [-s, c]] in the plane (j, k)
    c, s = rotation[j][j], rotation[j][k]
    jj, kk, jk = tensor[j][j], tensor[k][k], tensor[j][k]
    aj, ak = tensor[axis][j], tensor[axis][k]
    g = c * (jj - kk) - s * (2 * jk)
    tensor[j][j] = kk + c * g
    tensor[k][k] = jj - c * g
    tensor[j][k] = tensor[k][j] = jk + s * g
    tensor[axis][j] = tensor[j][axis] = c * aj - s * ak
    tensor[axis][k] = tensor[k][axis] = s * aj + c * ak
    return components(tensor)


def composite_matrix(system: System, tree: JointTree) -> Lower:
    """The lower triangle of Q, column by column from the composite inertia beyond each joint."""
    composites = {id(joint): joint.own for joint in tree.joints}
    for joint in reversed(tree.joints):
        if joint.parent is not None:
            mass = composites[id(joint)]
            if joint.rotates:
                mass = mass.rotated_inwards(system.frames.rotation(joint.frame))
            composites[id(joint.parent)] = composites[id(joint.parent)].plus(mass.moved(joint.base))
    lower = [[system.graph.zero] * (r + 1) for r in range(len(system.u))]
    for joint in tree.joints:
        for s in joint.speeds:
            _add_column(system, lower, joint, s, composites[id(joint)])
    return lower


def _add_column(system: System, lower: Lower, joint: Joint, s: int, mass: RigidMass) -> None:
    """Add the contribution of speed ``s`` at ``joint`` to Q, from the joint to the root."""
    zero = null(system.graph)
    omega, velocity = joint.omega.get(s, zero), joint.velocity.get(s, zero)
    linear = plus(scaled(mass.mass, velocity), cross(omega, mass.moment))
    angular = plus(product(mass.inertia, omega), cross(mass.moment, velocity))
    for r in joint.speeds:
        if r <= s:
            lower[s][r] = lower[s][r] + joint.conjugate(r, linear, angular)
    while joint.parent is not None and joint.parent.is_moved:
        if joint.rotates:
            linear, angular = (system.frames.inward(joint.frame, momentum) for momentum in (linear, angular))
        angular = plus(angular, cross(joint.base, linear))
        joint = joint.parent
        for r in joint.speeds:
            value = joint.conjugate(r, linear, angular)
            row, column = max(r, s), min(r, s)
            lower[row][column] = lower[row][column] + (value + value if r == s else value)
