"""The linear-quadratic regulator about a motion: its linear model, and Riccati's equation backward in time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np

from kanegen.arrays import Array
from kanegen.control.trajectory import Trajectory
from kanegen.errors import SolveError
from kanegen.graph.ranks import null_space
from kanegen.pipeline import build
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.run.options import read_options

_AT_REST: Final = 1e-6
"""Rates in the last state below this fraction of their largest ones during the motion count as zero."""

_ROUNDING: Final = 1e-12
"""Rates below this fraction of their terms are rounding."""

_RTOL: Final = 1e-10
"""Largest difference between steps and half steps of Riccati's equation, relative to the largest entry."""

_MOST_PARTS: Final = 256
"""Steps between two times at which gains are known."""


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
class LinearModel:
    """The linear model along a motion, in states and inputs that are divided by their sizes.

    ``inputs``: the places of those that are controlled; ``sizes`` (n_y,) and ``input_sizes`` (n,).
    """

    motion: Nominal
    solver: Any
    inputs: list[int]
    sizes: Array
    input_sizes: Array

    @classmethod
    def along(cls, motion: Nominal, input_sizes: Array) -> LinearModel:
        """The model of a motion."""
        statement = motion.trajectory.layout.statement
        solver = build(statement.model, functions=("rhs", "jacobians"))
        known = {name: value for name, value in motion.solver.parameters.items() if value is not None}
        own = solver.with_parameters(known) if known else solver
        return cls(motion, own, list(statement.inputs), motion.trajectory.scale[: statement.n_state], input_sizes)

    def at(self, t: float, inputs: Array | None = None) -> tuple[Array, Array]:
        """A (n_y, n_y) and B (n_y, n) at a time; ``inputs``: others than those of the motion."""
        d, (q, u, s) = self.solver.description, self._parts(t)
        given = self.motion.inputs_at(t) if inputs is None else inputs
        slopes = self.solver.jacobian(t, q, u, given, s if d.states else None)
        A, B = np.hstack([slopes.q, slopes.u, slopes.s]), slopes.r[:, self.inputs]
        return A * self.sizes / self.sizes[:, None], B * self.input_sizes / self.sizes[:, None]

    def tangent(self, t: float) -> Array:
        """An orthonormal basis (n_y, n) of the changes of the state that the constraints allow at a time."""
        if not self.solver.description.constraints.levels:
            return np.eye(self.sizes.size)
        code = self._variations
        return null_space(
            code.residual_changes(code.at(t, self.motion.state_at(t)), np.zeros(0), np.diag(self.sizes)).T
        )

    @cached_property
    def _variations(self) -> VariationCode:
        solver, (q, u, s) = self.motion.solver, self._parts(0.0)
        values = dict(zip(solver.description.inputs, self.motion.inputs_at(0.0).tolist(), strict=True))
        states = s if solver.description.states else None
        options = read_options(solver._runs.with_tolerances({"start_tolerance": None}))
        problem, _, _ = solver._prepared_run((0.0, self.motion.duration), (q, u, states), values or None, options)
        return VariationCode(problem, options["method"])

    def steady(self, Q: Array, R: Array) -> Array | None:
        """The cost of holding the end for ever, (n_y, n_y), by the algebraic equation; None if it cannot be held."""
        from scipy.linalg import LinAlgError, solve_continuous_are

        if not self.is_held:
            return None
        N, (A, B) = self.tangent(self.motion.duration), self.at(self.motion.duration, self.held_inputs)
        try:
            found = solve_continuous_are(N.T @ A @ N, N.T @ B, N.T @ Q @ N, R)
        except (LinAlgError, ValueError):  # there is no stable regulator
            return None
        return np.asarray(N @ found @ N.T)

    @property
    def held_inputs(self) -> Array:
        """All inputs, with which the motion rests in its last state; those at the end if it cannot."""
        return self._held[0]

    @property
    def is_held(self) -> bool:
        """Whether inputs can hold the motion in its last state."""
        return self._held[1]

    @cached_property
    def _held(self) -> tuple[Array, bool]:
        t, d = self.motion.duration, self.solver.description
        (q, u, s), inputs = self._parts(t), self.motion.inputs_at(t)
        rates = np.concatenate(self.solver.rhs(t, q, u, inputs, *([s] if d.states else []))) / self.sizes
        B = self.at(t)[1]
        change = np.linalg.lstsq(B, -rates, rcond=None)[0]
        n, all_rates = len(rates), self.motion.trajectory.rates
        usual = np.abs(all_rates).reshape(-1, all_rates.shape[-1]).max(axis=0)[:n] / self.sizes
        rounding = _ROUNDING * (np.abs(rates) + np.abs(B) @ np.abs(change))
        if (np.abs(rates + B @ change) > _AT_REST * usual + rounding).any():
            return inputs, False
        held = np.array(inputs)
        held[self.inputs] += change * self.input_sizes
        return held, True

    def _parts(self, t: float) -> list[Array]:
        d = self.solver.description
        return np.split(self.motion.state_at(t), np.cumsum([len(d.coordinates), len(d.speeds)]))


