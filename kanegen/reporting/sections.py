"""The sections of a report in order, what each says when it cannot be made, and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kanegen._version import __version__
from kanegen.display import escape
from kanegen.errors import KanegenError
from kanegen.pages import Page
from kanegen.progress import activity
from kanegen.reporting import checks, equations, motion
from kanegen.reporting.reported import Reported
from kanegen.resources import template_folder
from kanegen.solve.solution.tables import require

SECTIONS: Final[Mapping[str, Callable[[Reported], Iterator[str] | None]]] = {
    "Description": equations.description,
    "Motion in 3-D": motion.animation,
    "Motion": motion.motion,
    "Energy and drift": motion.energy,
    "Constraint forces": motion.forces,
    "Events": motion.events,
    "Equilibrium": checks.equilibrium,
    "Equations": equations.formulas,
    "Operation counts": equations.counts,
    "Forms of the equations": equations.forms,
    "Verification": checks.verification,
}
"""Title of each section, and the function that gives its HTML, or None where the section does not apply."""

INLINE_HEIGHT: Final = 800
"""Height of a report in a notebook, pixels."""

PACKAGES: Final = ("latex2mathml", "matplotlib", "k3d")
"""Packages of a report that kanegen itself does not use."""


@dataclass(frozen=True)
class Section:
    """A part of the page with a title; ``missing`` is the reason why there is no content, or empty."""

    name: str
    title: str
    html: str
    missing: str = ""


def require_packages() -> None:
    """Raise `SolveError` that says what to install if a package is missing."""
    for package in PACKAGES:
        require(package, "a report", "report")


def report_page(reported: Reported) -> Page:
    """The page of a report."""
    from jinja2 import Environment, StrictUndefined

    require_packages()
    made = [_section(title, make, reported) for title, make in SECTIONS.items()]
    sections = [section for section in made if section is not None]
    template = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True).from_string(
        template_folder().joinpath("report/report.html.jinja").read_text(encoding="utf-8")
    )
    title = reported.model.name
    text = template.render(title=escape(title), version=__version__, sections=sections)
    notices = tuple(f"{section.title}: {section.missing}" for section in sections if section.missing)
    return Page(title, text, notices, INLINE_HEIGHT)


def _section(title: str, make: Callable[[Reported], Iterator[str] | None], reported: Reported) -> Section | None:
    """A section; None where it does not apply to the model."""
    name = title.lower().replace(" ", "-")
    try:
        with activity(f"report: {title}"):
            parts = make(reported)
            return None if parts is None else Section(name, title, "\n".join(parts))
    except KanegenError as error:
        return Section(name, title, f'<p class="missing">{escape(str(error))}</p>', str(error))
