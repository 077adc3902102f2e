"""The feedback laws of a run that are sampled: their values, and how these change.

Between samples the value of such a law is held; it changes with the state at the sample (a sampled-data system:
Chen and Francis 1995, chapter 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.gradients.tape import Part, Tape
from kanegen.solve.inputs import RunInputs

_REPRODUCED: Final = 1e-7
"""Largest difference between the values of a sample in the run and those of its law, relative to the largest value."""


@dataclass(frozen=True, eq=False)
class Clock:
    """The samples of the laws that one clock takes.

    ``slots``: the inputs, by index; ``places``: their laws among all laws. ``t``, ``acts`` (n,): the times of the
    samples, and those from which they act. ``values`` (n, m).
    """

    slots: list[int]
    places: list[int]
    t: Array
    acts: Array
    values: Array

    def acting(self, times: Array) -> NDArray[np.intp]:
        """The numbers of the samples that act at times; the first one acts before its time, too."""
        return np.maximum(np.searchsorted(self.acts, times, side="right") - 1, 0)


def clocks_of(inputs: RunInputs) -> tuple[Clock, ...]:
    """The samples of the laws in the last run with these inputs."""
    if inputs.laws is None or not inputs.held:
        return ()
    clocks = []
    for slots, control in zip(inputs.laws.groups(), inputs.controls, strict=True):
        if inputs.laws.is_held(slots[0]):
            rows = control.samples[np.isfinite(control.samples[:, 0])]  # without the values before the first sample
            places = list(inputs.laws.places(slots))
            clocks.append(Clock(slots, places, rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2:].copy()))
    return tuple(clocks)


def hold(clocks: Sequence[Clock], times: Array, r: Array) -> None:
    """Write the values that are held at times (n_t,) into the inputs ``r`` (n_t, n_r)."""
    for clock in clocks:
        r[:, clock.slots] = clock.values[clock.acting(times)]


def instants(clocks: Sequence[Clock]) -> Array:
    """The times at which values are sampled and at which they begin to act."""
    times = [x for clock in clocks for x in (clock.t, clock.acts[np.isfinite(clock.acts)])]
    return np.concatenate(times) if times else np.empty(0)


class LawValues(Protocol):
    """Gives the values (n, m) of all laws at states (n,), (n, n_y), and their slopes (n, m, n_y + n_r + n_p)."""

    def __call__(self, times: Array, states: Array) -> tuple[Array, Array]: ...


class HeldLaws:
    """The sampled laws of a run along its ``tape``, with their slopes at the samples."""

    def __init__(self, clocks: Sequence[Clock], tape: Tape, laws: LawValues) -> None:
        self.clocks, self._tape = tuple(clocks), tape
        found = [self._found(clock, laws) for clock in self.clocks]
        self.slopes = tuple(slopes for _, slopes in found)
        self._at: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for number, (places, _) in enumerate(found):
            for sample, place in enumerate(places):
                self._at.setdefault(place, []).append((number, sample))

    def _found(self, clock: Clock, laws: LawValues) -> tuple[list[tuple[int, int]], Array]:
        """The part and the state in it at which each sample was taken, and its slopes. Raises `SolveError`."""
        places = [(-1, -1)] * len(clock.t)
        slopes: Array = np.empty(0)
        for k, part in enumerate(self._tape.parts):
            times = np.append(part.t, part.t_end)
            numbers = np.flatnonzero(np.isin(clock.t, times))
            if not numbers.size:
                continue
            rows = np.searchsorted(part.direction * times, part.direction * clock.t[numbers])
            values, of_laws = laws(clock.t[numbers], part.y[rows])
            own = values[:, clock.places]
            same = (np.abs(own - clock.values[numbers]) <= _REPRODUCED * np.abs(clock.values).max(axis=0)).all(axis=1)
            slopes = np.zeros((len(clock.t), *of_laws[0, clock.places].shape)) if not slopes.size else slopes
            slopes[numbers[same]] = of_laws[same][:, clock.places]
            for number, row in zip(numbers[same].tolist(), rows[same].tolist(), strict=True):
                places[number] = k, row
        if (-1, -1) in places:
            t = float(clock.t[places.index((-1, -1))])
            raise SolveError(f"the derivatives of the motion do not reproduce the sample of a law at t = {t!r} s")
        return places, slopes

    def taken(self, part: int, row: int) -> Sequence[tuple[int, int]]:
        """The samples that are taken at a state of a part: the numbers of the clock and of the sample."""
        return self._at.get((part, row), ())

    def pieces(self, index: int) -> list[tuple[int, int]]:
        """The first and the last states of the pieces of a part, in which no value changes and no sample is taken."""
        part = self._tape.parts[index]
        cuts = np.flatnonzero(np.isin(part.t, instants(self.clocks)))
        bounds = np.unique([0, *cuts.tolist(), len(part.t)]).tolist()
        return list(pairwise(bounds)) or [(0, 0)]


def piece_of(part: Part, bounds: tuple[int, int]) -> Part:
    """The steps of a part from one state to another."""
    first, last = bounds
    own = slice(first, last)
    if (first, last) == (0, len(part.t)):
        return part
    fresh = part.fresh[own].copy()
    fresh[:1] = 1
    end = float(part.t[last]) if last < len(part.t) else part.t_end
    return replace(
        part, t=part.t[own], h=part.h[own], y=part.y[first : last + 1], fresh=fresh, edges=part.edges[own], t_end=end
    )


class HeldChanges:
    """The changes (m, k) of the values of samples along directions, which become known one after the other."""

    def __init__(self, held: HeldLaws, n_y: int, k: int) -> None:
        self._held, self._n_y = held, n_y
        self._changes = [np.full((len(clock.t), len(clock.slots), k), np.nan) for clock in held.clocks]

    def take(self, part: int, row: int, dy: Array, dr: Array, dp: Array) -> None:
        """Take the samples at a state of a part, whose changes are given."""
        for clock, number in self._held.taken(part, row):
            slopes = self._held.slopes[clock][number]
            self._changes[clock][number] = slopes @ np.concatenate([dy, dr, dp])

    def add_to(self, changes: Array, times: Array) -> None:
        """Write the changes of the values that act at times (n_t,) into those of the inputs, (n_t, n_r, k)."""
        for clock, own in zip(self._held.clocks, self._changes, strict=True):
            changes[:, clock.slots] = own[clock.acting(times)]


class HeldWeights:
    """The weights of the values of samples, which are known when all that they act on has been pulled back."""

    def __init__(self, held: HeldLaws) -> None:
        self._held = held
        self._weights = [np.zeros((len(clock.t), len(clock.slots))) for clock in held.clocks]

    def add(self, t: float, of_r: Array) -> None:
        """Add weights (n_r,) of the inputs that act at a time."""
        for clock, own in zip(self._held.clocks, self._weights, strict=True):
            own[clock.acting(np.array([t]))[0]] += of_r[clock.slots]

    def released(self, part: int, row: int) -> Array | float:
        """The weights in (y, r, p) of the samples that are taken at a state of a part, (n_y + n_r + n_p,)."""
        samples = self._held.taken(part, row)
        return sum((self._weights[c][number] @ self._held.slopes[c][number] for c, number in samples), start=0.0)
