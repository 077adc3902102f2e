"""Events that occur in certain modes of a model, at the start of a run and at one instant of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.codegen.description import Description, EventLabel
from kanegen.codes import Mode
from kanegen.errors import SolveError
from kanegen.model.contacts import NEAR
from kanegen.solve.contacts import contacts_at
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.solution import EventRecord
from kanegen.solve.values import key_name

_LATER: Final = 1e-7
"""Time over which the rates of guards are difference quotients, s, relative to the time if this is large."""


def require_start(functions: CompiledFunctions, at: Point, events: Sequence[int], scale: Array) -> None:
    """Raise `SolveError` for values that are no modes, and for an event in certain modes that is due at the start.

    ``events``: indices of those that are detected. ``scale`` (n,): the tolerance of each component of (q, u, s). An
    event is due if its guard has its sign after the event, or is zero, but for the tolerance, and tends to this sign.
    """
    d = functions.description
    _require_modes(d, at)
    limited = [k for k in events if k < len(d.events) and d.events[k].when]
    if not limited:
        return
    at, rates = _moving(functions, at)
    value, unit, rate = _guards(functions, at, rates, scale)
    for k in limited:
        event = d.events[k]
        own, near = value[k] * event.direction, unit[k]
        if own > near or (own >= -near and rate[k] * event.direction > 0.0):
            where = ", ".join(f"{name} = {x:g}" for name, x in event.when.items())
            raise SolveError(
                f"the event {event.name!r} is due at the start, t = {at.t!r} s: there {where}, and its guard "
                f"{event.guard} is {float(value[k]):.6g}; start in the state after the event"
            )


def _require_modes(d: Description, at: Point) -> None:
    """Raise `SolveError` for a state of modes that has the value of none."""
    for name, names in d.modes.items():
        value = float(np.asarray(at.s)[d.states.index(name)])
        if value not in range(len(names)):
            known = ", ".join(f"{k} ({mode})" for k, mode in enumerate(names))
            raise SolveError(f"{name} is {value:g} at the start, which is no mode: expected {known}")


def _moving(functions: CompiledFunctions, at: Point) -> tuple[Point, Array]:
    """The state with the forces of its contacts, and y' there, (n,)."""
    if not functions.description.contacts.rows:
        return at, np.concatenate(at.evaluate(functions.get("rhs").pair))
    found = contacts_at(functions, at)
    return at._replace(forces=found.forces), np.concatenate([found.qdot, found.udot, found.sdot])


def _guards(functions: CompiledFunctions, at: Point, rates: Array, scale: Array) -> tuple[Array, Array, Array]:
    """The values of all guards, their changes by the tolerance, and their rates, as differences."""
    evaluate = functions.get("events").value
    value = np.asarray(at.evaluate(evaluate), dtype=np.float64)
    y, n_q, n_u = np.concatenate([at.q, at.u, () if at.s is None else at.s]), len(at.q), len(at.u)

    def moved(dy: Array, dt: float = 0.0) -> Array:
        q, u, s = np.split(y + dy, [n_q, n_q + n_u])
        there = at._replace(t=at.t + dt, q=q, u=u, s=s if at.s is not None else None)
        return np.asarray(there.evaluate(evaluate), dtype=np.float64) - value

    unit = np.sum([np.abs(moved(dy)) for dy in np.diag(scale)], axis=0)
    later = _LATER * max(1.0, abs(float(at.t)))
    return value, unit, moved(later * rates, later) / later


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
        if all(abs(values[name] - value) < NEAR for name, value in event.when.items()):
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
