"""Plots of solutions over time (matplotlib): curves, modes of contacts, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from kanegen.codes import EventKind, Mode
from kanegen.errors import SolveError, brief, text_of
from kanegen.solve.solution.curves import Curves, Panel
from kanegen.solve.solution.tables import require

MODE_COLORS: Final[Mapping[str, str]] = {
    Mode.PENETRATED.label: "#f4cccc",
    Mode.CLOSED.label: "#dedede",
    Mode.STICK.label: "#cfe2f3",
    Mode.SLIP.label: "#fce5cd",
}
"""Colors of the intervals in which a contact acts, by its mode."""

WIDTH, PANEL, BESIDES = 8.0, 1.9, 0.8
"""Width of a figure, height of a panel, and height of what is above and below the panels, in inches."""

MOST_LABELS: Final = 14
"""Entries of a legend."""


def plot(solution: Any, items: Sequence[Any], ax: Any, label: str) -> Any:
    """Draw panels over time; see :meth:`kanegen.Solution.plot`."""
    panels = Curves(solution).panels(items)
    axes = make_axes(ax, len(panels), "plot")
    for axis, panel in zip(axes, panels, strict=True):
        _draw(axis, panel, "" if label is None else text_of(label))
    distinct = list(dict.fromkeys(axes))
    for axis in distinct:
        mark_modes(axis, solution)
        mark_events(axis, solution)
        _legend(axis, outside=is_figure(ax), marks=axis is distinct[0])
    label_time(distinct)
    return given_axes(ax, distinct)


def make_axes(ax: Any, n: int, what: str, height: float = PANEL) -> list[Any]:
    """``n`` axes: those given, an axis for all, or new ones with a common time in a figure.

    Raises `SolveError` if matplotlib is missing, for anything that is not axes or a figure, and for a wrong number.
    """
    require("matplotlib", what, "plot")
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(WIDTH, BESIDES + height * n), layout="constrained")
    if is_figure(ax):
        return list(ax.subplots(n, 1, sharex=True, squeeze=False)[:, 0])
    if isinstance(ax, Axes):
        return [ax] * n
    try:
        given = list(np.ravel(ax))
    except ValueError:
        given = []
    if not given or not all(isinstance(axis, Axes) for axis in given):
        raise SolveError(f"ax is {brief(ax)}; expected matplotlib axes, one for each panel or one for all, or a figure")
    if len(given) != n:
        raise SolveError(f"ax contains {len(given)} axes, but there are {n} panels")
    return given


def is_figure(ax: Any) -> bool:
    """Whether axes are made in a figure, a new one or that of the user."""
    from matplotlib.figure import FigureBase

    return ax is None or isinstance(ax, FigureBase)


def given_axes(ax: Any, axes: Sequence[Any]) -> Any:
    """What a plot returns: the axis that was given, or else an array of axes."""
    from matplotlib.axes import Axes

    return ax if isinstance(ax, Axes) else np.array(axes, dtype=object)


def label_time(axes: Sequence[Any]) -> None:
    """Label the time axes, of several that share their times only the last one."""
    for axis in axes:
        place, shared = axis.get_subplotspec(), axis.get_shared_x_axes().get_siblings(axis)
        if len(shared) == 1 or place is None or place.is_last_row():
            axis.set_xlabel("t (s)")


def _draw(axis: Any, panel: Panel, label: str) -> None:
    for curve in panel.curves:
        style = "steps-post" if curve.held else "default"
        alone = label and len(panel.curves) == 1 and panel.title
        name = label if alone else f"{label}: {curve.label}" if label else curve.label
        axis.plot(curve.t, curve.values, label=name, linewidth=1.2, drawstyle=style)
    before = axis.get_ylabel()
    axis.set_ylabel(panel.title if before in ("", panel.title) else f"{before}, {panel.title}")


def mark_modes(axis: Any, solution: Any) -> None:
    """Shade the intervals in which contacts act; several contacts have horizontal bands of their own."""
    if solution.contacts is None:
        return
    phases = solution.contacts.phases
    names = list(phases[0].modes) if phases else []
    for k, name in enumerate(names):
        spans: dict[str, list[tuple[float, float]]] = {}
        end = None
        for phase in phases:
            mode, start = phase.modes[name], phase.t_start
            if end == (start, mode):
                start = spans[mode].pop()[0]  # the mode did not change
            spans.setdefault(mode, []).append((start, phase.t_end))
            end = (phase.t_end, mode)
        band = (k / len(names), 1.0 / len(names))
        for mode, color in MODE_COLORS.items():
            ranges = [(start, stop - start) for start, stop in spans.get(mode, ())]
            if ranges:
                label = f"{name}: {mode}"
                transform = axis.get_xaxis_transform()
                axis.broken_barh(ranges, band, facecolors=color, transform=transform, zorder=0.5, label=label)
        if len(names) > 1:
            place = {"va": "center", "fontsize": "x-small", "color": "0.4", "transform": axis.transAxes}
            axis.text(0.005, band[0] + band[1] / 2, name, **place)


def mark_events(axis: Any, solution: Any) -> None:
    """Vertical lines at the events: dashed for events of the model, thin and gray for those of contacts."""
    groups: dict[tuple[str, str], list[float]] = {}
    for event in solution.events:
        user = event.kind == EventKind.USER.label
        groups.setdefault(("user", event.name) if user else ("contact", event.kind), []).append(event.t)
    for (kind, label), times in groups.items():
        style: dict[str, Any] = {"colors": "tab:red", "linestyles": "dashed", "linewidths": 0.9}
        if kind == "contact":
            style = {"colors": "0.55", "linestyles": "solid", "linewidths": 0.5}
        count = f" ({len(times)})" if len(times) > 1 else ""
        transform = axis.get_xaxis_transform()
        axis.vlines(times, 0.0, 1.0, transform=transform, zorder=0.8, label=f"{label}{count}", **style)


def _legend(axis: Any, outside: bool, marks: bool) -> None:
    """A legend of several curves and, with ``marks``, of modes and events."""
    lines = list(axis.get_lines())
    lines = lines if len(lines) > 1 else []
    handles = [*lines, *(axis.collections if marks else ())]
    handles = [handle for handle in handles if not str(handle.get_label()).startswith("_")]
    if not handles:
        return
    title = f"{len(handles) - MOST_LABELS} more" if len(handles) > MOST_LABELS else None
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.3} if outside else {"loc": "best"}
    legend = axis.legend(handles=handles[:MOST_LABELS], fontsize="small", title=title, **place)
    legend.get_title().set_fontsize("small")
