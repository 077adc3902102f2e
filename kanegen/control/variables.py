"""Bounds, scales and start values of the variables of a transcription, in the order of its layout."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.control.guess import Guess
from kanegen.control.layout import Layout

_LEAST_ACCELERATION = 10.0
"""Smallest unit of accelerations: guesses are mostly straight lines, whose accelerations vanish."""


class Variables(NamedTuple):
    """Start values, bounds, and the units of the variables, (n_x,) each, in SI units."""

    start: Array
    low: Array
    high: Array
    scale: Array


def variables_of(layout: Layout, guess: Guess) -> Variables:
    """The variables at a guess, moved between their bounds."""
    low, high = _bounds(layout)
    start = np.clip(_values(layout, guess), low, high)
    return Variables(start, low, high, _scales(layout, start, low, high))


def _values(layout: Layout, guess: Guess) -> Array:
    statement, x = layout.statement, np.zeros(layout.n_x)
    x[layout.all_y] = guess.y(layout.tau_of_y)
    x[layout.moments.y] = guess.y(layout.moments.tau)
    for places, curve in ((layout.udot, guess.udot), (layout.multipliers, guess.multipliers)):
        x[places] = curve(layout.tau)
    x[layout.inputs[:, list(statement.inputs)]] = guess.inputs(layout.tau)
    if statement.is_timed:
        x[layout.duration] = guess.duration
    x[layout.parameters[list(statement.parameters)]] = guess.parameters
    return x


def _bounds(layout: Layout) -> tuple[Array, Array]:
    statement = layout.statement
    pairs = np.tile([-np.inf, np.inf], (layout.n_x, 1))
    pairs[layout.all_y] = statement.bounds
    pairs[layout.mesh_y[0]], pairs[layout.mesh_y[-1]] = statement.start.bounds, statement.end.bounds
    pairs[layout.inputs[:, list(statement.inputs)]] = statement.input_bounds
    if statement.is_timed:
        pairs[layout.duration] = statement.duration
    pairs[layout.parameters[list(statement.parameters)]] = statement.parameter_bounds
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _scales(layout: Layout, start: Array, low: Array, high: Array) -> Array:
    """The largest magnitude of each unknown in its bounds and in the guess; all times have that of one variable."""
    sizes = np.abs(start)
    for bound in (low, high):
        sizes = np.maximum(sizes, np.where(np.isfinite(bound), np.abs(bound), 0.0))
    scale = np.ones(layout.n_x)
    statement = layout.statement
    y, inputs = np.vstack([layout.all_y, layout.moments.y]), layout.inputs[:, list(statement.inputs)]
    for places, least in ((y, 0.0), (inputs, 0.0), (layout.udot, _LEAST_ACCELERATION)):
        for column in places.T:
            largest = sizes[column].max(initial=0.0)
            scale[column] = max(largest, least) or 1.0
    single = [*layout.parameters[list(statement.parameters)], *([layout.duration] if statement.is_timed else [])]
    for place in single:
        scale[place] = sizes[place] or 1.0
    return scale
