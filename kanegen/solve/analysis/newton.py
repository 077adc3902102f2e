"""Roots of the equations of a steady state: damped Newton's method, least squares, and the root nearest to a start.

Newton's method with corrections of least norm is damped by the natural monotonicity test, which does not depend on the
units of the equations (P. Deuflhard, Newton Methods for Nonlinear Problems, Springer 2004, section 3.3). Where it
fails, a trust-region method for least squares (``scipy.optimize.least_squares``) approaches a root. Where roots are not
isolated, the one nearest to the start in the coordinates is found by moving in the null space of the Jacobian and
correcting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.analysis.balance import Balance

_EVALUATIONS = 200
_POLISHING = 25
_STEPS = 50
_LEAST_DAMPING = 1e-4
_NEAREST = 100
_NO_DERIVATIVE = 1e-6
"""Singular values below this fraction of the largest are zero in matrices of differences."""
_DEPENDENT = 1e-9
"""The same for compiled derivatives."""
_EPSILON = 4.0 * np.finfo(float).eps
"""Corrections below this fraction of the unknowns are rounding errors."""
_FAILED = 1e12
"""Residual at a trial point where the equations cannot be evaluated, so that the step is rejected."""
_ROUNDING = 1e-12
"""Movements below this fraction of the coordinates end the search for the nearest root."""


@dataclass(frozen=True, eq=False)
class Root:
    """X with F(X), (m,), the largest residuals of a root, ``allowed`` (m,), and the number of evaluations of F.

    ``directions`` (n, k) are the independent changes of the unknowns that leave F zero to first order, ``inverse``
    (n, m) is the generalized inverse of the Jacobian, and ``scale`` (n,) are the units of the unknowns.
    """

    X: Array
    F: Array
    allowed: Array
    directions: Array
    inverse: Array
    scale: Array
    evaluations: int

    @property
    def step(self) -> Array:
        """The correction of least norm of the unknowns (n,)."""
        return np.asarray(-self.inverse @ self.F)

    @property
    def error(self) -> float:
        """The largest residual relative to the allowed one."""
        return float((np.abs(self.F) / self.allowed).max(initial=0.0))

    @property
    def converged(self) -> bool:
        """Whether all residuals are small enough."""
        return self.error <= 1.0


def solved(balance: Balance, X: Array, tolerance: float) -> Root:
    """A root near the start X, or the best approximation."""
    scale = _scales(balance, X)
    root = _damped(balance, evaluated(balance, X, tolerance, scale=scale), tolerance)
    if not root.converged:
        approximation, count = _approached(balance, X, scale)
        root = evaluated(balance, approximation, tolerance, root.evaluations + count + 1, scale)
    return _polished(balance, root, scale, tolerance)


def _damped(balance: Balance, root: Root, tolerance: float) -> Root:
    """The end of the damped Newton method."""
    damping = 1.0
    for _ in range(_STEPS):
        length = float(np.linalg.norm(root.step / root.scale))
        if root.converged or not np.isfinite(length):
            break
        new, count = None, root.evaluations
        while new is None and damping >= _LEAST_DAMPING:
            X = root.X.copy()
            X[list(balance.free)] += damping * root.step
            count += 1
            try:
                next_step = root.inverse @ balance.values(X)
                if np.linalg.norm(next_step / root.scale) <= (1.0 - damping / 4.0) * length:
                    new = evaluated(balance, X, tolerance, count, root.scale)
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
        if moved <= _ROUNDING * max(1.0, float(np.abs(best.X[entries]).max())):
            break
        X = best.X.copy()
        X[list(balance.free)] += step
        scale = _scales(balance, X)
        new = _polished(balance, evaluated(balance, X, tolerance, best.evaluations + 1, scale), scale, tolerance)
        if new.converged and np.linalg.norm((start - new.X)[entries]) < np.linalg.norm(away):
            best, fraction = new, min(1.0, 2.0 * fraction)
        elif fraction > _LEAST_DAMPING:
            fraction /= 2.0  # the family can end before the step does
        else:
            break
    return best


def _scales(balance: Balance, X: Array) -> Array:
    """The units of the unknowns: coordinates and speeds in their own, inputs and forces by their accelerations."""
    scale, n_y = np.ones(len(balance.free)), len(X) - sum(len(part) for part in balance.parts(X)[3:])
    largest = np.abs(balance.jacobian(X)).max(axis=0, initial=0.0)
    for k, entry in enumerate(balance.free):
        if entry >= n_y and largest[k] > 0.0:
            scale[k] = 1.0 / largest[k]
    return scale


def _approached(balance: Balance, X: Array, scale: Array) -> tuple[Array, int]:
    """The end of the trust-region method, which minimizes the sum of squares of F, and its evaluations of F."""
    from scipy.optimize import least_squares

    weights = 1.0 / np.maximum(1.0, np.abs(balance.jacobian(X) * scale).max(axis=1, initial=0.0))

    def at(y: Array) -> Array:
        moved = X.copy()
        moved[list(balance.free)] += scale * y
        return moved

    def values(y: Array) -> Array:
        try:
            scaled: Array = weights * balance.values(at(y))
            return scaled
        except SolveError:  # outside the domain of an expression, or at a singular position
            return np.full(len(weights), _FAILED)

    def slopes(y: Array) -> Array:
        scaled: Array = weights[:, None] * balance.jacobian(at(y)) * scale
        return scaled

    start = np.zeros(len(balance.free))
    if not len(start) or not len(weights):
        return X, 0
    result = least_squares(values, start, slopes, xtol=1e-10, ftol=1e-12, gtol=1e-12, max_nfev=_EVALUATIONS)
    return at(result.x), int(result.nfev)


def _polished(balance: Balance, root: Root, scale: Array, tolerance: float) -> Root:
    """The result of Newton's method with corrections of least norm, until the residuals no longer decrease."""
    for _ in range(_POLISHING):
        size = np.maximum(1.0, np.abs(root.X[list(balance.free)] / scale))
        if (np.abs(root.step / scale) <= _EPSILON * size).all():
            break
        X = root.X.copy()
        X[list(balance.free)] += root.step
        try:
            new = evaluated(balance, X, tolerance, root.evaluations + 1, scale)
        except SolveError:  # outside the domain of an expression, or at a singular position
            break
        if not new.error < root.error:
            break
        root = new
    return root


