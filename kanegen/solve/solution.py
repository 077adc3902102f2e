"""The result of an integration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.control.saturation import ControlHistory
from kanegen.solve.outcome import Outcome, Statistics
from kanegen.solve.run.hybrid import ContactHistory, EventRecord


@dataclass(frozen=True, eq=False)
class Dense:
    """Continuous extension of a run: one polynomial per step.

    ``t_old`` (m,) and ``h`` (m,), the start and signed size of every step, and ``coefficients`` (m, k, n_y)
    in the nested form of Hairer, Norsett and Wanner (Solving Ordinary Differential Equations I, 1993, section
    II.6), in theta = (t - t_old) / h: ``c_0 + theta (c_1 + (1 - theta) (c_2 + theta (c_3 + ...)))``. At the end of a
    step the next step is evaluated: at a jump, the state after it.
    """

    t_old: Array
    h: Array
    coefficients: Array

    def __call__(self, times: Array) -> Array:
        """States (n_t, n_y) at ``times`` (n_t,), which must lie within the run."""
        direction = np.sign(self.h[0])
        steps = np.searchsorted(self.t_old * direction, times * direction, side="right") - 1
        steps = np.clip(steps, 0, self.t_old.size - 1)
        theta = ((times - self.t_old[steps]) / self.h[steps])[:, None]
        factors = (theta, 1.0 - theta)
        rows = self.coefficients.shape[1]
        states = self.coefficients[steps, rows - 1]
        for row in reversed(range(rows - 1)):
            states = states * factors[row % 2] + self.coefficients[steps, row]
        return np.asarray(states)

    def ending_at(self, t: float, state: Array) -> Dense:
        """The extension with ``state`` (n_y,) from ``t`` on, for a jump at the end of a run."""
        if self.t_old.size and np.array_equal(self(np.array([t]))[0], state):
            return self
        constant = np.zeros((1, *self.coefficients.shape[1:]))
        constant[0, 0] = state
        size = self.h[-1:] if self.h.size else np.ones(1)
        return replace(
            self,
            t_old=np.append(self.t_old, t),
            h=np.append(self.h, np.copysign(1.0, size)),
            coefficients=np.concatenate([self.coefficients, constant]),
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The motion that an integration computed; it can be pickled and does not refer to the solver.

    ``t`` (n_t,) in s, ``q`` (n_t, n_q), ``u`` (n_t, n_u): every accepted step with the start, or the times of
    ``t_eval``. ``status`` is an :class:`Outcome`, ``message`` one sentence on it, ``statistics`` the counts.
    ``last`` is the last accepted state (t, q, u), with or without ``t_eval``. A solution is called with a time and
    returns the state there.

    ``events``: the events of a run with contacts or events, in order. ``contacts``, a :class:`ContactHistory`: modes
    over time and contact forces; None for a model without contacts. ``control``, a :class:`ControlHistory`: controls,
    servo-errors and saturation; None for an open loop. Where the speeds jump, ``t`` holds the time twice, with the
    states before and after; ``solution(t)`` and ``t_eval`` give the state after.
    """

    t: Array
    q: Array
    u: Array
    status: Outcome
    message: str
    statistics: Statistics
    last: tuple[float, Array, Array]
    dense: Dense | None = field(default=None, repr=False)
    events: tuple[EventRecord, ...] = ()
    contacts: ContactHistory | None = None
    control: ControlHistory | None = None

    @property
    def success(self) -> bool:
        """Whether the end of the span, or a terminal event, was reached."""
        return self.status in (Outcome.FINISHED, Outcome.TERMINAL_EVENT)

    def __call__(self, t: Any) -> tuple[Array, Array]:
        """State (q, u) at time ``t``: arrays (n_q,) and (n_u,); at times (n_t,), (n_t, n_q) and (n_t, n_u).

        The accuracy is about that of the integration (dense output of the method: order 4 for dopri5, 7 for
        dop853, 3 for rodas and the methods with a fixed step). Raises `SolveError` for times outside the part that was
        integrated, and when the run was made with ``dense_output=False``.
        """
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1:
            raise SolveError(f"t has shape {times.shape}; expected a number or (n_t,)")
        states = self._states(np.atleast_1d(times))
        n_q = self.q.shape[1]
        n = n_q + self.u.shape[1]
        if times.ndim == 0:
            return states[0, :n_q].copy(), states[0, n_q:n].copy()
        return states[:, :n_q].copy(), states[:, n_q:n].copy()

    def _states(self, times: Array) -> Array:
        if self.dense is None:
            raise SolveError(
                "the solution has no dense output: integrate with dense_output=True (the default) or give t_eval"
            )
        end = self.last[0]
        start = float(self.dense.t_old[0]) if self.dense.t_old.size else end
        outside = ~((times >= min(start, end)) & (times <= max(start, end)))
        if outside.any():
            raise SolveError(
                f"t = {float(times[outside][0])!r} is outside the solution, which extends from t = {start!r} "
                f"to {end!r} s"
            )
        if not self.dense.t_old.size:
            return np.tile(np.concatenate(self.last[1:]), (times.size, 1))
        return self.dense(times)

    def __repr__(self) -> str:
        span = f"t = {self.t[0]:g} .. {self.t[-1]:g} s" if self.t.size else "no times"
        events = f", {len(self.events)} events" if self.events else ""
        return f"<Solution: {self.status.value}, {self.t.size} points, {span}, {self.statistics.steps} steps{events}>"


class IntegrationError(SolveError):
    """An integration that did not reach its end; ``solution`` holds the part that was integrated."""

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[type[IntegrationError], tuple[str, Solution]]:
        return (type(self), (str(self), self.solution))


class IntegrationInterrupted(KeyboardInterrupt):
    """Ctrl-C during an integration; ``solution`` holds the part that was integrated."""

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution
