"""The equations of a periodic motion, over one segment or several, with the exact derivatives of motions.

With the states y_1 ... y_m at the starts of m segments of the period T, the equations are y_(k+1) = phi(y_k) and
y_1 + advance = phi(y_m), where phi follows the motion over T / m (multiple shooting: H. B. Keller, Numerical Methods
for Two-Point Boundary-Value Problems, Blaisdell 1968; for periodic motions P. Deuflhard, BIT 24 (1984) 456-466). The
period of an autonomous motion is an unknown, and the correction of y_1 is orthogonal to the
flow. With a section the last segment ends at the next event of this name, whatever time that takes.

The states remain on the manifold of the constraints: corrections are tangent to it, and are then made consistent. All
unknowns are relative to the sizes of the components in the motion of the guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.run_options import RunOptions
from kanegen.solve.consistent import RunStart, make_consistent
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.directions import Direction, Kind, unit_columns
from kanegen.solve.gradients.forward import propagate
from kanegen.solve.gradients.inputs import InputChanges, require_constant
from kanegen.solve.gradients.runs import tape_of
from kanegen.solve.gradients.tape import Tape
from kanegen.solve.run.integrate import integrate
from kanegen.solve.run.problem import Problem
from kanegen.solve.solution import Solution

_CLOSINGS: Final = 4
"""Iterations of Newton's method that close gaps; from corrections of the search it converges in three."""

_DEPENDENT: Final = 1e-9
"""Singular values of constraints below this fraction of the largest count as zero."""
_UNDETERMINED: Final = 1e-8
"""The same for the equations of a periodic motion; their corrections are those of least norm."""
_AT_ONCE: Final = 0.05
"""Events of the section within this fraction of the period after the start belong to the start."""
_LONGEST: Final = 3.0
"""The section is reached within this multiple of the period of the guess."""
_BEYOND: Final = 1e-3
"""Runs continue after the section for this fraction of the period."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What all motions of a search have in common.

    ``t0``: the time of the start. ``scale`` (n_y,): the sizes of the components. ``advance`` (n_y,): what is added to
    the state in a period. ``fixed``: indices in y of start values that do not change. ``forced``: whether the period is
    known; ``autonomous``: whether nothing depends on time. ``section``: the name of an event or None. ``r``,
    ``options``: as for :meth:`kanegen.Solver.integrate`.
    """

    t0: float
    segments: int
    scale: Array
    advance: Array
    fixed: tuple[int, ...]
    forced: bool
    autonomous: bool
    section: str | None
    r: Any
    options: RunOptions

    @property
    def is_period_unknown(self) -> bool:
        """Whether the period is one of the unknowns."""
        return not self.forced and self.section is None


@dataclass(frozen=True, eq=False)
class Varied:
    """A parameter or input that varies along a curve: its ``unit``, and the rate of the period of forced motions."""

    direction: Direction
    unit: float
    period_rate: float = 0.0


@dataclass(frozen=True, eq=False)
class Nodes:
    """The states ``y`` (m, n_y) at the starts of the segments, and the ``period``."""

    y: Array
    period: float


@dataclass(frozen=True, eq=False)
class Manifold:
    """The constraints at a state, in relative units.

    ``tangent`` (n_y, k) and ``normal`` (n_y, n_y - k) are orthonormal; ``shift`` (n_y,): how the nearest state that
    satisfies the constraints moves with what varies.
    """

    tangent: Array
    normal: Array
    shift: Array


@dataclass(frozen=True, eq=False)
class Segment:
    """A motion over a segment in relative units: its ``end`` (n_y,), the ``rate`` there and the ``duration``.

    ``changes`` (n_y, k): of the end with the tangent changes of the start. ``along`` (n_y,): with the start moving
    along the motion. ``with_parameter`` (n_y,): with what varies.
    """

    end: Array
    rate: Array
    duration: float
    changes: Array
    along: Array
    with_parameter: Array


@dataclass(frozen=True, eq=False)
class System:
    """The equations at some nodes: ``matrix`` @ changes + ``residual`` = 0, and exactly ``kept`` @ changes = 0.

    ``transitions``: the derivatives (k, k) of each segment in tangent changes. ``flow`` (k,): the rate at the start.
    """

    nodes: Nodes
    matrix: Array
    residual: Array
    kept: Array
    manifolds: tuple[Manifold, ...]
    segments: tuple[Segment, ...]
    transitions: tuple[Array, ...]
    flow: Array

    @property
    def error(self) -> float:
        """The largest residual, relative to the sizes of the components."""
        return float(np.abs(self.residual).max(initial=0.0))

    @property
    def duration(self) -> float:
        """The time that the motion takes."""
        return float(sum(segment.duration for segment in self.segments))

    def correction(self, more: Array | None = None, trusted: float = 0.0, residual: Array | None = None) -> Array:
        """The correction of least norm, of another residual too; ``more``: a row that it is orthogonal to.

        Directions whose singular values are at most ``trusted`` (of rows of length 1) are left out.
        """
        sizes = np.maximum(np.linalg.norm(self.matrix, axis=1), 1.0)  # rows of strong expansion, not those of none
        kept = self.kept if more is None else np.vstack([self.kept, more])
        _, values, V = np.linalg.svd(kept)
        free = V[int((values > _DEPENDENT * values.max(initial=0.0)).sum()) :].T
        U, values, V = np.linalg.svd((self.matrix / sizes[:, None]) @ free, full_matrices=False)
        used = values > max(_UNDETERMINED * values.max(initial=0.0), trusted)
        right = (self.residual if residual is None else residual) / sizes
        step: Array = -free @ (V[used].T @ ((U[:, used].T @ right) / values[used]))
        return step


@dataclass(frozen=True, eq=False)
class _Piece:
    """The steps of a run; with ``stop`` until after the events at about this time, at most."""

    tape: Tape
    stop: float | None

    def passed(
        self, code: VariationCode, directions: Sequence[Direction], start: Array
    ) -> tuple[float, Array, Array, Array, Array]:
        """The time, state and rates at the end, the changes of the state (n_y, n), and those of the time (n,).

        ``start`` (n_y, n): the changes at the start. Those at the end are at fixed time; without events there, the time
        does not change.
        """
        inputs = InputChanges(len(code.functions.description.inputs), directions)
        changes, events = propagate(code, self.tape, directions, start, inputs).whole(), self.tape.events
        if self.stop is None and not self._ends_with_event:
            t, end = self.tape.parts[-1].end
            rate = code.rate(t, end, self.tape.parts[-1].modes)
            return t, end, rate, changes.parts[-1][0][-1], np.zeros(start.shape[1])
        times = np.array([group[0].t for group in events])
        k = len(times) - 1 if self.stop is None else int(np.abs(times - self.stop).argmin())
        last = events[k][-1]
        n_before = sum(event.kind == "user" for group in events[: k + 1] for event in group)
        end = np.concatenate([last.q, last.u_after, last.s_after])
        rate = code.rate(last.t, end, self.tape.parts[k + 1].modes)
        return last.t, end, rate, changes.parts[k + 1][0][0], changes.event_times[n_before - 1]

    @property
    def _ends_with_event(self) -> bool:
        """Whether the run ended with an event at its start."""
        return bool(self.tape.events) and self.tape.events[-1][0].t == self.tape.parts[-1].end[0]


