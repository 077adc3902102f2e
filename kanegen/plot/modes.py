"""Eigenvalues of linear models: in the complex plane, or over a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array, real_array
from kanegen.errors import SolveError, brief, text_of
from kanegen.solve.analysis.continuation import Branch
from kanegen.solve.analysis.equilibrium import NEUTRAL, Equilibrium
from kanegen.solve.analysis.linearize import Linearization
from kanegen.units import labeled

KINDS: Final = ("parts", "plane")
"""Real and imaginary parts over the parameter, or eigenvalues in the complex plane."""

_UNSTABLE: Final = "#fbe3e0"


def modes(
    states: Any, values: Any = None, *, kind: str | None = None, parameter: str = "parameter", ax: Any = None
) -> Any:
    """Draw the eigenvalues of equilibria, steady motions or linear models.

    Over a parameter, real and imaginary parts are drawn in two panels, with lines that connect each eigenvalue with
    the nearest one at the next value. Intervals in which a real part is positive are shaded.

    Parameters
    ----------
    states
        A :class:`kanegen.results.Branch`; a :class:`kanegen.results.Linearization`,
        :class:`kanegen.results.Equilibrium` or :class:`kanegen.results.SteadyMotion`, or a sequence of them.
    values
        The parameter (m,) of a sequence; a branch has its own.
    kind
        ``"parts"``: real and imaginary parts over the parameter, the default for a branch and for a sequence with
        values; ``"plane"``: the complex plane, with a color that tells the parameter (root locus).
    parameter
        The name of the parameter of a sequence, for the label.
    ax
        Axes of matplotlib, two for ``"parts"``, or a figure. None: a new figure.

    Returns
    -------
    Axes or numpy.ndarray
        The axes that were given, or an array with those of the panels, (n,).

    Raises
    ------
    SolveError
        For anything that has no eigenvalues, values of the wrong number, an unknown kind, and if matplotlib is missing.
    """
    from kanegen.solve.solution.drawing import given_axes, make_axes

    if isinstance(states, Branch):
        values, parameter = states.values, states.parameter
    listed = _listed(states)
    at = None if values is None else real_array(values, "values")
    if at is not None and at.shape != (len(listed),):
        raise SolveError(f"values has shape {at.shape}; expected ({len(listed)},), one for each state")
    chosen = ("plane" if at is None else "parts") if kind is None else kind
    if not isinstance(chosen, str) or chosen not in KINDS or (at is None and chosen == "parts"):
        expected = " or ".join(map(repr, KINDS)) if at is not None else "'plane', because there are no values"
        raise SolveError(f"kind is {brief(kind)}; expected {expected}")
    curves = connected([state.eigenvalues for state in listed])
    axes = make_axes(ax, 2 if chosen == "parts" else 1, "plot.modes", height=2.6 if chosen == "parts" else 4.2)
    unit = states.unit if isinstance(states, Branch) else None
    if unit is not None:
        at, parameter = unit.display(at), labeled(parameter, unit.label)
    if chosen == "parts" and at is not None:
        _draw_parts(axes, curves, at, text_of(parameter))
    else:
        _draw_plane(axes[0], curves, at, text_of(parameter))
    return given_axes(ax, axes)


def _listed(states: Any) -> list[Any]:
    """The states one by one. Raises `SolveError` for anything that has no eigenvalues."""
    if isinstance(states, Branch):
        return list(states.states)
    listed = list(states) if isinstance(states, Sequence) and not isinstance(states, str) else [states]
    wrong = [state for state in listed if not isinstance(state, (Linearization, Equilibrium))]
    if wrong or not listed:
        found = brief(wrong[0]) if wrong else "empty"
        raise SolveError(f"states is {found}; expected a Branch, Linearizations, Equilibria or SteadyMotions")
    return listed


def connected(rows: Sequence[NDArray[np.complex128]]) -> NDArray[np.complex128]:
    """The eigenvalues (m, k) of all rows; those of a column are nearest neighbors, NaN where a row has fewer."""
    from scipy.optimize import linear_sum_assignment

    curves = np.full((len(rows), max(map(len, rows), default=0)), complex(np.nan, np.nan))
    for i, row in enumerate(rows):
        places = np.arange(len(row))
        if i and len(row):
            distance = np.abs(curves[i - 1][:, None] - row)
            worst = 1e3 * (1.0 + np.nanmax(distance)) if not np.isnan(distance).all() else 1.0
            places, order = linear_sum_assignment(np.where(np.isnan(distance), worst, distance))
            row = row[order]
        curves[i, places] = row
    return curves


def _draw_parts(axes: Sequence[Any], curves: NDArray[np.complex128], values: Array, parameter: str) -> None:
    for axis, parts, name in zip(axes, (curves.real, curves.imag), ("real", "imaginary"), strict=True):
        axis.plot(values, parts, color="tab:blue", linewidth=1.0, marker=".", markersize=3)
        axis.set_ylabel(f"{name} part (1/s)")
        axis.axhline(0.0, color="0.4", linewidth=0.6)
        if (np.diff(values) != 0.0).all() and len(set(np.sign(np.diff(values)))) == 1:
            _shade(axis, values, curves)
    axes[-1].set_xlabel(parameter)


def _shade(axis: Any, values: Array, curves: NDArray[np.complex128]) -> None:
    """Shade where a real part is positive; the borders are interpolated."""
    zero = NEUTRAL * np.nanmax(np.abs(curves), initial=0.0)
    growth = np.where(np.abs(curves) > zero, curves.real, -np.inf).max(axis=1, initial=-np.inf)
    for (x, a), (y, b) in zip(
        zip(values[:-1], growth[:-1], strict=True), zip(values[1:], growth[1:], strict=True), strict=True
    ):
        if not np.isfinite([a, b]).all() or max(a, b) <= 0.0:
            continue
        border = x + (y - x) * a / (a - b) if a * b < 0.0 else (x if a > 0.0 else y)
        start, end = (x, y) if min(a, b) > 0.0 else ((border, y) if b > 0.0 else (x, border))
        axis.axvspan(start, end, color=_UNSTABLE, linewidth=0)


def _draw_plane(axis: Any, curves: NDArray[np.complex128], values: Array | None, parameter: str) -> None:
    axis.axvline(0.0, color="0.4", linewidth=0.6)
    axis.axhline(0.0, color="0.4", linewidth=0.6)
    if values is None:
        for row in curves:
            axis.plot(row.real, row.imag, "x", markersize=6)
    else:
        axis.plot(curves.real, curves.imag, color="0.8", linewidth=0.8)
        colors = np.repeat(values[:, None], curves.shape[1], axis=1)
        points = axis.scatter(curves.real, curves.imag, c=colors, s=9, zorder=2)
        axis.figure.colorbar(points, ax=axis, label=parameter)
    axis.set(xlabel="real part (1/s)", ylabel="imaginary part (1/s)")
