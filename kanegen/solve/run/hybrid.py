"""Runs with contacts and events: which events are looked for, and the records of a :class:`~kanegen.Solution`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description, EventLabel
from kanegen.codes import EventKind, Mode
from kanegen.errors import SolveError
from kanegen.model.contacts import Event, normalized_events
from kanegen.model.records import FrozenMapping
from kanegen.solve.names import by_name, unknown

MODES = Mode.labels()
"""Modes of a contact by their numbers in C. ``"penetrated"``: the gap is violated, and no force acts."""


@dataclass(frozen=True, eq=False)
class EventRecord:
    """One event of a run.

    Attributes
    ----------
    t
        Time, s.
    name
        The user's event, or the contact.
    kind
        ``"user"`` for the model's events. Of contacts: ``"impact"``, ``"closes"``, ``"opens"``; ``"rests"`` where
        infinitely many impacts accumulate; ``"sticks"``, ``"slips"``, ``"reverses"`` (slips the other way);
        ``"penetrates"`` where a violated gap is left without a force; ``"imposed"`` and ``"removed"`` of a latch.
    q
        Coordinates, (n_q,); they do not jump.
    u_before, u_after
        Speeds, (n_u,), equal unless an impulse acted.
    impulse
        Impulses of all contact rows, (n_rows,), N s, in the order of ``names`` of :class:`ContactHistory`; zero
        without impact.
    """

    t: float
    name: str
    kind: str
    q: Array
    u_before: Array
    u_after: Array
    impulse: Array

    @property
    def jumps(self) -> bool:
        """Whether the speeds jump."""
        return not np.array_equal(self.u_before, self.u_after)


@dataclass(frozen=True, eq=False)
class Phase:
    """An interval of a run, from ``t_start`` to ``t_end`` (s), with constant modes: ``modes`` by name of contact."""

    t_start: float
    t_end: float
    modes: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class ContactHistory:
    """The contacts of a run.

    Attributes
    ----------
    phases
        Modes of all contacts over time, one :class:`Phase` after the other.
    forces
        Multipliers of the contact rows at the stored times, (n_t, n_rows), N: the normal force of each contact, then
        friction along its directions of slip.
    names
        Names of the rows, n_rows: the contact's, and ``"<contact> slip"``.
    """

    phases: tuple[Phase, ...]
    forces: Array
    names: tuple[str, ...]


def watched_events(description: Description, events: Any) -> tuple[int, ...]:
    """Indices of the events to look for, given by name or as the model's records; None: all.

    Raises
    ------
    SolveError
        For unknown names, and for records that differ from the model's event of that name.
    """
    if events is None:
        return tuple(range(len(description.events)))
    if isinstance(events, (str, Event)) or not isinstance(events, Iterable):
        events = (events,)
    problems: list[str] = []
    indices = {_event_index(item, description.events, problems) for item in events}
    if problems:
        raise SolveError("; ".join(problems))
    return tuple(sorted(indices))


def _event_index(item: Any, known: tuple[EventLabel, ...], problems: list[str]) -> int:
    """The index of an event given by name or as a record; -1 with a problem where the model has no such event."""
    names = [event.name for event in known]
    name = item.name if isinstance(item, Event) else item
    if not isinstance(name, str):
        problems.append(f"events holds {item!r}: put events into Model(events=...) and give their names here")
    elif name not in names:
        problems.append(f"{unknown(name, names, 'event')}; events are compiled with the model, Model(events=...)")
    else:
        own = vars(known[names.index(name)])
        labels = map(EventLabel.of, normalized_events([item], "events", problems) if isinstance(item, Event) else ())
        problems += [
            f"the event {name!r} was not compiled with {field} = {value!r}: the model has {own[field]!r}; name the "
            "event, or build a model with this one"
            for label in labels
            for field, value in vars(label).items()
            if value != own[field]
        ]
        return names.index(name)
    return -1


def start_modes(module: Evaluator, modes: Mapping[str, str] | None) -> dict[int, int]:
    """Index of contact -> code of its mode. Raises `SolveError` for names and modes that do not exist."""
    named = by_name(modes or {}, module.CONTACTS, "contact")
    wrong = [f"{name}: {unknown(str(mode), MODES, 'mode')}" for name, mode in named.items() if mode not in MODES]
    if wrong:
        raise SolveError("modes: " + "; ".join(wrong))
    return {module.CONTACTS.index(name): MODES.index(mode) for name, mode in named.items()}


def refuse_backwards(module: Evaluator, watched: Iterable[int]) -> None:
    """Raise `SolveError` naming the contacts and events that make the motion irreversible."""
    names = [f"contact {name!r}" for name in module.IRREVERSIBLE_CONTACTS]
    names += [f"event {module.EVENTS[k]!r}" for k in watched if module.EVENTS[k] in module.IRREVERSIBLE_EVENTS]
    if names:
        raise SolveError(
            f"the span goes backwards in time, where {', '.join(names)} cannot be followed: the state after impacts, "
            "friction and latches does not determine the state before; integrate forwards"
        )


def refuse_control_states(module: Evaluator, watched: Iterable[int]) -> None:
    """Raise `SolveError` for contacts and events in a run whose state contains controls: they support (q, u) only."""
    names = [*(f"contact {name!r}" for name in module.CONTACTS), *(f"event {module.EVENTS[k]!r}" for k in watched)]
    if names:
        raise SolveError(
            f"kg.ControlConstraints make the controls part of the state, on which {', '.join(names)} cannot act: "
            "leave events out by events=(), and use servo-constraints in models with contacts"
        )


def hybrid_records(
    module: Evaluator, description: Description, outcome: Any
) -> tuple[tuple[EventRecord, ...], ContactHistory | None]:
    """The events and the contacts of a run; ``outcome.hybrid`` is None in runs without contacts and events.

    ``outcome.hybrid`` holds ``events`` (n, 3 + n_q + 2 n_u + n_rows), whose rows are time, kind, index, q, speeds
    before and after, and impulses; ``phases`` (m, 1 + n_contacts), whose rows are the start of a phase and the modes;
    ``forces`` (n_t, n_rows).
    """
    arrays = outcome.hybrid
    if arrays is None:
        return (), None
    events = _events(module, description, arrays.events)
    if not module.CONTACTS:
        return events, None
    phases = _phases(module.CONTACTS, arrays.phases, outcome.last[0])
    return events, ContactHistory(phases, arrays.forces, description.contacts.rows)


def _events(module: Evaluator, description: Description, rows: Array) -> tuple[EventRecord, ...]:
    n_q, n_u = len(description.coordinates), len(description.speeds)
    parts = [np.ascontiguousarray(part) for part in np.split(rows, [3, 3 + n_q, 3 + n_q + n_u, 3 + n_q + 2 * n_u], 1)]
    kinds, contacts, events = EventKind.labels(), module.CONTACTS, module.EVENTS
    records = []
    for (t, code, index), q, before, after, impulse in zip(parts[0].tolist(), *parts[1:], strict=True):
        kind = kinds[int(code)]
        name = (events if code == EventKind.USER else contacts)[int(index)]
        records.append(EventRecord(t, name, kind, q, before, after, impulse))
    return tuple(records)


def _phases(contacts: tuple[str, ...], rows: Array, end: float) -> tuple[Phase, ...]:
    """Phases from their starts, without those of length zero; equal neighbors are joined."""
    phases: list[Phase] = []
    ends = [*rows[1:, 0].tolist(), end]
    for row, t_end in zip(rows, ends, strict=True):
        modes = FrozenMapping(zip(contacts, (MODES[int(code)] for code in row[1:]), strict=True))
        if phases and dict(phases[-1].modes) == dict(modes):
            phases[-1] = Phase(phases[-1].t_start, t_end, modes)
        elif t_end != row[0] or len(rows) == 1:
            phases.append(Phase(float(row[0]), t_end, modes))
    return tuple(phases)
