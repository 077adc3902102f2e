"""Sensitivities: the derivatives of a motion along directions, beside the motion."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codes import Mode
from kanegen.errors import SolveError
from kanegen.program.catalogue import ATTRIBUTES, CONTACT_FORCES, REACTION
from kanegen.solve.gradients.accuracy import accuracy_of
from kanegen.solve.gradients.code import Forward, Inside, VariationCode
from kanegen.solve.gradients.directions import Direction, Kind, unit_columns
from kanegen.solve.gradients.events import accumulating, closing_time, instant_derivative
from kanegen.solve.gradients.inputs import InputChanges
from kanegen.solve.gradients.samples import HeldChanges, piece_of
from kanegen.solve.gradients.stiff import StiffMotion
from kanegen.solve.gradients.tape import Part, Tape, modes_at
from kanegen.solve.solution import EventRecord
from kanegen.solve.solution.records import Dense
from kanegen.solve.solution.sensitivities import Sensitivities


@dataclass(frozen=True, eq=False)
class Propagated:
    """The changes of a motion along directions.

    ``parts``: those of each part of the tape. ``event_times``: for each event of the model the changes (k,) of its
    time. ``rest_times``: those of the time at which impacts come to rest that accumulate after the last part, or none.
    ``held``: those of the values of sampled laws. ``missing``: why there are no changes after the last part, or None.
    """

    parts: tuple[Forward, ...]
    event_times: tuple[Array, ...]
    rest_times: tuple[Array, ...]
    held: HeldChanges | None = None
    missing: SolveError | None = None

    def whole(self) -> Propagated:
        """The changes of the whole motion. Raises `SolveError` if they end before it."""
        if self.missing is not None:
            raise self.missing
        return self


def propagate(
    code: VariationCode,
    tape: Tape,
    directions: Sequence[Direction],
    start: Array,
    inputs: InputChanges,
    dense: bool = False,
    times: Array | None = None,
) -> Propagated:
    """The changes of a motion from those of its start, (n_y, k), up to where they do not exist.

    ``inputs``: the changes of the inputs. ``times``: those inside steps at which changes are wanted besides, in order.
    """
    dp = unit_columns(directions, Kind.PARAMETER, len(code.functions.description.parameters))
    parts, of_events, impacts = list[Forward](), list[Array](), Impacts(code)
    inside = [None] * len(tape.parts) if times is None else _inside(tape, times)
    held = None if code.held is None else HeldChanges(code.held, code.n_y, start.shape[1])
    for k, part in enumerate(tape.parts):
        parts.append(_through(code, part, k, start, (inputs, held), dp, (dense, inside[k])))
        if k == len(tape.events):
            break
        dr, sides = inputs.at(part.t_end), (part, tape.parts[k + 1])
        if held is not None and part.t.size:
            held.add_to(dr[None], np.array([part.last_start]))
        before = np.concatenate([parts[-1].states[-1], dr, dp])
        try:
            derivative = instant_derivative(code, tape.events[k], *sides)
        except SolveError as error:
            rest_times = impacts.rest_times(tape.events[k], sides, before)
            return Propagated(tuple(parts), tuple(of_events), rest_times, held, error)
        impacts.note(tape.events[k], part, derivative.times @ before)
        of_events += [of_event @ before for of_event in derivative.event_times]
        start = derivative.states @ before
    return Propagated(tuple(parts), tuple(of_events), (), held)


def _inside(tape: Tape, times: Array) -> list[Inside]:
    """For each part those of the ``times``, in order, that are inside its steps.

    A time at the end of a step belongs to the next one, and one at a jump that ends the motion to no step.
    """
    starts, last = np.concatenate([part.t for part in tape.parts]), tape.parts[-1]
    n, sign = starts.size, -1.0 if any(part.direction < 0.0 for part in tape.parts) else 1.0
    if not last.t.size:
        starts = np.append(starts, last.t_end)
    steps = np.maximum(np.searchsorted(sign * starts, sign * times, side="right") - 1, 0)
    first = np.searchsorted(steps, np.arange(n + 1)).astype(np.int32)
    ends = np.cumsum([len(part.t) for part in tape.parts])
    places = [first[end - len(part.t) : end + 1] for end, part in zip(ends, tape.parts, strict=True)]
    return [Inside(np.ascontiguousarray(times[p[0] : p[-1]]), p - p[0]) for p in places]


def changes_at(tape: Tape, changes: Propagated, times: Array) -> Array:
    """The changes (n_t, n_y, k) at times in order, which were given to `propagate`; NaN where they do not exist."""
    found = [part.inside for part in changes.parts if part.inside is not None]
    known = np.concatenate(found) if len(found) > 1 else found[0]
    if len(known) == len(times):
        return known
    result = np.full((len(times), *known.shape[1:]), np.nan)
    result[: len(known)] = known
    if len(changes.parts) == len(tape.parts):
        result[len(known) :] = changes.parts[-1].states[-1]  # after a jump that ends the motion
    return result


def changes_of_inputs(inputs: InputChanges, held: HeldChanges | None, times: Array) -> Array:
    """The changes of all inputs at times (n_t,), (n_t, n_r, k); ``held``: those of the values of sampled laws."""
    changes = inputs.at(times)
    if held is not None:
        held.add_to(changes, times)
    return changes


def _through(
    code: VariationCode,
    part: Part,
    index: int,
    start: Array,
    inputs: tuple[InputChanges, HeldChanges | None],
    dp: Array,
    wanted: tuple[bool, Inside | None],
) -> Forward:
    """The changes through a part, which is number ``index``, from one sample of a law to the next.

    ``wanted``: whether to keep the dense output, and the times inside steps.
    """
    (changes, held), (dense, inside) = inputs, wanted
    if held is None or code.held is None:
        times = np.zeros(1) if changes.is_constant else code.stage_times(part).ravel()
        of_r = changes.at(times)
        return _steps(code, part, start, of_r[0] if changes.is_constant else of_r, dp, (dense, inside))
    found = list[Forward]()
    for bounds in code.held.pieces(index):
        piece = piece_of(part, bounds)
        first = float(piece.t[0]) if piece.t.size else piece.t_end
        held.take(index, bounds[0], start, changes.at(first), dp)
        of_r = changes_of_inputs(changes, held, code.stage_times(piece).ravel())
        found.append(_steps(code, piece, start, of_r, dp, (dense, None if inside is None else inside.of(bounds))))
        start = found[-1].states[-1]
    if len(part.t):
        held.take(index, len(part.t), start, changes.at(part.t_end), dp)
    return _joined(found)


def _steps(
    code: VariationCode, part: Part, start: Array, dr: Array, dp: Array, wanted: tuple[bool, Inside | None]
) -> Forward:
    """The changes through steps; ``dr`` (n_r, k) or, for each stage, (rows, n_r, k)."""
    if code.is_implicit:
        return StiffMotion(code, part).forward(start, dr, dp, *wanted)
    return code.forward(part, start, dr, dp, *wanted)


def _joined(pieces: Sequence[Forward]) -> Forward:
    """The changes of pieces that follow each other as those of one part."""
    states = [pieces[0].states, *(piece.states[1:] for piece in pieces[1:])]
    every = [x.dense for x in pieces], [x.inside for x in pieces], [x.by_step for x in pieces]
    kept = ([x for x in rows if x is not None] for rows in every)
    sizes, errors = (np.max(rows, axis=0) for rows in ([x.sizes for x in pieces], [x.errors for x in pieces]))
    dense, inside, by_step = (np.concatenate(rows) if rows else None for rows in kept)
    return Forward(np.concatenate(states), sizes, errors, dense, inside, by_step)


class Impacts:
    """The impacts of each contact so far, with the changes (k,) of their times."""

    def __init__(self, code: VariationCode) -> None:
        self._code = code
        self._latest: dict[str, list[tuple[float, Array]]] = {}

    def note(self, events: Sequence[EventRecord], part: Part, change: Array) -> None:
        """Note an impact at the end of a part; ``change`` (k,): that of its time."""
        event = next((x for x in events if x.kind == "impact"), None)
        if event is not None and part.named_modes[event.name] == Mode.OPEN.label:
            self._latest[event.name] = [*self._latest.get(event.name, ()), (event.t, change)][-2:]

    def rest_times(self, events: Sequence[EventRecord], sides: tuple[Part, Part], before: Array) -> tuple[Array, ...]:
        """The change of the time at which impacts come to rest, of which ``events`` contain the last one, if they do.

        ``before``: the changes of the state before it, of inputs and of parameters.
        """
        event = accumulating(events)
        latest = [] if event is None else self._latest.get(event.name, [])
        if event is None or len(latest) < 2:
            return ()
        try:
            change = closing_time(self._code, [event], *sides) @ before
        except SolveError:  # the last impact has no derivative of its own
            return ()
        return (_rest_time([*latest, (event.t, change)]),)


def _rest_time(impacts: Sequence[tuple[float, Array]]) -> Array:
    """The change of the end of a geometric series of flights, of which the times of three impacts are known."""
    (t0, d0), (t1, d1), (t2, d2) = impacts
    before, last, of_before, of_last = t1 - t0, t2 - t1, d1 - d0, d2 - d1
    left = last**2 / (before - last)  # the sum of the flights that follow
    return d2 + (2.0 * last * of_last - left * (of_before - of_last)) / (before - last)


def at_stored_states(tape: Tape, rows: Sequence[Array]) -> Array:
    """The rows at all states that a run stores without ``t_eval``, before and after jumps.

    ``rows``: for each part those at the starts of its steps and at its end.
    """
    kept = []
    for k, of_part in enumerate(rows):
        stays = k < len(tape.events) and not any(event.jumps for event in tape.events[k])
        kept.append(of_part[:-1] if stays else of_part)
    return np.concatenate(kept) if len(kept) > 1 else kept[0]


def with_missing(tape: Tape, changes: Propagated) -> Propagated:
    """The changes with NaN in the parts in which they do not exist."""
    known, n = len(changes.parts), sum(event.kind == "user" for group in tape.events for event in group)
    first = changes.parts[0]

    def nothing(part: Part) -> Forward:
        shape = first.states.shape[1:]
        dense = None if first.dense is None else np.full((len(part.t), first.dense.shape[1], *shape), np.nan)
        return Forward(np.full((len(part.y), *shape), np.nan), np.zeros(shape), np.zeros(shape), dense, None)

    times = [np.full(first.states.shape[2], np.nan)] * (n - len(changes.event_times))
    parts = (*changes.parts, *map(nothing, tape.parts[known:]))
    return replace(changes, parts=parts, event_times=(*changes.event_times, *times))


def dense_changes(tape: Tape, changes: Propagated) -> Dense:
    """Dense output of the changes, a row (n_y k,) for each time."""
    t, h = (np.concatenate([getattr(part, name) for part in tape.parts]) for name in ("t", "h"))
    rows = [part.dense.reshape(*part.dense.shape[:2], -1) for part in changes.parts if part.dense is not None]
    dense, last = Dense(t, h, np.concatenate(rows)), tape.parts[-1]
    jumped = not last.t.size and dense.t_old.size
    return dense.ending_at(last.t_end, changes.parts[-1].states[-1].ravel()) if jumped else dense


def sizes_of(code: VariationCode, directions: Sequence[Direction], tape: Tape) -> Array:
    """The sizes (k,) of what varies: values of parameters, of start values, and 1 for inputs and for zero."""
    values = {Kind.PARAMETER: code.functions.parameters, Kind.START: tape.parts[0].y[0]}
    sizes = [abs(float(values[x.kind][x.index])) if x.kind in values else 1.0 for x in directions]
    return np.array([size or 1.0 for size in sizes])


@dataclass(frozen=True, eq=False)
class _Source:
    """What derivatives are computed from: the steps of a run, and the changes of its start.

    ``states`` (n_t, n_y): those of the solution, at the times ``t``; ``changes``: of these, ``of_inputs``: of their
    inputs; ``modes``: of the contacts there.
    """

    code: VariationCode
    tape: Tape
    directions: tuple[Direction, ...]
    start: Array
    inputs: InputChanges
    t: Array
    states: Array
    changes: Array
    of_inputs: Array
    modes: Array

    @property
    def span(self) -> tuple[float, float]:
        """The times at the start and at the end, s."""
        return self.tape.span

    @cached_property
    def _dense(self) -> Dense:
        """Dense output of the derivatives, whose steps are taken again."""
        changes = propagate(self.code, self.tape, self.directions, self.start, self.inputs, dense=True)
        return dense_changes(self.tape, with_missing(self.tape, changes))

    def at(self, times: Array) -> Array:
        """The derivatives at times (n_t,), (n_t, n_y, n_z)."""
        steps, shape = self._dense, (times.size, *self.start.shape)
        return steps(times).reshape(shape) if steps.t_old.size else np.broadcast_to(self.start, shape).copy()

    def of(self, quantity: str) -> Array:
        """The derivatives of a quantity, an output or a reaction at the stored times, (n_t, ..., n_z)."""
        d, name = self.code.functions.description, quantity
        known = (*ATTRIBUTES, *d.outputs, *d.reactions, *([CONTACT_FORCES] if d.contacts.rows else []))
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SolveError(f"there is no quantity, output or reaction {name!r}{hint}")
        if name in d.reactions and name not in d.outputs:
            name = f"{REACTION}{name}"
        at = self.t, self.states
        return self.code.changes_of(name, at, self.changes, self.directions, self.of_inputs, self.modes)


def sensitivities_of(
    code: VariationCode,
    tape: Tape,
    directions: Sequence[Direction],
    start: Array,
    inputs: InputChanges,
    solution: Any,
    allowed: float,
) -> tuple[Sensitivities, Array | None]:
    """The sensitivities of a run, from the changes (n_y, n_z) of its start.

    With the times at which further steps must end, if the error is larger than ``allowed`` and they are known.
    """
    d, t = code.functions.description, solution.t
    times = at_stored_states(tape, [np.append(part.t, part.t_end) for part in tape.parts])
    at_steps = np.array_equal(times, t)
    found = propagate(code, tape, directions, start, inputs, times=None if at_steps else t)
    if at_steps:
        matrix = at_stored_states(tape, [part.states for part in with_missing(tape, found).parts])
        modes = at_stored_states(tape, [np.tile(part.modes, (len(part.y), 1)) for part in tape.parts])
    else:
        matrix = changes_at(tape, found, t)
        modes = modes_at(tape, t)
    n_z, states = len(directions), np.hstack((solution.q, solution.u, solution.s))
    of_inputs = changes_of_inputs(inputs, found.held, t)
    source = _Source(code, tape, tuple(directions), start, inputs, t, states, matrix, of_inputs, modes)
    accuracy = accuracy_of(tape, found.parts, sizes_of(code, directions, tape), allowed)
    fields = {
        "variables": (*d.coordinates, *d.speeds, *d.states),
        "names": tuple(direction.label for direction in directions),
        "t": t,
        "matrix": matrix,
        "valid_until": tape.parts[len(found.parts) - 1].t_end,
        "reason": None if found.missing is None else str(found.missing),
        "error": accuracy.error,
        "event_times": np.array(found.event_times).reshape(-1, n_z),
        "rest_times": np.array(found.rest_times).reshape(-1, n_z),
    }
    return Sensitivities(fields, source), accuracy.stops
