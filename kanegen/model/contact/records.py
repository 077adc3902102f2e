"""Unilateral constraints, friction and latches: what a user writes, and the contacts a model has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from kanegen.model.contact.laws import ContactLaw, Coulomb, Restitution, Value, decay


@dataclass(frozen=True)
class Unilateral:
    """An inequality ``gap >= 0``: open above zero, compressive force only.

    Parameters
    ----------
    gap
        Expression of t, q, inputs and parameters (m or rad); with u or q' in it a constraint at velocity level, such as
        a ratchet.
    law
        :class:`Restitution` (rigid; the default, without rebound), or a law that acts on a violated gap, such as
        :class:`KelvinVoigt`; docs/contact.md lists all.
    friction
        :class:`Coulomb`, or None.
    slip
        With friction: one or two components of the slip velocity along orthonormal directions, m/s, affine in u. The
        multipliers are components of a force along the same directions: their lengths and their angle, which cannot be
        read from velocities, enter ``|F_t| <= mu N``.
    name
        Name in messages and results; None: "contact 1" and so on, counted among the unilateral constraints.
    applied_at
        Where and along which unit vectors the force of each row acts: only a model with ``reactions`` or
        ``auxiliary_speeds`` must know. For the normal and then each direction of slip ``(point, direction)``, a point
        of the body; between two bodies a pair for each, ``((P1, n), (P2, -n))``; for a torque ``(frame, axis)``.
    """

    gap: Any
    law: ContactLaw = field(default_factory=Restitution)
    friction: Coulomb | None = None
    slip: Any = ()
    name: str | None = None
    applied_at: Any = ()


@dataclass(frozen=True)
class Bilateral:
    """A constraint that is always closed, in both directions; friction at it has its multiplier for a normal force.

    Parameters
    ----------
    constraint
        Expression of t, q, inputs and parameters that is zero; with u or q' at velocity level. The gradient must be a
        unit vector in the direction of the normal force for the multiplier to be a force in N.
    decay_rate
        Rate, 1/s, at which a violation decays: ``phi'' + 2 decay_rate phi' + decay_rate^2 phi = 0``.
    """

    constraint: Any
    decay_rate: Any = 10.0


@dataclass(frozen=True)
class Friction:
    """Friction at a joint, or of a body that always stays on its ground.

    Parameters
    ----------
    slip
        One or two components of the slip velocity along orthonormal directions, m/s, affine in u.
    law
        :class:`Coulomb`.
    normal
        The normal force, N: an expression of t, q, u, inputs and parameters; or :class:`Bilateral`, a constraint of
        which the model has no other row, whose multiplier it is.
    name
        None: "friction 1" and so on, counted among the frictions.
    applied_at
        As for :class:`Unilateral`; under a given load there is no normal row.
    """

    slip: Any
    law: Coulomb
    normal: Any
    name: str | None = None
    applied_at: Any = ()


@dataclass(frozen=True)
class Latch:
    """A constraint that events impose and remove (:class:`Event`).

    Parameters
    ----------
    name
        Name by which events call it.
    constraint
        Expression of t, q, inputs and parameters that is zero while it is closed; with u or q' at velocity level.
    closed
        Whether it is closed when a run starts.
    decay_rate
        Rate, 1/s, at which a violation decays.
    applied_at
        As for :class:`Unilateral`.
    """

    name: str
    constraint: Any
    closed: bool = False
    decay_rate: Any = 10.0
    applied_at: Any = ()


@dataclass(frozen=True)
class Contact:
    """One contact of a model: a normal row or a given load, then the rows of its slip velocity.

    ``where`` says where the user wrote it, ``first_row`` is the index of its first row among all contact rows.
    ``level`` is 2 for a gap in positions, 1 in velocities. ``gap`` None: the normal force is ``load``. ``applied_at``:
    for each row pairs of place and direction, or nothing.
    """

    name: str
    where: str
    kind: str
    first_row: int
    applied_at: tuple[tuple[tuple[Any, Any], ...], ...]
    gap: Any = None
    level: int = 2
    law: ContactLaw | None = None
    decay_rate: Any = None
    load: Any = None
    friction: Coulomb | None = None
    slip: tuple[Any, ...] = ()
    closed: bool = False

    @property
    def n_rows(self) -> int:
        """Contact rows: the normal, then the directions of slip."""
        return (self.gap is not None) + len(self.slip)

    @property
    def row_names(self) -> tuple[str, ...]:
        """A name for each row."""
        n = len(self.slip)
        slip = (f"{self.name} slip {k + 1}" if n > 1 else f"{self.name} slip" for k in range(n))
        return (*([self.name] if self.gap is not None else []), *slip)

    @property
    def forces(self) -> tuple[tuple[Any, Any], ...]:
        """Place and direction of the forces of all rows."""
        return tuple(pair for pairs in self.applied_at for pair in pairs)

    @property
    def conserves_energy(self) -> bool:
        """Whether the energy does not change while the contact acts, between impacts."""
        return self.friction is None and (self.law is None or self.law.conserves_energy)

    @property
    def restitution(self) -> Any:
        """Newton's coefficient of restitution."""
        return sympy.S.Zero if self.law is None else self.law.restitution

    def target(self, gap: Any, rate: Any) -> Any:
        """The acceleration of the closed normal row; zero where a law gives a force."""
        if self.law is None:
            return decay(self.decay_rate, gap, rate, self.level)
        return self.law.target(gap, rate, self.level)

    def force(self, gap: Any, rate: Any) -> Any:
        """The normal force, N, that a law or the user gives; zero where it is a multiplier."""
        if self.load is not None:
            return self.load
        return sympy.S.Zero if self.law is None else self.law.force(-gap, -rate)

    def values(self) -> tuple[Value, ...]:
        """The values of the laws, with the intervals they must lie in."""
        own = (Value("decay_rate", self.decay_rate, 0.0),) if self.law is None and self.gap is not None else ()
        laws = (law.values() for law in (self.law, self.friction) if law is not None)
        return (*own, *(value for values in laws for value in values))

    def run_values(self) -> tuple[Value, ...]:
        """What is known in a run only, with the intervals it must lie in: values of the laws, and a given load."""
        load = () if self.load is None else (Value("normal force", self.load, 0.0),)
        order = () if self.friction is None else self.friction.order()
        return tuple(value for value in (*load, *self.values(), *order) if not value.expression.is_number)


