"""The inputs ``r`` of an integration, in the forms that the compiled integrator evaluates; and samples of them.

Tables and splines become piecewise polynomials (``scipy.interpolate.PPoly``), whose coefficients ``c`` have the shape
(k, n, m), for m values. ``scipy.interpolate`` is imported only where it is needed, because the import takes 0.25 s.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import factorial
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.feedback.laws import ActiveLaws, Values
from kanegen.solve.values import by_name, number, positive, real_array

Scalar = Any
"""One input of a run: a number, a ``PPoly`` of one value, or a Python callable."""

ACCEPTED = (
    "an array (n_r,), a table (times, values), a scipy spline, a mapping from input names to these, "
    "a scipy.LowLevelCallable or a Python callable r(t) or r(t, q, u)"
)

_REAL, _REALS, _DATA = ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p
_OF_TIME = ctypes.CFUNCTYPE(None, _REAL, _REALS, _DATA)
_OF_STATE = ctypes.CFUNCTYPE(None, _REAL, _REALS, _REALS, _REALS, _DATA)
_JUMP = 1e-9
"""Jumps below this fraction of the magnitude are rounding errors of the spline's coefficients."""

State = tuple[Any, ...]
"""(q, u), or (q, u, s) of a model with states."""


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Inputs of a run.

    ``compiled``: the module's ``Inputs``. ``function`` gives their values (n_r,); its ``n_arguments`` are t, or t, q,
    u, or t, q, u, s. ``controls``: sources of inputs that take their place, the module's ``Control``. ``laws``: the
    feedback laws that determine inputs, None without; the values are then those of the laws. ``without_laws``: the same
    inputs with zeros for these. ``scalars``: each input by itself, if it is known.
    """

    compiled: Any
    function: Callable[..., Any]
    n_arguments: int = 1
    controls: tuple[Any, ...] = ()
    laws: ActiveLaws | None = None
    without_laws: RunInputs | None = None
    scalars: tuple[Scalar, ...] | None = None
    _known: dict[float, Any] = field(default_factory=dict)

    @property
    def of_state(self) -> bool:
        """Whether the values depend on the state."""
        return self.n_arguments > 1

    @property
    def is_sampled(self) -> bool:
        """Whether some values act between samples."""
        return any(control.sample_time > 0.0 for control in self.controls)

    def at(self, t: float, state: State | None = None) -> Any:
        """The values (n_r,) at ``t``, where the state is ``state``.

        A function of the time is not called again at the same time: it may count its samples.
        Raises `SolveError` if the inputs depend on the state, and it is not given.
        """
        if self.n_arguments == 1:
            if t not in self._known:
                self._known.clear()
                self._known[t] = self.function(t)
            return self._known[t]
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
    ``law_values(t, q, u, r, s)`` are the values of all laws. `RunInputs` are returned unchanged.

    Raises `SolveError` for anything else, missing values, unknown names, wrong shapes and values that are not finite.
    """
    if isinstance(r, RunInputs):
        return r
    if r is None or isinstance(r, Mapping):
        return _by_name(module, description, r or {}, needed, law_values)
    if type(r) is tuple and any(np.ndim(item) for item in r):
        return _piecewise(module, table(r, "the input table"), description)
    if (spline := from_scipy(r, "the input spline")) is not None:
        return _piecewise(module, spline, description)
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
    return RunInputs(compiled, lambda t: array, scalars=tuple(array.tolist()))


def _piecewise(module: Evaluator, polynomial: Any, description: Description) -> RunInputs:
    names, width = description.inputs, polynomial.c.shape[2]
    if width != len(names):
        expected = ", ".join(names) or "the model has no inputs"
        raise SolveError(f"r gives {width} value(s) at each time; expected {len(names)}: {expected}")
    return RunInputs(module.Inputs.piecewise(polynomial.x, polynomial.c), partial(value_at, polynomial))


