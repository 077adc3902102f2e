"""Optimal motions: what a solution of a problem of optimal control contains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.control.replay import interval_errors, span_error
from kanegen.control.tracking import TrackingFeedback, tracking_feedback
from kanegen.control.trajectory import Trajectory
from kanegen.errors import SolveError
from kanegen.solve import Outcome, Solution, Solver
from kanegen.solve.solution import Acting, Dense, Events, MotionInputs, RunRecord, Statistics
from kanegen.solve.solution.quantities import SolverReference
from kanegen.solve.values import shown_values


class OptimalControlError(SolveError):
    """A problem of optimal control that was not solved.

    ``motion`` holds what was reached: an `OptimalMotion`, or a tuple of them for problems that are solved together.
    """

    motion: Any

    def __init__(self, message: str, motion: Any) -> None:
        super().__init__(message)
        self.motion = motion


@dataclass(frozen=True, eq=False)
class OptimalMotion:
    """A motion that minimizes a cost, of :meth:`kanegen.OptimalControl.solve`.

    Attributes
    ----------
    cost
        The value of ``minimize``.
    duration
        The duration, s; the motion starts at t = 0.
    iterations, seconds
        Iterations of the solver, and the time it took, s, on all meshes.
    status
        A sentence about how the iterations ended; ``success``: whether the tolerance of the solver was reached.
    notes
        Sentences about how the problem was solved: what the guess was, and what was not reached.
    parameters
        Values of the unknown parameters by name.
    multipliers
        At the times `stages`, by name: ``"states"`` (m, n_y), the costates, which are the derivatives of the cost with
        respect to jumps of the states; ``"path"`` (m, n), the derivatives with respect to what is added to the
        conditions along the path, per second.
    meshes
        The number of intervals of each mesh, in the order in which they were used.
    """

    cost: float
    duration: float
    iterations: int
    seconds: float
    success: bool
    status: str
    notes: tuple[str, ...]
    parameters: Mapping[str, float]
    multipliers: Mapping[str, Array]
    meshes: tuple[int, ...]
    trajectory: Trajectory
    solver: Solver

    @cached_property
    def error(self) -> float:
        """The largest deviation of the motion from the adaptive integrator over single mesh intervals.

        Each interval is replayed from its own start with the same inputs. The deviation of each state is divided by its
        largest magnitude along the motion.
        """
        return float(self.errors.max())

    @cached_property
    def errors(self) -> Array:
        """The deviations of `error` in each mesh interval, (N,)."""
        return interval_errors(self.solver, self.trajectory, self._all_inputs)

    @cached_property
    def replay_error(self) -> float:
        """The deviation of a replay of the whole motion from the start, which grows in unstable motions."""
        return span_error(self.solver, self.trajectory, self._all_inputs)

    @property
    def mesh(self) -> Array:
        """The times of the mesh points, s, (N + 1,)."""
        return self.trajectory.mesh

    @property
    def stages(self) -> Array:
        """The times of the stages of the scheme, s, (m,)."""
        return self.trajectory.layout.tau * self.duration

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """The unknown inputs by name as functions of time, ``scipy.interpolate.PPoly``; ``r=`` of a run accepts it."""
        from scipy.interpolate import PPoly

        statement, c = self.trajectory.layout.statement, self.trajectory.inputs
        names = self.solver.description.inputs
        wanted = sorted((*statement.inputs, *statement.rated))
        return {names[k]: PPoly(np.ascontiguousarray(c[:, :, k]), self.trajectory.mesh) for k in wanted}

    @cached_property
    def solution(self) -> Solution:
        """The motion at mesh points and stages, a :class:`kanegen.Solution` with plots, animation and quantities."""
        motion, d = self.trajectory, self.solver.description
        q, u, s, _ = np.split(motion.y, np.cumsum([len(d.coordinates), len(d.speeds), len(d.states)]), axis=1)
        h = np.diff(motion.mesh)
        span = {"t_span": (0.0, motion.duration), "method": motion.layout.statement.scheme.name}
        return Solution(
            SimpleNamespace(
                t=motion.t, q=q, u=u, s=s, status=Outcome.FINISHED, message=self.status,
                statistics=Statistics(
                    steps=h.size, rejected=0, evaluations=0, repartitions=0, smallest_step=float(h.min()),
                    largest_step=float(h.max()), last_step=float(h[-1]), largest_error=0.0,
                ),
                last=(motion.duration, q[-1], u[-1], *((s[-1],) if d.states else ())),
                dense=Dense(motion.mesh[:-1], h, motion.dense[:, :, : motion.layout.statement.n_state]),
                events=Events(()), contacts=None, control=None, sensitivities=None,
                run=RunRecord.of(self.solver, (), span),
                all_inputs=MotionInputs(lambda: Acting(self.inputs_at(motion.t))),
                reference=SolverReference(self.solver),
            )
        )  # fmt: skip

    @cached_property
    def _all_inputs(self) -> Any:
        """All inputs as one ``PPoly``; None for a model without inputs."""
        if not self.solver.description.inputs:
            return None
        from scipy.interpolate import PPoly

        return PPoly(self.trajectory.inputs, self.trajectory.mesh)

    def inputs_at(self, t: Any) -> Array:
        """All inputs of the model at a time, (n_r,), or at times (m,), (m, n_r)."""
        return np.empty((*np.shape(t), 0)) if self._all_inputs is None else np.asarray(self._all_inputs(t))

    def state_at(self, t: float) -> Array:
        """Coordinates, speeds and states at a time, (n_y,)."""
        n = self.trajectory.layout.statement.n_state
        return self.trajectory.states_at(np.array([t / self.duration]))[0, :n]

    def to_feedback(
        self, state_weights: Any = None, input_weights: Any = None, final_weights: Any = None
    ) -> TrackingFeedback:
        """Feedback that returns to this motion: the time-varying linear-quadratic regulator about it.

        It minimizes the integral of ``z^T Q z + w^T R w`` and ``z^T Q_f z`` at the end for deviations z of the state
        and w of the inputs, in the linear model along the motion. Deviations of angles are not taken modulo a turn.

        Parameters
        ----------
        state_weights, input_weights, final_weights
            Q, R and Q_f: a mapping from names or symbols to entries of the diagonal, others by default, or a matrix. By
            default one over the square of the largest value of each state, and of half the range between the bounds of
            each input; at the end what it costs to hold the end for ever, or Q times the duration if it cannot be held.

        Raises
        ------
        SolveError
            For weights of wrong shape or sign, and for inputs whose rates are in the equations.

        Examples
        --------
        ``solver.integrate((0, 2), q0, u0, r=motion.to_feedback(), sample_time=0.01)``
        """
        return tracking_feedback(self, state_weights, input_weights, final_weights)

    def __repr__(self) -> str:
        found = shown_values(tuple(self.parameters), list(self.parameters.values())) if self.parameters else ""
        parts = [
            f"cost {self.cost:.8g}",
            f"duration {self.duration:.8g} s",
            *([found] if found else []),
            f"{self.iterations} iterations",
            f"{self.seconds:.3g} s",
            f"{self.meshes[-1]} intervals",
        ]
        return f"<OptimalMotion: {self.status}; {', '.join(parts)}>"
