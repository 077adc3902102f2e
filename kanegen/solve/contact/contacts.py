"""Contacts at one state: the methods of a solver, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.model.records import FrozenMapping
from kanegen.solve.functions import Functions
from kanegen.solve.names import unknown
from kanegen.solve.outcome import Outcome, conflict_message
from kanegen.solve.run.hybrid import MODES


@dataclass(frozen=True, eq=False)
class ContactState:
    """One contact at a state.

    Attributes
    ----------
    mode
        One of :data:`kanegen.solve.run.hybrid.MODES`.
    gap, rate
        The gap, m or rad, and its rate; of a gap at velocity level both are its value; NaN under a given load.
    slip
        Slip velocity along its directions, (n,), m/s.
    force
        Multipliers of its rows, N: the normal force, then friction along the directions of slip.
    """

    mode: str
    gap: float
    rate: float
    slip: Array
    force: Array


@dataclass(frozen=True, eq=False)
class Contacts:
    """All contacts at a state: ``contacts["floor"]`` is a :class:`ContactState`.

    ``states`` maps names to them; ``qdot`` (n_q,) and ``udot`` (n_u,) are the motion with their forces. ``forces``
    (n_rows,) are the multipliers in the order of ``description.contacts.rows``; functions take them after the inputs.
    """

    states: Mapping[str, ContactState]
    qdot: Array
    udot: Array
    forces: Array

    def __getitem__(self, name: str) -> ContactState:
        if name not in self.states:
            raise SolveError(unknown(name, tuple(self.states), "contact"))
        return self.states[name]


def check_contact_values(functions: Functions, t: float, q: Any, u: Any, r: Any) -> None:
    """Check the values of the contact laws at the parameters of the solver.

    Raises
    ------
    SolveError
        Listing every value that is out of range, with its contact and parameter.
    """
    entries = functions.description.contacts.values
    if not entries:
        return
    numbers = functions.get("contact_values").value(t, q, u, r).tolist()
    problems = [
        f"{entry.name} = {number:.6g}: expected {entry.expected}"
        for entry, number in zip(entries, numbers, strict=True)
        if not entry.admits(number)
    ]
    if problems:
        raise SolveError(f"values of contacts at t = {t!r} s: " + "; ".join(problems))


class Contacting:
    """The methods of :class:`~kanegen.Solver` for contacts."""

    description: Description
    _functions: Functions

    def contacts(self, t: float, q: Any, u: Any, r: Any = None) -> Contacts:
        """The contacts at a state: consistent modes, forces, and the accelerations under these forces.

        The modes are those in which a run from this state begins. They follow from the gaps and their rates and, where
        both vanish, from the complementarity of accelerations and forces. A contact that needs an impulse first (a
        rigid one that approaches with a gap of zero) counts as closed. ``rhs`` and the other functions of the solver
        treat all contacts as open, unless the inputs in ``r`` are followed by the multipliers.

        Raises
        ------
        SolveError
            For wrong arguments, a model without contacts, values of laws out of range, and states in which no modes, or
            several, are consistent with the laws of the contacts (Painleve). It names the contact.
        """
        functions = self._functions
        module = functions.module
        if not module.CONTACTS:
            raise SolveError(f"the model {self.description.name!r} has no contacts: see contacts= of Model")
        functions.require(["contacts"])
        functions.get("gaps").value(t, q, u, r)  # checks the arguments
        check_contact_values(functions, t, q, u, r)
        inputs = functions.inputs(r, ("contacts", "gaps"))
        status, failure, modes, value, rate, force, qdot, udot = module.contacts(
            functions.prepared, float(t), q, u, inputs
        )
        if status < 0 or not np.isfinite(udot).all():
            functions.require_finite(("contacts",), t, q, u, r)
            raise SolveError(contact_failure(module, status, failure, t))
        states = {
            name: _state(MODES[mode], layout, value, rate, force)
            for name, mode, layout in zip(module.CONTACTS, modes.tolist(), module.contact_layout(), strict=True)
        }
        return Contacts(FrozenMapping(states), qdot, udot, force)


def _state(mode: str, layout: tuple[int, int, int], value: Array, rate: Array, force: Array) -> ContactState:
    normal, tangent, directions = layout
    slip = slice(tangent, tangent + directions) if directions else slice(0, 0)
    rows = ([normal] if normal >= 0 else []) + list(range(slip.start, slip.stop))
    gap, speed = (float(value[normal]), float(rate[normal])) if normal >= 0 else (np.nan, np.nan)
    return ContactState(mode, gap, speed, rate[slip].copy(), force[rows])


def contact_failure(module: Evaluator, status: int, failure: tuple[int, Any], t: float) -> str:
    """Why the contacts have no modes or impulses at a state; ``failure``: the contact, and a ``Conflict`` or None."""
    culprit, conflict = failure
    if conflict is not None:
        return f"{Outcome.NO_MODE.value} at t = {t!r} s: {conflict_message(module, conflict)}"
    where = f" of contact {module.CONTACTS[culprit]!r}" if culprit >= 0 else ""
    if status == Status.SEVERAL_MODES:
        return f"{Outcome.SEVERAL_MODES.value}{where} at t = {t!r} s: {Outcome.SEVERAL_MODES.advice}"
    return f"the contacts cannot be evaluated at t = {t!r} s: status {status} of a function{where}"
