"""Impulses at one state: the method of a solver, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.graph.ranks import independent_rows
from kanegen.solve.contact.contacts import check_contact_values, contact_failure
from kanegen.solve.functions import Functions
from kanegen.solve.names import by_name, number


class Impulse(NamedTuple):
    """Speeds after an impulse, the impulses of the constraints, and generalized momenta before and after.

    ``u``: speeds after (n_u,). ``constraint_impulse``: ``J^T Lambda = Q (u+ - u-) - I``, (n_u,), with the
    ``multipliers`` Lambda (n_c,) in the order of ``description.constraints.rows``, zero for redundant ones.
    ``momentum_before`` and ``momentum_after``: ``Q u + N``, (n_u,), the holonomic generalized momenta;
    ``reduced_momentum_before`` and ``reduced_momentum_after``: ``A2 (Q u + N)``, (n_i,), the nonholonomic ones, which
    the constraint impulses do not change where the constraints are linear in the speeds; None where no choice of
    dependent speeds solves the constraints, or the model was built without ``A``. ``contact_impulses``: those of the
    contact rows (n_rows,), in the order of ``description.contacts.rows``.
    """

    u: Array
    constraint_impulse: Array
    multipliers: Array
    momentum_before: Array
    momentum_after: Array
    reduced_momentum_before: Array | None
    reduced_momentum_after: Array | None
    contact_impulses: Array


class Impulsive:
    """The method of :class:`~kanegen.Solver` for impulses."""

    description: Description
    momentum: Callable[..., Array]
    J: Callable[..., Array]
    A: Callable[..., Array]
    _functions: Functions

    def impulse(self, t: float, q: Any, u: Any, impulses: Any, r: Any = None) -> Impulse:
        """The speeds after impulses that act at one instant, and the impulses of the constraints.

        ``Q (u+ - u-) = I + J^T Lambda``, and the constraints hold before and after: ``J (u+ - u-) = 0`` for rows that
        are linear in the speeds; for the others ``psi(q, u+, t) = 0`` by Newton's method, with impulses along psi_u^T
        at the speeds after. Contacts that touch react as in an impact: those at rest stay closed or separate, those
        that approach rebound according to their law, by complementarity and with friction (kg_impact.h).

        Parameters
        ----------
        t, q, u, r
            The state before, as for :attr:`rhs`; u must satisfy the constraints.
        impulses
            Generalized impulses (n_u,), N s or N m s; the name of one of the model's ``impulses``; or a mapping from
            such names to factors.

        Raises
        ------
        SolveError
            For wrong arguments, unknown names and values of contact laws out of range; where the constraints depend on
            each other at this position (a locked or toggle configuration), so that impulses would be infinite or
            undetermined; where they leave no speed free; and where constraints nonlinear in the speeds cannot be
            satisfied after the impulse.
        """
        functions, description = self._functions, self.description
        before = self.momentum(t, q, u, r)  # checks the arguments
        generalized = self._generalized(t, q, u, impulses, r)
        needed = ("Q", *_needed(description))
        functions.require(needed)
        inputs = functions.inputs(r, needed)
        rows = self._independent_rows(t, q, u, r)
        if len(rows) == len(description.speeds):
            raise SolveError(_locked(description, t))
        status, after, independent = functions.module.impulse(
            functions.prepared, float(t), q, u, inputs, generalized, rows
        )
        if status < 0 or not np.isfinite(after).all():
            raise SolveError(_failed(functions.module, description, status, t))
        multipliers = np.zeros(len(description.constraints.rows))
        multipliers[rows] = independent
        contact_impulses = np.zeros(len(description.contacts.rows))
        if functions.module.CONTACTS:
            check_contact_values(functions, t, q, u, r)
            after, contact_impulses, more = self._with_contacts(t, q, u, after, inputs, rows)
            multipliers[rows] += more
        momentum = self.momentum(t, q, after, r)
        return Impulse(
            u=after,
            constraint_impulse=self.J(t, q, after, r).T @ multipliers if len(multipliers) else np.zeros(len(after)),
            multipliers=multipliers,
            momentum_before=before,
            momentum_after=momentum,
            reduced_momentum_before=self._reduced(t, q, u, r, before),
            reduced_momentum_after=self._reduced(t, q, after, r, momentum),
            contact_impulses=contact_impulses,
        )

    def _with_contacts(
        self, t: float, q: Any, before: Any, after: Array, inputs: Array, rows: list[int]
    ) -> tuple[Array, Array, Array]:
        """Speeds after the reaction of the contacts, their impulses, additions to the multipliers of ``rows``."""
        functions, module, layout = self._functions, self._functions.module, self.description.input_layout
        status, failure, final, impulses = module.contacts_after_impulse(
            functions.prepared, float(t), q, before, after, inputs
        )
        if status < 0:
            raise SolveError(contact_failure(module, status, failure, t))
        if not rows:
            return final, impulses, np.empty(0)
        P, Q = functions.get("P"), functions.get("Q")
        # P is affine in the multipliers of the contacts.
        given = inputs[: len(layout.inputs)]
        free, acting = layout.array(given), layout.array(given, multipliers=impulses)
        on_speeds = P.value(t, q, final, acting) - P.value(t, q, final, free)
        answer = Q.value(t, q, final, free) @ (final - after) - on_speeds
        more, *_ = np.linalg.lstsq(self.J(t, q, final, free)[rows].T, answer, rcond=None)
        return final, impulses, more

    def _independent_rows(self, t: float, q: Any, u: Any, r: Any) -> list[int]:
        """Indices of the independent constraints: all, except in models whose constraints are redundant everywhere."""
        rows = range(len(self.description.constraints.rows))
        if not rows or self.description.dependent:
            return list(rows)
        return list(independent_rows(self.J(t, q, u, r)))

    def _generalized(self, t: float, q: Any, u: Any, impulses: Any, r: Any) -> Array:
        """Generalized impulses (n_u,) from the argument ``impulses``."""
        known = self.description.impulses
        if isinstance(impulses, str):
            impulses = {impulses: 1.0}
        if isinstance(impulses, Mapping):
            factors = {k: number(x, f"impulse {k}") for k, x in by_name(impulses, known, "impulse").items()}
            if not factors:
                raise SolveError("impulses is an empty mapping: name the impulses that act")
            rows = self._functions.get("impulses").value(t, q, u, r)
            return sum((x * rows[known.index(k)] for k, x in factors.items()), np.zeros(len(self.description.speeds)))
        return _vector(impulses, self.description.speeds)

    def _reduced(self, t: float, q: Any, u: Any, r: Any, momentum: Array) -> Array | None:
        """``A2 mom = mom_I + A^T mom_D``."""
        description = self.description
        if not description.dependent:
            return momentum.copy() if description.independent else None
        if description.independent and self._functions.problem("A") is not None:
            return None
        A = self.A(t, q, u, r)
        return momentum[list(description.independent)] + A.T @ momentum[list(description.dependent)]


def _needed(description: Description) -> tuple[str, ...]:
    """The compiled functions that :meth:`Impulsive.impulse` needs."""
    constraints = description.constraints
    rows, levels = ["J"] if constraints.rows else [], ["velocity_level"] if constraints.velocities else []
    return ("Q", *rows, *levels)


def _vector(impulses: Any, speeds: tuple[str, ...]) -> Array:
    try:
        values = np.array(impulses, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SolveError(f"impulses is {impulses!r}; expected numbers ({len(speeds)},), a name or a mapping") from error
    if values.shape != (len(speeds),):
        raise SolveError(
            f"impulses has shape {values.shape}; expected ({len(speeds)},), one generalized impulse for each of "
            f"{', '.join(speeds)}"
        )
    for name, value in zip(speeds, values.tolist(), strict=True):
        number(value, f"the generalized impulse along {name}")
    return values


def _locked(description: Description, t: float) -> str:
    count, speeds, rows = (
        len(description.speeds),
        ", ".join(description.speeds),
        "; ".join(description.constraints.rows),
    )
    return (
        f"the configuration is locked at t = {t!r} s: {count} independent constraints leave none of the speeds "
        f"{speeds} free, so that an impulse cannot change them; remove one of the constraints {rows}"
    )


def _failed(module: Evaluator, description: Description, status: int, t: float) -> str:
    rows = "; ".join(description.constraints.rows)
    if status == Status.SINGULAR:
        return (
            f"the impulse at t = {t!r} s has no unique answer: the constraints depend on each other at this position "
            f"(locked, or a toggle: {rows}), or a speed moves no mass; change the position, or remove the redundant "
            "constraint"
        )
    if status == Status.INCONSISTENT:
        return (
            f"the impulse at t = {t!r} s leaves no speeds that satisfy the constraints, which are nonlinear in the "
            f"speeds: {rows}; the impulse is too large for them, or the speeds before violate them (make_consistent)"
        )
    return f"the impulse at t = {t!r} s cannot be computed: status {status} of a function"