def riccati(linear: LinearModel, Q: Array, R: Array, final: Array, times: Array) -> Array:
    """S at times, (m, n_y, n_y), from ``final`` at the last one; on the constraints. Raises `SolveError`.

    ``S = Y X^-1`` with the solution of the linear equations ``X' = A X - B R^-1 B^T Y``, ``Y' = -Q X - A^T Y`` over
    each step, by Magnus' series of order 4 (Blanes, Casas, Oteo and Ros 2009): weights can be as large as one likes.
    """
    found, parts = [_on_constraints(final, linear.tangent(float(times[-1])))], 1
    for t1, t0 in zip(times[:0:-1].tolist(), times[-2::-1].tolist(), strict=True):
        S, parts = _accurate_step(linear, (Q, R), found[-1], (t1, t0), max(parts // 2, 1))
        found.append(_on_constraints(S, linear.tangent(t0)))
    return np.array(found[::-1])


def _on_constraints(S: Array, tangent: Array) -> Array:
    """The cost of the part of deviations that the constraints allow."""
    projector = tangent @ tangent.T
    return np.asarray(projector @ S @ projector)


def _accurate_step(
    linear: LinearModel, weights: tuple[Array, Array], S: Array, span: tuple[float, float], parts: int
) -> tuple[Array, int]:
    """S at the second time of ``span`` from that at the first, and the number of steps that its accuracy needs."""
    coarse = _steps(linear, weights, S, np.linspace(*span, parts + 1))
    while parts < _MOST_PARTS:
        parts *= 2
        fine = _steps(linear, weights, S, np.linspace(*span, parts + 1))
        # Half steps of order 4 have a sixteenth of the error.
        if np.abs(fine - coarse).max() <= 15.0 * _RTOL * np.abs(fine).max():
            return fine, parts
        coarse = fine
    raise SolveError(
        f"to_feedback: Riccati's equation was not solved at t = {span[1]:.6g} s: the feedback is too fast for the "
        "motion; give smaller state_weights or larger input_weights"
    )


def _steps(linear: LinearModel, weights: tuple[Array, Array], S: Array, times: Array) -> Array:
    """S at the last of the times from that at the first; NaN if the steps are so long that numbers overflow."""
    for span in pairwise(times.tolist()):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                S = _step(linear, weights, S, *span)
        except (np.linalg.LinAlgError, ValueError):
            return np.full_like(S, np.nan)
    return S


def _step(linear: LinearModel, weights: tuple[Array, Array], S: Array, t: float, end: float) -> Array:
    from scipy.linalg import expm

    n, h = len(S), end - t
    first, second = (_hamiltonian(linear, weights, t + h * (0.5 + side * np.sqrt(3.0) / 6.0)) for side in (-1, 1))
    commutator = second @ first - first @ second
    flow = expm(0.5 * h * (first + second) + h**2 * np.sqrt(3.0) / 12.0 * commutator)
    X, Y = flow[:n, :n] + flow[:n, n:] @ S, flow[n:, :n] + flow[n:, n:] @ S
    S = np.linalg.solve(X.T, Y.T).T
    return np.asarray(0.5 * (S + S.T))


def _hamiltonian(linear: LinearModel, weights: tuple[Array, Array], t: float) -> Array:
    (Q, R), (A, B), tangent = weights, linear.at(t), linear.tangent(t)
    A = A @ tangent @ tangent.T  # off the constraints, the linear model can be as fast as one likes
    return np.block([[A, -B @ np.linalg.solve(R, B.T)], [-Q, -A.T]])
