"""How far a motion drifts: residuals of the constraints and the change of the energy over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief, text_of
from kanegen.solve.solution import Solution


def drift(solutions: Any, *, ax: Any = None) -> Any:
    """Draw the residuals of the constraints and the errors of integrals of motion over time, as magnitudes.

    The panels are the largest residual at position level (phi and invariants), the largest at velocity level (phi' and
    psi), the change of the energy since the start in J, and the changes of the outputs that the stabilization of a
    solver keeps (``Projection(integrals=...)``). Panels that do not apply to any of the solutions are left out. The
    change of the energy is an error only where nothing drives the system or takes energy, as friction and impacts do.

    Parameters
    ----------
    solutions
        A :class:`kanegen.Solution`, or a mapping from labels to solutions, which are compared.
    ax
        Axes of matplotlib, one for all panels or a sequence with one for each; or a figure. None: a new figure.

    Returns
    -------
    Axes or numpy.ndarray
        The axes that were given, or an array with those of the panels, (n,).

    Raises
    ------
    SolveError
        For anything that is no solution, for solutions without constraints and energy, and if matplotlib is missing.
    """
    from kanegen.solve.solution.drawing import given_axes, is_figure, label_time, make_axes

    named = by_label(solutions)
    found = {label: drift_of(solution) for label, solution in named.items()}
    titles = list(dict.fromkeys(title for errors in found.values() for title in errors))
    if not titles:
        raise SolveError("there is no drift to plot: the solutions have neither constraints nor an energy function")
    axes = make_axes(ax, len(titles), "plot.drift", height=2.2)
    for axis, title in zip(axes, titles, strict=True):
        for label, errors in found.items():
            if title in errors:
                axis.plot(named[label].t, errors[title], label=label, linewidth=1.0)
        axis.set_ylabel(title)
        if any(errors[title].max(initial=0.0) > 0.0 for errors in found.values() if title in errors):
            axis.set_yscale("log", nonpositive="clip")  # exact zeros are at the lower edge
    if len(named) > 1:
        place = {"bbox_to_anchor": (1.0, 1.0), "loc": "upper left"} if is_figure(ax) else {"loc": "lower right"}
        axes[0].legend(fontsize="small", **place)
    label_time(axes)
    return given_axes(ax, axes)


def by_label(solutions: Any) -> dict[str, Solution]:
    """Solutions by label. Raises `SolveError` for anything that is no solution or mapping of solutions."""
    named = {text_of(x): y for x, y in solutions.items()} if isinstance(solutions, Mapping) else {"": solutions}
    for label, solution in named.items():
        require_solution(
            solution, f"the solution of {label!r}" if label else "the solution", ", or a mapping from labels"
        )
    if not named:
        raise SolveError("there are no solutions to plot: the mapping is empty")
    return named


def require_solution(solution: Any, what: str = "the solution", alternative: str = "") -> None:
    """Raise `SolveError` for anything that is no solution."""
    if not isinstance(solution, Solution):
        raise SolveError(f"{what} is {brief(solution)}; expected a Solution{alternative}")


def drift_of(solution: Solution) -> dict[str, Array]:
    """Magnitudes (n_t,) of the residuals and errors by title."""
    solver = solution.solver
    d = solver.description
    errors = {}
    if d.constraints.levels and "residuals" in d.functions:
        for level, residuals in zip(("position", "velocity"), solution.residuals, strict=True):
            if residuals.shape[1]:
                errors[f"{level} residual"] = np.abs(residuals).max(axis=1)
    if d.has("energy"):
        errors["energy change (J)"] = np.abs(solution.energy - solution.energy[0])
    for name in getattr(solver.stabilization, "integrals", ()):
        if name in solution.outputs:
            change = np.abs(solution.outputs[name] - solution.outputs[name][0])
            errors[f"error of {name}"] = change.reshape(len(solution.t), -1).max(axis=1)
    return errors
