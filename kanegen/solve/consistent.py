"""Correction of states that violate the constraints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.model import Baumgarte, Projection
from kanegen.solve.functions import Functions
from kanegen.solve.names import key_name, listed, positive, unknown
from kanegen.solve.run.momentum import is_momentum_form

SATISFIED = 0


@dataclass(frozen=True, eq=False)
class Start:
    """A state to be corrected, with its inputs and the functions of the constraints."""

    functions: Functions
    t: float
    q: Any
    u: Any
    r: Array
    tolerance: float

    def corrected(self, fixed: Iterable[int]) -> tuple[int, Array, Array]:
        """Status and state when the components ``fixed`` of (q, u) stay."""
        module, prepared = self.functions.module, self.functions.prepared
        status, q, u, _ = module.make_consistent(
            prepared, self.t, self.q, self.u, self.r, sorted(fixed), self.tolerance
        )
        return status, q, u


def make_consistent(
    functions: Functions, t: float, q: Any, u: Any, r: Any, fixed: str | Iterable[Any], tolerance: float
) -> tuple[Array, Array]:
    """Correct a state; see :meth:`kanegen.Solver.make_consistent`, whose arguments these are."""
    description = functions.description
    stays = _fixed(fixed, (*description.coordinates, *description.speeds))
    positive(tolerance, "tolerance")
    if not (description.constraints.positions or description.constraints.velocities):
        state: tuple[Array, Array] = functions.module.checked_state(t, q, u, r)
        return state
    needed = _require(functions)
    residuals = functions.get("residuals")
    residuals.value(t, q, u, r)  # checks the arguments
    start = Start(functions, float(t), q, u, functions.inputs(r, needed), tolerance)
    status, new_q, new_u = start.corrected(stays.values())
    if status == SATISFIED:
        return new_q, new_u
    if status != Status.INCONSISTENT:
        functions.require_finite(("Q", "position_level", "velocity_level", "displacements"), t, new_q, new_u, r)
        raise SolveError(f"the constraints cannot be evaluated at t = {t!r} s: status {status} of a function")
    values = residuals.value(t, new_q, new_u, r)
    raise SolveError(_impossible(start, stays, values))


def projection_of(stabilization: Baumgarte | Projection | None, functions: Functions) -> Projection | None:
    """The projection, if that is the stabilization; None for the other kinds.

    Raises
    ------
    SolveError
        For a form whose state does not contain the speeds, and for a model built without the functions it needs.
    """
    if not isinstance(stabilization, Projection):
        return None
    form = functions.description.form
    if is_momentum_form(form):
        raise SolveError(
            f'the state of form="{form}" holds momenta, and Projection corrects speeds: use another form, or '
            "integrate with_stabilization(None)"
        )
    if stabilization.integrals:
        functions.get("Q")
    if functions.description.constraints.positions or functions.description.constraints.velocities:
        _require(functions)
    return stabilization


def _require(functions: Functions) -> list[str]:
    """Names of the functions of the constraints. Raises `SolveError` for a model that was built without them."""
    description = functions.description
    needed = ["Q", "residuals"]
    needed += ["position_level", "displacements"] if description.constraints.positions else []
    needed += ["velocity_level"] if description.constraints.velocities else []
    functions.require(needed)
    return needed


def _fixed(fixed: str | Iterable[Any], known: Sequence[str]) -> dict[str, int]:
    """Indices in (q, u) of the components that keep their values, by name."""
    names = [key_name(key) for key in ([fixed] if isinstance(fixed, str) else fixed)]
    wrong = [unknown(name, known, "coordinate or speed") for name in names if name not in known]
    if wrong:
        raise SolveError("fixed: " + "; ".join(wrong))
    return {name: known.index(name) for name in names}


def _impossible(start: Start, stays: dict[str, int], residuals: Array) -> str:
    """The message on the constraints that remain violated, with advice."""
    description = start.functions.description
    n = len(description.constraints.positions)
    levels = ["position"] * n + ["velocity"] * len(description.constraints.velocities)
    labels = (*description.constraints.positions, *description.constraints.velocities)
    limits = [1e3 * start.tolerance * max(1.0, float(np.abs(x).max(initial=0.0))) for x in (start.q, start.u)]
    satisfied = bool((np.abs(residuals[:n]) <= limits[0]).all())  # speeds are corrected at satisfied positions only
    violated = [
        f"{label} at {level} level: residual {value:.6g}"
        for label, level, value in zip(labels, levels, residuals, strict=True)
        if not abs(value) <= limits[level == "velocity"] and (level == "position" or satisfied)
    ]
    headline = f"the constraints cannot be satisfied at t = {start.t!r} s from the given state; the best state violates"
    return listed(f"{headline} {len(violated)} of them", violated, _advice(start, stays))


def _advice(start: Start, stays: dict[str, int]) -> str:
    if stays and start.corrected(())[0] == SATISFIED:
        single = [
            name
            for name in stays
            if start.corrected(index for other, index in stays.items() if other != name)[0] == SATISFIED
        ]
        if single:
            return f"the fixed values make it impossible: free one of {', '.join(single)}, or give it another value"
        return f"the fixed values make it impossible: free several of {', '.join(stays)}"
    return (
        "with nothing fixed it is impossible as well: give a guess nearer to a possible position, and look for "
        "constraints that contradict each other, and for lengths that cannot close a loop"
    )
