"""Derivatives of motions by Rosenbrock methods: along directions, and of gradients that are pulled back.

Most of the work is done for many steps side by side, in compiled functions that are evaluated with rows and in LAPACK
(:mod:`kanegen.solve.gradients.rosenbrock`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.methods.rosenbrock import Rosenbrock
from kanegen.program.catalogue import RATE_SLOPES, RATES, SECOND_SLOPES, OfExpressions
from kanegen.solve.gradients.code import Forward, Inside, VariationCode
from kanegen.solve.gradients.rosenbrock import Columns, Linearized, StiffSteps
from kanegen.solve.gradients.tape import Part
from kanegen.solve.solution import Dense


class StiffRates:
    """y' and a running cost in the modes of a part (:class:`kanegen.solve.gradients.rosenbrock.RateFunctions`).

    ``costs``: the running cost, if there is one, which ``identity`` tells from others. Loads are the inputs.
    """

    def __init__(self, code: VariationCode, costs: Sequence[Any], identity: str, modes: Array) -> None:
        self._code, self._modes, end = code, modes, code.end_of_steps
        self._names = tuple(
            OfExpressions.of(kind, end, costs, identity) for kind in (RATES, RATE_SLOPES, SECOND_SLOPES)
        )
        self.n_f = code.n_y + len(costs)
        self._n_r = len(code.functions.description.inputs)

    def rates(self, t: Array, y: Array, loads: Array) -> Array:
        """y' and the running cost, (N, n_f)."""
        return self._value(0, t, y, loads)

    def slopes(self, t: Array, y: Array, loads: Array) -> Array:
        """Their slopes in (y, r, p), (N, n_f, n_y + n_r + n_p)."""
        times, states, inputs = (np.repeat(x, self.n_f, axis=0) for x in (t, y, loads))
        values = self._value(1, times, states, inputs, self._units(len(t)))
        return self._without_forces(values, len(t))

    def second(self, t: Array, y: Array, loads: Array, along: Array) -> tuple[Array, Array]:
        """Their changes (N, n_f) along directions of (y, r, t), (N, n_y + n_r + 1), and the slopes of these."""
        times, states, inputs, directions = (np.repeat(x, self.n_f, axis=0) for x in (t, y, loads, along))
        values = self._value(2, times, states, inputs, np.hstack([self._units(len(t)), directions]))
        return values[:: self.n_f, : self.n_f], self._without_forces(values[:, self.n_f :], len(t))

    def _units(self, n: int) -> Array:
        """Each of the n_f values as the one that counts, n times; further arguments are zero."""
        units = np.zeros((self.n_f, self._code.n_y + self._code.n_loads + 1))
        units[:, : self.n_f] = np.eye(self.n_f)
        return np.tile(units, (n, 1))

    def _without_forces(self, slopes: Array, n: int) -> Array:
        first = self._code.n_y + self._n_r
        forces = np.s_[first : self._code.n_y + self._code.n_loads]
        return np.delete(slopes, forces, axis=1).reshape(n, self.n_f, -1)

    def _value(self, which: int, t: Array, y: Array, loads: Array, behind: Array | None = None) -> Array:
        code, d = self._code, self._code.functions.description
        function = code.compiled(self._names[which], self._names, self._modes)
        n_behind = code.n_y + code.n_loads + 1 + code.n_y + self._n_r + 1
        r = np.zeros((len(t), self._n_r + n_behind))
        r[:, : self._n_r] = loads
        if behind is not None:
            r[:, self._n_r : self._n_r + behind.shape[1]] = behind
        q, u, s = (np.ascontiguousarray(x) for x in np.split(y, np.cumsum([len(d.coordinates), len(d.speeds)]), axis=1))
        values = function.value(np.ascontiguousarray(t), q, u, r, s if d.states else None)
        return np.asarray(values, dtype=np.float64).reshape(len(t), -1)


