"""Inverse dynamics: the controls, multipliers and reactions of a motion that is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.errors import SolveError
from kanegen.solve.control.closed_loop import other_inputs
from kanegen.solve.functions import Functions
from kanegen.solve.inputs.inputs import RunInputs
from kanegen.solve.inputs.path import Path, sampled_path
from kanegen.solve.results import REACTION, Wrench

Array = NDArray[np.float64]

FEASIBLE: Final = 1e-9
"""What is left of the forces counts as rounding below this fraction of them; they come from a solve."""


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """A motion with the controls that drive it.

    Attributes
    ----------
    t, q, u, udot
        The path, (n_t,), (n_t, n_q), (n_t, n_u), (n_t, n_u).
    controls
        (n_t, n_tau), in the order of ``control_names``: of all that drive the motion those of least norm.
    multipliers
        (n_t, n_c) of ``Q u' = P + J^T lambda``, in the order of ``description.constraints.rows``.
    reactions
        Of each reaction of the model the force (n_t, 3) and the torque (n_t, 3).
    residual
        Generalized forces (n_t, n_u) that neither controls nor constraints supply: not zero where the controls cannot
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
    names = tuple(d.inputs[slot] for slot in d.path_controls)
    inputs = other_inputs(functions, names, r)
    motion = sampled_path(path, times, d, parameters)
    residuals = ["residuals"] if "residuals" in d.functions else []
    found = module.Inverse(d.path_controls).along(
        functions.prepared, inputs.compiled, *motion, (*reactions, *residuals)
    )
    _require_evaluated(functions, motion, found, inputs)
    if path_tolerance is not None:
        _require_consistent(functions, motion, found, path_tolerance)
    scale = np.abs(found["controls"]).max(axis=1, initial=0.0) + np.abs(found["multipliers"]).max(axis=1, initial=0.0)
    forces = np.abs(found["residual"]).max(axis=1, initial=0.0)
    return InverseDynamics(
        t=motion.times,
        q=motion.q,
        u=found["u"],
        udot=found["udot"],
        controls=found["controls"],
        control_names=names,
        multipliers=found["multipliers"],
        reactions={name.removeprefix(REACTION): Wrench(found[name][:, :3], found[name][:, 3:]) for name in reactions},
        residual=found["residual"],
        feasible=forces <= FEASIBLE * np.maximum(1.0, scale),
        freedom=len(names) - found["rank"].astype(int),
    )


def _require_evaluated(functions: Functions, motion: Path, found: Mapping[str, Array], inputs: RunInputs) -> None:
    """Refuse a path along which the equations cannot be solved, or something is not finite."""
    status = found["status"]
    finite = [np.isfinite(found[name]).all(axis=1) for name in ("u", "udot", "controls", "multipliers", "residual")]
    failed = np.flatnonzero((status < 0) | ~np.logical_and.reduce(finite))
    if failed.size:
        i = int(failed[0])
        t, q, u = float(motion.times[i]), motion.q[i], np.nan_to_num(found["u"][i])
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


def _require_consistent(functions: Functions, motion: Path, found: Mapping[str, Array], tolerance: float) -> None:
    """Refuse a path that violates the constraints, at any level, or kinematics that keep an invariant."""
    d = functions.description
    speed = max(1.0, float(np.abs(found["u"]).max(initial=0.0)))
    acceleration = max(speed, float(np.abs(found["udot"]).max(initial=0.0)))
    labels, n = d.constraints, len(d.constraints.positions)
    residuals = found.get("residuals", np.empty((motion.times.size, 0)))
    rates = [f"the kinematics of {name}" for name in d.coordinates]
    problems = [
        problem
        for labels, values, limit in (
            (labels.positions, residuals[:, :n], max(1.0, float(np.abs(motion.q).max(initial=0.0)))),
            (labels.velocities, residuals[:, n:], speed),
            (rates, found["slip"], speed),
            ([f"acceleration level of {label}" for label in labels.rows], found["violation"], acceleration),
        )
        for problem in _violations(labels, values, tolerance * limit, motion.times)
    ]
    if problems:
        raise SolveError(
            "\n  - ".join([f"the path violates {len(problems)} constraint(s) of the model {d.name!r}:", *problems])
            + "\ncorrect the path (solver.make_consistent gives states on the constraints), allow more by "
            "path_tolerance=, or pass path_tolerance=None"
        )


def _violations(labels: Any, values: Array, limit: float, times: Array) -> list[str]:
    told = []
    for label, column in zip(labels, np.abs(values).T, strict=True):
        worst = int(column.argmax())
        if not column[worst] <= limit:
            told.append(f"{label}: residual {column[worst]:.4g} at t = {float(times[worst])!r} s, allowed {limit:.3g}")
    return told
