"""The integration methods with a fixed amount of work per step: one table."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.methods.table import FIXED_STEP
from kanegen.codegen.methods.tableaux import Tableau

AUTO: Final = "auto"
NONE: Final = "none"
MOREAU_JEAN: Final = "moreau_jean"
SEMI_IMPLICIT: Final = "semi_implicit_euler"


@dataclass(frozen=True)
class StepMethod:
    """A method of the step of an emitted project.

    ``evaluations`` of the right-hand side per step; ``stages``: arrays of n_y values that a step works with; ``sums``:
    operations of its weighted sums for each component of the state. ``functions``: functions of the model that a step
    needs besides the right-hand side.
    """

    name: str
    title: str
    evaluations: int
    stages: int
    sums: int
    functions: tuple[str, ...] = ()

    @property
    def is_semi_implicit(self) -> bool:
        """Whether speeds advance before coordinates."""
        return self.name == SEMI_IMPLICIT


def _runge_kutta(name: str) -> StepMethod:
    """A method with a fixed step of :data:`kanegen.codegen.methods.table.NAMES`, from its tableau."""
    tableau = METHODS[name].coefficients
    assert isinstance(tableau, Tableau), name
    weights = [sum(1 for weight in row if weight) for row in (*tableau.a[1 : tableau.stages], tableau.b)]
    sums = sum(2 if n == 1 else 2 * n + 1 for n in weights)
    return StepMethod(name, f"{METHODS[name].title}, order {tableau.order}", tableau.stages, tableau.stages, sums)


STEP_METHODS: Final = MappingProxyType(
    {
        method.name: method
        for method in (
            *map(_runge_kutta, FIXED_STEP),
            StepMethod(SEMI_IMPLICIT, "the semi-implicit Euler method, order 1", evaluations=2, stages=1, sums=2),
            StepMethod(
                MOREAU_JEAN,
                "the time stepping of Moreau and Jean, order 1 where contacts open, close, stick or slip, otherwise 2",
                evaluations=2,
                stages=0,
                sums=0,
                functions=("qdot", "contacts", "gaps"),
            ),
        )
    }
)
"""Methods by name. Each evaluates the same functions in every step, whatever the state is."""
