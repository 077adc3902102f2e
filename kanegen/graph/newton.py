"""Newton's method on graphs, in whatever units residuals and unknowns are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.graph.decisions import RELATIVE_ZERO, vanish_at
from kanegen.graph.derivatives import gradient, reachable
from kanegen.graph.interpret import evaluate_all
from kanegen.graph.nodes import Node
from kanegen.graph.ranks import unit_rows

Values = dict[str, list[float]]

_ITERATIONS: Final = 50

_STEP: Final = 1e-14
"""An iteration with steps below this fraction of every unknown does not come closer."""

_FAR: Final = 100.0
"""The iteration stops at a step that is longer than this, relative to the largest unknown at its start: solutions far
away have lost digits."""


class Newton:
    """Newton's method with steps of least norm for the ``unknowns`` (input nodes) at which ``residuals`` vanish."""

    def __init__(self, residuals: Sequence[Node], unknowns: Sequence[Node]) -> None:
        self._places = [node.payload for node in unknowns]
        slopes = [slope for residual in residuals for slope in gradient([residual], [residual.graph.one], unknowns)]
        self._shape = m, n = len(residuals), len(unknowns)
        self._residuals = tuple(residuals)
        self._numbers = [node.index for node in (*residuals, *slopes)]
        self._nodes = reachable([*residuals, *slopes])
        self._is_unique = m == n and {node.index for node in unknowns}.isdisjoint(x.index for x in reachable(slopes))

    def solve(self, values: Mapping[str, Sequence[float]]) -> Values | None:
        """The input arrays with the unknowns replaced; None if the method does not converge."""
        moved = {name: [float(x) for x in array] for name, array in values.items()}
        m, n = self._shape
        if not m:
            return moved
        start = np.abs(self._unknowns(moved))
        far = _FAR * start.max(initial=0.0)
        for _ in range(_ITERATIONS):
            try:
                known = evaluate_all(self._nodes, moved)
            except (ValueError, ArithmeticError):
                return None  # a user's Python function is not defined at this point
            numbers = np.array([known[index] for index in self._numbers])
            if not np.isfinite(numbers).all():
                return None
            rows = np.column_stack([numbers[m:].reshape(m, n), numbers[:m]])
            is_solution = self._is_solution(rows, start, moved)
            step = self._step(rows)
            for (array, index), change in zip(self._places, step, strict=True):
                moved[array][index] -= float(change)
            if is_solution:
                return moved
            if (np.abs(step) <= _STEP * np.abs(self._unknowns(moved))).all():
                return None
            if np.abs(step).max(initial=0.0) > far > 0.0 and not self._is_unique:
                return None
        return None

    def _unknowns(self, values: Values) -> Array:
        return np.array([values[array][index] for array, index in self._places])

    @staticmethod
    def _step(rows: Array) -> Array:
        """The step for ``rows`` [slopes, residual], which are scaled to length one: a small row counts as any other."""
        lengths = np.linalg.norm(rows[:, :-1], axis=1)
        right = rows[:, -1] / np.where(lengths > 0.0, lengths, 1.0)
        return np.asarray(np.linalg.lstsq(unit_rows(rows[:, :-1]), right, rcond=None)[0])

    def _is_solution(self, rows: Array, start: Array, values: Values) -> bool:
        """Whether the residuals are rounding: of their products with the unknowns, or of their terms.

        Of an unknown that tends to zero, a fraction of its start counts.
        """
        terms = np.abs(rows[:, :-1]) @ np.maximum(np.abs(self._unknowns(values)), RELATIVE_ZERO * start)
        left = [
            x for x, row, size in zip(self._residuals, rows, terms, strict=True) if abs(row[-1]) > RELATIVE_ZERO * size
        ]
        return vanish_at(left, [values])
