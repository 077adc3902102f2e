"""Stroboscopic pictures: a mechanism at several times in one plot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.errors import SolveError, brief
from kanegen.plot.drift import require_solution
from kanegen.solve.values import flag

MOST = 10_000
"""Largest number of times that are given by their number."""
LIGHTEST = 0.2
"""Share of the color at the first time; the last one has all of it."""


def strobe(solution: Any, points: Callable[..., Any], *, times: Any = 12, traces: bool = True, ax: Any = None) -> Any:
    """Draw the lines through points of a mechanism at several times, the later the darker, and the last point's path.

    ``kg.plot.strobe(solution, lambda theta: [(0, 0), (l * np.sin(theta), -l * np.cos(theta))])`` draws a pendulum.

    Parameters
    ----------
    solution
        A :class:`kanegen.Solution` with dense output.
    points
        A function of all coordinates in order, each an array (n,) of its values at the times, that returns a list of
        pairs (x, y): numbers or arrays (n,), in m. Lines connect the points in this order.
    times
        Times in s, (n,), or a number of times from the start to the end of the solution.
    traces
        Whether to draw the path of the last point between the first and the last of the times.
    ax
        Axes of matplotlib or a figure. None: a new figure.

    Returns
    -------
    Axes
        The axes, with equal scales of x and y.

    Raises
    ------
    SolveError
        For times outside the solution, a solution without dense output, points that are no pairs, and if matplotlib is
        missing.
    """
    from kanegen.solve.solution.drawing import make_axes

    require_solution(solution)
    if not callable(points):
        raise SolveError(f"points is {brief(points)}; expected a function of the coordinates that returns pairs (x, y)")
    instants = _instants(solution, times)
    axis = make_axes(ax, 1, "plot.strobe", height=4.0)[0]
    if flag(traces, "traces"):
        path = _positions(solution, points, np.linspace(instants[0], instants[-1], 400))[-1]
        axis.plot(*path, color="tab:orange", linewidth=0.8, label="path")
    places = _positions(solution, points, instants)
    shares = np.linspace(LIGHTEST, 1.0, instants.size)
    for k, share in enumerate(shares):
        axis.plot(places[:, 0, k], places[:, 1, k], "o-", color="tab:blue", alpha=share, linewidth=1.5, markersize=3)
    axis.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    return axis


def _instants(solution: Any, times: Any) -> Array:
    if isinstance(times, int) and 0 < times <= MOST:
        return np.linspace(solution.t[0], solution.t[-1], times)
    instants = real_array(times, "times")
    if instants.ndim != 1 or not instants.size:
        raise SolveError(f"times is {brief(times)}; expected times (n,) in s, or a number of times from 1 to {MOST}")
    return instants


def _positions(solution: Any, points: Callable[..., Any], times: Array) -> Array:
    """The points at the times, (n_points, 2, n_t)."""
    pairs = points(*solution(times)[0].T)
    try:
        places = [[np.broadcast_to(real_array(part, "points"), times.shape) for part in pair] for pair in pairs]
        array = np.array(places)
        if array.shape[1:] != (2, times.size):
            raise ValueError(array.shape)
    except (TypeError, ValueError) as error:
        raise SolveError(f"points returned {brief(pairs)}; expected pairs (x, y) of numbers or arrays (n,)") from error
    return array
