"""Random changes of a guess, which lead to other local optima."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kanegen.arrays import Array
from kanegen.control.guess import Curve, Guess
from kanegen.control.statement import Statement

_WAVES = 4


def changed(statement: Statement, guess: Guess, seed: int) -> Guess:
    """The guess with random sine waves added to the coordinates and the unknown inputs, which vanish at both ends.

    The speeds follow from the coordinates. The same ``seed`` gives the same guess.
    """
    random = np.random.default_rng(seed)
    n_q = len(statement.model.coordinates)
    sizes = np.zeros(len(statement.components))
    sizes[:n_q] = _sizes(statement.bounds, np.ptp(guess.y(np.linspace(0.0, 1.0, 21)), axis=0))[:n_q]
    y = _added(guess.y, random.normal(size=(_WAVES, sizes.size)) * sizes)
    sizes = _sizes(statement.input_bounds, np.ones(len(statement.inputs)))
    inputs = _added(guess.inputs, random.normal(size=(_WAVES, sizes.size)) * sizes)
    return replace(guess, y=y, inputs=inputs, speeds_follow=True)


def _sizes(bounds: Array, otherwise: Array) -> Array:
    """Half the distance of bounds, where it is finite."""
    half = (bounds[:, 1] - bounds[:, 0]) / 2.0
    return np.where(np.isfinite(half), half, otherwise)


def _added(curve: Curve, amplitudes: Array) -> Curve:
    """A curve with waves (k, n), whose amplitudes fall with the frequency."""
    numbers = np.arange(1, len(amplitudes) + 1)

    def sum_of(tau: Array) -> Array:
        waves = np.sin(np.pi * np.outer(tau, numbers)) / numbers
        return np.asarray(curve(tau) + waves @ amplitudes)

    return sum_of
