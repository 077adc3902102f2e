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
from kanegen.solve.gradients import samples
from kanegen.solve.gradients.accuracy import Accuracy, accuracy_of_gradient, allowed_error
from kanegen.solve.gradients.adjoint import ObjectiveCode, gradient_by_name, pull_back
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.directions import Direction, Kind, read_directions
from kanegen.solve.gradients.events import Missing, refuse
from kanegen.solve.gradients.forward import sensitivities_of
from kanegen.solve.gradients.inputs import InputChanges, input_changes
from kanegen.solve.gradients.objective import Objective
from kanegen.solve.gradients.phases import RunModes
from kanegen.solve.gradients.starts import start_changes
from kanegen.solve.gradients.tape import Tape, read_tape
from kanegen.solve.run.problem import Problem
from kanegen.solve.solution import Dense, Outcome, Solution
from kanegen.solve.solution.sensitivities import Sensitivities


def tape_of(code: VariationCode, steps: Dense, solution: Solution, rtol: Any, knots: Array | None = None) -> Tape:
    """The steps of a run from its dense output ``steps``, without a jump at the end.

    ``knots``: times at which the changes of inputs begin and end.
    """
    problem = code.problem
    code.clocks = samples.clocks_of(problem.inputs)
    end = float(solution.last[0])
    span = float(steps.t_old[0]) if steps.t_old.size else end, end
    instants = problem.inputs.changes.instants(span, rtol)
    own = problem.functions.module.switching_times(problem.functions.prepared, *span)
    sampled = samples.instants(code.clocks)
    known = np.concatenate([np.ravel(x if x is not None else []) for x in (own, instants, knots, sampled)])
    last = end, np.concatenate(solution.last[1:])
    tape = read_tape(steps, last, solution.events, known, RunModes(code, solution))
    code.follow(tape)
    return tape


@dataclass(frozen=True, eq=False)
class SensitivityRun:
    """Sensitivities that are computed after a run.

    ``held``: names of the start values that do not move. ``changes`` (n_y, k): those of its start along the directions,
    or None: contacts that are closed there complete it. ``allowed``: the largest relative error of the derivatives.
    """

    code: VariationCode
    directions: tuple[Direction, ...]
    inputs: InputChanges
    start: RunStart
    held: Collection[str]
    changes: Array | None
    rtol: Any
    allowed: float

    @property
    def stops(self) -> Array | None:
        """Times at which steps end: those at which the changes of inputs begin and end."""
        return self.inputs.knots

    def result(self, solution: Solution, accepted: bool = False) -> tuple[Sensitivities, Accuracy]:
        """The sensitivities of a run, and the accuracy of its steps, whatever this is if ``accepted``."""
        tape = tape_of(self.code, dense_of(solution), solution, self.rtol, self.inputs.knots)
        require_fixed_jumps(self.code, tape, self.directions)
        changes = self.changes
        if changes is None:
            modes = tape.parts[0].modes
            changes = changes_of_start(self.code, self.start, self.held, self.directions, self.inputs, modes)
        sensitivities, stops = sensitivities_of(
            self.code, tape, self.directions, changes, self.inputs, solution, self.allowed
        )
        if sensitivities.reason is not None and (accepted or sensitivities.error <= self.allowed):
            warn_user(
                f"the sensitivities end at t = {sensitivities.valid_until!r} s, and are NaN after it: "
                f"{sensitivities.reason}"
            )
        return sensitivities, Accuracy(sensitivities.error, stops)


def _require_free(problem: Problem, directions: tuple[Direction, ...]) -> None:
    """Raise `SolveError` for inputs that servo-constraints determine."""
    controls = () if problem.loop is None else problem.loop.names
    for direction in directions:
        if direction.kind is Kind.INPUT and direction.name in controls:
            raise SolveError(f"the input {direction.name} is a control, which the servo-constraints determine")


def sensitivity_run(problem: Problem, start: RunStart, held: Collection[str], options: RunOptions) -> SensitivityRun:
    """The sensitivities of a run that is still to come, as its options ask for them.

    ``held``: names of the start values that do not move. Raises `SolveError`.
    """
    if not options["dense_output"]:
        raise SolveError("derivatives of motions need the dense output of the run: leave out dense_output=False")
    directions = read_directions(problem.functions.description, options["sensitivities"], "sensitivities")
    code = VariationCode(problem, options["method"])
    _require_free(problem, directions)
    directions, inputs = input_changes(problem.functions.description, problem.inputs, directions)
    known = not code.functions.description.contacts.rows
    changes = changes_of_start(code, start, held, directions, inputs) if known else None
    return SensitivityRun(code, directions, inputs, start, held, changes, options["rtol"], allowed_error(options))


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
    inputs: InputChanges
    start: RunStart
    held: Collection[str]
    rtol: Any
    allowed: float
    nondifferentiable: str

    @property
    def stops(self) -> Array | None:
        """The times of the samples, and those at which the changes of inputs begin and end, (n,)."""
        samples, knots = np.array([t for t, _ in self.objective.samples]), self.inputs.knots
        times = samples if knots is None else np.concatenate([samples, knots])
        return times if times.size else None

    def result(
        self, solution: Solution, accepted: bool = False
    ) -> tuple[tuple[float, dict[str, Any]] | None, Accuracy]:
        """The value and the gradient by name, and the accuracy of the steps.

        None without ``accepted`` if the steps are too long for a gradient.
        """
        tape = tape_of(self.code, dense_of(solution), solution, self.rtol, self.inputs.knots)
        require_fixed_jumps(self.code, tape, self.directions)
        is_terminal, reasons = solution.status is Outcome.TERMINAL_EVENT, list[Any]()
        missing = NONDIFFERENTIABLE[self.nondifferentiable]
        collect = refuse if missing is refuse else reasons.append
        functions = ObjectiveCode(self.code, self.objective)
        pulled = pull_back(functions, tape, self.inputs, is_terminal, collect)
        accuracy = accuracy_of_gradient(self.code, tape, pulled, self.allowed)
        if not (accepted or accuracy.error <= self.allowed):
            return None, accuracy
        for reason in reasons:
            missing(reason)
        modes = tape.parts[0].modes
        start = changes_of_start(self.code, self.start, self.held, self.directions, self.inputs, modes)
        return (pulled.value, gradient_by_name(self.directions, start, pulled)), accuracy


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
    _require_free(problem, directions)
    directions, inputs = input_changes(problem.functions.description, problem.inputs, directions)
    tolerances = options["rtol"], allowed_error(options)
    return GradientRun(code, objective, directions, inputs, start, held, *tolerances, nondifferentiable)


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


def changes_of_start(
    code: VariationCode,
    start: RunStart,
    held: Collection[str],
    directions: tuple[Direction, ...],
    inputs: InputChanges,
    modes: Array | None = None,
) -> Any:
    """The changes (n_y, k) of the start along the directions, and those ``inputs`` of the inputs.

    ``modes``: of the contacts there, None: all are open.
    """
    y = np.concatenate([np.asarray(x, dtype=np.float64) for x in (start.q, start.u, start.s)])
    at, numbers = code.at(start.t, y), np.zeros(code.modes.size) if modes is None else modes

    def residual_changes(dy: Array, dr: Array | None, dp: Array | None) -> Array:
        return code.residual_changes(at, numbers, dy, dr, dp)

    n_p, of_r = code.n_position_rows(numbers), inputs.at(start.t)
    return start_changes(code.functions, directions, held, residual_changes, n_p, of_r)
