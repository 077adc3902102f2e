"""Arguments with relative errors of some roundings, from which the roundings of a function's terms are measured."""

from __future__ import annotations

from typing import Final

import numpy as np

from kanegen.arrays import Array

DISTURBANCE: Final = 8.0 * float(np.finfo(float).eps)
"""Relative error of arguments: some roundings, so that the roundings inside a function count as much."""

SAMPLES: Final = 6
"""Disturbed evaluations of a function; the median of the changes counts, because single ones can cross a switch."""


def disturbed(values: Array, seed: int) -> Array:
    """The values with relative errors that depend on the seed only; zeros remain."""
    signs = np.random.default_rng(seed).choice([-1.0, -0.5, 0.5, 1.0], np.shape(values))
    return np.asarray(values * (1.0 + DISTURBANCE * signs))
