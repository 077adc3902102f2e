"""Sensitivities of a run that was integrated."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from kanegen.errors import SolveError
from kanegen.program.catalogue import RESIDUAL_CHANGES
from kanegen.run_options import RunOptions
from kanegen.solve.consistent import RunStart
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.directions import Direction, Kind, read_directions
from kanegen.solve.gradients.forward import Sensitivities
from kanegen.solve.gradients.starts import start_changes
from kanegen.solve.gradients.tape import Tape, read_tape
from kanegen.solve.run.problem import Problem
from kanegen.solve.solution import Dense, EventRecord, Solution


def tape_of(problem: Problem, steps: Dense, solution: Solution, rtol: Any) -> Tape:
    """The steps of a run from its dense output ``steps``, without a jump at the end.

    Raises `SolveError` for events with impulses and for those that close or open latches.
    """
    d, events = problem.functions.description, solution.events
    span = float(solution.t[0]) if solution.t.size else solution.last[0], float(solution.last[0])
    instants = problem.inputs.changes.instants(span, rtol)
    own = problem.functions.module.switching_times(problem.functions.prepared, *span)
    known = np.concatenate([np.ravel(own), np.ravel(instants if instants is not None else [])])
    last = float(solution.last[0]), np.concatenate(solution.last[1:])
    for event in events:
        _require_differentiable_event(event)
    return read_tape(steps, last, events, known, len(d.coordinates), len(d.speeds))


def _require_differentiable_event(event: EventRecord) -> None:
    if not np.array_equal(event.u_before, event.u_after):
        raise SolveError(
            f"sensitivities are not available beyond the event {event.name!r} at t = {event.t!r} s, at which speeds jump"
        )


def sensitivities_of(
    problem: Problem, start: RunStart, held: Collection[str], names: Any, options: RunOptions, solution: Solution
) -> Sensitivities:
    """The sensitivities of a run with respect to quantities with these names or symbols. Raises `SolveError`."""
    directions = read_directions(problem.functions.description, names, "sensitivities")
    code = VariationCode(problem, options["method"])
    require_constant(problem, directions)
    changes = changes_of_start(code, start, held, directions)
    steps = solution.dense
    if steps is None:
        raise SolveError("sensitivities need the dense output of the run: leave out dense_output=False")
    tape = tape_of(problem, steps, solution, options["rtol"])
    return Sensitivities(code, tape, directions, changes, solution)


def require_constant(problem: Problem, directions: tuple[Direction, ...]) -> None:
    """Raise `SolveError` for inputs that vary in time and have no single value to differentiate in."""
    scalars, d = problem.inputs.scalars, problem.functions.description
    laws = problem.inputs.laws.slots if problem.inputs.laws is not None else ()
    for direction in directions:
        if direction.kind is not Kind.INPUT:
            continue
        if direction.index in laws:
            raise SolveError(f"the input {direction.name} is determined by its law: vary the parameters of the law")
        source = problem.inputs if problem.inputs.laws is None else problem.inputs.without_laws
        scalars = source.scalars if source is not None else None
        if scalars is None or not isinstance(scalars[direction.index], float):
            raise SolveError(
                f"the input {direction.name} is not constant in this run; sensitivities are available with respect to "
                f"constant inputs of {d.name!r}"
            )


def changes_of_start(
    code: VariationCode, start: RunStart, held: Collection[str], directions: tuple[Direction, ...]
) -> Any:
    """The changes (n_y, k) of the start along the directions."""
    y = np.concatenate([np.asarray(x, dtype=np.float64) for x in (start.q, start.u, start.s)])
    at = code.at(start.t, y)

    def residual_changes(dy: Any, dr: Any, dp: Any) -> Any:
        return code.change(RESIDUAL_CHANGES, at, dy, dr, dp)

    return start_changes(code.functions, at, directions, held, residual_changes)
