"""Contacts and impulses at one state; contacts and events of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description, EventLabel
from kanegen.codes import REGULARIZED, EventKind, Status
from kanegen.errors import SolveError, brief
from kanegen.graph.ranks import independent_rows
from kanegen.model.contacts import Event, normalized_events
from kanegen.model.records import FrozenMapping
from kanegen.run_options import StepOptions, defaults
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.solution import MODES, ContactHistory, EventRecord, Outcome, Phase, conflict_message
from kanegen.solve.values import (
    by_name,
    key_name,
    number,
    numbers,
    one_state,
    require_none,
    shown,
    shown_values,
    tolerances,
    unknown,
)


@dataclass(frozen=True, eq=False)
class ContactState:
    """One contact at a state.

    Attributes
    ----------
    mode
        One of :data:`kanegen.solve.solution.MODES`.
    gap, rate
        The gap (m or rad) and its rate; for a contact at velocity level both are the velocity; NaN for a given load.
    slip
        Slip velocity along the directions of slip, (n,), m/s.
    force
        Multipliers of the contact rows, N: the normal force, then friction along the directions of slip.
    """

    mode: str
    gap: float
    rate: float
    slip: Array
    force: Array

    def __repr__(self) -> str:
        return f"<Contact: {self._text}>"

    @property
    def _text(self) -> str:
        """Mode, gap and force: friction is the part along the directions of slip."""
        normal, friction = np.split(self.force, [len(self.force) - len(self.slip)])
        parts = [self.mode] if np.isnan(self.gap) else [self.mode, f"gap {self.gap:.6g}"]
        parts += [f"force {value:.6g}" for value in normal.tolist()]
        parts += [f"friction {shown([f'{value:.6g}' for value in friction.tolist()])}"] if friction.size else []
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Contacts:
    """All contacts at a state: ``contacts["floor"]`` is a :class:`ContactState`.

    ``states`` maps names to states of contacts; ``qdot`` (n_q,), ``udot`` (n_u,) and ``sdot`` (n_s,), the rates of the
    model's states, are the rates with contact forces. ``forces``
    (n_rows,) are the multipliers in the order of ``description.contacts.rows``; the argument ``forces`` of functions.
    """

    states: Mapping[str, ContactState]
    qdot: Array
    udot: Array
    sdot: Array
    forces: Array

    def __getitem__(self, name: str) -> ContactState:
        if name not in self.states:
            raise SolveError(unknown(name, tuple(self.states), "contact"))
        return self.states[name]

    def __repr__(self) -> str:
        return f"<Contacts: {'; '.join(f'{name}: {state._text}' for name, state in self.states.items())}>"


class Impulse(NamedTuple):
    """Speeds after an impulse, the impulses of the constraints, and generalized momenta before and after.

    ``u``: speeds after the impulse (n_u,). ``constraint_impulse``: ``J^T Lambda = M (u+ - u-) - I``, (n_u,), with the
    ``multipliers`` Lambda (n_c,) in the order of ``description.constraints.rows``, zero for redundant constraints.
    ``momentum_before`` and ``momentum_after``: ``Q u + N``, (n_u,), the holonomic generalized momenta;
    ``reduced_momentum_before`` and ``reduced_momentum_after``: ``A2 (Q u + N)``, (n_i,), the nonholonomic momenta.
    Impulses of constraints that are linear in the speeds do not change the latter; they are None if no choice of
    dependent speeds solves the constraints, or if the model was built without ``A``. ``contact_impulses``: impulses of
    the contact rows (n_rows,), in the order of ``description.contacts.rows``. ``speeds`` and ``contacts`` are the names
    of the speeds and of the contact rows.
    """

    u: Array
    constraint_impulse: Array
    multipliers: Array
    momentum_before: Array
    momentum_after: Array
    reduced_momentum_before: Array | None
    reduced_momentum_after: Array | None
    contact_impulses: Array
    speeds: tuple[str, ...] = ()
    contacts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        speeds = self.speeds or [f"u[{k}]" for k in range(self.u.size)]
        contacts = self.contacts or [f"[{k}]" for k in range(self.contact_impulses.size)]
        acting = f"; impulses of contacts: {shown_values(contacts, self.contact_impulses)}" if contacts else ""
        return f"<Impulse: afterwards {shown_values(speeds, self.u)}{acting}>"


def check_contact_values(functions: CompiledFunctions, at: Point) -> None:
    """Raise `SolveError` listing the values in contact laws that are out of range with the solver's parameters."""
    entries = functions.description.contacts.values
    if not entries:
        return
    values = at.evaluate(functions.get("contact_values").value).tolist()
    problems = [
        f"{entry.name} = {value:.6g}: expected {entry.expected}"
        for entry, value in zip(entries, values, strict=True)
        if not entry.admits(value)
    ]
    require_none(problems, f"values of contacts at t = {at.t!r} s: ")


