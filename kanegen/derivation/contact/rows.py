"""Contact rows: normals of gaps, directions of slip, latches. All rows are derived; the runtime decides which act.

Row k is ``W_k u' + w0_k``, the second derivative of a gap or the first of a slip velocity, and its multiplier lambda_k
exerts the generalized force ``W_k^T lambda_k``: the multipliers are hidden inputs of every function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final, TypeAlias

import sympy

from kanegen.derivation.constraints.constraints import holonomic_row
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.variables import RELATIVE_ZERO
from kanegen.derivation.geometry.vectors import scaled
from kanegen.derivation.inertia.bodies import Force, Torque, lowered
from kanegen.errors import ModelError
from kanegen.graph import Node, gradient
from kanegen.graph.ranks import rank
from kanegen.model.contacts import Contact
from kanegen.model.expressions import symbol_name

GAP: Final = sympy.Dummy("gap", real=True)
RATE: Final = sympy.Dummy("rate", real=True)

Simplify: TypeAlias = Callable[[Sequence[Node]], tuple[Node, ...]]


@dataclass(frozen=True)
class ContactRow:
    """One row: ``acceleration = W u' + remainder``.

    ``value`` is the gap (0 for a direction of slip), ``rate`` its derivative or the slip velocity; of a gap at velocity
    level both are the gap. ``target`` is the acceleration of the row while it is closed or sticks.
    """

    W: tuple[Node, ...]
    remainder: Node
    value: Node
    rate: Node
    target: Node


@dataclass(frozen=True)
class ContactValues:
    """Values of one contact: normal force of a compliant law or given load, N; coefficients; tolerance, m/s."""

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
    """The rate of each row, and its multiplier: together the power of the contact forces."""
    expressions = (
        (expression, level)
        for contact in system.model.resolved_contacts
        for expression, level in (*_normal(contact), *((slip, 1) for slip in contact.slip))
    )
    for multiplier, (expression, level) in zip(system.multipliers, expressions, strict=True):
        node = system.lower(expression)
        yield (system.rate(node) if level == 2 else node), multiplier


def contact_loads(system: System) -> Iterator[Force | Torque]:
    """The contact forces of the contacts that tell where they act."""
    for contact in system.model.resolved_contacts:
        for multiplier, pairs in zip(system.multipliers[contact.first_row :], contact.applied_at, strict=False):
            for load in lowered(system, pairs):
                parts = {frame: scaled(multiplier, a) for frame, a in load.parts.items()}
                yield replace(load, parts=parts)


def _normal(contact: Contact) -> list[tuple[Any, int]]:
    return [] if contact.gap is None else [(contact.gap, contact.level)]


def lower_contacts(system: System, final: Simplify) -> ContactRows:
    """All contact rows; ``final`` simplifies nodes.

    Raises
    ------
    ModelError
        For gaps that no speed changes, or that cannot be open together; for slip velocities that are not affine in the
        speeds, or that are multiples of each other.
    """
    contacts = system.model.resolved_contacts
    of_contacts = [tuple(_rows(system, contact)) for contact in contacts]
    _require_directions(system, contacts, of_contacts)
    _require_compatible(system, contacts, of_contacts)
    rows = [row for group in of_contacts for row in group]
    values = [_values(system, contact) for contact in contacts]
    return ContactRows(
        tuple(ContactRow(final(row.W), *final([row.remainder, row.value, row.rate, row.target])) for row in rows),
        tuple(ContactValues(*final([x.load, x.mu_s, x.mu_k, x.restitution, x.creep])) for x in values),
    )


def _rows(system: System, contact: Contact) -> Iterator[ContactRow]:
    if contact.gap is not None:
        yield _normal_row(system, contact)
    for slip in contact.slip:
        yield _slip_row(system, contact, slip)


def _require_directions(
    system: System, contacts: Sequence[Contact], of_contacts: Sequence[Sequence[ContactRow]]
) -> None:
    """Refuse two directions of slip whose rows are multiples of each other at every random state."""
    for contact, rows in zip(contacts, of_contacts, strict=True):
        if len(contact.slip) == 2 and _parallel(system, rows[-2].W, rows[-1].W):
            first, second = contact.slip
            raise ModelError(
                f"the slip velocities of contact {contact.name!r}, {first} and {second}, change in proportion with all "
                "speeds: expected components along two orthonormal directions, or slip=(v,) where slip has one only"
            )


def _parallel(system: System, a: Sequence[Node], b: Sequence[Node]) -> bool:
    """Whether two rows depend on each other at every random state."""
    samples = zip(zip(*system.samples(a), strict=True), zip(*system.samples(b), strict=True), strict=True)
    return all(rank(rows) < 2 for rows in samples)


def _require_compatible(
    system: System, contacts: Sequence[Contact], of_contacts: Sequence[Sequence[ContactRow]]
) -> None:
    """Refuse two gaps whose sum is a negative number, where no law is compliant: springs may squeeze a body.

    The same gap twice is redundant, which is no contradiction.
    """
    gaps = [
        (contact, rows[0].value)
        for contact, rows in zip(contacts, of_contacts, strict=True)
        if contact.law is not None and not contact.law.gives_force
    ]
    for (one, a), (other, b) in combinations(gaps, 2):
        total = system.samples([a + b])[0]
        largest = max(total)
        if largest < 0.0 and largest - min(total) <= RELATIVE_ZERO * abs(largest):
            raise ModelError(
                f"contacts {one.name!r} and {other.name!r} contradict each other: their gaps {one.gap} and {other.gap} "
                f"add up to {largest:.6g}, so that one of them is always violated"
            )


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
    """``psi_u`` (n_u,), and what is left of psi' at u' = 0."""
    return tuple(gradient([psi], [system.graph.one], system.u)), system.rate(psi)


def _slip_row(system: System, contact: Contact, expression: Any) -> ContactRow:
    slip = system.lower(expression)
    W, remainder = _velocity_row(system, slip)
    where = f"the slip velocity of contact {contact.name!r} ({expression})"
    if system.vanish(W):
        raise ModelError(f"{where} depends on no generalized speed")
    for speed, partial in zip(system.model.speeds, system.partials, strict=True):
        if not system.vanish(partial(entry) for entry in W):
            raise ModelError(f"{where} is not affine in speed {symbol_name(speed)}: expected a velocity linear in u")
    decay_rate = contact.friction.decay_rate if contact.friction is not None else sympy.S.Zero
    target = system.lower_with(-decay_rate * RATE, {RATE: slip})
    return ContactRow(W, remainder, system.graph.zero, slip, target)


def _values(system: System, contact: Contact) -> ContactValues:
    friction, zero = contact.friction, sympy.S.Zero
    creep = zero if friction is None or friction.creep is None else friction.creep
    coefficients = (zero, zero) if friction is None else (friction.mu_s, friction.kinetic)
    lowered = [system.lower(x) for x in (*coefficients, contact.restitution, creep)]
    return ContactValues(_load(system, contact), *lowered)


def _load(system: System, contact: Contact) -> Node:
    force = contact.force(GAP, RATE)
    if not force.has(GAP, RATE):
        return system.lower(force)
    gap = system.lower(contact.gap)
    return system.lower_with(force, {GAP: gap, RATE: system.rate(gap)})


def guards(system: System) -> tuple[Node, ...]:
    """The guards of the user's events, (n_e,).

    Raises
    ------
    ModelError
        For a guard that is zero everywhere.
    """
    nodes = tuple(system.lower(event.guard) for event in system.model.events)
    for event, node in zip(system.model.events, nodes, strict=True):
        if system.vanish([node]):
            raise ModelError(
                f"the guard of event {event.name!r} ({event.guard}) is zero everywhere: it never changes its sign"
            )
    return nodes
