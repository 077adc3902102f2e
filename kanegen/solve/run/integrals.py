"""The integrals of motion of a projection: whether the built model can keep them."""

from __future__ import annotations

from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.model import Projection
from kanegen.solve.names import unknown


def check_integrals(projection: Projection, description: Description) -> None:
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
