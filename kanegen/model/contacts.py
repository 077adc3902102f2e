"""Unilateral constraints, friction, latches and events: what a user writes, and the contacts a model has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import sympy

from kanegen.model import normalize
from kanegen.model.laws import LAWS, ContactLaw, Coulomb, Law, Restitution, Value, decay
from kanegen.model.records import FrozenMapping, Loads, read_fields

_MULTIPLIER = sympy.Function("lambda", real=True)


def Multiplier(contact: str, index: int = 0) -> Any:
    """The multiplier of a row of a contact as a symbol of guards and outputs: a contact force, N.

    ``Multiplier("floor")`` is the normal force of the contact "floor", ``Multiplier("floor", 1)`` the force in its
    first direction of slip. Under a given load there is no normal row, and 0 is the first direction.
    """
    return _MULTIPLIER(sympy.Symbol(contact), sympy.Integer(index))


def is_multiplier(expression: Any) -> bool:
    """Whether ``expression`` is a :func:`Multiplier`."""
    return bool(getattr(expression, "func", None) == _MULTIPLIER)


def multiplier_row(expression: Any) -> tuple[str, int]:
    """The contact and the index of a :func:`Multiplier`."""
    contact, index = expression.args
    return str(contact), int(index)


def _read(record: Any, where: str, problems: list[str]) -> Any:
    """A record with its fields in the form the derivation reads."""
    return replace(record, **read_fields(type(record), vars(record), f"{where}.", problems))


def _law(value: Any, where: str, problems: list[str]) -> Any:
    wanted = f"one of {', '.join(f'kg.{law.__name__}' for law in LAWS)}"
    if not normalize.expect(value, LAWS, where, wanted, problems):
        value = Restitution()
    if value.option_problem():
        problems.append(f"{where} {value.option_problem()}")
    return _with_expressions(value, where, problems)


def _coulomb(value: Any, where: str, problems: list[str]) -> Any:
    known = normalize.expect(value, Coulomb, where, "a friction law, kg.Coulomb", problems)
    return _with_expressions(value if known else Coulomb(0), where, problems)


def _with_expressions(law: Law, where: str, problems: list[str]) -> Any:
    values = {x.name: normalize.scalar(x.expression, f"{where} {x.name}", problems) for x in law.values()}
    return replace(law, **values)  # type: ignore[type-var]


def _friction_or_none(value: Any, where: str, problems: list[str]) -> Any:
    return None if value is None else _coulomb(value, where, problems)


def _normal(value: Any, where: str, problems: list[str]) -> Any:
    return (_read if isinstance(value, Bilateral) else normalize.scalar)(value, where, problems)


def _applied_at(value: Any, where: str, problems: list[str]) -> tuple[Loads, ...]:
    """For each row the pairs (point, direction) and (frame, axis)."""
    rows = normalize.sequence(_pairs(value), where, problems)
    return tuple(normalize.loads(_pairs(row), f"{where}[{k}]", problems) for k, row in enumerate(rows))


def _pairs(item: Any) -> Any:
    """A sequence of pairs; a single pair counts as a sequence of one."""
    return (item,) if isinstance(item, tuple) and len(item) == 2 and not isinstance(item[0], tuple | list) else item


def _flag(value: Any, where: str, problems: list[str]) -> bool:
    return normalize.expect(value, bool, where, "True or False", problems) and value is True


def _names(value: Any, where: str, problems: list[str]) -> tuple[str, ...]:
    names = normalize.listed(value)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        problems.append(f"{where} contains {wrong[0]!r}: expected names of latches")
    return tuple(name for name in names if isinstance(name, str))


_SCALAR = {"read": normalize.scalar}
_SLIP = {"read": normalize.scalars}
_APPLIED_AT = {"read": _applied_at}


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

    gap: Any = field(metadata=_SCALAR)
    law: ContactLaw = field(default_factory=Restitution, metadata={"read": _law})
    friction: Coulomb | None = field(default=None, metadata={"read": _friction_or_none})
    slip: Any = field(default=(), metadata=_SLIP)
    name: str | None = None
    applied_at: Any = field(default=(), metadata=_APPLIED_AT)


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

    constraint: Any = field(metadata=_SCALAR)
    decay_rate: Any = field(default=10.0, metadata=_SCALAR)


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

    slip: Any = field(metadata=_SLIP)
    law: Coulomb = field(metadata={"read": _coulomb})
    normal: Any = field(metadata={"read": _normal})
    name: str | None = None
    applied_at: Any = field(default=(), metadata=_APPLIED_AT)


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
    constraint: Any = field(metadata=_SCALAR)
    closed: bool = field(default=False, metadata={"read": _flag})
    decay_rate: Any = field(default=10.0, metadata=_SCALAR)
    applied_at: Any = field(default=(), metadata=_APPLIED_AT)


@dataclass(frozen=True)
class Event:
    """What happens where a guard changes its sign.

    Parameters
    ----------
    name
        Name in messages and results.
    guard
        Expression of t, q, q', u, inputs, parameters and :func:`Multiplier` symbols.
    direction
        Of the sign change: +1 rising, -1 falling, 0 both.
    terminal
        Whether the run ends there.
    impulse
        Name of one of the model's ``impulses`` that acts, or None.
    impose, remove
        Names of latches that close and open.
    """

    name: str
    guard: Any = field(metadata=_SCALAR)
    direction: int = 0
    terminal: bool = field(default=False, metadata={"read": _flag})
    impulse: str | None = None
    impose: Any = field(default=(), metadata={"read": _names})
    remove: Any = field(default=(), metadata={"read": _names})


def normalized_contacts(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """Unilateral constraints, frictions at joints and latches; a bare expression is a rigid gap without rebound.

    An entry that cannot be read is None, so that the others keep their numbers in the messages of later checks.
    """
    items = normalize.sequence(value, what, problems)
    return tuple(_contact(item, f"{what}[{k}]", problems) for k, item in enumerate(items))


def _contact(item: Any, where: str, problems: list[str]) -> Any:
    if isinstance(item, sympy.Expr):
        item = Unilateral(item)
    wanted = "a kg.Unilateral, kg.Friction or kg.Latch, or the expression of a gap"
    if not normalize.expect(item, ContactRecord, where, wanted, problems):
        return None
    before, record = len(problems), _read(item, where, problems)
    return None if any(problem.startswith(f"{where}.gap ") for problem in problems[before:]) else record


def normalized_events(value: Any, what: str, problems: list[str]) -> tuple[Event, ...]:
    """Events; a single name counts as a list of one in ``impose`` and ``remove``."""
    events = []
    for k, item in enumerate(normalize.sequence(value, what, problems)):
        where, before = f"{what}[{k}]", len(problems)
        if normalize.expect(item, Event, where, "a kg.Event", problems):
            item = _read(item, where, problems)
        if len(problems) == before:
            events.append(item)
    return tuple(events)


def normalized_impulses(value: Any, what: str, problems: list[str]) -> FrozenMapping[str, Loads]:
    """The pairs (point, impulse) and (frame, angular impulse) of each named impulse."""
    impulses = {}
    for name, item in normalize.named(value, what, "a list of (point, impulse)", problems):
        before = len(problems)
        impulses[name] = normalize.loads(_pairs(item), f"{what}[{name!r}]", problems)
        if not impulses[name] and len(problems) == before:
            problems.append(
                f"{what}[{name!r}] contains no impulse: give (point, impulse vector) or (frame, angular impulse)"
            )
    return FrozenMapping(impulses)


ContactRecord: TypeAlias = Unilateral | Friction | Latch


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
    applied_at: tuple[Loads, ...]
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
    def forces(self) -> Loads:
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


def resolved_contacts(records: Sequence[ContactRecord | None], level: Callable[[Any], int]) -> tuple[Contact, ...]:
    """The contacts of normalized records; None where one could not be read.

    ``level`` is that of an expression: 2 in positions, 1 in speeds.
    """
    contacts: list[Contact] = []
    for k, record in enumerate(records):
        if record is not None:
            # Names are counted by kind: a further latch leaves "friction 1" what it was.
            own = _fields(record, sum(isinstance(other, type(record)) for other in records[: k + 1]))
            own |= {"where": f"contacts[{k}]", "applied_at": record.applied_at}
            own["level"] = level(own["gap"]) if "gap" in own else 2
            contacts.append(Contact(**own, first_row=sum(contact.n_rows for contact in contacts)))
    return tuple(contacts)


def _fields(record: ContactRecord, number: int) -> dict[str, Any]:
    """What a record says of its contact, the ``number``-th one of this kind."""
    if isinstance(record, Latch):
        return {"name": record.name, "kind": "latch", "closed": record.closed, **_held(record)}
    if isinstance(record, Friction):
        held = isinstance(record.normal, Bilateral)
        normal = {"kind": "bilateral", **_held(record.normal)} if held else {"kind": "load", "load": record.normal}
        name = f"friction {number}" if record.name is None else record.name
        return {**normal, "name": name, "friction": record.law, "slip": record.slip, "closed": True}
    name = f"contact {number}" if record.name is None else record.name
    shared = {key: getattr(record, key) for key in ("gap", "law", "friction", "slip")}
    return {"name": name, "kind": record.law.kind, **shared}


def _held(record: Any) -> dict[str, Any]:
    """The fields of a constraint that holds in both directions."""
    return {"gap": record.constraint, "decay_rate": record.decay_rate}
