"""What a solver returns for a reaction."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

REACTION: Final = "reaction:"
"""Prefix of the compiled functions of reactions."""


class Wrench(NamedTuple):
    """Force (3,), N, and torque about the reaction's point (3,), N m, components in the reaction's frame."""

    force: NDArray[np.float64]
    torque: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Wrench:
        """From the six numbers of the compiled function."""
        return cls(values[:3], values[3:])
