"""Quantities along the motion of a solution: computed when they are first read, with the inputs of the run."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
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


class Acting(NamedTuple):
    """What acts on a model along a motion: the arguments of functions beside time and state.

    ``r``: the inputs with the controls of a closed loop, (n_t, n_r); ``forces``: the multipliers of the contact rows,
    (n_t, n_rows), or None without contacts; ``free``: the free vector of servo-constraints (n_free,), or None.
    """

    r: Array
    forces: Array | None = None
    free: Array | None = None


class MotionInputs:
    """What acts at the stored times of a run, computed by ``compute`` on first use.

    A pickle holds the values, because inputs can be functions that cannot be pickled.
    """

    def __init__(self, compute: Callable[[], Acting]) -> None:
        self._compute = compute
        self._values: Acting | None = None

    @property
    def values(self) -> Acting:
        """The values at the stored times."""
        if self._values is None:
            self._values = self._compute()
        return self._values

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return _stored, (self.values,)
        except Exception as error:  # of a Python callable of the user, which also ended the run
            return _failed, (f"the inputs of the run cannot be evaluated: {type(error).__name__}: {error}",)


def _stored(values: Acting) -> MotionInputs:
    return MotionInputs(lambda: values)


def _failed(message: str) -> MotionInputs:
    def compute() -> Acting:
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
) -> Acting:
    """What acts at the stored times of a run.

    ``problem``: what was integrated, with its functions, inputs and control loop; ``state``: q, u, s at the ``times``.
    """
    d, inputs = problem.functions.description, problem.inputs
    r: Array = problem.functions.module.inputs_along(
        problem.function, inputs.compiled, times, np.hstack(state), inputs.controls
    )
    if control is not None:
        r[:, [d.inputs.index(name) for name in control.names]] = control.values
    free = None if problem.loop is None or not d.free_controls else problem.loop.free
    return Acting(r, None if contacts is None else contacts.forces, free)


def quantity_unit(solution: Any, name: str) -> Unit | None:
    """The unit of a quantity, such as ``"energy"``; None if it depends on the model, or if the model has no units."""
    unit = CATALOGUE[name].unit if name in CATALOGUE else ""
    return derived(unit) if unit and solution.units else None


def along(function: Callable[..., Any], at: Point) -> Any:
    """The value of a function at all rows; inputs and forces are NaN where they are not known.

    Contact forces are not known where no contact modes are consistent, for example where a run stopped. There, values
    that depend on them are NaN. Functions are affine in these forces, so that values with zero and with one differ.
    ``function`` takes ``s``, ``forces`` and ``free`` by name, only where the model has them.
    """
    given = {name: x for name, x in at._asdict().items() if x is not None and x.shape[-1]}
    given |= {"t": at.t, "q": at.q, "u": at.u, "r": at.r}
    unknown = [name for name in ("r", "forces", "free") if name in given and np.isnan(given[name]).any()]
    if not unknown:
        return function(**given)
    first, second = (
        function(**given | {name: np.nan_to_num(given[name], nan=value) for name in unknown}) for value in (0.0, 1.0)
    )
    return _without(first, second)


def _without(first: Any, second: Any) -> Any:
    """``first``, with NaN where ``second`` differs; named tuples and tuples of arrays keep their type."""
    if isinstance(first, tuple):
        parts = [_without(a, b) for a, b in zip(first, second, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return np.where(first == second, first, np.nan)
