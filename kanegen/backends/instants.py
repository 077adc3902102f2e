"""The instants at which functions of time jump or have a kink: what kg_switches.h does in C, slower and simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, inf, isfinite, pi
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codes import SwitchShape
from kanegen.program.records import SwitchEntry

_EPS: Final = float(np.finfo(np.float64).eps)
_MARGIN: Final = 6.0 * _EPS
"""Instants that differ by less than this fraction of the time are one."""
_CLEARANCE: Final = 8.0 * _EPS
"""What is evaluated between two instants is this fraction of the time away from both."""
_PIECES: Final = 256
"""Pieces of a run in which curved switches are sampled at least, and those of a turn of the fastest angle in them."""
_PIECES_OF_A_TURN: Final = 12

Values = Callable[[float], Array]
"""The arguments of the switches and their rates at a time, (n, 2)."""


class Instants:
    """The instants of a run over ``span``.

    ``values`` evaluates the ``switches`` of the model. ``times``: further instants.
    """

    def __init__(
        self, switches: Sequence[SwitchEntry], values: Values, span: tuple[float, float], times: Iterable[float] = ()
    ) -> None:
        self._switches, self._values = switches, values
        self._end, self._direction = span[1], 1.0 if span[1] >= span[0] else -1.0
        self._times = [*map(float, times), *self._curved(span)]
        self._first = self._last = span[0]
        self._active = bool(switches or self._times)

    def begin(self, t: float) -> float:
        """Begin the interval after ``t``; return its end: the next instant, or the end of the run."""
        end = self._end
        for time in self._times:
            end = self._earlier(end, time, t)
        origin = self._values(0.0) if self._switches else np.empty((0, 2))
        for k, switch in enumerate(self._switches):
            if switch.shape is SwitchShape.AFFINE:
                end = self._affine(switch, 0.0, origin[k], t, end)
            elif switch.shape is SwitchShape.PIECES:
                inside = t + 0.5 * (end - t)
                end = self._affine(switch, inside, self._values(inside)[k], t, end)
        first = t + self._direction * _CLEARANCE * abs(t)
        last = end - self._direction * _CLEARANCE * abs(end)
        if (last - first) * self._direction < 0.0:
            first = last = t + 0.5 * (end - t)
        self._first, self._last = sorted((first, last))
        return end

    def inside(self, t: float) -> float:
        """Return the time in the present interval at which something is evaluated for ``t``."""
        return min(max(t, self._first), self._last) if self._active else t

    def _is_after(self, time: float, t: float) -> bool:
        return (time - t) * self._direction > _MARGIN * abs(t)

    def _earlier(self, end: float, time: float, t: float) -> float:
        return time if self._is_after(time, t) and self._is_after(end, time) else end

    def _affine(self, switch: SwitchEntry, at: float, value: Array, t: float, end: float) -> float:
        """Return the next instant after ``t`` of a function with this value and slope ``at`` a time, or ``end``."""
        a, slope = map(float, value)
        now = a + slope * (t - at)
        if slope == 0.0 or not isfinite(now):
            return end
        near = [float(k) for k in range(floor(now) - 1, ceil(now) + 3)] if abs(now) < 2**52 else []
        times = (at + (level - a) / slope for level in switch.levels or near)
        for time in times:
            end = self._earlier(end, time, t)
        return end

    # -- curved switches ---------------------------------------------------------------------------------------------

    def _curved(self, span: tuple[float, float]) -> Iterator[float]:
        """Yield the times at which curved switches change between their levels, from samples."""
        low, high = sorted(span)
        for k, switch in enumerate(self._switches):
            if switch.shape is not SwitchShape.CURVED:
                continue

            def place(t: float, k: int = k, levels: tuple[float, ...] = switch.levels) -> int:
                a = float(self._values(t)[k, 0])
                if not isfinite(a):
                    return -1
                return int(np.searchsorted(levels, a)) if levels else floor(a)

            for start, end in pairwise(self._samples(k, low, high)):
                # A change at the start, where rounding decides on the side, is no instant of the run.
                yield from (time for time in _changes(place, start, end) if time - low > _EPS * (high - low))

    def _samples(self, k: int, low: float, high: float) -> Iterator[float]:
        t, longest = low, (high - low) / _PIECES
        while t < high:
            yield t
            angle = abs(float(self._values(t)[k, 1]))
            t += min(longest, 2.0 * pi / (_PIECES_OF_A_TURN * angle) if angle > 0.0 else inf)
        yield high


def _changes(place: Callable[[float], int], start: float, end: float) -> Iterator[float]:
    """Yield the times at which an integer function changes, at least one if it differs at the ends."""
    before, after = place(start), place(end)
    while before != after:
        a, b = start, end
        while True:
            middle = a + 0.5 * (b - a)
            if not a < middle < b:
                break
            a, b = (middle, b) if place(middle) == before else (a, middle)
        yield b
        start, before = b, place(b)
