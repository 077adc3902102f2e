"""Unilateral constraints, friction, latches and events: the records of the user, and the contacts of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import sympy

from kanegen.codes import Paradox
from kanegen.errors import ModelError, brief
from kanegen.model import normalize
from kanegen.model.expressions import symbol_name
from kanegen.model.laws import LAWS, ContactLaw, Coulomb, Law, Restitution, Value, decay
from kanegen.model.records import FrozenMapping, Loads, read_fields

NEAR: Final = 0.5
"""States that only events change have the value of an event's ``when`` at a smaller distance from it."""

_MULTIPLIER = sympy.Function("lambda", real=True)


def Multiplier(contact: str, index: int = 0) -> Any:
    """The multiplier of a contact row, a contact force in N, as a symbol for guards and outputs.

    ``Multiplier("floor")`` is the normal force of the contact "floor", ``Multiplier("floor", 1)`` the friction force in
    its first direction of slip. A contact with a given normal force has no normal row; its first direction has index 0.

    Raises `ModelError` for anything but a name and an index.
    """
    whole = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < 1000
    if not isinstance(contact, str) or not whole:
        raise ModelError(
            f"Multiplier({brief(contact)}, {brief(index)}): expected the name of a contact and the index of one of its "
            "rows, 0, 1, ..."
        )
    return _MULTIPLIER(sympy.Symbol(contact), sympy.Integer(index))


def is_multiplier(expression: Any) -> bool:
    """Whether ``expression`` is a :func:`Multiplier`."""
    return bool(getattr(expression, "func", None) == _MULTIPLIER)


def multiplier_row(expression: Any) -> tuple[str, int]:
    """The name of the contact and the index of its row in a :func:`Multiplier`."""
    contact, index = expression.args
    return str(contact), int(index)


def _read(record: Any, where: str, problems: list[str]) -> Any:
    """The record with normalized fields."""
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
    if known and value.mu_s is None:
        problems.append(f"{where} mu_s is None: expected a number or an expression")
        known = False
    law = value if known else Coulomb(0)
    if law.option_problem():
        problems.append(f"{where} {law.option_problem()}")
        law = replace(law, paradox=Paradox.ERROR.label, compliance=None)
    return _with_expressions(law, where, problems)


def _with_expressions(law: Law, where: str, problems: list[str]) -> Any:
    values = {x.name: normalize.scalar(x.expression, f"{where} {x.name}", problems) for x in law.values()}
    return law.with_values(values)


def _friction_or_none(value: Any, where: str, problems: list[str]) -> Any:
    return None if value is None else _coulomb(value, where, problems)


def _normal(value: Any, where: str, problems: list[str]) -> Any:
    return (_read if isinstance(value, Bilateral) else normalize.scalar)(value, where, problems)


def _applied_at(value: Any, where: str, problems: list[str]) -> tuple[Loads, ...]:
    """The pairs (point, direction) and (frame, axis) of each row."""
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
        problems.append(f"{where} contains {brief(wrong[0])}: expected names of latches")
    return tuple(name for name in names if isinstance(name, str))


def _contact_name(value: Any, where: str, problems: list[str]) -> str | None:
    return value if normalize.expect(value, str | None, where, "a string", problems) else None


def _given_name(value: Any, where: str, problems: list[str]) -> str:
    return normalize.name(value, where, problems)


def _direction(value: Any, where: str, problems: list[str]) -> int:
    if isinstance(value, int) and -1 <= value <= 1:
        return value
    event = where.removesuffix(".direction")
    problems.append(f"{event} has direction={brief(value)}: expected +1 (rising), -1 (falling) or 0 (both)")
    return 0


def _impulse_name(value: Any, where: str, problems: list[str]) -> str | None:
    return value if normalize.expect(value, str | None, where, "the name of an impulse, or None", problems) else None


