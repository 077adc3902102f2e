"""Solutions of a problem of optimal control on one mesh after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.consistency import Consistency, made_consistent
from kanegen.control.failure import explanation
from kanegen.control.guess import Guess
from kanegen.control.ipopt import INTERRUPTED, STATUSES, Minimum, Progress, minimize
from kanegen.control.layout import layout_of
from kanegen.control.motion import OptimalControlError, OptimalMotion
from kanegen.control.points import STAGE
from kanegen.control.program import NonlinearProgram
from kanegen.control.speeds import with_speeds
from kanegen.control.starts import changed
from kanegen.control.statement import Statement
from kanegen.control.trajectory import Trajectory
from kanegen.control.transcription import transcribe
from kanegen.control.variables import variables_of
from kanegen.control.warm import transferred
from kanegen.solve import Solver

_WARM: Final = {
    "warm_start_init_point": "yes",
    "warm_start_bound_push": 1e-9,
    "warm_start_bound_frac": 1e-9,
    "warm_start_slack_bound_push": 1e-9,
    "warm_start_slack_bound_frac": 1e-9,
    "warm_start_mult_bound_push": 1e-9,
    "mu_init": 1e-7,
}
_LARGEST_ROW: Final = 1e4
MOST_ITERATIONS: Final = 500
"""Most iterations from random changes of a guess, and on refined meshes, where few should do."""


class Run:
    """Solutions of a problem on one mesh after another."""

    def __init__(
        self,
        statement: Statement,
        code: PointCode,
        options: Mapping[str, Any],
        callback: Callable[[Progress], Any] | None,
    ) -> None:
        self.statement, self.code, self.options, self.callback = statement, code, options, callback
        self.iterations, self.seconds = 0, 0.0
        self.meshes: list[int] = []
        self.notes: list[str] = []
        self.last: tuple[NonlinearProgram, Minimum] | None = None

    def best(self, mesh: Array, guess: Guess, solver: Solver, starts: int) -> OptimalMotion:
        """The motion of least cost on the first mesh, from the guess and random changes of it."""
        best, errors = None, []
        for k in range(starts):
            try:
                if k == 0:
                    motion = self.first(mesh, guess, solver)
                else:
                    motion = self.on(mesh, changed(self.statement, guess, k), solver, most=MOST_ITERATIONS)
            except OptimalControlError as error:
                errors.append(error)
                continue
            if best is None or (motion.success and motion.cost < best[0].cost):
                best = motion, self.last
            if not motion.success:
                break  # stopped by the user
        if best is None:
            raise errors[0]
        motion, self.last = best
        self.meshes[:] = [motion.meshes[-1]]
        if starts == 1:
            return motion
        noted = self.noted(motion, f"{starts - len(errors)} of {starts} starts converged")
        return replace(noted, iterations=self.iterations, seconds=self.seconds, meshes=tuple(self.meshes))

    def noted(self, motion: OptimalMotion, note: str) -> OptimalMotion:
        """The motion with a further note, which motions on finer meshes have, too."""
        self.notes.append(note)
        return replace(motion, notes=(*motion.notes, note))

    def first(self, mesh: Array, guess: Guess, solver: Solver) -> OptimalMotion:
        """The motion on the first mesh; if the solver fails there, on one with twice as many intervals."""
        try:
            return self.on(mesh, guess, solver)
        except OptimalControlError as error:
            finer = np.interp(np.arange(2 * len(mesh) - 1) / 2.0, np.arange(len(mesh)), mesh)
            try:
                motion = self.on(finer, guess, solver)
            except OptimalControlError:
                raise error from None
            return self.noted(motion, f"the solver failed on {len(mesh) - 1} intervals")

    def on(
        self, mesh: Array, guess: Guess, solver: Solver, warm: bool = False, most: int | None = None
    ) -> OptimalMotion:
        """The motion on a mesh, after at ``most`` this number of iterations. Raises `OptimalControlError`."""
        layout = layout_of(self.statement, self.code, mesh)
        variables = variables_of(layout, guess)
        if guess.speeds_follow:
            variables = with_speeds(layout, self.code, variables)
        consistent = made_consistent(layout, self.code, variables)
        program = scaled_program(self.code, consistent)
        x, variables = consistent.variables.start / program.scale, consistent.variables
        bounds = variables.low / program.scale, variables.high / program.scale
        options, multipliers = dict(self.options), None
        if most is not None:
            options["max_iter"] = min(most, options["max_iter"])
        if self.last is not None and warm:
            options, multipliers = {**_WARM, **options}, transferred(*self.last, program)
        found = minimize(program, x, bounds, options, self.callback, multipliers)
        self.last = program, found
        self.iterations, self.seconds = self.iterations + found.iterations, self.seconds + found.seconds
        motion = self._motion(program, found, consistent, solver)
        if not found.success and found.status != INTERRUPTED:
            raise OptimalControlError(explanation(program, found, motion.trajectory), motion)
        self.meshes.append(len(mesh) - 1)
        return motion

    def _motion(
        self, program: NonlinearProgram, found: Minimum, consistent: Consistency, solver: Solver
    ) -> OptimalMotion:
        trajectory = trajectory_of(program, found.x)
        parameters = dict(zip(solver.description.parameters, trajectory.parameters.tolist(), strict=True))
        return OptimalMotion(
            cost=found.cost,
            duration=trajectory.duration,
            iterations=self.iterations,
            seconds=self.seconds,
            success=found.success,
            status=STATUSES.get(found.status, f"status {found.status} of IPOPT"),
            notes=(*consistent.notes, *self.notes),
            parameters={name: parameters[name] for name in self.statement.parameter_names},
            multipliers=_multipliers(program, found),
            meshes=(*self.meshes, len(trajectory.mesh) - 1),
            trajectory=trajectory,
            solver=solver.with_parameters(parameters) if parameters else solver,
        )


def scaled_program(code: PointCode, consistent: Consistency) -> NonlinearProgram:
    """The program with scaled variables, and rows whose derivatives at the start are of magnitude 1."""
    variables, layout = consistent.variables, consistent.layout
    transcription = transcribe(layout, code, consistent.kept)
    n_g = transcription.n_g
    plain = NonlinearProgram(transcription, code, variables.scale, np.ones(n_g))
    values = np.abs(np.nan_to_num(plain.jacobian(variables.start / variables.scale)))
    largest = np.zeros(n_g)
    np.maximum.at(largest, plain.jacobian_pattern.rows, values)
    rows = 1.0 / np.clip(np.where(largest > 0.0, largest, 1.0), 1.0 / _LARGEST_ROW, _LARGEST_ROW)
    return NonlinearProgram(transcription, code, variables.scale, rows)


def trajectory_of(program: NonlinearProgram, x: Array) -> Trajectory:
    """The motion at scaled variables."""
    layout = program.transcription.layout
    model = layout.statement.model
    variables = x * program.scale
    duration = np.append(variables, layout.known)[layout.duration]
    rates = program.values(x, STAGE, "rates") / duration
    n_q, n_u = len(model.coordinates), len(model.speeds)
    return Trajectory(layout, variables, rates[:, :n_q], rates[:, n_q + n_u :])


def _multipliers(program: NonlinearProgram, found: Minimum) -> dict[str, Array]:
    """Derivatives of the cost with respect to what is added to y' and to conditions along the path, at the stages."""
    transcription, rows = program.transcription, -np.append(found.multipliers * program.row_scale, 0.0)
    layout = transcription.layout
    row, value, entry = transcription.curved
    weighted = np.bincount(value, entry * rows[row], transcription.n_values)
    (stages,) = (points for points in transcription.points if points.functions.name == STAGE)
    # The rates of a stage enter the rows with the weights of the scheme; their sum belongs to a part of the time.
    states = -weighted[stages.values("rates")] / layout.weights[:, None]
    path = transcription.labels["path"]
    of_path = rows[path.start : path.stop].reshape(len(layout.tau), -1)
    duration = float(np.append(found.x * program.scale, layout.known)[layout.duration])
    return {"states": states, "path": of_path / (layout.weights * duration)[:, None]}