class Contacting(Evaluation):
    """The methods of :class:`~kanegen.Solver` for contacts and impulses."""

    def contacts(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None, *, atol: Any = None) -> Contacts:
        """The contacts at a state: consistent modes, forces, and the accelerations under these forces.

        A run from this state begins with these modes. They follow from the gaps and their rates and, where both vanish,
        from the complementarity of accelerations and forces. A contact that needs an impulse first (a rigid contact
        that approaches with a gap of zero) counts as closed. ``rhs`` and the other functions of the solver treat all
        contacts as open, unless their multipliers are given, as ``forces``.

        Parameters
        ----------
        q, u, s
            The state, arrays or mappings from names or symbols to values; those not given are those of ``initial``.
        atol
            Tolerances of coordinates and speeds as for :meth:`integrate`, a number, an array or a mapping by name. A
            gap is closed up to 5 times what it changes by when each coordinate changes by its tolerance, a rate is zero
            up to 10 times what it changes by with the speeds. None: up to 5e-10 and 1e-9, in the units of the gaps.

        Raises
        ------
        SolveError
            For wrong arguments, a model without contacts, values of laws out of range, and states in which no modes, or
            several, are consistent with the contact laws (Painleve). The message names the contact.
        """
        if not self._functions.module.CONTACTS:
            raise SolveError(f"the model {self.description.name!r} has no contacts: see contacts= of Model")
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        r = self._functions.with_laws(("contacts", "gaps"), t, q, u, r, s)
        if atol is not None:
            d = self.description
            names = (*d.coordinates, *d.speeds)
            atol = numbers(tolerances(atol, "atol", defaults(StepOptions)["atol"], names), "atol", names)
            require_none([f"atol is {x!r}; expected positive numbers" for x in atol.tolist() if not x > 0.0][:1])
        return contacts_at(self._functions, Point(t, q, u, r, s), atol)

    def impulse(self, t: float, q: Any, u: Any, impulses: Any, r: Any = None, s: Any = None) -> Impulse:
        """The speeds after impulses that act at one instant, and the impulses of the constraints.

        ``M (u+ - u-) = I + J^T Lambda`` (M is Q, less dF/du' of loads in u'), and the constraints hold before and
        after: ``J (u+ - u-) = 0`` for rows that are linear in the speeds. For the other rows Newton's method solves
        ``psi(q, u+, t) = 0``, with impulses along psi_u^T at the speeds u+. Closed contacts react as in an impact with
        friction, by complementarity: contacts at rest stay closed or separate, approaching contacts rebound according
        to their law (kg_impact.h).

        Parameters
        ----------
        t, q, u, r, s
            The state before the impulse, arrays or mappings from names or symbols to values; u must satisfy the
            constraints. States do not change.
        impulses
            Generalized impulses (n_u,), N s or N m s; the name of one of the model's ``impulses``; or a mapping from
            such names to factors, ``{"kick": 0.5}``.

        Raises
        ------
        SolveError
            For wrong arguments, unknown names and values of contact laws out of range; if the constraints depend on
            each other at this position (a locked or toggle configuration), so that impulses would be infinite or
            undetermined; if they leave no speed free; if loads in u' have factors that depend on the speeds; and if
            constraints that are nonlinear in the speeds cannot be satisfied after the impulse.
        """
        functions, description = self._functions, self.description
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        constraints, needed = description.constraints, _functions_of_impulses(description)
        home = functions.having(*needed)
        at = Point(t, q, u, home.with_laws(needed, t, q, u, r, s), s)
        before = at.evaluate(self.momentum)  # checks the arguments
        generalized = _generalized(self, at, impulses)
        home.require(needed)
        known, rows = home.complete(at, needed), _independent_rows(self, at)
        if len(rows) == len(description.speeds):
            raise SolveError(_locked(description, t))
        state = home.prepared, float(t), q, u, known.r
        status, after, independent = home.module.impulse(*state, generalized, rows, known.s)
        if status < 0 or not np.isfinite(after).all():
            raise SolveError(_failed(description, status, t))
        if description.mass != "Q":
            _require_same_mass(self, at, after)
        multipliers, contact_impulses = np.zeros(len(constraints.rows)), np.zeros(len(description.contacts.rows))
        multipliers[rows] = independent
        if functions.module.CONTACTS:
            check_contact_values(functions, at)
            after, contact_impulses, more = _with_contacts(self, known, after, rows)
            multipliers[rows] += more
        afterwards = at._replace(u=after)
        momentum = afterwards.evaluate(self.momentum)
        J = afterwards.evaluate(self.J) if len(multipliers) else np.empty((0, len(after)))
        return Impulse(
            u=after,
            constraint_impulse=J.T @ multipliers,
            multipliers=multipliers,
            momentum_before=before,
            momentum_after=momentum,
            reduced_momentum_before=_reduced(self, at, before),
            reduced_momentum_after=_reduced(self, afterwards, momentum),
            contact_impulses=contact_impulses,
            speeds=description.speeds,
            contacts=description.contacts.rows,
        )


