"""The inputs ``r`` of an integration, in the forms that the compiled integrator evaluates."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.inputs.piecewise import combined, derivative, from_scipy, is_polynomial, table, value_at
from kanegen.solve.names import by_name, number

Scalar = Any
"""One input of a run: a number, a ``PPoly`` of one value, or a Python callable."""

ACCEPTED = (
    "an array (n_r,), a table (times, values), a scipy spline, a mapping from input names to these, "
    "a scipy.LowLevelCallable or a Python callable r(t)"
)

_NONE: Array = np.empty(0)
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Inputs of a run: ``compiled``, the module's ``Inputs``, and ``at(t)``, their values (n_r,)."""

    compiled: Any
    at: Callable[[float], Array]


def run_inputs(module: Evaluator, description: Description, r: Any, needed: frozenset[int] | None = None) -> RunInputs:
    """The inputs ``r`` describes; those with indices in ``needed`` (None: all) must have a value.

    ``None``: the defaults; an array (n_r,): constant; ``(times, values)``: linear interpolation of (n,) and
    (n, n_r); ``PPoly``, ``CubicSpline``, ``BSpline`` of (n_r,) values; ``scipy.LowLevelCallable`` with the
    signature ``void (double t, double *r, void *user_data)``; a Python callable ``r(t) -> (n_r,)``, which is
    slow. With one input, tables and splines may have scalar values. A mapping gives each input by name or
    symbol a number, a table, a spline or a callable ``f(t) -> float``. An input that is missing there is the
    derivative of the input whose rate it is, or has its default.

    Raises
    ------
    SolveError
        For anything else, missing values, unknown names, wrong shapes and values that are not finite.
    """
    if r is None and not description.inputs:
        return RunInputs(module.Inputs.constant(_NONE), lambda t: _NONE)
    if r is None:
        return _constant(module, _defaults(description, needed))
    if isinstance(r, Mapping):
        return _from_mapping(module, description, r, needed)
    if type(r) is tuple and any(np.ndim(item) for item in r):
        return _piecewise(module, table(r, "the input table"), description)
    spline = from_scipy(r, "the input spline")
    if spline is not None:
        return _piecewise(module, spline, description)
    if type(r).__name__ in ("LowLevelCallable", "PyCapsule"):
        return RunInputs(module.Inputs.compiled(r), lambda t: _call_compiled(r, t, len(description.inputs)))
    if callable(r):
        return RunInputs(module.Inputs.python(r), r)
    if isinstance(r, (str, bytes)):
        raise SolveError(f"r is {r!r}; expected {ACCEPTED}")
    return _constant(module, r)


def _defaults(description: Description, needed: frozenset[int] | None) -> list[float]:
    values = _or_unneeded([slot.default for slot in description.input_slots], needed)
    missing = [name for name, value in zip(description.inputs, values, strict=True) if value is None]
    if missing:
        raise SolveError(
            f"the inputs {', '.join(missing)} have no value: pass r= ({ACCEPTED}), or give each Input a default"
        )
    return [value for value in values if isinstance(value, float)]


def _or_unneeded(values: Sequence[Scalar | None], needed: frozenset[int] | None) -> list[Scalar | None]:
    """The values, with zeros for missing inputs that no function reads."""
    return [
        0.0 if value is None and needed is not None and k not in needed else value for k, value in enumerate(values)
    ]


def _constant(module: Evaluator, values: Any) -> RunInputs:
    compiled = module.Inputs.constant(values)
    array = np.array(values, dtype=np.float64)
    return RunInputs(compiled, lambda t: array)


def _piecewise(module: Evaluator, polynomial: Any, description: Description) -> RunInputs:
    n_r = len(description.inputs)
    if polynomial.c.shape[2] != n_r:
        raise SolveError(
            f"r gives {polynomial.c.shape[2]} value(s) at each time; expected {n_r}: "
            f"{', '.join(description.inputs) or 'the model has no inputs'}"
        )
    return RunInputs(module.Inputs.piecewise(polynomial.x, polynomial.c), partial(value_at, polynomial))


def _from_mapping(
    module: Evaluator, description: Description, r: Mapping[Any, Any], needed: frozenset[int] | None
) -> RunInputs:
    names = description.inputs
    given = {name: _scalar(value, name) for name, value in by_name(r, names, "input").items()}
    scalars = _filled(given, description, needed)
    if not all(isinstance(scalar, float) or is_polynomial(scalar) for scalar in scalars):
        functions = [_function(scalar) for scalar in scalars]

        def evaluate(t: float) -> Array:
            return np.array([float(function(t)) for function in functions])

        return RunInputs(module.Inputs.python(evaluate), evaluate)
    if any(map(is_polynomial, scalars)):
        return _piecewise(module, combined(scalars, names), description)
    return _constant(module, scalars)


def _scalar(value: Any, name: str) -> Scalar:
    """One input as a number, a polynomial of one value, or a callable."""
    what = f"input {name}"
    polynomial = table(value, what) if type(value) is tuple else from_scipy(value, what)
    if polynomial is not None:
        if polynomial.c.shape[2] != 1:
            raise SolveError(f"{what} gives {polynomial.c.shape[2]} values at each time; expected one")
        return polynomial
    if isinstance(value, tuple):
        raise SolveError(f"{what} is a {type(value).__name__}: a C function must give all inputs, r=LowLevelCallable")
    return value if callable(value) else number(value, what)


def _filled(given: dict[str, Scalar], description: Description, needed: frozenset[int] | None) -> list[Scalar]:
    """A scalar for every input: the given one, the derivative of a given one, or the default.

    Inputs that no function reads are zero.
    """

    def find(slot: int) -> Scalar | None:
        name, base = description.inputs[slot], description.input_slots[slot].rate_of
        if name in given:
            return given[name]
        source = None if base is None else find(base)
        if base is None or source is None:
            return None
        return _rate(source, description.inputs[base], name)

    own = [find(slot) for slot in range(len(description.inputs))]
    values = [
        slot.default if scalar is None else scalar for scalar, slot in zip(own, description.input_slots, strict=True)
    ]
    filled = _or_unneeded(values, needed)
    missing = [name for name, scalar in zip(description.inputs, filled, strict=True) if scalar is None]
    if missing:
        raise SolveError(
            f"r gives no value to the inputs without a default {', '.join(missing)}; add them to the mapping"
        )
    return [scalar for scalar in filled if scalar is not None]


def _rate(source: Scalar, name: str, rate: str) -> Scalar:
    if is_polynomial(source):
        return derivative(source, f"input {name}, whose rate {rate} is needed,")
    if callable(source):
        raise SolveError(
            f"input {name} is a Python callable, from which its rate {rate} does not follow: give {rate} as well, or "
            f"{name} as a spline"
        )
    return 0.0


def _function(scalar: Scalar) -> Callable[[float], Any]:
    if is_polynomial(scalar):
        return lambda t: value_at(scalar, t)[0]
    return scalar if callable(scalar) else lambda t: scalar


def _call_compiled(source: Any, t: float, n_r: int) -> Array:
    """Values of a C function of inputs, whose signature the module has checked."""
    # A LowLevelCallable is a tuple that hides its capsule.
    capsule = tuple.__getitem__(source, 0) if isinstance(source, tuple) else source
    api = ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))(capsule)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    context = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", api))
    values = np.zeros(max(n_r, 1))
    function = _SIGNATURE(pointer(capsule, name))
    function(t, values.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), context(capsule))
    return values[:n_r]
