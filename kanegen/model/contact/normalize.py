"""From the contacts, events and impulses a user writes to the one form the derivation reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeGuard, TypeVar

import sympy

from kanegen.model import normalize
from kanegen.model.contact.events import Event
from kanegen.model.contact.laws import LAWS, QUANTITIES, Coulomb, HuntCrossley, KelvinVoigt, Restitution, Stabilized
from kanegen.model.contact.records import Bilateral, Friction, Latch, Unilateral

R = TypeVar("R")
L = TypeVar("L", Stabilized, Restitution, KelvinVoigt, HuntCrossley, Coulomb)


def contacts(value: Any, problems: list[str]) -> tuple[Any, ...]:
    """Unilateral constraints, frictions at joints and latches; a bare expression is a rigid gap without rebound.

    An entry that cannot be read is None, so that the others keep their numbers in the messages of later checks.
    """
    items = normalize.sequence(value, "contacts", problems)
    return tuple(_contact(item, f"contacts[{k}]", problems) for k, item in enumerate(items))


def _contact(item: Any, where: str, problems: list[str]) -> Unilateral | Friction | Latch | None:
    if isinstance(item, sympy.Expr):
        return _unilateral(Unilateral(item), where, problems)
    if isinstance(item, Unilateral):
        return _unilateral(item, where, problems)
    if isinstance(item, Friction):
        return _friction(item, where, problems)
    if isinstance(item, Latch):
        return _latch(item, where, problems)
    problems.append(
        f"{where} is {item!r}: expected a kg.Unilateral, kg.Friction or kg.Latch, or the expression of a gap"
    )
    return None


def _unilateral(item: Unilateral, where: str, problems: list[str]) -> Unilateral | None:
    law = _law(item.law, where, problems)
    friction = None if item.friction is None else _coulomb(item.friction, where, problems)
    slip = normalize.scalars(item.slip, f"{where}.slip", problems)
    before = len(problems)
    gap = normalize.scalar(item.gap, f"{where}.gap", problems)
    applied_at = _applied_at(item.applied_at, where, problems)
    if len(problems) > before:
        return None
    return replace(item, gap=gap, law=law, friction=friction, slip=slip, applied_at=applied_at)


def _friction(item: Friction, where: str, problems: list[str]) -> Friction:
    law = _coulomb(item.law, where, problems)
    slip = normalize.scalars(item.slip, f"{where}.slip", problems)
    normal, applied_at = _normal(item.normal, where, problems), _applied_at(item.applied_at, where, problems)
    return replace(item, slip=slip, law=law, normal=normal, applied_at=applied_at)


def _latch(item: Latch, where: str, problems: list[str]) -> Latch:
    constraint = normalize.scalar(item.constraint, f"{where}.constraint", problems)
    decay_rate = normalize.scalar(item.decay_rate, f"{where}.decay_rate", problems)
    applied_at = _applied_at(item.applied_at, where, problems)
    closed = _flag(item.closed, f"{where}.closed", problems)
    return replace(item, constraint=constraint, decay_rate=decay_rate, closed=closed, applied_at=applied_at)


def _applied_at(value: Any, where: str, problems: list[str]) -> tuple[tuple[tuple[Any, Any], ...], ...]:
    """For each row the pairs (point, direction) and (frame, axis)."""
    rows = normalize.sequence(_pairs(value), f"{where}.applied_at", problems)
    return tuple(normalize.loads(_pairs(row), problems, f"{where}.applied_at[{k}]") for k, row in enumerate(rows))


def _pairs(item: Any) -> Any:
    """One pair stands for a sequence of one."""
    return (item,) if isinstance(item, tuple) and len(item) == 2 and not isinstance(item[0], tuple | list) else item


def _normal(value: Any, where: str, problems: list[str]) -> Any:
    if not isinstance(value, Bilateral):
        return normalize.scalar(value, f"{where}.normal", problems)
    constraint = normalize.scalar(value.constraint, f"{where}.normal", problems)
    return replace(
        value,
        constraint=constraint,
        decay_rate=normalize.scalar(value.decay_rate, f"{where}.normal.decay_rate", problems),
    )


def events(value: Any, problems: list[str]) -> tuple[Event, ...]:
    """Events; one name stands for a list of one in ``impose`` and ``remove``."""
    found = []
    for k, item in enumerate(normalize.sequence(value, "events", problems)):
        where = f"events[{k}]"
        if _is(item, Event, where, problems):
            before = len(problems)
            guard = normalize.scalar(item.guard, f"{where}.guard", problems)
            impose, remove = (
                _names(getattr(item, field), f"{where}.{field}", problems) for field in ("impose", "remove")
            )
            terminal = _flag(item.terminal, f"{where}.terminal", problems)
            if len(problems) == before:
                found.append(replace(item, guard=guard, impose=impose, remove=remove, terminal=terminal))
    return tuple(found)


def impulses(value: Any, problems: list[str]) -> dict[str, tuple[tuple[Any, Any], ...]]:
    """The pairs (point, impulse) and (frame, angular impulse) of each named impulse."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.append(f"impulses is {value!r}: expected a mapping from a name to a list of (point, impulse)")
        return {}
    found = {}
    for name, item in value.items():
        if not isinstance(name, str) or not name:
            problems.append(f"impulses has the name {name!r}: expected a string that is not empty")
            continue
        before = len(problems)
        found[name] = normalize.loads(_pairs(item), problems, f"impulses[{name!r}]")
        if not found[name] and len(problems) == before:
            problems.append(
                f"impulses[{name!r}] contains no impulse: give (point, impulse vector) or (frame, angular impulse)"
            )
    return found


def _is(item: Any, kind: type[R], where: str, problems: list[str]) -> TypeGuard[R]:
    if isinstance(item, kind):
        return True
    problems.append(f"{where} is {item!r}: expected a kg.{kind.__name__}")
    return False


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
        return _with_expressions(Restitution(), where, problems)
    if isinstance(value, KelvinVoigt | HuntCrossley) and value.quantity not in QUANTITIES:
        problems.append(f"{where}.law has quantity={value.quantity!r}: expected 'force' or 'acceleration'")
        value = replace(value, quantity="force")
    return _with_expressions(value, f"{where}.law", problems)


def _coulomb(value: Any, where: str, problems: list[str]) -> Coulomb:
    if not isinstance(value, Coulomb):
        problems.append(f"{where} has the friction law {value!r}: expected a kg.Coulomb")
        return _with_expressions(Coulomb(0), where, problems)
    return _with_expressions(value, f"{where} Coulomb", problems)


def _with_expressions(law: L, where: str, problems: list[str]) -> L:
    """The law with its values as SymPy expressions."""
    return replace(law, **dict(_expressions(law, where, problems)))


def _expressions(law: Any, where: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    for field in fields(law):
        value = getattr(law, field.name)
        if field.name != "quantity" and value is not None:
            yield field.name, normalize.scalar(value, f"{where} {field.name}", problems)
