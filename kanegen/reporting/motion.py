"""Sections about the motion: variables over time, energy, forces, events, and the bodies in space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from kanegen.display import Table
from kanegen.plot import drift as plot_drift
from kanegen.plot.drift import drift_of
from kanegen.reporting.figures import figure
from kanegen.reporting.mathml import table_html
from kanegen.reporting.reported import Reported
from kanegen.solve.solution.curves import GROUPS, Curve, Curves
from kanegen.solve.solution.overview import event_table, run_table

FORCES: Final = ("multipliers", "contact forces", "reactions")
"""The groups of variables that are forces of constraints."""


def motion(reported: Reported) -> Iterator[str]:
    """How the run ended, and the variables over time."""
    solution = reported.solution
    yield table_html(run_table(solution))
    curves = Curves(solution)
    groups = [name for name, make in GROUPS.items() if name not in FORCES and make(curves)]
    if groups:
        yield figure(lambda drawn: solution.plot(*groups, ax=drawn), f"{', '.join(groups)} over time")


def animation(reported: Reported) -> Iterator[str]:
    """The page of the animation in a frame."""
    page = reported.solution.animate(model=reported.model)
    yield f'<div class="frame">{page._repr_html_()}</div>'
    yield '<p class="paper">The motion in 3-D is shown on the screen only.</p>'


def energy(reported: Reported) -> Iterator[str]:
    """The largest errors, and the errors over time."""
    solution = reported.solution
    rows = [(title, f"{values.max():.3e}", f"{values[-1]:.3e}") for title, values in drift_of(solution).items()]
    caption = "residuals of the constraints and change of the energy"
    drawn = figure(lambda drawn: plot_drift(solution, ax=drawn), caption)
    headings = ("magnitude", "largest", "at the end")
    yield table_html(Table("Drift", headings, tuple(rows), right=headings[1:]))
    if solution.solver.description.has("energy"):
        e = solution.energy
        yield f"<p>The energy is {e[0]:.9g} J at the start and {e[-1]:.9g} J at the end, between {e.min():.9g} J and "
        yield f"{e.max():.9g} J. Its change is an error only where nothing drives the system or takes energy, "
        yield "as friction and impacts do.</p>"
        yield figure(lambda drawn: solution.plot("energy", ax=drawn), "energy over time")
    yield drawn


def forces(reported: Reported) -> Iterator[str] | None:
    """Multipliers, forces of contacts and reactions over time; None for a model without them."""
    model = reported.model
    if not (model.constraints or model.resolved_contacts or model.reactions):
        return None
    return _forces(reported)


def _forces(reported: Reported) -> Iterator[str]:
    solution = reported.solution
    curves = Curves(solution)
    groups = {name: GROUPS[name](curves) for name in FORCES}
    groups = {name: found for name, found in groups.items() if found}
    if not groups:
        yield '<p class="missing">The solver was built without the multipliers and without reactions.</p>'
        return
    for name, found in groups.items():
        yield table_html(_largest(name, found))
    yield figure(lambda drawn: solution.plot(*groups, ax=drawn), f"{', '.join(groups)} over time")


def _largest(name: str, curves: Sequence[Curve]) -> Table:
    """The largest magnitude of each force and when it acts."""
    rows = []
    for curve in (curve.displayed() for curve in curves):
        known = np.abs(np.nan_to_num(curve.values, nan=0.0))
        at = int(known.argmax()) if known.size else 0
        rows.append((curve.label, *((f"{curve.values[at]:.6g}", f"{curve.t[at]:.6g}") if known.size else ("-", "-"))))
    headings = (name, "largest in magnitude", "t (s)")
    return Table.of(name.capitalize(), headings, rows, right=headings[1:])


def events(reported: Reported) -> Iterator[str] | None:
    """The events in order; None for a model without contacts and events."""
    if not (reported.model.resolved_contacts or reported.model.events):
        return None
    return _events(reported)


def _events(reported: Reported) -> Iterator[str]:
    solution = reported.solution
    yield table_html(event_table(solution.events)) if solution.events else "<p>There were no events.</p>"
