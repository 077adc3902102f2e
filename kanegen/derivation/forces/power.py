"""Generalized forces by one reverse pass over the velocities.

Every velocity is affine in u, so the generalized force of forces and torques is the gradient with respect to u of
their power, the forces held fixed: ``F_r = d/du_r sum (v . R + w . M)`` (Kane and Levinson 1985, section 4.4).
Velocities are recursive along the frame tree; their reverse pass is the force recursion from the tips to the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kanegen.derivation.contact.rows import ContactRows, contact_loads, contact_rates
from kanegen.derivation.geometry.frames import Frames
from kanegen.derivation.geometry.points import Points
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, is_null, plus, scaled
from kanegen.derivation.inertia.bodies import Body, Force, Torque, lower_loads, lowered
from kanegen.derivation.inertia.tensors import inertia_torque, product
from kanegen.errors import DerivationError
from kanegen.graph import Node, gradient
from kanegen.model.expressions import symbol_name


class Power:
    """Velocities and the forces conjugate to them, gathered into generalized forces."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._forces: dict[tuple[Node, Node, Node], Triple] = {}

    def add(self, velocity: Triple, force: Triple) -> None:
        """The power ``velocity . force`` (components in one frame)."""
        if not is_null(force):
            known = self._forces.get(velocity)
            self._forces[velocity] = force if known is None else plus(known, force)

    def add_force(self, force: Force) -> None:
        frames = self._system.frames
        motion = self._system.points.motion(force.point)
        self.add(motion.velocity, frames.express(force.parts, motion.frame))

    def add_torque(self, torque: Torque) -> None:
        for frame, components in torque.parts.items():
            self.add(self._system.frames.omega(torque.frame, frame), components)

    def add_all(self, loads: Iterable[Force | Torque]) -> None:
        """Forces and torques."""
        for load in loads:
            if isinstance(load, Force):
                self.add_force(load)
            else:
                self.add_torque(load)

    def add_loads(self, bodies: Sequence[Body], weights: bool) -> None:
        """The loads of the model, its contact forces and, where ``weights``, the weights of uniform gravity."""
        self.add_all(lower_loads(self._system))
        self._add_contacts()
        gravity = self._system.gravity
        if weights and gravity is not None:
            for body in bodies:
                if not body.mass.is_zero:
                    self.add_force(Force(body.point, {self._system.model.frame: scaled(body.mass, gravity)}))

    def _add_contacts(self) -> None:
        """Contact forces: by the rates of gaps, unless there are auxiliary speeds, which these do not contain."""
        zero = self._system.graph.zero
        if self._system.auxiliary:
            self.add_all(contact_loads(self._system))
            return
        for rate, multiplier in contact_rates(self._system):
            self.add((rate, zero, zero), (multiplier, zero, zero))

    def add_inertia(self, bodies: Sequence[Body], points: Points, frames: Frames | None = None) -> None:
        """The inertia forces ``-(m v)'`` and torques ``-H'`` with the accelerations of ``points`` and ``frames``.

        By default these are the accelerations at u' = 0; with ``weighted_points`` the weights are in them.
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

    def add_momentum(self, bodies: Sequence[Body], at_rest: bool) -> None:
        """Momenta ``m v`` and ``I w``, of the velocities at u = 0 only where ``at_rest``."""
        system = self._system
        for body in bodies:
            for velocity, momentum in body_momenta(system, body):
                held = remainder(system, momentum) if at_rest else momentum
                self.add(velocity, held)

    def generalized(self, speeds: Sequence[Node]) -> tuple[Node, ...]:
        """Generalized forces conjugate to ``speeds``."""
        outputs = [component for velocity in self._forces for component in velocity]
        weights = [component for force in self._forces.values() for component in force]
        if not outputs:
            return tuple(self._system.graph.zero for _ in speeds)
        return tuple(gradient(outputs, weights, speeds))


def impulse_rows(system: System) -> list[tuple[Node, ...]]:
    """Generalized impulses (n_u,) of each of the model's named impulses, N s or N m s."""
    rows = []
    for pairs in system.model.impulses.values():
        power = Power(system)
        power.add_all(lowered(system, pairs))
        rows.append(power.generalized(system.u))
    return rows


def require_places(system: System, contact_rows: ContactRows) -> None:
    """Compare the places at which contact forces act with the rows: unit loads there have the generalized force W.

    Raises
    ------
    DerivationError
        Naming the contact, the row and the speed that tell them apart.
    """
    for contact in system.model.resolved_contacts:
        rows = contact_rows.rows[contact.first_row :]
        for name, pairs, row in zip(contact.row_names, contact.applied_at, rows, strict=False):
            _require_force(system, f"applied_at of contact {contact.name!r} contradicts its row {name!r}", pairs, row.W)


def _require_force(system: System, title: str, pairs: Sequence[tuple[Any, Any]], W: Sequence[Node]) -> None:
    power = Power(system)
    power.add_all(lowered(system, pairs))
    for speed, force, w in zip(system.model.speeds, system.settled(power.generalized(system.u)), W, strict=True):
        if not system.vanish([force - w]):
            (acting,), (expected,) = (values[:1] for values in system.samples([force, w]))
            where = " and ".join(f"({place}, {vector})" for place, vector in pairs)
            raise DerivationError(
                f"{title}: at a random state unit loads at {where} have the generalized force {acting:.6g} in speed "
                f"{symbol_name(speed)}, the row {expected:.6g}; expected unit vectors along which the gap or the slip "
                "velocity grows, at points that move with the bodies"
            )


def body_momenta(system: System, body: Body) -> list[tuple[Triple, Triple]]:
    """Pairs (velocity, momentum) of a body: translation of the mass center, rotation."""
    pairs: list[tuple[Triple, Triple]] = []
    if not body.mass.is_zero:
        velocity = system.points.motion(body.point).velocity
        pairs.append((velocity, scaled(body.mass, velocity)))
    if body.inertia is not None:
        omega = system.frames.omega(body.frame, body.inertia_frame)
        pairs.append((omega, product(body.inertia, omega)))
    return pairs


def remainder(system: System, a: Triple) -> Triple:
    """The part of an affine function of u that is left at u = 0."""
    x, y, z = system.at_rest(a)
    return (x, y, z)
