"""Derivatives of the steps of a Rosenbrock method, which is implicit in the Jacobian of the rates.

A stage k of a step of size h from (t, y) solves ``W k = f(Y) + sum C_j k_j / h + h d f_t`` at ``Y = y + sum a_j k_j``,
with ``W = I / (h gamma) - f_y`` (Hairer and Wanner 1996, section IV.7). Its derivative solves

    W dk = df(Y) + sum C_j dk_j / h + d(f_y k + h d f_t),    where k and h d are held in the last term,

which is the second derivative of f along (k, h d). The states at the starts of steps are known, so that the derivatives
of all steps with respect to their starts are computed side by side; then they are multiplied one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.methods.rosenbrock import Rosenbrock
from kanegen.solve.gradients.tape import Part

SLOPE_NODES: Final = tuple(k / 8 for k in range(1, 7))
"""Fractions of a step at which the inputs give their rates at its start, with their values there."""

_SLOPE_WEIGHTS: Final = 8.0 * np.array([-49 / 20, 6.0, -15 / 2, 20 / 3, -15 / 4, 6 / 5, -1 / 6])
"""Weights of these values in the rate times the step: order 6."""

_LARGEST: Final = 1_000_000
"""Numbers in one array of slopes."""


class RateFunctions(Protocol):
    """y' and a running cost, n_f values, with derivatives: at times (N,), states (N, n_y) and loads (N, n_l).

    The slopes are those in (y, loads, p), (N, n_f, n_y + n_l + n_p).
    """

    n_f: int

    def rates(self, t: Array, y: Array, loads: Array) -> Array:
        """y' and the running cost, (N, n_f)."""

    def slopes(self, t: Array, y: Array, loads: Array) -> Array:
        """Their slopes."""

    def second(self, t: Array, y: Array, loads: Array, along: Array) -> tuple[Array, Array]:
        """Their changes (N, n_f) along directions of (y, loads, t), (N, n_y + n_l + 1), and the slopes of these."""


class Columns(NamedTuple):
    """What varies beside the states, c columns: ``loads`` (m or 1, nodes or 1, n_l, c), ``p`` (n_p, c)."""

    loads: Array
    p: Array

    def of(self, own: slice) -> Columns:
        """Those of some steps."""
        return self if len(self.loads) == 1 else self._replace(loads=self.loads[own])


@dataclass(frozen=True, eq=False)
class Linearized:
    """The stages (m, s, n_f) of some steps, and their derivatives with respect to the starts of the steps,
    ``of_y`` (m, s, n_f, n_y), and to the columns, ``of_columns`` (m, s, n_f, c)."""

    method: Rosenbrock
    stages: Array
    of_y: Array
    of_columns: Array

    @property
    def _weights(self) -> Array:
        return np.array([float(x) for x in self.method.m])

    @property
    def ends(self) -> tuple[Array, Array]:
        """The derivatives of the ends of steps and of their costs: (m, n_f, n_y) and (m, n_f, c)."""
        of_y = np.tensordot(self._weights, self.of_y, axes=(0, 1))
        n_y = of_y.shape[2]
        of_y[:, np.arange(n_y), np.arange(n_y)] += 1.0
        return of_y, np.tensordot(self._weights, self.of_columns, axes=(0, 1))

    @property
    def increments(self) -> Array:
        """The changes of y and of the costs in each step, (m, n_f)."""
        return np.tensordot(self._weights, self.stages, axes=(0, 1))

    def along(self, changes: Array) -> Array:
        """The changes (m, s, n_y, c) of the stages from those of the starts, (m, n_y, c)."""
        n_y = changes.shape[1]
        return self.of_y[:, :, :n_y] @ changes[:, None] + self.of_columns[:, :, :n_y]


