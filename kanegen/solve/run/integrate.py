"""One integration: checks of the arguments and the start, and the solution or the error that results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.model import Projection
from kanegen.solve.contact.contacts import check_contact_values
from kanegen.solve.control.closed_loop import ClosedLoop
from kanegen.solve.functions import Functions
from kanegen.solve.inputs.inputs import RunInputs
from kanegen.solve.names import listed, number, positive
from kanegen.solve.outcome import Outcome, Statistics, conflict_message
from kanegen.solve.progress import ProgressBar
from kanegen.solve.run.hybrid import (
    hybrid_records,
    refuse_backwards,
    refuse_control_states,
    start_modes,
    watched_events,
)
from kanegen.solve.run.momentum import RunMomenta
from kanegen.solve.solution import Dense, IntegrationError, IntegrationInterrupted, Solution
from kanegen.solve.values import integral_function


class Stepping(NamedTuple):
    """Method, tolerances, steps and stored times: arguments of :meth:`kanegen.Solver.integrate`."""

    method: str
    rtol: Any
    atol: Any
    step: float | None
    first_step: float | None
    max_step: float | None
    max_steps: int | None
    t_eval: Any

    def check(self) -> None:
        """Raise `SolveError` for steps that contradict the method, and for values that make no sense."""
        if self.method not in FIXED_STEP + ADAPTIVE:
            raise SolveError(
                f"method is {self.method!r}; expected {', '.join(FIXED_STEP)} (fixed step) or {', '.join(ADAPTIVE)} "
                "(adaptive)"
            )
        fixed = self.method in FIXED_STEP
        if fixed and self.step is None:
            raise SolveError(f"{self.method} has a fixed step: give step= (seconds), or use {' or '.join(ADAPTIVE)}")
        for name in ("first_step", "max_step") if fixed else ("step",):
            if getattr(self, name) is not None:
                advice = "leave it out" if fixed else "give first_step, max_step or tolerances, or use rk4"
                kind = "has a fixed step" if fixed else "chooses its steps"
                raise SolveError(f"{self.method} {kind} and takes no {name}: {advice}")
        for name in ("step", "first_step", "max_step"):
            value = getattr(self, name)
            if value is not None:
                positive(value, name, "a positive number of seconds")
        steps = self.max_steps
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise SolveError(f"max_steps is {steps!r}; expected a positive integer or None for no limit")
        _check_positive(self.rtol, "rtol", zero=False)
        _check_positive(self.atol, "atol", zero=True)


class Options(NamedTuple):
    """How to integrate: further arguments of :meth:`kanegen.Solver.integrate`."""

    stepping: Stepping
    events: Any
    modes: Mapping[str, str] | None
    dense_output: bool
    progress: bool | Callable[[float], None]
    start_tolerance: float | None
    projection: Projection | None

    def check(self) -> None:
        """Raise `SolveError` for options that contradict the method or make no sense."""
        self.stepping.check()
        if self.start_tolerance is not None:
            positive(self.start_tolerance, "start_tolerance", "a positive number, or None for no check")


class Problem(NamedTuple):
    """A run of a model: its functions, inputs and checks.

    ``function`` is integrated. ``residuals(t, q, u, r)`` are those at position and at velocity level. With ``momenta``
    the integrated state is (q, mom), and ``function`` that of a momentum form. ``loop`` provides the controls of a
    closed loop.
    """

    functions: Functions
    function: Any
    inputs: RunInputs
    residuals: Callable[..., tuple[Array, Array]]
    momenta: RunMomenta | None = None
    loop: ClosedLoop | None = None


def integrate(problem: Problem, t_span: Any, q0: Any, u0: Any, options: Options) -> Solution:
    """Integrate; see :meth:`kanegen.Solver.integrate`, whose arguments these are."""
    options.check()
    module, description = problem.functions.module, problem.functions.description
    t0, t1 = _span(t_span)
    events = watched_events(description, options.events)
    if t1 < t0:
        refuse_backwards(module, events)
    if problem.loop is not None:
        problem.loop.check(options.stepping.method, t0, t1)
        if problem.loop.law is None:
            refuse_control_states(module, events)
    if description.contacts.values:
        check_contact_values(problem.functions, t0, q0, u0, problem.inputs.at(t0) if description.inputs else None)
    if options.start_tolerance is not None:
        check_start(problem, t0, q0, u0, options.start_tolerance)
    with _progress(options.progress, description.name, t0, t1) as call:
        outcome = module.integrate(
            problem.function,
            problem.inputs.compiled,
            t0,
            t1,
            q0,
            u0 if problem.momenta is None else problem.momenta.of(t0, q0, u0),
            **options.stepping._asdict(),
            dense=options.dense_output,
            progress=call,
            events=events,
            modes=start_modes(module, options.modes),
            projection=None if options.projection is None else _projection_arguments(problem, options.projection),
            control=None if problem.loop is None else problem.loop.compiled,
        )
    if problem.momenta is not None:
        outcome = problem.momenta.in_speeds(outcome)
    return _finished(problem, _solution(problem, outcome), outcome, t1)


def _projection_arguments(problem: Problem, projection: Projection) -> tuple[int, float, tuple[str, ...], bool]:
    names = tuple(integral_function(name) for name in projection.integrals)
    return projection.every, projection.tolerance, names, FORMS[problem.functions.description.form].any_rank


def _progress(
    progress: bool | Callable[[float], None], title: str, t0: float, t1: float
) -> AbstractContextManager[Callable[[float], None] | None]:
    if progress is True:
        return ProgressBar(title, t0, t1)
    return nullcontext(None if progress is False else progress)


def check_start(problem: Problem, t: float, q: Any, u: Any, tolerance: float) -> None:
    """Compare a state with the constraints.

    A row is violated when its residual, in the unit of the constraint, exceeds ``tolerance`` times the
    largest coordinate (positions) or speed (velocities), which counts as 1 at least.

    Raises
    ------
    SolveError
        Naming every violated constraint with its residual.
    """
    description = problem.functions.description
    if not (description.constraints.positions or description.constraints.velocities):
        return
    position, velocity = problem.residuals(t, q, u, problem.inputs.at(t) if description.inputs else None)
    violated = violations(description, position, velocity, q, u, tolerance)
    if violated:
        advice = (
            "correct q0 and u0, allow more by start_tolerance=, or pass start_tolerance=None to integrate from there "
            "nevertheless (with a stabilization the violation decays)"
        )
        raise SolveError(listed(f"the start at t = {t!r} s violates {len(violated)} constraint(s)", violated, advice))


def violations(
    description: Description, position: Array, velocity: Array, q: Any, u: Any, tolerance: float
) -> list[str]:
    """A phrase on each constraint whose residual exceeds the tolerance, as in :func:`check_start`."""
    violated = []
    for kind, labels, values, state in (
        ("position", description.constraints.positions, position, q),
        ("velocity", description.constraints.velocities, velocity, u),
    ):
        if all(abs(value) <= tolerance for value in values.tolist()):
            continue  # no limit is smaller
        limit = tolerance * max(1.0, float(np.abs(np.asarray(state, dtype=np.float64)).max(initial=0.0)))
        violated += [
            f"{_short(label)} at {kind} level: residual {value:.6g}, allowed {limit:.3g}"
            for label, value in zip(labels, values, strict=True)
            if not abs(value) <= limit
        ]
    return violated


def _short(label: str) -> str:
    """The label, or its beginning and end: constraints of spatial systems can be pages long."""
    return label if len(label) <= 120 else f"{label[:75]} ... {label[-40:]}"


def _span(t_span: Any) -> tuple[float, float]:
    try:
        t0, t1 = t_span
    except (TypeError, ValueError) as error:
        raise SolveError(f"t_span is {t_span!r}; expected a pair (t0, t1) in seconds") from error
    return number(t0, "t0"), number(t1, "t1")


def _check_positive(value: Any, name: str, zero: bool) -> None:
    if isinstance(value, float) and math.isfinite(value) and (value > 0.0 or (zero and value == 0.0)):
        return
    wanted = "positive" if not zero else "not negative"
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SolveError(f"{name} is {value!r}; expected numbers that are {wanted}") from error
    if not (np.isfinite(array).all() and ((array > 0.0) | (zero & (array == 0.0))).all()):
        raise SolveError(f"{name} is {value!r}; expected finite numbers that are {wanted}")


def _solution(problem: Problem, outcome: Any) -> Solution:
    module, description = problem.functions.module, problem.functions.description
    n_q = len(description.coordinates)
    n = n_q + len(description.speeds)  # controls that are part of the state follow
    t, y = outcome.last
    dense = outcome.dense if outcome.dense is None or isinstance(outcome.dense, Dense) else Dense(*outcome.dense)
    events, contacts = hybrid_records(module, description, outcome)
    return Solution(
        t=outcome.t,
        q=np.ascontiguousarray(outcome.y[:, :n_q]),
        u=np.ascontiguousarray(outcome.y[:, n_q:n]),
        status=Outcome.from_code(outcome.status),
        message=outcome.message if outcome.conflict is None else conflict_message(module, outcome.conflict),
        statistics=Statistics(**outcome.statistics),
        last=(t, y[:n_q], y[n_q:n]),
        dense=dense.ending_at(t, y) if dense is not None and events else dense,
        events=events,
        contacts=contacts,
        control=None if problem.loop is None else problem.loop.record(outcome, dense),
    )


def _finished(problem: Problem, solution: Solution, outcome: Any, t1: float) -> Solution:
    """The solution if it reached its end; otherwise an error that holds it is raised."""
    if outcome.flat_guard is not None:
        raise IntegrationError(
            f"the guard of event {outcome.flat_guard!r} was zero wherever it was evaluated, so that it marks no "
            "instant; correct it, or leave it out by events=; the motion is in .solution of this exception",
            solution,
        )
    if solution.success:
        return solution
    t, error = solution.last[0], outcome.error
    place = f"the integration stopped at t = {t!r} s, before t = {t1!r} s"
    kept = "the part that was integrated is in .solution of this exception"
    if isinstance(error, KeyboardInterrupt):
        raise IntegrationInterrupted(f"{place}; {kept}", solution) from error
    if error is not None and not isinstance(error, Exception):
        raise error
    if error is not None:
        raise IntegrationError(f"{place}: {type(error).__name__}: {error}; {kept}", solution) from error
    where = f"{outcome.culprit}: " if outcome.culprit and outcome.conflict is None else ""
    reason = _not_finite(problem, solution.last) if solution.status is Outcome.NOT_FINITE else None
    raise IntegrationError(f"{place}: {where}{reason or solution.message}; {kept}", solution)


def _not_finite(problem: Problem, last: tuple[float, Array, Array]) -> str | None:
    """Which entry of the right-hand side or its Jacobian is not finite at the last state; None where all are."""
    if problem.momenta is not None or problem.loop is not None:
        return None
    t, q, u = last
    try:
        r = problem.inputs.at(t)
        problem.function.pair(t, q, u, r)
        problem.functions.require_finite(("jacobian_q", "jacobian_u"), t, q, u, r)
    except SolveError as error:
        return str(error)
    return None
