"""Where the unknowns of a transcription are: places in one array of variables, followed by known numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.points import MESH
from kanegen.control.statement import Statement

Places = NDArray[np.int32]

_SAME_TIME = 1e-9
"""Times that differ by a smaller fraction of the duration are the same."""


@dataclass(frozen=True, eq=False)
class Moments:
    """States at single times ``tau`` (n,), ascending from 0 to 1: at the places ``y`` (n, n_y).

    Times that are no mesh points, at the rows ``own``, have states of their own.
    """

    tau: Array
    y: Places
    own: NDArray[np.int64]

    def rows(self, tau: Array) -> Places:
        """The places of the states at some of the times, (m, n_y)."""
        return self.y[np.searchsorted(self.tau, tau)]


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of the unknowns on a ``mesh`` (N + 1,), from 0 to 1.

    ``mesh_y`` (N + 1, n_y): states at mesh points; ``stage_y`` (N, s, n_y): at stages, some of which are mesh points.
    ``stages`` (N, s): the number of each stage among all different ones, m; ``tau`` (m,): their times. ``udot``
    (m, n_u), ``multipliers`` (m, n_c), ``inputs`` (m, n_r), with known numbers for inputs that are given. ``moves``
    (N + 1, n): unknowns of the projections onto the constraints, zero at the start. ``duration``: a place.
    ``parameters`` (n_p,). ``held`` (n_r,): values of inputs at single points; those of unknown ones are zero.
    ``moments``: single times inside the motion; ``sample_rows``: for each sum over samples the places of times and
    data, (n, 1 + k). Places from ``n_x`` on are those of ``known`` numbers.
    """

    statement: Statement
    mesh: Array
    n_x: int
    mesh_y: Places
    stage_y: Places
    stages: Places
    tau: Array
    udot: Places
    multipliers: Places
    inputs: Places
    moves: Places
    duration: int
    parameters: Places
    held: Places
    moments: Moments
    sample_rows: tuple[Places, ...]
    known: Array
    mesh_tau: Places
    stage_tau: Places

    @cached_property
    def all_y(self) -> Places:
        """The places of all states, (m, n_y), each once, in the order of their times."""
        rows = np.concatenate([self.mesh_y, self.stage_y.reshape(-1, self.mesh_y.shape[1])])
        _, first = np.unique(rows[:, 0], return_index=True)
        times = np.concatenate([self.mesh, self.tau_of_stages.ravel()])[first]
        return rows[first][np.argsort(times, kind="stable")]

    @cached_property
    def weights(self) -> Array:
        """The weights of the stages in integrals over the time from 0 to 1, (m,)."""
        found = np.zeros(len(self.tau))
        np.add.at(found, self.stages, np.diff(self.mesh)[:, None] * self.statement.scheme.b)
        return found

    @cached_property
    def tau_of_stages(self) -> Array:
        """The times of the stages, (N, s), from 0 to 1."""
        return self.tau[self.stages]

    @cached_property
    def tau_of_y(self) -> Array:
        """The times of `all_y`, (m,)."""
        times = np.concatenate([self.mesh, self.tau_of_stages.ravel()])
        rows = np.concatenate([self.mesh_y, self.stage_y.reshape(-1, self.mesh_y.shape[1])])
        _, first = np.unique(rows[:, 0], return_index=True)
        return np.sort(times[first], kind="stable")


class _Allocation:
    """Counts places of variables and of known numbers; the latter are negative until all variables are known."""

    def __init__(self) -> None:
        self.n_x, self.known = 0, [0.0]  # the first number is that of the moves at the start

    def variables(self, *shape: int) -> Places:
        first, self.n_x = self.n_x, self.n_x + math.prod(shape)
        return np.arange(first, self.n_x, dtype=np.int32).reshape(shape)

    def numbers(self, values: Array) -> Places:
        first = len(self.known)
        self.known += np.ravel(values).tolist()
        return -1 - np.arange(first, len(self.known), dtype=np.int32).reshape(np.shape(values))


