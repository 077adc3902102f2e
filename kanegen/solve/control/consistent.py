"""Control constraints: stable gains, and controls that satisfy the constraints at a start."""

from __future__ import annotations

from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import ControlConstraintLabels, ControlLevel
from kanegen.errors import SolveError
from kanegen.model.control.control_constraints import largest_exponent
from kanegen.program.functions.controls import GAINS
from kanegen.solve.functions import Functions
from kanegen.solve.names import listed, numbers, positive

_ITERATIONS = 50
_SINGULAR = 1e-9
"""Singular values below this fraction of the largest count as zero, as in kg_generalized.h."""


def control_constraints(functions: Functions) -> ControlConstraintLabels:
    """The control constraints of the model. Raises `SolveError` for a model without."""
    d = functions.description
    if d.control_constraints is None:
        raise SolveError(
            f"the model {d.name!r} has no control constraints: give control=kg.ControlConstraints(...) to kg.Model"
        )
    return d.control_constraints


def with_states(labels: ControlConstraintLabels, r: Array, z: Array) -> Array:
    """The inputs ``r`` (n_r,) with the controls ``z`` that are part of the state in their places."""
    inputs = np.array(r, dtype=np.float64)
    inputs[list(labels.states)] = z
    return inputs


def require_decay(functions: Functions) -> None:
    """Raise `SolveError` when the parameters of a solver give gains of control constraints under which errors grow."""
    d = functions.description
    if GAINS not in d.functions or functions.problem(GAINS) is not None:
        return
    sizes = (len(d.coordinates), len(d.speeds), len(d.inputs))
    rows = functions.get(GAINS).value(0.0, *map(np.zeros, sizes))
    problems = []
    levels = d.control_constraints.levels if d.control_constraints else ()
    labels = iter([level.label for level in levels if level.decays])
    for count, *gains in rows:
        theta = gains[: int(count)]
        label, *_ = (next(labels) for _ in theta)
        exponent = largest_exponent(theta)
        if not exponent < 0.0:
            values = ", ".join(f"{x:g}" for x in theta)
            problems.append(f"theta = ({values}) of {label} has the exponent {exponent:.3g} 1/s")
    if problems:
        raise SolveError(
            f"the control constraints of {d.name!r} are not stable with these parameters: {'; '.join(problems)}; "
            "expected coefficients whose characteristic roots have negative real parts, or their errors grow"
        )


def consistent_controls(functions: Functions, t: float, q: Any, u: Any, tau: Any, r: Array, tolerance: float) -> Array:
    """Controls nearest to ``tau`` that satisfy the control constraints; see :meth:`kanegen.Solver.consistent_controls`.

    ``r`` (n_r,): all inputs; the entries of the controls are not read.
    """
    labels = control_constraints(functions)
    names = functions.description.input_names(labels.states)
    positive(tolerance, "tolerance")
    z = np.zeros(len(names)) if tau is None else numbers(tau, "tau", names)
    if "control_level" not in functions.description.functions:
        return z
    function = functions.get("control_level")
    best, smallest = z, np.inf
    for _ in range(_ITERATIONS):
        rows = function.value(t, q, u, with_states(labels, r, z))
        matrix, residual = rows[:, :-1], rows[:, -1]
        scale = np.maximum(np.abs(matrix).max(axis=1, initial=0.0) * max(1.0, np.abs(z).max()), np.finfo(float).tiny)
        size = float(np.abs(residual / scale).max())
        if size >= smallest and smallest <= tolerance:
            return best
        best, smallest = (z, size) if size < smallest else (best, smallest)
        if size == 0.0:
            return z
        z = z - np.linalg.lstsq(matrix, residual, rcond=_SINGULAR)[0]
        if not np.isfinite(z).all():
            break
    if smallest <= tolerance:
        return best
    values = functions.get("control_residuals").value(t, q, u, with_states(labels, r, best))
    raise SolveError(_impossible(labels.levels, values, t))


def _impossible(levels: tuple[ControlLevel, ...], values: Array, t: float) -> str:
    residuals = [
        f"{level.label}: residual {value:.6g}" for level, value in zip(levels, values, strict=True) if level.held
    ]
    return listed(
        f"no controls satisfy the control constraints at t = {t!r} s; the residuals of the best ones are",
        residuals,
        "the controls do not enter them at this state, or they contradict each other: change the state or the "
        "constraints, or give a nearer guess tau",
    )


def start_problems(functions: Functions, t: float, q: Any, u: Any, z: Array, r: Array, tolerance: float) -> list[str]:
    """The control constraints that a start violates and whose errors would not decay, because they have no theta."""
    labels = control_constraints(functions)
    if not labels.levels:
        return []
    values = functions.get("control_residuals").value(t, q, u, with_states(labels, r, z))
    limit = tolerance * max(1.0, float(np.abs(z).max(initial=0.0)), float(np.abs(np.asarray(u, dtype=float)).max()))
    return [
        f"{level.label}: residual {value:.6g}, allowed {limit:.3g}"
        for level, value in zip(labels.levels, values, strict=True)
        if not level.decays and not abs(value) <= limit
    ]
