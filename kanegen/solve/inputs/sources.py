"""The inputs ``r`` of an integration, in the forms that the compiled integrator evaluates."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.feedback.laws import ActiveLaws, Values
from kanegen.solve.inputs.instants import Changes, Signal
from kanegen.solve.inputs.polynomials import combined, derivative, from_scipy, is_polynomial, table, value_at
from kanegen.solve.values import by_name, number

Scalar = Any
"""One input of a run: a number, a ``PPoly`` of one value, or a Python callable."""

ACCEPTED = (
    "an array (n_r,), a table (times, values), a scipy spline, a mapping from input names to these, "
    "a scipy.LowLevelCallable, a Python callable r(t) or r(t, q, u), or a kanegen.Signal of a function"
)

_REAL, _REALS, _DATA = ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p
_OF_TIME = ctypes.CFUNCTYPE(None, _REAL, _REALS, _DATA)
_OF_STATE = ctypes.CFUNCTYPE(None, _REAL, _REALS, _REALS, _REALS, _DATA)

State = tuple[Any, ...]
"""(q, u), or (q, u, s) of a model with states."""


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Inputs of a run.

    ``compiled``: the module's ``Inputs``. ``function`` gives their values (n_r,); its ``n_arguments`` are t, or t, q,
    u, or t, q, u, s. ``controls``: sources of inputs that take their place, the module's ``Control``. ``laws``: the
    feedback laws that determine inputs, None without; the values are then those of the laws. ``without_laws``: the same
    inputs with zeros for these. ``scalars``: each input by itself, if it is known. ``held``: indices of the inputs
    whose values are held between samples. ``interval``: the first and the last time of a table or spline.
    ``changes``: what is known to change in time. ``given``: what the user gave for an input, by index.
    """

    compiled: Any
    function: Callable[..., Any]
    n_arguments: int = 1
    controls: tuple[Any, ...] = ()
    laws: ActiveLaws | None = None
    without_laws: RunInputs | None = None
    scalars: tuple[Scalar, ...] | None = None
    held: tuple[int, ...] = ()
    interval: tuple[float, float] | None = None
    changes: Changes = field(default_factory=Changes)
    given: Mapping[int, Any] = field(default_factory=dict)
    _known: dict[float, Any] = field(default_factory=dict)

    @property
    def of_state(self) -> bool:
        """Whether the values depend on the state."""
        return self.n_arguments > 1

    def require_span(self, t0: float, t1: float) -> None:
        """Raise `SolveError` if a table or spline does not reach from ``t0`` to ``t1``."""
        if self.interval is not None and (min(t0, t1) < self.interval[0] or max(t0, t1) > self.interval[1]):
            first, last = self.interval
            raise SolveError(f"the inputs are given for t from {first!r} to {last!r}; the run needs {t0!r} to {t1!r}")

    def at(self, t: float, state: State | None = None) -> Any:
        """The values (n_r,) at ``t``, where the state is ``state``.

        A function of the time is not called again at the same time: it may count its samples.
        Raises `SolveError` if the inputs depend on the state, and it is not given.
        """
        if self.n_arguments == 1:
            values = self._known.get(t)
            if values is None:
                values = self.function(t)
                self._known.clear()
                self._known[t] = values
            return values
        if state is None:
            raise SolveError(
                "r depends on the state, which is not known where these inputs are needed: give the complete start of "
                "the run, or functions of the time"
            )
        copies = (np.array(part, dtype=np.float64) for part in state)
        return self.function(t, *list(copies)[: self.n_arguments - 1])


def run_inputs(
    module: Evaluator,
    description: Description,
    r: Any,
    needed: frozenset[int] | None = None,
    law_values: Values | None = None,
) -> RunInputs:
    """The inputs that ``r`` describes; inputs with indices in ``needed`` (None: all) must have a value.

    ``None``: the defaults; an array (n_r,): constant; ``(times, values)``: linear interpolation of (n,) and
    (n, n_r); ``PPoly``, ``CubicSpline``, ``BSpline`` of (n_r,) values; ``scipy.LowLevelCallable`` with the
    signature ``void (double t, double *r, void *user_data)`` or ``void (double t, const double *q, const double *u,
    double *r, void *user_data)``, where the states s follow u in memory; a Python callable ``r(t) -> (n_r,)``,
    ``r(t, q, u)`` or, in a model with states, ``r(t, q, u, s)``, which is slow; the arguments that it requires decide.
    If the model has one input, all of these can have scalar values. A mapping from names or symbols of inputs gives
    each a number, a table, a spline or a callable with a scalar value: ``{"force": (times, values)}``. An input that is
    not in the mapping is the derivative of the input whose rate it is, or has the value of its law, or its default.
    A `Signal` adds breakpoints to a function, in both places. ``law_values(t, q, u, r, s)`` are the values of all laws;
    None: laws are refused. `RunInputs` are returned unchanged.

    Raises `SolveError` for anything else, missing values, unknown names, wrong shapes and values that are not finite.
    """
    if isinstance(r, RunInputs):
        return r
    if isinstance(r, Signal):
        return replace(run_inputs(module, description, r.function), changes=Changes((), r.breakpoints))
    if r is None or isinstance(r, Mapping):
        return _by_name(module, description, r or {}, needed, law_values)
    if type(r) is tuple and any(map(np.iterable, r)):
        return _whole(r, _piecewise(module, table(r, "the input table"), description), description)
    if (spline := from_scipy(r, "the input spline")) is not None:
        return _whole(r, _piecewise(module, spline, description), description)
    if type(r).__name__ in ("LowLevelCallable", "PyCapsule"):
        compiled = module.Inputs.compiled(r)
        call = partial(_call_compiled, r, len(description.inputs), compiled.of_state)
        return RunInputs(compiled, call, (4 if description.states else 3) if compiled.of_state else 1)
    if callable(r):
        n_arguments = count_arguments(r, "r", bool(description.states))
        return RunInputs(module.Inputs.python(r, n_arguments), partial(_values, r, description.inputs), n_arguments)
    if isinstance(r, (str, bytes)):
        raise SolveError(f"r is {r!r}; expected {ACCEPTED}")
    return _constant(module, r)


