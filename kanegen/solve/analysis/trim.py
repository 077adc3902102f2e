"""The search for equilibria and steady motions of a solver: its start, its equations, and what is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.errors import SolveError
from kanegen.model.records import FrozenMapping
from kanegen.solve.analysis.balance import Balance
from kanegen.solve.analysis.closed_contacts import ContactValues
from kanegen.solve.analysis.closed_loop import ClosedSlopes, refuse_kinks, require_continuous
from kanegen.solve.analysis.cyclic import Cyclic, cyclic_directions
from kanegen.solve.analysis.linearize import Linearization, contacts_near, linearize, without_inputs
from kanegen.solve.analysis.newton import Root, evaluated
from kanegen.solve.analysis.settle import steady_state
from kanegen.solve.analysis.sizes import terms_of
from kanegen.solve.analysis.supports import Grip, contact_states, supports_at
from kanegen.solve.consistent import completed, fixed_names, make_consistent
from kanegen.solve.contacts import contacts_at
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.inputs import run_inputs
from kanegen.solve.values import Variables, by_name, names_in, positive, require_none, time_or_start, unknown

_AT_REST = 1e-9
"""Gaps and slip velocities of the start below this fraction of their terms count as zero."""
_NEIGHBOR = 0.01
"""Distance of a neighboring state, relative to the sizes of the unknowns."""
_ROUNDING = 1e-12
"""Sums below this fraction of their terms are rounding errors."""
_MOVES = 1e-6
"""Parts of unit vectors of the null space that count as zero."""


@dataclass(frozen=True, eq=False)
class Start:
    """The start X of a search, with the time, the indices of the unknowns in X, and the inputs whose laws act."""

    t: float
    X: Array
    free: tuple[int, ...]
    laws: tuple[int, ...]


class Search:
    """The steady states of a solver."""

    def __init__(self, solver: Evaluation) -> None:
        self.solver, self.description = solver, solver.description
        self.functions, self.rhs = solver._functions, solver._rhs_name

    def motion(
        self,
        t: float | None,
        state: tuple[Any, Any, Any],
        r: Any,
        fixed: Any,
        free_inputs: Any,
        cyclic: Sequence[Any] | None,
        speeds: Sequence[Any] | None,
        tolerance: float,
    ) -> dict[str, Any]:
        """The fields of the record of a steady motion near a state (q, u, s); the arguments are those of
        ``Solver.steady_motion``."""
        d = self.description
        start = self.start(t, state, r, fixed, free_inputs)
        tolerance = positive(tolerance, "tolerance")
        every = self.balance(start, ())
        ignored, constant = self.cyclic(every, start.X, cyclic, speeds)
        names = d.components
        zero = {*d.coordinates, *constant, *d.states} - {d.coordinates[k] for k in ignored.dropped}
        rates = tuple(k for k, name in enumerate(names) if name in zero)
        shares = np.vstack([ignored.carried, np.zeros((len(names) - len(d.coordinates), len(ignored.dropped)))])
        balance = replace(
            every,
            rates=rates,
            free=tuple(k for k in start.free if k not in ignored.dropped),
            in_motion=True,
            carried=tuple(ignored.dropped),
            shares=shares[list(rates)],
        )
        balance, root = steady_state(balance, start.X, tolerance)
        root = _without_noise(balance, root)
        if cyclic is not None:
            _require_steady(balance, root.X, constant)
        record = self.record(balance, root, constant)
        if record["linear"] is not None:
            record["linear"] = record["linear"].without(self.directions(balance, root.X, record["linear"]))
        changing = tuple(name for name, row in zip(d.coordinates, ignored.carried, strict=True) if row.any())
        return {**record, "cyclic": changing, "speeds": constant}

    def start(self, t: float | None, state: tuple[Any, Any, Any], r: Any, fixed: Any, free_inputs: Any) -> Start:
        """Time, start and unknowns of a search. Raises `SolveError` for unknown names and missing values."""
        d, functions = self.description, self.functions
        time = time_or_start(t, d, self.solver.initial)
        names = d.components
        kept = fixed_names(fixed, names)
        released = names_in(free_inputs, "free_inputs")
        require_none([unknown(x, d.inputs, "input") for x in released if x not in d.inputs], "free_inputs: ")
        inputs, laws = self.inputs(time, r, released)
        q, u, s = Variables.of(d, "0")
        given = {**q.read(state[0]), **u.read(state[1])}
        known = {name: x for name, x in self.solver.initial.items() if name in (*q.names, *u.names)} | given
        at_q, at_u = completed(functions, time, known, given or known, inputs)
        at_s = s.array({**self.solver.initial, **s.read(state[2])})
        if laws:
            values = np.asarray(functions.get("laws").value(time, at_q, at_u, inputs, at_s if d.states else None))
            inputs[list(laws)] = values[[list(d.laws).index(slot) for slot in laws]]
        forces = self._forces(time, at_q, at_u, inputs, at_s)
        X = np.concatenate([at_q, at_u, at_s, inputs, forces])
        free = [k for k, name in enumerate(names) if name not in kept]
        free += [len(names) + k for k, name in enumerate(d.inputs) if name in released or k in laws]
        return Start(time, X, (*free, *range(len(X) - len(forces), len(X))), laws)

    def _forces(self, t: float, q: Array, u: Array, r: Array, s: Array) -> Array:
        """The contact forces (n_rows,) at the start, or zeros if there are none (Painleve's paradox)."""
        d = self.description
        if not d.contacts.table:
            return np.empty(0)
        try:
            return contacts_at(self.functions, Point(t, q, u, r, s if d.states else None)).forces
        except SolveError:
            return np.zeros(len(d.contacts.rows))

    def inputs(self, t: float, r: Any, released: Sequence[str]) -> tuple[Array, tuple[int, ...]]:
        """The inputs (n_r,) at ``t``, and the indices of those whose laws act, which are zero.

        Inputs that are unknowns and have neither a value nor a default begin at zero; their laws do not act.
        """
        d = self.description
        if not d.inputs and r is None:
            return np.empty(0), ()
        if r is None or isinstance(r, Mapping):
            r = by_name(r or {}, d.inputs, "input")
            unset = [slot.name for slot in d.input_slots if slot.default is None and slot.name in released]
            r = dict.fromkeys(unset, 0.0) | r
        try:
            source = run_inputs(self.functions.module, d, r, None, self.functions.law_values)
        except SolveError as error:
            by_names = isinstance(r, Mapping) and d.inputs
            raise SolveError(f"{error}; or name unknown inputs in free_inputs=" if by_names else str(error)) from error
        others = source.without_laws or source
        if others.of_state:
            raise SolveError(
                "r depends on the state: give numbers or functions of the time, name inputs that are unknown in "
                "free_inputs=, and write feedback as kg.Input(..., law=...)"
            )
        return np.array(others.at(t), dtype=np.float64), () if source.laws is None else source.laws.slots

    def balance(self, start: Start, rates: tuple[int, ...]) -> Balance:
        """The equations of a steady state, with the contacts as they are at the start."""
        d, n_k = self.description, len(self.description.contacts.rows)
        balance = Balance(self.functions, self.rhs, start.t, rates, start.free, (), np.ones(n_k), start.laws)
        if not d.contacts.table:
            return balance
        q, u, *_ = balance.parts(start.X)
        arguments, sizes = balance.arguments(start.X), balance.contact_terms(start.X)
        values = ContactValues.of(arguments.evaluate(self.functions.get("gaps").value), d)
        supports = supports_at(d, values, (_AT_REST * sizes.value, _AT_REST * sizes.rate))
        sections = arguments.evaluate(self.functions.get("contacts").value)
        first = len(q) + len(u) * (1 + n_k)
        D = sections[first : first + n_k**2].reshape(n_k, n_k)
        return replace(balance, supports=supports, responses=np.maximum(np.diag(D), np.finfo(float).tiny))

    def cyclic(
        self, balance: Balance, X: Array, cyclic: Sequence[Any] | None, speeds: Sequence[Any] | None
    ) -> tuple[Cyclic, tuple[str, ...]]:
        """The cyclic directions of all coordinates, and the names of the independent speeds."""
        d = self.description
        if cyclic is not None:
            named = names_in(cyclic, "cyclic")
            require_none([unknown(x, d.coordinates, "coordinate") for x in named if x not in d.coordinates], "cyclic: ")
        candidates = [speeds] if speeds is not None else [d.independent_names or None, None]
        for chosen in candidates:
            try:
                linear = self._linear(balance, X, chosen)
                break
            except SolveError as error:
                failure = error
        else:
            raise SolveError(f"the steady motion needs a linear model at its start: {failure}") from failure
        if cyclic is not None:
            given = sorted({d.coordinates.index(name) for name in named})
            return Cyclic(given, np.eye(len(d.coordinates))[:, given]), linear.speeds
        n = len(linear.coordinates)
        found = self.directions(balance, X, linear)
        # Dependent coordinates are carried along by the constraints.
        C = linear.C[: len(d.coordinates), :n]
        carried = C @ found.carried[:n]
        carried = np.where(np.abs(carried) > _ROUNDING * (np.abs(C) @ np.abs(found.carried[:n])), carried, 0.0)
        return Cyclic([d.coordinates.index(linear.coordinates[k]) for k in found.dropped], carried), linear.speeds

    def directions(self, balance: Balance, X: Array, linear: Linearization) -> Cyclic:
        """The cyclic directions of a linear model at X, which are those of its neighbors as well."""
        models, moved = [linear.A], np.array(X)
        changes = evaluated(balance, X).sizes * np.random.default_rng(0).uniform(0.5, 1.0, len(balance.free))
        moved[list(balance.free)] += _NEIGHBOR * changes
        try:
            if self.description.constraints.levels:
                t, q, u, r, s, *_ = balance.arguments(moved)
                moved[: len(q) + len(u)] = np.concatenate(make_consistent(self.functions, t, q, u, r, (), 1e-12, s))
            near = self._linear(balance, moved, linear.speeds, linear.coordinates)
            models.append(near.A)
        except SolveError:  # contacts switch there, or it is outside the domain of an expression
            pass
        return cyclic_directions(models, len(linear.coordinates))

    def _linear(
        self,
        balance: Balance,
        X: Array,
        speeds: Sequence[Any] | None = None,
        coordinates: Sequence[Any] | None = None,
    ) -> Linearization:
        """The linear model at X, with the contacts in the modes of the equations, without rounding errors in A."""
        result = self._linear_at(balance, X, coordinates, speeds)
        own = result.coordinates, result.speeds
        A = balance.without_roundings(
            lambda near, Y: result.A if near is balance else self._linear_at(near, Y, *own).A, X
        )
        return replace(result, A=A)

    def _linear_at(
        self, balance: Balance, X: Array, coordinates: Sequence[Any] | None, speeds: Sequence[Any] | None
    ) -> Linearization:
        """The linear model at X, in these independent coordinates and speeds."""
        at = balance.arguments(X)
        states = contact_states(balance.supports, balance.contact_values(X), balance.parts(X)[-1])
        slopes, laws = balance.slopes(X), balance.laws
        if laws:
            require_continuous(self.description, laws)
            refuse_kinks(self.functions, at)
            slopes = ClosedSlopes(slopes, laws)
        contacts = contacts_near(slopes, at.t, states, (at.q, at.u), 1e-8)
        rates = np.concatenate(at.evaluate(balance.functions.get(balance.rhs).pair))
        rate_terms = terms_of(self.functions, balance.rhs, rates, at.t, at[1:], "pair")
        return without_inputs(linearize(slopes, (rates, rate_terms), contacts, coordinates, speeds), laws)

    def record(self, balance: Balance, root: Root, speeds: Sequence[str] | None = None) -> dict[str, Any]:
        """The fields of the record of a steady state."""
        d, X = self.description, root.X
        q, u, s, r, forces = balance.parts(X)
        labels, functions = d.constraints.rows, self.functions
        multipliers: Array = np.empty(0)
        if labels and functions.problem("multipliers") is None:
            multipliers = balance.arguments(X).evaluate(functions.get("multipliers").value)
        # At its limit, friction can still become smaller: on one side the neighboring states are steady.
        held = tuple(replace(x, grip=Grip.STICK) if x.grip is Grip.LIMIT else x for x in balance.supports)
        around = replace(balance, supports=held)
        try:
            linear, reason = self._linear(balance, X, speeds), ""
        except SolveError as error:
            linear, reason = None, str(error)
        return {
            **{"t": balance.t, "q": q, "u": u, "s": s, "r": r},
            "values": FrozenMapping(zip(balance.names[: len(X) - len(forces)], X.tolist(), strict=False)),
            "contacts": FrozenMapping(contact_states(balance.supports, balance.contact_values(X), forces)),
            "forces": forces,
            "multipliers": FrozenMapping(zip(labels, multipliers.tolist(), strict=False)),
            "residuals": FrozenMapping(zip(balance.all_labels(X), root.F.tolist(), strict=True)),
            "evaluations": root.evaluations,
            "undetermined": _undetermined(around, _without_roundings(root, balance)),
            "family": _family(around, _without_roundings(root, balance)),
            **{"linear": linear, "reason": reason, "units": self.solver.units},
        }


def rest(
    solver: Evaluation,
    q0: Any = None,
    *,
    t: float | None = None,
    s0: Any = None,
    r: Any = None,
    fixed: Any = (),
    free_inputs: Any = (),
    tolerance: float = 1e-10,
) -> tuple[Balance, Root]:
    """The equations of an equilibrium and their root; the arguments are those of ``Solver.equilibrium``."""
    d, search, tolerance = solver.description, Search(solver), positive(tolerance, "tolerance")
    start = search.start(t, (q0, np.zeros(len(d.speeds)), s0), r, fixed, free_inputs)
    rates = tuple(range(len(d.components)))
    balance, root = steady_state(search.balance(start, rates), start.X, tolerance)
    return balance, _without_noise(balance, _at_rest(balance, root, tolerance))


def _require_steady(balance: Balance, X: Array, constant: Sequence[str]) -> None:
    """Raise `SolveError` if the equations change while the coordinates change that the user calls cyclic.

    Speeds other than the ``constant`` ones may change as the equations demand: those of a disk that rolls in a circle.
    """
    d, carried = balance.description, list(balance.carried)
    dependent = [len(d.coordinates) + k for k, name in enumerate(d.speeds) if name not in constant]
    rates = balance.all_rates(X)[carried]
    slopes = replace(balance, free=(*carried, *dependent)).jacobian(X)
    along, others = slopes[:, : len(carried)], slopes[:, len(carried) :]
    terms = np.abs(along) @ np.abs(rates)
    sizes = np.where(terms > 0.0, terms, np.abs(others).max(axis=1, initial=0.0))
    sizes[sizes == 0.0] = 1.0
    others, changes = others / sizes[:, None], along @ rates / sizes
    left = changes - others @ np.linalg.lstsq(others, changes, rcond=None)[0]
    moves = np.abs(left) > _MOVES
    if moves.any():
        labels = [label for label, moved in zip(balance.all_labels(X), moves, strict=True) if moved]
        names = [balance.names[k] for k, rate in zip(carried, rates, strict=True) if rate]
        raise SolveError(
            f"no steady motion: {', '.join(labels)} changes with {', '.join(names)}, named in cyclic=; name only "
            "coordinates on which nothing depends, or leave cyclic= out, so that they are found"
        )


def _at_rest(balance: Balance, root: Root, tolerance: float) -> Root:
    """The root with speeds of exactly zero, if that is one; otherwise speeds have the rounding errors of the search."""
    X = root.X.copy()
    q, u, *_ = balance.parts(X)
    X[len(q) : len(q) + len(u)] = 0.0
    rest = evaluated(balance, X, tolerance, root.evaluations, root)
    return rest if rest.converged else root


def _without_noise(balance: Balance, root: Root) -> Root:
    """The root with zeros in place of unknowns that are rounding errors, if no equation is violated more."""
    X = _without_roundings(root, balance)
    if np.array_equal(X, root.X):
        return root
    new = evaluated(balance, X, count=root.evaluations, earlier=root)
    return replace(new, allowed=root.allowed) if (np.abs(new.F) <= np.abs(root.F)).all() else root


def _undetermined(balance: Balance, X: Array) -> tuple[str, ...]:
    """The names of the unknowns, other than contact forces, in which neighboring steady states differ."""
    n_forces = len(balance.description.contacts.rows)
    own = [k for k, entry in enumerate(balance.free) if entry < len(X) - n_forces]
    directions = _directions(balance, X)[own]
    sizes = np.linalg.norm(directions, axis=0)
    directions = directions[:, sizes > _MOVES] / sizes[sizes > _MOVES]
    moves = np.abs(directions).max(axis=1, initial=0.0) > _MOVES
    return tuple(balance.names[balance.free[k]] for k, moved in zip(own, moves, strict=True) if moved)


def _without_roundings(root: Root, balance: Balance) -> Array:
    """X with zeros in place of unknowns that are rounding errors, which have no size."""
    X, free = root.X.copy(), list(balance.free)
    X[free] = np.where(np.abs(X[free]) > root.rounding, X[free], 0.0)
    return X


def _directions(balance: Balance, X: Array) -> Array:
    """Orthonormal changes of the unknowns (n, k), in comparable units, that leave the equations zero."""
    root = evaluated(balance, X)
    return root.directions / root.scale[:, None]


def _family(balance: Balance, X: Array) -> int:
    """The dimension of the family of steady states around X, with all coordinates, speeds and states unknown."""
    d, ignored = balance.description, {*range(len(balance.description.coordinates))} - {*balance.rates}
    n_y = len(d.components)
    free = [*(k for k in range(n_y) if k not in ignored), *range(len(X) - len(d.contacts.rows), len(X))]
    directions = _directions(replace(balance, free=tuple(free)), X)[: n_y - len(ignored)]
    return int(np.linalg.matrix_rank(directions, tol=_MOVES)) if directions.size else 0
