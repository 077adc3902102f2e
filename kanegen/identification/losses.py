"""Robust losses: functions of squared residuals that grow more slowly than the squares, for data with outliers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief

Loss = Callable[[Array], Array]
"""The values, first and second derivatives (3, m) of a loss at squared residuals (m,)."""


def _linear(z: Array) -> Array:
    return np.array([z, np.ones_like(z), np.zeros_like(z)])


def _soft_l1(z: Array) -> Array:
    root = np.sqrt(1.0 + z)
    return np.array([2.0 * (root - 1.0), 1.0 / root, -0.5 / root**3])


def _huber(z: Array) -> Array:
    beyond = np.maximum(z, 1.0)
    curved = np.array([2.0 * np.sqrt(beyond) - 1.0, beyond**-0.5, -0.5 * beyond**-1.5])
    return np.where(z <= 1.0, _linear(z), curved)


def _cauchy(z: Array) -> Array:
    return np.array([np.log1p(z), 1.0 / (1.0 + z), -1.0 / (1.0 + z) ** 2])


def _arctan(z: Array) -> Array:
    return np.array([np.arctan(z), 1.0 / (1.0 + z**2), -2.0 * z / (1.0 + z**2) ** 2])


LOSSES: Final[Mapping[str, Loss]] = MappingProxyType(
    {"linear": _linear, "soft_l1": _soft_l1, "huber": _huber, "cauchy": _cauchy, "arctan": _arctan}
)
"""The losses of `scipy.optimize.least_squares`."""


def read_loss(given: Any) -> Loss:
    """A loss by name, or a function of the squared residuals (m,). Raises `SolveError`."""
    if callable(given):
        return given  # type: ignore[no-any-return]
    if not isinstance(given, str) or given not in LOSSES:
        raise SolveError(f"loss is {brief(given)}; expected {', '.join(map(repr, LOSSES))}, or a function")
    return LOSSES[given]


def of_data_only(loss: Loss, n_data: int) -> Loss:
    """A loss of the first residuals; the others, those of priors, count by their squares."""

    def combined(z: Array) -> Array:
        return np.hstack([loss(z[:n_data]), _linear(z[n_data:])])

    return combined
