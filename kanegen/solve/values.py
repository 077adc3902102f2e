"""Parameters and stabilization of a solver: values by name, gains in the order of the compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.model import Baumgarte, Projection
from kanegen.solve.names import by_name, number, unknown


def parameter_values(given: Mapping[Any, float | None], description: Description) -> dict[str, float | None]:
    """A value or None for every parameter, in order. Raises `SolveError` for unknown names and for other values."""
    named = by_name(given, description.parameters, "parameter")
    return {
        name: None if named.get(name) is None else number(named[name], f"parameter {name}")
        for name in description.parameters
    }


def gain_values(stabilization: Baumgarte | Projection | None, description: Description) -> Array:
    """The gains (n_g,); zero without stabilization and with projection, which has no gains.

    Raises `SolveError` for a model without constraints to stabilize, and for integrals that cannot be kept.
    """
    constraints = description.constraints
    n_h, n_v = constraints.n_holonomic, constraints.n_nonholonomic
    none = np.zeros(2 * n_h**2 + n_v**2)
    if isinstance(stabilization, Projection):
        _check_integrals(stabilization, description)
    if stabilization is None or (
        isinstance(stabilization, Projection) and (constraints.positions or stabilization.integrals)
    ):
        return none
    if n_h + n_v == 0:
        raise SolveError(
            f"the model {description.name!r} has no holonomic or nonholonomic constraint that binds a speed, so that "
            "there is nothing to stabilize; leave stabilization out"
        )
    return none if isinstance(stabilization, Projection) else stabilization.flatten(n_h, n_v)


def _check_integrals(projection: Projection, description: Description) -> None:
    """Raise `SolveError` for integrals that do not exist, cannot be kept or were not built."""
    known, reasons = ("energy", *description.outputs), description.no_integrals
    problems = []
    for name in projection.integrals:
        if name not in known:
            problems.append(unknown(name, known, "integral of motion (the energy or an output)"))
        elif name in reasons:
            problems.append(f"{name!r} cannot be kept: {reasons[name]}")
        elif integral_function(name) not in description.functions:
            problems.append(
                f"{name!r} was not built for the model {description.name!r}: give the projection to kanegen.build, or "
                'name "integrals" in functions='
            )
    if problems:
        raise SolveError("Projection(integrals=...): " + "; ".join(problems))


def integral_function(name: str) -> str:
    """The compiled function [I_u | I] of an integral."""
    return f"integral:{name}"
