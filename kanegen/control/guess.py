"""Where the iterations start: a straight line, values by name, or another motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.control.statement import Statement
from kanegen.control.terms import Duration
from kanegen.control.trajectory import Trajectory
from kanegen.errors import SolveError, brief
from kanegen.model.expressions import symbol_name
from kanegen.solve import Solution
from kanegen.solve.values import known_name, number

Curve = Callable[[Array], Array]
"""Values (m, n) at times (m,) from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Guess:
    """States, accelerations, multipliers and unknown inputs as functions of the time from 0 to 1; parameters (n,).

    ``speeds_follow``: whether the speeds are those of the coordinates, which are given.
    """

    duration: float
    y: Curve
    udot: Curve
    multipliers: Curve
    inputs: Curve
    parameters: Array
    speeds_follow: bool = False


def read_guess(statement: Statement, given: Any, n_constraints: int) -> Guess:
    """The guess that the user gives; None: a straight line. Raises `SolveError`."""
    if given is None:
        return _of_columns(statement, {}, n_constraints)
    if isinstance(given, Solution):
        return _of_solution(statement, given, n_constraints)
    solution = getattr(given, "solution", None)
    if isinstance(solution, Solution):
        return _of_solution(statement, solution, n_constraints)
    if isinstance(given, Mapping):
        return _of_columns(statement, given, n_constraints)
    raise SolveError(f"guess is {brief(given)}; expected a mapping from names to values, a kanegen.Solution, or None")


def following(guess: Guess, before: Guess, statements: tuple[Statement, Statement], names: Sequence[str]) -> Guess:
    """The guess of a motion without a given one, which begins where the guess of the motion before it ends.

    ``statements``: of the motion before and of this one; ``names``: of the components that go on.
    """
    earlier, own = statements
    shift, until = np.zeros(len(own.components)), np.zeros(len(own.components))
    start, end = guess.y(np.zeros(1))[0], before.y(np.ones(1))[0]
    for k, name in enumerate(own.components):
        if name in names and _given(own.start.bounds[k], own.bounds[k]) is None:
            shift[k] = end[earlier.components.index(name)] - start[k]
            until[k] = _given(own.end.bounds[k], own.bounds[k]) is not None

    def moved(tau: Array) -> Array:
        return np.asarray(guess.y(tau) + shift * (1.0 - until * tau[:, None]))

    return replace(guess, y=moved)


def of_trajectory(statement: Statement, motion: Trajectory) -> Guess:
    """The guess that continues a motion, on another mesh."""
    at = motion.layout
    rows = at.statement.inputs
    return Guess(
        motion.duration,
        motion.states_at,
        _interpolated(at.tau, motion.at(at.udot)),
        _interpolated(at.tau, motion.at(at.multipliers)),
        _interpolated(at.tau, motion.at(at.inputs)[:, list(rows)]),
        motion.parameters[list(statement.parameters)],
    )


def _of_columns(statement: Statement, given: Mapping[Any, Any], n_constraints: int) -> Guess:
    """Values by name: numbers, values at equal distances, or tables (times, values); straight lines for the others."""
    names = (*statement.components, *statement.input_names, *statement.parameter_names)
    values: dict[str, Any] = {}
    duration = _middle(*statement.duration)
    for key, value in given.items():
        if key is Duration or key == "duration":
            duration = number(value, "the duration in guess")
        else:
            name = known_name(key, names, "unknown of the problem for guess=")
            values[name] = value
    if not duration > 0.0:
        raise SolveError(f"the duration in guess is {duration!r}; expected a positive time")
    tau = np.linspace(0.0, 1.0, 201)

    def column(name: str, default: Array) -> Array:
        return _column(values[name], name, tau, duration) if name in values else default

    y = np.array([column(name, line) for name, line in zip(statement.components, _lines(statement, tau), strict=True)])
    bounds = statement.input_bounds
    flat = [np.full(tau.size, _nearest(0.0, *pair)) for pair in bounds]
    r = np.array([column(name, x) for name, x in zip(statement.input_names, flat, strict=True)]).reshape(-1, tau.size)
    parameters = np.array(
        [
            number(values[name], f"{name} in guess") if name in values else _parameter(statement, k, pair)
            for name, k, pair in zip(
                statement.parameter_names, statement.parameters, statement.parameter_bounds, strict=True
            )
        ]
    )
    n_q = len(statement.model.coordinates)
    speeds = statement.components[n_q : n_q + len(statement.model.speeds)]
    follow = any(name in values for name in statement.components[:n_q]) and not any(name in values for name in speeds)
    return Guess(duration, *_curves(statement, tau, y.T, r.T, duration, n_constraints), parameters, follow)


