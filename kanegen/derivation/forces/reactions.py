"""Reactions on a set of bodies by Newton's and Euler's equations: rates of its momenta less the other loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sympy.physics.vector import ReferenceFrame

from kanegen.derivation.contacts import contact_loads
from kanegen.derivation.forces.generalized import GeneralizedForces, momentum
from kanegen.derivation.forces.inertia import Inertia
from kanegen.derivation.forms import difference
from kanegen.derivation.geometry.frames import Frame, FrameVector
from kanegen.derivation.geometry.points import Point
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, cross, is_null, mapped, null, plus, scaled
from kanegen.derivation.inertia.bodies import Body, Force, Torque, inertia_torque, lower_loads, product
from kanegen.errors import ModelError
from kanegen.graph import Node, reachable, substitute
from kanegen.model.geometry import position_path
from kanegen.model.reactions import Reaction
from kanegen.model.records import ModalPoint

MULTIPLIERS = "multipliers"
"""Input array of the graph: the multipliers of the constraint rows."""


class ForceSum:
    """The sum of forces, and the sum of moments about one point, with components in one frame."""

    def __init__(self, system: System, point: Point, frame: Frame) -> None:
        self._system = system
        self._point = point
        self._frame = frame
        self.force = self.torque = null(system.graph)

    def add_force(self, point: Point, parts: FrameVector) -> None:
        """Add a force at ``point`` and its moment."""
        express = self._system.frames.express
        force = express(parts, self._frame)
        self.force = plus(self.force, force)
        if point is not self._point and not is_null(force):
            arm = express(self._system.points.offset(point, self._point), self._frame)
            self.torque = plus(self.torque, cross(arm, force))

    def add_torque(self, parts: FrameVector) -> None:
        self.torque = plus(self.torque, self._system.frames.express(parts, self._frame))


def reaction_nodes(
    system: System, bodies: Sequence[Body], name: str, reaction: Reaction, n_rows: int
) -> tuple[Node, ...]:
    """Force and torque (6,) of a reaction, N and N m; u' and the multipliers (``n_rows``) are inputs.

    Raises
    ------
    ModelError
        If it is ambiguous whether a load acts on the set, or if ``multipliers`` names a row that J does not have.
    """
    total = ForceSum(system, reaction.point, reaction.frame)
    members = reaction.members(system.model.bodies)
    for k in members:
        _add_inertia(system, total, bodies[k])
    minus_one = system.graph.const(-1)
    for load in (*_loads_on(system, bodies, members, name, reaction), *_constraint_loads(system, reaction, n_rows)):
        parts = {frame: scaled(minus_one, components) for frame, components in load.parts.items()}
        if isinstance(load, Force):
            total.add_force(load.point, parts)
        else:
            total.add_torque(parts)
    return (*total.force, *total.torque)


def _add_inertia(system: System, total: ForceSum, body: Body) -> None:
    """Add ``(m v)'`` less the weight at the mass center, and H' about it."""
    if not body.mass.is_zero:
        motion = system.weighted_points.motion(body.point)
        acceleration = _accelerated(system, motion.acceleration, motion.velocity)
        total.add_force(body.point, {motion.frame: scaled(body.mass, acceleration)})
        total.add_force(body.point, {motion.frame: scaled(body.mass_rate, motion.velocity)})
    if body.inertia is not None:
        frame = body.inertia_frame
        omega = system.frames.omega(body.frame, frame)
        alpha = _accelerated(system, system.frames.alpha(body.frame, frame), omega)
        total.add_torque({frame: inertia_torque(body.inertia, omega, alpha)})
        if body.inertia_rate is not None:
            total.add_torque({frame: product(body.inertia_rate, omega)})


def _accelerated(system: System, at_rest: Triple, velocity: Triple) -> Triple:
    """The acceleration ``a = a_0 + sum v_r u_r'``, where a_0 (``at_rest``) is its value at u' = 0."""
    total = at_rest
    for partial, udot in zip(system.partials, system.udot, strict=True):
        total = plus(total, scaled(udot, mapped(partial, velocity)))
    return total


def _constraint_loads(system: System, reaction: Reaction, n_rows: int) -> Iterator[Force | Torque]:
    """Multiplier times direction for the constraint forces whose points of application the user gave."""
    for row, place, vector in reaction.all_multiplier_loads:
        if row >= n_rows:
            raise ModelError(
                f"multipliers names row {row} of J, which has {n_rows} rows: a constraint without speeds has none"
            )
        multiplier = system.graph.input(MULTIPLIERS, row)
        parts = {frame: scaled(multiplier, a) for frame, a in system.frames.lower_vector(vector).items()}
        yield Torque(place, parts) if isinstance(place, ReferenceFrame) else Force(place, parts)


def auxiliary_loads(
    system: System, masses: Inertia, forces: GeneralizedForces, equations: Sequence[Node]
) -> tuple[Node, ...]:
    """The loads that keep the auxiliary speeds zero, ``Q_a u' - P_a`` (Kane and Levinson 1985, section 4.9).

    Inputs that do not occur in the equations of motion (``equations``) are these unknown loads: they are set to zero in
    P_a. ``forces`` are all active and inertia forces of the system.
    """
    inertia = [
        system.graph.sum(partial(m) * a for partial, a in zip(system.partials, system.udot, strict=True))
        for m in momentum(system, masses.momenta(), system.auxiliary)
    ]
    elsewhere = {node.index for node in reachable(equations)}
    unknown = [r for r in system.r if r.index not in elsewhere]
    known = substitute(forces.conjugate_to(system.auxiliary), dict.fromkeys(unknown, system.graph.zero))
    return system.settled(difference(inertia, known))


# -- which loads act on the set ------------------------------------------------------------------------------

GROUND = -1
"""Index of the ground in lists of bodies; the ground belongs to no set."""


def _loads_on(
    system: System, bodies: Sequence[Body], members: Sequence[int], name: str, reaction: Reaction
) -> Iterator[Force | Torque]:
    """The loads of the model and its contact forces that act on the set; forces on modes are internal ones."""
    for load in (*lower_loads(system), *contact_loads(system)):
        if isinstance(_place(load), ModalPoint):
            continue
        listed = reaction.loads
        if _is_inside(system, bodies, members, name, load) if listed is None else _place(load) in listed:
            yield load


def _place(load: Force | Torque) -> Any:
    return load.point if isinstance(load, Force) else load.frame


def _is_inside(system: System, bodies: Sequence[Body], members: Sequence[int], name: str, load: Force | Torque) -> bool:
    """Whether the bodies on which the load may act are in the set; ModelError if only some of them are."""
    find = _carriers_of_force if isinstance(load, Force) else _carriers_of_torque
    carriers = find(system, bodies, _place(load))
    inside = {k in members for k in carriers}
    if len(inside) == 1:
        return inside.pop()
    names = ["the ground" if k == GROUND else bodies[k].name for k in carriers]
    carried = " and ".join(names) if names else "neither a body nor the ground"
    raise ModelError(
        f"reactions[{name!r}]: the load on {_place(load)} acts on {carried}, so it is ambiguous whether it acts on "
        "the set: name the points and frames of the loads that act on the set, Reaction(loads=(...))"
    )


def _carriers_of_force(system: System, bodies: Sequence[Body], point: Point) -> list[int]:
    """Bodies with this mass center, or else the ground for a point at rest, or else bodies in which the point is fixed.

    A point at rest that is positioned from the mass center of a body belongs to this body, which rotates about it.
    """
    centered = [k for k, body in enumerate(bodies) if body.point is point]
    if centered:
        return centered
    fixed = [k for k, body in enumerate(bodies) if _is_fixed(system, body, point)]
    if not system.vanish(system.points.motion(point).velocity):
        return fixed
    path = position_path(system.points.placement(point).base, point) or []
    return [k for k in fixed if bodies[k].point in path] or _ground(system, bodies)


def _is_fixed(system: System, body: Body, point: Point) -> bool:
    """Whether the point moves with the body: ``v = v_c + w x r``."""
    if position_path(body.point, point) is None:
        return False
    frames, points = system.frames, system.points
    frame = frames.inertial if body.frame is None else body.frame
    arm = frames.express(points.offset(point, body.point), frame)
    if body.frame is None and not system.vanish(arm):
        return False
    center, motion = points.motion(body.point), points.motion(point)
    carried = plus(frames.express({center.frame: center.velocity}, frame), cross(frames.omega(frame, frame), arm))
    return system.agree(frames.express({motion.frame: motion.velocity}, frame), carried)


def _carriers_of_torque(system: System, bodies: Sequence[Body], frame: Frame) -> list[int]:
    """Bodies with this frame, or else the ground for a nonrotating frame, or else bodies that rotate with it.

    A nonrotating frame that is oriented in the frame of a nonrotating body belongs to this body.
    """
    frames, inertial = system.frames, system.frames.inertial
    framed = [(k, body.frame) for k, body in enumerate(bodies) if body.frame is not None]
    same = [k for k, other in framed if other is frame]
    if frame is inertial:
        return list(dict.fromkeys((*same, *_ground(system, bodies))))
    if same:
        return same
    omega = frames.omega(frame, inertial)
    turning = [(k, other) for k, other in framed if system.agree(frames.omega(other, inertial), omega)]
    if not system.vanish(omega):
        return [k for k, _ in turning]
    owners = [k for k, other in turning if other is not inertial and frames.is_below(frame, other)]
    return owners or _ground(system, bodies)


def _ground(system: System, bodies: Sequence[Body]) -> list[int]:
    """The rigid bodies at rest, such as the ground of SymPy's System; GROUND if there are none."""
    inertial = system.frames.inertial
    rigid = [(k, body) for k, body in enumerate(bodies) if body.frame is not None]
    still = [(k, body) for k, body in rigid if system.vanish(system.frames.omega(body.frame, inertial))]
    return [k for k, body in still if system.vanish(system.points.motion(body.point).velocity)] or [GROUND]
