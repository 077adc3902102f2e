"""Periodic motions: one with its multipliers in the complex plane, and curves of them over a parameter."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kanegen.errors import SolveError, brief
from kanegen.solve.gradients.orbit_curves import PeriodicCurve, largest
from kanegen.solve.gradients.orbits import PeriodicMotion
from kanegen.units import labeled

_LINES: Final = {"stable": "-", "unstable": "--", "marginal": ":"}
_MARKS: Final = {"fold": "o", "branching": "s", "period doubling": "^", "Neimark-Sacker": "D"}


def orbit(motion: Any, x: Any, y: Any, *, ax: Any = None) -> Any:
    """Draw a periodic motion, ``y`` over ``x``, and its multipliers with the unit circle.

    Parameters
    ----------
    motion
        A :class:`kanegen.results.PeriodicMotion`.
    x, y
        Names or symbols of scalars: coordinates, speeds, states, inputs or outputs.
    ax
        Two axes of matplotlib, or a figure. None: a new figure.

    Returns
    -------
    numpy.ndarray
        The axes: of the motion, and of the multipliers.

    Raises
    ------
    SolveError
        For anything that is no periodic motion, unknown names, and if matplotlib is missing.
    """
    from kanegen.plot.phase import phase
    from kanegen.solve.solution.drawing import given_axes

    if not isinstance(motion, PeriodicMotion):
        raise SolveError(f"motion is {brief(motion)}; expected a PeriodicMotion")
    axes = _side_by_side(ax)
    phase(motion.solution, x, y, ax=axes[0])
    turn = np.exp(1j * np.linspace(0.0, 2.0 * np.pi, 200))
    axes[1].plot(turn.real, turn.imag, color="0.6", linewidth=0.8)
    axes[1].axhline(0.0, color="0.85", linewidth=0.6)
    axes[1].axvline(0.0, color="0.85", linewidth=0.6)
    values = motion.multipliers
    axes[1].plot(values.real, values.imag, "x", color="tab:red", markersize=6)
    axes[1].set(xlabel="real part", ylabel="imaginary part", title=f"multipliers: {motion.stability}")
    axes[1].set_aspect("equal", adjustable="datalim")
    return given_axes(ax, axes)


def _side_by_side(ax: Any) -> list[Any]:
    """Two axes. Raises `SolveError`."""
    from kanegen.solve.solution.drawing import is_figure, make_axes
    from kanegen.solve.solution.tables import require

    require("matplotlib", "plot.orbit", "plot")
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(8.0, 3.6), layout="constrained")
    if is_figure(ax):
        return list(ax.subplots(1, 2))
    return make_axes(ax, 2, "plot.orbit")


def orbit_curve(curve: Any, variable: Any = None, *, ax: Any = None) -> Any:
    """Draw a curve of periodic motions: the largest value of a variable, or the period, over the parameter.

    Stable motions are solid, unstable ones dashed. Bifurcations are marked.

    Parameters
    ----------
    curve
        A :class:`kanegen.results.PeriodicCurve`.
    variable
        The name or symbol of a scalar, of which the largest value in each motion is drawn. None: the period.
    ax
        Axes of matplotlib or a figure. None: a new figure.

    Returns
    -------
    Axes
        The axes with the curve.

    Raises
    ------
    SolveError
        For anything that is no such curve, unknown names, and if matplotlib is missing.
    """
    from kanegen.solve.solution.drawing import make_axes
    from kanegen.solve.values import key_name

    if not isinstance(curve, PeriodicCurve):
        raise SolveError(f"curve is {brief(curve)}; expected a PeriodicCurve")
    heights = curve.periods if variable is None else curve[variable]
    axis = make_axes(ax, 1, "plot.orbit_curve", height=3.6)[0]
    unit = curve.unit
    across = curve.values if unit is None else unit.display(curve.values)
    for k, (first, second) in enumerate(zip(curve.stability[:-1], curve.stability[1:], strict=True)):
        line = _LINES[first if first == second or k == 0 else second]
        axis.plot(across[k : k + 2], heights[k : k + 2], line, color="tab:blue", linewidth=1.3)
    marked = set[str]()
    for point in curve.bifurcations:
        height = point.orbit.period if variable is None else largest(point.orbit, variable)
        label = None if point.kind in marked else point.kind
        x = point.value if unit is None else unit.display(point.value)
        axis.plot([x], [height], _MARKS[point.kind], color="tab:red", markersize=5, label=label)
        marked.add(point.kind)
    name = curve.parameter if unit is None else labeled(curve.parameter, unit.label)
    axis.set(xlabel=name, ylabel="period (s)" if variable is None else f"largest {key_name(variable)}")
    if marked:
        axis.legend(fontsize="small")
    return axis
