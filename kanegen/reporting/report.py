"""The report of a model or a solution."""

from __future__ import annotations

from typing import Any

from kanegen.errors import SolveError, brief
from kanegen.model import Model
from kanegen.pages import Page
from kanegen.solve import Solution
from kanegen.solve.solution.animation import model_of


def report(subject: Any, *, model: Any = None, verify: bool = True, backend: str = "cython") -> Page:
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
    backend
        The back end for a report without the solver of a motion, as for :func:`kanegen.build`; otherwise that of the
        solver is used.

    Returns
    -------
    kanegen.results.Page
        With ``save(path)``, the text ``html``, and ``notices`` about sections that could not be made.

    Raises
    ------
    SolveError
        If ``subject`` is something else, if the model of the solution is not known, and if a package is missing
        (``pip install 'kanegen[report]'``).
    """
    # The sections are imported here, so that kanegen is imported without them.
    from kanegen.reporting.reported import Reported
    from kanegen.reporting.sections import report_page

    if not isinstance(verify, bool):
        raise SolveError(f"verify is {brief(verify)}; expected True or False")
    if isinstance(subject, Model):
        return report_page(
            Reported(subject, None, "the report was made of a model, without a solution", verify, backend)
        )
    if not isinstance(subject, Solution):
        raise SolveError(f"subject is {brief(subject)}; expected a kanegen.Solution or a kanegen.Model")
    return report_page(Reported(model_of(subject, model), subject, "", verify, backend))
