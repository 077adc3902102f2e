"""The instants at which the inputs of a run jump or have a kink: those of tables and splines that matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief
from kanegen.solve.values import number

_ROUNDING: Final = 1e-12
"""Changes below this fraction of the largest value are rounding errors of coefficients."""
_STRAIGHT: Final = 1e-9
"""A change of slope below this fraction of the slopes is no kink."""
_MOST: Final = 1000
"""Turns of an input that stand out least are left to the step control where there are more."""
_FRACTION: Final = 0.01
"""Kinks matter if they are worth the whole range for the relative tolerance times this fraction of the run."""


@dataclass(frozen=True)
class Signal:
    """An input of a run, given by a function that jumps or has kinks at known times.

    The steps of adaptive methods end at these times, so that nothing that begins or ends there is stepped over::

        def force(t):
            return 5.0 if 2.0 <= t < 2.01 else 0.0


        solver.integrate((0, 10), r={"F": kg.Signal(force, breakpoints=[2.0, 2.01])})

    Parameters
    ----------
    function
        What ``r`` accepts as a function: a Python callable ``r(t)`` or ``r(t, q, u)``, or a
        `scipy.LowLevelCallable`. Between two breakpoints it is evaluated inside the interval only, a few roundings
        away from its ends.
    breakpoints
        Times (s) in any order.
    """

    function: Any
    breakpoints: Any

    def __post_init__(self) -> None:
        if not (callable(self.function) or type(self.function).__name__ in ("LowLevelCallable", "PyCapsule")):
            raise SolveError(
                f"a Signal has the function {brief(self.function)}; expected a callable. The breakpoints of tables and "
                "splines are known"
            )
        try:
            given = list(self.breakpoints)
        except TypeError as error:
            raise SolveError(f"breakpoints is {brief(self.breakpoints)}; expected a sequence of times (s)") from error
        times = sorted({float(number(t, "a time in breakpoints")) for t in given})
        object.__setattr__(self, "breakpoints", tuple(times))


@dataclass(frozen=True)
class Changes:
    """What is known to change in time: tables and splines, ``polynomials`` (``PPoly``), and other ``breakpoints``."""

    polynomials: tuple[Any, ...] = ()
    breakpoints: tuple[float, ...] = ()

    def instants(self, span: tuple[float, float], rtol: Any) -> Array | None:
        """The times in ``span``, ascending, at which steps with the relative tolerance ``rtol`` end; None: none.

        These are the breakpoints, and the times of the polynomials that matter: see `_that_matter`.
        """
        if not (self.polynomials or self.breakpoints):
            return None
        first, last = min(span), max(span)
        parts = [_of_polynomial(polynomial, first, last, float(np.min(rtol))) for polynomial in self.polynomials]
        times = np.unique(np.concatenate([np.array(self.breakpoints, dtype=np.float64), *parts]))
        return times[(times >= first) & (times <= last)]


def _of_polynomial(polynomial: Any, first: float, last: float, rtol: float) -> Array:
    """The times of a polynomial of several values that matter in a run from ``first`` to ``last``."""
    x = polynomial.x
    begin = max(int(np.searchsorted(x, first, side="right")) - 1, 0)
    end = min(int(np.searchsorted(x, last, side="left")), x.size - 1)
    if end <= begin or (end == begin + 1 and len(polynomial.c) <= 2):
        return np.empty(0)
    x, c = x[begin : end + 1], polynomial.c[:, begin:end]
    return np.concatenate([_that_matter(x, c[:, :, k], rtol) for k in range(c.shape[2])])


def _that_matter(x: Array, c: Array, rtol: float) -> Array:
    """The times that matter of one value, a polynomial with the breakpoints ``x`` (n + 1,) and coefficients (k, n).

    - A breakpoint at which the value jumps by more than ``rtol`` times its range.
    - Turns: maxima and minima that stand out by more than that, and by more than the thousandth largest swing. A step
      from one turn to the next cannot miss what happens in between, because it sees the values at both of its ends.
    - A breakpoint at which the slope changes by so much that a step over it is wrong: the triangle between the kink and
      the kinks beside it exceeds ``rtol`` times the range times a hundredth of the time. Smaller kinks are left to the
      step control.
    """
    steps, start = np.diff(x), c[-1]
    end = _value(c, steps)
    inner = [_value(c, fraction * steps) for fraction in np.linspace(0.0, 1.0, c.shape[0])[1:-1]]
    values = [start, *inner, end]
    lowest, highest = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    rounding = _ROUNDING * max(abs(lowest), abs(highest))
    least = max(rtol * (highest - lowest), rounding)
    if highest - lowest <= rounding:
        return np.empty(0)
    jumps = np.abs(start[1:] - end[:-1]) > least
    if not jumps.any():
        values.pop()  # that is the start of the next piece
    samples = np.append(np.stack(values, axis=1).ravel(), end[-1])
    pieces, parts = np.divmod(_turns(samples, least), len(values))
    turns = x[pieces] + parts * (np.append(steps, 0.0)[pieces] / max(c.shape[0] - 1, 1))
    area = rtol * (highest - lowest) * _FRACTION * (x[-1] - x[0])
    return np.concatenate([x[1:-1][jumps], turns, x[_kinks(steps, c, rounding, area)]])


def _value(c: Array, s: Array) -> Array:
    """Values of the polynomials with coefficients (k, n) at ``s`` (n,): Horner's rule."""
    value: Array = c[0]
    for row in c[1:]:
        value = value * s + row
    return value


