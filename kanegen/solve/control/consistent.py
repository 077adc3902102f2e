"""What control constraints ask of a solver: gains that let errors decay, controls that satisfy them at a start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.errors import SolveError
from kanegen.model.control.control_constraints import largest_exponent
from kanegen.program.functions.control.control_constraints import GAINS
from kanegen.solve.functions import Functions
from kanegen.solve.names import number, numbers

Array = NDArray[np.float64]

_ITERATIONS = 50
_SINGULAR = 1e-9
"""Singular values below this fraction of the largest count as zero, as in kg_generalized.h."""


def joined_names(functions: Functions) -> tuple[str, ...]:
    """The names of the controls (and rates) that are part of the state. SolveError for a model without."""
    d = functions.description
    if not d.joined:
        raise SolveError(
            f"the model {d.name!r} has no control constraints: give control=kg.ControlConstraints(...) to kg.Model"
        )
    return tuple(d.inputs[slot] for slot in d.joined)


def require_decay(functions: Functions) -> None:
    """Refuse gains of control constraints under which errors grow, with the parameters of a solver (`SolveError`)."""
    d = functions.description
    if GAINS not in d.functions or functions.problem(GAINS) is not None:
        return
    sizes = (len(d.coordinates), len(d.speeds), len(d.inputs))
    rows = functions.get(GAINS).value(0.0, *map(np.zeros, sizes))
    problems = []
    labels = iter([label for label, _, decays in d.control_levels if decays])
    for count, *gains in rows:
        theta = gains[: int(count)]
        label, *_ = (next(labels) for _ in theta)
        exponent = largest_exponent(theta)
        if not exponent < 0.0:
            told = ", ".join(f"{x:g}" for x in theta)
            problems.append(f"theta = ({told}) of {label} has the exponent {exponent:.3g} 1/s")
    if problems:
        raise SolveError(
            f"the control constraints of {d.name!r} are not stable with these parameters: {'; '.join(problems)}; "
            "expected coefficients whose characteristic roots have negative real parts, or their errors grow"
        )


def consistent_controls(functions: Functions, t: float, q: Any, u: Any, tau: Any, r: Array, tolerance: float) -> Array:
    """Controls nearest to ``tau`` that satisfy the control constraints; see :meth:`kanegen.Solver.consistent_controls`.

    ``r`` (n_r,): all inputs; the places of the controls are not read.
    """
    names = joined_names(functions)
    if not number(tolerance, "tolerance") > 0.0:
        raise SolveError(f"tolerance is {tolerance!r}; expected a positive number")
    z = np.zeros(len(names)) if tau is None else numbers(tau, "tau", names)
    if "control_level" not in functions.description.functions:
        return z
    function, slots = functions.get("control_level"), list(functions.description.joined)
    best, smallest = z, np.inf
    for _ in range(_ITERATIONS):
        inputs = np.array(r, dtype=np.float64)
        inputs[slots] = z
        rows = function.value(t, q, u, inputs)
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
    raise SolveError(_impossible(functions, t, q, u, r, best))


def _impossible(functions: Functions, t: float, q: Any, u: Any, r: Array, z: Array) -> str:
    inputs = np.array(r, dtype=np.float64)
    inputs[list(functions.description.joined)] = z
    values = functions.get("control_residuals").value(t, q, u, inputs)
    told = [
        f"{label}: residual {value:.6g}"
        for (label, held, _), value in zip(functions.description.control_levels, values, strict=True)
        if held
    ]
    return (
        f"no controls satisfy the control constraints at t = {t!r} s; what was reached leaves\n  - "
        + "\n  - ".join(told)
        + "\nthe controls do not enter them at this state, or they contradict each other: change the state or the "
        "constraints, or give a nearer guess tau"
    )


def start_problems(functions: Functions, t: float, q: Any, u: Any, z: Array, r: Array, tolerance: float) -> list[str]:
    """Control constraints that a start violates and whose error would stay: without theta."""
    levels = functions.description.control_levels
    if not levels:
        return []
    inputs = np.array(r, dtype=np.float64)
    inputs[list(functions.description.joined)] = z
    values = functions.get("control_residuals").value(t, q, u, inputs)
    limit = tolerance * max(1.0, float(np.abs(z).max(initial=0.0)), float(np.abs(np.asarray(u, dtype=float)).max()))
    return [
        f"{label}: residual {value:.6g}, allowed {limit:.3g}"
        for (label, _, decays), value in zip(levels, values, strict=True)
        if not decays and not abs(value) <= limit
    ]
