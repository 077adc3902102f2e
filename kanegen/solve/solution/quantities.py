"""Quantities along the motion of a solution: computed when they are first read, with the inputs of the run."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.program.catalogue import CATALOGUE
from kanegen.solve.solution.records import ContactHistory, ControlHistory
from kanegen.solve.values import key_name
from kanegen.units import Unit, derived

Value = TypeVar("Value")


class SolverReference:
    """A reference to a solver; a pickle holds the compressed pickle of the solver, which is restored on first use.

    Solutions of one solver share their reference, so that a pickle of many of them holds the solver once.
    """

    def __init__(self, solver: Any = None, packed: bytes = b"") -> None:
        self._solver, self._packed = solver, packed

    def get(self) -> Any:
        """The solver; after unpickling, its compiled code is taken from the cache or built on the first call."""
        if self._solver is None:
            self._solver = pickle.loads(zlib.decompress(self._packed))
        return self._solver

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._packed:
            self._packed = zlib.compress(pickle.dumps(self._solver), 1)
        return SolverReference, (None, self._packed)


class MotionInputs:
    """The inputs at the stored times of a run, (n_t, n_r + n_hidden), computed by ``compute`` on first use.

    The array is that of compiled functions: inputs with the controls of a closed loop, multipliers of the contact rows,
    free controls and states. A pickle holds the values, because inputs can be functions that cannot be pickled.
    """

    def __init__(self, compute: Callable[[], Array]) -> None:
        self._compute = compute
        self._values: Array | None = None

    @property
    def values(self) -> Array:
        """The array (n_t, n_r + n_hidden)."""
        if self._values is None:
            self._values = self._compute()
        return self._values

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return _stored, (self.values,)
        except Exception as error:  # of a Python callable of the user, which also ended the run
            return _failed, (f"the inputs of the run cannot be evaluated: {type(error).__name__}: {error}",)


def _stored(values: Array) -> MotionInputs:
    return MotionInputs(lambda: values)


def _failed(message: str) -> MotionInputs:
    def compute() -> Array:
        raise SolveError(message)

    return MotionInputs(compute)


class Members(Mapping[str, Value]):
    """Values by name, each computed when it is first read."""

    def __init__(self, names: tuple[str, ...], compute: Callable[[str], Value]) -> None:
        self._names, self._compute = names, compute
        self._values: dict[str, Value] = {}

    def __getitem__(self, key: Any) -> Value:
        name = key_name(key)
        if name not in self._values:
            self._values[name] = self._compute(name)  # raises SolveError for unknown names
        return self._values[name]

    def __contains__(self, key: object) -> bool:
        return key_name(key) in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._names)

    def __repr__(self) -> str:
        return f"<values by name: {', '.join(self._names) or 'none'}>"


def inputs_of_run(
    problem: Any,
    times: Array,
    state: tuple[Array, ...],
    contacts: ContactHistory | None,
    control: ControlHistory | None,
) -> Array:
    """The array r of compiled functions at the stored times of a run, (n_t, n_r + n_hidden).

    ``problem``: what was integrated, with its functions, inputs and control loop; ``state``: q, u, s at the ``times``.
    """
    d, layout = problem.functions.description, problem.functions.description.input_layout
    inputs = problem.inputs
    rows: Array = problem.functions.module.inputs_along(
        problem.function, inputs.compiled, times, np.hstack(state), inputs.controls
    )
    if problem.loop is not None:
        rows[:, layout.free_slots] = problem.loop.hidden[len(layout.contact_rows) :][: len(layout.free_controls)]
    if control is not None:
        rows[:, [d.inputs.index(name) for name in control.names]] = control.values
    if contacts is not None:
        rows[:, layout.multiplier_slots] = contacts.forces
    return rows


def quantity_unit(solution: Any, name: str) -> Unit | None:
    """The unit of a quantity, such as ``"energy"``; None if it depends on the model, or if the model has no units."""
    unit = CATALOGUE[name].unit if name in CATALOGUE else ""
    return derived(unit) if unit and solution.units else None


def along(function: Callable[..., Any], t: Array, q: Array, u: Array, inputs: Array) -> Any:
    """The value of a function of (t, q, u, r) at all rows; ``inputs`` (n_t, n) is NaN where a force is not known.

    Contact forces are not known where no contact modes are consistent, for example where a run stopped. There, values
    that depend on them are NaN. Functions are affine in these forces, so that values with zero and with one differ.
    """
    unknown = np.isnan(inputs).any(axis=1)
    if not unknown.any():
        return function(t, q, u, inputs)
    first, second = (function(t, q, u, np.nan_to_num(inputs, nan=value)) for value in (0.0, 1.0))
    return _without(first, second)


def _without(first: Any, second: Any) -> Any:
    """``first``, with NaN where ``second`` differs; named tuples and tuples of arrays keep their type."""
    if isinstance(first, tuple):
        parts = [_without(a, b) for a, b in zip(first, second, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return np.where(first == second, first, np.nan)
