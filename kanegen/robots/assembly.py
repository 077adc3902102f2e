"""The SymPy objects of a robot: frames, points, bodies and loads, from its tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import sympy
from sympy.physics.mechanics import Point, ReferenceFrame, RigidBody, dynamicsymbols
from sympy.physics.vector import Dyadic

from kanegen.model import Coulomb, Friction, Input, Unilateral
from kanegen.robots.names import Names
from kanegen.robots.records import Joint
from kanegen.robots.rigid import NOWHERE, Inertial, Place, in_plane
from kanegen.robots.structure import Carried, Structure

BASE: Final = "base"
"""The name of the free joint of ``floating_base=True`` in symbols."""

MOMENTS: Final = (("Ixx", 0, 0), ("Iyy", 1, 1), ("Izz", 2, 2), ("Ixy", 0, 1), ("Iyz", 1, 2), ("Ixz", 0, 2))
"""Names of moments and products of inertia, and their places in the matrix."""


class Attached(NamedTuple):
    """A frame and the point at its origin."""

    frame: Any
    point: Any


class Motion(NamedTuple):
    """Symbols of a joint: coordinates and speeds (empty if it follows another joint), position and rate, and torque.

    ``position``, ``rate`` and ``effort`` (an input, N m or N) are those of a joint with one coordinate, else None.
    """

    coordinates: tuple[Any, ...] = ()
    speeds: tuple[Any, ...] = ()
    position: Any = None
    rate: Any = None
    effort: Any = None


@dataclass(frozen=True)
class Choices:
    """What the user asked for: see `from_urdf`."""

    floating_base: bool
    parameters: bool
    limits: bool
    friction: bool


@dataclass
class Assembly:
    """Arguments of a model while they are collected, and the frames and symbols by names of the file."""

    tree: Structure
    order: Mapping[str, Joint]
    choices: Choices
    ground: Attached = field(default_factory=lambda: _ground())
    names: Names = field(default_factory=Names)
    values: dict[Any, float] = field(default_factory=dict)
    initial: dict[Any, float] = field(default_factory=dict)
    kinematics: list[Any] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    loads: list[Any] = field(default_factory=list)
    contacts: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    motions: dict[str, Motion] = field(default_factory=dict)
    groups: dict[str, Attached] = field(default_factory=dict)
    _links: dict[str, Attached] = field(default_factory=dict)

    def assemble(self) -> None:
        """Symbols in the order of the file, then the bodies from the root on."""
        if self.choices.floating_base:
            self.motions[BASE] = self._free(BASE)
        for joint in self.order.values():
            self.motions[joint.name] = self._motion(joint)
        for name, leader in self.tree.leaders.items():
            if leader.joint != name:
                self.motions[name] = self._following(*leader)
        self.groups[self.tree.root] = self._base()
        for carried in self.tree.carried:
            self._attach(carried)

    def link(self, group: str, name: str) -> Attached:
        """The frame and the origin of a link in a group, always the same ones."""
        if name not in self._links:
            place = self.tree.groups[group].places[name]
            self._links[name] = _placed(self.groups[group], place, name, place.position)
        return self._links[name]

    def gravity(self, components: tuple[float, ...]) -> Any:
        """The acceleration as a vector of parameters."""
        return _vector(self.ground.frame, self._numbers("gravity_x gravity_y gravity_z", "", components))

    def number(self, prefix: str, name: str, value: float) -> Any:
        """A parameter with this value, or the value; a zero, which stays one, has no parameter."""
        if value == 0.0 or not self.choices.parameters:
            return sympy.Float(value) if value else sympy.S.Zero
        symbol = sympy.Symbol(self.names.new(prefix, name))
        self.values[symbol] = float(value)
        return symbol

    def _numbers(self, prefixes: str, name: str, values: Any) -> tuple[Any, ...]:
        prefixed = zip(prefixes.split(), values, strict=True)
        return tuple(self.number(prefix, name, float(value)) for prefix, value in prefixed)

    def _coordinate(self, name: str, suffix: str, start: float, rate: bool = True) -> tuple[Any, Any]:
        """A coordinate, and the speed that is its rate unless ``rate`` is false; then None."""
        q = dynamicsymbols(self.names.new("q", name, suffix))
        self.initial[q] = start
        if not rate:
            return q, None
        u = self._speed(name, suffix)
        self.kinematics.append(u - q.diff(dynamicsymbols._t))
        return q, u

    def _speed(self, name: str, suffix: str) -> Any:
        u = dynamicsymbols(self.names.new("u", name, suffix))
        self.initial[u] = 0.0
        return u

    def _motion(self, joint: Joint) -> Motion:
        """The symbols of a joint of its own; one that follows another joint gets them later."""
        if joint.kind == "floating":
            return self._free(joint.name)
        if joint.kind == "planar":
            pairs = [self._coordinate(joint.name, suffix, 0.0) for suffix in ("1", "2", "angle")]
            return Motion(*(tuple(items) for items in zip(*pairs, strict=True)))
        if self.tree.leaders[joint.name].joint != joint.name:
            return Motion()
        q, u = self._coordinate(joint.name, "", _start(joint))
        effort = sympy.Symbol(self.names.new("tau", joint.name))
        self.inputs.append(Input(effort, default=0.0))
        return Motion((q,), (u,), q, u, effort)

    def _following(self, leader: str, multiplier: float, offset: float) -> Motion:
        motion = self.motions[leader]
        factor = sympy.Integer(int(multiplier)) if multiplier == int(multiplier) else sympy.Float(multiplier)
        shift = sympy.Float(offset) if offset else sympy.S.Zero
        return Motion((), (), factor * motion.position + shift, factor * motion.rate)

    def _free(self, name: str) -> Motion:
        """Position, Euler parameters (scalar first); the rates of the position, the angular velocity in the body."""
        position = [self._coordinate(name, axis, 0.0) for axis in "xyz"]
        e = [self._coordinate(name, f"e{k}", float(k == 0), rate=False)[0] for k in range(4)]
        turning = [self._speed(name, f"w{axis}") for axis in "xyz"]
        e0, e1, e2, e3 = e
        rates = sympy.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) * sympy.Matrix(turning)
        self.kinematics += [x.diff(dynamicsymbols._t) - rate / 2 for x, rate in zip(e, rates, strict=True)]
        return Motion((*(q for q, _ in position), *e), (*(u for _, u in position), *turning))

    def _base(self) -> Attached:
        """The root: fixed to the world, where its mass has no influence, or free."""
        if not self.choices.floating_base:
            return self.ground
        base = self._moved_freely(self.ground, self.tree.root, self.motions[BASE])
        self._add_body(self.tree.root, base)
        return base

    def _attach(self, carried: Carried) -> None:
        """The joint with its loads, and the body that it carries."""
        joint, motion = carried.joint, self.motions[carried.joint.name]
        parent = self._joint_place(carried)
        if joint.kind == "floating":
            child = self._moved_freely(parent, joint.child, motion)
        elif joint.kind == "planar":
            child = _moved_in_plane(parent, joint, motion)
        else:
            child = _moved_along_axis(parent, joint, motion)
            self._add_effort(joint, motion, parent, child)
        self.groups[joint.child] = child
        self._add_body(joint.child, child)

    def _joint_place(self, carried: Carried) -> Attached:
        """Where the child is at the position zero, on the side of the parent."""
        name = carried.joint.name
        offset = self._numbers("x y z", name, carried.place.position)
        return _placed(self.groups[carried.group], carried.place, f"{name}_parent", offset)

    def _moved_freely(self, parent: Attached, link: str, motion: Motion) -> Attached:
        frame = ReferenceFrame(link)
        frame.orient_quaternion(parent.frame, motion.coordinates[3:])
        frame.set_ang_vel(parent.frame, _vector(frame, motion.speeds[3:]))
        point = parent.point.locatenew(link, _vector(parent.frame, motion.coordinates[:3]))
        if parent.frame is self.ground.frame:
            point.set_vel(self.ground.frame, _vector(self.ground.frame, motion.speeds[:3]))
        return Attached(frame, point)

    def _add_body(self, link: str, place: Attached) -> None:
        body: Inertial = self.tree.groups[link].inertial
        if body.moves_nothing:
            return
        center = place.point
        if np.any(body.center):
            offset = _vector(place.frame, self._numbers("cx cy cz", link, body.center))
            center = center.locatenew(f"{link}_center", offset)
        mass = self.number("m", link, body.mass)
        moments = {(i, j): self.number(key, link, float(body.inertia[i, j])) for key, i, j in MOMENTS}
        self.bodies.append(RigidBody(link, center, place.frame, mass, (_dyadic(place.frame, moments), center)))

    def _add_effort(self, joint: Joint, motion: Motion, parent: Attached, child: Attached) -> None:
        """Input, damping, friction and limits of a joint with one coordinate."""
        effort = (motion.effort or sympy.S.Zero) - self.number("d", joint.name, joint.damping) * motion.rate
        if effort != 0:
            line = effort * _vector(parent.frame, joint.axis)
            sides = zip(parent, child, strict=True)
            (reference, carrier) = list(sides)[joint.kind == "prismatic"]
            self.loads += [(carrier, line), (reference, -line)]
        if self.choices.friction and joint.friction:
            limit = self.number("f", joint.name, joint.friction)
            self.contacts.append(Friction((motion.rate,), Coulomb(limit), normal=1, name=f"friction of {joint.name}"))
        if self.choices.limits:
            self._add_limits(joint, motion)

    def _add_limits(self, joint: Joint, motion: Motion) -> None:
        for side, sign in (("lower", 1), ("upper", -1)):
            value = getattr(joint.limits, side)
            if value is not None:
                gap = sign * (motion.position - self.number(side, joint.name, value))
                self.contacts.append(Unilateral(gap, name=f"{side} limit of {joint.name}"))


def _ground() -> Attached:
    """The inertial frame and a point at rest."""
    frame, origin = ReferenceFrame("N"), Point("O")
    origin.set_vel(frame, 0)
    return Attached(frame, origin)


def _start(joint: Joint) -> float:
    """The position between the limits that is nearest to zero."""
    lower, upper = joint.limits.lower, joint.limits.upper
    if lower is None or upper is None or lower > upper:
        return 0.0
    return min(max(0.0, lower), upper)


def _vector(frame: Any, components: Any) -> Any:
    """The vector of three components, without those that are zero."""
    parts = (_exact(c) * axis for c, axis in zip(components, frame, strict=True) if c != 0)
    return sum(parts, 0 * frame.x)


def _dyadic(frame: Any, moments: Mapping[tuple[int, int], Any]) -> Any:
    """The inertia with these entries and their mirror images, as SymPy's ``inertia``, which takes ten times as long."""
    axes = tuple(frame)
    entries = {**moments, **{(j, i): value for (i, j), value in moments.items()}}
    return Dyadic([(value, axes[i], axes[j]) for (i, j), value in entries.items() if value != 0])