def _reset(value: Any, where: str, problems: list[str]) -> FrozenMapping[Any, Any]:
    if not normalize.expect(value, Mapping, where, "a mapping from a state to its new value", problems):
        value = {}
    return FrozenMapping(
        (key, normalize.scalar(x, f"{where}[{symbol_name(key)}]", problems)) for key, x in value.items()
    )


def _when(value: Any, where: str, problems: list[str]) -> FrozenMapping[Any, float]:
    if not normalize.expect(value, Mapping, where, "a mapping from a state to its value", problems):
        value = {}
    found = {}
    for key, x in value.items():
        try:
            found[key] = float(x)
        except (TypeError, ValueError):
            problems.append(f"{where}[{symbol_name(key)}] is {brief(x)}: expected a number")
    return FrozenMapping(found)


_SCALAR = {"read": normalize.scalar}
_SLIP = {"read": normalize.scalars}
_APPLIED_AT = {"read": _applied_at}


@dataclass(frozen=True)
class Unilateral:
    """An inequality ``gap >= 0``: the contact is open while the gap is positive, and its force is compressive.

    Parameters
    ----------
    gap
        Expression of t, q, inputs and parameters (m or rad). If it contains u or q', the constraint is one at velocity
        level, such as a ratchet.
    law
        :class:`Restitution` (rigid; the default, without rebound), or a law that acts on a violated gap, such as
        :class:`KelvinVoigt`; docs/contact.md lists all laws.
    friction
        :class:`Coulomb`, or None.
    slip
        With friction: one or two components of the slip velocity, m/s, affine in u. The multipliers are the components
        of the friction force along the same directions. The directions must be orthonormal for ``|F_t| <= mu N``;
        kanegen cannot check this.
    name
        Name in messages and results. None: "contact 1", "contact 2", ..., counted among the unilateral constraints.
    applied_at
        Where and along which unit vector the force of each row acts, required only in a model with ``reactions`` or
        ``auxiliary_speeds``. The normal row and then each direction of slip has an entry ``(point, direction)``, a
        point of the body; between two bodies ``((P1, n), (P2, -n))``; for a torque ``(frame, axis)``.
    """

    gap: Any = field(metadata=_SCALAR)
    law: ContactLaw = field(default_factory=Restitution, metadata={"read": _law})
    friction: Coulomb | None = field(default=None, metadata={"read": _friction_or_none})
    slip: Any = field(default=(), metadata=_SLIP)
    name: str | None = field(default=None, metadata={"read": _contact_name})
    applied_at: Any = field(default=(), metadata=_APPLIED_AT)


@dataclass(frozen=True)
class Bilateral:
    """A constraint that is always closed, in both directions; its multiplier is the normal force of a friction.

    Parameters
    ----------
    constraint
        Expression of t, q, inputs and parameters that is zero; with u or q', a constraint at velocity level. The
        multiplier is a force in N only if the gradient is a unit vector in the direction of the normal force.
    decay_rate
        Rate, 1/s, at which a violation decays: ``phi'' + 2 decay_rate phi' + decay_rate^2 phi = 0``.
    """

    constraint: Any = field(metadata=_SCALAR)
    decay_rate: Any = field(default=10.0, metadata=_SCALAR)


@dataclass(frozen=True)
class Friction:
    """Friction at a joint, or of a body that is always in contact with its ground.

    Parameters
    ----------
    slip
        One or two components of the slip velocity along orthonormal directions, m/s, affine in u.
    law
        :class:`Coulomb`.
    normal
        The normal force, N: an expression of t, q, u, inputs and parameters; or a :class:`Bilateral` constraint, whose
        multiplier is the normal force. The model must not contain this constraint a second time.
    name
        Name in messages and results. None: "friction 1", "friction 2", ..., counted among the frictions.
    applied_at
        As for :class:`Unilateral`; with an expression as ``normal`` there is no normal row.
    """

    slip: Any = field(metadata=_SLIP)
    law: Coulomb = field(metadata={"read": _coulomb})
    normal: Any = field(metadata={"read": _normal})
    name: str | None = field(default=None, metadata={"read": _contact_name})
    applied_at: Any = field(default=(), metadata=_APPLIED_AT)


