"""Sensitivities: the derivatives of a motion along directions, beside the motion."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.errors import SolveError
from kanegen.program.catalogue import ATTRIBUTES
from kanegen.solve.gradients.accuracy import largest_error
from kanegen.solve.gradients.code import Forward, VariationCode
from kanegen.solve.gradients.directions import Direction, Kind, unit_columns
from kanegen.solve.gradients.events import instant_derivative
from kanegen.solve.gradients.tape import Tape
from kanegen.solve.solution.records import Dense
from kanegen.solve.values import key_name, unknown


@dataclass(frozen=True, eq=False)
class Propagated:
    """The changes of a motion along directions.

    ``parts``: those of each part of the tape. ``event_times``: for each event of the model the changes (k,) of its
    time.
    """

    parts: tuple[Forward, ...]
    event_times: tuple[Array, ...]


def propagate(
    code: VariationCode, tape: Tape, directions: Sequence[Direction], start: Array, dense: bool = False
) -> Propagated:
    """The changes of a motion from those of its start, (n_y, k). Raises `SolveError` where they do not exist."""
    d = code.functions.description
    dr = unit_columns(directions, Kind.INPUT, len(d.inputs))
    dp = unit_columns(directions, Kind.PARAMETER, len(d.parameters))
    parts: list[Forward] = []
    times: list[Array] = []
    for k, part in enumerate(tape.parts):
        parts.append(code.forward(part, start, dr, dp, dense))
        start = parts[-1].states[-1]
        if k < len(tape.events):
            derivative = instant_derivative(code, tape.events[k], part, tape.parts[k + 1])
            before = np.concatenate([start, dr, dp])
            times += [of_event @ before for of_event in derivative.event_times]
            start = derivative.after(start, dr, dp)
    return Propagated(tuple(parts), tuple(times))


@dataclass(frozen=True, eq=False)
class _Source:
    """What sensitivities are computed from."""

    code: VariationCode
    tape: Tape
    directions: tuple[Direction, ...]
    start: Array

    def propagated(self, dense: bool) -> Propagated:
        return propagate(self.code, self.tape, self.directions, self.start, dense)


def at_stored_states(tape: Tape, rows: Sequence[Array]) -> Array:
    """The rows at all states that a run stores without ``t_eval``, before and after jumps.

    ``rows``: for each part those at the starts of its steps and at its end.
    """
    kept = []
    for k, of_part in enumerate(rows):
        stays = k < len(tape.events) and not any(event.jumps for event in tape.events[k])
        kept.append(of_part[:-1] if stays else of_part)
    return np.concatenate(kept)


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


class Sensitivities:
    """The derivatives of a motion with respect to parameters, start values and constant inputs.

    ``sensitivities["theta", "m"]`` (n_t,) is the derivative of the variable ``theta`` with respect to ``m`` at the
    stored times of the solution, at fixed time; at an event it is the value after it. ``sensitivities(t)`` gives the
    matrix (n_y, n_z) at a time, or (n_t, n_y, n_z) at several.

    Attributes
    ----------
    variables
        Names of the rows of a matrix, n_y: coordinates, speeds, states.
    names
        Names of the columns, n_z: what varies.
    t
        The stored times of the solution, (n_t,), s.
    matrix
        The derivatives at these times, (n_t, n_y, n_z).
    error
        The largest local error of a derivative, relative to its size during the motion; 0 for methods without an
        estimate of errors.
    event_times
        Derivatives of the times of the events of the model that occurred, (n_events, n_z), s per unit.
    """

    def __init__(
        self, code: VariationCode, tape: Tape, directions: Sequence[Direction], start: Array, solution: Any
    ) -> None:
        d = code.functions.description
        self.variables = (*d.coordinates, *d.speeds, *d.states)
        self.names = tuple(direction.name for direction in directions)
        self.t: Array = solution.t
        self._source: _Source | None = _Source(code, tape, tuple(directions), start)
        self._states = np.hstack((solution.q, solution.u, solution.s))
        times = at_stored_states(tape, [np.append(part.t, part.t_end) for part in tape.parts])
        at_steps = np.array_equal(times, self.t)
        changes = self._source.propagated(dense=not at_steps)
        self.event_times: Array = np.array(changes.event_times).reshape(-1, len(self.names))
        self.error = largest_error(tape, changes.parts, sizes_of(code, directions, tape))
        if not at_steps:
            self._dense = dense_changes(tape, changes)
        of_steps = [part.states for part in changes.parts]
        self.matrix: Array = at_stored_states(tape, of_steps) if at_steps else self(self.t)

    def __repr__(self) -> str:
        return f"<Sensitivities of {', '.join(self.variables)} with respect to {', '.join(self.names)}>"

    def __getstate__(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self).items() if name != "_dense"}
        return {**plain, "_source": None}  # compiled code has no pickle

    @property
    def event_time(self) -> Mapping[str, float]:
        """Derivatives of the time of the last event of the model, by the name of what varies, s per unit."""
        if not len(self.event_times):
            raise SolveError("no event of the model occurred, so there is no derivative of its time")
        return dict(zip(self.names, self.event_times[-1].tolist(), strict=True))

    def __getitem__(self, key: Any) -> Array:
        """The derivative (n_t,) of a variable with respect to a quantity; both by name or symbol."""
        if not isinstance(key, tuple) or len(key) != 2:
            raise SolveError(f"sensitivities[{key!r}]: expected a pair, the variable and what it depends on")
        i, k = (self._index(part, known) for part, known in zip(key, self._known, strict=True))
        column: Array = self.matrix[:, i, k]
        return column

    @property
    def _known(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("variable", self.variables), ("quantity that varies", self.names)

    @staticmethod
    def _index(key: Any, known: tuple[str, tuple[str, ...]]) -> int:
        name = key_name(key)
        if name not in known[1]:
            raise SolveError(unknown(name, known[1], known[0]))
        return known[1].index(name)

    def __call__(self, t: Any) -> Array:
        """The derivatives (n_y, n_z) at a time, or (n_t, n_y, n_z) at times (n_t,); at an event those after it."""
        times = real_array(t, "t")
        flat = np.atleast_1d(times)
        start, last = self._known_source.tape.span
        if ((flat < min(start, last)) | (flat > max(start, last))).any():
            raise SolveError(f"times of sensitivities must be within the motion, from t = {start!r} to {last!r} s")
        values = self._at(flat)
        return values if times.ndim else np.asarray(values[0])

    def _at(self, times: Array) -> Array:
        steps, shape = self._dense, (times.size, len(self.variables), len(self.names))
        if not steps.t_old.size:
            return np.broadcast_to(self._known_source.start, shape).copy()
        return steps(times).reshape(shape)

    @cached_property
    def _dense(self) -> Dense:
        """Dense output of the derivatives, whose steps are taken again."""
        return dense_changes(self._known_source.tape, self._known_source.propagated(dense=True))

    @property
    def _known_source(self) -> _Source:
        if self._source is None:
            raise SolveError(
                "the sensitivities were unpickled, and a pickle contains those at the stored times only: use .matrix"
            )
        return self._source

    def of(self, quantity: Any) -> Array:
        """The derivatives of a quantity or an output at the stored times, (n_t, ..., n_z).

        ``quantity``: the name of an attribute of the solver, such as ``"energy"``, or of an output of the model. Raises
        `SolveError` for other names, and for quantities that need a solve with pivots.
        """
        source = self._known_source
        name, d = key_name(quantity), source.code.functions.description
        known = (*ATTRIBUTES, *d.outputs)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SolveError(f"there is no quantity or output {name!r}{hint}")
        return source.code.changes_of(name, (self.t, self._states), self.matrix, source.directions)