def evaluated(balance: Balance, X: Array, tolerance: float = 1.0, count: int = 1, scale: Array | None = None) -> Root:
    """F and its Jacobian at X, with the correction of Newton's method and the null space.

    ``count`` is the number of evaluations so far, ``scale`` (n,) the units of the unknowns (None: those at X).

    A residual may be ``tolerance`` times the change of its equation when all unknowns change by their own size (at
    least 1 in their units), or ``tolerance`` if that is larger.
    """
    scale = _scales(balance, X) if scale is None else scale
    F, J = balance.values(X), balance.jacobian(X) * scale
    allowed = tolerance * np.maximum(1.0, np.abs(J) @ np.maximum(1.0, np.abs(X[list(balance.free)] / scale)))
    if not J.size:
        n = len(balance.free)
        return Root(X, F, allowed, np.diag(scale), np.zeros((n, len(F))), scale, count)
    sizes = np.linalg.norm(J, axis=1)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    U, values, V = np.linalg.svd(J / sizes[:, None])
    rank = int((values > (_DEPENDENT if balance.is_compiled else _NO_DERIVATIVE) * values[0]).sum())
    inverse = scale[:, None] * (V[:rank].T / values[:rank]) @ (U[:, :rank].T / sizes)
    return Root(X, F, allowed, scale[:, None] * V[rank:].T, inverse, scale, count)
