"""Design of experiments: what a planned motion would say about unknowns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.errors import SolveError
from kanegen.identification.data import Experiment, planned_record
from kanegen.identification.identifiability import Identifiability, covariance_of, identifiability
from kanegen.identification.residuals import Estimation
from kanegen.identification.unknowns import array, read_starts, read_unknowns
from kanegen.model.records import FrozenMapping
from kanegen.solve import Solver
from kanegen.solve.run.options import span_of
from kanegen.solve.values import initial_time


@dataclass(frozen=True, eq=False)
class Information:
    """What a planned motion would say about unknowns.

    Attributes
    ----------
    names
        The unknowns, n: parameters, inputs, start values.
    matrix
        The Fisher information (n, n): ``J^T J`` with the Jacobian of the measured values divided by their standard
        deviations. Those of independent experiments add up.
    covariance
        Its inverse (n, n), the least covariance of estimates without bias (Cramér and Rao); infinite variances where
        the measurements do not determine an unknown.
    identifiability
        The combinations of unknowns by how well they would be determined.
    """

    names: tuple[str, ...]
    matrix: Array
    covariance: Array
    identifiability: Identifiability

    @property
    def standard_errors(self) -> Mapping[str, float]:
        """The least standard deviations of estimates by name."""
        return FrozenMapping(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def log_determinant(self) -> float:
        """The logarithm of the determinant of the matrix, which D-optimal designs maximize; -inf if it is singular."""
        if not self.identifiability.complete:
            return -np.inf
        return float(2.0 * np.log(self.identifiability.singular_values / self.identifiability.scales).sum())

    def __repr__(self) -> str:
        errors = ", ".join(f"{name} {error:.3g}" for name, error in self.standard_errors.items())
        return f"<Information; least standard errors: {errors}>"


def fisher_information(
    solver: Solver,
    t_span: Any,
    q0: Any = None,
    u0: Any = None,
    r: Any = None,
    *,
    s0: Any = None,
    measured: Any,
    sigma: Any,
    t_eval: Any,
    parameters: Any = None,
    start: Any = None,
    inputs: Any = None,
    **options: Any,
) -> Information:
    """Compute what measurements of a planned motion would say about unknowns, with the values that the solver has.

    Parameters
    ----------
    solver, t_span, q0, u0, r, s0
        As for :meth:`kanegen.Solver.integrate`.
    measured
        Names or symbols of the coordinates, speeds, states and outputs that are measured, ``"tip[0]"`` for one
        component of an output.
    sigma
        Standard deviations of the measurements: a number, or a mapping from names to numbers or arrays (n_t,).
    t_eval
        The times of the samples, (n_t,), s.
    parameters, start, inputs
        The unknowns, as for :func:`kanegen.fit`.
    options
        Further arguments of :meth:`kanegen.Solver.integrate`.

    Raises
    ------
    SolveError
        For wrong arguments, and for motions that cannot be integrated or have no derivatives.
    """
    if not isinstance(solver, Solver):
        raise SolveError("solver must be a kanegen.Solver, such as kanegen.build returns")
    t0, t1 = span_of(t_span, initial_time(solver.description, solver.initial))
    record = planned_record(solver.description, (t0, t1), real_array(t_eval, "t_eval"), measured, sigma)
    starts = read_starts(solver, [Experiment(None, q0, u0, r, s0)])
    unknowns = read_unknowns(solver, starts, False, parameters, start, inputs, None)
    estimation = Estimation(solver, (record,), starts, unknowns, options)
    x = array(unknowns, "value")
    jacobian = estimation.of_data(estimation.motions(x))[1]
    names = [unknown.label for unknown in unknowns]
    known = identifiability(names, jacobian, array(unknowns, "scale"))
    return Information(tuple(names), jacobian.T @ jacobian, covariance_of(known, jacobian), known)