def _require_same_mass(solver: Contacting, at: Point, after: Array) -> None:
    """Raise `SolveError` if M changes with the speeds: the jump would then depend on how the impulse acts."""
    mass = solver._functions.get(solver.description.mass)
    before, changed = (at._replace(u=speeds).evaluate(mass.value) for speeds in (at.u, after))
    if np.abs(changed - before).max() > 1e-12 * np.abs(before).max():
        raise SolveError(
            f"the speeds after an impulse are undetermined at t = {at.t!r} s: the factors of accelerations in the "
            "loads depend on speeds, which the impulse changes; make them functions of t, q, parameters and inputs"
        )


def _with_contacts(solver: Contacting, at: Point, after: Array, rows: list[int]) -> tuple[Array, Array, Array]:
    """Speeds after the reaction of the contacts, their impulses, additions to the multipliers of ``rows``."""
    functions, module = solver._functions, solver._functions.module
    state = functions.prepared, float(at.t), at.q, at.u
    status, failure, final, impulses = module.contacts_after_impulse(*state, after, at.r, at.s)
    if status < 0:
        raise SolveError(contact_failure(module, status, failure, at.t))
    if not rows:
        return final, impulses, np.empty(0)
    is_open = at._replace(u=final)
    # P is affine in the multipliers of the contacts.
    contact_part = is_open._replace(forces=impulses).evaluate(solver.P) - is_open.evaluate(solver.P)
    mass = functions.get(solver.description.mass)
    constraint_part = is_open.evaluate(mass.value) @ (final - after) - contact_part
    more, *_ = np.linalg.lstsq(is_open.evaluate(solver.J)[rows].T, constraint_part, rcond=None)
    return final, impulses, more


