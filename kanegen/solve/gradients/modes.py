"""The modes of contacts during a motion and at its jumps, as the numbers that programs of variations read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.codes import ContactLaw, Mode
from kanegen.errors import SolveError
from kanegen.program.catalogue import ROW_MODES
from kanegen.program.records import ContactEntry
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.solution import EventRecord

_HOLDS, _SLIPS, _ALONG, _REBOUNDS, _KEEPS, _SOFTNESS = range(len(ROW_MODES))

_CLOSED: Final = frozenset({Mode.CLOSED.label, Mode.STICK.label, Mode.SLIP.label})

_AT_REST: Final = 1e-9
"""Speeds and impulses below this fraction of the largest one of their kind at a jump are zero."""

_LIMIT: Final = 1e-8
"""An impulse of friction this close to its limit, relative to it, may stick as well as slip."""


_DEPENDENT: Final = 1e-9
"""Rows whose responses have a smaller relative eigenvalue depend on each other (kg_modes.h)."""

_SOFTNESS_OF_DEPENDENT: Final = 1e-10
"""The softness of such rows, relative to their own response. As it tends to zero, the multipliers tend to those of
least norm in the units of the rows, which runs take. It changes accelerations by this fraction of their terms, while
the multipliers have an error of rounding divided by it, which has no effect on accelerations."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The contact rows at a state: ``value`` and ``rate`` (n_rows,), coefficients ``mu`` of contacts (n_contacts,)."""

    value: Array
    rate: Array
    mu: Array


