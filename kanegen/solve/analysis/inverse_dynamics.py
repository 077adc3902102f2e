"""Inverse dynamics: the controls, multipliers and reactions of a motion that is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve.control.closed_loop import other_inputs
from kanegen.solve.functions import Functions
from kanegen.solve.inputs.inputs import RunInputs
from kanegen.solve.inputs.path import Path, sampled_path
from kanegen.solve.names import listed
from kanegen.solve.results import REACTION, Wrench

FEASIBLE: Final = 1e-9
"""A residual below this fraction of the forces counts as rounding error."""


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """A motion with the controls that drive it.

    Attributes
    ----------
    t, q, u, udot
        The path, (n_t,), (n_t, n_q), (n_t, n_u), (n_t, n_u).
    controls
        (n_t, n_tau), in the order of ``control_names``: those of least norm among all that drive the motion.
    multipliers
        (n_t, n_c) of ``Q u' = P + J^T lambda``, in the order of ``description.constraints.rows``.
    reactions
        Force (n_t, 3) and torque (n_t, 3) of each reaction of the model.
    residual
        Generalized forces (n_t, n_u) that neither controls nor constraints supply; nonzero where the controls cannot
        drive the motion.
    feasible
        Whether the controls drive the motion, (n_t,).
    freedom
        Dimension of the family of controls that drive the motion, (n_t,); 0: unique.
    """

    t: Array
    q: Array
    u: Array
    udot: Array
    controls: Array
    control_names: tuple[str, ...]
    multipliers: Array
    reactions: Mapping[str, Wrench]
    residual: Array
    feasible: NDArray[np.bool_]
    freedom: NDArray[np.int_] = field(repr=False)


def inverse_dynamics(
    functions: Functions,
    parameters: Mapping[str, float | None],
    path: Any,
    times: Any,
    r: Any,
    path_tolerance: float | None,
) -> InverseDynamics:
    """See :meth:`kanegen.Solver.inverse_dynamics`, whose arguments these are."""
    d, module = functions.description, functions.module
    if not d.path_controls:
        raise SolveError(
            f"inverse dynamics of the model {d.name!r} has nothing to solve for: it needs inputs that act through the "
            "forces only, affinely, and the functions control_forces and kinematics, which are built by default"
        )
    reactions = [name for name in d.functions if name.startswith(REACTION)]
    functions.require(("control_forces", "kinematics", "Q", "P", *reactions))
    names = d.input_names(d.path_controls)
    inputs = other_inputs(functions, names, r)
    motion = sampled_path(path, times, d, parameters)
    residuals = ["residuals"] if "residuals" in d.functions else []
    values = module.Inverse(d.path_controls).along(
        functions.prepared, inputs.compiled, *motion, (*reactions, *residuals)
    )
    _require_evaluated(functions, motion, values, inputs)
    if path_tolerance is not None:
        _require_consistent(functions, motion, values, path_tolerance)
    scale = np.abs(values["controls"]).max(axis=1, initial=0.0) + np.abs(values["multipliers"]).max(axis=1, initial=0.0)
    forces = np.abs(values["residual"]).max(axis=1, initial=0.0)
    return InverseDynamics(
        t=motion.times,
        q=motion.q,
        control_names=names,
        reactions={name.removeprefix(REACTION): Wrench(values[name][:, :3], values[name][:, 3:]) for name in reactions},
        feasible=forces <= FEASIBLE * np.maximum(1.0, scale),
        freedom=len(names) - values["rank"].astype(int),
        **{name: values[name] for name in ("u", "udot", "controls", "multipliers", "residual")},
    )


def _require_evaluated(functions: Functions, motion: Path, values: Mapping[str, Array], inputs: RunInputs) -> None:
    """Raise `SolveError` for a path along which the equations cannot be solved or give values that are not finite."""
    status = values["status"]
    finite = [np.isfinite(values[name]).all(axis=1) for name in ("u", "udot", "controls", "multipliers", "residual")]
    failed = np.flatnonzero((status < 0) | ~np.logical_and.reduce(finite))
    if failed.size:
        i = int(failed[0])
        t, q, u = float(motion.times[i]), motion.q[i], np.nan_to_num(values["u"][i])
        place = ", ".join(
            f"{name}={x!r}" for name, x in zip(functions.description.coordinates, q.tolist(), strict=True)
        )
        reason = "the kinematics or the forces are singular there"
        try:
            functions.require_finite(("kinematics", "Q", "P", "J", "b"), t, q, u, inputs.at(t))
        except SolveError as error:
            reason = str(error)
        raise SolveError(
            f"the equations cannot be evaluated at {failed.size} of {status.size} times, first at "
            f"t = {t!r} s ({place}): {reason}; lead the path around it"
        )


def _require_consistent(functions: Functions, motion: Path, values: Mapping[str, Array], tolerance: float) -> None:
    """Raise `SolveError` for a path that violates the constraints at any level, or invariants of the kinematics."""
    d = functions.description
    speed = max(1.0, float(np.abs(values["u"]).max(initial=0.0)))
    acceleration = max(speed, float(np.abs(values["udot"]).max(initial=0.0)))
    constraints, n = d.constraints, len(d.constraints.positions)
    residuals = values.get("residuals", np.empty((motion.times.size, 0)))
    rates = [f"the kinematics of {name}" for name in d.coordinates]
    problems = [
        problem
        for labels, residual, limit in (
            (constraints.positions, residuals[:, :n], max(1.0, float(np.abs(motion.q).max(initial=0.0)))),
            (constraints.velocities, residuals[:, n:], speed),
            (rates, values["slip"], speed),
            ([f"acceleration level of {label}" for label in constraints.rows], values["violation"], acceleration),
        )
        for problem in _violations(labels, residual, tolerance * limit, motion.times)
    ]
    if problems:
        advice = (
            "correct the path (solver.make_consistent gives states on the constraints), allow more by path_tolerance=, "
            "or pass path_tolerance=None"
        )
        raise SolveError(listed(f"the path violates {len(problems)} constraint(s) of {d.name!r}", problems, advice))


def _violations(labels: Any, values: Array, limit: float, times: Array) -> list[str]:
    violations = []
    for label, column in zip(labels, np.abs(values).T, strict=True):
        worst = int(column.argmax())
        if not column[worst] <= limit:
            violations.append(
                f"{label}: residual {column[worst]:.4g} at t = {float(times[worst])!r} s, allowed {limit:.3g}"
            )
    return violations