def layout_of(statement: Statement, code: PointCode, mesh: Array) -> Layout:
    """The places of the unknowns of a problem on a mesh."""
    scheme, a, n = statement.scheme, _Allocation(), len(mesh) - 1
    model = statement.model
    n_y, n_u, s = len(statement.components), len(model.speeds), len(scheme.c)
    mesh_y = a.variables(n + 1, n_y)
    stage_y = np.empty((n, s, n_y), dtype=np.int32)
    for j in range(s):
        at_start, at_end = j == 0 and scheme.starts_at_mesh, j == s - 1 and scheme.ends_at_mesh
        stage_y[:, j] = mesh_y[:-1] if at_start else mesh_y[1:] if at_end else a.variables(n, n_y)
    stages, tau = _stages(statement, mesh)
    m = len(tau)
    udot, multipliers = a.variables(m, n_u), a.variables(m, code.n_constraints)
    unknown = a.variables(m, len(statement.inputs))
    inputs = np.tile(a.numbers(statement.held), (m, 1))
    inputs[:, list(statement.inputs)] = unknown
    inputs[stages.ravel()[:, None], list(statement.rated)] = stage_y.reshape(-1, n_y)[:, statement.n_state :]
    points = code.kind(MESH)
    moves = np.full((n + 1, points.rows("positions").stop + points.groups["velocities"] if points else 0), -1, np.int32)
    moves[1:] = a.variables(n, moves.shape[1])
    duration = a.variables(1)[0] if statement.is_timed else a.numbers(np.array([statement.duration[0]]))[0]
    parameters = a.numbers(statement.values)
    parameters[list(statement.parameters)] = a.variables(len(statement.parameters))
    held, mesh_tau, stage_tau = a.numbers(statement.held), a.numbers(mesh), a.numbers(tau)
    moments = _moments(statement, mesh, mesh_y, a)
    rows = [a.numbers(np.column_stack([x.times, x.values])) for x in (each.samples for each in statement.cost.sampled)]

    def placed(places: Places) -> Places:
        return np.where(places < 0, a.n_x - 1 - places, places).astype(np.int32)

    return Layout(
        statement, mesh, a.n_x, mesh_y, stage_y, stages, tau, udot, multipliers, placed(inputs), placed(moves),
        int(placed(duration)), placed(parameters), placed(held), moments, tuple(map(placed, rows)), np.array(a.known),
        placed(mesh_tau), placed(stage_tau),
    )  # fmt: skip


def _moments(statement: Statement, mesh: Array, mesh_y: Places, a: _Allocation) -> Moments:
    """The states at the times inside the motion and at the samples, which share those of mesh points."""
    tau = statement.moments
    after = np.clip(np.searchsorted(mesh, tau), 1, len(mesh) - 1)
    nearest = after - (tau - mesh[after - 1] < mesh[after] - tau)
    y = mesh_y[nearest]
    own = np.flatnonzero(np.abs(mesh[nearest] - tau) > _SAME_TIME)
    y[own] = a.variables(own.size, mesh_y.shape[1])
    return Moments(tau, y, own)


def _stages(statement: Statement, mesh: Array) -> tuple[Places, Array]:
    """The number of each stage (N, s), and the times (m,) of the different ones.

    Intervals share the stages at their ends, where inputs are continuous, but for those at times of conditions.
    """
    scheme, n, s = statement.scheme, len(mesh) - 1, len(statement.scheme.c)
    times = mesh[:-1, None] + np.diff(mesh)[:, None] * scheme.c
    if not (scheme.starts_at_mesh and scheme.ends_at_mesh):
        return np.arange(n * s, dtype=np.int32).reshape(n, s), times.ravel()
    conditions = np.array(statement.times) / statement.duration[0]
    jumps = np.abs(mesh[:-1, None] - conditions).min(axis=1, initial=np.inf) < _SAME_TIME
    jumps[0] = False
    first = (s - 1) * np.arange(n) + np.cumsum(jumps)
    stages = (first[:, None] + np.arange(s)).astype(np.int32)
    tau = np.empty(stages[-1, -1] + 1)
    tau[stages] = times
    return stages, tau
