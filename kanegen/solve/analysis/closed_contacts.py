"""The change of contact forces with the state, and the constraints of closed contacts, in the modes of a state.

A closed rigid contact, a latch and a sticking contact hold the acceleration of their rows, ``W u' + w0 = target``. The
force of a compliant contact is a function of the state, and the friction of a slipping one follows the normal force,
``lambda_t = -mu_k N v / |v|``. The derivatives of these equations determine those of the multipliers of all contact
rows, ``E dlambda = R dx``; E is not symmetric if a contact with an unknown normal force slips.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from kanegen.arrays import Array, sections
from kanegen.codegen.description import Description
from kanegen.codes import ContactLaw, Mode
from kanegen.errors import SolveError
from kanegen.graph.ranks import RANK_TOLERANCE
from kanegen.model.inputs import MULTIPLIER
from kanegen.program.records import ContactEntry
from kanegen.solve.analysis.slopes import STATE, Slopes
from kanegen.solve.contacts import ContactState
from kanegen.solve.values import extent, listed

COLUMNS: Final = (*STATE, "r", "t")
"""The arguments with respect to which contact forces are differentiated."""
_AMBIGUOUS = 1e-7
"""Accelerations under a change of forces that no equation determines, relative to the largest response."""


@dataclass(frozen=True, eq=False)
class ClosedContacts:
    """Derivatives that closed contacts add to those of a model; the columns are those of :data:`COLUMNS`.

    ``positions`` and ``velocities``: derivatives of gaps, and of gap rates and slip velocities, that remain zero;
    ``forces`` (n_rows, columns): derivatives of the multipliers of all contact rows.
    """

    positions: Array
    velocities: Array
    forces: Array


class ContactValues(NamedTuple):
    """Values of rows (value, rate, target) and of contacts (the others) at a state; the sections of ``gaps``."""

    value: Array
    rate: Array
    target: Array
    load: Array
    mu_s: Array
    mu_k: Array
    restitution: Array
    creep: Array

    @classmethod
    def of(cls, gaps: Array, d: Description) -> ContactValues:
        """The sections of the function ``gaps``."""
        n_k, n_m = len(d.contacts.rows), len(d.contacts.table)
        return cls(*sections(gaps, (*[n_k] * 3, *[n_m] * 4)))


class RowSlopes(NamedTuple):
    """Derivatives of the rows (acceleration ... target) and of the contacts (load, mu_k), (n, columns) each."""

    acceleration: Array
    value: Array
    rate: Array
    target: Array
    load: Array
    mu_k: Array

    @classmethod
    def of(cls, matrix: Array, d: Description) -> RowSlopes:
        """The sections of the derivatives of "contacts"."""
        return cls(*sections(matrix, (*[len(d.contacts.rows)] * 4, len(d.contacts.table))))


def acting_contacts(states: Mapping[str, ContactState]) -> dict[str, ContactState]:
    """The contacts that exert forces."""
    idle = Mode.OPEN.label, Mode.PENETRATED.label
    return {name: state for name, state in states.items() if state.mode not in idle}


def closed_contacts(
    slopes: Slopes, states: Mapping[str, ContactState], values: ContactValues, limits: tuple[float, float]
) -> ClosedContacts:
    """The derivatives at a state with these contacts; ``limits`` are the largest gap and speed that count as zero.

    Raises `SolveError` for slipping contacts whose forces do not determine the accelerations.
    """
    d, n_k = slopes.description, slopes.columns[MULTIPLIER]
    if not acting_contacts(states):
        columns = sum(slopes.columns[argument] for argument in COLUMNS)
        return ClosedContacts(*(np.zeros((n, columns)) for n in (0, 0, n_k)))
    own = RowSlopes.of(slopes.matrix("contacts", COLUMNS), d)
    positions, velocities = [], []
    for row, is_gap in held_rows(d, states):
        if abs(values.value[row]) <= limits[0] and abs(values.rate[row]) <= limits[1]:
            velocities.append(own.rate[row])
            positions += [own.value[row]] if is_gap else []
    E, R = _equations(d, states, values, own, slopes.of("contacts", MULTIPLIER)[:n_k])
    _require_determined(d, E, slopes.of("jacobian", MULTIPLIER))
    forces = np.linalg.lstsq(E, R, rcond=RANK_TOLERANCE)[0].astype(np.float64)
    shape = (-1, forces.shape[1])
    return ClosedContacts(np.reshape(positions, shape), np.reshape(velocities, shape), forces)


def held_rows(d: Description, states: Mapping[str, ContactState]) -> Iterator[tuple[int, bool]]:
    """The rows whose accelerations closed contacts hold, and whether each is that of a gap at position level."""
    for contact, state in zip(d.contacts.table, states.values(), strict=True):
        if contact.name not in acting_contacts({contact.name: state}):
            continue
        if contact.normal >= 0 and contact.law != ContactLaw.COMPLIANT.label:
            yield contact.normal, contact.level == 2
        if state.mode == Mode.STICK.label:
            yield from ((contact.tangent + k, False) for k in range(contact.directions))


def _equations(
    d: Description, states: Mapping[str, ContactState], values: ContactValues, own: RowSlopes, D: Array
) -> tuple[Array, Array]:
    """E (n_k, n_k) and R (n_k, columns) of ``E dlambda = R dx``; forces of contacts that do not act remain zero."""
    E, R = np.eye(len(D)), np.zeros_like(own.acceleration)
    for row, _ in held_rows(d, states):
        E[row], R[row] = D[row], own.target[row] - own.acceleration[row]
    acting = acting_contacts(states)
    for m, contact in enumerate(d.contacts.table):
        state = acting.get(contact.name)
        if state is not None and contact.law == ContactLaw.COMPLIANT.label:
            R[contact.normal] = own.load[m]
        if state is not None and state.mode == Mode.SLIP.label:
            _slip_equations(E, R, m, contact, state, values, own)
    return E, R


def _slip_equations(
    E: Array, R: Array, m: int, contact: ContactEntry, state: ContactState, values: ContactValues, own: RowSlopes
) -> None:
    """The equations of a slipping contact: ``dlambda_t = -d(mu_k N) e - mu_k N de`` with ``e = v / |v|``."""
    rows = range(contact.tangent, contact.tangent + contact.directions)
    speed = float(np.linalg.norm(state.slip))
    e, mu = state.slip / speed, values.mu_k[m]
    of_direction = (np.eye(len(e)) - np.outer(e, e)) @ own.rate[rows] / speed
    if contact.normal >= 0:
        force = float(state.force[0])
        sign = np.sign(force) if contact.law == ContactLaw.BILATERAL.label else 1.0
        E[rows, contact.normal] += mu * sign * e
        normal, of_load = abs(force), 0.0
    else:
        normal, of_load = values.load[m], mu * np.outer(e, own.load[m])
    R[rows] = -(normal * np.outer(e, own.mu_k[m]) + of_load + mu * normal * of_direction)


def _require_determined(d: Description, E: Array, response: Array) -> None:
    """Raise `SolveError` if the equations leave a change of forces open that changes accelerations."""
    _, sizes, directions = np.linalg.svd(E)
    rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum())
    open_changes = np.abs(response @ directions[rank:].T)
    if open_changes.max(initial=0.0) > _AMBIGUOUS * np.abs(response).max():
        raise SolveError(
            f"the friction of the contacts {', '.join(x.name for x in d.contacts.table)} does not determine the "
            f"accelerations of {d.name!r} near this state, because their normal forces are not unique: remove "
            "redundant contacts, or give them compliant laws"
        )


def require_regular_modes(
    d: Description, t: float, states: Mapping[str, ContactState], values: ContactValues, u: Array, tolerance: float
) -> None:
    """Raise `SolveError` that names the contacts whose modes change with an arbitrarily small change of the state.

    Gaps, speeds and forces count as zero below ``tolerance`` relative to the largest of the model.
    """
    forces = [np.abs(state.force).max(initial=0.0) for state in states.values()]
    gaps = [abs(state.gap) for state in states.values() if np.isfinite(state.gap)]
    limits = tolerance * extent(gaps), tolerance * extent(u), tolerance * extent(forces)
    problems = [
        f"contact {contact.name!r} ({state.mode}): {reason}"
        for m, (contact, state) in enumerate(zip(d.contacts.table, states.values(), strict=True))
        for reason in _switching(contact, state, values.mu_s[m], values.creep[m], values.load[m], limits)
    ]
    if problems:
        headline = f"the model {d.name!r} has no linear model at t = {t!r} s, because contacts switch at this state"
        advice = "linearize at a neighboring state on one side of the switch"
        raise SolveError(listed(headline, problems, advice))


def _switching(
    contact: ContactEntry,
    state: ContactState,
    mu_s: float,
    creep: float,
    load: float,
    limits: tuple[float, float, float],
) -> Iterator[str]:
    """The reasons why a contact is about to change its mode."""
    law, (gap_limit, speed_limit, force_limit) = contact.law, limits
    one_sided = law not in (ContactLaw.LATCH.label, ContactLaw.BILATERAL.label, ContactLaw.LOAD.label)
    idle = state.mode in (Mode.OPEN.label, Mode.PENETRATED.label)
    compliant = law == ContactLaw.COMPLIANT.label
    normal = abs(state.force[0]) if contact.normal >= 0 else load
    if one_sided and (idle or compliant) and abs(state.gap) <= gap_limit:
        yield f"its gap is {state.gap:.3g}, and it touches without a force"
    elif one_sided and state.mode == Mode.PENETRATED.label and compliant and abs(load) <= force_limit:
        yield f"its force changes its sign ({load:.3g} at the gap {state.gap:.6g})"
    elif one_sided and not idle and normal <= force_limit:
        yield f"its normal force is {normal:.3g}"
    elif law == ContactLaw.RESTITUTION.label and not idle and abs(state.rate) > speed_limit:
        yield f"its gap closes with the rate {state.rate:.6g}, and an impact follows"
    slip, friction = (
        float(np.linalg.norm(state.slip)),
        float(np.linalg.norm(state.force[len(state.force) - len(state.slip) :])),
    )
    if state.mode == Mode.SLIP.label and slip <= speed_limit:
        yield f"its slip velocity is {slip:.3g}"
    if state.mode == Mode.STICK.label and mu_s * normal - friction <= force_limit:
        yield f"its friction {friction:.6g} is at the limit mu_s N = {mu_s * normal:.6g}"
    if state.mode == Mode.STICK.label and creep and abs(slip - creep) <= speed_limit:
        yield f"its slip velocity {slip:.6g} is at the limit of creep"
