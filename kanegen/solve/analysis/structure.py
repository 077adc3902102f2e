"""The two orthogonal parts of the canonical form."""

from __future__ import annotations

from dataclasses import dataclass

from kanegen.arrays import Array


@dataclass(frozen=True)
class AccelerationParts:
    """The canonical form's two parts of the accelerations (Bajodah and Chen 2018, eqs. 40 and 44), (n_u,) each.

    ``udot_constraint`` enforces the constraints, ``udot_momentum`` balances the momentum. They add up to u' and are
    orthogonal in the metric Q. ``wdot_constraint`` and ``wdot_momentum`` are the parts of w', with w = Q^1/2 u; they
    are orthogonal in the Euclidean metric.
    """

    udot_constraint: Array
    udot_momentum: Array
    wdot_constraint: Array
    wdot_momentum: Array
