"""Events that occur in certain modes of a model, at the start of a run and at one instant of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kanegen.backends.points import Point
from kanegen.codegen.description import Description, EventLabel
from kanegen.codes import Mode
from kanegen.errors import SolveError
from kanegen.solve.contacts import contacts_at
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.solution import EventRecord
from kanegen.solve.values import key_name


def require_nothing_due(functions: CompiledFunctions, at: Point, events: Sequence[int]) -> None:
    """Raise `SolveError` for an event in certain modes whose guard has, at the start, its sign after the event.

    ``events``: indices of those that are detected.
    """
    labels = functions.description.events
    limited = [k for k in events if k < len(labels) and labels[k].when]
    if not limited:
        return
    if functions.description.contacts.rows:
        at = at._replace(forces=contacts_at(functions, at).forces)
    values = at.evaluate(functions.get("events").value)
    for k in limited:
        event = labels[k]
        if values[k] * event.direction > 0.0:
            where = ", ".join(f"{name} = {value:g}" for name, value in event.when.items())
            raise SolveError(
                f"the event {event.name!r} is due at the start, t = {at.t!r} s: there {where}, and its guard "
                f"{event.guard} is {float(values[k]):.6g}; start in the state after the event"
            )


def latches_of(description: Description, s: Any, modes: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The modes at a start with the states ``s`` (n_s,), with those of latches that events in certain modes open.

    A latch is closed where such an event (:attr:`kanegen.Event.when`) removes it, and open where one imposes it;
    ``modes`` of the user come first.
    """
    limited = [event for event in description.events if event.when and (event.impose or event.remove)]
    if not limited:
        return modes
    values = dict(zip(description.states, np.asarray(s, dtype=np.float64).tolist(), strict=True))
    found: dict[str, str] = {}
    for event in limited:
        if all(abs(values[name] - value) < 0.5 for name, value in event.when.items()):
            found |= dict.fromkeys(event.remove, Mode.CLOSED.label) | dict.fromkeys(event.impose, Mode.OPEN.label)
    return {**found, **{key_name(name): mode for name, mode in (modes or {}).items()}}


def require_one_transition(description: Description, events: Sequence[EventRecord]) -> None:
    """Raise `SolveError` where two events in the same mode lead to different modes at one instant."""
    limited = {event.name: event for event in description.events if event.when}
    if not limited:
        return
    for first, second in pairwise(event for event in events if event.name in limited):
        same = first.t == second.t and np.array_equal(first.s_before, second.s_before)
        if same and _contradict(limited[first.name], limited[second.name]):
            raise SolveError(
                f"at t = {first.t!r} s the events {first.name!r} and {second.name!r} are due at the same instant, and "
                "lead to different modes: give guards that exclude each other"
            )


def _contradict(own: EventLabel, other: EventLabel) -> bool:
    """Whether two events occur in the same mode and lead to different ones."""
    shared = own.when.keys() & other.when.keys() & own.reset.keys() & other.reset.keys()
    return any(own.when[x] == other.when[x] and own.reset[x] != other.reset[x] for x in shared)
