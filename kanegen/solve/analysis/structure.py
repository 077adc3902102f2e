"""The two orthogonal parts of the canonical form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """The canonical form's two parts of the accelerations (Bajodah and Chen 2018, eqs. 40 and 44), (n_u,) each.

    ``udot_constraint`` enforces the constraints, ``udot_momentum`` balances the momentum; they are orthogonal in Q and
    add up to u'. ``wdot_constraint`` and ``wdot_momentum`` are those of w' with w = Q^1/2 u, orthogonal as they stand.
    """

    udot_constraint: Array
    udot_momentum: Array
    wdot_constraint: Array
    wdot_momentum: Array
