"""Feedback about an optimal motion: the time-varying linear-quadratic regulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.control.trajectory import Trajectory
from kanegen.errors import SolveError, brief
from kanegen.pipeline import build
from kanegen.solve.values import key_name, unknown

_RTOL: Final = 1e-8
_AT_REST: Final = 1e-6
"""Rates in the last state below this fraction of their largest ones during the motion count as zero."""

_ROUNDING: Final = 1e-12
"""Rates below this fraction of their terms are rounding."""

_SYMMETRIC: Final = 1e-9
"""Relative difference of a matrix of weights from its transpose that rounding can cause."""


class Nominal(Protocol):
    """The motion that feedback follows (:class:`kanegen.OptimalMotion`)."""

    @property
    def trajectory(self) -> Trajectory:
        """The motion as polynomials of the time."""

    @property
    def solver(self) -> Any:
        """The compiled model."""

    @property
    def duration(self) -> float:
        """The time at the end, s."""

    @property
    def mesh(self) -> Array:
        """The times of the mesh points, s, (N + 1,)."""

    def inputs_at(self, t: Any) -> Array:
        """All inputs of the model at a time, (n_r,)."""

    def state_at(self, t: float) -> Array:
        """Coordinates, speeds and states at a time, (n_y,)."""


@dataclass(frozen=True, eq=False)
class TrackingFeedback:
    """Inputs that return a motion to a nominal one, ``r = r*(t) - K(t) (y - y*(t))``, within the bounds of the inputs.

    ``r=`` of :meth:`kanegen.Solver.integrate` accepts it, with ``sample_time`` and without. After the end of the motion
    its last state and gains apply, with the inputs that hold this state if it is at rest, else with the last ones.

    Attributes
    ----------
    times
        Times at which gains are known, s, (m,); they are linear in between.
    gains
        K at these times, (m, n, n_y); rows are ``inputs``, columns coordinates, speeds and states.
    cost_to_go
        S at these times, (m, n_y, n_y): ``z^T S(t) z`` is, to second order, what a deviation z at the time t costs.
    inputs
        The names of the inputs that are controlled, n.
    final_inputs
        All inputs of the model after the end, (n_r,).
    """

    times: Array
    gains: Array
    cost_to_go: Array
    inputs: tuple[str, ...]
    final_inputs: Array
    _motion: Nominal
    _places: tuple[int, ...]
    _bounds: Array

    def gain(self, t: float) -> Array:
        """K at a time, (n, n_y)."""
        t = float(np.clip(t, self.times[0], self.times[-1]))
        k = int(np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2))
        part = (t - self.times[k]) / (self.times[k + 1] - self.times[k])
        return np.asarray((1.0 - part) * self.gains[k] + part * self.gains[k + 1])

    def __call__(self, t: float, q: Array, u: Array) -> Array:
        """All inputs of the model, (n_r,)."""
        return self._inputs(t, np.concatenate([q, u]))

    def _inputs(self, t: float, y: Array) -> Array:
        ended = t > self._motion.duration
        t = min(t, self._motion.duration)
        values = self.final_inputs.copy() if ended else np.array(self._motion.inputs_at(t))
        own = list(self._places)
        values[own] = np.clip(values[own] - self.gain(t) @ (y - self._motion.state_at(t)), *self._bounds.T)
        return values

    def __repr__(self) -> str:
        return f"<TrackingFeedback of {', '.join(self.inputs)} over {self.times[-1]:g} s>"


class TrackingFeedbackOfStates(TrackingFeedback):
    """The same for a model with first-order states, whose values are an argument."""

    def __call__(self, t: float, q: Array, u: Array, s: Array) -> Array:  # type: ignore[override]
        """All inputs of the model, (n_r,)."""
        return self._inputs(t, np.concatenate([q, u, s]))


def tracking_feedback(motion: Nominal, state_weights: Any, input_weights: Any, final_weights: Any) -> TrackingFeedback:
    """The regulator about a motion, by Riccati's equation backward in time. Raises `SolveError`.

    ``-S' = A^T S + S A - S B R^-1 B^T S + Q`` with the linear model z' = A z + B w along the motion, and
    ``K = R^-1 B^T S`` (Anderson and Moore 1990, "Optimal Control", chapter 2).
    """
    statement, d = motion.trajectory.layout.statement, motion.solver.description
    if statement.rated:
        named = ", ".join(d.inputs[k] for k in statement.rated)
        raise SolveError(f"to_feedback: the equations contain the rate of {named}, which a feedback does not give")
    if not statement.inputs:
        raise SolveError("to_feedback: the problem has no unknown inputs, which a feedback could change")
    linear = _LinearModel.along(motion)
    Q = weights_of(state_weights, d.components, 1.0 / motion.trajectory.scale**2, "state_weights")
    R = weights_of(input_weights, statement.input_names, _input_weights(motion), "input_weights")
    if np.linalg.eigvalsh(R).min() <= 0.0:
        raise SolveError("to_feedback: input_weights must be positive, or the gains would be infinite")
    final = linear.steady(Q, R)
    if final_weights is not None or final is None:
        final = weights_of(final_weights, d.components, np.diag(Q) * motion.duration, "final_weights")
    times = _times(motion)
    S = _riccati(linear, Q, R, final, times)
    K = np.array([np.linalg.solve(R, linear.at(t)[1].T @ s) for t, s in zip(times.tolist(), S, strict=True)])
    kind = TrackingFeedbackOfStates if d.states else TrackingFeedback
    names, bounds = statement.input_names, statement.input_bounds
    return kind(times, K, S, names, linear.held_inputs, motion, statement.inputs, bounds)


@dataclass(frozen=True, eq=False)
class _LinearModel:
    """The linear model along a motion; ``inputs``: the places of those that are controlled."""

    motion: Nominal
    solver: Any
    inputs: list[int]

    @classmethod
    def along(cls, motion: Nominal) -> _LinearModel:
        statement = motion.trajectory.layout.statement
        solver = build(statement.model, functions=("rhs", "jacobians"))
        known = {name: value for name, value in motion.solver.parameters.items() if value is not None}
        return cls(motion, solver.with_parameters(known) if known else solver, list(statement.inputs))

    def at(self, t: float, inputs: Array | None = None) -> tuple[Array, Array]:
        """A (n_y, n_y) and B (n_y, n) at a time; ``inputs``: others than those of the motion."""
        d, (q, u, s) = self.solver.description, self._parts(t)
        given = self.motion.inputs_at(t) if inputs is None else inputs
        slopes = self.solver.jacobian(t, q, u, given, s if d.states else None)
        return np.hstack([slopes.q, slopes.u, slopes.s]), slopes.r[:, self.inputs]

    def steady(self, Q: Array, R: Array) -> Array | None:
        """The solution of the algebraic equation for the linear model at the end; None if there is none."""
        from scipy.linalg import LinAlgError, solve_continuous_are

        A, B = self.at(self.motion.duration, self.held_inputs)
        try:
            return np.asarray(solve_continuous_are(A, B, Q, R))
        except (LinAlgError, ValueError):  # the end cannot be held
            return None

    @cached_property
    def held_inputs(self) -> Array:
        """All inputs, with which the motion rests in its last state; those at the end if it cannot."""
        t, d = self.motion.duration, self.solver.description
        (q, u, s), inputs = self._parts(t), self.motion.inputs_at(t)
        rates = np.concatenate(self.solver.rhs(t, q, u, inputs, *([s] if d.states else [])))
        B = self.at(t)[1]
        change = np.linalg.lstsq(B, -rates, rcond=None)[0]
        n = len(rates)
        usual = np.abs(self.motion.trajectory.rates).reshape(-1, self.motion.trajectory.rates.shape[-1]).max(axis=0)[:n]
        rounding = _ROUNDING * (np.abs(rates) + np.abs(B) @ np.abs(change))
        if (np.abs(rates + B @ change) > _AT_REST * usual + rounding).any():
            return inputs
        held = np.array(inputs)
        held[self.inputs] += change
        return held

    def _parts(self, t: float) -> list[Array]:
        d = self.solver.description
        return np.split(self.motion.state_at(t), np.cumsum([len(d.coordinates), len(d.speeds)]))


def weights_of(given: Any, names: Sequence[str], default: Array, what: str) -> Array:
    """A symmetric matrix of weights (n, n): given, or diagonal with values by name, others by default.

    Raises `SolveError`.
    """
    if given is None or isinstance(given, Mapping):
        diagonal = np.array(default, dtype=float)
        for key, value in (given or {}).items():
            name = key_name(key)
            if name not in names:
                raise SolveError(f"{what}: {unknown(name, names, 'variable')}")
            diagonal[list(names).index(name)] = real_array(value, f"{what}[{name!r}]")
        matrix = np.diag(diagonal)
    else:
        matrix = real_array(given, what)
    n = len(names)
    if matrix.shape != (n, n):
        raise SolveError(f"{what} is {brief(given)}: expected a mapping from names to weights, or a matrix ({n}, {n})")
    if not np.isfinite(matrix).all() or np.abs(matrix - matrix.T).max() > _SYMMETRIC * np.abs(matrix).max(initial=0.0):
        raise SolveError(f"{what} is not a symmetric matrix of finite numbers")
    if np.linalg.eigvalsh(matrix).min() < -_SYMMETRIC * np.abs(matrix).max(initial=0.0):
        raise SolveError(f"{what} has negative weights: deviations would be rewarded")
    return np.asarray(matrix)


def _input_weights(motion: Nominal) -> Array:
    """One over the square of half the range of each input or, without bounds, of its largest value."""
    bounds = motion.trajectory.layout.statement.input_bounds
    own = list(motion.trajectory.layout.statement.inputs)
    values = np.abs([np.asarray(motion.inputs_at(t))[own] for t in _times(motion).tolist()]).max(axis=0)
    sizes = np.where(np.isfinite(bounds).all(axis=1), 0.5 * (bounds[:, 1] - bounds[:, 0]), values)
    return 1.0 / np.where(sizes > 0.0, sizes, 1.0) ** 2


def _times(motion: Nominal) -> Array:
    """Mesh points, and points halfway."""
    mesh = motion.mesh
    return np.sort(np.concatenate([mesh, 0.5 * (mesh[1:] + mesh[:-1])]))


def _riccati(linear: _LinearModel, Q: Array, R: Array, final: Array, times: Array) -> Array:
    """S at times, (m, n_y, n_y), from ``final`` at the last one. Raises `SolveError`."""
    from scipy.integrate import solve_ivp

    n = len(Q)

    def rate(t: float, values: Array) -> Array:
        S = values.reshape(n, n)
        A, B = linear.at(t)
        gain = np.linalg.solve(R, B.T @ S)
        change = -(A.T @ S + S @ A - S @ B @ gain + Q)
        return np.asarray(0.5 * (change + change.T)).ravel()

    size = float(np.abs(final).max(initial=0.0)) or float(np.abs(Q).max(initial=1.0))
    options: Any = {"method": "LSODA", "rtol": _RTOL, "atol": _RTOL * size}
    found = solve_ivp(rate, (times[-1], times[0]), final.ravel(), t_eval=times[::-1], **options)
    if not found.success:
        raise SolveError(f"to_feedback: Riccati's equation was not solved: {found.message}")
    return np.asarray(found.y.T[::-1].reshape(-1, n, n))