def _independent_rows(solver: Contacting, at: Point) -> list[int]:
    """Indices of the independent constraints: all, except in models whose constraints are redundant everywhere."""
    rows = range(len(solver.description.constraints.rows))
    if not rows or solver.description.dependent:
        return list(rows)
    return list(independent_rows(at.evaluate(solver.J)))


def _generalized(solver: Contacting, at: Point, impulses: Any) -> Array:
    """Generalized impulses (n_u,) from the argument ``impulses``."""
    known = solver.description.impulses
    if isinstance(impulses, str):
        impulses = {impulses: 1.0}
    if isinstance(impulses, Mapping):
        factors = {k: number(x, f"impulse {k}") for k, x in by_name(impulses, known, "impulse").items()}
        if not factors:
            raise SolveError("impulses is an empty mapping: name the impulses that act")
        rows = solver._value("impulses", *at[:5])
        return sum((x * rows[known.index(k)] for k, x in factors.items()), np.zeros(len(solver.description.speeds)))
    return _vector(impulses, solver.description.speeds)


def _reduced(solver: Contacting, at: Point, momentum: Array) -> Array | None:
    """``A2 mom = mom_I + A^T mom_D``."""
    description = solver.description
    if not description.dependent:
        return momentum.copy() if description.independent else None
    if description.independent and solver._functions.problem("A") is not None:
        return None
    A: Array = at.evaluate(solver.A)
    return momentum[list(description.independent)] + A.T @ momentum[list(description.dependent)]


def contacts_at(functions: CompiledFunctions, at: Point, atol: Any = None) -> Contacts:
    """The contacts of a model at a state; see :meth:`kanegen.Solver.contacts`."""
    module, description = functions.module, functions.description
    functions.require(["contacts"])
    at.evaluate(functions.get("gaps").value)  # checks the arguments
    check_contact_values(functions, at)
    known = functions.complete(at, ("contacts", "gaps"))
    state = functions.prepared, float(at.t), at.q, at.u, known.r, atol, known.s
    status, failure, modes, value, rate, force, qdot, udot = module.contacts(*state)
    if status < 0 or not np.isfinite(udot).all():
        functions.require_finite(("contacts",), at)
        raise SolveError(contact_failure(module, status, failure, at.t))
    states = {
        name: _state(MODES[mode], layout, value, rate, force)
        for name, mode, layout in zip(module.CONTACTS, modes.tolist(), module.contact_layout(), strict=True)
    }
    sdot = np.empty(0)
    if description.states:
        sdot = known._replace(forces=force).evaluate(functions.get("state_rates").value)
    return Contacts(FrozenMapping(states), qdot, udot, sdot, force)


def _state(mode: str, layout: tuple[int, int, int], value: Array, rate: Array, force: Array) -> ContactState:
    normal, tangent, directions = layout
    slip = slice(tangent, tangent + directions) if directions else slice(0, 0)
    rows = ([normal] if normal >= 0 else []) + list(range(slip.start, slip.stop))
    gap, speed = (float(value[normal]), float(rate[normal])) if normal >= 0 else (np.nan, np.nan)
    return ContactState(mode, gap, speed, rate[slip].copy(), force[rows])


def contact_failure(module: Evaluator, status: int, failure: tuple[int, Any], t: float) -> str:
    """The message if contacts have no modes or impulses; ``failure``: index of the contact, ``Conflict`` or None."""
    culprit, conflict = failure
    if conflict is not None:
        return f"{Outcome.NO_MODE.value} at t = {t!r} s: {conflict_message(module, conflict)}"
    where = f" of contact {module.CONTACTS[culprit]!r}" if culprit >= 0 else ""
    if status == Status.SEVERAL_MODES:
        return f"{Outcome.SEVERAL_MODES.value}{where} at t = {t!r} s: {Status.SEVERAL_MODES.message}"
    return f"the contacts cannot be evaluated at t = {t!r} s: status {status} of a function{where}"


