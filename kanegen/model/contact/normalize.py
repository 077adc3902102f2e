"""From the contacts, events and impulses a user writes to the one form the derivation reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy

from kanegen.model import normalize
from kanegen.model.contact.events import Event
from kanegen.model.contact.laws import LAWS, ContactLaw, Coulomb, Restitution
from kanegen.model.contact.records import Bilateral, Friction, Latch, Unilateral
from kanegen.model.records import FrozenMapping


def normalized_contacts(value: Any, what: str, problems: list[str]) -> tuple[Any, ...]:
    """Unilateral constraints, frictions at joints and latches; a bare expression is a rigid gap without rebound.

    An entry that cannot be read is None, so that the others keep their numbers in the messages of later checks.
    """
    items = normalize.sequence(value, what, problems)
    return tuple(_contact(item, f"{what}[{k}]", problems) for k, item in enumerate(items))


def _contact(item: Any, where: str, problems: list[str]) -> Any:
    """A record with its expressions normalized, or None."""
    if isinstance(item, sympy.Expr):
        item = Unilateral(item)
    if not isinstance(item, Unilateral | Friction | Latch):
        problems.append(
            f"{where} is {item!r}: expected a kg.Unilateral, kg.Friction or kg.Latch, or the expression of a gap"
        )
        return None
    item = replace(item, applied_at=_applied_at(item.applied_at, where, problems))
    if isinstance(item, Latch):
        return replace(_held(item, where, problems), closed=_flag(item.closed, f"{where}.closed", problems))
    item = replace(item, slip=normalize.scalars(item.slip, f"{where}.slip", problems))
    if isinstance(item, Friction):
        return replace(
            item, law=_coulomb(item.law, where, problems), normal=_normal(item.normal, f"{where}.normal", problems)
        )
    friction = None if item.friction is None else _coulomb(item.friction, where, problems)
    law, before = _law(item.law, where, problems), len(problems)
    gap = normalize.scalar(item.gap, f"{where}.gap", problems)
    return None if len(problems) > before else replace(item, gap=gap, law=law, friction=friction)


def _held(record: Any, where: str, problems: list[str]) -> Any:
    """A record with a constraint that holds in both directions."""
    constraint, decay_rate = (
        normalize.scalar(getattr(record, field), f"{where}.{field}", problems) for field in ("constraint", "decay_rate")
    )
    return replace(record, constraint=constraint, decay_rate=decay_rate)


def _normal(value: Any, where: str, problems: list[str]) -> Any:
    if isinstance(value, Bilateral):
        return _held(value, where, problems)
    return normalize.scalar(value, where, problems)


def _applied_at(value: Any, where: str, problems: list[str]) -> tuple[tuple[tuple[Any, Any], ...], ...]:
    """For each row the pairs (point, direction) and (frame, axis)."""
    rows = normalize.sequence(_pairs(value), f"{where}.applied_at", problems)
    return tuple(normalize.loads(_pairs(row), f"{where}.applied_at[{k}]", problems) for k, row in enumerate(rows))


def _pairs(item: Any) -> Any:
    """A sequence of pairs; a single pair counts as a sequence of one."""
    return (item,) if isinstance(item, tuple) and len(item) == 2 and not isinstance(item[0], tuple | list) else item


def normalized_events(value: Any, what: str, problems: list[str]) -> tuple[Event, ...]:
    """Events; a single name counts as a list of one in ``impose`` and ``remove``."""
    events = []
    for k, item in enumerate(normalize.sequence(value, what, problems)):
        where = f"{what}[{k}]"
        if not isinstance(item, Event):
            problems.append(f"{where} is {item!r}: expected a kg.Event")
            continue
        before = len(problems)
        guard = normalize.scalar(item.guard, f"{where}.guard", problems)
        impose, remove = (_names(getattr(item, field), f"{where}.{field}", problems) for field in ("impose", "remove"))
        terminal = _flag(item.terminal, f"{where}.terminal", problems)
        if len(problems) == before:
            events.append(replace(item, guard=guard, impose=impose, remove=remove, terminal=terminal))
    return tuple(events)


def normalized_impulses(value: Any, what: str, problems: list[str]) -> FrozenMapping[str, tuple[tuple[Any, Any], ...]]:
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


def _flag(value: Any, where: str, problems: list[str]) -> bool:
    if not isinstance(value, bool):
        problems.append(f"{where} is {value!r}: expected True or False")
    return value is True


def _names(value: Any, where: str, problems: list[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    names = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        problems.append(f"{where} contains {wrong[0]!r}: expected names of latches")
    return tuple(name for name in names if isinstance(name, str))


def _law(value: Any, where: str, problems: list[str]) -> Any:
    if not isinstance(value, LAWS):
        expected = ", ".join(f"kg.{law.__name__}" for law in LAWS)
        problems.append(f"{where}.law is {value!r}: expected one of {expected}")
        value = Restitution()
    if value.option_problem():
        problems.append(f"{where}.law {value.option_problem()}")
    return _with_expressions(value, f"{where}.law", problems)


def _coulomb(value: Any, where: str, problems: list[str]) -> Any:
    if not isinstance(value, Coulomb):
        problems.append(f"{where} has the friction law {value!r}: expected a kg.Coulomb")
        value = Coulomb(0)
    return _with_expressions(value, f"{where} Coulomb", problems)


def _with_expressions(law: ContactLaw | Coulomb, where: str, problems: list[str]) -> Any:
    """The law with its values as SymPy expressions."""
    values = {x.name: normalize.scalar(x.expression, f"{where} {x.name}", problems) for x in law.values()}
    return replace(law, **values)  # type: ignore[type-var]
