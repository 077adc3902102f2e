"""The steps that a run took, in parts between the events at which something jumps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.solve.solution import Dense, EventRecord


@dataclass(frozen=True, eq=False)
class Part:
    """Steps without a jump: their starts ``t`` (m,), sizes ``h`` (m,) and states at the starts ``y`` (m, n).

    ``fresh`` (m,): 1 for steps that do not begin with the derivative at the end of the last one. ``end``: the time and
    the state (n,) at the end of the last step. ``first``: the number of the first step in the run.
    """

    t: Array
    h: Array
    y: Array
    fresh: NDArray[np.uint8]
    end: tuple[float, Array]
    first: int


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


def read_tape(
    steps: Dense, last: tuple[float, Array], events: Sequence[EventRecord], instants: Array, n_q: int, n_u: int
) -> Tape:
    """The tape of a run from its dense output.

    ``last``: the time and the state at the end. ``events``: those at which a new part begins. ``instants``: times at
    which the right-hand side can jump.
    """
    groups: dict[float, list[EventRecord]] = {}
    for event in events:
        groups.setdefault(event.t, []).append(event)
    sign = 1.0 if not steps.h.size or steps.h[0] >= 0.0 else -1.0
    times = np.array(list(groups))
    cuts = np.searchsorted(sign * steps.t_old, sign * times, side="left").tolist()
    states = np.ascontiguousarray(steps.coefficients[:, 0, :])
    n_steps = int(np.count_nonzero(steps.t_old != last[0]))  # a jump at the end has dense output, but no step
    parts = []
    for k, (first, end) in enumerate(zip([0, *cuts], [*cuts, n_steps], strict=True)):
        final = last if k == len(cuts) else (float(times[k]), _before(list(groups.values())[k][0], n_q, n_u))
        parts.append(_part(steps, states, first, end, final, instants))
    return Tape(tuple(parts), tuple(tuple(group) for group in groups.values()))


def _before(event: EventRecord, n_q: int, n_u: int) -> Array:
    return np.concatenate([event.q, event.u_before, event.s_before])


def _part(
    steps: Dense, states: Array, first: int, end: int, final: tuple[float, Array], instants: Array
) -> Part:
    t, h, y = steps.t_old[first:end], steps.h[first:end], states[first:end]
    fresh = np.isin(t, instants).astype(np.uint8)
    fresh[:1] = 1
    return Part(np.ascontiguousarray(t), np.ascontiguousarray(h), np.ascontiguousarray(y), fresh, final, first)
