"""Sensitivities of a run that was integrated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief, warn_user
from kanegen.program.catalogue import SWITCH_CHANGES
from kanegen.run_options import RunOptions
from kanegen.solve.consistent import RunStart
from kanegen.solve.gradients.accuracy import allowed_error, error_of_gradient
from kanegen.solve.gradients.adjoint import ObjectiveCode, gradient_by_name, pull_back
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.directions import Direction, Kind, read_directions
from kanegen.solve.gradients.events import Missing, refuse
from kanegen.solve.gradients.forward import Sensitivities
from kanegen.solve.gradients.objective import Objective
from kanegen.solve.gradients.phases import RunModes
from kanegen.solve.gradients.starts import start_changes
from kanegen.solve.gradients.tape import Tape, read_tape
from kanegen.solve.run.problem import Problem
from kanegen.solve.solution import Dense, Outcome, Solution


def tape_of(code: VariationCode, steps: Dense, solution: Solution, rtol: Any) -> Tape:
    """The steps of a run from its dense output ``steps``, without a jump at the end."""
    problem = code.problem
    end = float(solution.last[0])
    span = float(steps.t_old[0]) if steps.t_old.size else end, end
    instants = problem.inputs.changes.instants(span, rtol)
    own = problem.functions.module.switching_times(problem.functions.prepared, *span)
    known = np.concatenate([np.ravel(own), np.ravel(instants if instants is not None else [])])
    last = end, np.concatenate(solution.last[1:])
    return read_tape(steps, last, solution.events, known, RunModes(code, solution))


@dataclass(frozen=True, eq=False)
class SensitivityRun:
    """Sensitivities that are computed after a run.

    ``held``: names of the start values that do not move. ``changes`` (n_y, k): those of its start along the directions,
    or None: contacts that are closed there complete it. ``allowed``: the largest relative error of the derivatives.
    """

    code: VariationCode
    directions: tuple[Direction, ...]
    start: RunStart
    held: Collection[str]
    changes: Array | None
    rtol: Any
    allowed: float
    stops: None = None

    def result(self, solution: Solution, accepted: bool = False) -> tuple[Sensitivities, float]:
        """The sensitivities of a run, and the error of its steps, whatever this is if ``accepted``."""
        tape = tape_of(self.code, dense_of(solution), solution, self.rtol)
        require_fixed_jumps(self.code, tape, self.directions)
        changes = self.changes
        if changes is None:
            changes = changes_of_start(self.code, self.start, self.held, self.directions, tape.parts[0].modes)
        sensitivities = Sensitivities(self.code, tape, self.directions, changes, solution)
        if sensitivities.reason is not None and (accepted or sensitivities.error <= self.allowed):
            warn_user(
                f"the sensitivities end at t = {sensitivities.valid_until!r} s, and are NaN after it: "
                f"{sensitivities.reason}"
            )
        return sensitivities, sensitivities.error


def sensitivity_run(problem: Problem, start: RunStart, held: Collection[str], options: RunOptions) -> SensitivityRun:
    """The sensitivities of a run that is still to come, as its options ask for them.

    ``held``: names of the start values that do not move. Raises `SolveError`.
    """
    if not options["dense_output"]:
        raise SolveError("derivatives of motions need the dense output of the run: leave out dense_output=False")
    directions = read_directions(problem.functions.description, options["sensitivities"], "sensitivities")
    code = VariationCode(problem, options["method"])
    require_constant(problem, directions)
    known = not code.functions.description.contacts.rows
    changes = changes_of_start(code, start, held, directions) if known else None
    return SensitivityRun(code, directions, start, held, changes, options["rtol"], allowed_error(options))


_BESIDE: Final = 1e-9
"""Distance in time from a jump at which rates are compared, relative to the time or to 1 s."""

_JUMP: Final = 1e-6
"""Smaller relative differences of rates are those of the distance."""

NONDIFFERENTIABLE: Final[Mapping[str, Missing]] = MappingProxyType({"error": refuse, "warn": warn_user})
"""What happens at events beyond which a motion has no derivative: with ``"warn"`` a one-sided one takes its place."""

_CHECKED: Final = "objective"
"""Where functions keep the last objective whose symbols were checked."""


@dataclass(frozen=True, eq=False)
class GradientRun:
    """A gradient that is computed after a run, with steps that end at ``stops``.

    ``held``: names of the start values that do not move. ``nondifferentiable``: a key of `NONDIFFERENTIABLE`.
    """

    code: VariationCode
    objective: Objective
    directions: tuple[Direction, ...]
    start: RunStart
    held: Collection[str]
    rtol: Any
    allowed: float
    nondifferentiable: str

    @property
    def stops(self) -> Array | None:
        """The times of the samples, (n,)."""
        samples = self.objective.samples
        return np.array([t for t, _ in samples]) if samples else None

    def result(self, solution: Solution, accepted: bool = False) -> tuple[tuple[float, dict[str, float]] | None, float]:
        """The value and the gradient by name, and the error of the steps.

        None without ``accepted`` if the steps are too long for a gradient.
        """
        tape = tape_of(self.code, dense_of(solution), solution, self.rtol)
        require_fixed_jumps(self.code, tape, self.directions)
        is_terminal, reasons = solution.status is Outcome.TERMINAL_EVENT, list[Any]()
        missing = NONDIFFERENTIABLE[self.nondifferentiable]
        collect = refuse if missing is refuse else reasons.append
        pulled = pull_back(ObjectiveCode(self.code, self.objective), tape, is_terminal, collect)
        error = error_of_gradient(self.code, tape, pulled)
        if not (accepted or error <= self.allowed):
            return None, error
        for reason in reasons:
            missing(reason)
        start = changes_of_start(self.code, self.start, self.held, self.directions, tape.parts[0].modes)
        return (pulled.value, gradient_by_name(self.directions, start, pulled)), error


def gradient_run(
    problem: Problem,
    start: RunStart,
    held: Collection[str],
    objective: Any,
    names: Any,
    options: RunOptions,
    model: Any,
    nondifferentiable: Any,
) -> GradientRun:
    """The gradient of an objective of a run that is still to come. Raises `SolveError`."""
    if not isinstance(objective, Objective):
        raise SolveError(f"objective is {brief(objective)}; expected a kanegen.Objective")
    if nondifferentiable not in NONDIFFERENTIABLE:
        raise SolveError(
            f"nondifferentiable is {brief(nondifferentiable)}; expected {' or '.join(map(repr, NONDIFFERENTIABLE))}"
        )
    if model is None:
        raise SolveError(
            "the solver was unpickled, and a pickle does not contain the model, in whose symbols objectives are given: "
            "build the solver in this process"
        )
    derived = problem.functions.derived
    if derived.get(_CHECKED) is not objective:
        objective.require_known(model)
        derived[_CHECKED] = objective  # programs repeat the same one, and SymPy takes longer than a short run
    directions = read_directions(problem.functions.description, names, "with_respect_to")
    code = VariationCode(problem, options["method"])
    require_constant(problem, directions)
    tolerances = options["rtol"], allowed_error(options)
    return GradientRun(code, objective, directions, start, held, *tolerances, nondifferentiable)


def require_fixed_jumps(code: VariationCode, tape: Tape, directions: tuple[Direction, ...]) -> None:
    """Raise `SolveError` if the rates jump at a time that depends on a parameter that varies."""
    functions = code.functions
    varied = [direction for direction in directions if direction.kind is Kind.PARAMETER]
    if not varied or "switches" not in functions.module.FUNCTIONS:
        return
    for part in tape.parts:
        for i in np.flatnonzero(part.fresh).tolist():
            t, y = float(part.t[i]), part.y[i]
            sides = (t + sign * _BESIDE * max(1.0, abs(t)) for sign in (-1.0, 1.0))
            before, after = (code.rate(side, y, part.modes) for side in sides)
            if not (np.abs(after - before) > _JUMP * np.maximum(np.abs(before), np.abs(after))).any():
                continue
            for direction in varied:
                unit = np.eye(len(functions.parameters))[direction.index]
                if code.change(SWITCH_CHANGES, code.at(t, y), np.zeros(code.n_y), dp=unit).any():
                    raise SolveError(
                        f"the rates of {functions.description.name!r} jump at t = {t!r} s, a time that depends on the "
                        f"parameter {direction.name}: derivatives with respect to it are not available; give an event "
                        "of the model, or a continuous function of time"
                    )


def dense_of(solution: Solution) -> Dense:
    """The dense output of a run. Raises `SolveError` for a run without it."""
    if solution.dense is None:
        raise SolveError("derivatives of motions need the dense output of the run: leave out dense_output=False")
    return solution.dense


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
    code: VariationCode,
    start: RunStart,
    held: Collection[str],
    directions: tuple[Direction, ...],
    modes: Array | None = None,
) -> Any:
    """The changes (n_y, k) of the start along the directions; ``modes``: of the contacts there, None: all are open."""
    y = np.concatenate([np.asarray(x, dtype=np.float64) for x in (start.q, start.u, start.s)])
    at, numbers = code.at(start.t, y), np.zeros(code.modes.size) if modes is None else modes

    def residual_changes(dy: Array, dr: Array | None, dp: Array | None) -> Array:
        return code.residual_changes(at, numbers, dy, dr, dp)

    return start_changes(code.functions, directions, held, residual_changes, code.n_position_rows(numbers))