def _exact(x: Any) -> Any:
    """A whole number as an integer, so that a unit vector has no factor."""
    if isinstance(x, sympy.Basic):
        return x
    return sympy.Integer(int(x)) if float(x).is_integer() else sympy.Float(float(x))


def _placed(carrier: Attached, place: Place, name: str, offset: Any) -> Attached:
    """A frame and a point fixed in the frame of a carrier, at ``offset``; those of the carrier where they coincide."""
    frame, point = carrier
    if not np.array_equal(place.rotation, NOWHERE.rotation):
        frame = ReferenceFrame(name)
        frame.orient_explicit(carrier.frame, sympy.Matrix(3, 3, [_exact(x) for x in place.rotation.flat]))
        frame.set_ang_vel(carrier.frame, 0)
    if any(x != 0 for x in offset):
        point = point.locatenew(name, _vector(carrier.frame, offset))
    return Attached(frame, point)


def _moved_along_axis(parent: Attached, joint: Joint, motion: Motion) -> Attached:
    axis = _vector(parent.frame, joint.axis)
    if joint.kind == "prismatic":
        return Attached(parent.frame, parent.point.locatenew(joint.child, motion.position * axis))
    frame = ReferenceFrame(joint.child)
    frame.orient_axis(parent.frame, axis, motion.position)
    frame.set_ang_vel(parent.frame, motion.rate * axis)
    return Attached(frame, parent.point)


def _moved_in_plane(parent: Attached, joint: Joint, motion: Motion) -> Attached:
    """Translation along two directions in the parent that are normal to the axis, and rotation about it."""
    first, second = (_vector(parent.frame, direction) for direction in in_plane(joint.axis))
    x, y, angle = motion.coordinates
    axis = _vector(parent.frame, joint.axis)
    frame = ReferenceFrame(joint.child)
    frame.orient_axis(parent.frame, axis, angle)
    frame.set_ang_vel(parent.frame, motion.speeds[2] * axis)
    return Attached(frame, parent.point.locatenew(joint.child, x * first + y * second))