def _constant(module: Evaluator, values: Any) -> RunInputs:
    compiled = module.Inputs.constant(values)  # checks them
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)  # several runs can share it
    return RunInputs(compiled, lambda t: array, scalars=tuple(array.tolist()))


def _whole(r: Any, inputs: RunInputs, description: Description) -> RunInputs:
    """The inputs of which one table or spline ``r`` gives all."""
    return replace(inputs, given=dict.fromkeys(range(len(description.inputs)), r))


def _piecewise(module: Evaluator, polynomial: Any, description: Description) -> RunInputs:
    names, width = description.inputs, polynomial.c.shape[2]
    if width != len(names):
        expected = ", ".join(names) or "the model has no inputs"
        raise SolveError(f"r gives {width} value(s) at each time; expected {len(names)}: {expected}")
    compiled, interval = module.Inputs.piecewise(polynomial.x, polynomial.c), (polynomial.x[0], polynomial.x[-1])
    first, last = float(interval[0]), float(interval[1])
    return RunInputs(compiled, partial(value_at, polynomial), interval=(first, last), changes=Changes((polynomial,)))


def _by_name(
    module: Evaluator,
    description: Description,
    r: Mapping[Any, Any],
    needed: frozenset[int] | None,
    law_values: Values | None,
) -> RunInputs:
    names = description.inputs
    named = by_name(r, names, "input")
    given = {name: _scalar(value, name) for name, value in named.items()}
    scalars, slots = _filled(given, description, needed)
    inputs = of_scalars(module, description, scalars)
    breakpoints = tuple(t for value in named.values() if isinstance(value, Signal) for t in value.breakpoints)
    changes = replace(inputs.changes, breakpoints=breakpoints)
    by_index = {names.index(name): value for name, value in named.items()}
    inputs = replace(inputs, scalars=tuple(scalars), changes=changes, given=by_index)
    if not slots:
        return inputs
    if law_values is None:
        by_law = description.input_names(slots)
        raise SolveError(
            f"the feedback laws of {', '.join(by_law)} are not evaluated here: give values, r={{{by_law[0]!r}: ...}}, "
            "or name them in free_inputs= if the method has it"
        )
    return with_laws(module, inputs, ActiveLaws(slots, description, law_values))


def with_laws(module: Evaluator, inputs: RunInputs, laws: ActiveLaws) -> RunInputs:
    """The inputs with the values of laws, which are computed after the others."""
    function, n_arguments = laws.function(inputs.function, inputs.n_arguments), 4 if laws.description.states else 3
    controls = (*inputs.controls, *laws.controls(module))
    held, changes = (*inputs.held, *laws.held), inputs.changes
    return RunInputs(inputs.compiled, function, n_arguments, controls, laws, inputs, held=held, changes=changes)


def of_scalars(module: Evaluator, description: Description, scalars: Sequence[Scalar]) -> RunInputs:
    """The inputs from a scalar for each of them."""
    names = description.inputs
    if not all(isinstance(scalar, float) or is_polynomial(scalar) for scalar in scalars):
        counts = [
            count_arguments(scalar, f"input {name}", bool(description.states)) if _is_function(scalar) else 1
            for name, scalar in zip(names, scalars, strict=True)
        ]
        functions = [(_function(scalar), count) for scalar, count in zip(scalars, counts, strict=True)]

        def evaluate(*arguments: Any) -> list[float]:
            return [float(function(*arguments[:count])) for function, count in functions]

        changes = Changes(tuple(filter(is_polynomial, scalars)))
        return RunInputs(module.Inputs.python(evaluate, max(counts)), evaluate, max(counts), changes=changes)
    if any(map(is_polynomial, scalars)):
        return _piecewise(module, combined(scalars, names), description)
    return _constant(module, scalars)