class ContactModes:
    """Turns the modes of the contacts of a model into numbers. Raises `SolveError` for modes without derivatives."""

    def __init__(self, functions: CompiledFunctions) -> None:
        self._functions, self._d = functions, functions.description
        self.table = self._d.contacts.table
        self._n = len(self._d.contacts.rows)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self._n * len(ROW_MODES) + len(self._d.impulses)

    def rows(self, at: Point) -> Rows:
        """The contact rows at a state."""
        n, m = self._n, len(self.table)
        of_gaps = at.evaluate(self._functions.get("gaps").value)
        return Rows(of_gaps[:n], of_gaps[n : 2 * n], of_gaps[3 * n + 2 * m : 3 * n + 3 * m])

    def of_phase(self, modes: Mapping[str, str], at: Point) -> Array:
        """The numbers of the modes of an interval, with the directions of slip at a state inside."""
        numbers = np.zeros((self._n, len(ROW_MODES)))
        if not self._n:
            return self._flat(numbers, at)
        rows = self.rows(at)
        for contact in self.table:
            mode = modes[contact.name]
            normal, tangents = contact.normal, tangents_of(contact)
            if normal >= 0:
                numbers[normal, _ALONG] = 1.0
                known = contact.law == ContactLaw.COMPLIANT.label
                closed = mode in _CLOSED or contact.law == ContactLaw.BILATERAL.label
                numbers[normal, _SLIPS if known else _HOLDS] = float(closed)
            numbers[tangents, _HOLDS] = float(mode == Mode.STICK.label)
            numbers[tangents, _SLIPS] = float(mode == Mode.SLIP.label)
            numbers[tangents, _ALONG] = direction_of(rows.rate[tangents])
        return self._flat(numbers, at)

    def with_friction(self, modes: Mapping[str, str], at: Point) -> dict[str, str]:
        """The modes, where closed contacts that have friction stick if they are at rest, and slip otherwise."""
        known, rates = dict(modes), self.rows(at).rate
        for contact in self.table:
            if contact.directions and known[contact.name] == Mode.CLOSED.label:
                speed = np.linalg.norm(rates[tangents_of(contact)])
                rests = speed <= _AT_REST * np.abs(rates).max(initial=0.0)
                if contact.creeps and not rests:
                    raise SolveError(
                        f"sensitivities are not available where contact {contact.name!r} closes at the end of a run, "
                        f"t = {at.t!r} s, because it may creep or slip then"
                    )
                known[contact.name] = (Mode.STICK if rests else Mode.SLIP).label
        return known

    def turned(self, numbers: Array, at: Point) -> Array:
        """The numbers of an interval with the directions of slip in a plane at a state."""
        changed, rates = numbers.copy(), self.rows(at).rate
        of_rows = changed[: self._n * len(ROW_MODES)].reshape(self._n, len(ROW_MODES))
        for contact in self.table:
            if contact.directions > 1:
                of_rows[tangents_of(contact), _ALONG] = direction_of(rates[tangents_of(contact)])
        return changed

    def of_jump(
        self,
        events: Sequence[EventRecord],
        modes: Mapping[str, str],
        sides: tuple[Point, Point],
        missing: Callable[[str], None],
    ) -> Array:
        """The numbers of an impact or impulse, for the modes before it and the states on both sides.

        ``missing`` receives the reason if friction is at its limit.
        """
        before, after = sides
        impulses = events[0].impulse
        numbers, acting = np.zeros((self._n, len(ROW_MODES))), np.zeros(len(self._d.impulses))
        for event in self._d.events:
            if event.impulse is not None and event.name in [e.name for e in events if e.kind == "user"]:
                acting[self._d.impulses.index(event.impulse)] = 1.0
        if self._n:
            rates = self.rows(before), self.rows(after)
            for m, contact in enumerate(self.table):
                if contact.normal >= 0:
                    self._strike(contact, modes[contact.name], rates, impulses, numbers)
                rubs = contact.normal >= 0 and numbers[contact.normal, _HOLDS] and contact.directions
                if rubs and self._rub(contact, rates[1].mu[m], rates[1].rate, impulses, numbers):
                    missing(
                        f"the motion has no derivative beyond the impact of contact {contact.name!r} at "
                        f"t = {events[0].t!r} s: its friction is at its limit there, so that it sticks on one side and "
                        "slips on the other"
                    )
        return self._flat(numbers, before, acting)

    @staticmethod
    def _strike(contact: ContactEntry, mode: str, sides: tuple[Rows, Rows], impulses: Array, numbers: Array) -> None:
        """Fill in the numbers of the normal row."""
        row, (before, after) = contact.normal, (side.rate[contact.normal] for side in sides)
        closed = mode in _CLOSED
        struck = abs(impulses[row]) > _AT_REST * np.abs(impulses).max(initial=0.0)
        stays = closed and abs(after) <= _AT_REST * np.abs(sides[0].rate).max(initial=0.0) + abs(before)
        kinds = {ContactLaw.RESTITUTION.label: struck or stays, ContactLaw.STABILIZED.label: closed}
        kinds |= {ContactLaw.BILATERAL.label: True, ContactLaw.LATCH.label: closed or struck}
        numbers[row, _ALONG] = -1.0 if impulses[row] < 0.0 and contact.law == ContactLaw.BILATERAL.label else 1.0
        numbers[row, _HOLDS] = float(kinds.get(contact.law, False))
        # With a restitution of zero, and in impacts that are too slow to rebound, the contact stays closed; a little
        # more restitution has no effect on the motion after it.
        rebounds = before < 0.0 and abs(after) > _AT_REST * abs(before)
        numbers[row, _REBOUNDS] = float(contact.law == ContactLaw.RESTITUTION.label and not closed and rebounds)
        numbers[row, _KEEPS] = float(contact.law == ContactLaw.STABILIZED.label)

    @staticmethod
    def _rub(contact: ContactEntry, mu: float, rates: Array, impulses: Array, numbers: Array) -> bool:
        """Fill in the numbers of the rows of friction; returns whether it is at its limit."""
        tangents = tangents_of(contact)
        speed, force = np.linalg.norm(rates[tangents]), np.linalg.norm(impulses[tangents])
        limit = mu * abs(impulses[contact.normal])
        sticks = speed <= _AT_REST * np.abs(rates).max(initial=0.0) or force < (1.0 - _LIMIT) * limit
        numbers[tangents, _HOLDS], numbers[tangents, _SLIPS] = float(sticks), float(not sticks)
        numbers[tangents, _ALONG] = direction_of(rates[tangents])
        return bool(sticks and force > (1.0 - _LIMIT) * limit and limit > 0.0)

    def softer(self, numbers: Array) -> Array | None:
        """The numbers with twice the softness of contacts that depend on each other; None if there are none."""
        changed = numbers.copy()
        softness = changed[_SOFTNESS : self._n * len(ROW_MODES) : len(ROW_MODES)]
        softness *= 2.0
        return changed if softness.any() else None

    def signs(self, numbers: Array, forces: Array) -> Array:
        """The numbers with the signs of the normal forces (n_contacts,) of two-sided contacts with friction."""
        changed = numbers.copy()
        of_rows = changed[: self._n * len(ROW_MODES)].reshape(self._n, len(ROW_MODES))
        for contact, force in zip(self.table, forces, strict=True):
            if contact.law == ContactLaw.BILATERAL.label:
                of_rows[contact.normal, _ALONG] = -1.0 if force < 0.0 else 1.0
        return changed

    @property
    def has_two_sided(self) -> bool:
        """Whether there is friction whose normal force can have both signs."""
        return any(contact.law == ContactLaw.BILATERAL.label and contact.directions for contact in self.table)

    def held_rows(self, numbers: Array) -> tuple[list[int], list[int]]:
        """The rows whose gap, and those whose rate, stays zero in the modes of an interval."""
        holds = numbers[: self._n * len(ROW_MODES)].reshape(self._n, len(ROW_MODES))[:, _HOLDS] != 0.0
        gaps = [c.normal for c in self.table if c.normal >= 0 and holds[c.normal] and _keeps_gap(c)]
        creeping = {row for c in self.table if c.creeps for row in tangents_of(c)}  # their rates decay
        return gaps, [row for row in np.flatnonzero(holds).tolist() if row not in creeping]

    def _flat(self, numbers: Array, at: Point, acting: Array | None = None) -> Array:
        """All numbers; ``acting``: those of the impulses of the model. Rows that depend on each other yield."""
        held = np.flatnonzero(numbers[:, _HOLDS])
        if held.size:
            D = self._responses(at)[np.ix_(held, held)]
            own = np.maximum(D.diagonal(), 0.0)
            own = np.where(own > 0.0, own, own.max() or 1.0)  # the constraints hold a row that does not respond
            sizes = np.sqrt(own)
            if np.linalg.eigvalsh(D / np.outer(sizes, sizes))[0] < _DEPENDENT:
                numbers[held, _SOFTNESS] = _SOFTNESS_OF_DEPENDENT * own
        return np.append(numbers.ravel(), np.zeros(len(self._d.impulses)) if acting is None else acting)

    def _responses(self, at: Point) -> Array:
        """The accelerations of the rows per multiplier at a state, (n_rows, n_rows)."""
        n, n_q, n_u = self._n, len(self._d.coordinates), len(self._d.speeds)
        first = n_q + n_u + n * n_u
        values = at.evaluate(self._functions.get("contacts").value)
        return np.asarray(values[first : first + n * n].reshape(n, n))


def tangents_of(contact: ContactEntry) -> list[int]:
    """The rows of the directions of slip of a contact."""
    return list(range(contact.tangent, contact.tangent + contact.directions)) if contact.directions else []


def direction_of(rates: Array) -> Array:
    """The unit vector of a slip velocity; of one at rest the first direction."""
    size = np.linalg.norm(rates)
    return rates / size if size > 0.0 else np.eye(len(rates))[0] if len(rates) else rates


def _keeps_gap(contact: ContactEntry) -> bool:
    return contact.level == 2 and contact.law != ContactLaw.LATCH.label


def modes_after(modes: Mapping[str, str], events: Collection[EventRecord]) -> dict[str, str]:
    """The modes after events at the end of a run; whether a contact that closes sticks is not among them."""
    labels = {"opens": Mode.OPEN, "removed": Mode.OPEN, "penetrates": Mode.PENETRATED, "sticks": Mode.STICK}
    labels |= {"closes": Mode.CLOSED, "imposed": Mode.CLOSED, "slips": Mode.SLIP}
    changed = {event.name: labels[event.kind].label for event in events if event.kind in labels}
    return {name: changed.get(name, mode) for name, mode in modes.items()}
