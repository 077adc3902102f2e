"""Derivatives of the functions of a model at a state, as matrices in a fixed order of rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from kanegen.arrays import Array, sections
from kanegen.backends.points import Point
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.model.inputs import MULTIPLIER
from kanegen.solve.feedback.laws import LAWS, UNLIMITED_LAWS
from kanegen.solve.functions import CompiledFunctions

Evaluate = Callable[[str], Array]
"""The value of a compiled function, by name, at a state with its inputs and contact forces."""

STATE: Final = ("q", "u", "s")
"""The arguments that make up the state."""

_DIFFERENCE = 1e-5
"""First step of central differences, relative to the largest argument of its kind, or to 1 if that is larger."""
_SHORTENED = 0.6
"""How steps are shortened to estimate errors; halves have the same rounding errors as the whole."""
_LONGER = tuple(100.0**k for k in range(6, 0, -1))
_SHORTER = tuple(0.1**k for k in range(1, 14))
_IRREGULAR = 1e-3
"""Second differences are those of a smooth function if they are proportional to step**2 up to this part of it."""
_CERTAIN = 1e-9
"""A step is too short if shortening it changes a slope by more than this part of it."""
_CURVED = 1e-9
"""A step is too long if shortening it changes the slope by more than this part of the function per step."""
_SMALL = 1e-5
"""Values of a function below this fraction of its largest one may be rounding errors of zero."""


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

    ``point`` maps the arguments q, u, s, r, t and lambda to arrays (n,). The relative error is about 1e-10
    in any unit.
    """

    def __init__(self, functions: CompiledFunctions, rhs: str, point: Mapping[str, Array]) -> None:
        self._functions, self._rhs, self._point = functions, rhs, dict(point)
        super().__init__(self._value, functions.description)
        self.outputs, self.rows = (), {**self.rows, "outputs": 0}

    def of(self, name: str, argument: str) -> Array:
        """The derivatives of one function with respect to one argument, (rows, columns)."""
        matrix = np.zeros((self.rows[name], self.columns[argument]))
        for column in range(matrix.shape[1] if self.rows[name] else 0):
            matrix[:, column] = self._column(name, argument, column)
        return matrix

    def _column(self, name: str, argument: str, column: int) -> Array:
        """The derivatives with respect to one entry of an argument.

        Neither the unit of the argument nor its value tells the distance over which the function is curved. Where the
        usual step is too long, or so short that rounding errors change the slope, the longest step counts that can be
        shortened without changing the slope. Where there is none, as at a kink, the usual one counts.
        """
        start = self._point[argument]
        own = _DIFFERENCE * max(1.0, abs(float(start[column])))
        step = max(own, _DIFFERENCE * float(np.abs(start).max()))
        usual = self._tried(name, argument, column, step)
        if usual is not None and usual[0].any() and (usual[1] <= _CERTAIN * np.abs(usual[0])).all():
            return usual[0]
        for factor in _LONGER:
            found = self._tried(name, argument, column, factor * step)
            if found is not None and usual is not None:
                return np.where((usual[0] == 0.0) | (found[1] < usual[1]), found[0], usual[0])
            if found is not None:
                return found[0]
        if usual is not None:
            return usual[0]
        for factor in _SHORTER:
            found = self._tried(name, argument, column, factor * step)
            if found is not None:
                return found[0]
        return self._slope(name, argument, column, own)[0]

    def _tried(self, name: str, argument: str, column: int, step: float) -> tuple[Array, Array] | None:
        """The slopes by a step and their errors; None if the function is curved over it."""
        try:
            slope, error, is_curved = self._slope(name, argument, column, step)
        except SolveError:  # outside the domain of an expression
            return None
        return None if is_curved else (slope, error)

    def _slope(self, name: str, argument: str, column: int, step: float) -> tuple[Array, Array, bool]:
        """The slopes, extrapolated to step 0, how much shortening the step changes them, and if that is too much."""
        start, unit = self._point[argument], np.eye(len(self._point[argument]))[column]
        center, part = self._value(name), _SHORTENED
        values = [
            self._at(name, {**self._point, argument: start + change * unit})
            for change in (step, -step, part * step, -part * step)
        ]
        slope, shorter = (values[0] - values[1]) / (2.0 * step), (values[2] - values[3]) / (2.0 * part * step)
        second, of_shorter = values[0] + values[1] - 2.0 * center, values[2] + values[3] - 2.0 * center
        size = np.abs(values).max(axis=0)
        size = np.maximum(size, _SMALL * size.max(initial=0.0))
        error = np.abs(slope - shorter)
        is_curved = (error * step > _CURVED * size) | (np.abs(part**2 * second - of_shorter) > _IRREGULAR * size)
        return shorter + (shorter - slope) * part**2 / (1.0 - part**2), error, bool(is_curved.any())

    def _value(self, name: str) -> Array:
        """The values of a function at the point, in the order of the rows."""
        return self._at(name, self._point)

    def _at(self, name: str, point: Mapping[str, Array]) -> Array:
        """The values of a function at any point."""
        s = point["s"] if self.description.states else None
        state = Point(float(point["t"][0]), point["q"], point["u"], point["r"], s, point[MULTIPLIER])
        if name == "jacobian":
            return np.concatenate(state.evaluate(self._functions.get(self._rhs).pair))
        if name == "contacts":
            return contact_values(
                state.evaluate(self._functions.get("contacts").value), self.description, point[MULTIPLIER]
            )
        values: Array = state.evaluate(self._functions.get(name).value)
        return values


def contact_values(values: Array, d: Description, forces: Array) -> Array:
    """The values whose derivatives are those of "contacts", from those of the function ``contacts``."""
    n_k, n_m = len(d.contacts.rows), len(d.contacts.table)
    n_u, skipped = len(d.speeds), len(d.coordinates) + len(d.speeds)
    sizes = skipped + n_k * n_u, n_k**2, n_k, 3 * n_k, n_m, n_m, n_m
    _, D, free, of_rows, load, _, mu_k, _ = sections(values, sizes)
    return np.concatenate([free + D.reshape(n_k, n_k) @ forces, of_rows, load, mu_k])
