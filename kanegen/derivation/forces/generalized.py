"""Energies, and generalized forces and momenta by one reverse pass over the velocities.

Every velocity is affine in u. The generalized force of forces R and torques M is therefore the gradient of their power
at fixed forces: ``F_r = d/du_r sum (v . R + w . M)`` (Kane and Levinson 1985, section 4.4). Velocities are computed
recursively along the frame tree, so that the reverse pass is the recursion of forces from the tips to the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kanegen.derivation.contacts import ContactRows, contact_loads, contact_rates
from kanegen.derivation.geometry.frames import Frame, Frames
from kanegen.derivation.geometry.points import Points, total_offset
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, dot, is_null, plus, scaled
from kanegen.derivation.inertia.bodies import Body, Force, Torque, inertia_torque, lower_loads, lowered, product
from kanegen.errors import DerivationError
from kanegen.graph import Node, gradient
from kanegen.model.expressions import symbol_name

Momentum: TypeAlias = tuple[Frame, Triple, Triple]
"""A velocity and the momentum conjugate to it, with components in the frame."""


class GeneralizedForces:
    """Collects velocities with the forces conjugate to them, and computes generalized forces."""

    def __init__(self, system: System, loads: Iterable[Force | Torque] = ()) -> None:
        self._system = system
        self._forces: dict[Triple, Triple] = {}
        self.add_all(loads)

    def add(self, velocity: Triple, force: Triple) -> None:
        """Add the power ``velocity . force`` (components of both in one frame)."""
        if not is_null(force):
            known = self._forces.get(velocity)
            self._forces[velocity] = force if known is None else plus(known, force)

    def add_force(self, force: Force) -> None:
        motion = self._system.points.motion(force.point)
        self.add(motion.velocity, self._system.frames.express(force.parts, motion.frame))

    def add_all(self, loads: Iterable[Force | Torque]) -> None:
        """Add forces and torques."""
        for load in loads:
            if isinstance(load, Force):
                self.add_force(load)
            else:
                for frame, components in load.parts.items():
                    self.add(self._system.frames.omega(load.frame, frame), components)

    def add_loads(self, bodies: Sequence[Body], weights: bool) -> None:
        """Add the loads of the model, its contact forces and, if ``weights``, the weights of uniform gravity.

        The power of contact forces follows from the rates of gaps or, with auxiliary speeds, from ``applied_at``.
        """
        system, zero = self._system, self._system.graph.zero
        self.add_all(lower_loads(system))
        if system.auxiliary:
            self.add_all(contact_loads(system))
        else:
            for rate, multiplier in contact_rates(system):
                self.add((rate, zero, zero), (multiplier, zero, zero))
        if weights and system.gravity is not None:
            for body in bodies:
                if not body.mass.is_zero:
                    self.add_force(Force(body.point, {system.model.frame: scaled(body.mass, system.gravity)}))

    def add_inertia(self, bodies: Sequence[Body], points: Points, frames: Frames | None = None) -> None:
        """Add the inertia forces ``-(m v)'`` and torques ``-H'`` with the accelerations of ``points`` and ``frames``.

        By default these are the accelerations at u' = 0. With ``weighted_points`` they include the weights.
        """
        frames, minus_one = frames or self._system.frames, self._system.graph.const(-1)
        for body in bodies:
            if not body.mass.is_zero:
                motion = points.motion(body.point)
                self.add(motion.velocity, scaled(-body.mass, motion.acceleration))
                self.add(motion.velocity, scaled(-body.mass_rate, motion.velocity))
            if body.inertia is not None:
                frame = body.inertia_frame
                omega, alpha = frames.omega(body.frame, frame), frames.alpha(body.frame, frame)
                self.add(omega, scaled(minus_one, inertia_torque(body.inertia, omega, alpha)))
                if body.inertia_rate is not None:
                    self.add(omega, scaled(minus_one, product(body.inertia_rate, omega)))

    @property
    def components(self) -> list[tuple[Node, Node]]:
        """Components of velocities and of the forces conjugate to them."""
        pairs = (zip(velocity, force, strict=True) for velocity, force in self._forces.items())
        return [pair for vectors in pairs for pair in vectors]

    def conjugate_to(self, speeds: Sequence[Node]) -> tuple[Node, ...]:
        """Generalized forces conjugate to ``speeds``."""
        outputs = [component for velocity in self._forces for component in velocity]
        weights = [component for force in self._forces.values() for component in force]
        return tuple(gradient(outputs, weights, speeds)) if outputs else (self._system.graph.zero,) * len(speeds)


def impulse_rows(system: System) -> list[tuple[Node, ...]]:
    """Generalized impulses (n_u,) of each of the model's named impulses, N s or N m s."""
    loads = (lowered(system, pairs) for pairs in system.model.impulses.values())
    return [GeneralizedForces(system, impulses).conjugate_to(system.u) for impulses in loads]