def _values(function: Callable[..., Any], names: Sequence[str], t: float, *state: Any) -> Array:
    """The inputs (n_r,) that a Python callable returns. Raises `SolveError` for values of another shape."""
    values = real_array(function(t, *state), f"r at t = {t!r} s")
    values = values.reshape(1) if values.ndim == 0 and len(names) == 1 else values
    if values.shape != (len(names),):
        raise SolveError(f"r has the shape {values.shape} at t = {t!r} s; expected ({len(names)},): {', '.join(names)}")
    return values


def _is_function(scalar: Scalar) -> bool:
    return callable(scalar) and not is_polynomial(scalar)


def count_arguments(function: Callable[..., Any], what: str, has_states: bool) -> int:
    """Number of arguments with which a function of (t), (t, q, u) or (t, q, u, s) is called: those that it requires.

    Functions without a signature, such as some that are written in C, are functions of t. Raises `SolveError` for
    other numbers.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    count = len(required) or min(len(positional), 1)
    if count in (1, 3, *((4,) if has_states else ())) and not named:
        return count
    expected = "(t), (t, q, u) or (t, q, u, s)" if has_states else "(t) or (t, q, u)"
    missing = "" if has_states else "; the model has no states s"
    found = ", ".join([*(p.name for p in required), *(f"{name}=" for name in named)]) or "nothing, or any number"
    raise SolveError(
        f"{what} is a callable that requires {found}; expected the arguments {expected}{missing}: the arguments "
        "without a default decide what it is called with"
    )


def _scalar(value: Any, name: str) -> Scalar:
    """One input as a number, a polynomial of one value, or a callable."""
    what = f"input {name}"
    value = value.function if isinstance(value, Signal) else value
    polynomial = table(value, what) if type(value) is tuple else from_scipy(value, what)
    if polynomial is not None:
        if polynomial.c.shape[2] != 1:
            raise SolveError(f"{what} gives {polynomial.c.shape[2]} values at each time; expected one")
        return polynomial
    if isinstance(value, tuple):
        raise SolveError(f"{what} is a {type(value).__name__}: a C function must give all inputs, r=LowLevelCallable")
    return value if callable(value) else number(value, what)


def _filled(
    given: dict[str, Scalar], description: Description, needed: frozenset[int] | None
) -> tuple[list[Scalar], tuple[int, ...]]:
    """A scalar for every input: the given scalar, the derivative of a given scalar, or the default.

    Inputs without these that have a law, or that no function reads, are zero; the indices of the former follow.
    """
    names, slots = description.inputs, description.input_slots

    def find(k: int) -> Scalar | None:
        if names[k] in given:
            return given[names[k]]
        base = slots[k].rate_of
        source = None if base is None else find(base)
        return None if base is None or source is None else _rate(source, names[base], names[k])

    values: list[Scalar] = []
    missing, by_law = [], []
    for k, (name, slot) in enumerate(zip(names, slots, strict=True)):
        own = find(k)
        value = slot.default if own is None else own
        if value is None and slot.law is not None:
            by_law.append(k)
        elif value is None and (needed is None or k in needed):
            missing.append(name)
        values.append(0.0 if value is None else value)
    if missing:
        advice = "add them to the mapping r" if given else f"pass r= ({ACCEPTED})"
        raise SolveError(f"the inputs {', '.join(missing)} have no value: {advice}, or give each Input a default")
    return values, tuple(by_law)


def _rate(source: Scalar, name: str, rate: str) -> Scalar:
    if is_polynomial(source):
        return derivative(source, f"input {name}, whose rate {rate} is needed,")
    if callable(source):
        raise SolveError(
            f"input {name} is a Python callable, which cannot be differentiated to get its rate {rate}: give {rate} as "
            f"well, or {name} as a spline"
        )
    return 0.0


def _function(scalar: Scalar) -> Callable[[float], Any]:
    if is_polynomial(scalar):
        return lambda t: value_at(scalar, t)[0]
    return scalar if callable(scalar) else lambda t: scalar


def _call_compiled(source: Any, n_r: int, of_state: bool, t: float, *state: Any) -> Array:
    """Inputs at ``t`` from a C function; the module has checked its signature."""
    # A LowLevelCallable is a tuple that forbids indexing; its first element is the capsule.
    capsule = tuple.__getitem__(source, 0) if isinstance(source, tuple) else source
    api = ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))(capsule)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    context = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", api))
    values = np.zeros(max(n_r, 1))
    arguments = []
    if of_state:
        q, *rest = (np.asarray(part, dtype=np.float64) for part in state)
        arguments = [np.ascontiguousarray(q), np.concatenate(rest)]
    function = (_OF_STATE if of_state else _OF_TIME)(pointer(capsule, name))
    function(t, *(array.ctypes.data_as(_REALS) for array in (*arguments, values)), context(capsule))
    return values[:n_r]
