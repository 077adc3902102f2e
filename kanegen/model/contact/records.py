"""Unilateral constraints, friction and latches: what a user writes, and the contacts a model has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kanegen.model.contact.laws import Coulomb, Law, Restitution, Value
from kanegen.model.expressions import atoms, base_symbol, derivative_order
from kanegen.model.speeds import all_speeds

if TYPE_CHECKING:
    from kanegen.model.model import Model


@dataclass(frozen=True)
class Unilateral:
    """An inequality ``gap >= 0``: open above zero, compressive force only.

    Parameters
    ----------
    gap
        Expression of t, q, inputs and parameters (m or rad); with u or q' in it a constraint at velocity level, such as
        a ratchet.
    law
        :class:`Restitution` (rigid, the default without rebound), :class:`Stabilized`, :class:`KelvinVoigt` or
        :class:`HuntCrossley`.
    friction
        :class:`Coulomb`, or None.
    slip
        With friction: one or two components of the slip velocity along orthonormal directions, m/s, affine in u. The
        multipliers are components of a force along the same directions: their lengths and their angle, which velocities
        alone do not tell, enter ``|F_t| <= mu N``.
    name
        Name in messages and results; None: "contact 1" and so on, counted among the unilateral constraints.
    applied_at
        Where and along which unit vectors the force of each row acts: only a model with ``reactions`` or
        ``auxiliary_speeds`` must know. For the normal and then each direction of slip ``(point, direction)``, a point
        of the body; between two bodies a pair for each, ``((P1, n), (P2, -n))``; for a torque ``(frame, axis)``.
    """

    gap: Any
    law: Law = field(default_factory=Restitution)
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

    ``where`` says where the user wrote it. ``level`` is 2 for a gap in positions, 1 in velocities. ``gap`` None: the
    normal force is ``load``. ``applied_at``: for each row pairs of place and direction, or nothing.
    """

    name: str
    where: str
    kind: str
    level: int
    gap: Any
    law: Law | None
    decay_rate: Any
    load: Any
    friction: Coulomb | None
    slip: tuple[Any, ...]
    closed: bool
    applied_at: tuple[tuple[tuple[Any, Any], ...], ...]

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


def contacts_of(model: Model) -> tuple[Contact, ...]:
    """The contacts of a model, in the order in which the user gave them, which is that of their rows."""
    return tuple(_contact(model, k, item) for k, item in enumerate(model.contacts) if item is not None)


def first_rows(contacts: tuple[Contact, ...]) -> tuple[int, ...]:
    """The first row of each contact."""
    return tuple(sum(other.n_rows for other in contacts[:k]) for k in range(len(contacts)))


def level_of(model: Model, expression: Any) -> int:
    """2 for an expression of positions, 1 for one with speeds in it."""
    speeds, coordinates = set(all_speeds(model)), set(model.coordinates)
    moving = (
        base_symbol(atom) in speeds or (base_symbol(atom) in coordinates and derivative_order(atom) > 0)
        for atom in atoms((expression,))
    )
    return 1 if any(moving) else 2


def _contact(model: Model, k: int, item: Unilateral | Friction | Latch) -> Contact:
    where = f"contacts[{k}]"
    if isinstance(item, Latch):
        return _latch(model, where, item)
    # Names are counted by kind: a latch more leaves "friction 1" what it was.
    number = sum(isinstance(other, type(item)) for other in model.contacts[: k + 1])
    if isinstance(item, Unilateral):
        return _unilateral(model, where, item, f"contact {number}")
    return _friction(model, where, item, f"friction {number}")


def _unilateral(model: Model, where: str, item: Unilateral, name: str) -> Contact:
    return Contact(
        name=name if item.name is None else item.name,
        where=where,
        kind=item.law.kind,
        level=level_of(model, item.gap),
        gap=item.gap,
        law=item.law,
        decay_rate=None,
        load=None,
        friction=item.friction,
        slip=item.slip,
        closed=False,
        applied_at=item.applied_at,
    )


def _friction(model: Model, where: str, item: Friction, name: str) -> Contact:
    held = item.normal if isinstance(item.normal, Bilateral) else None
    return Contact(
        name=name if item.name is None else item.name,
        where=where,
        kind="load" if held is None else "bilateral",
        level=2 if held is None else level_of(model, held.constraint),
        gap=None if held is None else held.constraint,
        law=None,
        decay_rate=None if held is None else held.decay_rate,
        load=item.normal if held is None else None,
        friction=item.law,
        slip=item.slip,
        closed=True,
        applied_at=item.applied_at,
    )


def _latch(model: Model, where: str, item: Latch) -> Contact:
    return Contact(
        name=item.name,
        where=where,
        kind="latch",
        level=level_of(model, item.constraint),
        gap=item.constraint,
        law=None,
        decay_rate=item.decay_rate,
        load=None,
        friction=None,
        slip=(),
        closed=item.closed,
        applied_at=item.applied_at,
    )