@dataclass(frozen=True)
class Latch:
    """A constraint that events impose and remove (:class:`Event`).

    Parameters
    ----------
    name
        Name in events, messages and results.
    constraint
        Expression of t, q, inputs and parameters that is zero while the latch is closed; with u or q', a constraint at
        velocity level.
    closed
        Whether the latch is closed at the start of a run.
    decay_rate
        Rate, 1/s, at which a violation decays.
    applied_at
        As for :class:`Unilateral`.
    """

    name: str = field(metadata={"read": _given_name})
    constraint: Any = field(metadata=_SCALAR)
    closed: bool = field(default=False, metadata={"read": _flag})
    decay_rate: Any = field(default=10.0, metadata=_SCALAR)
    applied_at: Any = field(default=(), metadata=_APPLIED_AT)


@dataclass(frozen=True)
class Event:
    """An event of a run: the guard changes its sign, and the actions of the event take place.

    Parameters
    ----------
    name
        Name in messages and results.
    guard
        Expression of t, q, q', u, states, inputs, parameters and :func:`Multiplier` symbols.
    direction
        Direction of the sign change: +1 rising, -1 falling, 0 both.
    terminal
        Whether the event ends the run.
    impulse
        Name of the one of the model's ``impulses`` that acts at the event, or None.
    impose, remove
        Names of the latches that the event closes and opens.
    reset
        New values of additional states of the model, a mapping from the state or its name to an expression of the
        quantities that a guard can contain, evaluated at the values before the event. The resets of simultaneous
        events follow one another in the order of the events.
    when
        States that only events change, with the values at which the event can occur, which must have a direction:
        ``when={gear: 1}``. Where the states come to have these values while the guard has the sign that it has after
        the event, the event occurs at this instant. A run cannot start in such a state.
    """

    name: str = field(metadata={"read": _given_name})
    guard: Any = field(metadata=_SCALAR)
    direction: int = field(default=0, metadata={"read": _direction})
    terminal: bool = field(default=False, metadata={"read": _flag})
    impulse: str | None = field(default=None, metadata={"read": _impulse_name})
    impose: Any = field(default=(), metadata={"read": _names})
    remove: Any = field(default=(), metadata={"read": _names})
    reset: Mapping[Any, Any] = field(default_factory=FrozenMapping, metadata={"read": _reset})
    when: Mapping[Any, float] = field(default_factory=FrozenMapping, metadata={"read": _when})

    def resetting(self, symbols: Iterable[Any]) -> Event:
        """The same event, in which the names of ``symbols`` in ``reset`` and ``when`` are these symbols."""
        names = {symbol_name(symbol): symbol for symbol in symbols}

        def named(given: Mapping[Any, Any]) -> FrozenMapping[Any, Any]:
            return FrozenMapping((names.get(x, x) if isinstance(x, str) else x, value) for x, value in given.items())

        return replace(self, reset=named(self.reset), when=named(self.when)) if self.reset or self.when else self


