"""Values a solver is bound to: parameters by name, gains in the order of the compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.model import Baumgarte, Projection
from kanegen.solve.names import by_name, number
from kanegen.solve.run.integrals import check_integrals


def parameter_values(given: Mapping[Any, float | None], description: Description) -> dict[str, float | None]:
    """A value or None for every parameter, in order. Raises `SolveError` for names and values that are none."""
    named = by_name(given, description.parameters, "parameter")
    return {
        name: None if named.get(name) is None else number(named[name], f"parameter {name}")
        for name in description.parameters
    }


def gain_values(stabilization: Baumgarte | Projection | None, description: Description) -> NDArray[np.float64]:
    """The gains (n_g,), zero without stabilization and with projection, which has none.

    Raises `SolveError` for a model without anything to stabilize, and integrals that cannot be kept.
    """
    constraints = description.constraints
    n_h, n_v = constraints.n_holonomic, constraints.n_nonholonomic
    none = np.zeros(2 * n_h**2 + n_v**2)
    if isinstance(stabilization, Projection):
        check_integrals(stabilization, description)
    if stabilization is None or (
        isinstance(stabilization, Projection) and (constraints.positions or stabilization.integrals)
    ):
        return none
    if n_h + n_v == 0:
        raise SolveError(
            f"the model {description.name!r} has no holonomic or nonholonomic constraint that binds a speed: there "
            "is nothing to stabilize; leave stabilization out"
        )
    return none if isinstance(stabilization, Projection) else stabilization.flatten(n_h, n_v)
