"""Derivatives of the functions of a model at a state, as matrices in a fixed order of rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.model.inputs import MULTIPLIER
from kanegen.solve.feedback.laws import LAWS, UNLIMITED_LAWS
from kanegen.solve.functions import CompiledFunctions

Evaluate = Callable[[str], Array]
"""The value of a compiled function, by name, at a state with its inputs and contact forces."""

STATE: Final = ("q", "u", "s")
"""The arguments that make up the state."""

_DIFFERENCE = 1e-5
"""Step of central differences relative to the argument, or to 1 if that is larger."""


class Slopes:
    """Derivatives of (q', u', s') ("jacobian"), of the residuals, the outputs, the contacts and the feedback laws.

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
            LAWS: len(d.laws),
            UNLIMITED_LAWS: len(d.laws),
        }

    def of(self, name: str, argument: str) -> Array:
        """The derivatives of one function with respect to one argument, (rows, columns)."""
        shape = self.rows[name], self.columns[argument]
        varies = {"residuals": ("q", "u", "r"), LAWS: ("q", "u", "s", "r", "t")}
        constant = argument not in varies.get(name, self.columns)
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


class DifferenceSlopes(Slopes):
    """The same derivatives by central differences, for models that were built without Jacobians.

    ``point`` maps the arguments q, u, s, r, t and lambda to arrays (n,). The relative error is about 1e-10.
    """

    def __init__(self, functions: CompiledFunctions, rhs: str, point: Mapping[str, Array]) -> None:
        self._functions, self._rhs, self._point = functions, rhs, dict(point)
        super().__init__(self._value, functions.description)
        self.outputs, self.rows = (), {**self.rows, "outputs": 0}

    def of(self, name: str, argument: str) -> Array:
        """The derivatives of one function with respect to one argument, (rows, columns)."""
        matrix = np.zeros((self.rows[name], self.columns[argument]))
        start = self._point[argument]
        for column in range(matrix.shape[1] if self.rows[name] else 0):
            step = _DIFFERENCE * max(1.0, abs(float(start[column])))
            values = []
            for change in (step, -step):
                self._point[argument] = start + change * np.eye(len(start))[column]
                values.append(self._value(name))
            matrix[:, column] = (values[0] - values[1]) / (2.0 * step)
        self._point[argument] = start
        return matrix

    def _value(self, name: str) -> Array:
        """The values of a function at the point, in the order of the rows."""
        layout, point = self.description.input_layout, self._point
        r = layout.array(point["r"], multipliers=point[MULTIPLIER], states=point["s"])
        state = float(point["t"][0]), point["q"], point["u"], r
        if name == "jacobian":
            return np.concatenate(self._functions.get(self._rhs).pair(*state))
        if name == "contacts":
            sections = self._functions.get("contacts").value(*state)
            return contact_values(sections, self.description, point[MULTIPLIER])
        values: Array = self._functions.get(name).value(*state)
        return values


def contact_values(sections: Array, d: Description, forces: Array) -> Array:
    """The values whose derivatives are those of "contacts", from the sections of the function ``contacts``."""
    n_k, n_m = len(d.contacts.rows), len(d.contacts.table)
    n_u, skipped = len(d.speeds), len(d.coordinates) + len(d.speeds)
    ends = skipped + np.cumsum([n_k * n_u, n_k**2, n_k, 3 * n_k, n_m, n_m, n_m])
    D, free, of_rows, load, _, mu_k = np.split(sections, ends)[1:7]
    return np.concatenate([free + D.reshape(n_k, n_k) @ forces, of_rows, load, mu_k])
