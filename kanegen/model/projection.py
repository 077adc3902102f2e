"""Projection of an integrated state onto its constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from kanegen.errors import ModelError


@dataclass(frozen=True)
class Projection:
    """Positions, then speeds are corrected after the steps of a run, by the smallest change in the mass metric.

    The equations that are integrated have no stabilising terms; energy and momenta are not affected by gains. Source:
    Hairer, Lubich and Wanner, Geometric Numerical Integration (2006), sections IV.4 and VII.1.

    Parameters
    ----------
    every
        Steps from one projection to the next; the last state of a run is always projected.
    tolerance
        Residuals that count as zero: this times the largest coordinate (positions) or speed (velocities), which
        counts as 1 at least. Where all are that small the state is left as it is.

    Raises
    ------
    ModelError
        For a number of steps or a tolerance that is not positive.
    """

    every: int = 1
    tolerance: float = 1e-13

    def __post_init__(self) -> None:
        problems = []
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            problems.append(f"Projection got every={self.every!r}: expected a positive whole number of steps")
        if not _positive(self.tolerance):
            problems.append(f"Projection got tolerance={self.tolerance!r}: expected a positive number")
        if problems:
            raise ModelError(problems)


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 and math.isfinite(value)
