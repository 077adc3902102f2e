"""How residuals count: standard deviations, weights or covariances of measured values, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array, real_array
from kanegen.errors import SolveError
from kanegen.solve.values import key_name, require_none, unknown


@dataclass(frozen=True, eq=False)
class Weighting:
    """Makes residuals of equal variance from differences of computed and measured values.

    ``known`` (n_t, n): which values count. ``factors`` (n_t, n), or with correlated values ``patterns``: times, columns
    and the inverse of the Cholesky factor of their covariance. ``absolute``: whether the variance is 1, not unknown.
    ``deviations`` (n_t, n): standard deviations, relative ones for weights.
    """

    known: NDArray[np.bool_]
    factors: Array
    absolute: bool
    patterns: tuple[tuple[NDArray[np.intp], NDArray[np.intp], Array], ...] | None = None

    @property
    def deviations(self) -> Array:
        """The standard deviations of the values, (n_t, n); NaN where a value is missing."""
        return np.where(self.known, 1.0 / np.where(self.known, self.factors, 1.0), np.nan)

    def rows(self, first: int, end: int) -> Weighting:
        """The weighting of the times from ``first`` to ``end`` - 1."""
        patterns = None
        if self.patterns is not None:
            inside = [((at >= first) & (at < end), at, columns, inverse) for at, columns, inverse in self.patterns]
            patterns = tuple((at[of] - first, columns, inverse) for of, at, columns, inverse in inside if of.any())
        return Weighting(self.known[first:end], self.factors[first:end], self.absolute, patterns)

    def of(self, differences: Array) -> Array:
        """The residuals (m, ...) of differences (n_t, n, ...)."""
        if self.patterns is None:
            extra = (1,) * (differences.ndim - 2)
            return np.asarray((differences * self.factors.reshape(*self.factors.shape, *extra))[self.known])
        parts = []
        for rows, columns, inverse in self.patterns:
            own = differences[rows[:, None], columns]
            parts.append(np.einsum("ij,tj...->ti...", inverse, own).reshape(-1, *differences.shape[2:]))
        return np.concatenate(parts) if parts else np.empty((0, *differences.shape[2:]))


def read_weighting(given: Any, columns: Sequence[tuple[str, str]], values: Array, what: str) -> Weighting:
    """The weighting of an experiment with ``sigma``, ``weights`` and ``covariance``. Raises `SolveError`.

    ``columns``: label and name of each; ``values`` (n_t, n).
    """
    named = {name: value for name in ("sigma", "weights", "covariance") if (value := getattr(given, name)) is not None}
    if len(named) > 1:
        raise SolveError(f"{' and '.join(named)} are given for {what}: give one of them")
    known = np.isfinite(values)
    if "covariance" in named:
        return _correlated(named["covariance"], columns, known, what)
    if "sigma" in named:
        sigma = _spread(named["sigma"], columns, values.shape, "sigma", what)
        _require_positive(sigma, "sigma", "positive numbers", what, zero=False)
        return Weighting(known, 1.0 / sigma, absolute=True)
    weights = _spread(named.get("weights", 1.0), columns, values.shape, "weights", what)
    _require_positive(weights, "weights", "numbers that are not negative", what, zero=True)
    return Weighting(known & (weights > 0.0), np.sqrt(weights), absolute=False)


def _require_positive(array: Array, argument: str, expected: str, what: str, zero: bool) -> None:
    wrong = ~np.isfinite(array) | (array < 0.0) | ((array == 0.0) & (not zero))
    if wrong.any():
        raise SolveError(f"{argument} of {what} contains {float(array[wrong][0])!r}; expected {expected}")


def _spread(given: Any, columns: Sequence[tuple[str, str]], shape: tuple[int, ...], argument: str, what: str) -> Array:
    """An array (n_t, n) from a number for all, or from numbers or arrays (n_t,) by name."""
    if not isinstance(given, Mapping):
        number = real_array(given, argument)
        if number.ndim:
            raise SolveError(f"{argument} has shape {number.shape}; expected a number, or a mapping from names")
        return np.full(shape, float(number))
    named = {key_name(key): real_array(value, f"{argument} of {key_name(key)}") for key, value in given.items()}
    known = tuple(dict.fromkeys(name for pair in columns for name in pair))
    require_none(
        [unknown(name, known, f"measured variable in {what} ({argument})") for name in named if name not in known]
    )
    spread = np.empty(shape)
    for k, (label, name) in enumerate(columns):
        value = named.get(label, named.get(name))
        if value is None:
            raise SolveError(f"{argument} has no value for {label}, which {what} contains")
        if value.shape not in ((), shape[:1]):
            raise SolveError(f"{argument} of {label} has shape {value.shape}; expected a number or {shape[:1]}")
        spread[:, k] = value
    return spread


def _correlated(given: Any, columns: Sequence[tuple[str, str]], known: NDArray[np.bool_], what: str) -> Weighting:
    matrix, n = real_array(given, "covariance"), len(columns)
    order = ", ".join(label for label, _ in columns)
    if matrix.shape != (n, n):
        raise SolveError(f"covariance of {what} has shape {matrix.shape}; expected {(n, n)}: {order}")
    symmetric = np.isfinite(matrix).all() and np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0)
    if not symmetric or np.linalg.eigvalsh(matrix)[0] <= 0.0:
        raise SolveError(f"covariance of {what} must be symmetric and positive definite")
    patterns = []
    for pattern in np.unique(known, axis=0):
        present = np.flatnonzero(pattern)
        if present.size:
            rows = np.flatnonzero((known == pattern).all(axis=1))
            factor = np.linalg.cholesky(matrix[np.ix_(present, present)])
            patterns.append((rows, present, np.linalg.inv(factor)))
    factors = np.broadcast_to(1.0 / np.sqrt(np.diag(matrix)), known.shape)
    return Weighting(known, factors, absolute=True, patterns=tuple(patterns))
