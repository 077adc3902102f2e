"""The breakpoints of a piecewise polynomial at which integrations should end a step."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

KINK: Final = 1e-2
"""A breakpoint is a kink if the pieces beside it, continued over the longer one, differ by this part of the range."""

TURN: Final = 1e-3
"""The part of the range by which values rise or fall between two turning points."""


def notable_knots(breakpoints: ArrayLike, coefficients: Sequence[Sequence[float]]) -> list[int]:
    """Return the indices of the breakpoints of a piecewise polynomial that matter to the steps of an integration.

    A step sees a function at a few times only. What it can pass unseen has a turning point, at which some step
    therefore has to end; kinks, from which motions go on in another way, are the other breakpoints that count. Both are
    measured by the range of the values, so that a table of a smooth function, however long, has few of them: two in
    each of its periods.

    Parameters
    ----------
    breakpoints
        n abscissae, increasing.
    coefficients
        n - 1 pieces, ascending powers of the distance from the breakpoint before.
    """
    x, c = np.asarray(breakpoints, dtype=np.float64), np.asarray(coefficients, dtype=np.float64)
    lengths = np.diff(x)
    ends = _derivatives(c, lengths)
    values = np.append(c[:, 0], ends[-1, 0])
    spread = float(values.max() - values.min())
    if not spread > 0.0:
        return []
    longer = np.maximum(lengths[:-1], lengths[1:])
    orders = range(c.shape[1])
    starts = c * [factorial(k) for k in orders]
    jumps = sum(np.abs(starts[1:, k] - ends[:-1, k]) * longer**k / factorial(k) for k in orders)
    kinks = 1 + np.flatnonzero(jumps > KINK * spread)
    return sorted({*kinks.tolist(), *_turning_points(values.tolist(), TURN * spread)} - {0})


def _derivatives(c: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return all derivatives of each piece at its end."""
    n = c.shape[1]
    powers = lengths[:, None] ** np.arange(n)
    columns = [
        sum(c[:, j] * powers[:, j - k] * (factorial(j) // factorial(j - k)) for j in range(k, n)) for k in range(n)
    ]
    return np.stack(columns, axis=1)


def _turning_points(values: Sequence[float], least: float) -> list[int]:
    """Return the first places of the maxima and minima between which the values change by more than ``least``."""
    found: list[int] = []
    low = high = 0  # places of the least and the greatest value since the last turning point
    rising = falling = True
    for k, value in enumerate(values):
        if value > values[high]:
            high = k
        if value < values[low]:
            low = k
        if rising and values[high] - value > least:
            found.append(high)
            rising, falling, low = False, True, k
        elif falling and value - values[low] > least:
            found.append(low)
            rising, falling, high = True, False, k
    return found
