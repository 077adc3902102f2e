"""How the changes of a motion pass an instant at which something jumps: its time moves, and the state jumps.

With the guard ``g(t, y, p) = 0`` and the state ``h(t, y, p)`` after the event, the time of the event changes by
``dt_e = -(g_y dy + g_p dp) / g'``, and the state at a fixed time after it by
``h_y dy + h_p dp + (h_y f- + h_t - f+) dt_e`` (Aizerman and Gantmacher 1958; Kong, Payne, Zhu, Johnson 2024). Guards
are those of the model's events and those of the contacts, such as a gap; h is a reset, an impact or an impulse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.codes import ContactLaw, Mode
from kanegen.errors import SolveError
from kanegen.program.catalogue import CONTACT_CHANGES, CONTACT_GUARDS, EVENT_CHANGES, JUMP_CHANGES
from kanegen.program.records import ContactEntry
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.inputs import input_rates
from kanegen.solve.gradients.tape import Part
from kanegen.solve.solution import EventRecord

_JUMP: Final = 1e-5
"""Smaller relative differences of the rates on both sides of a kink are those of the distance."""

_CONTINUOUS: Final = 1e-9
"""Smaller relative differences of the rates on both sides of a change of mode are rounding."""

_GRAZING: Final = 1e-6
"""A guard whose rate at zero is a smaller fraction of that in the step before does not pass through zero."""

_AT_CREEP: Final = 1e-5
"""Slip velocities that differ from that of creep, or from zero, by a smaller fraction of it are at this limit."""

_BESIDE: Final = 1e-10
"""Distance in time before an instant at which guards are compared with those at it, relative to the time or to 1 s."""

_SAME: Final = 1e-7
"""Events whose times have derivatives with a smaller relative difference move together."""

_REPRODUCED: Final = 1e-7
"""Largest relative difference between the speeds after a jump in the run and those of its equations."""


@dataclass(frozen=True, eq=False)
class InstantDerivative:
    """The derivatives at an instant with respect to (y, r, p) before it, (n,) in all.

    ``times`` (n,): of its time. ``states`` (n_y, n): of the state after it. ``event_times``: of the time of each event
    of the model there, in order; NaN for a guard that touches zero where nothing else happens.
    """

    times: Array
    states: Array
    event_times: tuple[Array, ...]

    def time(self, dy: Array, dr: Array, dp: Array) -> Array:
        """The change (k,) of the time of the instant, from those of the state before it, (n_y, k)."""
        return np.asarray(self.times @ np.concatenate([dy, dr, dp]))

    def after(self, dy: Array, dr: Array, dp: Array) -> Array:
        """The change (n_y, k) of the state after the instant."""
        return np.asarray(self.states @ np.concatenate([dy, dr, dp]))


@dataclass(frozen=True, eq=False)
class _Trigger:
    """What starts a jump: ``label`` for messages, and the place of its guard in a function of changes.

    ``after``: whether the guard is that of the modes after the event.
    """

    label: str
    function: str
    index: int
    after: bool = False


Missing = Callable[[str], None]
"""Receives the reason why there is no derivative, and raises `SolveError`; or returns, and a one-sided derivative, for
the order of events in the run, takes its place."""


def refuse(reason: str) -> None:
    """Raise `SolveError`."""
    raise SolveError(reason)


def instant_derivative(
    code: VariationCode, events: Sequence[EventRecord], before: Part, after: Part, missing: Missing = refuse
) -> InstantDerivative:
    """The derivatives at the instant of the events between two parts of the motion.

    Raises `SolveError` where they do not exist, with the event and the time.
    """
    return _Instant(code, events, before, after, missing).derivative()


def closing_time(code: VariationCode, events: Sequence[EventRecord], before: Part, after: Part) -> Array:
    """The derivatives (n,) of the time at which a gap closes, with respect to (y, r, p). Raises `SolveError`."""
    return _Instant(code, events, before, after, refuse).closing_time()


class _Instant:
    """An instant at which events occur, one ``transition`` of the state after the other."""

    def __init__(
        self, code: VariationCode, events: Sequence[EventRecord], before: Part, after: Part, missing: Missing
    ) -> None:
        self._code, self._events, self._before, self._after = code, events, before, after
        self._missing = missing
        d = self._d = code.functions.description
        self._n = code.n_y, len(d.inputs), len(d.parameters)
        self._t, self._y = events[0].t, _state_before(events[0])
        self._at = self._point(self._y)
        self._guards = tuple(code.functions.module.EVENTS)

    def _point(self, y: Array) -> Point:
        """A state at the instant, with the inputs that act before it."""
        return self._code.at(self._t, y, self._before.last_start)

    def derivative(self) -> InstantDerivative:
        self._require_known_changes()
        n_y, n = self._n[0], sum(self._n)
        f_before, f_after = self._rates
        jumps = any(event.jumps for event in self._events)
        times = self._common_time() if jumps else None
        observed = self._observed_times(times)
        states, along = np.eye(n_y, n), f_before
        for transition in _transitions(self._events):
            states, along = self._through(transition, states, along)
        jump = along - f_after
        same = self._after.from_instant or (np.abs(jump) <= _CONTINUOUS * (np.abs(along) + np.abs(f_after))).all()
        if times is None and same:  # the rates are the same, or jump at a time that does not move
            return InstantDerivative(observed[0] if observed else np.zeros(n), states, observed)
        times = self._common_time() if times is None else times
        return InstantDerivative(times, states + np.outer(jump, times), observed)

    def closing_time(self) -> Array:
        """The derivatives of the time at which the gap of the first contact that closes is zero."""
        event = next(event for event in self._events if event.kind in ("impact", "closes"))
        return self._times(self._contact_trigger(event, "gap"))

    def _require_known_changes(self) -> None:
        """Refuse changes that are the limit of infinitely many, or begin without a direction."""
        accumulated = accumulating(self._events)
        for event in self._events:
            contact = next((x for x in self._d.contacts.table if x.name == event.name), None)
            where = (
                f"the derivative of the motion is not available beyond the event {event.kind!r} of contact "
                f"{event.name!r} at t = {self._t!r} s: "
            )
            if event.kind == "paradox":
                refuse(f"{where}in its friction no finite forces exist there (Painleve's paradox)")
            elif event.kind == "slips" and contact is not None and contact.directions > 1:
                refuse(f"{where}it begins to slip in a plane, in a direction that follows from the accelerations")
            elif event is accumulated:
                self._missing(f"{where}infinitely many impacts accumulate there")

    # -- the time -------------------------------------------------------------------------------------------------

    def _observed_times(self, times: Array | None) -> tuple[Array, ...]:
        """The derivatives of the times of the events of the model; ``times``: of what starts the jump, if there is one.

        What the jump itself causes happens at its time: the guard need not be zero there.
        """
        first = {id(event) for event in next(iter(_transitions(self._events)))}
        events = (event for event in self._events if event.kind == "user")
        return tuple(self._observed(e) if times is None or id(e) in first else times for e in events)

    def _observed(self, event: EventRecord) -> Array:
        """The derivatives of the time of an event of the model."""
        trigger = self._event_trigger(event)
        if not self._acts(event) and self._is_grazing(trigger):
            return np.full(sum(self._n), np.nan)
        return self._times(trigger)

    def _common_time(self) -> Array:
        """The derivatives of the time of what starts the jump. Raises `SolveError` where several things do."""
        triggers = self._triggers()
        if not triggers:
            refuse(
                f"the derivative of the motion is not available beyond t = {self._t!r} s: what starts the change of "
                f"{', '.join(sorted({repr(event.name) for event in self._events}))} has no guard with a derivative"
            )
        times = [self._times(trigger) for trigger in triggers]
        for trigger, other in zip(triggers[1:], times[1:], strict=True):
            if not np.abs(other - times[0]).max() <= _SAME * np.abs(times[0]).max():
                self._missing(
                    f"the motion has no derivative beyond t = {self._t!r} s, where {triggers[0].label} and "
                    f"{trigger.label} occur at the same instant: their order changes with what varies"
                )
        return times[0]

    def _triggers(self) -> list[_Trigger]:
        """What starts the first transition."""
        first = next(iter(_transitions(self._events)))
        acting = [e for e in first if e.kind != "user" or self._acts(e)] or list(first)
        of_model = [self._event_trigger(e) for e in acting if e.kind in ("user", "switches")]
        jumps = not np.array_equal(first[0].u_before, first[0].u_after)
        of_contacts = {}
        for event in acting:
            index = self._contact_guard(event, jumps)
            if index is not None and event.name not in of_contacts:
                of_contacts[event.name] = self._contact_trigger(event, index)
        if of_model and jumps:
            return of_model  # contacts that change their modes do so because of the impulse
        return [*of_model, *of_contacts.values()]

    def _acts(self, event: EventRecord) -> bool:
        label = next(x for x in self._d.events if x.name == event.name)
        return bool(label.terminal or label.impulse is not None or label.impose or label.remove or label.reset)

    def _event_trigger(self, event: EventRecord) -> _Trigger:
        return _Trigger(f"the event {event.name!r}", EVENT_CHANGES, self._guards.index(event.name))

    def _contact_trigger(self, event: EventRecord, guard: str) -> _Trigger:
        names = [contact.name for contact in self._d.contacts.table]
        index = names.index(event.name) * len(CONTACT_GUARDS) + CONTACT_GUARDS.index(guard)
        after = event.kind == "sticks" and guard == "stick margin"
        return _Trigger(f"{event.kind!r} of contact {event.name!r}", CONTACT_CHANGES, index, after)

    def _contact_guard(self, event: EventRecord, jumps: bool) -> str | None:
        """The guard whose zero is the event of a contact; None for events that follow from a jump."""
        if event.kind in ("user", "switches", "rests", "imposed", "removed"):
            return None
        contact = next(x for x in self._d.contacts.table if x.name == event.name)
        mode = self._before.named_modes[event.name]
        known = contact.law == ContactLaw.COMPLIANT.label
        if event.kind in ("impact", "closes") and mode == Mode.OPEN.label:
            return "gap"
        if jumps:
            return None
        if event.kind == "closes":  # the force of a gap that is violated becomes compressive
            return "load" if known else None
        if event.kind in ("sticks", "reverses"):
            return self._end_of_slip(contact) if contact.creeps and event.kind == "sticks" else "slip velocity"
        if event.kind == "slips":
            return "stick margin"
        if event.kind in ("opens", "penetrates"):
            falls = contact.law == ContactLaw.RESTITUTION.label or event.kind == "penetrates"
            return ("load" if known else "normal force") if falls else "gap"
        return None

    def _end_of_slip(self, contact: ContactEntry) -> str:
        """The guard of a contact with a creep velocity that sticks: it is slow enough, or friction can hold it now."""
        values = self._code.change(CONTACT_CHANGES, self._at, np.zeros(self._n[0]), modes=self._modes)
        own = values.reshape(2, -1, len(CONTACT_GUARDS))[0, self._d.contacts.table.index(contact)]
        slip, margin = (float(own[CONTACT_GUARDS.index(name)]) for name in ("slip velocity", "creep margin"))
        sizes = {"slip velocity": abs(slip), "creep margin": abs(margin)}
        nearest = min(sizes, key=lambda name: sizes[name])
        return nearest if sizes[nearest] <= _AT_CREEP * abs(slip - margin) else "stick margin"

    def _times(self, trigger: _Trigger) -> Array:
        """The derivatives of the time at which a guard is zero. Raises `SolveError` where it only touches zero."""
        if self._after.from_instant and self._jumps(trigger):
            if any(event.jumps for event in self._events):
                refuse(
                    f"the derivative of the motion is not available beyond {trigger.label} at t = {self._t!r} s, an "
                    "instant at which an input jumps, and with it the guard"
                )
            return np.zeros(sum(self._n))
        if self._is_grazing(trigger):
            self._missing(
                f"the motion has no derivative beyond {trigger.label} at t = {self._t!r} s: its guard touches zero "
                "there (grazing)"
            )
            return np.zeros(sum(self._n))
        slopes = np.array([self._change(trigger, x)[self._row(trigger)] for x in np.eye(sum(self._n))])
        return np.asarray(-slopes / self._rate_of(trigger))

    def _jumps(self, trigger: _Trigger) -> bool:
        """Whether a guard jumps over zero at an instant that is known before the run."""
        beside = self._before.direction * _BESIDE * max(1.0, abs(self._t))
        points = self._code.at(self._t - beside, self._y), self._code.at(self._t, self._y)
        before, after = (self._guard(trigger, at) for at in points)
        return abs(after - before) > self._least_rate(trigger) * abs(float(self._before.h[-1]))

    def _guard(self, trigger: _Trigger, at: Point) -> float:
        """The value of a guard before the instant."""
        if trigger.function == EVENT_CHANGES:
            return float(at.evaluate(self._code.functions.get("events").value)[trigger.index])
        code = self._code
        modes = self._after.modes if trigger.after else self._before.modes
        return float(code.change(CONTACT_CHANGES, at, np.zeros(code.n_y), modes=modes)[trigger.index])

    def _rate_of(self, trigger: _Trigger) -> float:
        """The rate of a guard along the motion, per second."""
        along = self._rates[0], self._rates_of_inputs
        change = self._code.change(trigger.function, self._at, *along, dt=1.0, modes=self._modes_of(trigger))
        return float(change[self._row(trigger)])

    def _is_grazing(self, trigger: _Trigger) -> bool:
        return abs(self._rate_of(trigger)) <= self._least_rate(trigger)

    @cached_property
    def _modes(self) -> Array:
        """The modes before, with directions of slip in a plane at the event."""
        code, part = self._code, self._before
        return code.modes.turned(part.modes, self._at) if self._d.contacts.rows else part.modes

    def _row(self, trigger: _Trigger) -> int:
        """The place of the change of a guard: the changes of contacts follow their values."""
        n = len(self._d.contacts.table) * len(CONTACT_GUARDS)
        return trigger.index + (n if trigger.function == CONTACT_CHANGES else 0)

    def _modes_of(self, trigger: _Trigger) -> Array:
        return self._after.modes if trigger.after else self._modes

    def _change(self, trigger: _Trigger, direction: Array) -> Array:
        n_y, n_r, _ = self._n
        dy, dr, dp = np.split(direction, [n_y, n_y + n_r])
        return self._code.change(trigger.function, self._at, dy, dr, dp, modes=self._modes_of(trigger))

    def _least_rate(self, trigger: _Trigger) -> float:
        """The rate of a guard, per second, up to which it touches zero: it changes by more in the step before."""
        code, part = self._code, self._before
        if not part.h.size:
            return 0.0
        guard = self._guard(trigger, code.at(float(part.t[-1]), part.y[-2]))
        return _GRAZING * abs(guard / float(part.h[-1]))

    @cached_property
    def _rates_of_inputs(self) -> Array:
        """The rates of the inputs in time before the instant, (n_r,)."""
        h = self._before.h
        return (
            input_rates(self._code.problem.inputs, self._n[1], self._t, float(h[-1]))
            if h.size
            else np.zeros(self._n[1])
        )

    # -- the state ------------------------------------------------------------------------------------------------

    @cached_property
    def _rates(self) -> tuple[Array, Array]:
        """The rates y' before and after, (n_y,) each.

        Feedback laws can jump at a kink, where only their values beside it tell them apart: these are extrapolated.
        """
        code, part = self._code, self._before
        f = code.rate(self._t, self._y, part.modes)
        if any(event.kind == "switches" for event in self._events):
            beside = [self._beside(f, sign * part.clearance) for sign in (-part.direction, part.direction)]
            jumps = np.abs(beside[1] - beside[0]) > _JUMP * np.abs(np.array(beside)).max(axis=0)
            if jumps.any():
                return beside[0], beside[1]
        after = _state_after(self._events[-1])
        same = np.array_equal(after, self._y) and np.array_equal(part.modes, self._after.modes)
        return f, f if same else code.rate(self._t, after, self._after.modes)

    def _beside(self, f: Array, dt: float) -> Array:
        """The limit of the rates on one side, by extrapolation from two states there."""
        modes = self._before.modes
        near, far = (self._code.rate(self._t + k * dt, self._y + k * dt * f, modes) for k in (1.0, 2.0))
        return np.asarray(2.0 * near - far)

    def _through(self, events: Sequence[EventRecord], states: Array, along: Array) -> tuple[Array, Array]:
        """The derivatives of the state after a transition, and its change along the motion, from those before it."""
        record = events[0]
        if np.array_equal(_state_before(record), _state_after(record)):
            return states, along
        n_y, n = self._n[0], sum(self._n)
        jump, in_time = np.eye(n_y, n), np.zeros(n_y)
        if not np.array_equal(record.u_before, record.u_after):
            self._strike(events, jump, in_time)
        if not np.array_equal(record.s_before, record.s_after):
            self._reset(events, jump, in_time)
        total = jump[:, :n_y] @ states
        total[:, n_y:] += jump[:, n_y:]
        return total, jump[:, :n_y] @ along + in_time

    def _strike(self, events: Sequence[EventRecord], jump: Array, in_time: Array) -> None:
        """Fill in the derivatives of the speeds after an impact or an impulse. Raises `SolveError`."""
        code, (n_y, n_r, _), d = self._code, self._n, self._d
        before, after = self._point(_state_before(events[0])), self._point(_state_after(events[0]))
        own = slice(len(d.coordinates), len(d.coordinates) + len(d.speeds))
        modes = code.modes.of_jump(events, self._before.named_modes, (before, after), self._missing)
        if not self._reproduces(events[0], before, modes):
            refuse(
                f"the derivative of the motion is not available beyond t = {self._t!r} s: at the impact of "
                f"{', '.join(sorted({repr(e.name) for e in events}))} impulses are not unique, because contacts depend "
                "on each other, or several impacts follow each other at one instant"
            )
        for k, direction in enumerate(np.eye(sum(self._n))):
            dy, dr, dp = np.split(direction, [n_y, n_y + n_r])
            jump[own, k] = code.change(JUMP_CHANGES, before, dy, dr, dp, modes=modes)[-len(d.speeds) :]
        rates = np.zeros(n_y), self._rates_of_inputs
        in_time[own] = code.change(JUMP_CHANGES, before, *rates, dt=1.0, modes=modes)[-len(d.speeds) :]

    def _reproduces(self, event: EventRecord, before: Point, modes: Array) -> bool:
        """Whether the equations of a jump have the speeds of the run after it."""
        try:
            jump = self._code.change(JUMP_CHANGES, before, np.zeros(self._n[0]), modes=modes)
        except SolveError:
            return False
        speeds = np.abs(np.concatenate([event.u_before, event.u_after])).max(initial=0.0)
        return bool(np.abs(jump[: event.u_after.size] - event.u_after).max() <= _REPRODUCED * speeds)

    def _reset(self, events: Sequence[EventRecord], jump: Array, in_time: Array) -> None:
        """Fill in the derivatives of the states after the resets of the model's events, one after the other."""
        n_y, n_r, _ = self._n
        n_s, first = len(self._d.states), len(self._guards)
        at = self._point(_state_before(events[0]))
        resetting = [e for e in events if e.kind == "user" and self._acts(e)]
        if len(resetting) > 1:
            refuse(
                f"the motion has no derivative beyond t = {self._t!r} s, where the events "
                f"{', '.join(repr(e.name) for e in resetting)} occur at the same instant"
            )
        index = self._guards.index(resetting[0].name)
        own = slice(first + index * n_s, first + (index + 1) * n_s)
        columns = []
        for direction in np.eye(sum(self._n)):
            dy, dr, dp = np.split(direction, [n_y, n_y + n_r])
            columns.append(self._code.change(EVENT_CHANGES, at, dy, dr, dp)[own])
        jump[n_y - n_s :] = np.array(columns).T
        rates = np.zeros(n_y), self._rates_of_inputs
        in_time[n_y - n_s :] = self._code.change(EVENT_CHANGES, at, *rates, dt=1.0)[own]


def accumulating(events: Sequence[EventRecord]) -> EventRecord | None:
    """The record of a contact that closes in place of infinitely many impacts, if there is one."""
    struck = {event.name for event in events if event.kind == "impact"}
    return next((x for x in events if x.kind == "closes" and x.jumps and x.name not in struck), None)


def _transitions(events: Sequence[EventRecord]) -> list[list[EventRecord]]:
    """The records of each change of the state at one instant, in order."""
    found: list[list[EventRecord]] = []
    for event in events:
        same = found and all(np.array_equal(part(found[-1][0]), part(event)) for part in (_state_before, _state_after))
        if same:
            found[-1].append(event)
        else:
            found.append([event])
    return found


def _state_before(event: EventRecord) -> Array:
    return np.concatenate([event.q, event.u_before, event.s_before])


def _state_after(event: EventRecord) -> Array:
    return np.concatenate([event.q, event.u_after, event.s_after])
