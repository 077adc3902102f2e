"""A problem of optimal control as a nonlinear program: constant sparse matrices times the values of points.

With the variables x and the values v(x) of all points, constraints and cost are ``L x + V v(x)``. Their derivatives and
the Hessian of the Lagrangian are constant sparse matrices times the derivatives of the points. A scheme, a mesh, and
scales of variables and rows only change these matrices, so that compiled code knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.layout import Layout, Places
from kanegen.control.points import ENDS, MESH, STAGE, PointFunctions, sample_kind

Integers = NDArray[np.int64]

MOMENTS = "moments"
"""The label of the rows that determine states at single times inside intervals."""


@dataclass(frozen=True, eq=False)
class Points:
    """The points of one kind: places of their arguments (n, n_arguments); their values are from ``first`` on."""

    functions: PointFunctions
    arguments: Places
    first: int

    def values(self, group: str) -> Integers:
        """The places of the values of a group among those of all points, (n, size)."""
        rows = np.array(self.functions.rows(group), dtype=np.int64)
        return self.first + np.arange(len(self.arguments))[:, None] * self.functions.n_values + rows

    def columns(self, parameters: Places) -> Places:
        """The places of the variables of derivatives, (n, variables)."""
        places = self.functions.variables
        rows = [self.arguments[:, k] if k >= 0 else np.full(len(self.arguments), parameters[-1 - k]) for k in places]
        return np.array(rows, dtype=np.int32).reshape(len(places), len(self.arguments)).T


@dataclass
class Triplets:
    """Entries (row, column, value) of a sparse matrix that is being built."""

    rows: list[Integers] = field(default_factory=list)
    columns: list[Integers] = field(default_factory=list)
    entries: list[Array] = field(default_factory=list)

    def add(self, rows: Any, columns: Any, values: Any) -> None:
        """Add entries; the arguments are broadcast."""
        shape = np.broadcast_shapes(np.shape(rows), np.shape(columns), np.shape(values))
        for target, given in ((self.rows, rows), (self.columns, columns), (self.entries, values)):
            target.append(np.broadcast_to(given, shape).ravel())

    def arrays(self) -> tuple[Integers, Integers, Array]:
        """Rows, columns and values."""
        if not self.rows:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        parts = (np.concatenate(each) for each in (self.rows, self.columns, self.entries))
        rows, columns, values = parts
        return rows.astype(np.int64), columns.astype(np.int64), values.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Transcription:
    """Constraints and cost as ``linear`` times the variables and ``curved`` times the values of points, in SI units.

    ``labels``: what the rows are, as ranges by name; ``low``, ``high`` (n_g,): their bounds. The cost is the last row.
    """

    layout: Layout
    points: tuple[Points, ...]
    linear: tuple[Integers, Integers, Array]
    curved: tuple[Integers, Integers, Array]
    labels: dict[str, range]
    low: Array
    high: Array

    @property
    def n_g(self) -> int:
        return len(self.low)

    @property
    def n_values(self) -> int:
        """The number of values of all points."""
        last = self.points[-1]
        return last.first + len(last.arguments) * last.functions.n_values


def transcribe(layout: Layout, code: PointCode, kept: Array | None = None) -> Transcription:
    """The transcription on a mesh. ``kept``: rows of mesh points that are kept, (N + 1, n), None: all."""
    builder = _Builder(layout, code)
    builder.defects()
    builder.moments()
    builder.stages()
    builder.projections(kept)
    builder.ends()
    builder.samples()
    return builder.finished()


class _Builder:
    def __init__(self, layout: Layout, code: PointCode) -> None:
        self.layout, self.statement = layout, layout.statement
        self.linear, self.curved = Triplets(), Triplets()
        self.cost = Triplets()
        self.labels: dict[str, range] = {}
        self.bounds: list[Array] = []
        self.n_g, self.n_values = 0, 0
        self.points: dict[str, Points] = {}
        makers: dict[str, Callable[[], Places]] = {
            **{STAGE: self._stage_arguments, MESH: self._mesh_arguments, ENDS: self._end_arguments},
            **{sample_kind(k): partial(self._sample_arguments, k) for k in range(len(layout.sample_rows))},
        }
        for kind in code.kinds:
            points = Points(kind, makers[kind.name](), self.n_values)
            self.points[kind.name] = points
            self.n_values += len(points.arguments) * kind.n_values

    def _stage_arguments(self) -> Places:
        at, m = self.layout, len(self.layout.tau)
        y = np.empty((m, at.mesh_y.shape[1]), dtype=np.int32)
        y[at.stages.ravel()] = at.stage_y.reshape(-1, y.shape[1])
        duration = np.full((m, 1), at.duration, dtype=np.int32)
        own = y[:, : self.statement.n_state]
        return np.hstack([own, at.inputs, at.udot, at.multipliers, duration, at.stage_tau[:, None]])

    def _mesh_arguments(self) -> Places:
        at, n = self.layout, len(self.layout.mesh)
        duration = np.full((n, 1), at.duration, dtype=np.int32)
        return np.hstack([self._states(at.mesh_y), duration, at.mesh_tau[:, None], at.moves])

    def _states(self, y: Places) -> Places:
        """The places of states and inputs at single points, where unknown inputs without rates have no values."""
        r = np.tile(self.layout.held, (len(y), 1))
        r[:, list(self.statement.rated)] = y[:, self.statement.n_state :]
        return np.hstack([y[:, : self.statement.n_state], r])

    def _end_arguments(self) -> Places:
        at, statement = self.layout, self.statement
        inputs, at_times = list(statement.inputs), at.moments.rows(np.array(statement.times) / statement.duration[0])
        first, last = at.stages[0, 0], at.stages[-1, -1]  # of the scheme, where it has stages there
        start = self._states(at.mesh_y[:1])[0]
        start[statement.n_state :][inputs] = at.inputs[first, inputs]
        end = [at.mesh_y[-1], at.inputs[last, inputs], at.udot[last]]
        return np.concatenate([start, at.udot[first], *end, at_times.ravel(), [at.duration]]).astype(np.int32)[None]

    def _sample_arguments(self, k: int) -> Places:
        times = self.statement.cost.sampled[k].samples.times / self.statement.duration[0]
        return np.hstack([self._states(self.layout.moments.rows(times)), self.layout.sample_rows[k]])

    def _rows(self, name: str, count: int, low: Any = 0.0, high: Any = 0.0) -> Integers:
        """New rows of constraints."""
        first, self.n_g = self.n_g, self.n_g + count
        self.labels[name] = range(first, self.n_g)
        pair = [np.broadcast_to(np.asarray(x, dtype=np.float64).ravel(), count) for x in (low, high)]
        self.bounds.append(np.stack(pair))
        return np.arange(first, self.n_g)

    def defects(self) -> None:
        """States at stages and ends of intervals from the rates."""
        at, scheme = self.layout, self.statement.scheme
        n, s, n_y = at.stage_y.shape
        h = np.diff(at.mesh)[:, None]
        rates = self.points[STAGE].values("rates")[at.stages]  # (N, s, n_y)
        weights = [(scheme.A[j], at.stage_y[:, j], f"stage {j}") for j in range(s)]
        if scheme.ends_at_mesh:
            weights[-1] = (scheme.b, at.mesh_y[1:], "end")
        else:
            weights.append((scheme.b, at.mesh_y[1:], "end"))
        for weight, places, name in weights[1:] if scheme.starts_at_mesh else weights:
            rows = self._rows(f"defects, {name}", n * n_y).reshape(n, n_y)
            self.linear.add(rows, places, 1.0)
            self.linear.add(rows, at.mesh_y[:-1], -1.0)
            for j in np.flatnonzero(weight):
                self.curved.add(rows, rates[:, j], -h * weight[j])
            if name == "end" and MESH in self.points:
                moves = self.points[MESH].values("moves")[1:]
                self.curved.add(rows[:, : moves.shape[1]], moves, -1.0)

    def moments(self) -> None:
        """States at single times inside intervals, from the rates at the stages."""
        at, scheme = self.layout, self.statement.scheme
        tau, places = at.moments.tau[at.moments.own], at.moments.y[at.moments.own]
        k = np.clip(np.searchsorted(at.mesh, tau, side="right") - 1, 0, len(at.mesh) - 2)
        h = np.diff(at.mesh)[k]
        theta, rates = (tau - at.mesh[k]) / h, self.points[STAGE].values("rates")[at.stages]
        rows = self._rows(MOMENTS, places.size).reshape(places.shape)
        self.linear.add(rows, places, 1.0)
        self.linear.add(rows, at.mesh_y[k], -1.0)
        for j, polynomial in enumerate(scheme.dense):
            self.curved.add(rows, rates[k, j], -(h * np.polyval(polynomial, theta))[:, None])

    def stages(self) -> None:
        """Equations of motion, conditions along the path, and the integral of the cost."""
        at, points, statement = self.layout, self.points[STAGE], self.statement
        values = points.values("dynamics")
        self.curved.add(self._rows("equations of motion", values.size), values.ravel(), 1.0)
        path = points.values("path")
        bounds = np.array([(c.low, c.high) for c in statement.path]).reshape(-1, 2)
        low, high = (np.tile(bounds[:, k], len(path)) for k in (0, 1))
        self.curved.add(self._rows("path", path.size, low, high), path.ravel(), 1.0)
        self.cost.add(0, points.values("integrand")[:, 0], at.weights)

    def projections(self, kept: Array | None) -> None:
        """Constraints on positions and speeds at mesh points."""
        if MESH not in self.points:
            return
        points = self.points[MESH]
        values = np.hstack([points.values("positions"), points.values("velocities")])
        values = values.ravel() if kept is None else values[kept]
        self.curved.add(self._rows("constraints", values.size), values, 1.0)

    def ends(self) -> None:
        """Conditions on expressions at the ends, and the cost outside of integrals."""
        if ENDS not in self.points:
            return
        points, statement = self.points[ENDS], self.statement
        for name, ends in (("start", statement.start), ("end", statement.end)):
            bounds = np.array([(c.low, c.high) for c in ends.conditions]).reshape(-1, 2)
            values = points.values(name).ravel()
            self.curved.add(self._rows(name, len(values), *bounds.T), values, 1.0)
        bounds = np.array([(c.low, c.high) for c in statement.coupled]).reshape(-1, 2)
        values = points.values("coupled").ravel()
        self.curved.add(self._rows("coupled", len(values), *bounds.T), values, 1.0)
        values = points.values("cost").ravel()
        self.cost.add(np.zeros(len(values), dtype=np.int64), values, 1.0)

    def samples(self) -> None:
        """The sums over samples in the cost."""
        for k, sampled in enumerate(self.statement.cost.sampled):
            values = self.points[sample_kind(k)].values("value").ravel()
            self.cost.add(np.zeros(len(values), dtype=np.int64), values, sampled.factor)

    def finished(self) -> Transcription:
        """All rows, with the cost behind them."""
        rows, columns, entries = self.cost.arrays()
        self.curved.add(rows + self.n_g, columns, entries)
        low, high = np.hstack(self.bounds)
        points = tuple(self.points.values())
        return Transcription(self.layout, points, self.linear.arrays(), self.curved.arrays(), self.labels, low, high)
