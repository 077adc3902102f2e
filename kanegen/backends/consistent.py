"""States that satisfy the constraints: what kg_consistent.h does in C, with the same guesses and tolerances."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codes import Status
from kanegen.errors import SolveError

Value = Callable[[str, Array, Array], Array]
"""The value of a function of the model, by its name, at a state (q, u)."""

_ITERATIONS: Final = 50
_HALVINGS: Final = 12
_ATTEMPTS: Final = 8
_EPSILON: Final = float(np.finfo(float).eps)
_RANK: Final = 1.5e-8
"""Rows of length 1 depend on each other if singular values are below this, as in kg_least_norm.h."""
_MASSLESS: Final = 1e-10
"""Pivots of a metric below this fraction of their diagonal element count as zero, ..."""
_FLOOR: Final = 1e-6
"""... and become this fraction of the mean diagonal element."""


def make_consistent(
    value: Value, levels: tuple[bool, bool], state: tuple[Array, Array], fixed: Array, tolerance: float
) -> tuple[int, int]:
    """Correct ``state`` = (q, u) in place so that it satisfies the constraints; returns the status and the corrections.

    Parameters
    ----------
    value
        Evaluates ``position_level``, ``velocity_level``, ``displacements`` and ``Q``.
    levels
        Whether the model has constraints on positions, and on speeds.
    fixed
        Flags (n_q + n_u,) of the components that do not change.
    tolerance
        Of a residual, relative to what it changes with relative changes of all coordinates or speeds.
    """
    corrections, n_q = 0, len(state[0])
    if levels[0]:
        level = _Level(value, state, 0, fixed[:n_q], tolerance)
        status = _assembled(level)
        corrections += level.corrections
        if status != Status.OK:
            return status, corrections
    if levels[1]:
        level = _Level(value, state, 1, fixed[n_q:], tolerance)
        status = _solved(level)
        return status, corrections + level.corrections
    return Status.OK, corrections


@dataclass(eq=False)
class _Level:
    """One level of the constraints while it is solved: positions (``part`` 0) or speeds (1)."""

    value: Value
    state: tuple[Array, Array]
    part: int
    fixed: Array
    tolerance: float
    corrections: int = 0
    rows: Array = field(init=False)
    factor: Array = field(init=False)
    directions: Array = field(init=False)

    @property
    def x(self) -> Array:
        """The coordinates or the speeds."""
        return self.state[self.part]

    @property
    def size(self) -> float:
        """The largest component of x; 1 if all are zero."""
        return float(np.abs(self.x).max(initial=0.0)) or 1.0

    @property
    def scales(self) -> Array:
        """The sum of magnitudes of every row."""
        return np.asarray(np.abs(self.rows[:, :-1]).sum(axis=1))

    @property
    def limits(self) -> Array:
        """What the residuals may be."""
        return max(self.tolerance, 8.0 * _EPSILON) * self.scales * self.size

    def evaluate(self) -> bool:
        """Evaluate the rows at x; returns whether all are satisfied."""
        self.rows = self.value(("position_level", "velocity_level")[self.part], *self.state)
        return bool((np.abs(self.rows[:, -1]) <= self.limits).all())

    def renew(self) -> None:
        """Evaluate the metric and the directions of corrections at the present state."""
        mass = self.value("Q", *self.state)
        n, m = len(mass), self.rows.shape[1] - 1
        self.factor = np.eye(m)
        self.factor[:n, :n] = _factored(mass)
        self.directions = self.value("displacements", *self.state) if self.part == 0 else np.eye(m)

    def correction(self) -> tuple[Array, bool]:
        """The correction of x, and whether it satisfies every row to first order."""
        kept, rows = (np.linalg.solve(self.factor, a.T).T for a in (self.directions[self.fixed], self.rows[:, :-1]))
        z = _least_norm(kept, rows, -self.rows[:, -1])
        met = np.abs(rows @ z + self.rows[:, -1]) <= 10.0 * self.limits
        change = self.directions @ np.linalg.solve(self.factor.T, z)
        return np.where(self.fixed, 0.0, change), bool(met.all())

    def move(self, change: Array) -> bool | None:
        """Move x by the change, halved until the residuals have values (a spline may end on the way) and shrink.

        Returns whether the rows are then satisfied; None if they do not shrink, and x is unchanged.
        """
        old, units, size, largest = self.x.copy(), self.scales, self.size, float(np.abs(change).max(initial=0.0))
        units = np.where(units > 0.0, units, 1.0)
        before = float(((self.rows[:, -1] / units) ** 2).sum())
        fraction = size / largest if largest > size else 1.0
        for _ in range(_HALVINGS):
            self.x[:] = old + fraction * change
            try:
                satisfied = self.evaluate()
            except SolveError:
                fraction *= 0.5
                continue
            if satisfied:
                return True
            if ((self.rows[:, -1] / units) ** 2).sum() <= (1.0 - 1e-4 * fraction) * before:
                return False
            fraction *= 0.5
        self.x[:] = old
        return None


def _solved(level: _Level) -> Status:
    """Newton's method on one level."""
    satisfied = level.evaluate()
    for iteration in range(_ITERATIONS):
        if satisfied:
            break
        if level.part == 0 or iteration == 0:  # Q and the directions depend on the coordinates only
            level.renew()
        change, met = level.correction()
        left = float(np.abs(change).max(initial=0.0)) / level.size
        moved = level.move(change)
        if moved is None:
            # Residuals with a large rounding error can stay above the tolerance, so the change of x is tested.
            return Status.OK if met and left <= 1e3 * _EPSILON else Status.INCONSISTENT
        satisfied = moved
        level.corrections += 1
    return Status.OK if satisfied else Status.INCONSISTENT


