"""The motions of an ensemble: the record of their results, and how it is filled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.solve.solution import Outcome


def is_success(status: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each motion reached the end of the span or a terminal event, (N,)."""
    return np.isin(status, [outcome.code for outcome in Outcome if outcome.is_success])


@dataclass(frozen=True)
class Failure:
    """A motion that did not reach its end: its ``index``, the time ``t`` (s) where it stopped, and the ``reason``."""

    index: int
    t: float
    reason: str


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The results of :meth:`kanegen.Solver.integrate_many` for N motions.

    Attributes
    ----------
    t
        The times (K,) of the states, s: ``t_eval``; without it the end of the span, or none with a reduction.
    q, u, s
        States (N, K, n_q), (N, K, n_u), (N, K, n_s); NaN where a motion did not get there. Without ``t_eval``, a motion
        that a terminal event ended has the state at this event.
    values
        The reduction of each motion (N,), NaN for motions without success; None without a reduction.
    status
        How each motion ended, (N,) integers: ``kg.Outcome.from_code(status)``.
    success
        Whether each motion reached the end of the span or a terminal event, (N,).
    completed
        False for motions that Ctrl-C prevented, (N,).
    t_end
        The time where each motion ended, (N,), s; NaN for those that were not completed.
    n_steps, n_evaluations
        Accepted steps and evaluations of the right-hand side of each motion, (N,) integers.
    failures
        The motions that ended without success, in order, as records (index, t, reason).
    lanes
        The number of motions that advance together in a thread: 1, or the lanes of the vector unit.
    """

    t: Array
    q: Array
    u: Array
    s: Array
    values: Array | None
    status: NDArray[np.int64]
    completed: NDArray[np.bool_]
    t_end: Array
    n_steps: NDArray[np.int64]
    n_evaluations: NDArray[np.int64]
    failures: tuple[Failure, ...]
    lanes: int

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether each motion reached the end of the span or a terminal event, (N,)."""
        return self.completed & is_success(self.status)

    def __repr__(self) -> str:
        count, done = len(self.status), int(self.completed.sum())
        open_ = f", {count - done} not completed" if done < count else ""
        first = f", {len(self.failures)} failed (the first: {self.failures[0].index})" if self.failures else ""
        return f"<Ensemble: {count} motions{open_}{first}>"


class Results:
    """The results of an ensemble while it is integrated; each motion writes its own rows.

    ``y`` (N, K, n_q + n_u + n_s); ``reasons``: sentences by index.
    """

    def __init__(self, count: int, times: Array, n: int, reduced: bool) -> None:
        self.times = times
        self.y: Array = np.full((count, times.size, n), np.nan)
        self.values: Array | None = np.full(count, np.nan) if reduced else None
        self.status = np.full(count, int(Outcome.INTERRUPTED.code), dtype=np.int64)
        self.completed = np.zeros(count, dtype=np.bool_)
        self.t_end: Array = np.full(count, np.nan)
        self.n_steps = np.zeros(count, dtype=np.int64)
        self.n_evaluations = np.zeros(count, dtype=np.int64)
        self.reasons: dict[int, str] = {}

    def refuse(self, row: int, t0: float, reason: str) -> None:
        """Note that a motion cannot start."""
        self.status[row], self.t_end[row], self.completed[row] = Outcome.REFUSED.code, t0, True
        self.reasons[row] = reason

    def ensemble(self, d: Description, lanes: int) -> Ensemble:
        """The record of the results."""
        q, u, s = np.split(self.y, np.cumsum([len(d.coordinates), len(d.speeds)]), axis=2)
        failures = [Failure(row, float(self.t_end[row]), self.reasons[row]) for row in sorted(self.reasons)]
        return Ensemble(
            t=self.times,
            q=q,
            u=u,
            s=s,
            values=self.values,
            status=self.status,
            completed=self.completed,
            t_end=self.t_end,
            n_steps=self.n_steps,
            n_evaluations=self.n_evaluations,
            failures=tuple(failures),
            lanes=lanes,
        )
