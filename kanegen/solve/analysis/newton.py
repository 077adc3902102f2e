"""Roots of the equations of a steady state: damped Newton's method, least squares, and the root nearest to a start.

Newton's method with corrections of least norm is damped by the natural monotonicity test, which does not depend on the
units of the equations (P. Deuflhard, Newton Methods for Nonlinear Problems, Springer 2004, section 3.3); those of the
unknowns are chosen so that rows and columns of the Jacobian are comparable. Where it fails, a trust-region method for
least squares (``scipy.optimize.least_squares``) approaches a root. A root is corrected until no unknown gets a smaller
correction: the accuracy is that of rounding. Where roots are not isolated, the one nearest to the start in the
coordinates is found by moving in the null space of the Jacobian and correcting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.analysis.balance import Balance
from kanegen.solve.analysis.sizes import natural_sizes, weights

_EVALUATIONS = 200
_POLISHING = 25
_STEPS = 50
_LEAST_DAMPING = 1e-4
_NEAREST = 100
_NO_DERIVATIVE = 1e-6
"""Singular values below this fraction of the largest are zero in matrices of differences."""
_DEPENDENT = 1e-9
"""The same for compiled derivatives."""
_EPSILON = float(np.finfo(float).eps)
_FINAL = 4.0 * _EPSILON
"""Corrections below this fraction of an unknown are rounding errors."""
_IMPROVED = 0.25
"""A correction below this fraction of the smallest one so far is still more accurate."""
_FAILED = 1e12
"""Residual at a trial point where the equations cannot be evaluated, so that the step is rejected."""
_ROUNDING = 1e-12
"""Movements below this fraction of the coordinates end the search for the nearest root."""


@dataclass(frozen=True, eq=False)
class Root:
    """X with F(X), (m,), the largest residuals of a root, ``allowed`` (m,), and the number of evaluations of F.

    ``directions`` (n, k) are the independent changes of the unknowns that leave F zero to first order, ``inverse``
    (n, m) is the generalized inverse of the Jacobian, ``rows`` (m,) are weights of the equations and ``scale`` (n,)
    units of the unknowns with which its entries are comparable. ``sizes`` (n,) are the sizes of the unknowns, from
    which ``allowed`` follows, ``reach`` (n,) those at the start of the search, and ``rounding`` (n,) the rounding
    errors of solutions of linear equations.
    """

    X: Array
    F: Array
    allowed: Array
    directions: Array
    inverse: Array
    rows: Array
    scale: Array
    sizes: Array
    reach: Array
    rounding: Array
    evaluations: int

    @property
    def step(self) -> Array:
        """The correction of least norm of the unknowns (n,)."""
        return np.asarray(-self.inverse @ self.F)

    @property
    def error(self) -> float:
        """The largest residual relative to the allowed one."""
        with np.errstate(divide="ignore", over="ignore"):
            ratios = np.divide(np.abs(self.F), self.allowed, out=np.zeros_like(self.F), where=self.F != 0.0)
        return float(ratios.max(initial=0.0))

    @property
    def converged(self) -> bool:
        """Whether all residuals are small enough."""
        return self.error <= 1.0


def solved(balance: Balance, X: Array, tolerance: float) -> Root:
    """A root near the start X, or the best approximation."""
    start = evaluated(balance, X, tolerance)
    root = _damped(balance, start, tolerance)
    if not root.converged:
        approximation, count = _approached(balance, start)
        root = evaluated(balance, approximation, tolerance, root.evaluations + count + 1, start)
        root = _damped(balance, root, tolerance)
    return _polished(balance, root, tolerance) if root.converged else root


def _damped(balance: Balance, root: Root, tolerance: float) -> Root:
    """The end of the damped Newton method."""
    damping, metric = 1.0, root.scale
    for _ in range(_STEPS):
        length = float(np.linalg.norm(root.step / metric))
        if root.converged or not np.isfinite(length):
            break
        new, count = None, root.evaluations
        while new is None and damping >= _LEAST_DAMPING:
            X = root.X.copy()
            X[list(balance.free)] += damping * root.step
            count += 1
            try:
                next_step = root.inverse @ balance.values(X)
                if np.linalg.norm(next_step / metric) <= (1.0 - damping / 4.0) * length:
                    new = evaluated(balance, X, tolerance, count, root)
            except SolveError:  # outside the domain of an expression, or at a singular position
                pass
            damping *= 1.0 if new else 0.5
        if new is None:
            break
        root, damping = new, min(1.0, 2.0 * damping)
    return root


def nearest(balance: Balance, root: Root, start: Array, tolerance: float) -> Root:
    """The root nearest to the coordinates of ``start``, along the roots that are connected with ``root``."""
    n_q = len(balance.description.coordinates)
    of_q = [k for k, entry in enumerate(balance.free) if entry < n_q]
    if not of_q or not root.directions.shape[1]:
        return root
    entries = np.array(balance.free)[of_q]
    best, fraction = root, 1.0
    for _ in range(_NEAREST):
        away, directions = (start - best.X)[entries], best.directions
        if not directions.shape[1]:
            break
        step = fraction * directions @ np.linalg.lstsq(directions[of_q], away, rcond=_DEPENDENT)[0]
        moved = np.abs(step[of_q]).max()
        if moved <= _ROUNDING * max(np.abs(best.X[entries]).max(), np.abs(start[entries]).max()):
            break
        X = best.X.copy()
        X[list(balance.free)] += step
        new = _polished(balance, evaluated(balance, X, tolerance, best.evaluations + 1, best), tolerance)
        if new.converged and np.linalg.norm((start - new.X)[entries]) < np.linalg.norm(away):
            best, fraction = new, min(1.0, 2.0 * fraction)
        elif fraction > _LEAST_DAMPING:
            fraction /= 2.0  # the family can end before the step does
        else:
            break
    return best


def _approached(balance: Balance, start: Root) -> tuple[Array, int]:
    """The end of the trust-region method, which minimizes the sum of squares of F, and its evaluations of F."""
    from scipy.optimize import least_squares

    unit = float((start.sizes / start.scale).max(initial=0.0)) or 1.0
    scale, rows = unit * start.scale, start.rows / unit

    def at(y: Array) -> Array:
        moved = start.X.copy()
        moved[list(balance.free)] += scale * y
        return moved

    def values(y: Array) -> Array:
        try:
            scaled: Array = rows * balance.values(at(y))
            return scaled
        except SolveError:  # outside the domain of an expression, or at a singular position
            return np.full(len(rows), _FAILED)

    def slopes(y: Array) -> Array:
        scaled: Array = rows[:, None] * balance.jacobian(at(y)) * scale
        return scaled

    y = np.zeros(len(balance.free))
    if not len(y) or not len(rows):
        return start.X, 0
    result = least_squares(values, y, slopes, xtol=1e-10, ftol=1e-12, gtol=1e-12, max_nfev=_EVALUATIONS)
    return at(result.x), int(result.nfev)


def _polished(balance: Balance, root: Root, tolerance: float) -> Root:
    """The result of Newton's method with corrections of least norm, until no unknown gets a smaller correction.

    The corrections of different unknowns become rounding errors at different sizes; so each is compared with its own.
    """
    best, least = root, np.abs(root.step)
    for _ in range(_POLISHING):
        size = np.maximum(np.abs(root.X[list(balance.free)]), root.rounding)
        if (np.abs(root.step) <= _FINAL * size).all():
            break
        X = root.X.copy()
        X[list(balance.free)] += root.step
        try:
            new = evaluated(balance, X, tolerance, root.evaluations + 1, root)
            if not new.converged:
                # Rounding errors of unknowns that were exactly zero can violate equations that have no other terms.
                kept = np.where(root.X == 0.0, 0.0, X)
                new = evaluated(balance, kept, tolerance, new.evaluations + 1, root)
        except SolveError:  # outside the domain of an expression, or at a singular position
            break
        step = np.abs(new.step)
        if not new.converged:
            break
        if not (step < _IMPROVED * least).any():
            best = new if np.linalg.norm(step / new.scale) < np.linalg.norm(best.step / best.scale) else best
            break
        best, root, least = new, new, np.minimum(step, least)
    return best


def evaluated(balance: Balance, X: Array, tolerance: float = 1.0, count: int = 1, earlier: Root | None = None) -> Root:
    """F and its Jacobian at X, with the correction of Newton's method and the null space.

    ``count`` is the number of evaluations so far, ``earlier`` is a point of the same search.

    A residual may be ``tolerance`` times the sum of the absolute terms of its equation and of its changes when each
    unknown changes by its own size. The size of an unknown is the largest of its value, its value at the start, and the
    change that changes one of the equations by as much as its terms.
    """
    own, errors = np.abs(X[list(balance.free)]), np.zeros(len(X))
    reach = own if earlier is None else earlier.reach
    if earlier is not None:
        # Unknowns that were zero can be rounding errors now, and so can derivatives that are proportional to them.
        errors[list(balance.free)] = np.where(reach == 0.0, earlier.rounding, 0.0)
    F, J = balance.values(X), balance.jacobian(X, errors)
    row_terms = balance.terms(X, F)
    sizes = np.maximum(np.maximum(own, reach), natural_sizes(J, row_terms))
    rows, scale, rounding = weights(J, row_terms, sizes)
    allowed = tolerance * (row_terms + np.abs(J) @ sizes) + np.abs(J) @ rounding
    if not J.size:
        n = len(balance.free)
        return Root(X, F, allowed, np.diag(scale), np.zeros((n, len(F))), rows, scale, sizes, reach, rounding, count)
    U, values, V = np.linalg.svd(rows[:, None] * J * scale)
    rank = int((values > (_DEPENDENT if balance.is_compiled else _NO_DERIVATIVE) * values[0]).sum())
    inverse = (V[:rank].T / values[:rank]) @ U[:, :rank].T
    # Unknowns that an equation does not determine are not changed by it, not even by rounding errors.
    inverse = np.where(np.abs(inverse) > 8.0 * _EPSILON / values[rank - 1], inverse, 0.0)
    inverse = scale[:, None] * inverse * rows
    return Root(X, F, allowed, scale[:, None] * V[rank:].T, inverse, rows, scale, sizes, reach, rounding, count)
