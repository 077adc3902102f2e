"""Projection of an integrated state onto its constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from kanegen.errors import ModelError


@dataclass(frozen=True)
class Projection:
    """Positions, then speeds are corrected after the steps of a run, by the smallest change in the mass metric.

    The equations that are integrated have no stabilizing terms; energy and momenta are not affected by gains. Source:
    Hairer, Lubich and Wanner, Geometric Numerical Integration (2006), sections IV.4 and VII.1.

    Parameters
    ----------
    every
        Steps from one projection to the next; the last state of a run is always projected.
    tolerance
        Residuals that count as zero: this times the largest coordinate (positions) or speed (velocities), which
        counts as 1 at least. Where all are that small the state is left as it is. With the forms ``"pseudoinverse"``
        and ``"canonical"``, in which rows may become dependent on the way, the state is left where the correction
        (rad, m and their rates) is at most this. Of an integral: this times its value or the sum of ``|I_u u|``,
        whichever is larger.
    integrals
        Integrals of motion that keep the value they have at the start: ``"energy"`` and names of outputs of the model,
        such as an angular momentum, in the order of their precedence. The speeds are corrected, after the constraints;
        see docs/stabilization.md. kanegen does not check that they are conserved: one that is not is forced to be.

    Raises
    ------
    ModelError
        For a number of steps or a tolerance that is not positive, and integrals that are no names or named twice.
    """

    every: int = 1
    tolerance: float = 1e-13
    integrals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            problems.append(f"Projection got every={self.every!r}: expected a positive whole number of steps")
        if not _positive(self.tolerance):
            problems.append(f"Projection got tolerance={self.tolerance!r}: expected a positive number")
        names = (self.integrals,) if isinstance(self.integrals, str) else tuple(self.integrals)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            problems.append(
                f"Projection got integrals={self.integrals!r}: expected 'energy' and names of outputs, each once"
            )
        object.__setattr__(self, "integrals", names)
        if problems:
            raise ModelError(problems)


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 and math.isfinite(value)
