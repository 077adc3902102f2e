"""Redundant constraints, and the two orthogonal parts of the accelerations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kanegen.arrays import Array

RANK_TOLERANCE = 1e-9
"""A row that keeps less than this fraction of its length, the earlier rows taken out, follows from them."""


@dataclass(frozen=True)
class Parts:
    """The canonical form's two parts of the accelerations (Bajodah and Chen 2018, eqs. 40 and 44), (n_u,) each.

    ``udot_constraint`` enforces the constraints, ``udot_momentum`` balances the momentum. They add up to u' and are
    orthogonal in the metric Q. ``wdot_constraint`` and ``wdot_momentum`` are the parts of w', with w = Q^1/2 u; they
    are orthogonal in the Euclidean metric.
    """

    udot_constraint: Array
    udot_momentum: Array
    wdot_constraint: Array
    wdot_momentum: Array


def redundant_rows(J: Array) -> list[int]:
    """Indices of the rows that depend linearly on the rows before them."""
    basis: list[Array] = []
    redundant = []
    for index, row in enumerate(J):
        length = np.linalg.norm(row)
        rest = row.copy()
        for _ in range(2):  # once more: what one pass leaves by rounding
            for direction in basis:
                rest -= (rest @ direction) * direction
        size = np.linalg.norm(rest)
        if length == 0.0 or size < RANK_TOLERANCE * length:
            redundant.append(index)
        else:
            basis.append(rest / size)
    return redundant
