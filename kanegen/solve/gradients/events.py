"""How the changes of a motion pass an event: its time moves, and the state jumps (saltation matrix).

With the guard ``g(t, y, p) = 0`` and the state ``h(t, y, p)`` after the event, the time of the event changes by
``dt_e = -(g_y dy + g_p dp) / g'``, and the state at a fixed time after it by
``h_y dy + h_p dp + (h_y f- + h_t - f+) dt_e`` (Aizerman and Gantmacher 1958; Kong, Payne, Zhu, Johnson 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.program.catalogue import EVENT_CHANGES
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.tape import Part
from kanegen.solve.solution import EventRecord

_JUMP: Final = 1e-5
"""Smaller relative differences of the rates on both sides of a kink are those of the distance."""

_GRAZING: Final = 1e-6
"""A guard whose rate at zero is a smaller fraction of that in the step before does not pass through zero."""


@dataclass(frozen=True, eq=False)
class EventDerivative:
    """The derivatives at one event.

    ``times``: those of its time with respect to (y, r, p), (n,). ``states``: those of the state after it, (n_y, n).
    """

    times: Array
    states: Array

    def time(self, dy: Array, dr: Array, dp: Array) -> Array:
        """The change (k,) of the time of the event, from those of the state before it, (n_y, k)."""
        return np.asarray(self.times @ np.concatenate([dy, dr, dp]))

    def after(self, dy: Array, dr: Array, dp: Array) -> Array:
        """The change (n_y, k) of the state after the event."""
        return np.asarray(self.states @ np.concatenate([dy, dr, dp]))


def event_derivative(code: VariationCode, event: EventRecord, part: Part) -> EventDerivative:
    """The derivatives at an event at the end of a part of the motion.

    Raises `SolveError` where they do not exist, with the event and the time.
    """
    d, guards = code.functions.description, tuple(code.functions.module.EVENTS)
    before = np.concatenate([event.q, event.u_before, event.s_before])
    n_y, n_r, n_s, n_p = code.n_y, len(d.inputs), len(d.states), len(d.parameters)
    identity, index = np.eye(n_y + n_r + n_p), guards.index(event.name)
    f_before, f_after = _rates(code, event, before, part)
    at = code.at(event.t, before)
    columns = [code.change(EVENT_CHANGES, at, x[:n_y], x[n_y : n_y + n_r], x[n_y + n_r :]) for x in identity]
    along = code.change(EVENT_CHANGES, at, f_before, dt=1.0)
    slopes = np.array([column[index] for column in columns])
    if abs(along[index]) <= _least_rate(code, part, index):
        raise SolveError(
            f"the motion has no derivative beyond the event {event.name!r} at t = {event.t!r} s: its guard touches "
            "zero there (grazing)"
        )
    times, states, jump = -slopes / along[index], identity[:n_y].copy(), f_before - f_after
    own = slice(len(guards) + index * n_s, len(guards) + (index + 1) * n_s)
    states[n_y - n_s :] = np.array([column[own] for column in columns]).T.reshape(n_s, len(identity))
    jump[n_y - n_s :] = along[own] - f_after[n_y - n_s :]
    states += np.outer(jump, times)
    return EventDerivative(times, states)


def _least_rate(code: VariationCode, part: Part, index: int) -> float:
    """The rate of a guard, per second, up to which it touches zero: it changes by more in the step before."""
    if not part.h.size:
        return 0.0
    guard = code.at(float(part.t[-1]), part.y[-2]).evaluate(code.functions.get("events").value)[index]
    return _GRAZING * abs(float(guard / part.h[-1]))


def _rates(code: VariationCode, event: EventRecord, before: Array, part: Part) -> tuple[Array, Array]:
    """The rates y' before and after an event, (n_y,) each.

    Feedback laws can jump at a kink, where only their values beside it tell them apart: these are extrapolated.
    """
    f = code.rate(event.t, before)
    if event.name not in [each.name for each in code.functions.description.events]:
        beside = [
            _beside(code, event.t, before, f, sign * part.clearance) for sign in (-part.direction, part.direction)
        ]
        jumps = np.abs(beside[1] - beside[0]) > _JUMP * np.abs(np.array(beside)).max(axis=0)
        return (beside[0], beside[1]) if jumps.any() else (f, f)
    if not event.jumps:
        return f, f
    return f, code.rate(event.t, np.concatenate([event.q, event.u_after, event.s_after]))


def _beside(code: VariationCode, t: float, y: Array, f: Array, dt: float) -> Array:
    """The limit of the rates on one side of a state, by extrapolation from two states there."""
    near, far = (code.rate(t + k * dt, y + k * dt * f) for k in (1.0, 2.0))
    return np.asarray(2.0 * near - far)
