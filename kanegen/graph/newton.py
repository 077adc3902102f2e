"""Roots of expressions near a given point, by Gauss and Newton's method with steps of least norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kanegen.graph.derivatives import gradient
from kanegen.graph.interpret import evaluate
from kanegen.graph.nodes import Node

Values = dict[str, list[float]]

_ITERATIONS = 50

_STEP = 1e-14
"""A step below this fraction of the unknowns (at least 1) is rounding: the iteration has converged."""

_SATISFIED = 1e-10
"""Residuals that are left after convergence; a larger one belongs to a point without a root nearby."""

_FAR = 100.0
"""A step of this size leads nowhere: coordinates and lengths of models are of the size 1, some of them 30."""


class Newton:
    """The values of ``unknowns`` (input nodes of the graph) nearest to the given ones at which ``residuals`` vanish."""

    def __init__(self, residuals: Sequence[Node], unknowns: Sequence[Node]) -> None:
        self._places = [node.payload for node in unknowns]
        slopes = [slope for residual in residuals for slope in gradient([residual], [residual.graph.one], unknowns)]
        self._shape = (len(residuals), len(unknowns))
        self._nodes = [*residuals, *slopes]

    def solve(self, values: Mapping[str, Sequence[float]]) -> Values | None:
        """The input arrays with the unknowns replaced; None where the method does not converge."""
        moved = {name: [float(x) for x in array] for name, array in values.items()}
        m, n = self._shape
        if not m:
            return moved
        for _ in range(_ITERATIONS):
            try:
                numbers = np.array(evaluate(self._nodes, moved))
            except (ValueError, ArithmeticError):
                return None  # a user's Python function that is not defined here
            if not np.isfinite(numbers).all():
                return None
            step = np.linalg.lstsq(numbers[m:].reshape(m, n), numbers[:m], rcond=None)[0]
            largest = float(np.abs(step).max(initial=0.0))
            if largest > _FAR:
                return None
            for (array, index), change in zip(self._places, step, strict=True):
                moved[array][index] -= float(change)
            size = max((abs(moved[array][index]) for array, index in self._places), default=0.0)
            if largest <= _STEP * max(1.0, size):
                return moved if np.abs(numbers[:m]).max() < _SATISFIED else None
        return None
