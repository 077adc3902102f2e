"""Arguments with relative errors of some roundings, from which the roundings of a function's terms are measured."""

from __future__ import annotations

from typing import Final

import numpy as np

from kanegen.arrays import Array

DISTURBANCE: Final = 8.0 * float(np.finfo(float).eps)
"""Relative error of arguments: some roundings, so that the roundings inside a function count as much."""

SAMPLES: Final = 6
"""Disturbed evaluations of a function."""


def disturbed(values: Array, seed: int, errors: Array | float = 0.0) -> Array:
    """The values with relative errors that depend on the seed only, and with absolute ``errors``."""
    signs = np.random.default_rng(seed).choice([-1.0, -0.5, 0.5, 1.0], np.shape(values))
    return np.asarray(values + signs * (DISTURBANCE * np.abs(values) + errors))
