"""Starts of the iterations that satisfy the constraints of the model, and the rows of constraints that remain.

Conditions at the start or at the end can determine what the constraints of the model determine, too. Rows of
constraints that depend on unknowns no more are left out, if the conditions satisfy them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.layout import Layout, Places
from kanegen.control.points import MESH
from kanegen.control.program import NonlinearProgram
from kanegen.control.transcription import transcribe
from kanegen.control.variables import Variables
from kanegen.errors import SolveError
from kanegen.graph.ranks import independent_rows

_ITERATIONS = 30
_CONSISTENT = 1e-8
"""Largest distance from the constraints, in scaled states."""

_VANISHING = 1e-9
"""Derivatives of a constraint below this fraction of those at other points vanish."""

_MOVED = ("the guess was moved onto the constraints of the model",)


@dataclass(frozen=True, eq=False)
class Consistency:
    """``variables`` whose start satisfies the constraints; ``kept`` (N + 1, n): the rows of constraints that remain, or
    None without constraints. ``slopes``: derivatives (n, n_y) of the rows at the start and at the end with respect to
    the states there. ``notes``: sentences about what was changed."""

    layout: Layout
    variables: Variables
    kept: Any = None
    notes: tuple[str, ...] = ()
    slopes: tuple[Array, Array] | None = None


def made_consistent(layout: Layout, code: PointCode, variables: Variables) -> Consistency:
    """Move the states of the mesh points onto the constraints. Raises `SolveError` for contradictory conditions."""
    if code.kind(MESH) is None:
        return Consistency(layout, variables)
    moved = _Projection(layout, code, variables)
    notes = moved.project()
    start = np.clip(moved.x * variables.scale, variables.low, variables.high)
    kept = moved.kept()
    first, last = (moved.slopes()[k] / variables.scale[layout.mesh_y[k]] for k in (0, -1))
    return Consistency(layout, moved.pinned(kept, variables._replace(start=start)), kept, notes, (first, last))


def without_repeated_rows(
    before: Consistency, after: Consistency, shared: tuple[Places, Places]
) -> tuple[Consistency, Consistency]:
    """Two motions without rows of constraints at their joint that repeat others.

    ``shared``: the places of the states that go on, at the end of the first motion and at the start of the second.
    """
    rows, ends = [], []
    for each, k in ((before, -1), (after, 0)):
        place, variables = each.layout.mesh_y[k], each.variables
        weights = variables.scale[place] * (variables.low < variables.high)[place]
        ends.append(place)
        rows.append(np.empty((0, place.size)) if each.slopes is None else each.slopes[k] * weights)
    columns = ends[0].size + np.arange(ends[1].size)
    for first, second in zip(*shared, strict=True):
        columns[np.flatnonzero(ends[1] == second)] = np.flatnonzero(ends[0] == first)
    moved = np.zeros((len(rows[1]), ends[0].size + ends[1].size))
    moved[:, columns] = rows[1]
    used = np.zeros(len(rows[0]), dtype=bool) if before.kept is None else before.kept[-1]
    stacked = np.vstack([np.pad(rows[0] * used[:, None], ((0, 0), (0, ends[1].size))), moved])
    own, other = np.split(_are_independent(stacked), [len(rows[0])])
    if after is before:  # a periodic motion
        found = _with_kept(_with_kept(before, -1, own), 0, other)
        return found, found
    return _with_kept(before, -1, own), _with_kept(after, 0, other)


def _are_independent(rows: Array) -> Array:
    """Which rows are independent of the rows before them."""
    found = np.zeros(len(rows), dtype=bool)
    found[list(independent_rows(rows))] = True
    return found


def _with_kept(consistent: Consistency, k: int, independent: Array) -> Consistency:
    if consistent.kept is None:
        return consistent
    kept = consistent.kept.copy()
    kept[k] &= independent
    return replace(consistent, kept=kept)


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

    def distances(self, slopes: Array) -> Array:
        """The residuals divided by the lengths of their derivatives: distances in scaled states, (N + 1, n)."""
        return self.residuals() / _lengths(slopes)

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
        for k in range(_ITERATIONS):
            slopes = self.slopes()
            distances = self.distances(slopes)
            if np.abs(distances).max() < (_CONSISTENT if k == 0 else _CONSISTENT / 100):
                return () if k == 0 else _MOVED
            unit = slopes / _lengths(slopes)[:, :, None] * self.free[:, None, :]
            steps = -np.einsum("kij,kj->ki", np.linalg.pinv(unit, rcond=1e-9), distances)
            self.x[self.layout.mesh_y] += np.clip(steps, -0.5, 0.5)
        return _MOVED

    def kept(self) -> Any:
        """Which rows remain, (N + 1, n); at the ends those that unknown states can change. Raises `SolveError`."""
        kept, slopes = np.ones((len(self.layout.mesh), self.n_rows), dtype=bool), self.slopes()
        distances = self.distances(slopes)
        for k, name in ((0, "start"), (-1, "end")):
            kept[k] = _are_independent(slopes[k] * self.free[k])
            wrong = np.flatnonzero(~kept[k] & (np.abs(distances[k]) > _CONSISTENT * 100))
            if wrong.size and not slopes[k][wrong].any(axis=1).all():
                rows = ", ".join(str(row + 1) for row in wrong)
                raise SolveError(
                    f"at the guess of the state at the {name}, constraints {rows} do not depend on the state, to first "
                    f"order: give a guess= with other coordinates, or their values in {name}="
                )
            if wrong.size:
                residuals = self.residuals()[k]
                rows = ", ".join(f"{row + 1}: residual {residuals[row]:.3g}" for row in wrong)
                raise SolveError(
                    f"the conditions at the {name} contradict the constraints of the model (constraints {rows}): give "
                    f"values in {name}= that satisfy them, or leave out those that the constraints determine"
                )
        return kept

    def pinned(self, kept: Array, variables: Variables) -> Variables:
        """The variables with those fixed that a row at an end determines whose derivatives vanish, as x^2 = 0 does."""
        low, high, pattern = variables.low.copy(), variables.high.copy(), self.program.jacobian_pattern
        for k in (0, len(kept) - 1):
            slopes = self.slopes()
            still = np.abs(slopes[k] * self.free[k]).max(axis=1) < _VANISHING * _lengths(slopes).max(axis=0)
            for row in np.flatnonzero(~kept[k] & still):
                places = pattern.columns[pattern.rows == self.range.start + k * self.n_rows + row]
                own = np.intersect1d(places, self.layout.mesh_y[k][self.free[k]])
                low[own] = high[own] = variables.start[own]
        return variables._replace(low=low, high=high)


def _lengths(slopes: Array) -> Array:
    """The lengths (N + 1, n) of derivatives; where they vanish, those at other points."""
    lengths = np.linalg.norm(slopes, axis=2)
    usual = lengths.max(axis=0)
    usual[usual == 0.0] = 1.0
    return np.asarray(np.where(lengths > _VANISHING * usual, lengths, usual))
