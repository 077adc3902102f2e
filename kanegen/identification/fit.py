"""Fitting a model to measured motions by least squares with exact derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief, warn_user
from kanegen.identification.data import Experiment, experiments_of, read_record
from kanegen.identification.identifiability import Identifiability, covariance_of, identifiability
from kanegen.identification.losses import Loss, of_data_only, read_loss
from kanegen.identification.residuals import Converged, Estimation, Evaluations, Motion, triangular
from kanegen.identification.result import Fit, IdentificationError, fitted_motions
from kanegen.identification.segments import in_parts
from kanegen.identification.unknowns import array, read_starts, read_unknowns
from kanegen.solve import Solver
from kanegen.solve.values import TIME, initial_time, positive, positive_integer

_ENDS: Final = {
    0: "the largest number of evaluations was reached",
    1: "the gradient of the cost is zero",
    2: "the cost does not change any more",
    3: "the unknowns do not change any more",
    4: "neither the cost nor the unknowns change any more",
}
"""Why `scipy.optimize.least_squares` ends, by its status."""

_NO_CHANGE: Final = 2

_VANISHING: Final = 1e-6
"""Estimates below this fraction of their size before the fit count as zero."""

_QUICK_TOLERANCE: Final = 1e-8
_QUICK_EVALUATIONS: Final = 100
"""Fits before the last one, in parts whose ends may have gaps."""

_OWN_OPTIONS: Final = ("t_eval", "sensitivities", "dense_output")
"""Options of `integrate` that a fit sets."""


@dataclass(frozen=True)
class _Optimizer:
    """How the cost is minimized."""

    loss: Loss
    robust: bool
    loss_scale: float
    tolerance: float
    max_evaluations: int | None

    @classmethod
    def read(cls, loss: Any, loss_scale: Any, tolerance: Any, max_evaluations: Any) -> _Optimizer:
        """From the arguments of :func:`fit`. Raises `SolveError`."""
        return cls(
            read_loss(loss),
            loss != "linear",
            positive(loss_scale, "loss_scale"),
            positive(tolerance, "tolerance"),
            None if max_evaluations is None else positive_integer(max_evaluations, "max_evaluations"),
        )

    @property
    def quick(self) -> _Optimizer:
        """For fits whose result is where another one begins."""
        tolerance = max(_QUICK_TOLERANCE, self.tolerance)
        return replace(self, tolerance=tolerance, max_evaluations=_QUICK_EVALUATIONS)


def fit(
    solver: Solver,
    data: Any,
    *,
    parameters: Any = None,
    start: Any = None,
    inputs: Any = None,
    prior: Mapping[Any, tuple[float, float]] | None = None,
    measured: Any = None,
    sigma: Any = None,
    weights: Any = None,
    covariance: Any = None,
    t_span: Any = None,
    q0: Any = None,
    u0: Any = None,
    r: Any = None,
    s0: Any = None,
    segments: int = 1,
    loss: Any = "linear",
    loss_scale: float = 1.0,
    undetermined: str = "error",
    tolerance: float = 1e-10,
    max_evaluations: int | None = None,
    **options: Any,
) -> Fit:
    """Estimate parameters, start values and constant inputs of a model from measured motions.

    The sum of the squared, weighted differences of computed and measured values is minimized by
    `scipy.optimize.least_squares`, a trust-region method that keeps bounds, with the exact Jacobian: each evaluation is
    one integration with ``sensitivities=`` of each motion. See docs/identification.md.

    Parameters
    ----------
    solver
        The compiled model. The fit starts from its parameters and its start.
    data
        One measured motion, or a list of several: what :class:`kanegen.Experiment` takes as ``data``, or experiments
        with starts, inputs and weights of their own.
    parameters, start, inputs
        What is estimated: names or symbols of parameters, of coordinates, speeds and states for their values at the
        start, and of inputs that are constant. A sequence, or a mapping to bounds, ``{"m": (0.1, 10.0), "c": (0.0,
        None), "k": None}``. Each experiment has its own start values; parameters and inputs are those of all.
    prior
        What is known before: a mapping from estimated names to (mean, standard deviation), as if it were measured.
        Needs ``sigma`` or ``covariance``.
    measured
        Names of the variables in the data that are used; None: all.
    sigma, weights, covariance, t_span, q0, u0, r, s0
        As in :class:`kanegen.Experiment`, for all experiments that do not have their own. Without ``sigma``,
        ``weights`` and ``covariance`` all values count equally, in coherent SI units.
    segments
        Multiple shooting for long and chaotic records: the motion is first fitted in so many parts with starts of
        their own, which are drawn together, and then as a whole. For models without constraints.
    loss, loss_scale
        ``"linear"``, ``"soft_l1"``, ``"huber"``, ``"cauchy"``, ``"arctan"`` or a function, as for
        `scipy.optimize.least_squares`, of the weighted residuals divided by ``loss_scale``: the others count outliers
        less. Priors always count by their squares.
    undetermined
        What happens if the data do not determine all unknowns: ``"error"``, or ``"warn"``, which returns the fit with
        infinite variances.
    tolerance
        Relative changes of the cost and the unknowns, and gradients, below which the fit ends.
    max_evaluations
        Largest number of evaluations; None: 100 for each unknown.
    options
        Further arguments of :meth:`kanegen.Solver.integrate`, such as ``method`` and ``rtol``.

    Returns
    -------
    Fit
        Estimates with their covariance, the residuals, and a solver with the estimates. ``success`` is False, with a
        :class:`kanegen.ModelWarning`, if the optimizer did not converge.

    Raises
    ------
    SolveError
        For wrong arguments and data (unknown names, times that do not increase, wrong lengths, samples outside the
        span, bounds that do not contain the value before the fit), for motions that cannot be integrated before the
        fit, and for models whose motions have no derivatives.
    IdentificationError
        A `SolveError` if the data do not determine all unknowns; it names the combination, and ``fit`` is the result.
    """
    _check(solver, undetermined, options)
    shared = Experiment(None, q0, u0, r, s0, t_span, sigma, weights, covariance)
    experiments, several = experiments_of(data, shared)
    count = positive_integer(segments, "segments")
    optimizer = _Optimizer.read(loss, loss_scale, tolerance, max_evaluations)
    estimation = _estimation(solver, experiments, several, (parameters, start, inputs, prior), measured, options)
    parts = in_parts(estimation, count, lambda other: _minimum(other, optimizer.quick)[0])
    result = _fitted(parts, estimation, optimizer, several)
    _judge(result, undetermined)
    return result


def _check(solver: Any, undetermined: str, options: Mapping[str, Any]) -> None:
    if not isinstance(solver, Solver):
        raise SolveError(f"solver is {brief(solver)}; expected a kanegen.Solver, such as kanegen.build returns")
    if undetermined not in ("error", "warn"):
        raise SolveError(f"undetermined is {brief(undetermined)}; expected 'error' or 'warn'")
    if own := [name for name in _OWN_OPTIONS if name in options]:
        raise SolveError(f"fit sets {', '.join(own)} itself: leave it out")


def _estimation(
    solver: Solver,
    experiments: tuple[Experiment, ...],
    several: bool,
    estimated: tuple[Any, Any, Any, Any],
    measured: Any,
    options: Mapping[str, Any],
) -> Estimation:
    d, known = solver.description, initial_time(solver.description, solver.initial)
    names = [f"experiment {k}" if several else "the data" for k in range(len(experiments))]
    pairs = list(zip(experiments, names, strict=True))
    records = tuple(read_record(d, each, known, measured, what) for each, what in pairs)
    starts = read_starts(solver, experiments)
    estimation = Estimation(solver, records, starts, read_unknowns(solver, starts, several, *estimated), options)
    absolute = {record.weighting.absolute for record in records}
    if len(absolute) > 1:
        raise SolveError(
            "some experiments have sigma or covariance, others do not: give it for all of them, or for none"
        )
    if estimation.n_restraints and not all(absolute):
        raise SolveError("prior needs sigma or covariance, to which the certainty of the data is compared")
    if estimation.n_data + estimation.n_restraints < len(estimation.unknowns):
        raise SolveError(
            f"{estimation.n_data} measured values cannot determine {len(estimation.unknowns)} unknowns: "
            f"{', '.join(unknown.label for unknown in estimation.unknowns)}"
        )
    return estimation


def _minimum(estimation: Estimation, how: _Optimizer) -> tuple[Array, Any, Evaluations]:
    """The values (n_x,) of least cost, the result of SciPy, and the functions that were evaluated."""
    from scipy.optimize import OptimizeResult, least_squares

    functions, unknowns = Evaluations.of(estimation, how.tolerance, not how.robust), estimation.unknowns
    functions.start()
    scales, bounds = functions.scales, [array(unknowns, name) for name in ("low", "high")]
    low, high = (bound / scales for bound in bounds)
    try:
        result = least_squares(
            functions.residuals,
            array(unknowns, "value") / scales,
            functions.jacobian,
            bounds=[low, high],
            x_scale="jac",
            loss=of_data_only(how.loss, estimation.n_data) if how.robust else "linear",
            f_scale=how.loss_scale / functions.unit,
            ftol=how.tolerance,
            xtol=how.tolerance,
            gtol=how.tolerance,
            max_nfev=how.max_evaluations,
        )
    except Converged as end:
        active = np.isclose(end.x, low, how.tolerance) | np.isclose(end.x, high, how.tolerance)
        result = OptimizeResult(x=end.x, cost=end.cost, status=_NO_CHANGE, active_mask=active.astype(int))
    return np.clip(result.x * scales, *bounds), result, functions


def _fitted(parts: Estimation, whole: Estimation, how: _Optimizer, several: bool) -> Fit:
    """The result of a fit; ``parts`` of the motions of ``whole`` have further unknowns after those of the whole."""
    x, result, functions = _minimum(parts, how)
    motions, n = functions.motions(x), len(whole.unknowns)
    residuals, jacobian = parts.of_data(motions)
    rows = np.concatenate([jacobian, parts.restraints(x, motions)[1]])
    factor = triangular(rows)
    names, scales = [each.label for each in parts.unknowns], _sizes(x, functions.scales)
    freedom, absolute = residuals.size - n, whole.records[0].weighting.absolute
    variance = 1.0 if absolute else _quotient(float(residuals @ residuals), freedom)
    matrix = _covariance(identifiability(names, factor, scales), rows if how.robust else factor, residuals, how) * (
        1.0 if how.robust else variance
    )
    at_bounds = tuple(name for name, active in zip(names, result.active_mask.tolist(), strict=True) if active)
    return Fit(
        names=tuple(names[:n]),
        values=x[:n],
        covariance=matrix[:n, :n],
        identifiability=identifiability(names[:n], _condensed(factor, n), scales[:n]),
        motions=fitted_motions(parts, motions, variance, len(parts.records) // len(whole.records)),
        solver=_solver_with(parts, x, motions[0]),
        cost=float(result.cost) * functions.unit**2,
        variance=variance,
        degrees_of_freedom=freedom,
        success=result.status > 0,
        message=_message(result.status, functions, at_bounds),
        evaluations=functions.count,
        at_bounds=at_bounds,
        _estimation=whole,
        _absolute=absolute,
        _several=several,
    )


def _quotient(number: float, freedom: int) -> float:
    """A number divided by the degrees of freedom; NaN, unknown, without any."""
    return number / freedom if freedom > 0 else np.nan


def _sizes(x: Array, usual: Array) -> Array:
    """The sizes of estimates, to which their changes are related; at zero, where a bound can be, the usual ones."""
    return np.where(np.abs(x) > _VANISHING * usual, np.abs(x), usual)


def _condensed(rows: Array, n: int) -> Array:
    """A Jacobian with respect to the first ``n`` unknowns (m, n), when the others follow from them by least squares."""
    others = rows.shape[1] - n
    if not others:
        return rows
    factor: Any = np.linalg.qr(np.hstack([rows[:, n:], rows[:, :n]]), mode="r")
    return np.asarray(factor[others:, others:])


def _covariance(known: Identifiability, jacobian: Array, residuals: Array, how: _Optimizer) -> Array:
    """The covariance matrix of the estimates for weighted residuals of variance 1, or of a robust fit.

    That of a robust fit is ``H^-1 B H^-1`` with the Hessian H of the cost and the sum B of the squares of the
    gradients of its terms (Huber 1967), which needs no variance of the data.
    """
    if not how.robust:
        return covariance_of(known, jacobian)
    n_data = residuals.size
    losses = how.loss((residuals / how.loss_scale) ** 2)
    slopes, curvatures = np.ones(len(jacobian)), np.ones(len(jacobian))
    slopes[:n_data] = losses[1] * residuals
    curvatures[:n_data] = losses[1] + 2.0 * losses[2] * (residuals / how.loss_scale) ** 2
    # The mean in place of each curvature, as for errors that do not depend on where they were made (Huber 1981, 7.6).
    curvatures[:n_data] = max(float(curvatures[:n_data].mean()), np.finfo(float).eps)
    gradients = jacobian * slopes[:, None]
    matrix = covariance_of(known, jacobian * np.sqrt(curvatures)[:, None], gradients.T @ gradients)
    return matrix * _quotient(n_data, n_data - len(matrix))


def _solver_with(estimation: Estimation, x: Array, first: Motion) -> Any:
    """The solver with the estimates, and with the consistent start of the first experiment."""
    d, t0 = estimation.solver.description, estimation.records[0].t0
    state = np.concatenate([np.asarray(part) for part in first.solution(t0)])
    start = dict(zip(d.components, state.tolist(), strict=True)) | ({} if TIME in d.components else {TIME: t0})
    exact = {name: v for name, v in estimation.start_values(0, x).items() if name in d.components}
    return estimation.with_values(x).with_initial({**start, **exact})


def _message(status: int, functions: Evaluations, at_bounds: tuple[str, ...]) -> str:
    parts = [_ENDS[status]]
    if at_bounds:
        parts.append(f"at a bound: {', '.join(at_bounds)}")
    if functions.failed:
        times = f"{functions.failed} point{'s' if functions.failed > 1 else ''}"
        parts.append(f"no motion could be computed at {times}, at last because {functions.failure}")
    return "; ".join(parts)


def _judge(result: Fit, undetermined: str) -> None:
    """Raise or warn for a result that must not be used without notice."""
    if not result.identifiability.complete:
        message = (
            f"the data do not determine {result.identifiability.text}: the motions do not change, to first order, when "
            "these unknowns change in these proportions; fix one of them, or add a prior or other measurements"
        )
        if undetermined == "error":
            raise IdentificationError(message, result)
        warn_user(message)
    if not result.success:
        warn_user(f"the fit did not converge: {result.message}")