def _by_name(
    module: Evaluator,
    description: Description,
    r: Mapping[Any, Any],
    needed: frozenset[int] | None,
    law_values: Values | None,
) -> RunInputs:
    names = description.inputs
    given = {name: _scalar(value, name) for name, value in by_name(r, names, "input").items()}
    scalars, slots = _filled(given, description, needed)
    inputs = replace(_of_scalars(module, description, scalars), scalars=tuple(scalars))
    if not slots or law_values is None:
        return inputs
    return _with_laws(module, inputs, ActiveLaws(slots, description, law_values))


def _with_laws(module: Evaluator, inputs: RunInputs, laws: ActiveLaws) -> RunInputs:
    """The inputs with the values of laws, which are computed after the others."""
    function, n_arguments = laws.function(inputs.function, inputs.n_arguments), 4 if laws.description.states else 3
    controls = (*inputs.controls, *laws.controls(module))
    return RunInputs(inputs.compiled, function, n_arguments, controls, laws, inputs)


def _of_scalars(module: Evaluator, description: Description, scalars: Sequence[Scalar]) -> RunInputs:
    names = description.inputs
    if not all(isinstance(scalar, float) or is_polynomial(scalar) for scalar in scalars):
        counts = [
            count_arguments(scalar, f"input {name}", bool(description.states)) if _is_function(scalar) else 1
            for name, scalar in zip(names, scalars, strict=True)
        ]
        functions = [(_function(scalar), count) for scalar, count in zip(scalars, counts, strict=True)]

        def evaluate(*arguments: Any) -> list[float]:
            return [float(function(*arguments[:count])) for function, count in functions]

        return RunInputs(module.Inputs.python(evaluate, max(counts)), evaluate, max(counts))
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


def held(
    module: Evaluator,
    description: Description,
    inputs: RunInputs,
    times: tuple[float, float],
    start: tuple[float, State],
    needed: Collection[int],
) -> RunInputs:
    """The inputs, sampled at multiples of the sample time after the start of a run and held in between.

    An input of which a rate is in ``needed`` (indices) stays continuous: a value that is held has no rate.

    Parameters
    ----------
    times
        Sample time and delay (s), from `sample_times`: the values for the state at t_k act from t_k + delay on. Before
        the first of them acts, inputs have their defaults or, without one, the values of the first sample.
    start
        Time and state at the start of the run, from which the first sample is computed.

    Raises
    ------
    SolveError
        If the first sample cannot be computed, has the wrong shape or is not finite, and if inputs that must stay
        continuous are not given by themselves.
    """
    laws, (sample_time, delay), own = inputs.laws, times, inputs.without_laws or inputs
    first, rated = _first_sample(own, description, *start), _with_rates(description, needed)
    others = _of_scalars(module, description, _unsampled(own, description, rated))
    defaults = (slot.default for slot in description.input_slots)
    before = np.array([np.nan if default is None else default for default in defaults])
    excluded = {*rated, *(() if laws is None else laws.slots)}
    slots = [k for k in range(len(first)) if k not in excluded]
    infinite = np.full(len(slots), np.inf)
    options = {"sample_time": sample_time, "delay": delay, "before": before[slots], "first": first[slots]}
    control = module.Control(own.compiled, slots, -infinite, infinite, **options)
    acting = first if delay == 0.0 else np.where(np.isnan(before), first, before)

    def values(t: float, *state: Any) -> Array:
        r = np.array(others.function(t, *state), dtype=np.float64)
        r[slots] = acting[slots]
        return r

    sampled = RunInputs(others.compiled, values, others.n_arguments, (control,))
    return sampled if laws is None else _with_laws(module, sampled, laws)


def _first_sample(inputs: RunInputs, description: Description, t: float, state: State) -> Array:
    try:
        first = np.array(inputs.at(t, state), dtype=np.float64)
    except SolveError:
        raise
    except Exception as error:
        raise SolveError(f"r cannot be evaluated at the start, t = {t!r} s: {type(error).__name__}: {error}") from error
    for name, value in zip(description.inputs, first.tolist(), strict=True):
        number(value, f"{name} (r at t = {t!r} s)")
    return first