class StiffMotion:
    """The steps of a part, with their derivatives; ``costs`` and ``identity``: as for `StiffRates`."""

    def __init__(self, code: VariationCode, part: Part, costs: Sequence[Any] = (), identity: str = "") -> None:
        self._code, self._part = code, part
        self.rates = StiffRates(code, costs, identity, part.modes)

    @cached_property
    def _steps(self) -> StiffSteps:
        code, part, n_r = self._code, self._part, len(self._code.functions.description.inputs)
        values, step, _ = code.loads(part)
        times = code.stage_times(part)
        loads = values[None, :, :n_r] if step == 0 else values[:, :n_r].reshape(*times.shape, n_r)
        return StiffSteps(self.rates, rosenbrock(code.method), part, times, loads)

    def _columns(self, dr: Array, dp: Array) -> Columns:
        """Changes of inputs, (n_r, c) or for each stage (rows, n_r, c), and of parameters, (n_p, c)."""
        rows = dr[None, None] if dr.ndim == 2 else dr.reshape(len(self._part.t), -1, *dr.shape[1:])
        return Columns(rows, dp)

    def forward(self, start: Array, dr: Array, dp: Array, dense: bool, inside: Inside | None) -> Forward:
        """The changes at the starts of steps and at their end (:meth:`VariationCode.forward`)."""
        n_y, k = start.shape
        found, columns = [_Changes(start[None], np.zeros((0, n_y, k)), None)], self._columns(dr, dp)
        for own in self._steps.chunks(columns) if self._part.t.size else ():
            linear = self._steps.linearized(own, columns)
            found.append(self._along(linear, found[-1].states[-1], dense or inside is not None))
        states = np.concatenate([x.states for x in found])
        rows = [x.dense for x in found if x.dense is not None]
        coefficients = np.concatenate(rows) if rows else np.zeros((0, 4, n_y, k))
        between = None if inside is None else self._inside(coefficients, inside)
        errors = np.concatenate([x.errors for x in found])
        largest = np.abs(states).max(axis=0), errors.max(axis=0, initial=0.0)
        return Forward(states, *largest, coefficients if dense else None, between, errors)

    def _along(self, linear: Linearized, start: Array, dense: bool) -> _Changes:
        """The changes through some steps from those of their ``start`` (n_y, k)."""
        n_y = len(start)
        of_y, of_columns = (x[:, :n_y] for x in linear.ends)
        states = [start]
        for A, B in zip(of_y, of_columns, strict=True):
            states.append(A @ states[-1] + B)
        changes = np.array(states)
        stages = linear.along(changes[:-1])
        rows = dense_rows(linear.method, changes, stages) if dense else None
        return _Changes(changes[1:], np.abs(stages[:, -1]), rows)

    def _inside(self, coefficients: Array, inside: Inside) -> Array:
        """The changes at times inside steps, (n_t, n_y, k)."""
        shape = coefficients.shape[2:]
        if not inside.times.size:
            return np.zeros((0, *shape))
        dense = Dense(self._part.t, self._part.h, coefficients.reshape(*coefficients.shape[:2], -1))
        return dense(inside.times).reshape(-1, *shape)

    def pull(self, weights: Array, added: Array | None, dr: Array, running: float) -> Pull:
        """Pull the ``weights`` (n_y,) of the state at the end back to the start (:meth:`_pull_steps` of the adjoint).

        ``added`` (m + 1, n_y) or None: weights of the states. ``dr``: changes of the inputs along k directions, beside
        which the changes of p are columns. ``running``: the weight of the running cost.
        """
        n_p, k = len(self._code.functions.parameters), dr.shape[-1]
        dp = np.hstack([np.zeros((n_p, k)), np.eye(n_p)])
        of_r = np.concatenate([dr, np.zeros((*dr.shape[:-1], n_p))], axis=-1)
        columns, pull = self._columns(of_r, dp), Pull.starting(weights, k + n_p)
        chunks = list(self._steps.chunks(columns)) if self._part.t.size else []
        for own in reversed(chunks):
            later = None if added is None else added[own.start + 1 : own.stop + 1]
            pull = pull.through(self._steps.linearized(own, columns), later, running)
        return pull


class _Changes(NamedTuple):
    """Changes of the states (m, n_y, k) at the ends of steps, their local errors (m, n_y, k), and dense output."""

    states: Array
    errors: Array
    dense: Array | None


class Pull(NamedTuple):
    """What was pulled back: weights of the state at the start, the gradient in the c columns, and the running cost.

    ``weight_sizes`` (n_y,), ``sizes`` (c,): the largest weights and gradients. ``of_weights`` (m, n_y), ``of_gradient``
    (m, c): their local errors in the steps, in order.
    """

    weights: Array
    gradient: Array
    weight_sizes: Array
    sizes: Array
    of_weights: Array
    of_gradient: Array
    cost: float

    @classmethod
    def starting(cls, weights: Array, n_columns: int) -> Pull:
        """Before any step."""
        n_y, none = weights.size, np.zeros(n_columns)
        return cls(weights, none, np.zeros(n_y), none, np.zeros((0, n_y)), np.zeros((0, n_columns)), 0.0)

    def through(self, linear: Linearized, added: Array | None, running: float) -> Pull:
        """Pull through steps, the last one first; ``added`` (m, n_y): weights of the states at their ends."""
        (of_y, of_columns), n_y, weights = linear.ends, self.weights.size, self.weights
        ends = np.zeros((len(of_y), of_y.shape[1]))
        ends[:, n_y:] = running
        starts = np.zeros((len(of_y), n_y))
        for i in reversed(range(len(of_y))):
            ends[i, :n_y] = weights if added is None else weights + added[i]
            starts[i] = weights = ends[i] @ of_y[i]
        gradients = (ends[:, None] @ of_columns)[:, 0]
        totals = self.gradient + np.cumsum(gradients[::-1], axis=0)
        last = linear.of_y[:, -1], linear.of_columns[:, -1]
        of_start, of_gradient = (np.abs((ends[:, None] @ x)[:, 0]) for x in last)
        return Pull(
            weights,
            totals[-1],
            np.maximum(self.weight_sizes, np.abs(starts).max(axis=0)),
            np.maximum(self.sizes, np.abs(totals).max(axis=0)),
            np.concatenate([of_start, self.of_weights]),
            np.concatenate([of_gradient, self.of_gradient]),
            self.cost + float(linear.increments[:, n_y:].sum()),
        )


def dense_rows(method: Rosenbrock, changes: Array, stages: Array) -> Array:
    """Dense output (m, 4, n_y, k) of changes (m + 1, n_y, k) at the ends of steps, and of their stages."""
    rows = [changes[:-1], changes[1:] - changes[:-1]]
    weights = np.array([[float(x) for x in row] for row in method.dense])
    rows += list(np.tensordot(weights, stages, axes=(1, 1)))
    return np.stack(rows, axis=1)


def rosenbrock(method: str) -> Rosenbrock:
    """The coefficients of an implicit method."""
    return cast(Rosenbrock, METHODS[method].coefficients)
