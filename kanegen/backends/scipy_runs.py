"""Runs with the solvers of SciPy, with the results of compiled runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import ModuleRun
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.run_options import StepOptions, step_limit, table

SUPPORTED: Final = frozenset(
    {name for name, option in table(StepOptions).items() if option.scipy}
    | {"t_eval", "dense", "progress", "control", "instants"}
)
"""The options of runs that these solvers know."""


class Run:
    """A run with a solver of SciPy: the stored times, states and steps, and the status."""

    def __init__(self, t0: float, y0: Array, options: ModuleRun) -> None:
        t_eval = options.get("t_eval")
        self.t, self.y, self.options = t0, y0, options
        self.times = None if t_eval is None else [float(t) for t in t_eval]
        self.stored: list[tuple[float, Array]] = [] if t_eval is not None else [(t0, y0)]
        self.steps: list[tuple[float, float, Array]] = []
        self.evaluations = 0
        self.status, self.rhs_status = Status.OK, Status.OK
        """The status of the run, and that of a right-hand side that failed since the last accepted step."""
        self.error: BaseException | None = None

    def follow(
        self,
        method: str,
        ode: Callable[[float, Array], Array],
        t1: float,
        next_stop: Callable[[float, Array], float],
    ) -> None:
        """Take steps until ``t1``, a failure or the limit of steps; ``next_stop(t, y)`` samples inputs and returns the
        next time to do so."""
        try:
            stop = next_stop(self.t, self.y)
            while self._follow(method, ode, stop) == Status.FINISHED and stop != t1:
                stop = next_stop(self.t, self.y)
            if self.status == Status.FINISHED:
                next_stop(self.t, self.y)
        except BaseException as error:  # reported with the part that was integrated
            if self.rhs_status and isinstance(error, SolveError):
                self.status = Status.RHS_FAILED
            else:
                self.status, self.error = Status.INTERRUPTED, error

    def _follow(self, method: str, ode: Callable[[float, Array], Array], t1: float) -> Status:
        from scipy import integrate

        settings: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-10, "max_step": np.inf}
        given = {name: self.options.get(name) for name in (*settings, "first_step")}
        settings |= {name: value for name, value in given.items() if value is not None}
        if "first_step" in settings:
            settings["first_step"] = min(settings["first_step"], abs(t1 - self.t))
        progress, before = self.options.get("progress"), self.evaluations
        solver = getattr(integrate, method)(ode, self.t, self.y, t1, **settings)
        self.status = Status.OK
        while self.status == Status.OK:
            self.status = self._step(solver)
            self.evaluations = before + solver.nfev
            if progress is not None:
                progress(self.t)
        return self.status

    def _step(self, solver: Any) -> Status:
        most = step_limit(self.options)
        if solver.status == "finished":
            return Status.FINISHED
        if most is not None and len(self.steps) >= most:
            return Status.TOO_MANY_STEPS
        if solver.step() is not None:
            return Status.RHS_FAILED if self.rhs_status else Status.STEP_COLLAPSED
        self.rhs_status = Status.OK
        interpolant = solver.dense_output()
        self.steps.append((self.t, solver.t - self.t, nested(interpolant, self.t, self.y, solver.t, solver.y)))
        self.t, self.y = float(solver.t), solver.y.copy()
        if self.times is None:
            self.stored.append((self.t, self.y))
        while self.times and (self.times[0] - self.t) * solver.direction <= 0.0:
            t = self.times.pop(0)
            self.stored.append((t, interpolant(t)))
        return Status.OK

    def outcome(self, samples: Iterable[Array], ends: tuple[int, int]) -> SimpleNamespace:
        """The fields of the ``RunResult`` of a compiled run; ``ends`` of q and u in a state; unknown counts are 0."""
        starts, steps, rows = zip(*self.steps, strict=True) if self.steps else ((), (), ())
        sizes = np.abs(steps)
        uncounted = ("rejected", "repartitions", "projections", "integrals_left", "jacobians", "factorizations")
        statistics = {
            "steps": len(steps),
            "evaluations": self.evaluations,
            "smallest_step": float(sizes.min(initial=np.inf)) if steps else 0.0,
            "largest_step": float(sizes.max(initial=0.0)),
            "last_step": float(sizes[-1]) if steps else 0.0,
            **dict.fromkeys(("largest_error", "integral_drift"), 0.0),
            **dict.fromkeys(uncounted, 0),
        }
        y = np.array([state for _, state in self.stored]).reshape(len(self.stored), len(self.y))
        q, u, s, none = (np.ascontiguousarray(part) for part in np.split(y, [*ends, y.shape[1]], axis=1))
        return SimpleNamespace(
            t=np.array([time for time, _ in self.stored]),
            **{"y": y, "q": q, "u": u, "s": s, "controls": none},
            last=(self.t, self.y),
            dense=(np.array(starts), np.array(steps), np.array(rows)) if self.options.get("dense") else None,
            status=self.status,
            message=self.status.message,
            statistics=statistics,
            error=self.error,
            rhs_status=self.rhs_status if self.status == Status.RHS_FAILED else Status.OK,
            samples=tuple(samples),
            **dict.fromkeys(("hybrid", "culprit", "conflict")),
        )


def nested(interpolant: Any, t_old: float, y_old: Array, t: float, y: Array) -> Array:
    """The interpolant of a step in the nested form of :class:`kanegen.solve.solution.Dense`, (k, n)."""
    if hasattr(interpolant, "F"):
        return np.array([y_old, *interpolant.F])
    # RK45: a polynomial of degree 4, determined by its values at the start and at four further points.
    places = np.array([0.25, 0.5, 0.75, 1.0])
    rest = 1.0 - places
    basis = np.stack([places, places * rest, places**2 * rest, (places * rest) ** 2], axis=1)
    values = [interpolant(t_old + x * (t - t_old)) for x in places[:-1]]
    return np.vstack([y_old, np.linalg.solve(basis, np.array([*values, y]) - y_old)])
