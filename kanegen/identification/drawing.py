"""The plot of the residuals of a fit (matplotlib)."""

from __future__ import annotations

from typing import Any


def plot_residuals(fit: Any, ax: Any) -> Any:
    """Draw the residuals of a fit over time; see :meth:`kanegen.results.Fit.plot`."""
    from kanegen.solve.solution.drawing import given_axes, label_time, make_axes

    names = list(dict.fromkeys(name for motion in fit.motions for name in motion.residuals))
    axes = make_axes(ax, len(names), "fit.plot")
    for axis, name in zip(axes, names, strict=True):
        for k, motion in enumerate(fit.motions):
            if name not in motion.residuals:
                continue
            (points,) = axis.plot(motion.t, motion.residuals[name], ".", markersize=3, label=f"experiment {k}")
            deviation = 2.0 * motion.deviations[name]
            axis.fill_between(motion.t, -deviation, deviation, color=points.get_color(), alpha=0.12, linewidth=0)
        axis.axhline(0.0, color="0.4", linewidth=0.6)
        axis.set_ylabel(f"residual of {name}")
    if len(fit.motions) > 1:
        axes[0].legend(fontsize="small")
    label_time(list(dict.fromkeys(axes)))
    return given_axes(ax, axes)