def _of_solution(statement: Statement, solution: Solution, n_constraints: int) -> Guess:
    record, own = solution.run, (*solution.run.coordinates, *solution.run.speeds, *solution.run.states)
    if own != statement.components[: statement.n_state]:
        raise SolveError(
            f"guess is a motion of {', '.join(own)}; expected one of the model, with {', '.join(statement.components)}"
        )
    t, first = np.unique(solution.t, return_index=True)
    if t.size < 2:
        raise SolveError("guess is a motion with fewer than two times")
    duration = float(t[-1] - t[0])
    given = np.nan_to_num(solution.inputs[first])
    y = np.hstack([solution.q[first], solution.u[first], solution.s[first], given[:, list(statement.rated)]])
    r = given[:, list(statement.inputs)]
    values = [record.parameters.get(name) for name in statement.parameter_names]
    pairs = zip(values, statement.parameters, statement.parameter_bounds, strict=True)
    parameters = np.array([_parameter(statement, k, pair) if x is None else x for x, k, pair in pairs])
    tau = (t - t[0]) / duration
    return Guess(duration, *_curves(statement, tau, y, r, duration, n_constraints), parameters)


def _curves(
    statement: Statement, tau: Array, y: Array, r: Array, duration: float, n_constraints: int
) -> tuple[Curve, Curve, Curve, Curve]:
    """Curves through rows of states and inputs; the accelerations are those of the speeds."""
    n_q, n_u = len(statement.model.coordinates), len(statement.model.speeds)
    udot = np.gradient(y[:, n_q : n_q + n_u], tau * duration, axis=0)
    parts = (y, udot, np.zeros((tau.size, n_constraints)), r)
    first, second, third, fourth = (_interpolated(tau, rows) for rows in parts)
    return first, second, third, fourth


def _interpolated(tau: Array, rows: Array) -> Curve:
    def curve(at: Array) -> Array:
        columns = [np.interp(at, tau, column) for column in rows.T]
        return np.array(columns).reshape(len(columns), len(at)).T

    return curve


def _lines(statement: Statement, tau: Array) -> Array:
    """Straight lines from the start to the end, where they are known, inside the bounds, (n_y, m)."""
    found = []
    initial = {symbol_name(key): value for key, value in statement.model.initial.items()}
    for name, start, end, bounds in zip(
        statement.components, statement.start.bounds, statement.end.bounds, statement.bounds, strict=True
    ):
        first, last = _given(start, bounds), _given(end, bounds)
        rest = _nearest(float(initial.get(name, 0.0)), *bounds)
        first, last = (first if first is not None else last), (last if last is not None else first)
        line = np.full(tau.size, rest) if first is None or last is None else first + (last - first) * tau
        found.append(np.clip(line, *bounds))
    return np.array(found)


def _given(pair: Array, bounds: Array) -> float | None:
    """The value that a condition at an end gives, None if there is none beside the bounds."""
    if np.array_equal(pair, bounds) and pair[0] != pair[1]:
        return None
    return _middle(*pair) if math.isfinite(pair[0]) and math.isfinite(pair[1]) else _nearest(0.0, *pair)


def _parameter(statement: Statement, k: int, pair: Array) -> float:
    """The guess of a parameter: its value in the model if it is inside the bounds."""
    value = float(statement.values[k])
    return _middle(*pair) if math.isnan(value) else _nearest(value, *pair)


def _middle(low: float, high: float) -> float:
    """A value between bounds: the geometric mean of positive ones."""
    if math.isinf(low) or math.isinf(high):
        return _nearest(1.0 if low > 0.0 else 0.0, low, high)
    return math.sqrt(low * high) if low > 0.0 else (low + high) / 2.0


def _nearest(value: float, low: float, high: float) -> float:
    return float(min(max(value, low), high))


def _column(value: Any, name: str, tau: Array, duration: float) -> Array:
    """Values of one variable at the times ``tau``."""
    what = f"{name} in guess"
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(x, Sequence | np.ndarray) for x in value):
        times, rows = (real_array(x, f"the table of {what}") for x in value)
        if times.ndim != 1 or times.shape != rows.shape or times.size < 2 or not (np.diff(times) > 0.0).all():
            raise SolveError(f"{what} is a table with shapes {times.shape}, {rows.shape}; expected (n,), (n,), n >= 2")
        times = times / duration
    elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) and np.ndim(value) > 0:
        rows = real_array(value, what)
        if rows.ndim != 1 or rows.size < 2:
            raise SolveError(f"{what} has the shape {rows.shape}; expected a number, (n,), or a table (times, values)")
        times = np.linspace(0.0, 1.0, rows.size)
    else:
        return np.full(tau.size, number(value, what))
    if not (np.isfinite(rows).all() and np.isfinite(times).all()):
        raise SolveError(f"{what} contains values that are not finite")
    return np.interp(tau, times, rows)
