"""Phase portraits: one variable of a motion over another."""

from __future__ import annotations

from typing import Any

from kanegen.plot.drift import by_label


def phase(solutions: Any, x: Any, y: Any, *, ax: Any = None) -> Any:
    """Draw ``y`` over ``x``, for example a speed over its coordinate; a circle marks the start.

    Jumps are gaps. Coordinates, speeds and states are drawn smoothly from the dense output.

    Parameters
    ----------
    solutions
        A :class:`kanegen.Solution`, or a mapping from labels to solutions, which are drawn in one plot.
    x, y
        Names or symbols of scalars: coordinates, speeds, states, inputs, outputs or contacts.
    ax
        Axes of matplotlib or a figure. None: a new figure.

    Returns
    -------
    Axes
        The axes with the curves.

    Raises
    ------
    SolveError
        For unknown names, for variables with several components, and if matplotlib is missing.
    """
    from kanegen.solve.solution.curves import Curves
    from kanegen.solve.solution.drawing import make_axes

    pairs = {label: Curves(solution).pair(x, y) for label, solution in by_label(solutions).items()}
    axis = make_axes(ax, 1, "plot.phase", height=4.0)[0]
    for label, (across, up) in pairs.items():
        (line,) = axis.plot(across.values, up.values, label=label, linewidth=1.2)
        axis.plot(across.values[:1], up.values[:1], "o", color=line.get_color(), markersize=4)
    across, up = next(iter(pairs.values()))
    axis.set(xlabel=across.label, ylabel=up.label)
    if len(pairs) > 1:
        axis.legend(fontsize="small")
    return axis