def _functions_of_impulses(description: Description) -> list[str]:
    constraints = description.constraints
    velocities = ["velocity_level"] if constraints.velocities else []
    return [description.mass, *(["J"] if constraints.rows else []), *velocities]


def _vector(impulses: Any, speeds: tuple[str, ...]) -> Array:
    try:
        values = np.array(impulses, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SolveError(
            f"impulses is {brief(impulses)}; expected numbers ({len(speeds)},), a name or a mapping"
        ) from error
    if values.shape != (len(speeds),):
        raise SolveError(
            f"impulses has shape {values.shape}; expected ({len(speeds)},), one generalized impulse for each of "
            f"{', '.join(speeds)}"
        )
    for name, value in zip(speeds, values.tolist(), strict=True):
        number(value, f"the generalized impulse along {name}")
    return values


def _locked(description: Description, t: float) -> str:
    speeds = description.speeds
    return (
        f"the configuration is locked at t = {t!r} s: {len(speeds)} independent constraints leave none of the speeds "
        f"{', '.join(speeds)} free, so that an impulse cannot change them; remove one of the constraints "
        f"{'; '.join(description.constraints.rows)}"
    )


def _failed(description: Description, status: int, t: float) -> str:
    rows = "; ".join(description.constraints.rows)
    if status == Status.SINGULAR:
        return (
            f"the speeds after the impulse at t = {t!r} s are not unique: the constraints depend on each other at this "
            f"position (locked or toggle configuration: {rows}), or a speed moves no mass; change the position, or "
            "remove the redundant constraint"
        )
    if status == Status.INCONSISTENT:
        return (
            f"after the impulse at t = {t!r} s no speeds satisfy the constraints, which are nonlinear in the speeds: "
            f"{rows}; reduce the impulse, or correct the speeds before it by make_consistent"
        )
    return f"the impulse at t = {t!r} s cannot be computed: status {status} of a function"


def watched_events(description: Description, events: Any) -> tuple[int, ...]:
    """Indices of the events to detect, given by name or as the model's `Event` records; None: all.

    Raises `SolveError` for unknown names, and for records that differ from the model's event of that name.
    """
    if events is None:
        return tuple(range(len(description.events)))
    if isinstance(events, (str, Event, np.ndarray)) or not isinstance(events, Iterable):
        events = (events,)
    problems: list[str] = []
    indices = {_event_index(item, description.events, problems) for item in events}
    require_none(problems)
    return tuple(sorted(indices))


def _event_index(item: Any, known: tuple[EventLabel, ...], problems: list[str]) -> int:
    """The index of an event given by name or as a record; -1, and a new problem, if the model has no such event."""
    names = [event.name for event in known]
    name = item.name if isinstance(item, Event) else item
    if not isinstance(name, str):
        problems.append(f"events holds {brief(item)}: put events into Model(events=...) and give their names here")
    elif name not in names:
        problems.append(f"{unknown(name, names, 'event')}; events are compiled with the model, Model(events=...)")
    else:
        own = vars(known[names.index(name)])
        labels = map(EventLabel.of, normalized_events([item], "events", problems) if isinstance(item, Event) else ())
        problems += [
            f"the event {name!r} was not compiled with {field} = {value!r}: the model has {own[field]!r}; name the "
            "event, or build a model with this one"
            for label in labels
            for field, value in vars(label).items()
            if value != own[field]
        ]
        return names.index(name)
    return -1


def start_modes(module: Evaluator, modes: Mapping[str, str] | None) -> dict[int, int]:
    """Index of contact -> code of its mode. Raises `SolveError` for names and modes that do not exist."""
    if modes is None:
        return {}
    named = by_name(modes, module.CONTACTS, "contact")
    given = {name: key_name(mode) for name, mode in named.items()}
    wrong = [f"{name}: {unknown(mode, MODES, 'mode')}" for name, mode in given.items() if mode not in MODES]
    require_none(wrong, "modes: ")
    return {module.CONTACTS.index(name): MODES.index(mode) for name, mode in given.items()}


def check_run(functions: CompiledFunctions, watched: Iterable[int], backwards: bool, control_states: bool) -> None:
    """Raise `SolveError` for contacts and events that do not work backwards in time or with controls in the state."""
    if not (backwards or control_states):
        return
    module, labels = functions.module, functions.description.events
    events = [module.EVENTS[k] for k in watched]
    resetting = {event.name for event in labels if event.reset}
    irreversible = [f"contact {name!r}" for name in module.IRREVERSIBLE_CONTACTS]
    irreversible += [f"event {name!r}" for name in events if name in {*module.IRREVERSIBLE_EVENTS, *resetting}]
    if backwards and irreversible:
        raise SolveError(
            f"the span goes backwards in time, but {', '.join(irreversible)} cannot be integrated backwards: the state "
            "after impacts, friction and latches does not determine the state before; integrate forwards"
        )
    acting = [*(f"contact {name!r}" for name in module.CONTACTS), *(f"event {name!r}" for name in events)]
    if control_states and acting:
        raise SolveError(
            f"kg.ControlConstraints make the controls part of the state, and {', '.join(acting)} cannot act on such a "
            "state: leave events out by events=(), and use servo-constraints in models with contacts"
        )


def hybrid_records(
    module: Evaluator, description: Description, result: Any
) -> tuple[tuple[EventRecord, ...], ContactHistory | None]:
    """The events and the contacts of a run; ``result.hybrid`` is None in runs without contacts and events.

    ``result.hybrid`` holds ``events`` (n, 3 + n_q + 2 (n_u + n_s) + n_rows), with rows of time, kind, index, q, speeds
    and states before and after, and impulses; ``phases`` (m, 1 + n_contacts), with rows of the start of a phase and the
    modes; ``forces`` (n_t, n_rows).
    """
    arrays = result.hybrid
    if arrays is None:
        return (), None
    events = _events(module, description, arrays.events)
    if not module.CONTACTS:
        return events, None
    phases = _phases(module.CONTACTS, arrays.phases, result.last[0])
    return events, ContactHistory(phases, arrays.forces, description.contacts.rows)


def _events(module: Evaluator, description: Description, rows: Array) -> tuple[EventRecord, ...]:
    n_q, n_u, n_s = len(description.coordinates), len(description.speeds), len(description.states)
    ends = np.cumsum([3, n_q, n_u, n_s, n_u, n_s])
    parts = [np.ascontiguousarray(part) for part in np.split(rows, ends, 1)]
    kinds, contacts, events = EventKind.labels(), module.CONTACTS, module.EVENTS
    names, records = (*description.speeds, *description.states), []
    for (t, code, index), q, u, s, new_u, new_s, impulse in zip(parts[0].tolist(), *parts[1:], strict=True):
        kind = "switches" if code == EventKind.USER and index >= len(description.events) else kinds[int(code)]
        name = (events if code == EventKind.USER else contacts)[int(index)]
        records.append(EventRecord(t, name, kind, q, u, new_u, impulse, s, new_s, names))
    return tuple(records)


def _phases(contacts: tuple[str, ...], rows: Array, end: float) -> tuple[Phase, ...]:
    """The phases of a run; phases of zero length are removed, and neighbors with equal modes are merged."""
    phases: list[Phase] = []
    ends = [*rows[1:, 0].tolist(), end]
    for row, t_end in zip(rows, ends, strict=True):
        modes = FrozenMapping(zip(contacts, (MODES[int(code) & ~REGULARIZED] for code in row[1:]), strict=True))
        if phases and dict(phases[-1].modes) == dict(modes):
            phases[-1] = Phase(phases[-1].t_start, t_end, modes)
        elif t_end != row[0] or len(rows) == 1:
            phases.append(Phase(float(row[0]), t_end, modes))
    return tuple(phases)
