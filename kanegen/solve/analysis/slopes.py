"""Derivatives of the functions of a model at a state, as matrices in a fixed order of rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.derivation.sensitivities import MULTIPLIER

Evaluate = Callable[[str], Array]
"""The value of a compiled function, by name, at a state with its inputs and contact forces."""

STATE: Final = ("q", "u", "s")
"""The arguments that make up the state."""


class Slopes:
    """Derivatives of (q', u', s') ("jacobian"), of the residuals, the outputs and the contacts; without elements zero.

    ``evaluate`` gives the compiled derivatives, by the name of the function and its argument: ``"jacobian_q"``.
    Derivatives of a function that does not depend on an argument, or that was not built, are zero or have no rows.
    """

    def __init__(self, evaluate: Evaluate, d: Description) -> None:
        self.evaluate, self.description = evaluate, d
        n_k, n_m = len(d.contacts.rows), len(d.contacts.table)
        self.columns = {
            **{"q": len(d.coordinates), "u": len(d.speeds), "s": len(d.states), "r": len(d.inputs)},
            **{"p": len(d.parameters), "t": 1, MULTIPLIER: n_k},
        }
        self.outputs = output_names(d) if "outputs_q" in d.functions else ()
        self.rows = {
            "jacobian": sum(self.columns[x] for x in STATE),
            "residuals": len(d.constraints.levels),
            "outputs": len(self.outputs),
            "contacts": 4 * n_k + 2 * n_m,
        }

    def of(self, name: str, argument: str) -> Array:
        """The derivatives of one function with respect to one argument, (rows, columns)."""
        shape = self.rows[name], self.columns[argument]
        constant = name == "residuals" and argument not in ("q", "u", "r")
        return np.zeros(shape) if constant or 0 in shape else self.evaluate(f"{name}_{argument}").reshape(shape)

    def matrix(self, name: str, arguments: Iterable[str] = STATE) -> Array:
        """The derivatives with respect to several arguments, side by side."""
        return np.hstack([self.of(name, argument) for argument in arguments])


def output_names(d: Description) -> tuple[str, ...]:
    """Names of all components of the outputs."""
    return tuple(
        f"{name}[{', '.join(map(str, index))}]" if shape else name
        for name, shape in d.outputs.items()
        for index in np.ndindex(*shape)
    )
