"""Contact rows of gaps, directions of slip and latches. All are derived; the runtime selects the active rows.

Row k is ``W_k u' + w0_k``, the second derivative of a gap or the first derivative of a slip velocity. Its multiplier
lambda_k exerts the generalized force ``W_k^T lambda_k``. The multipliers are arguments of every function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import sympy

from kanegen.derivation.constraints import Simplify, holonomic_row
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import scaled
from kanegen.derivation.inertia.bodies import Force, Torque, lowered
from kanegen.errors import ModelError
from kanegen.graph import Node, gradient
from kanegen.graph.decisions import RELATIVE_ZERO
from kanegen.graph.ranks import rank
from kanegen.model.contacts import NEAR, Contact, Event
from kanegen.model.expressions import symbol_name

GAP: Final = sympy.Dummy("gap", real=True)
RATE: Final = sympy.Dummy("rate", real=True)


@dataclass(frozen=True)
class ContactRow:
    """One row: ``acceleration = W u' + remainder``.

    ``value`` is the gap (0 for a direction of slip), ``rate`` its derivative or the slip velocity. For a gap at
    velocity level both are the gap. ``target`` is the acceleration of the row while the contact is closed or sticks.
    """

    W: tuple[Node, ...]
    remainder: Node
    value: Node
    rate: Node
    target: Node


@dataclass(frozen=True)
class ContactValues:
    """Values of one contact: normal force of a compliant law or given load (N), coefficients, creep velocity (m/s)."""

    load: Node
    mu_s: Node
    mu_k: Node
    restitution: Node
    creep: Node


@dataclass(frozen=True)
class ContactRows:
    """The rows of all contacts, and the values of each contact."""

    rows: tuple[ContactRow, ...]
    values: tuple[ContactValues, ...]


def contact_rates(system: System) -> Iterator[tuple[Node, Node]]:
    """The rate of each row and its multiplier; their product is the power of the contact force."""
    multipliers = iter(system.multipliers)
    for contact in system.model.resolved_contacts:
        if contact.gap is not None:
            gap = system.lower(contact.gap)
            yield (system.rate(gap) if contact.level == 2 else gap), next(multipliers)
        for slip in contact.slip:
            yield system.lower(slip), next(multipliers)


def contact_loads(system: System) -> Iterator[Force | Torque]:
    """The contact forces of all contacts for which the user gave ``applied_at``."""
    for contact in system.model.resolved_contacts:
        for multiplier, pairs in zip(system.multipliers[contact.first_row :], contact.applied_at, strict=False):
            for load in lowered(system, pairs):
                yield replace(load, parts={frame: scaled(multiplier, a) for frame, a in load.parts.items()})


def lower_contacts(system: System, final: Simplify) -> ContactRows:
    """All contact rows; ``final`` simplifies nodes.

    Raises
    ------
    ModelError
        If a gap depends on no speed, two gaps always have a negative sum, a slip velocity is not affine in the speeds,
        or two slip velocities of a contact are multiples of each other.
    """
    contacts = [(contact, tuple(_rows(system, contact))) for contact in system.model.resolved_contacts]
    for contact, rows in contacts:
        _require_directions(system, contact, rows)
    _require_compatible(system, contacts)
    values = [_values(system, contact) for contact, _ in contacts]
    return ContactRows(
        tuple(
            ContactRow(final(row.W), *final([row.remainder, row.value, row.rate, row.target]))
            for _, rows in contacts
            for row in rows
        ),
        tuple(ContactValues(*final(nodes)) for nodes in values),
    )


def _rows(system: System, contact: Contact) -> Iterator[ContactRow]:
    if contact.gap is not None:
        yield _normal_row(system, contact)
    for slip in contact.slip:
        yield _slip_row(system, contact, slip)


def _normal_row(system: System, contact: Contact) -> ContactRow:
    if contact.level == 2:
        row = holonomic_row(system, contact.gap)
        gap, rate = row.residuals
        W, remainder = row.J, -row.bias
    else:
        gap = rate = system.lower(contact.gap)
        W, remainder = _velocity_row(system, gap)
    if system.vanish(W):
        raise ModelError(
            f"the gap of contact {contact.name!r} ({contact.gap}) depends on no generalized speed: it restricts nothing"
        )
    target = system.lower_with(contact.target(GAP, RATE), {GAP: gap, RATE: rate})
    return ContactRow(W, remainder, gap, rate, target)


def _velocity_row(system: System, psi: Node) -> tuple[tuple[Node, ...], Node]:
    """``psi_u`` (n_u,), and psi' at u' = 0."""
    return tuple(gradient([psi], [system.graph.one], system.u)), system.rate(psi)


def _slip_row(system: System, contact: Contact, expression: Any) -> ContactRow:
    slip = system.lower(expression)
    W, remainder = _velocity_row(system, slip)
    where = f"the slip velocity of contact {contact.name!r} ({expression})"
    if system.vanish(W):
        raise ModelError(f"{where} depends on no generalized speed")
    for speed, node in zip(system.model.speeds, system.u, strict=True):
        if not system.are_constant(W, [node]):
            raise ModelError(f"{where} is not affine in speed {symbol_name(speed)}: expected a velocity linear in u")
    decay_rate = contact.friction.decay_rate if contact.friction is not None else sympy.S.Zero
    target = system.lower_with(-decay_rate * RATE, {RATE: slip})
    return ContactRow(W, remainder, system.graph.zero, slip, target)


def _require_directions(system: System, contact: Contact, rows: Sequence[ContactRow]) -> None:
    """Refuse two directions of slip whose rows are multiples of each other at every random state."""
    if len(contact.slip) == 2:
        samples = zip(*(zip(*system.samples(row.W), strict=True) for row in rows[-2:]), strict=True)
        if all(rank(pair) < 2 for pair in samples):
            first, second = contact.slip
            raise ModelError(
                f"the slip velocities of contact {contact.name!r}, {first} and {second}, change in proportion with all "
                "speeds: expected components along two orthonormal directions, or slip=(v,) for one direction"
            )


def _require_compatible(system: System, contacts: Sequence[tuple[Contact, Sequence[ContactRow]]]) -> None:
    """Refuse two rigid contacts whose gaps have a constant negative sum; compliant contacts may squeeze a body.

    The same gap given twice is redundant, not contradictory.
    """
    rigid = [(c, rows[0].value) for c, rows in contacts if c.law is not None and not c.law.gives_force]
    for (one, a), (other, b) in combinations(rigid, 2):
        total = system.samples([a + b])[0]
        largest = max(total)
        if largest < 0.0 and largest - min(total) <= RELATIVE_ZERO * abs(largest):
            raise ModelError(
                f"contacts {one.name!r} and {other.name!r} contradict each other: their gaps {one.gap} and {other.gap} "
                f"add up to {largest:.6g}, so that one of them is always violated"
            )


def _values(system: System, contact: Contact) -> list[Node]:
    """The nodes of :class:`ContactValues` in their order."""
    friction, zero = contact.friction, sympy.S.Zero
    creep = zero if friction is None or friction.creep is None else friction.creep
    coefficients = (zero, zero) if friction is None else (friction.mu_s, friction.kinetic)
    nodes = [system.lower(x) for x in (*coefficients, contact.restitution, creep)]
    force = contact.force(GAP, RATE)
    if not force.has(GAP, RATE):
        return [system.lower(force), *nodes]
    gap = system.lower(contact.gap)
    return [system.lower_with(force, {GAP: gap, RATE: system.rate(gap)}), *nodes]


def guards(system: System) -> tuple[Node, ...]:
    """The guards of the user's events, then those of the kinks of feedback laws.

    Raises
    ------
    ModelError
        If a guard is identically zero.
    """
    nodes = tuple(system.lower(event.guard) for event in system.model.events)
    for event, node in zip(system.model.events, nodes, strict=True):
        if system.vanish_in_all_cases([node]):
            raise ModelError(
                f"the guard of event {event.name!r} ({event.guard}) is zero everywhere: it never changes its sign"
            )
    acting = (_where_it_acts(system, *pair) for pair in zip(system.model.events, nodes, strict=True))
    return (*acting, *map(system.lower, system.model.switches.values()))


def _where_it_acts(system: System, event: Event, guard: Node) -> Node:
    """The guard where the states have the values of ``when``, elsewhere a number of the sign before the event."""
    graph = guard.graph
    for symbol, value in event.when.items():
        state = system.lower(symbol)
        near = graph.apply("lt", graph.apply("abs", state - graph.const(Fraction(value))), graph.const(Fraction(NEAR)))
        guard = graph.select(near, guard, graph.const(-event.direction))
    return guard
