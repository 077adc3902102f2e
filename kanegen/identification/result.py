"""The result of an identification: estimates, how certain they are, and the residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen import display
from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.identification.drawing import plot_residuals
from kanegen.identification.identifiability import Identifiability
from kanegen.identification.residuals import Estimation, Motion
from kanegen.identification.unknowns import array
from kanegen.model.records import FrozenMapping
from kanegen.solve.gradients.directions import Kind
from kanegen.solve.solution import Solution
from kanegen.solve.values import number, shown_values


class IdentificationError(SolveError):
    """A fit whose data do not determine the unknowns; ``fit`` is its result, in which their variances are infinite."""

    def __init__(self, message: str, fit: Any = None) -> None:
        self.fit = fit
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return IdentificationError, (str(self), None)  # the result refers to compiled code


@dataclass(frozen=True, eq=False)
class FittedMotion:
    """A measured motion and the computed one.

    ``t`` (n_t,) in s; ``measured``, ``computed`` and ``residuals`` (computed less measured): arrays (n_t,) by the names
    of the measured variables, NaN where a value is missing. ``deviations``: standard deviations (n_t,) of the measured
    values. ``solutions``: the computed motion with its sensitivities, one solution or, with ``segments=``, one for each
    part.
    """

    t: Array
    measured: Mapping[str, Array]
    computed: Mapping[str, Array]
    residuals: Mapping[str, Array]
    deviations: Mapping[str, Array]
    solutions: tuple[Solution, ...]


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of :func:`kanegen.fit`.

    Attributes
    ----------
    names
        The unknowns, n: parameters, inputs, then start values, of several experiments with their numbers,
        ``"theta[0]"``.
    values
        The estimates (n,).
    covariance
        Their covariance matrix (n, n), from the linearized motion; infinite variances where the data do not determine
        an unknown.
    identifiability
        The combinations of unknowns by how well the data determine them.
    motions
        For each experiment the measured and the computed motion.
    solver
        The solver with the estimated parameters and, in ``initial``, the start of the first experiment.
    cost
        Half the sum of the (robust) weighted squared residuals.
    variance
        The variance of the weighted residuals: 1 if standard deviations were given, otherwise the estimate of it. NaN,
        and with it the covariance, if no more values were measured than there are unknowns.
    degrees_of_freedom
        Values that were measured, less the number of unknowns.
    success, message
        Whether the optimizer converged, and why it ended.
    evaluations
        Points at which motions were computed.
    at_bounds
        Unknowns at one of their bounds. Their covariance is that of the linearized motion without bounds.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    identifiability: Identifiability
    motions: tuple[FittedMotion, ...]
    solver: Any
    cost: float
    variance: float
    degrees_of_freedom: int
    success: bool
    message: str
    evaluations: int
    at_bounds: tuple[str, ...]
    _estimation: Estimation
    _absolute: bool
    _several: bool

    @property
    def parameters(self) -> Mapping[str, float]:
        """The estimated parameters by name."""
        return self._of(Kind.PARAMETER)

    @property
    def inputs(self) -> Mapping[str, float]:
        """The estimated constant inputs by name."""
        return self._of(Kind.INPUT)

    @property
    def start(self) -> Any:
        """The estimated start values by name; for a list of experiments a tuple with a mapping for each."""
        each = tuple(self._of(Kind.START, k) for k in range(len(self.motions)))
        return each if self._several else each[0]

    def _of(self, kind: Kind, experiment: int | None = None) -> Mapping[str, float]:
        pairs = zip(self._estimation.unknowns, self.values.tolist(), strict=True)
        return FrozenMapping({u.name: x for u, x in pairs if u.kind is kind and u.experiment == experiment})

    @property
    def residuals(self) -> Any:
        """Computed less measured values (n_t,) by name; for a list of experiments a tuple with a mapping for each."""
        each = tuple(motion.residuals for motion in self.motions)
        return each if self._several else each[0]

    @property
    def standard_errors(self) -> Mapping[str, float]:
        """The standard deviations of the estimates by name."""
        return FrozenMapping(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def correlation(self) -> Array:
        """The correlation matrix (n, n) of the estimates; NaN where the data do not determine an unknown."""
        errors = np.array(list(self.standard_errors.values()))
        with np.errstate(invalid="ignore"):
            return np.asarray(self.covariance / np.outer(errors, errors))

    def intervals(self, level: float = 0.95) -> Mapping[str, tuple[float, float]]:
        """Confidence intervals (low, high) of each unknown by name.

        They are those of the normal distribution, or of Student's if the variance was estimated from the residuals.
        Bounds are not taken into account.
        """
        from scipy.stats import norm, t

        level = number(level, "level")
        if not 0.0 < level < 1.0:
            raise SolveError(f"level is {level!r}; expected a number between 0 and 1, such as 0.95")
        chance = 0.5 + 0.5 * level
        factor = float(norm.ppf(chance) if self._absolute else t.ppf(chance, max(self.degrees_of_freedom, 1)))
        pairs = zip(self.values.tolist(), self.standard_errors.items(), strict=True)
        return FrozenMapping({name: (x - factor * error, x + factor * error) for x, (name, error) in pairs})

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the residuals of all measured variables over time (matplotlib); bands are two standard deviations.

        ``ax``: axes of matplotlib, one for all panels or one for each, or a figure; None: a new figure. Returns the
        axes.
        """
        return plot_residuals(self, ax)

    def __repr__(self) -> str:
        return f"<Fit of {shown_values(self.names, self.values)}: {self.message}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: estimates with errors and intervals, and how the fit ended."""
        units, intervals, before = self.solver.units, self.intervals(), array(self._estimation.unknowns, "value")
        rows = [
            (
                name,
                display.value_text(unknown.name, value, units),
                f"{error:.3g}",
                f"{low:.6g} to {high:.6g}",
                display.value_text(unknown.name, start, units),
            )
            for name, unknown, value, error, (low, high), start in zip(
                self.names,
                self._estimation.unknowns,
                self.values.tolist(),
                self.standard_errors.values(),
                intervals.values(),
                before.tolist(),
                strict=True,
            )
        ]
        headings = ("unknown", "estimate", "standard error", "95 % interval", "before")
        notes = [f"{self.message}; cost {self.cost:.6g}, {self.degrees_of_freedom} degrees of freedom"]
        if units:
            notes.append("Standard errors and intervals are in coherent SI units.")
        if not self.identifiability.complete:
            notes.append(f"The data do not determine {self.identifiability.text}.")
        title = f"Fit of {self.solver.description.name}"
        return display.page(display.Table.of(title, headings, rows, right=headings[1:3], notes=tuple(notes)))


def fitted_motions(
    estimation: Estimation, motions: Sequence[Motion], variance: float, parts: int
) -> tuple[FittedMotion, ...]:
    """The measured and the computed motions, of ``parts`` records each; ``variance``: that of weighted residuals."""
    fitted = []
    for first in range(0, len(motions), parts):
        records, own = estimation.records[first : first + parts], motions[first : first + parts]
        measured = np.concatenate([np.where(record.known, record.values, np.nan) for record in records])
        computed = np.concatenate([motion.computed for motion in own])
        deviations = np.sqrt(variance) * np.concatenate([record.weighting.deviations for record in records])
        labels = [column.label for column in records[0].columns]
        arrays = measured, computed, computed - measured, deviations
        named: list[Any] = [FrozenMapping(zip(labels, array.T, strict=True)) for array in arrays]
        times = np.concatenate([record.times for record in records])
        fitted.append(
            FittedMotion(times, named[0], named[1], named[2], named[3], tuple(motion.solution for motion in own))
        )
    return tuple(fitted)
