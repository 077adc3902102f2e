"""The equations of a steady state, F(X) = 0, with X = (q, u, s, r, contact multipliers), and their derivatives.

The rows of F are chosen rates of (q, u, s), the residuals of all constraints, and the equations of the contacts
(:mod:`.supports`). Bilateral constraints need no multipliers, because the rates contain their forces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from kanegen.arrays import Array, sections
from kanegen.backends.points import Point
from kanegen.codegen.description import Description
from kanegen.model.inputs import MULTIPLIER
from kanegen.solve.analysis.closed_contacts import ContactValues, RowSlopes
from kanegen.solve.analysis.sizes import evaluations, terms, without_roundings
from kanegen.solve.analysis.slopes import STATE, DifferenceSlopes, Slopes, contact_values
from kanegen.solve.analysis.supports import Equation, Support, equations_of
from kanegen.solve.feedback.laws import LAWS
from kanegen.solve.functions import CompiledFunctions, disturbed

ARGUMENTS: Final = (*STATE, "r", MULTIPLIER)
"""The parts of X."""


@dataclass(frozen=True, eq=False)
class Balance:
    """The equations of a steady state at time ``t``.

    ``rates``: indices of the rows of (q', u', s') that are zero; ``free``: indices of the entries of X that are
    unknown; ``rhs``: the name of the function of the rates; ``responses`` (n_rows,): accelerations of the contact rows
    per multiplier, the scale of forces; ``laws``: indices of the inputs whose feedback laws act; ``law_function``: the
    function of their values, with or without limits; ``in_motion``: not all accelerations are zero, so that those of
    the rows that contacts hold are equations; ``carried``: indices of coordinates that may change, and
    ``shares`` (n_rates, k) of their rates in those of ``rates``, which are zero apart from them.
    """

    functions: CompiledFunctions
    rhs: str
    t: float
    rates: Sequence[int]
    free: Sequence[int]
    supports: tuple[Support, ...]
    responses: Array
    laws: tuple[int, ...] = ()
    law_function: str = LAWS
    in_motion: bool = False
    carried: tuple[int, ...] = ()
    shares: Array | None = None

    @property
    def description(self) -> Description:
        """The description of the model."""
        return self.functions.description

    @property
    def is_compiled(self) -> bool:
        """Whether the derivatives are compiled."""
        built = self.description.functions
        needed = [
            "jacobian_q",
            *(["contacts_q"] if self.supports else []),
            *([f"{self.law_function}_q"] if self.laws else []),
        ]
        return all(name in built for name in needed)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the entries of X."""
        d = self.description
        return (*d.components, *d.inputs, *(f"force of {row}" for row in d.contacts.rows))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names of the rates, residuals and laws in F, without the equations of contacts."""
        d = self.description
        rates = [f"{name}'" for name in d.components]
        laws = (f"law of {d.inputs[slot]}" for slot in self.laws)
        return (*(rates[row] for row in self.rates), *d.constraints.levels, *laws)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        d = self.description
        return len(d.coordinates), len(d.speeds), len(d.states), len(d.inputs)

    def parts(self, X: Array) -> list[Array]:
        """q, u, s, r and the contact multipliers."""
        return sections(X, self._sizes)

    def arguments(self, X: Array) -> Point:
        """The arguments of compiled functions."""
        q, u, s, r, forces = self.parts(X)
        return Point(self.t, q, u, r, s if s.size else None, forces)

    def all_rates(self, X: Array) -> Array:
        """(q', u', s')."""
        return np.concatenate(self.arguments(X).evaluate(self.functions.get(self.rhs).pair))

    def contact_values(self, X: Array) -> ContactValues:
        """The values of the contact rows and laws."""
        gaps = self.arguments(X).evaluate(self.functions.get("gaps").value) if self.supports else np.empty(0)
        return ContactValues.of(gaps, self.description)

    def contact_terms(self, X: Array) -> ContactValues:
        """The sums of the absolute terms of the values of contact rows and laws."""

        def gaps(balance: Balance, Y: Array) -> Array:
            return np.asarray(balance.arguments(Y).evaluate(balance.functions.get("gaps").value))

        own = gaps(self, X)
        others = evaluations(lambda k: gaps(self._disturbed[k], disturbed(X, k)))
        return ContactValues.of(terms(own, others), self.description)

    def slopes(self, X: Array) -> Slopes:
        """The derivatives of the model's functions: compiled, or by differences if they were not built."""
        if self.is_compiled:
            at = self.arguments(X)
            return Slopes(lambda name: np.asarray(at.evaluate(self.functions.get(name).value)), self.description)
        point = dict(zip(ARGUMENTS, self.parts(X), strict=True))
        return DifferenceSlopes(self.functions, self.rhs, {**point, "t": np.array([self.t])})

    def law_values(self, X: Array) -> Array:
        """The values of the laws that act."""
        if not self.laws:
            return np.empty(0)
        order = list(self.description.laws)
        values = np.asarray(self.arguments(X).evaluate(self.functions.get(self.law_function).value))
        return values[[order.index(slot) for slot in self.laws]]

    def values(self, X: Array) -> Array:
        """F, (m,)."""
        levels = self.description.constraints.levels
        residuals = self.arguments(X).evaluate(self.functions.get("residuals").value) if levels else []
        of_laws = self.parts(X)[3][list(self.laws)] - self.law_values(X)
        of_contacts = [equation.value for equation in self.contact_equations(X)]
        return np.concatenate([self._required(self.all_rates(X)), residuals, of_laws, of_contacts])

    def _required(self, rates: Array) -> Array:
        """The rows of (q', u', s') that are zero; also of their derivatives."""
        own: Array = rates[list(self.rates)]
        return own if self.shares is None else own - self.shares @ rates[list(self.carried)]

    @cached_property
    def _disturbed(self) -> tuple[Balance, ...]:
        """The equations with relative errors of the parameters."""
        return tuple(replace(self, functions=other) for other in self.functions.disturbed)

    def terms(self, X: Array, F: Array) -> Array:
        """The sums of the absolute terms of the equations (m,); ``F`` are their values."""
        return terms(F, evaluations(lambda k: self._disturbed[k].values(disturbed(X, k))))

    def jacobian(self, X: Array, errors: Array | float = 0.0) -> Array:
        """Derivatives of F with respect to the unknowns, (m, n), with zeros in place of rounding errors.

        ``errors`` are those of X, beside the rounding of its entries.
        """
        return self.without_roundings(Balance._slopes, X, errors)

    def without_roundings(
        self, matrix: Callable[[Balance, Array], Array], X: Array, errors: Array | float = 0.0
    ) -> Array:
        """A matrix of derivatives at X, with zeros in place of rounding errors; otherwise as :meth:`jacobian`."""
        # Roundings of compiled derivatives have few values, so that one disturbance can leave them unchanged.
        samples = 2 if self.is_compiled else 1
        own = matrix(self, X)
        return without_roundings(own, lambda k: matrix(self._disturbed[k], disturbed(X, k, errors)), samples)

    def _slopes(self, X: Array) -> Array:
        """Derivatives of F with respect to the unknowns, (m, n)."""
        slopes = self.slopes(X)
        rows = [self._required(slopes.matrix("jacobian", ARGUMENTS)), slopes.matrix("residuals", ARGUMENTS)]
        if self.laws:
            order, first = list(self.description.laws), sum(slopes.columns[argument] for argument in STATE)
            own = [order.index(slot) for slot in self.laws]
            unit = np.eye(len(X))[[first + slot for slot in self.laws]]
            rows.append(unit - slopes.matrix(self.law_function, ARGUMENTS)[own])
        rows += [equation.slopes[None] for equation in self.contact_equations(X, slopes)]
        return np.vstack(rows)[:, list(self.free)]

    def contact_equations(self, X: Array, slopes: Slopes | None = None) -> list[Equation]:
        """The equations of the contacts; their derivatives are zero without ``slopes``."""
        d, values = self.description, self.contact_values(X)
        n_k, n_m = len(d.contacts.rows), len(d.contacts.table)
        own = slopes.matrix("contacts", ARGUMENTS) if slopes else np.zeros((4 * n_k + 2 * n_m, len(X)))
        of_rows, forces = RowSlopes.of(own, d), self.parts(X)[-1]
        equations = list(equations_of(self.supports, values, forces, of_rows, self.responses, d))
        if self.in_motion and self.supports:
            sections = self.arguments(X).evaluate(self.functions.get("contacts").value)
            accelerations = contact_values(sections, d, forces)[:n_k]
            equations += [
                Equation(f"acceleration {d.contacts.rows[k]}", float(accelerations[k]), of_rows.acceleration[k])
                for support in self.supports
                for k in support.held
            ]
        return equations

    def all_labels(self, X: Array) -> tuple[str, ...]:
        """The names of the entries of F."""
        return (*self.labels, *(equation.label for equation in self.contact_equations(X)))