def resolved_contacts(
    records: Sequence[Unilateral | Friction | Latch | None], level: Callable[[Any], int]
) -> tuple[Contact, ...]:
    """The contacts of normalized records; None where one could not be read.

    ``level`` is that of an expression: 2 in positions, 1 in speeds.
    """
    contacts: list[Contact] = []
    resolve = {Unilateral: _unilateral, Friction: _friction, Latch: _latch}
    for k, record in enumerate(records):
        if record is not None:
            # Names are counted by kind: a further latch leaves "friction 1" what it was.
            number = sum(isinstance(other, type(record)) for other in records[: k + 1])
            first = sum(contact.n_rows for contact in contacts)
            shared = {"where": f"contacts[{k}]", "first_row": first, "applied_at": record.applied_at}
            contacts.append(Contact(**resolve[type(record)](record, number, level), **shared))
    return tuple(contacts)


def _unilateral(record: Any, number: int, level: Callable[[Any], int]) -> dict[str, Any]:
    return {
        "name": f"contact {number}" if record.name is None else record.name,
        "kind": record.law.kind,
        "gap": record.gap,
        "level": level(record.gap),
        "law": record.law,
        "friction": record.friction,
        "slip": record.slip,
    }


def _friction(record: Any, number: int, level: Callable[[Any], int]) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": "load", "load": record.normal}
    if isinstance(record.normal, Bilateral):
        fields = {"kind": "bilateral", **_held(record.normal, level)}
    name = f"friction {number}" if record.name is None else record.name
    return {**fields, "name": name, "friction": record.law, "slip": record.slip, "closed": True}


def _latch(record: Any, number: int, level: Callable[[Any], int]) -> dict[str, Any]:
    return {"name": record.name, "kind": "latch", "closed": record.closed, **_held(record, level)}


def _held(record: Any, level: Callable[[Any], int]) -> dict[str, Any]:
    """The fields of a constraint that holds in both directions."""
    return {"gap": record.constraint, "level": level(record.constraint), "decay_rate": record.decay_rate}
