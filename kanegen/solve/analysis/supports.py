"""The equations of contacts in a steady state: one or more for the normal force and the friction of each contact.

The multipliers of all contact rows are unknowns. An open contact has no force, a closed rigid one has no gap, and a
compliant one has the force of its law. While it is not known which contacts are closed, Fischer's function
``a + b - sqrt(a^2 + b^2)`` of gap and force expresses ``0 <= a, 0 <= b, a b = 0`` (A. Fischer, "A special Newton-type
optimization method", Optimization 24 (1992) 269-284).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.codes import ContactLaw, Mode
from kanegen.program.records import ContactEntry
from kanegen.solve.analysis.closed_contacts import ContactValues, RowSlopes
from kanegen.solve.contacts import ContactState

ONE_SIDED = (ContactLaw.STABILIZED.label, ContactLaw.COMPLIANT.label, ContactLaw.RESTITUTION.label)
"""Laws of contacts that open and close with their gap."""


class Normal(Enum):
    """The equation of a normal force."""

    LOAD = "the load is given"
    OPEN = "no force"
    HELD = "no gap"
    LAW = "the force of a compliant law"
    EITHER = "no gap, or no force"


class Grip(Enum):
    """The equations of a friction force."""

    NONE = "no force"
    STICK = "no slip"
    LIMIT = "no slip, and the largest friction"
    SLIP = "kinetic friction"


@dataclass(frozen=True)
class Support:
    """One contact, with the equations of its forces; ``index`` is its number, ``is_rough``: it has friction.

    ``slips``: its surfaces move on each other at the start, so that it slips while it is closed. ``sign`` is that of
    the friction at its limit along a line.
    """

    index: int
    contact: ContactEntry
    normal: Normal
    grip: Grip
    is_rough: bool
    slips: bool
    sign: float = 1.0

    @property
    def tangents(self) -> list[int]:
        """The rows of the slip velocity."""
        return list(range(self.contact.tangent, self.contact.tangent + self.contact.directions))

    @property
    def held(self) -> list[int]:
        """The rows whose accelerations are zero."""
        normal = [self.contact.normal] if self.normal is Normal.HELD else []
        return normal + (self.tangents if self.grip in (Grip.STICK, Grip.LIMIT) else [])

    @property
    def is_closed(self) -> bool:
        """Whether the contact can exert forces."""
        return self.normal is not Normal.OPEN

    def closed(self, is_closed: bool) -> Support:
        """The contact closed or open; a closed one with friction slips or sticks."""
        if not is_closed:
            return replace(self, normal=Normal.OPEN, grip=Grip.NONE)
        compliant = self.contact.law == ContactLaw.COMPLIANT.label
        return replace(self, normal=Normal.LAW if compliant else Normal.HELD, grip=self.grip_of_closed)

    @property
    def grip_of_closed(self) -> Grip:
        """The equations of the friction while the contact is closed and below its limit."""
        return Grip.NONE if not self.is_rough else Grip.SLIP if self.slips else Grip.STICK


def supports_at(d: Description, values: ContactValues, limits: tuple[Array, Array]) -> tuple[Support, ...]:
    """The contacts in the modes of a state: closed if the gap is not positive, slipping if the velocity is not zero.

    ``limits``: the largest gap and slip velocity (n_rows,) each that count as zero.
    """
    found = []
    for m, contact in enumerate(d.contacts.table):
        law, normal = contact.law, Normal.HELD
        if contact.normal < 0:
            normal = Normal.LOAD
        elif law == ContactLaw.LATCH.label:
            normal = Normal.HELD if contact.closed else Normal.OPEN
        elif law in ONE_SIDED:
            gap, compliant = values.value[contact.normal], law == ContactLaw.COMPLIANT.label
            closed = gap < 0.0 if compliant else gap <= limits[0][contact.normal]
            normal = (Normal.LAW if compliant else Normal.HELD) if closed else Normal.OPEN
        rows = slice(contact.tangent, contact.tangent + contact.directions)
        is_rough = bool(contact.directions and values.mu_s[m] > 0.0)
        slips = bool((np.abs(values.rate[rows]) > limits[1][rows]).any())
        support = Support(m, contact, normal, Grip.NONE, is_rough, slips)
        found.append(replace(support, grip=support.grip_of_closed) if support.is_closed else support)
    return tuple(found)


def undecided(supports: Sequence[Support]) -> tuple[Support, ...]:
    """The contacts with the equation of either gap or force where the gap decides; those with friction stick."""
    return tuple(
        replace(support.closed(True), normal=Normal.EITHER) if support.contact.law in ONE_SIDED else support
        for support in supports
    )


def touching(supports: Sequence[Support]) -> tuple[Support, ...]:
    """The contacts closed without gap or penetration where the gap decides, also those with a compliant law."""
    return tuple(
        replace(support.closed(True), normal=Normal.HELD) if support.contact.law in ONE_SIDED else support
        for support in supports
    )


@dataclass(frozen=True, eq=False)
class Equation:
    """One equation ``value = 0`` with its derivatives (columns,) and a label."""

    label: str
    value: float
    slopes: Array


def equations_of(
    supports: Sequence[Support], values: ContactValues, forces: Array, own: RowSlopes, responses: Array, d: Description
) -> Iterator[Equation]:
    """The equations of all contacts, as many as there are rows, and one more for each contact at its friction limit.

    ``own`` has the columns of all unknowns, the multipliers last; ``responses`` (n_rows,) are the accelerations per
    multiplier, the scale of forces in Fischer's function.
    """
    rows = d.contacts.rows

    def unit(row: int) -> Array:
        slopes = np.zeros(own.value.shape[1])
        slopes[len(slopes) - len(rows) + row] = 1.0
        return slopes

    for support in supports:
        n, normal, grip, m = support.contact.normal, support.normal, support.grip, support.index
        if normal is Normal.OPEN:
            yield Equation(f"force {rows[n]}", forces[n], unit(n))
        elif normal is Normal.HELD:
            yield Equation(f"gap {rows[n]}", values.value[n], own.value[n])
        elif normal is Normal.LAW:
            yield Equation(f"force {rows[n]}", forces[n] - values.load[m], unit(n) - own.load[m])
        elif normal is Normal.EITHER:
            value, of_gap, of_force = fischer(values.value[n], forces[n] * responses[n])
            slopes = of_gap * own.value[n] + of_force * responses[n] * unit(n)
            yield Equation(f"gap and force {rows[n]}", value, slopes)
        tangents = support.tangents
        if grip is Grip.NONE:
            yield from (Equation(f"friction {rows[k]}", forces[k], unit(k)) for k in tangents)
        elif grip is Grip.SLIP:
            yield from _slipping(support, values, forces, own, unit, rows)
        else:
            yield from (Equation(f"slip {rows[k]}", values.rate[k], own.rate[k]) for k in tangents)
        if grip is Grip.LIMIT:
            yield _at_limit(support, values, forces, own, unit, rows)


def _at_limit(
    support: Support, values: ContactValues, forces: Array, own: RowSlopes, unit: Any, rows: Sequence[str]
) -> Equation:
    """``mu_s N - |lambda_t| = 0``; along a line with the sign of the friction that reached the limit."""
    tangents, mu = support.tangents, values.mu_s[support.index]
    friction = forces[tangents]
    e = friction / (float(np.linalg.norm(friction)) or 1.0) if len(tangents) > 1 else np.array([support.sign])
    load, of_load = _normal_force(support, values, forces, own, unit)
    slopes = mu * of_load - sum(x * unit(k) for x, k in zip(e, tangents, strict=True))
    return Equation(f"limit of friction {rows[tangents[0]]}", mu * load - float(e @ friction), slopes)


def _slipping(
    support: Support, values: ContactValues, forces: Array, own: RowSlopes, unit: Any, rows: Sequence[str]
) -> Iterator[Equation]:
    """``lambda_t + mu_k N v / |v| = 0``."""
    tangents, mu = support.tangents, values.mu_k[support.index]
    v = values.rate[tangents]
    speed = float(np.linalg.norm(v)) or 1.0
    e = v / speed
    of_direction = (np.eye(len(e)) - np.outer(e, e)) @ own.rate[tangents] / speed
    load, of_load = _normal_force(support, values, forces, own, unit)
    for i, k in enumerate(tangents):
        slopes = unit(k) + mu * (e[i] * of_load + load * of_direction[i]) + load * e[i] * own.mu_k[support.index]
        yield Equation(f"friction {rows[k]}", forces[k] + mu * load * e[i], slopes)


def _normal_force(
    support: Support, values: ContactValues, forces: Array, own: RowSlopes, unit: Any
) -> tuple[float, Array]:
    """The normal force of friction and its derivatives."""
    contact = support.contact
    if contact.normal < 0:
        return float(values.load[support.index]), own.load[support.index]
    force = float(forces[contact.normal])
    sign = -1.0 if contact.law == ContactLaw.BILATERAL.label and force < 0.0 else 1.0
    return sign * force, sign * unit(contact.normal)


def fischer(a: float, b: float) -> tuple[float, float, float]:
    """``a + b - sqrt(a^2 + b^2)`` and its derivatives; one of the limits at a = b = 0."""
    size = float(np.hypot(a, b))
    if size == 0.0:
        return 0.0, 1.0 - np.sqrt(0.5), 1.0 - np.sqrt(0.5)
    return a + b - size, 1.0 - a / size, 1.0 - b / size


def revised(
    supports: Sequence[Support], values: ContactValues, forces: Array, responses: Array, limits: tuple[Array, float]
) -> tuple[Support, ...]:
    """The supports after a solution: contacts that pull open, negative gaps close, and friction reaches its limit.

    ``limits``: the largest gaps (n_rows,) and the largest force that count as zero.
    """
    return tuple(_revised(support, values, forces, responses, limits) for support in supports)


def _revised(
    support: Support, values: ContactValues, forces: Array, responses: Array, limits: tuple[Array, float]
) -> Support:
    n, m = support.contact.normal, support.index
    if support.contact.law in ONE_SIDED:
        gap, force = values.value[n], forces[n]
        if support.normal is Normal.EITHER:
            return support.closed(gap < force * responses[n])
        if support.normal is Normal.HELD and support.contact.law == ContactLaw.COMPLIANT.label:
            return support.closed(force > limits[1])
        if support.normal is Normal.OPEN and gap < -limits[0][n]:
            return support.closed(True)
        if support.is_closed and (force < -limits[1] or (support.normal is Normal.LAW and gap > limits[0][n])):
            return support.closed(False)
    if support.grip is Grip.STICK:
        load = abs(forces[n]) if n >= 0 else values.load[m]
        if np.linalg.norm(forces[support.tangents]) > values.mu_s[m] * load + limits[1]:
            return replace(support, grip=Grip.LIMIT, sign=float(np.sign(forces[support.tangents[0]]) or 1.0))
    return support


def contact_states(supports: Sequence[Support], values: ContactValues, forces: Array) -> dict[str, ContactState]:
    """The states of the contacts by name."""
    states = {}
    for support in supports:
        contact, n, tangents = support.contact, support.contact.normal, support.tangents
        mode = Mode.CLOSED
        if not support.is_closed:
            mode = Mode.PENETRATED if contact.law in ONE_SIDED and values.value[n] < 0.0 else Mode.OPEN
        elif support.is_rough:
            mode = Mode.SLIP if support.grip is Grip.SLIP else Mode.STICK
        gap, rate = (float(values.value[n]), float(values.rate[n])) if n >= 0 else (np.nan, np.nan)
        rows = [*([n] if n >= 0 else []), *tangents]
        states[contact.name] = ContactState(mode.label, gap, rate, values.rate[tangents].copy(), forces[rows])
    return states
