"""Reports: the sections in order, what each says when it cannot be made, and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from kanegen._version import __version__
from kanegen.display import escape
from kanegen.errors import KanegenError, SolveError, brief
from kanegen.model import Model
from kanegen.pages import Page
from kanegen.progress import activity
from kanegen.reporting import checks, equations, motion
from kanegen.reporting.subject import Subject
from kanegen.resources import template_folder
from kanegen.solve import Solution
from kanegen.solve.solution.animation import model_of
from kanegen.solve.solution.tables import require

SECTIONS: Final[Mapping[str, Callable[[Subject], Iterator[str] | None]]] = {
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

PACKAGES: Final = ("latex2mathml", "matplotlib", "k3d")
"""What a report needs besides the dependencies of kanegen."""


@dataclass(frozen=True, eq=False)
class ReportPage(Page):
    """A self-contained page of HTML about a model; ``notices`` say which sections could not be made, and why."""

    inline_height: ClassVar[int] = 800


@dataclass(frozen=True)
class Section:
    """A part of the page with a title; ``missing`` is the reason why there is no content, or empty."""

    name: str
    title: str
    html: str
    missing: str = ""


def report(subject: Any, *, model: Any = None, verify: bool = True) -> ReportPage:
    """A page about a model and a motion: description, equations, forms, motion, forces, equilibrium, checks.

    ``kg.report(solution).save("pendulum.html")`` writes one file that works without a network; a notebook shows it
    inline. A section that cannot be made says why; sections about contacts, constraints and events are left out of
    models without them.

    Parameters
    ----------
    subject
        A :class:`kanegen.Solution`; or a :class:`kanegen.Model`, for a report without a motion.
    model
        The model of a solution whose solver was pickled, or that was loaded without a solver.
    verify
        Whether to run the checks of :func:`kanegen.verify`, which compiles the model in every form.

    Returns
    -------
    ReportPage
        With ``save(path)``.

    Raises
    ------
    SolveError
        If ``subject`` is something else, if the model of the solution is not known, and if a package is missing
        (``pip install 'kanegen[report]'``).
    """
    if not isinstance(verify, bool):
        raise SolveError(f"verify is {brief(verify)}; expected True or False")
    if isinstance(subject, Model):
        return report_page(Subject(subject, None, "the report was made of a model, without a solution", verify))
    if not isinstance(subject, Solution):
        raise SolveError(f"subject is {brief(subject)}; expected a kanegen.Solution or a kanegen.Model")
    return report_page(Subject(model_of(subject, model), subject, "", verify))


def require_packages() -> None:
    """Raise `SolveError` that says what to install if a package is missing."""
    for package in PACKAGES:
        require(package, "a report", "report")


def report_page(subject: Subject) -> ReportPage:
    """The page about a subject."""
    from jinja2 import Environment, StrictUndefined

    require_packages()
    sections = [section for title, make in SECTIONS.items() if (section := _section(title, make, subject))]
    template = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True).from_string(
        template_folder().joinpath("report.html.jinja").read_text(encoding="utf-8")
    )
    title = subject.model.name
    text = template.render(title=escape(title), version=__version__, sections=sections)
    return ReportPage(title, text, tuple(f"{x.title}: {x.missing}" for x in sections if x.missing))


def _section(title: str, make: Callable[[Subject], Iterator[str] | None], subject: Subject) -> Section | None:
    """A section; None where it does not apply to the model."""
    name = title.lower().replace(" ", "-")
    try:
        with activity(f"report: {title}"):
            parts = make(subject)
            return None if parts is None else Section(name, title, "\n".join(parts))
    except KanegenError as error:
        return Section(name, title, f'<p class="missing">{escape(str(error))}</p>', str(error))