def _with_rates(description: Description, needed: Collection[int]) -> set[int]:
    """Indices of the inputs of which rates are needed, and of these rates."""
    rated, slots = set(), description.input_slots
    for k in needed:
        base = slots[k].rate_of if k < len(slots) else None  # hidden inputs follow
        while base is not None:
            rated |= {k, base}
            base = slots[base].rate_of
    return rated


def _unsampled(inputs: RunInputs, description: Description, rated: Collection[int]) -> list[Scalar]:
    """A scalar for every input: those that stay continuous, and zeros."""
    names = [description.inputs[k] for k in sorted(rated)]
    if rated and inputs.scalars is None:
        raise SolveError(
            f"the equations need rates of inputs, which values that are held do not have: give r as a mapping, in "
            f"which {', '.join(names)} stay continuous, or leave out sample_time"
        )
    return [inputs.scalars[k] if inputs.scalars and k in rated else 0.0 for k in range(len(description.inputs))]


def sample_times(sample_time: float | None, delay: float | None) -> tuple[float, float]:
    """The sample time and the delay (s) as numbers; 0: inputs are not sampled, or not delayed.

    Raises `SolveError` for numbers that make no sense, and for a delay of inputs that are not sampled.
    """
    if sample_time is not None:
        positive(sample_time, "sample_time", "a positive number of seconds")
    if delay is None:
        return float(sample_time or 0.0), 0.0
    if number(delay, "delay") < 0.0:
        raise SolveError(f"delay is {delay!r}; expected a number of seconds that is not negative")
    if sample_time is None:
        raise SolveError(
            f"delay is {delay!r}, but sample_time is not given: only sampled values can be delayed, because with a "
            "continuous delay the derivative of the state would depend on earlier states; give sample_time="
        )
    return float(sample_time), float(delay)


def is_polynomial(value: Any) -> bool:
    """Whether ``value`` is a ``PPoly``."""
    module: Any = sys.modules.get("scipy.interpolate")
    return module is not None and isinstance(value, module.PPoly)


def value_at(polynomial: Any, t: float) -> Array:
    """Values (m,) at ``t``. Raises `SolveError` outside the interval on which the polynomial is defined."""
    first, last = _span(polynomial)
    slack = _JUMP * (last - first)
    if not first - slack <= t <= last + slack:
        raise SolveError(f"an input is given for t from {first!r} to {last!r} s, but is needed at t = {t!r} s")
    values: Array = polynomial(t, extrapolate=True)
    return values


def derivative(polynomial: Any, what: str) -> Any:
    """The time derivative; ``what`` names the function in the error.

    Raises `SolveError` if the values jump, because the derivative would contain an impulse.
    """
    ends = np.polyval(polynomial.c[:, :-1], np.diff(polynomial.x)[:-1, None])
    jumps = np.abs(polynomial.c[-1, 1:] - ends)
    if jumps.max(initial=0.0) > _JUMP * np.abs(polynomial.c[-1]).max(initial=0.0):
        place = int(np.argmax(jumps.max(axis=1)))
        raise SolveError(
            f"{what} jumps by {jumps[place].max():.6g} at t = {float(polynomial.x[place + 1])!r} s and has no "
            "derivative there: give a smoother spline, or give the derivative as well"
        )
    return polynomial.derivative()


