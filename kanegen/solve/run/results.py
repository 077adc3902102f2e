"""The solution of a run, and the errors of runs that did not reach their end."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from kanegen.backends.protocol import Evaluator
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.run_options import RunOptions
from kanegen.solve.contacts import hybrid_records
from kanegen.solve.run.problem import Problem
from kanegen.solve.run.tables import left_table
from kanegen.solve.solution import (
    Acting,
    ContactHistory,
    Dense,
    EventRecord,
    Events,
    IntegrationError,
    IntegrationInterrupted,
    MotionInputs,
    Outcome,
    RunRecord,
    Solution,
    Statistics,
    conflict_message,
    inputs_of_run,
)


class RunFields:
    """The fields of the :class:`.Solution` of a run, which it reads when they are needed, and once.

    ``result`` is that of the compiled integrator for ``problem``.
    """

    def __init__(self, problem: Problem, span: tuple[float, float], options: RunOptions, result: Any) -> None:
        self._problem, self._span, self._options, self._result = problem, span, options, result
        self.t, self.q, self.u, self.s = result.t, result.q, result.u, result.s
        self.sensitivities: Any = None
        self.reference = problem.solver
        # Not later, because it can call functions of the user.
        self.control = None if problem.loop is None else problem.loop.record(result, self._steps, span[0])

    @property
    def status(self) -> Outcome:
        result = self._result
        outside = Status.OUTSIDE_TABLE in (result.status, result.rhs_status)
        return Outcome.OUTSIDE_TABLE if outside else Outcome.from_code(result.status)

    @property
    def message(self) -> str:
        if self.status is Outcome.OUTSIDE_TABLE:
            return left_table(self._problem, self.last, self._span) or self.status.advice
        conflict = self._result.conflict
        return str(self._result.message) if conflict is None else conflict_message(self._module, conflict)

    @property
    def statistics(self) -> Statistics:
        return Statistics(**self._result.statistics)

    @property
    def last(self) -> tuple[Any, ...]:
        d, (t, y) = self._problem.functions.description, self._result.last
        n_q, n = len(d.coordinates), len(d.coordinates) + len(d.speeds)
        return (t, y[:n_q], y[n_q:n], *((y[n : n + len(d.states)],) if d.states else ()))

    @cached_property
    def dense(self) -> Dense | None:
        steps = self._steps
        return steps.ending_at(*self._result.last) if steps is not None and self.events else steps

    @cached_property
    def _steps(self) -> Dense | None:
        """The dense output of the steps, without a jump at the end."""
        dense = self._result.dense
        return dense if dense is None or isinstance(dense, Dense) else Dense(*dense)

    @property
    def events(self) -> Events:
        return Events(self._hybrid[0])

    @property
    def contacts(self) -> ContactHistory | None:
        return self._hybrid[1]

    @cached_property
    def _hybrid(self) -> tuple[tuple[EventRecord, ...], ContactHistory | None]:
        return hybrid_records(self._module, self._problem.functions.description, self._result)

    @property
    def run(self) -> RunRecord:
        problem, solver = self._problem, self._problem.solver.get()
        options = {name: value for name, value in self._options.items() if name not in ("t_eval", "progress")}
        given = {"t_span": self._span, "stabilization": solver.stabilization, **options}
        return RunRecord.of(solver, problem.held, given)

    @property
    def all_inputs(self) -> MotionInputs:
        return MotionInputs(self._inputs)

    def _inputs(self) -> Acting:
        state = self.q, self.u, self.s
        return inputs_of_run(self._problem, self.t, state, self.contacts, self.control)

    @property
    def _module(self) -> Evaluator:
        return self._problem.functions.module


KEPT: Final = "; the part that was integrated is in .solution of this exception"
"""The end of the messages of `IntegrationError`."""


def stopped_at(t: float, t1: float) -> str:
    """The beginning of the message about a run to ``t1`` that was stopped."""
    if t == t1:
        return f"the integration was stopped when it had reached its end, t = {t1!r} s"
    return f"the integration stopped at t = {t!r} s, before t = {t1!r} s"


def require_finished(problem: Problem, solution: Solution, result: Any, t1: float) -> None:
    """Raise an error that holds the solution if it did not reach the end ``t1`` of the span."""
    if result.status == Status.FINISHED:
        return  # the usual case, without the time of the fields
    if solution.success:
        return
    t, error = solution.last[0], result.error
    place = stopped_at(t, t1)
    if isinstance(error, KeyboardInterrupt):
        raise IntegrationInterrupted(f"{place}{KEPT}", solution) from error
    if error is not None and not isinstance(error, Exception):
        raise error
    if error is not None:
        raise IntegrationError(f"{place}: {type(error).__name__}: {error}{KEPT}", solution) from error
    where = f"{result.culprit}: " if result.culprit and result.conflict is None else ""
    reason = _not_finite(problem, solution.last) if solution.status is Outcome.NOT_FINITE else None
    raise IntegrationError(f"{place}: {where}{reason or solution.message}{KEPT}", solution)


def _not_finite(problem: Problem, last: tuple[Any, ...]) -> str | None:
    """The message on an entry of the right-hand side or its Jacobian that is not finite; None if all are finite."""
    if problem.momenta is not None or problem.loop is not None or problem.inputs.held:
        return None
    try:
        at = problem.at(*last)
        at.evaluate(problem.function.pair)
        problem.functions.require_finite(("jacobian_q", "jacobian_u", "jacobian_s"), at)
    except SolveError as error:
        return str(error)
    return None
