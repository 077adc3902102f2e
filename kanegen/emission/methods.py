"""The integration methods with a fixed amount of work per step: one table."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

AUTO: Final = "auto"
NONE: Final = "none"
MOREAU_JEAN: Final = "moreau_jean"


@dataclass(frozen=True)
class StepMethod:
    """A method of the step of an emitted project.

    ``evaluations`` of the right-hand side per step; ``stages``: arrays of n_y values that a step works with;
    ``functions``: functions of the model that a step needs besides the right-hand side.
    """

    name: str
    title: str
    evaluations: int
    stages: int
    functions: tuple[str, ...] = ()


STEP_METHODS: Final = MappingProxyType(
    {
        method.name: method
        for method in (
            StepMethod("rk4", "the classical Runge-Kutta method, order 4 (Kutta 1901)", 4, 4),
            StepMethod("kutta_merson", "the method of Kutta and Merson, order 4 (Merson 1957)", 5, 5),
            StepMethod("semi_implicit_euler", "the semi-implicit Euler method, order 1", 2, 1),
            StepMethod(
                MOREAU_JEAN,
                "the time stepping of Moreau and Jean, order 1 where contacts open, close, stick or slip, otherwise 2",
                2,
                0,
                ("qdot", "contacts", "gaps"),
            ),
        )
    }
)
"""Methods by name. Each evaluates the same functions in every step, whatever the state is."""
