"""Checks of a model's unilateral constraints, friction, latches, events and impulses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kanegen.model.contacts import Contact, Event, is_multiplier, multiplier_row
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, base_symbol, derivatives, known_value, symbol_name, symbol_names
from kanegen.model.laws import Coulomb
from kanegen.model.linear import is_affine
from kanegen.model.places import Place


def contact_problems(model: SystemDescription, places: Sequence[Place]) -> list[str]:
    """Every problem of the contacts, events and impulses of ``model``."""
    contacts = model.resolved_contacts
    return [
        *_name_problems(model, contacts),
        *(problem for contact in contacts for problem in _contact_problems(model, contact)),
        *(problem for k, event in enumerate(model.events) for problem in _event_problems(model, contacts, k, event)),
        *_multiplier_problems(contacts, places),
        *_reaction_problems(model, contacts),
    ]


def _name_problems(model: SystemDescription, contacts: Sequence[Contact]) -> Iterator[str]:
    first: dict[str, str] = {}
    named = [(contact.name, contact.where) for contact in contacts]
    named += [(event.name, f"events[{k}]") for k, event in enumerate(model.events)]
    for name, where in named:
        if not isinstance(name, str) or not name:
            yield f"{where} has the name {name!r}: expected a string that is not empty"
        elif name in first:
            yield f"{first[name]} and {where} are both named {name!r}: give them different names"
        first.setdefault(name, where)


def _contact_problems(model: SystemDescription, contact: Contact) -> Iterator[str]:
    title, values = f"contact {contact.name!r} ({contact.where})", model.known_parameters
    if contact.gap is not None:
        yield from _gap_problems(model, contact, title)
    if contact.applied_at and len(contact.applied_at) != contact.n_rows:
        yield (
            f"{title} has applied_at for {len(contact.applied_at)} row(s): expected (point, direction) for each of its "
            f"{contact.n_rows} row(s), {', '.join(contact.row_names)}"
        )
    load = None if contact.load is None else known_value(contact.load, values)
    if load is not None and not load >= 0.0:
        yield f"{title} has the normal force {load:g} N: expected a force >= 0"
    for value in contact.values():
        number = known_value(value.expression, values)
        if number is not None and not value.admits(number):
            symbol = "" if value.expression.is_number else f" = {value.expression}"
            yield f"{title} has {value.name} = {number:g}{symbol}: expected {value.expected}"
    if contact.friction is None and contact.slip:
        yield f"{title} has a slip velocity but no friction: give friction=kg.Coulomb(mu), or remove slip="
    if contact.friction is not None:
        yield from _friction_problems(model, contact, contact.friction, title)


def _gap_problems(model: SystemDescription, contact: Contact, title: str) -> Iterator[str]:
    gap = contact.gap
    if not any(base_symbol(atom) in {*model.coordinates, *model.all_speeds} for atom in atoms((gap,))):
        yield f"{title} has the gap {gap}, which restricts nothing: expected a coordinate or a speed in it"
    problem = "" if contact.law is None else contact.law.level_problem(gap, contact.level)
    if problem:
        yield f"{title} {problem}"


def _friction_problems(model: SystemDescription, contact: Contact, law: Coulomb, title: str) -> Iterator[str]:
    static, kinetic = (known_value(x, model.known_parameters) for x in (law.mu_s, law.kinetic))
    if static is not None and kinetic is not None and kinetic > static:
        yield (
            f"{title} has mu_k = {kinetic:g} and mu_s = {static:g}: expected mu_k <= mu_s; Coulomb(mu_s, mu_k) takes "
            "the static coefficient first"
        )
    if len(contact.slip) not in (1, 2):
        yield (
            f"{title} has friction and {len(contact.slip)} components of slip velocity: expected slip=(v1,) or "
            "slip=(v1, v2), along orthonormal directions"
        )
    if contact.paradox and (contact.kind != "restitution" or contact.level != 2):
        yield (
            f"{title} has paradox={law.paradox!r}, which is for rigid contacts: expected a kg.Unilateral with a gap in "
            "positions and the law kg.Restitution"
        )
    for expr in contact.slip:
        moving = derivatives(expr, model.all_speeds, 0) | derivatives(expr, model.coordinates, 1)
        if model.level(expr) == 2:
            yield f"{title} has the slip velocity {expr}, which depends on no speed: expected an expression affine in u"
        elif not is_affine(expr, moving):
            yield f"{title} has the slip velocity {expr}, which is nonlinear in the speeds: expected one affine in u"


def _event_problems(model: SystemDescription, contacts: Sequence[Contact], k: int, event: Event) -> Iterator[str]:
    title = f"event {event.name!r} (events[{k}])"
    if not event.guard.free_symbols and not atoms((event.guard,)):
        yield f"{title} has the constant guard {event.guard}: expected an expression that changes its sign in a run"
    if event.impulse is not None and event.impulse not in model.impulses:
        yield f"{title} has impulse={event.impulse!r}: expected one of the model's impulses, {_listed(model.impulses)}"
    known = [contact.name for contact in contacts if contact.kind == "latch"]
    for field in ("impose", "remove"):
        for name in getattr(event, field):
            if name not in known:
                yield f"{title} has {field}={name!r}: expected one of the model's latches, {_listed(known)}"
    if event.when and not event.direction:
        yield f"{title} has when= and no direction: give direction=+1 (rising) or -1 (falling)"
    for symbol in event.when:
        if symbol not in model.states or model.states[symbol] != 0:
            yield (
                f"{title} has when= with {symbol_name(symbol)}: expected a state that only events change, such as "
                f"states={{{symbol_name(symbol)}: 0}}"
            )
    for symbol in event.reset:
        if symbol not in model.states:
            yield f"{title} resets {symbol_name(symbol)}, {_reset_advice(model, symbol)}"
    for name in event.impose:
        if name in event.remove:
            yield f"{title} both imposes and removes the latch {name!r}"


def _reset_advice(model: SystemDescription, symbol: Any) -> str:
    """Why an event cannot reset a symbol, and what does it instead."""
    states = f"expected one of the model's states, {symbol_names(model.states) or 'none'}"
    name = symbol_name(symbol)
    if symbol in model.speeds:
        return f"a speed, which jumps by an impulse: give impulse=, and the impulse in impulses= of the model; {states}"
    if name in map(symbol_name, model.parameters):
        return (
            f"a parameter, which is constant during a run: make {name} a state with the rate 0, "
            f"states={{{name}: 0}} with a dynamic symbol {name}, which the event then resets; {states}"
        )
    if symbol in model.coordinates:
        return f"a coordinate, which does not jump; {states}"
    return f"which is no state: {states}"


def _multiplier_problems(contacts: Sequence[Contact], places: Sequence[Place]) -> Iterator[str]:
    """Multipliers of rows that do not exist, and multipliers in expressions that the motion depends on."""
    rows = {contact.name: contact.n_rows for contact in contacts}
    for place in places:
        for symbol in sorted(filter(is_multiplier, place.atoms), key=str):
            name, index = multiplier_row(symbol)
            if place.kind not in ("guard", "output", "rate"):
                yield (
                    f"{place.where} contains Multiplier({name!r}, {index}): expected it only in guards, outputs and "
                    "rates of states"
                )
            elif name not in rows:
                yield f"{place.where} contains Multiplier({name!r}, {index}): the contacts are {_listed(rows)}"
            elif not 0 <= index < rows[name]:
                yield f"{place.where} contains Multiplier({name!r}, {index}): contact {name!r} has {rows[name]} row(s)"


def _reaction_problems(model: SystemDescription, contacts: Sequence[Contact]) -> Iterator[str]:
    """Contacts without the points of application of their forces, which reactions need."""
    users = {"reactions": ", ".join(model.reactions), "auxiliary_speeds": symbol_names(model.auxiliary_speeds)}
    unplaced = [contact.name for contact in contacts if not contact.applied_at]
    for field, items in users.items():
        if items and unplaced:
            yield (
                f"the model has {field} ({items}), but a gap does not determine the body on which its force acts: give "
                f"applied_at=((point, direction), ...), one pair for each row, to the contacts {_listed(unplaced)}"
            )


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"
