"""The motions of an ensemble one by one, each a run of its own: for every model, method and input."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.run_options import CommonOptions
from kanegen.solve.many.motions import Motions
from kanegen.solve.many.reductions import Reduction
from kanegen.solve.many.results import Results
from kanegen.solve.run.results import KEPT
from kanegen.solve.solution import IntegrationError, Outcome


class Stopped(BaseException):
    """Ends a run in a thread, after Ctrl-C in another one."""


@dataclass(frozen=True)
class Runs:
    """How each motion of an ensemble is integrated: the span, and further ``options`` of `integrate`.

    ``times`` (K,): when states are stored; None: at the end, unless there is a reduction. ``sensitivities``: names of
    what the motions are differentiated with respect to.
    """

    solver: Any
    motions: Motions
    span: tuple[float, float]
    times: Array | None
    reduction: Reduction | None
    options: CommonOptions
    sensitivities: tuple[str, ...] = ()

    def integrate(self, row: int, stopped: threading.Event | None = None) -> Any:
        """The solution of one motion. Raises `SolveError`, with the part that was integrated if it could start."""
        motions, reduction = self.motions, self.reduction
        solver = (
            self.solver if motions.parameters.is_common else self.solver.with_parameters(motions.parameters.at(row))
        )
        q0, u0, s0 = (argument.at(row) for argument in motions.state)
        return solver.integrate(
            self.span,
            q0,
            u0,
            motions.r.at(row),
            s0=s0,
            t_eval=self._stored,
            dense_output=bool(self.sensitivities) or (reduction is not None and self.times is not None),
            sensitivities=self.sensitivities or None,
            progress=False if stopped is None else _guard(stopped),
            **self.options,
        )

    @property
    def _stored(self) -> Any:
        """The times at which a run stores its states, None: at its steps."""
        if self.reduction is not None or (self.sensitivities and self.times is None):
            return None
        return () if self.times is None else self.times

    def complaint(self, row: int) -> str:
        """Why `integrate` refuses the start of a motion, or does not reach its end."""
        try:
            self.integrate(row)
        except SolveError as error:
            return str(error).removesuffix(KEPT)
        return "the motion cannot start"


def _guard(stopped: threading.Event) -> Any:
    def look(_: float) -> None:
        if stopped.is_set():
            raise Stopped

    return look


def work(runs: Runs, results: Results, rows: Iterator[int], stopped: threading.Event) -> Iterator[None]:
    """Integrate the motions whose indices ``rows`` hands out, until ``stopped``."""
    for row in rows:
        try:
            solution = runs.integrate(row, stopped)
        except IntegrationError as error:
            solution, results.reasons[row] = error.solution, str(error).removesuffix(KEPT)
        except SolveError as error:
            results.refuse(row, runs.span[0], str(error))
            yield
            continue
        except Stopped:
            return
        _keep(runs, results, row, solution)
        yield


def _keep(runs: Runs, results: Results, row: int, solution: Any) -> None:
    """Write the results of one motion."""
    results.status[row], results.t_end[row] = solution.status.code, solution.last[0]
    results.n_steps[row], results.n_evaluations[row] = solution.statistics.steps, solution.statistics.evaluations
    if solution.success and runs.reduction is not None and results.values is not None:
        try:
            results.values[row] = runs.reduction.of(solution)
        except SolveError as error:
            results.status[row], results.reasons[row] = Outcome.NOT_FINITE.code, str(error)
    _keep_states(runs, results.y[row], solution)
    if runs.sensitivities and solution.success:
        matrix = solution.sensitivities.matrix if runs.times is not None else solution.sensitivities.matrix[-1:]
        results.changes[row, : len(matrix)] = matrix
    results.completed[row] = True


def _keep_states(runs: Runs, y: Array, solution: Any) -> None:
    """Write the states of one motion, (K, n), at the times that it reached."""
    if runs.times is None:
        if len(y) and solution.success:
            y[0] = _row(solution.last[1:])
        return
    if runs.reduction is None:
        states = (solution.q, solution.u, solution.s)
    else:
        backwards = runs.span[1] < runs.span[0]
        end = solution.last[0]
        states = solution(runs.times[runs.times >= end if backwards else runs.times <= end])
    start = 0
    for part in states:
        width = part.shape[1]
        y[: len(part), start : start + width] = part
        start += width


def _row(parts: Any) -> Any:
    return [x for part in parts for x in part]