def _kinks(steps: Array, c: Array, rounding: float, area: float) -> NDArray[np.intp]:
    """Indices of the breakpoints whose triangles with the kinks beside them exceed ``area``; the longer side counts."""
    if len(c) < 2:
        return np.empty(0, dtype=np.intp)
    slopes = c[:-1] * np.arange(len(c) - 1, 0, -1)[:, None] if len(c) > 2 else c[:1]
    before, after = _value(slopes[:, :-1], steps[:-1]), slopes[-1, 1:]
    change = np.abs(after - before)
    uncertain = rounding / float(steps.min()) + _STRAIGHT * np.abs(after)
    kinks = np.flatnonzero(change > uncertain) + 1
    times = np.concatenate([[0.0], np.cumsum(steps)])
    gaps = np.diff(times[np.concatenate([[0], kinks, [steps.size]])])
    longer = np.maximum(gaps[:-1], gaps[1:])
    found: NDArray[np.intp] = kinks[change[kinks - 1] * longer * longer > 2.0 * area]
    return found


def _turns(values: Array, least: float) -> NDArray[np.intp]:
    """Indices of the maxima and minima that are further than ``least`` from the next ones, which are as far as that."""
    differences = np.diff(values)
    moves = np.flatnonzero(differences)
    rises = differences[moves] > 0.0
    extrema: NDArray[np.intp] = moves[1:][rises[1:] != rises[:-1]]  # the last of equal values
    ends = values[np.concatenate([[0], extrema, [values.size - 1]])]
    swings = np.abs(np.diff(ends))
    if swings.size > _MOST:
        least = max(least, (1.0 - _STRAIGHT) * float(np.partition(swings, -_MOST)[-_MOST]))
    if swings.min() > least:
        return extrema  # the usual case
    found, low, high, rising = [], ends[0], ends[0], None
    place = top = bottom = 0
    for place, value in enumerate(ends.tolist()):
        if value > high:
            high, top = value, place
        if value < low:
            low, bottom = value, place
        if rising is not False and high - value > least:
            found.append(top)
            rising, low, bottom = False, value, place
        elif rising is not True and value - low > least:
            found.append(bottom)
            rising, high, top = True, value, place
    return np.array([extrema[place - 1] for place in found if 0 < place <= extrema.size], dtype=np.intp)
