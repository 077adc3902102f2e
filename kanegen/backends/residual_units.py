"""The units in which residuals of constraints are judged: what kg_residual_units.h does in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kanegen.arrays import Array

_MOVE = 1e-6
"""The state moves by this fraction of its largest components."""
_GOLDEN = 0.5 * (1.0 + 5.0**0.5)


def with_units(residuals: Callable[[Any, Any], Array], q: Array, u: Array) -> tuple[Array, Array]:
    """``residuals(q, u)`` and their units, each (n,); see `kanegen.backends.protocol.ModelFunction.with_units`."""
    values = residuals(q, u)
    units = np.zeros(values.size)
    for sign in (1.0, -1.0):
        units += np.abs(residuals(_moved(q, sign), _moved(u, sign)) - values) / _MOVE
    return values, units


def _moved(x: Array, sign: float) -> Array:
    """The values, moved by irregular fractions from 1/2 to 1, so that changes do not cancel, with or without changes of
    sign."""
    k = np.arange(x.size)
    fractions = 0.5 + 0.5 * np.modf(_GOLDEN * (k + 1.0))[0]
    size = np.abs(x).max(initial=0.0) or 1.0
    moved: Array = x + _MOVE * size * fractions * sign**k
    return moved
