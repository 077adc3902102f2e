"""Residuals of measured motions and their exact Jacobian, from one run with sensitivities for each motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.identification.data import Record
from kanegen.identification.unknowns import Start, Unknown, array, with_inputs
from kanegen.solve.gradients.directions import Kind
from kanegen.solve.solution import Solution
from kanegen.solve.values import Variables

_MORE_STEPS: Final = 20
"""Trial values can make a motion stiff; one that needs so many times the steps of the first one is not computed."""

_FEW_STEPS: Final = 50


@dataclass(frozen=True, eq=False)
class Motion:
    """A computed motion: the ``solution``, the ``computed`` values (n_t, n), their ``changes`` (n_t, n, n_x)."""

    solution: Solution
    computed: Array
    changes: Array


@dataclass(frozen=True, eq=False)
class Estimation:
    """What is estimated from which motions.

    ``records`` and ``starts`` are those of the experiments, ``unknowns`` are n_x; ``options`` are those of `integrate`.
    """

    solver: Any
    records: tuple[Record, ...]
    starts: tuple[Start, ...]
    unknowns: tuple[Unknown, ...]
    options: Mapping[str, Any]

    def own(self, k: int) -> list[int]:
        """The places of the unknowns on which experiment ``k`` depends."""
        return [i for i, unknown in enumerate(self.unknowns) if unknown.experiment in (None, k)]

    def with_values(self, x: Array) -> Any:
        """The solver with these values of the unknown parameters."""
        values = self._values(Kind.PARAMETER, x)
        return self.solver.with_parameters(values) if values else self.solver

    def start_values(self, k: int, x: Array) -> dict[str, float]:
        """The given and estimated start values of an experiment by name."""
        return {**self.starts[k].values, **self._values(Kind.START, x, k)}

    def inputs(self, k: int, x: Array) -> Any:
        """The inputs of an experiment, with those that are estimated."""
        return with_inputs(self.starts[k].r, self._values(Kind.INPUT, x))

    def _values(self, kind: Kind, x: Array, experiment: int | None = None) -> dict[str, float]:
        pairs = zip(self.unknowns, x.tolist(), strict=True)
        return {u.name: value for u, value in pairs if u.kind is kind and u.experiment == experiment}

    def motion(self, k: int, x: Array, solver: Any = None) -> Motion:
        """The motion of experiment ``k`` with the unknowns ``x`` (n_x,). Raises `SolveError`."""
        record, given = self.records[k], self.start_values(k, x)
        own = self.own(k)
        solution = (self.with_values(x) if solver is None else solver).integrate(
            (record.t0, record.t1),
            r=self.inputs(k, x),
            **state_arguments(self.solver, given),
            t_eval=record.times,
            sensitivities=tuple(self.unknowns[i].name for i in own),
            **self.options,
        )
        _require_complete(solution, record)
        computed, changes = _measured(solution, record)
        all_changes = np.zeros((*computed.shape, len(self.unknowns)))
        all_changes[..., own] = changes
        return Motion(solution, computed, all_changes)

    def motions(self, x: Array) -> list[Motion]:
        """The motions of all experiments. Raises `SolveError`."""
        solver = self.with_values(x)
        return [self.motion(k, x, solver) for k in range(len(self.records))]

    def of_data(self, motions: Sequence[Motion]) -> tuple[Array, Array]:
        """The weighted residuals (m,) of the data, and their Jacobian (m, n_x)."""
        pairs = list(zip(self.records, motions, strict=True))
        residuals = [record.weighting.of(motion.computed - record.values) for record, motion in pairs]
        return np.concatenate(residuals), np.concatenate([r.weighting.of(motion.changes) for r, motion in pairs])

    def restraints(self, x: Array, motions: Sequence[Motion]) -> tuple[Array, Array]:
        """The residuals (m,) of what is required besides the data, the priors, and their Jacobian (m, n_x)."""
        places = [i for i, unknown in enumerate(self.unknowns) if unknown.prior is not None]
        priors = np.array([unknown.prior for unknown in self.unknowns if unknown.prior]).reshape(-1, 2)
        jacobian = np.zeros((len(places), len(self.unknowns)))
        jacobian[np.arange(len(places)), places] = 1.0 / priors[:, 1]
        return (x[places] - priors[:, 0]) / priors[:, 1], jacobian

    @property
    def n_data(self) -> int:
        """The number of measured values."""
        return sum(int(record.known.sum()) for record in self.records)

    @property
    def n_restraints(self) -> int:
        """The number of priors."""
        return sum(unknown.prior is not None for unknown in self.unknowns)


def state_arguments(solver: Any, values: Mapping[str, float]) -> dict[str, Any]:
    """The arguments q0, u0, s0 of `integrate` for start values by name."""
    groups = Variables.of(solver.description, "0")
    own = {each.argument: {name: values[name] for name in each.names if name in values} for each in groups}
    return {name: given for name, given in own.items() if given}


def _require_complete(solution: Solution, record: Record) -> None:
    """Raise `SolveError` for a motion that ends before the last sample."""
    if len(solution.t) < len(record.times):
        missed = float(record.times[len(solution.t)])
        raise SolveError(f"the motion ended before the sample at t = {missed!r} s: {solution.message}")


def _measured(solution: Solution, record: Record) -> tuple[Array, Array]:
    """The computed values (n_t, n) of the columns of a record, and their derivatives (n_t, n, n_z)."""
    sensitivities, outputs = solution.sensitivities, solution.solver.description.outputs
    if sensitivities.reason is not None:
        raise SolveError(sensitivities.reason)
    values, changes = [], []
    of_outputs: dict[str, Array] = {}
    for column in record.columns:
        at: tuple[Any, ...] = (slice(None), *column.place)
        values.append(solution[column.name][at])
        if column.name in outputs and column.name not in sensitivities.variables:
            if column.name not in of_outputs:
                shape = (len(solution.t), *outputs[column.name], len(sensitivities.names))
                of_outputs[column.name] = solution.sensitivities.of(column.name).reshape(shape)
            changes.append(of_outputs[column.name][at])
        else:
            changes.append(sensitivities.matrix[:, sensitivities.variables.index(column.name)])
    return np.stack(values, axis=1), np.stack(changes, axis=1)


_BLOCK: Final = 250
"""Rows of a block of a tall matrix that are made triangular together."""


class Converged(Exception):  # noqa: N818 - it is no error
    """The optimizer is at a minimum: ``x`` (n_x,), scaled, with its ``cost``."""

    def __init__(self, x: Array, cost: float) -> None:
        super().__init__("converged")
        self.x, self.cost = x, cost


@dataclass
class Evaluations:
    """The functions of `scipy.optimize.least_squares` in scaled unknowns; the last motions are kept.

    ``tolerance``: relative changes of the cost below which the optimizer ends. ``is_condensed``: whether n_x + 1
    residuals take the place of all (`condensed`), because only squares count.
    ``unit``: what the residuals that the optimizer sees are divided by, so that its gradient at the start is 1: its
    limit for gradients is then relative, whatever the units of the data.
    ``count``: points at which motions were computed. ``failures``: the last reason why a motion could not be computed,
    and the number of such points; the optimizer then takes a shorter step.
    """

    estimation: Estimation
    scales: Array
    tolerance: float
    is_condensed: bool
    unit: float = 1.0
    count: int = 0
    failed: int = 0
    failure: str = ""
    _at: Array | None = None
    _motions: Sequence[Motion] = ()
    _kept: tuple[Array, Array] = field(default_factory=lambda: (np.empty(0), np.empty((0, 0))))

    @classmethod
    def of(cls, estimation: Estimation, tolerance: float, is_condensed: bool) -> Evaluations:
        """Those of an estimation."""
        return cls(estimation, array(estimation.unknowns, "scale"), tolerance, is_condensed)

    def start(self) -> None:
        """Compute the motions before the fit, and limit the steps of later ones.

        Raises `SolveError` if a motion cannot be computed.
        """
        residuals, jacobian = self._compute(array(self.estimation.unknowns, "value") / self.scales)
        largest = float(np.abs(jacobian.T @ residuals).max(initial=0.0))
        self.unit = np.sqrt(largest) if 0.0 < largest < np.inf else 1.0
        self._kept = residuals / self.unit, jacobian / self.unit
        if self.estimation.options.get("max_steps") is None:
            steps = max(motion.solution.statistics.steps for motion in self._motions)
            options = {**self.estimation.options, "max_steps": _MORE_STEPS * max(steps, _FEW_STEPS)}
            self.estimation = replace(self.estimation, options=options)

    def residuals(self, z: Array) -> Array:
        """The residuals (m,), infinite where a motion cannot be computed."""
        try:
            return self._compute(z)[0].copy()
        except SolveError as error:
            self.failed, self.failure = self.failed + 1, str(error).partition("\n")[0]
            return np.full(len(self._kept[0]), np.inf)

    def jacobian(self, z: Array) -> Array:
        """The Jacobian (m, n_x), which the optimizer changes. Raises `Converged`."""
        residuals, jacobian = self._compute(z)
        squares, n = float(residuals @ residuals), jacobian.shape[1]
        if self.is_condensed and self._offset(residuals[:n], squares) <= self.tolerance:
            raise Converged(z.copy(), 0.5 * squares)
        return jacobian.copy()

    def _offset(self, left: Array, squares: float) -> float:
        """The square of the relative offset (Bates and Watts 1981): of the next step in standard deviations.

        ``left`` (n_x,): the residuals that a step can take away, of which the optimizer sees rounding errors at last.
        """
        freedom = self.estimation.n_data + self.estimation.n_restraints - len(left)
        known = freedom > 0 and squares > 0.0  # else the residuals have no standard deviation
        return float(left @ left) / len(left) * freedom / squares if known else np.inf

    def motions(self, x: Array) -> Sequence[Motion]:
        """The motions at unscaled values (n_x,)."""
        last = self._at is not None and np.array_equal(self._at * self.scales, x)
        return self._motions if last else self.estimation.motions(x)

    def _compute(self, z: Array) -> tuple[Array, Array]:
        if self._at is None or not np.array_equal(z, self._at):
            x = z * self.scales
            self.count += 1
            motions = self.estimation.motions(x)
            parts = self.estimation.of_data(motions), self.estimation.restraints(x, motions)
            residuals, jacobian = (np.concatenate(pair) for pair in zip(*parts, strict=True))
            kept = residuals / self.unit, jacobian * self.scales / self.unit
            self._kept, self._motions, self._at = condensed(*kept) if self.is_condensed else kept, motions, z.copy()
        return self._kept


def condensed(residuals: Array, jacobian: Array) -> tuple[Array, Array]:
    """At most n + 1 residuals with a Jacobian, which have the squares and products of those given, (m,) and (m, n).

    The triangular factor of both: singular values of a few rows take a fraction of the time of those of thousands. The
    last residual makes the sum of squares exact, because the optimizer compares sums that differ in their last digits.
    """
    factor, n = triangular(np.column_stack([jacobian, residuals])), jacobian.shape[1]
    result = factor[:, -1].copy()
    if len(result) > n:
        result[n] = np.sqrt(max(float(residuals @ residuals - result[:n] @ result[:n]), 0.0))
    return result, factor[:, :-1].copy()


def triangular(rows: Array) -> Array:
    """The triangular factor R, at most (n, n), of rows (m, n): first of blocks, which take a third of the time."""
    whole = len(rows) // _BLOCK * _BLOCK
    blocks: Any = np.linalg.qr(rows[:whole].reshape(-1, _BLOCK, rows.shape[1]), mode="r")
    factor: Any = np.linalg.qr(np.concatenate([blocks.reshape(-1, rows.shape[1]), rows[whole:]]), mode="r")
    return np.asarray(factor)
