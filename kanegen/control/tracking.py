"""Feedback about an optimal motion: the time-varying linear-quadratic regulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.control.regulator import LinearModel, Nominal, riccati
from kanegen.errors import SolveError, brief
from kanegen.solve.values import key_name, unknown

_SYMMETRIC: Final = 1e-9
"""Relative difference of a matrix of weights from its transpose that rounding can cause."""


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
    sizes = motion.trajectory.scale[: statement.n_state]
    input_sizes = _input_sizes(motion)
    Q = weights_of(state_weights, d.components, 1.0 / sizes**2, "state_weights")
    R = weights_of(input_weights, statement.input_names, 1.0 / input_sizes**2, "input_weights")
    if np.linalg.eigvalsh(_scaled(R, input_sizes)).min() <= 0.0:
        raise SolveError("to_feedback: input_weights must be positive, or the gains would be infinite")
    linear = LinearModel.along(motion, input_sizes)
    scaled = _scaled(Q, sizes), _scaled(R, input_sizes)
    final = None if final_weights is not None else linear.steady(*scaled)
    if final is None:
        default = np.diag(Q) * motion.duration
        final = _scaled(weights_of(final_weights, d.components, default, "final_weights"), sizes)
    times = _times(motion)
    S = riccati(linear, *scaled, final, times)
    gains = [np.linalg.solve(scaled[1], linear.at(t)[1].T @ each) for t, each in zip(times.tolist(), S, strict=True)]
    K, S = np.array(gains) * input_sizes[:, None] / sizes, S / np.outer(sizes, sizes)
    kind = TrackingFeedbackOfStates if d.states else TrackingFeedback
    names, bounds = statement.input_names, statement.input_bounds
    return kind(times, K, S, names, linear.held_inputs, motion, statement.inputs, bounds)


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


def _scaled(weights: Array, sizes: Array) -> Array:
    """Weights of variables that are divided by their sizes."""
    return weights * np.outer(sizes, sizes)


def _input_sizes(motion: Nominal) -> Array:
    """Half the range of each input or, without bounds, its largest value, (n,)."""
    bounds = motion.trajectory.layout.statement.input_bounds
    own = list(motion.trajectory.layout.statement.inputs)
    values = np.abs([np.asarray(motion.inputs_at(t))[own] for t in _times(motion).tolist()]).max(axis=0)
    sizes = np.where(np.isfinite(bounds).all(axis=1), 0.5 * (bounds[:, 1] - bounds[:, 0]), values)
    return np.where(sizes > 0.0, sizes, 1.0)


def _times(motion: Nominal) -> Array:
    """Mesh points, and points halfway."""
    mesh = motion.mesh
    return np.sort(np.concatenate([mesh, 0.5 * (mesh[1:] + mesh[:-1])]))
