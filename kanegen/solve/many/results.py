"""The motions of an ensemble: the record of their results, and how it is filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.solve.solution import Outcome
from kanegen.solve.solution.sensitivities import columns_of
from kanegen.solve.values import known_name, shown


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
class EnsembleSensitivities:
    """The derivatives of all motions; ``sensitivities["theta", "m"]`` is that of theta with respect to m, (N, K).

    Attributes
    ----------
    variables
        Names of the rows of a matrix, n_y: coordinates, speeds, states.
    names
        Names of the columns, n_z: what varies.
    matrix
        The derivatives at the times of the ensemble, (N, K, n_y, n_z); NaN where a motion did not get there, or has no
        derivative.
    """

    variables: tuple[str, ...]
    names: tuple[str, ...]
    matrix: Array

    def __getitem__(self, key: tuple[Any, Any]) -> Array:
        """The derivative (N, K) of a variable with respect to a quantity; both by name or symbol.

        With respect to an input that a table gives, (N, K, n): a column for each ordinate.
        """
        i = self.variables.index(known_name(key[0], self.variables, "variable"))
        return np.asarray(self.matrix[:, :, i, columns_of(self.names, key[1])])

    def __repr__(self) -> str:
        return f"<Sensitivities of {len(self.matrix)} motions with respect to {shown(self.names)}>"


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
    sensitivities
        The derivatives of the motions (:class:`EnsembleSensitivities`); None without ``sensitivities=``.
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
    sensitivities: EnsembleSensitivities | None = None

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

    ``y`` (N, K, n_q + n_u + n_s); ``reasons``: sentences by index; ``changes`` (N, K, n_y, n_z): derivatives with
    respect to ``names``.
    """

    def __init__(self, count: int, times: Array, n: int, reduced: bool, names: tuple[str, ...] = ()) -> None:
        self.times = times
        self.y: Array = np.full((count, times.size, n), np.nan)
        self.values: Array | None = np.full(count, np.nan) if reduced else None
        self.status = np.full(count, int(Outcome.INTERRUPTED.code), dtype=np.int64)
        self.completed = np.zeros(count, dtype=np.bool_)
        self.t_end: Array = np.full(count, np.nan)
        self.n_steps = np.zeros(count, dtype=np.int64)
        self.n_evaluations = np.zeros(count, dtype=np.int64)
        self.reasons: dict[int, str] = {}
        self.names = names
        self.changes: Array = np.full((count, times.size, n, len(names)), np.nan)

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
            sensitivities=EnsembleSensitivities(d.components, self.names, self.changes) if self.names else None,
        )