class StiffSteps:
    """The steps of a part, to be linearized. ``loads`` (m or 1, nodes or 1, n_l): at the nodes of each step.

    The nodes are those of the method, then `SLOPE_NODES`; ``times`` (m, nodes).
    """

    def __init__(self, functions: RateFunctions, method: Rosenbrock, part: Part, times: Array, loads: Array) -> None:
        self.functions, self.method, self.part = functions, method, part
        self._times, self._loads = times, loads

    def chunks(self, columns: Columns) -> Iterator[slice]:
        """Steps that are linearized together, in order."""
        m, n_y = len(self.part.t), self.part.y.shape[1]
        width = n_y + self._loads.shape[2] + max(columns.p.shape)
        size = max(1, _LARGEST // (self.functions.n_f * width * self.method.stages))
        return (slice(first, min(first + size, m)) for first in range(0, m, size))

    def linearized(self, own: slice, columns: Columns) -> Linearized:
        """The derivatives of some steps."""
        return _Linearization(self, own, columns.of(own)).run()

    def at(self, own: slice, node: int) -> tuple[Array, Array]:
        """The times (m,) and the loads (m, n_l) at a node of some steps."""
        loads = self._loads[own] if len(self._loads) > 1 else self._loads
        at_node = loads[:, min(node, loads.shape[1] - 1)]
        times = self._times[own, node]
        return times, np.broadcast_to(at_node, (len(times), at_node.shape[1]))


class _Linearization:
    """The stages of some steps, one after the other."""

    def __init__(self, steps: StiffSteps, own: slice, columns: Columns) -> None:
        self.steps, self.own, self.columns = steps, own, columns
        self.functions, self.method = steps.functions, steps.method
        part = steps.part
        self.h, self.y = part.h[own], part.y[own]
        self.moved, self.edges = part.y[own.start + 1 : own.stop + 1] - self.y, part.edges[own]
        m, (n_y, s, n_f) = len(self.h), (self.y.shape[1], self.method.stages, self.functions.n_f)
        self.stages = np.zeros((m, s, n_f))
        self.of_y, self.of_columns = np.zeros((m, s, n_f, n_y)), np.zeros((m, s, n_f, columns.p.shape[1]))

    def run(self) -> Linearized:
        """All stages with their derivatives."""
        self._start()
        for i in range(self.method.stages):
            self._stage(i)
        return Linearized(self.method, self.stages, self.of_y, self.of_columns)

    def _start(self) -> None:
        """W^-1, and the slopes of the rates at the starts of the steps."""
        n_f, n_y = self.functions.n_f, self.y.shape[1]
        self.start_slopes = slopes = self.functions.slopes(*self._point(0, self.y))
        W = np.zeros((len(self.h), n_f, n_f))
        W[:, np.arange(n_f), np.arange(n_f)] = 1.0 / (self.h[:, None] * float(self.method.gamma))
        W[:, :, :n_y] -= slopes[:, :, :n_y]
        self.inverse = np.linalg.inv(W)
        self.load_rates = self._rates_at_start(lambda node: self.steps.at(self.own, node)[1])
        along_t = np.zeros((len(self.h), n_y + self.load_rates.shape[1] + 1))
        along_t[:, n_y:-1], along_t[:, -1] = self.load_rates, 1.0
        self.slope, _ = self.functions.second(*self._point(0, self.y), along_t)

    def _point(self, node: int, y: Array) -> tuple[Array, Array, Array]:
        """Times, states and loads at a node; beside a kink the states are moved inside the step."""
        c = float(self.method.c[node])
        part = self.edges[:, 0] if c == 0.0 else -self.edges[:, 1] if c == 1.0 else np.zeros(len(self.h))
        times, loads = self.steps.at(self.own, node)
        return times, y + part[:, None] * self.moved, loads

    def _columns_at(self, node: int) -> Array:
        """The changes of the loads at a node, (m or 1, n_l, c)."""
        return self.columns.loads[:, min(node, self.columns.loads.shape[1] - 1)]

    def _rates_at_start(self, values_at: Callable[[int], Array]) -> Array:
        """The rates at the starts of steps, (m, ...), of what has values (m or 1, ...) at nodes."""
        places = (0, *range(self.method.stages, self.method.stages + len(SLOPE_NODES)))
        total = np.tensordot(_SLOPE_WEIGHTS, np.array([values_at(node) for node in places]), axes=1)
        return np.asarray(total / self.h.reshape(-1, *[1] * (total.ndim - 1)))

    def _stage(self, i: int) -> None:
        """One stage with its derivatives."""
        method, n_y, h = self.method, self.y.shape[1], self.h[:, None]
        a, C, d = _row(method.a[i], i), _row(method.C[i], i), float(method.d[i])
        at = self._point(i, self.y + np.tensordot(a, self.stages[:, :i, :n_y], axes=(0, 1)))
        before = np.tensordot(C, self.stages[:, :i], axes=(0, 1)) / h
        right = self.functions.rates(*at) + before + d * h * self.slope
        self.stages[:, i] = (self.inverse @ right[:, :, None])[:, :, 0]
        of_y, of_columns = self._changes_of_rates(i, at, a)
        second_y, second_columns = self._second(i, d)
        of_y += np.tensordot(C, self.of_y[:, :i], axes=(0, 1)) / h[:, None] + second_y
        of_columns += np.tensordot(C, self.of_columns[:, :i], axes=(0, 1)) / h[:, None] + second_columns
        self.of_y[:, i], self.of_columns[:, i] = self.inverse @ of_y, self.inverse @ of_columns

    def _changes_of_rates(self, i: int, at: tuple[Array, Array, Array], a: Array) -> tuple[Array, Array]:
        """The derivatives of f(Y)."""
        n_y = self.y.shape[1]
        slopes = self.functions.slopes(*at) if i else self.start_slopes
        arguments = np.tensordot(a, self.of_y[:, :i, :n_y], axes=(0, 1))
        arguments[:, np.arange(n_y), np.arange(n_y)] += 1.0
        of_columns = self._through_columns(slopes, self._columns_at(i))
        of_columns += slopes[:, :, :n_y] @ np.tensordot(a, self.of_columns[:, :i, :n_y], axes=(0, 1))
        return slopes[:, :, :n_y] @ arguments, of_columns

    def _second(self, i: int, d: float) -> tuple[Array, Array]:
        """The derivatives of f_y k + h d f_t, in which k is held."""
        n_y, h = self.y.shape[1], self.h[:, None]
        along = np.hstack([self.stages[:, i, :n_y], d * h * self.load_rates, d * h])
        _, slopes = self.functions.second(*self._point(0, self.y), along)
        of_columns = self._through_columns(slopes, self._columns_at(0))
        if d and self.columns.loads.shape[1] > 1:
            own = self.start_slopes[:, :, n_y : n_y + self.load_rates.shape[1]]
            of_columns += d * h[:, None] * (own @ self._rates_at_start(self._columns_at))
        return slopes[:, :, :n_y], of_columns

    def _through_columns(self, slopes: Array, of_loads: Array) -> Array:
        """What the changes of loads and parameters give."""
        n_y, n_l = self.y.shape[1], of_loads.shape[1]
        through_loads = slopes[:, :, n_y : n_y + n_l] @ of_loads
        return np.asarray(through_loads + slopes[:, :, n_y + n_l :] @ self.columns.p)


def _row(values: tuple[object, ...], length: int) -> Array:
    """A row of coefficients of a method."""
    row = np.zeros(length)
    row[: len(values)] = [float(x) for x in values]  # type: ignore[arg-type]
    return row