class Shooting:
    """The equations of the periodic motions of a ``solver``; ``varied``: what else is an unknown."""

    def __init__(self, solver: Any, setting: Setting, varied: Varied | None = None) -> None:
        self.solver, self.setting, self.varied = solver, setting, varied
        self._known_modes: dict[int, Array] = {}
        d = solver.description
        self.n_q, self.n_u, self.n_s = len(d.coordinates), len(d.speeds), len(d.states)
        self.n_y = self.n_q + self.n_u + self.n_s

    # -- motions ----------------------------------------------------------------------------------------------

    @cached_property
    def _problem(self) -> Problem:
        start = self._start(self.setting.t0, np.zeros(self.n_y))
        problem: Problem = self.solver._runs.having().problem(self.setting.options, start, self.setting.r)
        return problem

    @cached_property
    def code(self) -> VariationCode:
        """What differentiates the motions. Raises `SolveError` for what it cannot do."""
        code = VariationCode(self._problem, self.setting.options["method"])
        if held := self._problem.held:
            raise SolveError(f"periodic motions are not available with sampled inputs ({', '.join(held)})")
        if self._problem.loop is not None:
            raise SolveError("periodic motions are not available with control=True")
        if self.varied is not None:
            require_constant(self._problem.inputs, (self.varied.direction,))
        return code

    def _start(self, t: float, y: Array) -> RunStart:
        q, u, s = np.split(y, [self.n_q, self.n_q + self.n_u])
        return RunStart(t, q, u, s, self.setting.options["start_tolerance"])

    def motion(self, t0: float, t1: float, y: Array) -> Solution:
        """The motion from a state. Raises `SolveError`."""
        return integrate(self._problem, self._start(t0, y), t1, self.setting.options)

    def _tape(self, solution: Solution) -> Tape:
        steps = solution.dense
        assert steps is not None
        return tape_of(self.code, steps, solution, self.setting.options["rtol"])

    def _pieces(self, k: int, nodes: Nodes) -> list[_Piece]:
        """The motion over a segment; to the section in the last one."""
        m, T = self.setting.segments, nodes.period
        t0, t1 = (self.setting.t0 + T * i / m for i in (k, k + 1))
        if self.setting.section is None or k < m - 1:
            return [_Piece(self._tape(self.motion(t0, t1, nodes.y[k])), None)]
        return self._to_section(t0, nodes.y[k], T)

    def _to_section(self, t0: float, y: Array, period: float) -> list[_Piece]:
        """The motion until the next event of the section. An event at the start that ends the run is passed."""
        pieces, t, latest = list[_Piece](), t0, t0 + _LONGEST * period
        soonest = t0 + (_AT_ONCE * period if self.setting.segments == 1 else 0.0)
        while True:
            solution = self.motion(t, latest, y)
            at = next((e.t for e in solution.events if e.name == self.setting.section and e.t > soonest), None)
            if at is not None:
                if solution.last[0] > at:
                    solution = self.motion(t, at + _BEYOND * period, y)
                return [*pieces, _Piece(self._tape(solution), at)]
            t = float(solution.last[0])
            if not t <= soonest:
                raise SolveError(
                    f"the motion does not reach the section {self.setting.section!r} within {_LONGEST:g} times the "
                    f"period of the guess, until t = {t:.6g} s: give a state near the periodic motion, after the "
                    "event, and a period near that of the motion"
                )
            pieces.append(_Piece(self._tape(solution), None))
            y = np.concatenate(solution.last[1:])

    # -- equations --------------------------------------------------------------------------------------------

    def manifold(self, k: int, t: float, y: Array) -> Manifold:
        """The constraints and closed contacts at a node."""
        at, code, modes = self.code.at(t, y), self.code, self._modes(k, t, y)
        C = code.residual_changes(at, modes, np.diag(self.setting.scale)).T
        if not C.size:
            return Manifold(np.eye(self.n_y), np.zeros((self.n_y, 0)), np.zeros(self.n_y))
        sizes = np.linalg.norm(C, axis=1)
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        _, values, V = np.linalg.svd(C / sizes[:, None])
        rank = int((values > _DEPENDENT * values[0]).sum())
        shift: Array = np.zeros(self.n_y)
        if self.varied is not None:
            dr, dp = self._varied_columns((self.varied.direction,))
            c = code.residual_changes(at, modes, np.zeros((1, self.n_y)), dr.T, dp.T)[0]
            shift = np.asarray(-np.linalg.lstsq(C / sizes[:, None], c / sizes, rcond=_DEPENDENT)[0], dtype=np.float64)
        return Manifold(V[rank:].T, V[:rank].T, shift)

    def _modes(self, k: int, t: float, y: Array) -> Array:
        """The modes of the contacts at a node: those of its first state, because corrections leave closed gaps open."""
        if k not in self._known_modes:
            self._known_modes[k] = self.code.modes_at(t, y)
        return self._known_modes[k]

    def _varied_columns(self, directions: Sequence[Direction]) -> tuple[Array, Array]:
        d = self.solver.description
        return unit_columns(directions, Kind.INPUT, len(d.inputs)), unit_columns(
            directions, Kind.PARAMETER, len(d.parameters)
        )

    def segment(self, k: int, nodes: Nodes, manifold: Manifold) -> Segment:
        """The motion over a segment with its derivatives."""
        scale, t0 = self.setting.scale, self.setting.t0 + nodes.period * k / self.setting.segments
        n = manifold.tangent.shape[1]
        rate = self.code.rate(t0, nodes.y[k], self._modes(k, t0, nodes.y[k])) / scale
        start = np.column_stack([manifold.tangent, rate, manifold.shift]) * scale[:, None]
        directions = [Direction("", Kind.START, 0)] * (n + 2)
        if self.varied is not None:
            directions[-1] = self.varied.direction
        for piece in self._pieces(k, nodes):
            t, end, rate, start, of_time = piece.passed(self.code, directions, start)
            start = start + np.outer(rate, of_time)
        start = start / scale[:, None]
        return Segment(end / scale, rate / scale, t - t0, start[:, :n], start[:, n], start[:, -1])

    def system(self, nodes: Nodes) -> System:
        """The equations at some nodes. Raises `SolveError` where the motion or its derivative does not exist."""
        m, n, setting = self.setting.segments, self.n_y, self.setting
        times = [setting.t0 + nodes.period * k / m for k in range(m)]
        manifolds = tuple(self.manifold(k, t, y) for k, (t, y) in enumerate(zip(times, nodes.y, strict=True)))
        segments = tuple(self.segment(k, nodes, manifolds[k]) for k in range(m))
        flow = self.code.rate(setting.t0, nodes.y[0], self._modes(0, setting.t0, nodes.y[0])) / setting.scale
        rows, residual, kept, transitions = [], [], [self._start_rows(flow)], []
        for k, (segment, manifold) in enumerate(zip(segments, manifolds, strict=True)):
            after = (k + 1) % m
            across = manifolds[after].tangent.T
            target = nodes.y[after] + (setting.advance if after == 0 else 0.0)
            row = np.zeros((n, self.n_unknowns))
            row[:, after * n : after * n + n] += np.eye(n)
            row[:, k * n : k * n + n] -= segment.changes @ manifold.tangent.T
            self._add_times(row, segment, k, nodes.period)
            rows.append(across @ row)
            residual.append(across @ (target / setting.scale - segment.end))
            kept.append(self._normal_rows(k, manifold))
            transitions.append(across @ segment.changes)
        of_flow = manifolds[0].tangent.T @ flow
        matrices = np.vstack(rows), np.concatenate(residual), np.vstack(kept)
        return System(nodes, *matrices, manifolds, segments, tuple(transitions), of_flow)

    @property
    def n_unknowns(self) -> int:
        """The number of unknowns: the nodes, the period if it is unknown, and what varies."""
        return self.setting.segments * self.n_y + self.setting.is_period_unknown + (self.varied is not None)

    def _add_times(self, row: Array, segment: Segment, k: int, period: float) -> None:
        """Add the derivatives with respect to the period and to what varies."""
        m = self.setting.segments
        with_period = segment.rate * (k + 1) / m - segment.along * k / m
        if self.setting.is_period_unknown:
            row[:, m * self.n_y] -= with_period * period
        if self.varied is not None:
            row[:, -1] -= (segment.with_parameter + with_period * self.varied.period_rate) * self.varied.unit

    def _normal_rows(self, k: int, manifold: Manifold) -> Array:
        """The rows that keep a node on its constraints."""
        rows = np.zeros((manifold.normal.shape[1], self.n_unknowns))
        rows[:, k * self.n_y : k * self.n_y + self.n_y] = manifold.normal.T
        if self.varied is not None:
            rows[:, -1] -= manifold.normal.T @ manifold.shift * self.varied.unit
        return rows

    def _start_rows(self, flow: Array) -> Array:
        """The rows that keep the phase of the first node, and the values that do not change."""
        rows = np.zeros((self.setting.is_period_unknown + len(self.setting.fixed), self.n_unknowns))
        if self.setting.is_period_unknown:
            rows[0, : self.n_y] = flow / (np.linalg.norm(flow) or 1.0)
        for row, index in zip(rows[self.setting.is_period_unknown :], self.setting.fixed, strict=True):
            row[index] = 1.0
        return rows

    # -- corrections ------------------------------------------------------------------------------------------

    def moved(self, nodes: Nodes, dx: Array) -> Nodes:
        """The nodes after a change of the unknowns, on the constraints. Raises `SolveError`."""
        m = self.setting.segments
        y = nodes.y + dx[: m * self.n_y].reshape(m, self.n_y) * self.setting.scale
        period = nodes.period * (1.0 + float(dx[m * self.n_y])) if self.setting.is_period_unknown else nodes.period
        return self.consistent(Nodes(y, period))

    def consistent(self, nodes: Nodes) -> Nodes:
        """The nearest nodes that satisfy the constraints. Raises `SolveError`."""
        d = self.solver.description
        if not (d.constraints.levels or d.contacts.rows):
            return nodes
        names, y = (*d.coordinates, *d.speeds), nodes.y.copy()
        for k, row in enumerate(y):
            t = self.setting.t0 + nodes.period * k / self.setting.segments
            fixed = [names[i] for i in self.setting.fixed if i < len(names)] if k == 0 else []
            row += self._closing(k, t, row, [i for i, name in enumerate(names) if name in fixed])
            if d.constraints.levels:
                at = self.code.at(t, row)
                s = at.s if d.states else None
                q, u = make_consistent(self._problem.functions, t, at.q, at.u, at.r, fixed, 1e-13, s)
                row[: len(names)] = np.concatenate([q, u])
        return replace(nodes, y=y)

    def _closing(self, k: int, t: float, y: Array, fixed: Sequence[int]) -> Array:
        """The least change (n_y,) of a node that closes the gaps of its closed contacts, by Newton's method."""
        code, modes, moved = self.code, self._modes(k, t, y), np.zeros(self.n_y)
        gaps, rates = code.modes.held_rows(modes)
        scale = self.setting.scale.copy()
        scale[list(fixed)] = 0.0
        for _ in range(_CLOSINGS if rates else 0):
            at = code.at(t, y + moved)
            rows, n_p = code.modes.rows(at), code.n_position_rows(modes)
            residual = np.concatenate([rows.value[gaps], rows.rate[rates]])
            C = code.residual_changes(at, modes, np.diag(scale)).T
            own = C[[*range(n_p - len(gaps), n_p), *range(len(C) - len(rates), len(C))]]
            others = np.delete(C, [*range(n_p - len(gaps), n_p), *range(len(C) - len(rates), len(C))], axis=0)
            left = np.concatenate([residual, np.zeros(len(others))])
            moved -= scale * np.linalg.lstsq(np.vstack([own, others]), left, rcond=_DEPENDENT)[0]
        return moved