def normalized_contacts(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """Unilateral constraints, frictions and latches; an expression is the gap of a rigid contact without rebound.

    An invalid entry becomes None, so that the others keep their indices in the messages of later checks.
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

    ``where`` is the place in the user's arguments, ``first_row`` the index of the first row among all contact rows.
    ``level`` is 2 for a gap in positions, 1 for a gap in speeds. If ``gap`` is None, the normal force is ``load``.
    ``applied_at`` contains pairs (place, direction) for each row, or is empty.
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
        """Number of contact rows: the normal row, if any, and the directions of slip."""
        return (self.gap is not None) + len(self.slip)

    @property
    def row_names(self) -> tuple[str, ...]:
        """The name of each row."""
        n = len(self.slip)
        slip = (f"{self.name} slip {k + 1}" if n > 1 else f"{self.name} slip" for k in range(n))
        return (*([self.name] if self.gap is not None else []), *slip)

    @property
    def forces(self) -> Loads:
        """Pairs (place, direction) of the forces of all rows."""
        return tuple(pair for pairs in self.applied_at for pair in pairs)

    @property
    def conserves_energy(self) -> bool:
        """Whether the energy does not change while the contact acts, between impacts."""
        return self.friction is None and (self.law is None or self.law.conserves_energy)

    @property
    def restitution(self) -> Any:
        """Newton's coefficient of restitution."""
        return sympy.S.Zero if self.law is None else self.law.restitution

    @property
    def paradox(self) -> Paradox:
        """What happens where friction has no stable solution with finite forces."""
        return Paradox.ERROR if self.friction is None else Paradox[self.friction.paradox.upper()]

    def target(self, gap: Any, rate: Any) -> Any:
        """The prescribed acceleration of the closed normal row; zero if the law gives a force."""
        if self.law is None:
            return decay(self.decay_rate, gap, rate, self.level)
        return self.law.target(gap, rate, self.level)

    def force(self, gap: Any, rate: Any) -> Any:
        """The normal force, N, from the law or the user; zero if the normal force is always a multiplier."""
        if self.load is not None:
            return self.load
        if self.friction is not None and self.friction.compliance is not None:
            return self.friction.compliance.force(-gap, -rate)
        return sympy.S.Zero if self.law is None else self.law.force(-gap, -rate)

    def values(self) -> tuple[Value, ...]:
        """The values of the laws with their admissible intervals."""
        own = (Value("decay_rate", self.decay_rate, 0.0),) if self.law is None and self.gap is not None else ()
        laws = (law.values() for law in (self.law, self.friction) if law is not None)
        return (*own, *(value for values in laws for value in values))

    def run_values(self) -> tuple[Value, ...]:
        """Values of the laws and a given load that are known only at run time, with their admissible intervals."""
        load = () if self.load is None else (Value("normal force", self.load, 0.0),)
        order = () if self.friction is None else self.friction.order()
        return tuple(value for value in (*load, *self.values(), *order) if not value.expression.is_number)


def resolved_contacts(records: Sequence[ContactRecord | None], level: Callable[[Any], int]) -> tuple[Contact, ...]:
    """The contacts of normalized records, of which invalid ones are None.

    ``level`` is the function that returns 2 for an expression of positions and 1 for one that contains speeds.
    """
    contacts: list[Contact] = []
    for k, record in enumerate(records):
        if record is not None:
            # Default names are counted by kind, so that adding a latch does not rename "friction 1".
            own = _fields(record, sum(isinstance(other, type(record)) for other in records[: k + 1]))
            own |= {"where": f"contacts[{k}]", "applied_at": record.applied_at}
            own["level"] = level(own["gap"]) if "gap" in own else 2
            contacts.append(Contact(**own, first_row=sum(contact.n_rows for contact in contacts)))
    return tuple(contacts)


def _fields(record: ContactRecord, number: int) -> dict[str, Any]:
    """The fields of the contact of a record, the ``number``-th one of its kind."""
    if isinstance(record, Latch):
        return {"name": record.name, "kind": "latch", "closed": record.closed, **_bilateral(record)}
    if isinstance(record, Friction):
        if isinstance(record.normal, Bilateral):
            normal = {"kind": "bilateral", **_bilateral(record.normal)}
        else:
            normal = {"kind": "load", "load": record.normal}
        name = f"friction {number}" if record.name is None else record.name
        return {**normal, "name": name, "friction": record.law, "slip": record.slip, "closed": True}
    name = f"contact {number}" if record.name is None else record.name
    shared = {key: getattr(record, key) for key in ("gap", "law", "friction", "slip")}
    return {"name": name, "kind": record.law.kind, **shared}


def _bilateral(record: Any) -> dict[str, Any]:
    """The fields of a constraint that acts in both directions."""
    return {"gap": record.constraint, "decay_rate": record.decay_rate}
