"""Cyclic directions of a linear model: changes of the coordinates on which nothing depends.

A position along a road is one coordinate; in a drivetrain with the angles a and b of two shafts and the ratio 97, on
which only a - b/97 acts, the direction (1, 97) is cyclic and neither coordinate is. Directions are found one set after
the other: the heading of a vehicle changes the rates of its position only, so that it is cyclic because these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.graph.ranks import RANK_TOLERANCE, pivoted_columns
from kanegen.solve.analysis.sizes import equilibrated


class Cyclic(NamedTuple):
    """Cyclic directions: ``dropped`` (k,) are indices of coordinates, one for each direction.

    ``carried`` (n, k): the changes of all n states with those of the dropped coordinates along the directions.
    """

    dropped: list[int]
    carried: Array

    @property
    def kept(self) -> list[int]:
        """The indices of the other states."""
        return [i for i in range(len(self.carried)) if i not in self.dropped]

    def without(self, rows: Array) -> Array:
        """The rows of the states that are kept, less what the dropped coordinates carry along: (n - k, columns)."""
        reduced: Array = rows[self.kept] - self.carried[self.kept] @ rows[self.dropped]
        return reduced


def cyclic_directions(models: Sequence[Array], n: int) -> Cyclic:
    """The directions of the first ``n`` states of ``z' = A z``, their coordinates, that change no other rate.

    ``models``: A at several states, because a direction can be neutral at one of them, as where a motion becomes
    unstable. A direction w with ``A w = a w``, a not zero, changes its own rate and is not cyclic.
    """
    found = Cyclic([], np.zeros((len(models[0]), 0)))
    while True:
        directions, units = _null_space(np.vstack([found.without(A)[:, :n] for A in models]))
        if directions.shape[1] <= len(found.dropped):
            return found
        found = _described(directions, units, len(models[0]))


def _null_space(matrix: Array) -> tuple[Array, Array]:
    """An orthonormal basis (n, k) of the vectors that a matrix maps to zero, in units (n,) that make it comparable."""
    rows, columns = equilibrated(matrix)
    if not matrix.size:
        return np.eye(matrix.shape[1]), columns
    _, sizes, V = np.linalg.svd(rows[:, None] * matrix * columns)
    rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum()) if sizes[0] > 0.0 else 0
    return V[rank:].T, columns


def _described(directions: Array, units: Array, size: int) -> Cyclic:
    """Orthonormal directions (n, k) by coordinates that are dropped; shares that are rounding errors are zero."""
    n, k = directions.shape
    dropped = sorted(pivoted_columns(directions.T)[1][:k])
    shares = np.linalg.solve(directions[dropped].T, directions.T).T
    shares = np.where(np.abs(shares) > RANK_TOLERANCE, shares, 0.0)
    carried = np.zeros((size, k))
    carried[:n] = shares * units[:, None] / units[dropped]
    carried[dropped] = np.eye(k)
    return Cyclic(dropped, carried)