def table(given: Any, what: str) -> Any:
    """Linear interpolation of ``(times, values)``: (n,) and (n,) or (n, m), n >= 2, times increasing.

    Raises `SolveError` for anything else.
    """
    if len(given) != 2:
        raise SolveError(f"{what} is a tuple of {len(given)}; expected a table (times, values)")
    times, values = _real(given[0], f"the times of {what}"), _real(given[1], f"the values of {what}")
    if times.ndim != 1 or times.size < 2 or values.ndim not in (1, 2) or values.shape[0] != times.size:
        raise SolveError(
            f"{what} has times {times.shape} and values {values.shape}; expected (n,) and (n,) or (n, n_r), n >= 2"
        )
    values = values.reshape(times.size, -1)
    with np.errstate(all="ignore"):  # the times are checked next
        slopes = np.diff(values, axis=0) / np.diff(times)[:, None]
    return _polynomial(np.stack([slopes, values[:-1]]), times, what)


def from_scipy(given: Any, what: str) -> Any:
    """A ``PPoly`` (``CubicSpline`` ...), ``BPoly`` or ``BSpline`` as a ``PPoly``, None for other objects."""
    # If the module is not imported, no such object exists.
    module: Any = sys.modules.get("scipy.interpolate")
    if module is None or not isinstance(given, (module.BSpline, module.BPoly, module.PPoly)):
        return None
    if isinstance(given, module.BSpline):
        x = np.unique(given.t[given.k : len(given.t) - given.k])
        c = _taylor(given, given.k, x)  # PPoly.from_spline accepts scalar splines only
    else:
        polynomial = module.PPoly.from_bernstein_basis(given) if isinstance(given, module.BPoly) else given
        x, c = polynomial.x, polynomial.c
    x, c = _real(x, f"the breakpoints of {what}"), _real(c, f"the coefficients of {what}")
    if c.ndim > 3:
        raise SolveError(f"{what} is a spline of values of shape {c.shape[2:]}; expected () or (n_r,)")
    return _polynomial(c.reshape(*c.shape[:2], -1), x, what)


def combined(parts: Sequence[Any], names: Sequence[str]) -> Any:
    """One polynomial of all values, on the times that all ``parts`` (polynomials of one value, or numbers) cover.

    Raises `SolveError` when they have no time in common.
    """
    spans = {name: _span(part) for name, part in zip(names, parts, strict=True) if is_polynomial(part)}
    first, last = max(span[0] for span in spans.values()), min(span[1] for span in spans.values())
    if not first < last:
        intervals = ", ".join(f"{name} from {start!r} to {end!r}" for name, (start, end) in spans.items())
        raise SolveError(f"the inputs have no time in common: {intervals} s")
    polynomials = [part for part in parts if is_polynomial(part)]
    x = np.unique(np.concatenate([part.x for part in polynomials]))
    x = x[(x >= first) & (x <= last)]
    degree = max(part.c.shape[0] for part in polynomials) - 1
    c = np.zeros((degree + 1, x.size - 1, len(parts)))
    for column, part in enumerate(parts):
        if is_polynomial(part):
            c[:, :, column] = _taylor(part, degree, x)[:, :, 0]
        else:
            c[-1, :, column] = part
    return _polynomial(c, x)


def _taylor(function: Callable[[Array, int], Array], degree: int, x: Array) -> Array:
    """Taylor coefficients (degree + 1, n, ...) at the left ends of the pieces between ``x`` (n + 1,)."""
    return np.stack([function(x[:-1], power) / factorial(power) for power in range(degree, -1, -1)])


def _polynomial(c: Array, x: Array, what: str = "the inputs") -> Any:
    from scipy.interpolate import PPoly

    if not (np.diff(x) > 0.0).all():
        raise SolveError(f"the times of {what} are not strictly increasing")
    return PPoly(c, x)


def _span(polynomial: Any) -> tuple[float, float]:
    """First and last time."""
    return float(polynomial.x[0]), float(polynomial.x[-1])


def _real(value: Any, what: str) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise SolveError(f"{what} cannot be read as an array: {error}") from error
    if array.dtype.kind not in "fiu":
        raise SolveError(f"{what} have the type {array.dtype.name}; expected real numbers")
    if not np.isfinite(array).all():
        raise SolveError(f"{what} contain NaN or infinity; every entry must be finite")
    return array.astype(np.float64)