def require_places(system: System, contact_rows: ContactRows) -> None:
    """Require that unit loads at the places given by ``applied_at`` have the generalized forces W of the contact rows.

    Raises
    ------
    DerivationError
        If they differ, naming the contact, the row and the speed.
    """
    for contact in system.model.resolved_contacts:
        rows = contact_rows.rows[contact.first_row :]
        for name, pairs, row in zip(contact.row_names, contact.applied_at, rows, strict=False):
            forces = system.settled(GeneralizedForces(system, lowered(system, pairs)).conjugate_to(system.u))
            for speed, force, w in zip(system.model.speeds, forces, row.W, strict=True):
                if not system.vanish([force - w]):
                    (acting, *_), (expected, *_) = system.samples([force, w])
                    where = " and ".join(f"({place}, {vector})" for place, vector in pairs)
                    raise DerivationError(
                        f"applied_at of contact {contact.name!r} contradicts its row {name!r}: at a random state unit "
                        f"loads at {where} have the generalized force {acting:.6g} in speed {symbol_name(speed)}, the "
                        f"row {expected:.6g}; expected unit vectors along which the gap or the slip velocity grows, at "
                        f"points that move with the bodies"
                    )


# -- momenta and energies ------------------------------------------------------------------------------------


def body_momenta(system: System, body: Body) -> list[Momentum]:
    """Frame, velocity and momentum of a body, once for the mass center and once for the rotation."""
    momenta: list[Momentum] = []
    if not body.mass.is_zero:
        motion = system.points.motion(body.point)
        momenta.append((motion.frame, motion.velocity, scaled(body.mass, motion.velocity)))
    if body.inertia is not None:
        omega = system.frames.omega(body.frame, body.inertia_frame)
        momenta.append((body.inertia_frame, omega, product(body.inertia, omega)))
    return momenta


def momentum(system: System, momenta: Iterable[Momentum], speeds: Sequence[Node]) -> tuple[Node, ...]:
    """Generalized momenta conjugate to ``speeds``; ``Q u + N`` for all speeds of the system."""
    forces = GeneralizedForces(system)
    for _, velocity, conjugate in momenta:
        forces.add(velocity, conjugate)
    return forces.conjugate_to(speeds)


def momentum_remainder(system: System, momenta: Iterable[Momentum]) -> tuple[Node, ...]:
    """``N_r = sum m v_r . v_t + w_r . I . w_t``, (n_u,)."""
    forces = GeneralizedForces(system)
    for _, velocity, conjugate in momenta:
        forces.add(velocity, remainder(system, conjugate))
    return forces.conjugate_to(system.u)


def remainder(system: System, a: Triple) -> Triple:
    """The value at u = 0 of a vector that is affine in u."""
    x, y, z = system.at_rest(a)
    return (x, y, z)


def body_energy(system: System, bodies: Sequence[Body]) -> Node:
    """``K = 1/2 sum m v.v + w.I.w``, J."""
    return system.graph.sum(dot(v, p) for body in bodies for _, v, p in body_momenta(system, body)) / 2


def with_gravity(system: System, bodies: Sequence[Body], total: Node) -> Node:
    """The potential energy ``total`` plus that of uniform gravity, J.

    Raises
    ------
    DerivationError
        If the model has no potential energy, or gravity acts on a point of unknown position.
    """
    model, frames = system.model, system.frames
    if not model.has_potential:
        raise DerivationError(
            f"model {model.name!r} has no potential energy: give Model(potential_energy=...) or Model(gravity=...); "
            f"loads do not define one"
        )
    if system.gravity is None:
        return total
    for body in bodies:
        if not body.mass.is_zero:
            place = system.points.placement(body.point)
            if not system.points.is_at_rest(place.base):
                raise DerivationError(
                    f"the potential energy of gravity needs the position of {body.name}: point {body.point.name} is "
                    f"not positioned from a fixed point (its velocity was set instead); give positions, or put the "
                    f"weight into loads and give potential_energy"
                )
            position = frames.express(total_offset(place.segments), frames.inertial)
            total = total - body.mass * dot(system.gravity, position)
    return total
