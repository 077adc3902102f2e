"""Tables and splines as piecewise polynomials (``scipy.interpolate.PPoly``), whose coefficients ``c`` have the shape
(k, n, m), for m values. ``scipy.interpolate`` is imported only where it is needed, because the import takes 0.25 s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError

_JUMP = 1e-9
"""Jumps below this fraction of the magnitude are rounding errors of the spline's coefficients."""


def is_polynomial(value: Any) -> bool:
    """Whether ``value`` is a ``PPoly``."""
    module: Any = sys.modules.get("scipy.interpolate")
    return module is not None and isinstance(value, module.PPoly)


def value_at(polynomial: Any, t: float) -> Array:
    """Values (m,) at ``t``. Raises `SolveError` outside the interval on which the polynomial is defined."""
    first, last = _span(polynomial)
    slack = _JUMP * (last - first)
    if not first - slack <= t <= last + slack:
        raise SolveError(f"an input is given for t from {first!r} to {last!r} s, but is needed at t = {t!r} s")
    values: Array = polynomial(t, extrapolate=True)
    return values


def is_continuous(polynomial: Any) -> bool:
    """Whether the values of a polynomial have no jumps."""
    return not _jumps(polynomial).any()


def _jumps(polynomial: Any) -> Array:
    """The jumps of the values between the pieces, (n - 1, m); zero for those that are rounding errors."""
    ends = np.polyval(polynomial.c[:, :-1], np.diff(polynomial.x)[:-1, None])
    jumps: Array = np.abs(polynomial.c[-1, 1:] - ends)
    return np.where(jumps > _JUMP * np.abs(polynomial.c[-1]).max(initial=0.0), jumps, 0.0)


def derivative(polynomial: Any, what: str) -> Any:
    """The time derivative; ``what`` names the function in the error.

    Raises `SolveError` if the values jump, because the derivative would contain an impulse.
    """
    jumps = _jumps(polynomial)
    if jumps.any():
        place = int(np.argmax(jumps.max(axis=1)))
        raise SolveError(
            f"{what} jumps by {jumps[place].max():.6g} at t = {float(polynomial.x[place + 1])!r} s and has no "
            "derivative there: give a smoother spline, or give the derivative as well"
        )
    return polynomial.derivative()


def table(given: Any, what: str) -> Any:
    """Linear interpolation of ``(times, values)``: (n,) and (n,) or (n, m), n >= 2, times increasing.

    Raises `SolveError` for anything else.
    """
    if len(given) != 2:
        raise SolveError(f"{what} is a tuple of {len(given)}; expected a table (times, values)")
    times, values = _real(given[0], f"the times of {what}"), _real(given[1], f"the values of {what}")
    if times.ndim != 1 or times.size < 2 or values.ndim not in (1, 2) or values.shape[0] != times.size:
        raise SolveError(
            f"{what} has times {times.shape} and values {values.shape}; expected (n,) and (n,) or (n, n_r), n >= 2"
        )
    values = values.reshape(times.size, -1)
    with np.errstate(all="ignore"):  # the times are checked next
        slopes = np.diff(values, axis=0) / np.diff(times)[:, None]
    return _polynomial(np.stack([slopes, values[:-1]]), times, what)


def from_scipy(given: Any, what: str) -> Any:
    """A ``PPoly`` (``CubicSpline`` ...), ``BPoly`` or ``BSpline`` as a ``PPoly``, None for other objects."""
    # If the module is not imported, no such object exists.
    module: Any = sys.modules.get("scipy.interpolate")
    if module is None or not isinstance(given, (module.BSpline, module.BPoly, module.PPoly)):
        return None
    if isinstance(given, module.BSpline):
        x = np.unique(given.t[given.k : len(given.t) - given.k])
        c = _taylor(given, given.k, x)  # PPoly.from_spline accepts scalar splines only
    else:
        polynomial = module.PPoly.from_bernstein_basis(given) if isinstance(given, module.BPoly) else given
        x, c = polynomial.x, polynomial.c
    x, c = _real(x, f"the breakpoints of {what}"), _real(c, f"the coefficients of {what}")
    if c.ndim > 3:
        raise SolveError(f"{what} is a spline of values of shape {c.shape[2:]}; expected () or (n_r,)")
    return _polynomial(c.reshape(*c.shape[:2], -1), x, what)


def combined(parts: Sequence[Any], names: Sequence[str]) -> Any:
    """One polynomial of all values, on the times that all ``parts`` (polynomials of one value, or numbers) cover.

    Raises `SolveError` when they have no time in common.
    """
    spans = {name: _span(part) for name, part in zip(names, parts, strict=True) if is_polynomial(part)}
    first, last = max(span[0] for span in spans.values()), min(span[1] for span in spans.values())
    if not first < last:
        intervals = ", ".join(f"{name} from {start!r} to {end!r}" for name, (start, end) in spans.items())
        raise SolveError(f"the inputs have no time in common: {intervals} s")
    polynomials = [part for part in parts if is_polynomial(part)]
    x = polynomials[0].x
    if not all(np.array_equal(part.x, x) for part in polynomials):
        x = np.unique(np.concatenate([part.x for part in polynomials]))
        x = x[(x >= first) & (x <= last)]
    degree = max(part.c.shape[0] for part in polynomials) - 1
    c = np.zeros((degree + 1, x.size - 1, len(parts)))
    for column, part in enumerate(parts):
        if not is_polynomial(part):
            c[-1, :, column] = part
        elif np.array_equal(part.x, x):
            c[degree + 1 - part.c.shape[0] :, :, column] = part.c[:, :, 0]
        else:
            c[:, :, column] = _taylor(part, degree, x)[:, :, 0]
    return _polynomial(c, x)


def _taylor(function: Callable[[Array, int], Array], degree: int, x: Array) -> Array:
    """Taylor coefficients (degree + 1, n, ...) at the left ends of the pieces between ``x`` (n + 1,)."""
    return np.stack([function(x[:-1], power) / factorial(power) for power in range(degree, -1, -1)])


def _polynomial(c: Array, x: Array, what: str = "the inputs") -> Any:
    from scipy.interpolate import PPoly

    if not (np.diff(x) > 0.0).all():
        raise SolveError(f"the times of {what} are not strictly increasing")
    return PPoly(c, x)


def _span(polynomial: Any) -> tuple[float, float]:
    """First and last time."""
    return float(polynomial.x[0]), float(polynomial.x[-1])


def _real(value: Any, what: str) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise SolveError(f"{what} cannot be read as an array: {error}") from error
    if array.dtype.kind not in "fiu":
        raise SolveError(f"{what} have the type {array.dtype.name}; expected real numbers")
    if not np.isfinite(array).all():
        raise SolveError(f"{what} contain NaN or infinity; every entry must be finite")
    return array.astype(np.float64)
