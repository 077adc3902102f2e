"""Starts of the iterations that satisfy the constraints of the model, and the rows of constraints that remain.

Conditions at the start or at the end can determine what the constraints of the model determine, too. Rows of
constraints that depend on unknowns no more are left out, if the conditions satisfy them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.layout import Layout
from kanegen.control.points import MESH
from kanegen.control.program import NonlinearProgram
from kanegen.control.transcription import transcribe
from kanegen.control.variables import Variables
from kanegen.errors import SolveError

_ITERATIONS = 30
_CONSISTENT, _INDEPENDENT = 1e-8, 1e-9


@dataclass(frozen=True, eq=False)
class Consistency:
    """``variables`` whose start satisfies the constraints; ``kept`` (N + 1, n): the rows of constraints that remain, or
    None without constraints. ``notes``: sentences about what was changed."""

    layout: Layout
    variables: Variables
    kept: Any = None
    notes: tuple[str, ...] = ()


def made_consistent(layout: Layout, code: PointCode, variables: Variables) -> Consistency:
    """Move the states of the mesh points onto the constraints. Raises `SolveError` for contradictory conditions."""
    if code.kind(MESH) is None:
        return Consistency(layout, variables)
    moved = _Projection(layout, code, variables)
    notes = moved.project()
    start = np.clip(moved.x * variables.scale, variables.low, variables.high)
    kept = moved.kept()
    return Consistency(layout, moved.pinned(kept, variables._replace(start=start)), kept, notes)


class _Projection:
    """Newton's method for the constraints at all mesh points, whose rows are functions of the states there only."""

    def __init__(self, layout: Layout, code: PointCode, variables: Variables) -> None:
        self.layout, self.variables = layout, variables
        transcription = transcribe(layout, code)
        self.program = NonlinearProgram(transcription, code, variables.scale, np.ones(transcription.n_g))
        self.range = transcription.labels["constraints"]
        self.x = variables.start / variables.scale
        self.free = (variables.low < variables.high)[layout.mesh_y]

    @property
    def n_rows(self) -> int:
        return len(self.range) // len(self.layout.mesh)

    def residuals(self) -> Array:
        """Residuals (N + 1, n)."""
        rows = self.program.constraints(self.x)
        return rows[self.range.start : self.range.stop].reshape(len(self.layout.mesh), -1)

    def slopes(self) -> Array:
        """Derivatives (N + 1, n, n_y) with respect to the scaled states at the mesh points."""
        n_points, n_y = self.layout.mesh_y.shape
        pattern, values = self.program.jacobian_pattern, self.program.jacobian(self.x)
        place = np.full(self.layout.n_x, -1)
        place[self.layout.mesh_y] = np.arange(n_y)
        used = (pattern.rows >= self.range.start) & (pattern.rows < self.range.stop) & (place[pattern.columns] >= 0)
        point, row = np.divmod(pattern.rows[used] - self.range.start, self.n_rows)
        found = np.zeros((n_points, self.n_rows, n_y))
        found[point, row, place[pattern.columns[used]]] = values[used]
        return found

    def project(self) -> tuple[str, ...]:
        """Move the free states by least changes."""
        if np.abs(self.residuals()).max() < _CONSISTENT:
            return ()
        for _ in range(_ITERATIONS):
            residuals = self.residuals()
            if not np.abs(residuals).max() > _CONSISTENT / 100:
                break
            slopes = self.slopes() * self.free[:, None, :]
            steps = -np.einsum("kij,kj->ki", np.linalg.pinv(slopes, rcond=1e-9), residuals)
            self.x[self.layout.mesh_y] += np.clip(steps, -0.5, 0.5)
        return ("the guess was moved onto the constraints of the model",)

    def kept(self) -> Any:
        """Which rows remain, (N + 1, n); at the ends those that unknown states can change. Raises `SolveError`."""
        kept = np.ones((len(self.layout.mesh), self.n_rows), dtype=bool)
        slopes, residuals = self.slopes(), self.residuals()
        for k, name in ((0, "start"), (-1, "end")):
            kept[k] = independent_rows(slopes[k] * self.free[k])
            wrong = np.flatnonzero(~kept[k] & (np.abs(residuals[k]) > _CONSISTENT * 100))
            if wrong.size:
                rows = ", ".join(f"{row + 1}: residual {residuals[k][row]:.3g}" for row in wrong)
                raise SolveError(
                    f"the conditions at the {name} contradict the constraints of the model (constraints {rows}): give "
                    f"values in {name}= that satisfy them, or leave out those that the constraints determine"
                )
        return kept

    def pinned(self, kept: Array, variables: Variables) -> Variables:
        """The variables with those fixed that a row at an end determines whose derivatives vanish, as x^2 = 0 does."""
        low, high, pattern = variables.low.copy(), variables.high.copy(), self.program.jacobian_pattern
        for k in (0, len(kept) - 1):
            slopes = np.abs(self.slopes()[k] * self.free[k]).max(axis=1)
            for row in np.flatnonzero(~kept[k] & (slopes < _INDEPENDENT)):
                places = pattern.columns[pattern.rows == self.range.start + k * self.n_rows + row]
                own = np.intersect1d(places, self.layout.mesh_y[k][self.free[k]])
                low[own] = high[own] = variables.start[own]
        return variables._replace(low=low, high=high)


def independent_rows(matrix: Array) -> Array:
    """Which rows are independent of the rows before them."""
    found, basis = np.zeros(len(matrix), dtype=bool), np.empty((0, matrix.shape[1]))
    for k, row in enumerate(matrix):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if size > _INDEPENDENT * max(1.0, float(np.linalg.norm(row))):
            found[k], basis = True, np.vstack([basis, rest / size])
    return found
