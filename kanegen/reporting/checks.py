"""Sections about equilibrium and verification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kanegen.display import escape
from kanegen.errors import VerificationError
from kanegen.plot import modes
from kanegen.reporting.figures import figure
from kanegen.reporting.mathml import table_html
from kanegen.reporting.reported import Reported
from kanegen.verification import Report, verify


def equilibrium(reported: Reported) -> Iterator[str]:
    """The equilibrium near the start, its stability and its eigenvalues."""
    solver, start = reported.solver, reported.start
    d = solver.description
    if start is None:
        found = solver.equilibrium()
    else:
        control = None if reported.motion is None else reported.motion.control
        owned = {*(() if control is None else control.names), *d.input_names(tuple(d.laws))}
        given = {} if start["r"] is None else dict(zip(d.inputs, start["r"], strict=True))
        r = {name: float(value) for name, value in given.items() if name not in owned}
        found = solver.equilibrium(start["q"], t=start["t"], s0=start["s"], r=r or None)
    yield table_html(replace(found.overview(), title="The equilibrium that was found from the start"))
    yield from map(table_html, found.details())
    if found.linear is None:
        return
    if not len(found.eigenvalues):
        yield "<p>The linear model has no states: contacts and constraints leave no motion, and no eigenvalues.</p>"
        return
    yield figure(lambda drawn: modes(found, ax=drawn), "eigenvalues in the complex plane", panel=3.4)


def verification(reported: Reported) -> Iterator[str] | None:
    """The checks of the equations and of the compiled code; None if they are not wanted."""
    return _verification(reported) if reported.verify else None


def _verification(reported: Reported) -> Iterator[str]:
    form = reported.solver.description.form if reported.has_solver else "auto"
    try:
        report = verify(reported.model, form=form, start=reported.start, backend=reported.backend)
    except VerificationError as error:
        if not isinstance(error.report, Report):
            raise
        report = error.report
        failed = ", ".join(check.principle for check in report.failed)
        yield f"<p><strong>The model fails {escape(failed)}.</strong></p>"
    compared = [
        (check.deviation / check.tolerance, check)
        for check in report.checks
        if check.deviation is not None and check.tolerance
    ]
    if compared:
        share, worst = max(compared, key=lambda pair: pair[0])
        yield f"<p>Of {len(compared)} comparisons, {escape(worst.principle)} is nearest to its tolerance, with a "
        yield f"deviation of {share:.2g} times the tolerance.</p>"
    yield table_html(report.overview())
