"""The compiled functions of variations of a solver: derivatives along directions, at one state and along steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.backends.protocol import VariationPlan
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.methods.table import FIXED_STEP, IMPLICIT
from kanegen.codegen.methods.tableaux import Tableau
from kanegen.codes import status_message
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.program.catalogue import (
    BARE,
    CHANGE_OF,
    CLOSED,
    CONTACT_CHANGES,
    EVENT_CHANGES,
    JUMP_CHANGES,
    LAW_SLOPES,
    RESIDUAL_CHANGES,
    SERVO,
    VARIATION,
)
from kanegen.solve.contacts import contacts_at
from kanegen.solve.gradients.directions import Direction, Kind, unit_columns
from kanegen.solve.gradients.modes import ContactModes
from kanegen.solve.gradients.rosenbrock import SLOPE_NODES
from kanegen.solve.gradients.samples import Clock, HeldLaws, hold
from kanegen.solve.gradients.tape import Part, Tape
from kanegen.solve.run.problem import Problem

CHANGES: Final = (RESIDUAL_CHANGES, EVENT_CHANGES, CONTACT_CHANGES, JUMP_CHANGES)
"""What the derivatives at starts and events need."""

_CLEARANCE = 8.0 * float(np.finfo(float).eps)
"""Distance from the ends of a step inside which inputs are evaluated, relative to the time (kg_instants.h)."""

_UNIQUE: Final = 1e-6
"""Largest relative difference of derivatives between two choices of the forces of dependent contacts."""


class Inside(NamedTuple):
    """Times (n_t,) inside the m steps of a part: those of step i from ``first[i]`` to before ``first[i + 1]``."""

    times: Array
    first: NDArray[np.int32]

    def of(self, bounds: tuple[int, int]) -> Inside:
        """Those of the steps between two states."""
        places = self.first[bounds[0] : bounds[1] + 1]
        return Inside(np.ascontiguousarray(self.times[places[0] : places[-1]]), places - places[0])


class Forward(NamedTuple):
    """Changes of the states of a part: ``states`` (m + 1, n_y, k), the largest of them and the largest local ``errors``
    (n_y, k), the dense output (m, rows, n_y, k) or None, and the changes ``inside`` steps (n_t, n_y, k) or None.

    ``by_step`` (m, n_y, k): the local errors of each step, None: they are not known.
    """

    states: Array
    sizes: Array
    errors: Array
    dense: Array | None
    inside: Array | None
    by_step: Array | None = None


class VariationCode:
    """What differentiates the runs of a ``problem`` by a ``method``. Raises `SolveError` for what it cannot do."""

    def __init__(self, problem: Problem, method: str) -> None:
        require_differentiable(problem, method)
        self.problem, self.functions, self.method = problem, problem.functions, method
        d = self.functions.description
        self.n_y = len(d.coordinates) + len(d.speeds) + len(d.states)
        self.n_loads = len(d.inputs) + len(d.contacts.rows)
        self.given = np.concatenate([self.functions.parameters, np.asarray(self.functions.prepared.gains)])
        self.modes = ContactModes(self.functions)
        self._in_modes: dict[tuple[Any, ...], Any] = {}
        laws = problem.inputs.laws
        is_closed = laws is not None and not all(map(laws.is_held, laws.slots))
        self.clocks: tuple[Clock, ...] = ()
        self.held: HeldLaws | None = None
        self.end = SERVO if problem.loop is not None else CLOSED * is_closed
        gains = self.given[len(d.parameters) :]
        self.end_of_steps = BARE if not self.end and gains.size and not gains.any() else self.end

    @cached_property
    def _variation(self) -> Any:
        return self.functions.extension.variations(VARIATION + self.end_of_steps, self.method)

    @property
    def _tableau(self) -> Tableau:
        return cast(Tableau, METHODS[self.method].coefficients)  # of explicit methods

    @property
    def _nodes(self) -> Array:
        """Where loads are evaluated, as fractions of a step."""
        nodes = [float(c) for c in METHODS[self.method].coefficients.c]
        return np.array([*nodes, *SLOPE_NODES] if self.is_implicit else nodes)

    @property
    def is_implicit(self) -> bool:
        """Whether the method is a Rosenbrock method, whose steps `kanegen.solve.gradients.stiff` differentiates."""
        return self.method in IMPLICIT

    @property
    def lanes(self) -> int:
        """Directions that are computed at a time."""
        return int(self._variation.lanes)

    def at(self, t: float, y: Array, held: float | None = None) -> Point:
        """A state with its inputs; ``held``: the time whose samples act, by default ``t``."""
        d = self.functions.description
        q, u, s = np.split(y, np.cumsum([len(d.coordinates), len(d.speeds)]))
        at = self.problem.at(t, q, u, s)
        if not self.clocks:
            return at
        r = np.array(at.r, dtype=np.float64)
        hold(self.clocks, np.array([t if held is None else held]), r[None])
        return at._replace(r=r)

    def follow(self, tape: Tape) -> None:
        """Note the samples of the laws in a run. Raises `SolveError` for those that the motion does not reproduce."""
        self.held = HeldLaws(self.clocks, tape, self._laws) if self.clocks else None

    def _laws(self, times: Array, states: Array) -> tuple[Array, Array]:
        """The values (n, m) of all laws at states, and their slopes (n, m, n_y + n_r + n_p)."""
        d, name = self.functions.description, LAW_SLOPES + self.end
        n_r, m = len(d.inputs), len(d.laws)
        values = np.array([self.value(name, self.at(t, y)) for t, y in zip(times.tolist(), states, strict=True)])
        slopes = values[:, m:].reshape(len(times), m, -1)
        without_forces = np.delete(slopes, np.s_[self.n_y + n_r : self.n_y + self.n_loads], axis=2)
        return values[:, :m], without_forces[:, :, :-1]

    def rate(self, t: float, y: Array, modes: Array | None = None) -> Array:
        """y' at a state, (n_y,); with contacts in the given modes, without them with all contacts open."""
        if not self.functions.description.contacts.rows and self.end != SERVO:
            return np.concatenate(self.at(t, y).evaluate(self.problem.function.pair))
        return self.change(VARIATION, self.at(t, y), np.zeros(self.n_y), modes=modes)[: self.n_y]

    def change(
        self,
        name: str,
        at: Point,
        dy: Array,
        dr: Array | None = None,
        dp: Array | None = None,
        dt: float = 0.0,
        modes: Array | None = None,
    ) -> Array:
        """The change of a function of variations at a state along one direction, (n,).

        With rows ``dy`` (k, n_y), and ``dr`` and ``dp`` with or without rows, along k directions, (k, n).
        """
        behind = np.zeros((*dy.shape[:-1], self.n_loads + 1))
        behind[..., : len(self.functions.description.inputs)] = 0.0 if dr is None else dr
        behind[..., -1] = dt
        direction, names = np.concatenate([dy, behind], axis=-1), self._of_contacts if name in CHANGES else ()
        closed = tuple(other + self.end for other in names)
        return self.value(name + self.end, at, closed, direction=direction, dp=dp, modes=modes)

    @cached_property
    def _of_contacts(self) -> tuple[str, ...]:
        """The changes that motions with contacts need, in one program, because they share most of their code."""
        d = self.functions.description
        events = self.functions.module.EVENTS
        return tuple(x for x in CHANGES if events or x != EVENT_CHANGES) if d.contacts.rows else ()

    def modes_at(self, t: float, y: Array) -> Array:
        """The modes of the contacts at a state from which a motion begins."""
        if not self.functions.description.contacts.rows:
            return np.zeros(self.modes.size)
        at = self.at(t, y)
        named = {name: state.mode for name, state in contacts_at(self.functions, at).states.items()}
        return self.modes.of_phase(named, at)

    def residual_changes(
        self, at: Point, modes: Array, dy: Array, dr: Array | None = None, dp: Array | None = None
    ) -> Array:
        """The changes (k, n_c) of what the constraints and the closed contacts keep zero, of positions first.

        ``dy`` (k, n_y), ``dr`` (k, n_r), ``dp`` (k, n_p): along k directions. ``modes``: of the contacts at the state;
        there are ``n_position_rows(modes)`` residuals of positions.
        """
        own, n = self.functions.description.constraints, len(self.functions.description.contacts.rows)
        changes = self.change(RESIDUAL_CHANGES, at, dy, dr, dp)
        if not n:
            return changes
        first, n_p = changes.shape[-1] - 2 * n, len(own.positions)
        gaps, rates = self.modes.held_rows(modes)
        rows = [*range(n_p), *(first + i for i in gaps), *range(n_p, first), *(first + n + i for i in rates)]
        return np.asarray(changes[:, rows])

    def n_position_rows(self, modes: Array) -> int:
        """How many of `residual_changes` are those of positions."""
        return len(self.functions.description.constraints.positions) + len(self.modes.held_rows(modes)[0])

    def value(
        self,
        name: str,
        at: Point,
        names: tuple[str, ...] = (),
        direction: Array | None = None,
        dp: Array | None = None,
        modes: Array | None = None,
    ) -> Array:
        """The values of a function of variations at a state, (n,); with rows of directions those of each, (k, n).

        ``names``: the functions of its program, if there are others. ``dp`` (n_p,), or (k, n_p) beside rows of
        directions. ``modes``: of the contacts; None: they are open.
        """
        d, names = self.functions.description, names or (name,)
        own = np.zeros(len(d.inputs)) if at.r is None else np.asarray(at.r)
        behind = np.zeros(self.n_y + self.n_loads + 1) if direction is None else direction
        changes = np.zeros(len(d.parameters)) if dp is None else dp
        if behind.ndim == 2 and changes.ndim == 1:
            return self._rows(self._function(name, names, changes, modes), at, own, behind)
        functions = [self._function(name, names, x, modes) for x in np.atleast_2d(changes)]
        rows, s = _beside(own, np.atleast_2d(behind)), at.s if d.states else None
        values = [
            np.asarray(function.value(at.t, at.q, at.u, r, s), dtype=np.float64).ravel()
            for function, r in zip(functions, rows, strict=True)
        ]
        return values[0] if behind.ndim == 1 else np.array(values)

    def _rows(self, function: Any, at: Point, own: Array, directions: Array) -> Array:
        """The values (k, n) of a function at a state with inputs ``own`` along rows of directions, in one call."""
        k = len(directions)
        states = at.q, at.u, at.s if self.functions.description.states else None
        q, u, s = (None if x is None else np.broadcast_to(np.asarray(x), (k, len(x))) for x in states)
        values = function.value(np.full(k, at.t), q, u, _beside(own, directions), s)
        return np.asarray(values, dtype=np.float64).reshape(k, -1)

    def compiled(self, name: str, names: tuple[str, ...], modes: Array) -> Any:
        """A function of the program with the functions ``names``, in modes of the contacts."""
        return self._function(name, names, np.zeros(len(self.functions.parameters)), modes)

    def _function(self, name: str, names: tuple[str, ...], dp: Array, modes: Array | None = None) -> Any:
        """A function of the module for changes ``dp`` of the parameters.

        Those of unit changes and open contacts are kept with the solver, the others, of which there are many, here.
        """
        open_contacts = modes is None or not modes.any()
        known = self.functions.derived if open_contacts else self._in_modes
        numbers = np.zeros(self.modes.size) if modes is None else modes
        key = names, name, dp.tobytes(), numbers.tobytes()
        if key not in known:
            module = self.functions.extension.more(names).module
            gains = np.concatenate([self.given[len(dp) :], numbers, dp])
            known[key] = module.Function(str(name), module.Prepared(self.functions.parameters, gains))
        return known[key]

    def changes_of(
        self,
        name: str,
        states: tuple[Array, Array],
        changes: Array,
        directions: Sequence[Direction],
        of_r: Array,
        modes: Array,
    ) -> Array:
        """The changes (n_t, ..., k) of an output or a quantity at states (n_t,), (n_t, n_y) along directions.

        ``changes`` (n_t, n_y, k): those of the states; where they are NaN, so is the result. ``of_r`` (n_t, n_r, k):
        those of the inputs. ``modes`` (n_t, n): of the contacts. All states in the same modes are evaluated in one call
        for each direction.
        """
        (times, y), found = states, None
        of_p = unit_columns(directions, Kind.PARAMETER, len(self.functions.description.parameters))
        known = np.isfinite(changes).all(axis=(1, 2))
        for numbers in np.unique(modes[known], axis=0):
            rows = np.flatnonzero(known & (modes == numbers).all(axis=1))
            at, along = (times[rows], y[rows]), (changes[rows], of_r[rows], of_p)
            values = self._changes_in(name, at, along, numbers)
            if (softer := self.modes.softer(numbers)) is not None:
                require_same(name, float(at[0][0]), values, self._changes_in(name, at, along, softer))
            if found is None:
                found = np.full((len(times), *values.shape[1:]), np.nan)
            found[rows] = values
        if found is None:
            raise SolveError(f"the derivatives of {name} are not known at any of the stored times")
        return found

    def _changes_in(
        self, name: str, states: tuple[Array, Array], along: tuple[Array, Array, Array], modes: Array
    ) -> Array:
        """`changes_of` at states in the same modes; ``along``: the changes of states, of inputs and of parameters."""
        (times, y), (of_y, of_r, of_p), d = states, along, self.functions.description
        name, problem = CHANGE_OF + name + self.end, self.problem
        own = self.functions.module.inputs_along(
            problem.function, problem.inputs.compiled, times, y, problem.controls or None
        )
        q, u, s = np.split(y, np.cumsum([len(d.coordinates), len(d.speeds)]), axis=1)
        loads, columns = np.zeros((len(times), self.n_loads + 1)), []
        for k in range(of_p.shape[1]):
            loads[:, : len(d.inputs)] = of_r[:, :, k]
            r = np.hstack([own, of_y[:, :, k], loads])
            function = self._function(name, (name,), of_p[:, k], modes)
            columns.append(function.value(times, q, u, r, s if d.states else None))
        return np.stack(columns, axis=-1)

    # -- along steps ------------------------------------------------------------------------------------------

    def loads(self, part: Part) -> tuple[Array, int, int]:
        """The inputs and contact forces of the stages of steps, with the rows from step to step and stage to stage."""
        inputs, d = self.problem.inputs, self.functions.description
        values = np.zeros((1, self.n_loads))
        if inputs.laws is not None and inputs.without_laws is not None:
            inputs = inputs.without_laws
        constant = inputs.scalars is not None and all(isinstance(x, float) for x in inputs.scalars)
        if not d.inputs or (constant and not self.clocks):
            values[0, : len(d.inputs)] = inputs.scalars or ()
            return values, 0, 0
        times = self.stage_times(part)
        states = np.repeat(part.y[:-1], times.shape[1], axis=0)
        along = self.functions.module.inputs_along(self.problem.function, inputs.compiled, times.ravel(), states)
        values = np.zeros((times.size, self.n_loads))
        values[:, : len(d.inputs)] = along
        hold(self.clocks, times.ravel(), values)
        return values, times.shape[1], 1

    def stage_times(self, part: Part) -> Array:
        """The times of the stages of each step, and of others at which it needs loads, (m, rows)."""
        nodes = self._nodes
        ends = part.t + part.h
        sign = np.sign(part.h) * _CLEARANCE
        between = part.t + sign * np.abs(part.t), ends - sign * np.abs(ends)
        low, high = np.minimum(*between), np.maximum(*between)
        times = part.t[:, None] + nodes * part.h[:, None]
        return np.ascontiguousarray(np.clip(times, low[:, None], high[:, None]))

    def forward(
        self, part: Part, start: Array, dr: Array, dp: Array, dense: bool = False, inside: Inside | None = None
    ) -> Forward:
        """The changes at the starts of steps and at their end.

        ``start`` (n_y, k): those at the start; ``dr`` (n_r, k) or, for each stage, (rows, n_r, k), ``dp`` (n_p, k): of
        inputs and parameters.
        ``dense``: whether to keep the dense output. ``inside``: further times at which changes are wanted.
        """
        k, m = start.shape[1], len(part.t)
        width = -(-k // self.lanes) * self.lanes
        changes = np.empty((m + 1, self.n_y, width))
        changes[0] = 0.0
        changes[0, :, :k] = start
        loads, step, row = self.loads(part)
        of_loads = np.zeros((len(loads), self.n_loads, width))
        of_loads[:, : dr.shape[-2], :k] = dr
        rows = self._tableau.dense_rows
        kept = np.empty((m, rows, self.n_y, width)) if dense else None
        between = None if inside is None else np.empty((len(inside.times), self.n_y, width))
        sizes, errors, padded = np.abs(changes[0]), np.zeros((self.n_y, width)), np.zeros((len(dp), width))
        padded[:, :k] = dp
        plan = VariationPlan(
            part.t, part.h, part.y, part.edges, part.fresh, loads, of_loads, step, row,
            np.append(self.given, part.modes), padded, changes, sizes, errors, kept,
            None if inside is None else inside.times, None if inside is None else inside.first, between,
        )  # fmt: skip
        status, failed = self._variation.run(plan)
        if status < 0:
            raise SolveError(
                f"the derivative of the motion cannot be computed in the step from t = {float(part.t[failed])!r} s: "
                f"{status_message(status)}"
            )
        if self.method in FIXED_STEP:
            errors[:] = 0.0  # the user has chosen the steps
        kept, between = (None if x is None else x[..., :k] for x in (kept, between))
        return Forward(changes[:, :, :k], sizes[:, :k], errors[:, :k], kept, between)


def _beside(inputs: Array, directions: Array) -> Array:
    """The inputs (n_r,) before each row of directions (k, n), (k, n_r + n)."""
    rows = np.empty((len(directions), inputs.size + directions.shape[1]))
    rows[:, : inputs.size] = inputs
    rows[:, inputs.size :] = directions
    return rows


def require_same(name: str, t: float, values: Array, others: Array) -> None:
    """Raise `SolveError` if ``values`` differ from ``others``, those with other forces of dependent contacts."""
    if not np.abs(others - values).max(initial=0.0) <= _UNIQUE * np.abs(values).max(initial=0.0):
        raise SolveError(
            f"{name} has no unique derivatives from t = {t!r} s on: it depends on forces of contacts that depend on "
            "each other, as those of a flat foot"
        )


def require_differentiable(problem: Problem, method: str) -> None:
    """Raise `SolveError` if motions of a problem have no derivatives here, with the reason."""
    functions, inputs = problem.functions, problem.inputs
    d, reason = functions.description, None
    acting = () if inputs.laws is None else inputs.laws.slots
    continuous = {k for k, law in d.laws.items() if law.sample_time is None}
    sampled = tuple(k for k in inputs.held if k not in acting)
    if FORMS[d.form].momenta:
        reason = f'form="{d.form}", whose state contains momenta: build with form="auto"'
    elif method in IMPLICIT and any(contact.directions > 1 for contact in d.contacts.table):
        reason = (
            f'method="{method}" and friction in a plane, whose Jacobian is infinite where slip ends: use an explicit '
            'method, such as "dopri5" or "dop853"'
        )
    elif problem.loop is not None:
        reason = _unavailable_loop(problem)
    elif sampled:
        reason = f"sampled inputs ({', '.join(d.input_names(sampled))}): give laws of inputs, or leave out sample_time"
    elif not continuous.isdisjoint(acting) and not continuous.issubset(acting):
        others = [d.inputs[k] for k in d.laws if k in continuous and k not in acting]
        reason = f"values in place of some of the laws ({', '.join(others)}): give all laws, or none"
    elif (inputs.without_laws or inputs).of_state:
        reason = "an r that is code of the state: give a law of the input, kg.Input(..., law=...)"
    if reason:
        raise SolveError(f"sensitivities and gradients of motions are not available with {reason}")


def _unavailable_loop(problem: Problem) -> str | None:
    """Why motions under the controls of a model have no derivatives, or None."""
    loop, d = problem.loop, problem.functions.description
    if loop is None:
        return None
    if loop.law is None:
        return "control constraints, whose controls are part of the state"
    if loop.sampled:
        return "sampled controls of servo-constraints: leave out sample_time"
    if np.isfinite(loop.limits).any():
        return "limits of the controls of servo-constraints"
    if d.contacts.rows or d.impulses or problem.inputs.laws is not None:
        return "servo-constraints beside contacts, impulses or laws of inputs"
    return None
