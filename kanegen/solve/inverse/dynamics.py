"""Inverse dynamics: the controls, multipliers and reactions of a given motion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.program.catalogue import REACTION
from kanegen.solve.consistent import functions_of_constraints
from kanegen.solve.evaluation import Wrench
from kanegen.solve.feedback.closed_loop import other_inputs
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import RunInputs
from kanegen.solve.inverse.assembly import assembled
from kanegen.solve.inverse.path import Path, sampled_path
from kanegen.solve.inverse.terms import PathStates
from kanegen.solve.values import beyond, listed, positive, shown_values

FEASIBLE: Final = 1e-9
"""A residual below this fraction of the terms of its equation counts as rounding error."""

_RESULTS: Final = ("u", "udot", "controls", "multipliers", "residual")


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """A motion with the controls that drive it.

    Attributes
    ----------
    t, q, u, udot
        The path, (n_t,), (n_t, n_q), (n_t, n_u), (n_t, n_u).
    controls
        (n_t, n_tau), in the order of ``control_names``: the controls of least norm among all that drive the motion.
    multipliers
        (n_t, n_c) of ``M u' = P + J^T lambda``, in the order of ``description.constraints.rows``.
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
    freedom: NDArray[np.int_]

    def __repr__(self) -> str:
        largest = shown_values([f"|{name}|" for name in self.control_names], np.abs(self.controls).max(axis=0))
        driven = "feasible" if self.feasible.all() else f"infeasible at {int((~self.feasible).sum())} of these times"
        span = f"{self.t.size} times, t = {self.t[0]:g} .. {self.t[-1]:g} s"
        return f"<InverseDynamics: {span}; at most {largest}; {driven}>"


def inverse_dynamics(
    functions: CompiledFunctions,
    values: tuple[Mapping[str, float | None], Mapping[str, float]],
    path: Any,
    times: Any,
    r: Any,
    q0: Any,
    tolerance: Any,
) -> InverseDynamics:
    """See :meth:`kanegen.Solver.inverse_dynamics`, whose arguments these are; ``values``: parameters and the start."""
    d = functions.description
    if not d.path_controls:
        raise SolveError(
            f"inverse dynamics of the model {d.name!r} has no unknowns: it needs inputs that occur in the forces only, "
            "affinely, and the functions control_forces and kinematics, which are built by default"
        )
    reactions = [REACTION + name for name in d.reactions]
    needed = ("control_forces", "kinematics", d.mass, "P", *reactions)
    functions = functions.having(*needed, *_of_constraints(d))
    functions.require(needed)
    _require_no_states(functions, needed)
    names = d.input_names(d.path_controls)
    inputs = _without_laws(other_inputs(functions, names, r), d)
    motion = _motion_along(functions, values, path, times, inputs, q0)
    others = [*reactions, "kinematics", d.mass, "P", *_of_rows(d), *(["residuals"] if d.constraints.levels else [])]
    found = functions.module.Inverse(d.path_controls).along(functions.prepared, inputs.compiled, *motion, others)
    _require_evaluated(functions, motion, found, inputs)
    states = PathStates(functions, motion, found, inputs)
    if tolerance is not None:
        positive(tolerance, "path_tolerance", "a positive number, or None")
        _require_consistent(states, tolerance)
    return InverseDynamics(
        t=motion.times,
        q=motion.q,
        control_names=names,
        reactions={name: Wrench(*np.split(found[REACTION + name], 2, axis=1)) for name in d.reactions},
        feasible=states.are_balanced(FEASIBLE),
        freedom=len(names) - found["rank"].astype(int),
        **{name: found[name] for name in _RESULTS},
    )


def _of_constraints(d: Description) -> list[str]:
    """Names of the functions of the constraints that inverse dynamics evaluates."""
    return [*_of_rows(d), *(functions_of_constraints(d) if d.constraints.levels else [])]


def _of_rows(d: Description) -> list[str]:
    """Names of the functions of ``J u' = b``."""
    return ["J", "b"] if d.constraints.rows else []


def _without_laws(inputs: RunInputs, d: Description) -> RunInputs:
    """The inputs, which must not follow feedback laws. Raises `SolveError` that names those that do."""
    if inputs.laws is None:
        return inputs
    raise SolveError(
        f"inverse dynamics of the model {d.name!r} does not evaluate the feedback laws of "
        f"{', '.join(d.input_names(inputs.laws.slots))}: give their values along the path by r="
    )


def _motion_along(
    functions: CompiledFunctions,
    values: tuple[Mapping[str, float | None], Mapping[str, float]],
    path: Any,
    times: Any,
    inputs: RunInputs,
    q0: Any,
) -> Path:
    """The motion of all coordinates: as the path gives it, or assembled."""
    parameters, initial = values
    motion = sampled_path(path, times, functions.description, parameters)
    return motion if isinstance(motion, Path) else assembled(functions, motion, inputs, initial, q0)


def _require_no_states(functions: CompiledFunctions, needed: Iterable[str]) -> None:
    """Raise `SolveError` if forces depend on states, whose values along the path are unknown."""
    d, (_, read) = functions.description, functions.reads(needed)
    names = [name for k, name in enumerate(d.states) if k in read]
    if names:
        raise SolveError(
            f"inverse dynamics of the model {d.name!r} needs the states {', '.join(names)}, which the path does not "
            "determine: build a model in which they are inputs, and give their values by r="
        )


def _require_evaluated(
    functions: CompiledFunctions, motion: Path, values: Mapping[str, Array], inputs: RunInputs
) -> None:
    """Raise `SolveError` if the equations cannot be solved or are not finite somewhere along the path."""
    status = values["status"]
    finite = [np.isfinite(values[name]).all(axis=1) for name in _RESULTS]
    failed = np.flatnonzero((status < 0) | ~np.logical_and.reduce(finite))
    if not failed.size:
        return
    i = int(failed[0])
    t, q, u = float(motion.times[i]), motion.q[i], np.nan_to_num(values["u"][i])
    names = functions.description.coordinates
    place = ", ".join(f"{name}={x!r}" for name, x in zip(names, q.tolist(), strict=True))
    reason = "the kinematics or the forces are singular there"
    try:
        mass = functions.description.mass
        functions.require_finite(("kinematics", mass, "P", "J", "b"), Point(t, q, u, inputs.at(t)))
    except SolveError as error:
        reason = str(error)
    raise SolveError(
        f"the equations cannot be evaluated at {failed.size} of {status.size} times, first at t = {t!r} s ({place}): "
        f"{reason}; change the path so that it avoids this configuration"
    )


def _require_consistent(states: PathStates, tolerance: float) -> None:
    """Raise `SolveError` for a path that violates constraints at any level, or the kinematic equations."""
    d = states.functions.description
    problems: list[str] = []
    for names, rows, units in (
        ([*d.constraints.positions, *d.constraints.velocities], *states.of_levels()),
        ([f"the kinematics of {name}" for name in d.coordinates], *states.of_kinematics()),
        ([f"acceleration level of {label}" for label in d.constraints.rows], *states.of_accelerations()),
    ):
        worst, columns = np.abs(rows).argmax(axis=0), np.arange(len(names))
        at = [f"{name} at t = {t!r} s" for name, t in zip(names, states.path.times[worst].tolist(), strict=True)]
        problems += beyond(at, np.abs(rows[worst, columns]), tolerance * units[worst, columns])
    if problems:
        advice = (
            "correct the path (solver.make_consistent gives states on the constraints), allow more by path_tolerance=, "
            "or pass path_tolerance=None"
        )
        raise SolveError(listed(f"the path violates {len(problems)} constraint(s) of {d.name!r}", problems, advice))
