"""Piecewise polynomials of time: what tables and splines of inputs become."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.errors import SolveError

Array = NDArray[np.float64]

_JUMP = 1e-9
"""Jumps below this fraction of the magnitude are rounding of whoever made the spline."""


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Polynomials in ``t - breakpoints[j]`` between ``breakpoints`` (n + 1,), s.

    ``coefficients`` (k, n, m), highest power first, for m values: ``x`` and ``c`` of
    ``scipy.interpolate.PPoly``.
    """

    breakpoints: Array
    coefficients: Array

    @property
    def span(self) -> tuple[float, float]:
        """First and last time."""
        return float(self.breakpoints[0]), float(self.breakpoints[-1])

    def __call__(self, t: float) -> Array:
        """Values (m,) at ``t``. Raises `SolveError` beyond the ends, where nothing is known."""
        first, last = self.span
        slack = _JUMP * (last - first)
        if not first - slack <= t <= last + slack:
            raise SolveError(f"an input is given for t from {first!r} to {last!r} s, and is needed at t = {t!r}")
        piece = min(max(int(np.searchsorted(self.breakpoints, t, side="right")) - 1, 0), self.breakpoints.size - 2)
        x = t - self.breakpoints[piece]
        value = np.zeros(self.coefficients.shape[2])
        for row in self.coefficients[:, piece]:
            value = value * x + row
        return value

    def derivative(self, what: str) -> Piecewise:
        """The time derivative; ``what`` names the function in the error.

        Raises `SolveError` where the values jump: the derivative would hold an impulse.
        """
        sizes = np.diff(self.breakpoints)[:-1]
        end = np.zeros(self.coefficients[0, :-1].shape)
        for row in self.coefficients[:, :-1]:
            end = end * sizes[:, None] + row
        jumps = np.abs(self.coefficients[-1, 1:] - end)
        scale = np.abs(self.coefficients[-1]).max(initial=0.0)
        if jumps.max(initial=0.0) > _JUMP * scale:
            place = int(np.argmax(jumps.max(axis=1)))
            raise SolveError(
                f"{what} jumps by {jumps[place].max():.6g} at t = {float(self.breakpoints[place + 1])!r} s "
                "and has no "
                "derivative there: give a smoother spline, or give the derivative as well"
            )
        degree = self.coefficients.shape[0] - 1
        if degree == 0:
            return Piecewise(self.breakpoints, np.zeros_like(self.coefficients))
        powers = np.arange(degree, 0, -1.0)
        return Piecewise(self.breakpoints, self.coefficients[:-1] * powers[:, None, None])


def table(given: Any, what: str) -> Piecewise:
    """Linear interpolation of ``(times, values)``: (n,) and (n,) or (n, m), n >= 2, times increasing.

    Raises `SolveError` when they are anything else.
    """
    if len(given) != 2:
        raise SolveError(f"{what} is a tuple of {len(given)}; expected a table (times, values)")
    times, values = (
        _real(item, f"the {name} of {what}") for item, name in zip(given, ("times", "values"), strict=True)
    )
    if times.ndim != 1 or times.size < 2 or values.ndim not in (1, 2) or values.shape[0] != times.size:
        raise SolveError(
            f"{what} has times {times.shape} and values {values.shape}; expected (n,) and (n,) or (n, n_r), n >= 2"
        )
    _check_breakpoints(times, what)
    values = values.reshape(times.size, -1)
    slopes = np.diff(values, axis=0) / np.diff(times)[:, None]
    return Piecewise(times, np.stack([slopes, values[:-1]]))


def from_scipy(given: Any, what: str) -> Piecewise | None:
    """A ``PPoly`` (``CubicSpline`` ...), ``BPoly`` or ``BSpline`` as such a record, None for other objects."""
    # Whoever made such an object has imported the module; importing it here would cost others half a second.
    module: Any = sys.modules.get("scipy.interpolate")
    if module is None:
        return None
    if isinstance(given, module.BSpline):
        x = np.unique(given.t[given.k : len(given.t) - given.k])
        # Taylor coefficients at the left knots: PPoly.from_spline takes one value at a time only.
        c = np.stack([given(x[:-1], power) / factorial(power) for power in range(given.k, -1, -1)])
    elif isinstance(given, module.BPoly):
        given = module.PPoly.from_bernstein_basis(given)
        x, c = given.x, given.c
    elif isinstance(given, module.PPoly):
        x, c = given.x, given.c
    else:
        return None
    breakpoints, coefficients = (
        _real(x, f"the breakpoints of {what}"),
        _real(c, f"the coefficients of {what}"),
    )
    if coefficients.ndim > 3:
        raise SolveError(f"{what} is a spline of values of shape {coefficients.shape[2:]}; expected () or (n_r,)")
    _check_breakpoints(breakpoints, what)
    return Piecewise(breakpoints, coefficients.reshape(*coefficients.shape[:2], -1))


def joined(parts: Sequence[Piecewise | float], names: Sequence[str]) -> Piecewise:
    """One piecewise polynomial of all values, on the times all ``parts`` (of one value each, or constant)
    cover.

    Raises `SolveError` when they have no time in common.
    """
    pieces = [part for part in parts if isinstance(part, Piecewise)]
    first, last = max(part.span[0] for part in pieces), min(part.span[1] for part in pieces)
    if not first < last:
        spans = [
            f"{name} from {part.span[0]!r} to {part.span[1]!r}"
            for name, part in zip(names, parts, strict=True)
            if isinstance(part, Piecewise)
        ]
        raise SolveError(f"the inputs have no time in common: {', '.join(spans)} s")
    breakpoints = np.unique(np.concatenate([part.breakpoints for part in pieces]))
    breakpoints = breakpoints[(breakpoints >= first) & (breakpoints <= last)]
    degree = max(part.coefficients.shape[0] for part in pieces)
    coefficients = np.zeros((degree, breakpoints.size - 1, len(parts)))
    for column, part in enumerate(parts):
        if isinstance(part, Piecewise):
            rows = _on(part, breakpoints)
            coefficients[degree - rows.shape[0] :, :, column] = rows
        else:
            coefficients[-1, :, column] = part
    return Piecewise(breakpoints, coefficients)


def _on(part: Piecewise, breakpoints: Array) -> Array:
    """Coefficients (k, n) of a single value on finer breakpoints: Taylor shift by synthetic division."""
    pieces = np.searchsorted(part.breakpoints, breakpoints[:-1], side="right") - 1
    shift = breakpoints[:-1] - part.breakpoints[pieces]
    rows = part.coefficients[:, pieces, 0].copy()
    for last in range(rows.shape[0] - 1, 0, -1):
        for row in range(1, last + 1):
            rows[row] += shift * rows[row - 1]
    return rows


def _real(value: Any, what: str) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise SolveError(f"{what} cannot be read as an array: {error}") from error
    if array.dtype.kind not in "fiu":
        raise SolveError(f"{what} hold {array.dtype.name}; expected real numbers")
    if not np.isfinite(array).all():
        raise SolveError(f"{what} hold NaN or infinity; every entry must be finite")
    return array.astype(np.float64)


def _check_breakpoints(times: Array, what: str) -> None:
    if not (np.diff(times) > 0.0).all():
        raise SolveError(f"the times of {what} are not strictly increasing")
