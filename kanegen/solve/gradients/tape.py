"""The steps that a run took, in parts between the events at which something jumps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.solve.solution import Dense, EventRecord

_BESIDE: Final = 1e-7
"""Distance in time beside a kink at which values are those of one side, relative to the longest step."""

_LARGEST_MOVE: Final = 0.25
"""Largest fraction of a step by which derivatives are taken inside."""


@dataclass(frozen=True, eq=False)
class Part:
    """Steps without a jump: starts ``t`` (m,), sizes ``h`` (m,) and states ``y`` (m + 1, n), with that at the end.

    ``fresh`` (m,): 1 for steps that do not begin with the derivative at the end of the last one. ``edges`` (m, 2):
    fractions of a step by which derivatives at its start and its end are taken inside, where a law has a kink.
    ``t_end``: the time at the end. ``clearance``: seconds beside a kink at which values are those of one side.
    ``modes``: those of the contacts, as numbers (:mod:`kanegen.solve.gradients.modes`), and by name.
    ``from_instant``: whether it begins at a time that is known before the run.
    """

    t: Array
    h: Array
    y: Array
    fresh: NDArray[np.uint8]
    edges: Array
    t_end: float
    clearance: float
    modes: Array
    named_modes: Mapping[str, str]
    from_instant: bool

    @property
    def direction(self) -> float:
        """1 forward in time, -1 backward."""
        return -1.0 if self.h.size and self.h[0] < 0.0 else 1.0

    @property
    def last_start(self) -> float:
        """The time at the start of the last step; the end if there is none."""
        return float(self.t[-1]) if self.t.size else self.t_end

    @property
    def end(self) -> tuple[float, Array]:
        """The time and the state (n,) at the end."""
        return self.t_end, self.y[-1]


class StepErrors(NamedTuple):
    """Local errors of derivatives in steps from ``t`` (m,) of sizes ``h`` (m,): ``errors`` (m, ...), None: unknown."""

    t: Array
    h: Array
    errors: Array | None


class PhaseModes(Protocol):
    """Gives parts the modes of the contacts."""

    def given(self, part: Part, last: Part | None, events: Sequence[EventRecord]) -> Part:
        """The part with its modes; ``last``: the part before the ``events`` at its start."""
        ...


@dataclass(frozen=True, eq=False)
class Tape:
    """The steps of a run: ``parts``, and between them the ``events`` at one time, in order."""

    parts: tuple[Part, ...]
    events: tuple[tuple[EventRecord, ...], ...]

    @property
    def span(self) -> tuple[float, float]:
        """The times at the start and at the end, s."""
        first, last = self.parts[0], self.parts[-1].end[0]
        return float(first.t[0]) if first.t.size else last, last


def modes_at(tape: Tape, times: Array) -> Array:
    """The modes of the contacts at times of a motion, (n_t, n); at an event those after it."""
    ends = np.array([part.t_end for part in tape.parts[:-1]])
    sign = -1.0 if tape.span[1] < tape.span[0] else 1.0
    rows = np.searchsorted(sign * ends, sign * times, side="right")
    return np.array([part.modes for part in tape.parts])[rows]


def read_tape(
    steps: Dense, last: tuple[float, Array], events: Sequence[EventRecord], instants: Array, modes: PhaseModes
) -> Tape:
    """The tape of a run from its dense output.

    ``last``: the time and the state at the end. ``events``: those at which a new part begins. ``instants``: times at
    which the right-hand side can jump. ``modes``: gives the modes of the contacts in an interval.
    """
    groups: dict[float, list[EventRecord]] = {}
    for event in events:
        groups.setdefault(event.t, []).append(event)
    sign = 1.0 if not steps.h.size or steps.h[0] >= 0.0 else -1.0
    times = np.array(list(groups))
    cuts = np.searchsorted(sign * steps.t_old, sign * times, side="left").tolist()
    states = np.ascontiguousarray(steps.coefficients[:, 0, :])
    n_steps = int(np.count_nonzero(steps.t_old != last[0]))  # a jump at the end has dense output, but no step
    parts, bounded = list[Part](), list(groups.values())
    for k, (first, end) in enumerate(zip([0, *cuts], [*cuts, n_steps], strict=True)):
        final = last if k == len(cuts) else (float(times[k]), _before(bounded[k][0]))
        kinks = tuple(0 < i <= len(bounded) and _is_kink(bounded[i - 1]) for i in (k, k + 1))
        from_instant = k > 0 and bool(np.isin(times[k - 1], instants))
        part = _part(steps, states, (first, end), final, instants, kinks, from_instant)
        parts.append(modes.given(part, parts[-1] if parts else None, bounded[k - 1] if k else ()))
    return Tape(tuple(parts), tuple(map(tuple, bounded)))


def _is_kink(events: Sequence[EventRecord]) -> bool:
    return any(event.kind == "switches" for event in events)


def _before(event: EventRecord) -> Array:
    return np.concatenate([event.q, event.u_before, event.s_before])


def _part(
    steps: Dense,
    states: Array,
    place: tuple[int, int],
    final: tuple[float, Array],
    instants: Array,
    kinks: tuple[bool, ...],
    from_instant: bool,
) -> Part:
    """The steps from the first to before the second place; ``kinks``: whether they begin and end at a kink of a law."""
    own = slice(*place)
    t, h = np.ascontiguousarray(steps.t_old[own]), np.ascontiguousarray(steps.h[own])
    fresh, edges = np.isin(t, instants).astype(np.uint8), np.zeros((t.size, 2))
    fresh[:1] = 1
    clearance = _BESIDE * float(np.abs(h).max(initial=0.0))
    for column, row in enumerate((0, -1)):
        if kinks[column] and t.size:
            edges[row, column] = min(clearance / abs(h[row]), _LARGEST_MOVE)
    states = np.vstack([states[own], final[1]])
    return Part(t, h, states, fresh, edges, final[0], clearance, np.empty(0), MappingProxyType({}), from_instant)
