"""The motions of an ensemble on vector lanes: smooth motions with constant inputs, by explicit methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.backends.protocol import ManyPlan, ManyRun
from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import ADAPTIVE, IMPLICIT
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.model import Projection
from kanegen.run_options import StepOptions, stepping, table
from kanegen.solve.consistent import start_state
from kanegen.solve.contacts import watched_events
from kanegen.solve.inputs import RunInputs
from kanegen.solve.many.batch import parameters_of
from kanegen.solve.many.motions import Motions
from kanegen.solve.many.reductions import REDUCTIONS
from kanegen.solve.many.results import Results, is_success
from kanegen.solve.many.single import Runs
from kanegen.solve.run.results import stopped_at
from kanegen.solve.solution import Outcome
from kanegen.solve.values import by_array, state_arrays

_ON_LANES: Final = {*table(StepOptions), "start_tolerance", "events"}
"""The options of a run that the code on lanes knows."""


@dataclass(frozen=True)
class LaneWork:
    """An ensemble on ``lanes`` lanes in each thread.

    ``cause`` (N,): the status of a right-hand side that failed.
    """

    lanes: int
    run: ManyRun
    cause: NDArray[np.int64]

    def explain(self, runs: Runs, results: Results) -> None:
        """Note the reasons of the motions that failed, after the run."""
        for row in np.flatnonzero(results.completed & ~is_success(results.status)).tolist():
            status, cause = int(results.status[row]), int(self.cause[row])
            if status == Outcome.REFUSED.code:
                results.reasons[row] = runs.complaint(row)
            elif status == cause and runs.reduction is not None:
                results.reasons[row] = f"{runs.reduction.name!r}, which is reduced, is not finite at an accepted step"
            elif cause == Status.OUTSIDE_TABLE and status == Outcome.RIGHT_HAND_SIDE_FAILED.code:
                results.status[row] = Outcome.OUTSIDE_TABLE.code
                results.reasons[row] = runs.complaint(row)
            else:
                code = cause if status == Outcome.RIGHT_HAND_SIDE_FAILED.code else status
                message = next(known.message for known in Status if known == code)
                results.reasons[row] = f"{stopped_at(float(results.t_end[row]), runs.span[1])}: {message}"


def on_lanes(runs: Runs, results: Results) -> LaneWork | None:
    """The work of an ensemble on lanes; None for models, options and inputs that need a run for each motion."""
    if runs.sensitivities or not _is_smooth(runs):
        return None
    reduction, options = runs.reduction, runs.options
    if reduction is not None:  # the module of a part has neither contacts nor events
        runs = replace(runs, solver=runs.solver._runs.having(reduction.function).solver)
    solver = runs.solver
    inputs = solver._runs.inputs(runs.motions.r.sample)
    if not _is_constant(inputs, len(solver.description.inputs)):
        return None
    function, quantity = solver._rhs_name, "" if reduction is None else reduction.function
    integrator = solver.extension.many(function, options["method"], quantity)
    if integrator is None:
        return None
    cause = np.zeros(runs.motions.count, dtype=np.int64)
    plan = _plan(runs, results, _arguments(runs, inputs), cause, quantity)
    return LaneWork(integrator.lanes, integrator.run(plan), cause)


def _arguments(runs: Runs, inputs: RunInputs) -> tuple[Array, ...]:
    """The states at the start, all inputs, and the parameters that vary: arrays (n,) or (N, n)."""
    d, motions = runs.solver.description, runs.motions
    varied = (motions.parameters.value[name][:, np.newaxis] for name in motions.parameters.varied)
    return (*_starts(runs), _input_table(d, motions, inputs), *varied)


def _plan(
    runs: Runs, results: Results, arguments: tuple[Array, ...], cause: NDArray[np.int64], quantity: str
) -> ManyPlan:
    solver, options, reduction = runs.solver, runs.options, runs.reduction
    d, tolerance = solver.description, options["start_tolerance"]
    functions, varied = parameters_of(solver._functions, runs.motions.parameters.value)
    checked = "residuals" if d.constraints.levels and tolerance is not None else ""
    evaluated = [name for name in (solver._rhs_name, quantity, checked) if name]
    needed = [i for name in evaluated for i in d.functions[name].fallible_constants] if varied else []
    p = np.concatenate([functions.prepared.parameters, functions.prepared.gains])
    rtol, atol = (np.array(np.broadcast_to(options[name], results.y.shape[2:]), float) for name in ("rtol", "atol"))
    return ManyPlan(
        arguments=arguments,
        p=p,
        varied=tuple(map(d.parameters.index, varied)),
        needed=tuple(p.size + i for i in needed),
        residuals=checked,
        quantity=quantity,
        component=-1 if reduction is None or reduction.component is None else reduction.component,
        keep=0 if reduction is None else tuple(REDUCTIONS).index(reduction.kind),
        span=runs.span,
        stepping={**stepping(runs.options), "rtol": rtol, "atol": atol},
        start_tolerance=tolerance or 0.0,
        t_eval=np.empty(0) if runs.times is None else np.ascontiguousarray(runs.times),
        at_end=runs.times is None and reduction is None,
        y=results.y,
        values=results.values,
        t_ends=results.t_end,
        status=results.status,
        cause=cause,
        steps=results.n_steps,
        evaluations=results.n_evaluations,
        completed=results.completed,
    )


def _is_smooth(runs: Runs) -> bool:
    """Whether the motions have no contacts, events, corrections of their states, or options that lanes do not know."""
    solver, options = runs.solver, runs.options
    d, method = solver.description, options["method"]
    return (
        method in ADAPTIVE
        and method not in IMPLICIT
        and all(value is None or value is False or name in _ON_LANES for name, value in options.items())
        and not watched_events(d, options["events"])
        and not solver.extension.module.CONTACTS
        and not isinstance(solver.stabilization, Projection)
        and not FORMS[d.form].momenta
        and runs.span[0] != runs.span[1]
    )


def _is_constant(inputs: RunInputs, count: int) -> bool:
    """Whether the inputs are so many numbers."""
    values = inputs.scalars or ()
    return not inputs.controls and len(values) == count and all(isinstance(value, float) for value in values)


def _starts(runs: Runs) -> list[Array]:
    """The states at the start, q, u, s: arrays (n,) or (N, n); NaN in rows that cannot be completed."""
    motions, solver = runs.motions, runs.solver
    d, functions = solver.description, solver._functions
    q, u, s = (argument.value for argument in motions.state)
    if (by_array(q) and by_array(u)) or not d.constraints.levels:
        parts = state_arrays(d, solver.initial, q, u, s, "0")
        return [np.empty(0) if part is None else np.asarray(part, dtype=np.float64) for part in parts]
    sizes = len(d.coordinates), len(d.speeds), len(d.states)
    rows = [np.full((motions.count, size), np.nan) for size in sizes]
    tolerance = runs.options["start_tolerance"]
    for row in range(motions.count):
        given = tuple(argument.at(row) for argument in motions.state)
        try:
            own = functions if motions.parameters.is_common else functions.with_parameters(_indexed(motions, d, row))
            state = start_state(own, solver.initial, runs.span[0], given, motions.r.at(row), tolerance)
        except SolveError:
            continue  # the reason is found when the run has ended
        for part, values in zip(rows, state, strict=True):
            part[row] = values
    return rows


def _indexed(motions: Motions, d: Description, row: int) -> Mapping[int, float]:
    return {d.parameters.index(name): value for name, value in motions.parameters.at(row).items()}


def _input_table(d: Description, motions: Motions, inputs: RunInputs) -> Array:
    """The inputs, (n_r,) or (N, n_r)."""
    r, common = motions.r, np.array(inputs.scalars or (), dtype=np.float64)
    if r.is_common:
        return common
    table: Array = np.tile(common, (motions.count, 1))
    if r.has_rows:
        table[:] = r.value
    for name in r.varied:
        table[:, d.inputs.index(name)] = r.value[name]
    return table
