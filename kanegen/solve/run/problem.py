"""What is integrated in a run, and the checks of its start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kanegen.backends.points import Point
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.model import Projection
from kanegen.run_options import RunOptions
from kanegen.solve.consistent import RunStart, violations
from kanegen.solve.contacts import check_contact_values, check_run, watched_events
from kanegen.solve.feedback.closed_loop import ClosedLoop
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import RunInputs
from kanegen.solve.run.modes import require_start
from kanegen.solve.run.momentum import RunMomenta
from kanegen.solve.solution import SolverReference
from kanegen.solve.values import integral_function, listed


class Problem(NamedTuple):
    """What is integrated in a run of a model; runs that differ in the start and the options only share it.

    ``function`` is the right-hand side. With ``momenta`` the state is (q, mom), and ``function`` belongs to a momentum
    form. ``loop`` provides the controls of a closed loop. ``solver`` evaluates quantities along the motion.
    """

    functions: CompiledFunctions
    function: Any
    inputs: RunInputs
    projection: Projection | None
    momenta: RunMomenta | None
    loop: ClosedLoop | None
    solver: SolverReference

    def at(self, t: float, q: Any, u: Any, s: Any = None) -> Point:
        """This state with its inputs."""
        return Point(t, q, u, self.inputs.at(t, (q, u, s)), s if self.functions.description.states else None)

    @property
    def held(self) -> tuple[str, ...]:
        """The names of the inputs whose values are held between samples."""
        own = self.functions.description.input_names(self.inputs.held)
        return (*own, *self.loop.names) if self.loop is not None and self.loop.sampled else own

    @property
    def projected(self) -> tuple[int, float, tuple[str, ...], bool] | None:
        """The projection as the argument of the compiled integrator."""
        p = self.projection
        if p is None:
            return None
        integrals = tuple(map(integral_function, p.integrals))
        return p.every, p.tolerance, integrals, FORMS[self.functions.description.form].any_rank

    @property
    def controls(self) -> tuple[Any, ...]:
        """The sources of inputs that take the place of ``inputs``: ``Control`` of the module."""
        return self.inputs.controls if self.loop is None else (*self.inputs.controls, self.loop.compiled)


def detected_events(problem: Problem, start: RunStart, t1: float, options: RunOptions) -> tuple[int, ...]:
    """Indices of the events to detect. Raises `SolveError` for events and spans that cannot be integrated."""
    functions, loop, laws = problem.functions, problem.loop, problem.inputs.laws
    events = watched_events(functions.description, options["events"])
    if loop is not None:
        loop.check(options["method"])
    if laws is not None:
        events = (*events, *laws.switches())
    check_run(functions, events, t1 < start.t, loop is not None and loop.law is None)
    if functions.description.modes or any(event.when for event in functions.description.events):
        t, q, u, s, _ = start
        size = np.abs(np.concatenate([np.asarray(x, dtype=np.float64) for x in (q, u, s)]))
        scale = np.asarray(options["atol"]) + np.asarray(options["rtol"]) * size
        require_start(functions, problem.at(t, q, u, s), events, scale)
    return events


def check_start(problem: Problem, start: RunStart) -> None:
    """Raise `SolveError` for a start that violates constraints, and for values of contact laws out of range."""
    d, (t, q, u, s, tolerance) = problem.functions.description, start
    checks_constraints = tolerance is not None and bool(d.constraints.levels)
    if not (checks_constraints or d.contacts.values):
        return
    at = problem.at(t, q, u, s) if d.inputs else Point(t, q, u, s=s if d.states else None)
    check_contact_values(problem.functions, at)
    if tolerance is None or not checks_constraints:
        return
    violated = violations(problem.functions, at, tolerance)
    if violated:
        advice = (
            "correct the start, for example by q0, u0 = solver.make_consistent(t0, q0, u0) with fixed= for values to "
            "keep; allow more by start_tolerance=; or pass start_tolerance=None to integrate in spite of the violation "
            "(with a stabilization it decays)"
        )
        headline = f"the start at t = {t!r} s violates {len(violated)} constraint(s)"
        raise SolveError(listed(headline, violated, advice))
