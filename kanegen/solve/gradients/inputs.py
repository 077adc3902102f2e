"""How the inputs of a run change: with what varies, and in time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.gradients.directions import Direction, Kind
from kanegen.solve.inputs import RunInputs
from kanegen.solve.inputs.polynomials import from_scipy, is_continuous, is_polynomial, table

_SAME: Final = 1e-9
"""Coefficients of splines that differ by a smaller fraction of the largest one are the same."""

_BACKWARD: Final = np.array([49 / 20, -6.0, 15 / 2, -20 / 3, 15 / 4, -6 / 5, 1 / 6])
"""Weights of values at the end and before it, at equal distances, in its derivative: order 6."""

_FRACTION: Final = 0.125
"""These distances are this fraction of a step."""

_ROUNDING: Final = 8.0 * float(np.finfo(float).eps)
"""Distance from an instant, relative to the time, at which inputs have their values before it."""


class InputChanges:
    """The changes of the inputs along directions: 1 for a constant input, basis functions for those of a table.

    ``bases``: for each input that a table or a spline gives, by index, the changes of this input and of those that are
    its rates, by index: ``PPoly`` with a value for each ordinate.
    """

    def __init__(
        self, n_r: int, directions: Sequence[Direction], bases: Mapping[int, Mapping[int, Any]] | None = None
    ) -> None:
        self._constant, self._bases = np.zeros((n_r, len(directions))), dict(bases or {})
        self._columns: dict[int, list[int]] = {}
        for k, direction in enumerate(directions):
            if direction.kind is Kind.INPUT and direction.ordinate is None:
                self._constant[direction.index, k] = 1.0
            elif direction.kind is Kind.INPUT:
                self._columns.setdefault(direction.index, []).append(k)

    @property
    def is_constant(self) -> bool:
        """Whether the changes do not depend on the time."""
        return not self._bases

    @property
    def knots(self) -> Array | None:
        """The times at which basis functions begin and end; None without them."""
        if self.is_constant:
            return None
        return np.unique(np.concatenate([basis.x for slots in self._bases.values() for basis in slots.values()]))

    def at(self, times: Any) -> Array:
        """The changes at times (n_t,), (n_t, n_r, k); at a time (n_r, k)."""
        times = np.asarray(times, dtype=np.float64)
        changes = np.tile(self._constant, (*times.shape, 1, 1))
        for index, slots in self._bases.items():
            for slot, basis in slots.items():
                changes[..., slot, self._columns[index]] = basis(times)
        return changes


def input_changes(
    d: Description, inputs: RunInputs, directions: Sequence[Direction]
) -> tuple[tuple[Direction, ...], InputChanges]:
    """The directions, with one for each ordinate of an input that a table or spline gives, and the changes of inputs.

    Raises `SolveError` for inputs that have no values to differentiate in.
    """
    bases, found = dict[int, dict[int, Any]](), list[Direction]()
    for direction in directions:
        basis = _basis_of(inputs, direction) if direction.kind is Kind.INPUT else None
        if basis is None:
            found.append(direction)
            continue
        bases[direction.index] = _with_rates(d, inputs, direction.index, basis)
        found += [replace(direction, ordinate=k) for k in range(basis.c.shape[2])]
    return tuple(found), InputChanges(len(d.inputs), found, bases)


def require_constant(inputs: RunInputs, directions: Sequence[Direction]) -> None:
    """Raise `SolveError` for inputs that vary in time."""
    for direction in directions:
        if direction.kind is Kind.INPUT and _basis_of(inputs, direction) is not None:
            raise SolveError(f"the input {direction.name} is not constant in this run")


def _basis_of(inputs: RunInputs, direction: Direction) -> Any | None:
    """The basis functions of an input, None if it is constant. Raises `SolveError`."""
    if inputs.laws is not None and direction.index in inputs.laws.slots:
        raise SolveError(f"the input {direction.name} is determined by its law: vary the parameters of the law")
    inputs = inputs.without_laws or inputs
    if inputs.scalars is not None and isinstance(inputs.scalars[direction.index], float):
        return None
    return _basis(inputs.given.get(direction.index), f"the input {direction.name}")


def _basis(given: Any, what: str) -> Any:
    """The change of a table or a spline with each of its ordinates, a ``PPoly``. Raises `SolveError`."""
    if type(given) is tuple:
        return table((given[0], np.eye(len(given[0]))), what)
    module: Any = sys.modules.get("scipy.interpolate")
    if module is not None and isinstance(given, module.BSpline):
        unit = np.eye(len(given.t) - given.k - 1)
        return from_scipy(module.BSpline(given.t, unit, given.k), what)
    if module is not None and isinstance(given, module.CubicSpline):
        return _basis_of_spline(given, what)
    polynomial = None if given is None else from_scipy(given, what)
    if polynomial is not None and len(polynomial.c) == 1:
        return module.PPoly(np.eye(polynomial.c.shape[1])[None], polynomial.x)
    if polynomial is not None and len(polynomial.c) == 2 and is_continuous(polynomial):
        return table((polynomial.x, np.eye(polynomial.x.size)), what)
    kind = (
        "is not constant in this run, nor given by a table or spline"
        if polynomial is None
        else f"is a {type(given).__name__}"
    )
    raise SolveError(
        f"{what} {kind}: sensitivities are available with respect to constant inputs, the values of tables and of "
        "steps (a PPoly of degree 0), the coefficients of a BSpline, and the values of a CubicSpline"
    )


def _basis_of_spline(given: Any, what: str) -> Any:
    """The change of a cubic spline with its values, if its coefficients tell how it ends. Raises `SolveError`."""
    from scipy.interpolate import CubicSpline

    x, largest = given.x, np.abs(given.c).max()
    values = np.concatenate([given.c[-1], given(x[-1:])])
    found = []
    for ends in ("not-a-knot", "natural", "clamped"):
        same = partial(CubicSpline, x, bc_type=ends)
        if np.abs(same(values).c - given.c).max() <= _SAME * largest:
            found.append(same)
    if len(found) != 1:
        raise SolveError(
            f"{what} is a CubicSpline whose conditions at the ends cannot be told from its coefficients: give "
            "scipy.interpolate.make_interp_spline(x, y), whose coefficients vary"
        )
    return from_scipy(found[0](np.eye(x.size)), what)


def _with_rates(d: Description, inputs: RunInputs, index: int, basis: Any) -> dict[int, Any]:
    """The changes of an input and of those inputs that follow as its rates."""
    found, slots, given = {index: basis}, d.input_slots, (inputs.without_laws or inputs).given
    for _ in slots:
        for k, slot in enumerate(slots):
            if k not in found and k not in given and slot.rate_of in found:
                found[k] = found[slot.rate_of].derivative()
    return found


def input_rates(inputs: RunInputs, n_r: int, t: float, step: float) -> Array:
    """The rates of the inputs in time before an instant, (n_r,), at the end of a ``step``; zero for those of laws."""
    inputs = inputs.without_laws or inputs
    before = t - np.sign(step) * _ROUNDING * max(abs(t), abs(step))
    if inputs.scalars is not None:
        return np.array([_rate(scalar, before, step) for scalar in inputs.scalars])
    if inputs.changes.polynomials:
        return np.asarray(inputs.changes.polynomials[0].derivative()(before))
    return _difference(inputs.function, before, step) if n_r else np.zeros(0)


def _rate(scalar: Any, t: float, step: float) -> float:
    """The rate of one input: a number, a polynomial, or a function of the time."""
    if isinstance(scalar, float):
        return 0.0
    return float(scalar.derivative()(t)[0] if is_polynomial(scalar) else _difference(scalar, t, step))


def _difference(function: Callable[[float], Any], t: float, step: float) -> Array:
    """The rate of a function of the time at the end of a step."""
    times = t - _FRACTION * step * np.arange(len(_BACKWARD))
    return np.asarray(_BACKWARD @ np.array([function(time) for time in times.tolist()]) / (_FRACTION * step))