def _assembled(level: _Level) -> Status:
    """Newton's method from the guess, then from guesses at increasing distances, since a guess can be singular."""
    guess, random, spread = level.x.copy(), 20031, 0.01 * level.size
    status = _solved(level)
    if status == Status.OK:
        return status
    first = level.x.copy()
    for _ in range(1, _ATTEMPTS):
        for i in range(len(guess)):
            random = (random * 1103515245 + 12345) & 0x7FFFFFFF
            level.x[i] = guess[i] + (0.0 if level.fixed[i] else spread * (random / 2.0**30 - 1.0))
        spread *= 2.0
        with suppress(SolveError):  # a guess beyond the end of a spline
            if _solved(level) == Status.OK:
                return Status.OK
    level.x[:] = first
    return status


def _factored(mass: Array) -> Array:
    """The Cholesky factor of a metric; directions without mass change most easily, as in kg_metric_factor()."""
    n, factor, trace = len(mass), np.zeros_like(mass), float(np.trace(mass))
    for j in range(n):
        pivot = mass[j, j] - factor[j, :j] @ factor[j, :j]
        if not pivot > _MASSLESS * mass[j, j]:
            pivot = _FLOOR * trace / n if trace > 0.0 else 1.0
        factor[j, j] = np.sqrt(pivot)
        factor[j + 1 :, j] = (mass[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    return factor


def _least_norm(kept: Array, rows: Array, b: Array) -> Array:
    """The z of least norm with ``kept @ z = 0`` and ``rows @ z = b``, as far as that is possible."""
    free = np.eye(rows.shape[1])
    if len(kept):
        _, values, directions = np.linalg.svd(_of_length_one(kept)[0])
        free = directions[int((values > _RANK).sum()) :].T
    scaled, lengths = _of_length_one(rows)
    left, values, right = np.linalg.svd(scaled @ free, full_matrices=False)
    rank = int((values > _RANK).sum())
    return np.asarray(free @ (right[:rank].T @ ((left[:, :rank].T @ (b / lengths)) / values[:rank])))


def _of_length_one(rows: Array) -> tuple[Array, Array]:
    """The rows divided by their lengths, and these; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1)
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    return rows / lengths[:, None], lengths
