"""Solutions of problems of optimal control on one mesh after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.consistency import Consistency, made_consistent, without_repeated_rows
from kanegen.control.failure import explanation
from kanegen.control.guess import Guess, of_trajectory
from kanegen.control.ipopt import INTERRUPTED, STATUSES, Minimum, Progress, minimize
from kanegen.control.joined import JoinedProgram, merged, shared_places
from kanegen.control.joints import CompiledJoint, JointPrograms, continued
from kanegen.control.layout import layout_of
from kanegen.control.motion import OptimalControlError, OptimalMotion
from kanegen.control.points import STAGE
from kanegen.control.program import NonlinearProgram
from kanegen.control.refinement import refined
from kanegen.control.scaling import scaled_program
from kanegen.control.speeds import with_speeds
from kanegen.control.starts import changed
from kanegen.control.statement import Statement
from kanegen.control.trajectory import Trajectory
from kanegen.control.transcription import Integers
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
_MOST_INTERVALS: Final = 2000
MOST_ITERATIONS: Final = 500
"""Most iterations from random changes of a guess, and on refined meshes, where few should do."""

Motions = tuple[OptimalMotion, ...]
"""The motions of problems that are solved together, in their order."""


class Part(NamedTuple):
    """One of the problems that are solved together: compiled functions, and the solver of the model for replays."""

    statement: Statement
    code: PointCode
    solver: Solver


class Run:
    """Solutions of problems that share parameters, or of a single one, on one mesh after another."""

    def __init__(
        self,
        parts: Sequence[Part],
        options: Mapping[str, Any],
        callback: Callable[[Progress], Any] | None,
        joints: Sequence[CompiledJoint] = (),
    ) -> None:
        self.parts, self.options, self.callback, self.joints = tuple(parts), options, callback, tuple(joints)
        self.iterations, self.seconds = 0, 0.0
        self.meshes: list[tuple[int, ...]] = []
        self.notes: list[str] = []
        self.last: tuple[Sequence[NonlinearProgram], Sequence[Minimum]] | None = None

    @property
    def _is_single(self) -> bool:
        """Whether there is one problem that shares nothing, not even its end with its start."""
        return len(self.parts) == 1 and not self.joints

    def solve(
        self, meshes: Sequence[Array], guesses: Sequence[Guess], tolerance: float, refinements: int, starts: int
    ) -> Motions:
        """The motions on meshes that are refined until their errors are below the tolerance."""
        motions = self._best(meshes, guesses, starts)
        for _ in range(refinements):
            found = [refined(each.trajectory, each.errors, tolerance) if each.success else None for each in motions]
            if all(mesh is None for mesh in found) or any(
                mesh is not None and len(mesh) > _MOST_INTERVALS for mesh in found
            ):
                break
            finer = [
                each.trajectory.layout.mesh if mesh is None else mesh for each, mesh in zip(motions, found, strict=True)
            ]
            going = [of_trajectory(p.statement, each.trajectory) for p, each in zip(self.parts, motions, strict=True)]
            try:
                motions = self._on(finer, going, warm=True, most=MOST_ITERATIONS)
            except OptimalControlError:
                motions = self._noted(motions, f"the solver failed on {_intervals(finer)} intervals")
                break
        worst = max(each.error for each in motions) if all(each.success for each in motions) else 0.0
        if worst > tolerance:
            intervals = _intervals([each.trajectory.layout.mesh for each in motions])
            text = f"the error {worst:.2g} is above the tolerance {tolerance:g} on {intervals} intervals"
            return self._noted(motions, text)
        return motions

    def _best(self, meshes: Sequence[Array], guesses: Sequence[Guess], starts: int) -> Motions:
        """The motions of least cost on the first meshes, from the guesses and random changes of them."""
        best, errors = None, []
        for k in range(starts):
            try:
                if k == 0:
                    motions = self._first(meshes, guesses)
                else:
                    others = [changed(p.statement, each, k) for p, each in zip(self.parts, guesses, strict=True)]
                    motions = self._on(meshes, others, most=MOST_ITERATIONS)
            except OptimalControlError as error:
                errors.append(error)
                continue
            success = all(each.success for each in motions)
            if best is None or (success and _cost(motions) < _cost(best[0])):
                best = motions, self.last, self.meshes[-1] if success else None
            if not success:
                break  # stopped by the user
        if best is None:
            raise errors[0]
        motions, self.last, used = best
        self.meshes[:] = [] if used is None else [used]
        if starts == 1:
            return motions
        noted = self._noted(motions, f"{starts - len(errors)} of {starts} starts converged")
        return tuple(
            replace(each, iterations=self.iterations, seconds=self.seconds, meshes=each.meshes[-1:]) for each in noted
        )

    def _noted(self, motions: Motions, note: str) -> Motions:
        """The motions with a further note, which motions on finer meshes have, too."""
        self.notes.append(note)
        return tuple(replace(each, notes=(*each.notes, note)) for each in motions)

    def _first(self, meshes: Sequence[Array], guesses: Sequence[Guess]) -> Motions:
        """The motions on the first meshes; if the solver fails there, on those with twice as many intervals."""
        try:
            return self._on(meshes, guesses)
        except OptimalControlError as error:
            finer = [np.interp(np.arange(2 * len(mesh) - 1) / 2.0, np.arange(len(mesh)), mesh) for mesh in meshes]
            try:
                motions = self._on(finer, guesses)
            except OptimalControlError:
                raise error from None
            return self._noted(motions, f"the solver failed on {_intervals(meshes)} intervals")

    def _on(
        self, meshes: Sequence[Array], guesses: Sequence[Guess], warm: bool = False, most: int | None = None
    ) -> Motions:
        """The motions on meshes, after at ``most`` this number of iterations. Raises `OptimalControlError`."""
        starts = [_start(part, mesh, guess) for part, mesh, guess in zip(self.parts, meshes, guesses, strict=True)]
        starts, places = self._joined(starts)
        programs = [scaled_program(part.code, each) for part, each in zip(self.parts, starts, strict=True)]
        scale = merged(places, [program.scale for program in programs])
        joints = JointPrograms(self.joints, [each.layout for each in starts], places, scale)
        own_programs, own_places = [*programs, *joints.programs], [*places, *joints.places]
        whole = programs[0] if self._is_single else JoinedProgram(own_programs, own_places)
        x, low, high = (
            np.pad(
                merged(places, [getattr(each.variables, name) for each in starts]) / scale,
                (0, joints.n_x - scale.size),
                constant_values=value,
            )
            for name, value in (("start", 0.0), ("low", -np.inf), ("high", np.inf))
        )
        options, multipliers = dict(self.options), None
        if most is not None:
            options["max_iter"] = min(most, options["max_iter"])
        if self.last is not None and warm:
            options, multipliers = {**_WARM, **options}, _multipliers_of(self.last, own_programs, own_places)
        found = minimize(whole, x, (low, high), options, self.callback, multipliers)
        every = (found,) if self._is_single else _separated(found, own_programs, own_places)
        minima = every[: len(programs)]
        self.last = own_programs, every
        self.iterations, self.seconds = self.iterations + found.iterations, self.seconds + found.seconds
        motions = tuple(map(self._motion, self.parts, programs, minima, starts, range(len(starts))))
        if not found.success and found.status != INTERRUPTED:
            text = explanation(own_programs, every, [each.trajectory for each in motions], joints.names)
            raise OptimalControlError(text, motions[0] if len(motions) == 1 else motions)
        self.meshes.append(tuple(len(mesh) - 1 for mesh in meshes))
        return motions

    def _joined(self, starts: Sequence[Consistency]) -> tuple[list[Consistency], tuple[Integers, ...]]:
        """The start with equal values of what the problems share, and the places of their variables among all."""
        layouts = [each.layout for each in starts]
        shared = [(each.before, each.after, continued(each, layouts)) for each, _, _ in self.joints]
        places = shared_places(layouts, shared)
        found = list(starts) if self._is_single else _together(starts, places)
        for before, after, own in shared:
            found[before], found[after] = without_repeated_rows(found[before], found[after], own)
        return found, places

    def _motion(
        self, part: Part, program: NonlinearProgram, found: Minimum, start: Consistency, number: int
    ) -> OptimalMotion:
        trajectory, solver = trajectory_of(program, found.x), part.solver
        parameters = dict(zip(solver.description.parameters, trajectory.parameters.tolist(), strict=True))
        return OptimalMotion(
            cost=found.cost,
            duration=trajectory.duration,
            iterations=self.iterations,
            seconds=self.seconds,
            success=found.success,
            status=STATUSES.get(found.status, f"status {found.status} of IPOPT"),
            notes=(*start.notes, *self.notes),
            parameters={name: parameters[name] for name in part.statement.parameter_names},
            multipliers=_multipliers(program, found),
            meshes=(*(each[number] for each in self.meshes), len(trajectory.mesh) - 1),
            trajectory=trajectory,
            solver=solver.with_parameters(parameters) if parameters else solver,
        )


def _start(part: Part, mesh: Array, guess: Guess) -> Consistency:
    """The variables of a problem at a guess that satisfies the constraints of the model."""
    layout = layout_of(part.statement, part.code, mesh)
    variables = variables_of(layout, guess)
    if guess.speeds_follow:
        variables = with_speeds(layout, part.code, variables)
    return made_consistent(layout, part.code, variables)


def _together(starts: Sequence[Consistency], places: Sequence[Integers]) -> list[Consistency]:
    """The variables of problems with the same units, bounds and start values where they are shared."""
    variables = [each.variables for each in starts]
    low = merged(places, [each.low for each in variables])
    high = merged(places, [each.high for each in variables], np.minimum)
    start = np.clip(merged(places, [each.start for each in variables]), low, high)
    whole = variables[0]._replace(
        start=start, low=low, high=high, scale=merged(places, [each.scale for each in variables])
    )
    return [
        replace(each, variables=type(whole)(*(values[own] for values in whole)))
        for each, own in zip(starts, places, strict=True)
    ]


def _multipliers_of(
    last: tuple[Sequence[NonlinearProgram], Sequence[Minimum]],
    programs: Sequence[NonlinearProgram],
    places: Sequence[Integers],
) -> tuple[Array, Array, Array]:
    """Multipliers of the constraints and bounds of all programs from those on the last meshes."""
    own = [
        transferred(before, found, new) if STAGE in _kinds(new) else _same(before, found, new)
        for before, found, new in zip(*last, programs, strict=True)
    ]
    rows, lower, upper = zip(*own, strict=True)
    return np.concatenate(rows), merged(places, lower), merged(places, upper)


def _kinds(program: NonlinearProgram) -> list[str]:
    return [points.functions.name for points in program.transcription.points]


def _same(before: NonlinearProgram, found: Minimum, new: NonlinearProgram) -> tuple[Array, Array, Array]:
    """The multipliers of a joint, which belong to no mesh."""
    factor = new.scale / before.scale
    return found.multipliers * before.row_scale / new.row_scale, found.lower * factor, found.upper * factor


def _separated(found: Minimum, programs: Sequence[NonlinearProgram], places: Sequence[Integers]) -> tuple[Minimum, ...]:
    """What the solver found for each problem, with its own cost."""
    ends = np.cumsum([program.n_g for program in programs])[:-1]
    rows = np.split(found.multipliers, ends)
    return tuple(
        found._replace(
            x=found.x[own], multipliers=mine, lower=found.lower[own], upper=found.upper[own],
            cost=program.cost(found.x[own]),
        )
        for program, own, mine in zip(programs, places, rows, strict=True)
    )  # fmt: skip


def _cost(motions: Motions) -> float:
    return sum(each.cost for each in motions)


def _intervals(meshes: Sequence[Array]) -> str:
    """The numbers of intervals of meshes, for messages."""
    return " and ".join(str(len(mesh) - 1) for mesh in meshes)


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
