"""The back end ``"interpreted"``: the program of a model evaluated in Python, for machines without a C compiler.

It is about a thousand times slower than compiled code and serves as an independent reference. It integrates with SciPy
(``dopri5`` as ``RK45``, ``dop853`` as ``DOP853``). It has no contacts, events, servo-constraints in runs,
projections, impulses or inverse dynamics, and does not locate the kinks of feedback laws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar, Final, NoReturn, Unpack, cast

import numpy as np

from kanegen.arrays import Array
from kanegen.backends import consistent
from kanegen.backends.cython.extension import c_sources
from kanegen.backends.instants import Instants
from kanegen.backends.parts import remember, request_of
from kanegen.backends.points import Point, Reading, read_point, rows_of, with_defaults
from kanegen.backends.protocol import DeriveMore, Evaluator, Generated, ModuleRun, Request
from kanegen.backends.residual_units import with_units
from kanegen.backends.scipy_runs import SUPPORTED, Run
from kanegen.codegen.description import Description
from kanegen.codegen.sources import Sources
from kanegen.codes import Status
from kanegen.errors import BuildError, SolveError
from kanegen.graph.functions import Domain
from kanegen.graph.interpret import PYTHON, evaluate
from kanegen.model.inputs import FORCES, FREE
from kanegen.program.interpret import interpret
from kanegen.program.records import Program

METHODS: Final[Mapping[str, str]] = MappingProxyType({"dopri5": "RK45", "dop853": "DOP853"})
"""Methods of :meth:`kanegen.Solver.integrate` and the corresponding solvers of SciPy."""

_SAME_INSTANT: Final = 1e-9
"""Instants that differ by less than this fraction of the sample time are the same, as in kg_run.h."""


def build_model(request: Request, options: Any = None) -> InterpretedModel:
    """Derive a model and wrap its program. ``options`` (of a compiler) are ignored.

    Raises
    ------
    BuildError
        For models with contacts or events.
    """
    program = request.generated.program
    switches = request.generated.description.switches  # kinks, which the steps of SciPy pass without locating them
    events = (event.name for event in program.events if event.name not in switches)
    names = [*(contact.name for contact in program.contacts), *events]
    if names:
        raise BuildError(
            f"backend 'interpreted' supports no contacts and events, but {program.name!r} has {', '.join(names)}: use "
            "backend='cython'"
        )
    remember(request.digest, request.derive_more)
    return InterpretedModel(request.digest, request.generated, request.derive_more)


class OutsideTableError(SolveError):
    """The argument of a table is beyond its ends."""


class InterpretedModel:
    """A model that was built by this back end (:class:`kanegen.backends.protocol.Build`)."""

    backend: ClassVar[str] = "interpreted"
    path = None

    def __init__(self, digest: str, generated: Generated, derive_more: DeriveMore | None = None) -> None:
        self.digest = digest
        self._generated, self._derive_more = generated, derive_more
        self._parts: dict[tuple[str, ...], InterpretedModel] = {}
        self.module = cast(Evaluator, Interpreted(generated.program, digest))

    def __reduce__(self) -> tuple[Any, ...]:
        return InterpretedModel, (self.digest, self._generated), {"_parts": self._parts}

    def more(self, names: tuple[str, ...]) -> InterpretedModel:
        """The functions of these names in the catalogue, which this model leaves out. Raises `BuildError`."""
        if names not in self._parts:
            self._parts[names] = build_model(request_of(names, self.digest, self.description.form, self._derive_more))
        return self._parts[names]

    def batch(self, name: str) -> NoReturn:
        """Raise `BuildError`: evaluation in batches needs a compiler."""
        raise BuildError(f"backend 'interpreted' evaluates {name} at one state only: use backend='cython' for batches")

    def variations(self, name: str, method: str) -> NoReturn:
        """Raise `BuildError`: sensitivities of motions need a compiler."""
        raise BuildError("backend 'interpreted' has no sensitivities of motions: use backend='cython'")

    def adjoint(self, names: tuple[str, str], method: str) -> NoReturn:
        """Raise `BuildError`: gradients of motions need a compiler."""
        raise BuildError("backend 'interpreted' has no gradients of motions: use backend='cython'")

    def many(self, function: str, method: str, quantity: str) -> None:
        """None: there is no vector unit to use. Raises `SolveError` for a method that `integrate` does not have."""
        _require_method(method)

    @property
    def sources(self) -> Sources:
        """The C sources of the model, which this back end does not compile."""
        return c_sources(self._generated, self.digest)

    @property
    def description(self) -> Description:
        """The description of the model for its solver."""
        return self._generated.description


@dataclass(frozen=True)
class Values:
    """Parameters (n_p,), gains (n_g,), and the indices of the constants that are not finite with these values."""

    parameters: Array
    gains: Array
    undefined: tuple[int, ...] = ()
    complaint: str = (
        "divide by something that is zero for these parameters, or an expression has no value; give other values, or "
        'build with form="augmented" or "nonminimal", which admit parts without mass if the constraints determine how '
        "they move"
    )


@dataclass(frozen=True)
class Source:
    """Inputs of a run: a function of (t), (t, q, u) or (t, q, u, s) with values (n_r,), for 1, 3 or 4 arguments."""

    function: Callable[..., Any]
    n_arguments: int = 1

    def at(self, t: float, state: Sequence[Array]) -> Any:
        """The values at ``t`` in the state (q, u), or (q, u, s), of which the function gets copies."""
        return self.function(t, *(part.copy() for part in state[: self.n_arguments - 1]))


class Inputs:
    """Makes the inputs of a run."""

    @staticmethod
    def constant(values: Any) -> Source:
        """The same values at all times."""
        array = np.array(values, dtype=np.float64)
        return Source(lambda t: array)

    @staticmethod
    def piecewise(breakpoints: Any, coefficients: Any) -> Source:
        """Polynomials: coefficients (order, pieces, n_r), highest power first."""
        from scipy.interpolate import PPoly

        return Source(PPoly(coefficients, breakpoints))

    @staticmethod
    def compiled(source: Any) -> NoReturn:
        """Raises `SolveError`, because this back end cannot call compiled code."""
        _refuse("inputs in C")

    @staticmethod
    def python(source: Callable[..., Any], n_arguments: int = 1) -> Source:
        """A callable ``r(t)``, ``r(t, q, u)`` or ``r(t, q, u, s)``."""
        return Source(source, n_arguments)


class Control:
    """Inputs that are sampled during a run; the arguments are those of ``Control`` of a compiled module."""

    def __init__(
        self,
        law: Any,
        slots: Sequence[int],
        low: Any,
        high: Any,
        sample_time: float = 0.0,
        start: Any = (),
        free: Any = None,
        delay: float = 0.0,
        before: Any = None,
        first: Any = None,
        places: Sequence[int] | None = None,
    ) -> None:
        if law is None:
            _refuse("controls in the state")
        self._law, self._slots, self._limits = law, list(slots), (np.array(low), np.array(high))
        self._places = self._slots if isinstance(law, Source) else list(range(len(slots)) if places is None else places)
        self.sample_time, self._delay, self._first = sample_time, delay, first
        self._before = np.full(len(self._slots), np.nan) if before is None else np.array(before, dtype=np.float64)
        self._rows: list[tuple[float, float, Array]] = []

    @property
    def samples(self) -> Array:
        """Time, time from which it acts, and values of each sample; before them the values before the first acts."""
        rows = [[t, begins, *values] for t, begins, values in self._rows]
        if self._delay > 0.0:
            rows.insert(0, [np.nan, -np.inf, *self._before])
        return np.array(rows).reshape(-1, 2 + len(self._slots))

    def begin(self, t0: float, t1: float) -> None:
        """Start a run, without samples. Raises `SolveError` for samples that do not change t or go back in time."""
        self._rows = []
        if self.sample_time == 0.0:
            return
        if not self.sample_time > 1e-14 * max(abs(t0), abs(t1)):
            raise SolveError(
                f"sample_time is {self.sample_time!r}; expected more seconds than the rounding errors of t from {t0!r} "
                f"to {t1!r}"
            )
        if t1 < t0:
            raise SolveError(
                f"sampled controls cannot run backwards, from t = {t0!r} to {t1!r} s: leave out sample_time"
            )

    def sample(self, t0: float, t: float, inputs: Callable[[Any], Array]) -> float:
        """Take the sample that is due at ``t``; returns the next instant. ``inputs`` evaluates a source or a law."""
        if self.sample_time == 0.0:
            return np.inf
        slack = _SAME_INSTANT * self.sample_time
        if self._instant(t0) - t <= slack:
            known = self._first is not None and not self._rows
            values = np.array(self._first) if known else inputs(self._law)[self._places]
            values = np.clip(values, *self._limits)
            if not self._rows:
                self._before = np.where(np.isnan(self._before), values, self._before)
            self._rows.append((t, self._instant(t0) + self._delay, values))
        return min([self._instant(t0), *(begins for _, begins, _ in self._rows if begins - t > slack)])

    def _instant(self, t0: float) -> float:
        return t0 + len(self._rows) * self.sample_time

    def write(self, t: float, inputs: Callable[[Any], Array], r: Array) -> None:
        """Write the values that act at ``t`` into the inputs ``r`` (n_r,)."""
        if self.sample_time == 0.0:
            r[self._slots] = np.clip(inputs(self._law)[self._places], *self._limits)
            return
        slack = _SAME_INSTANT * self.sample_time
        begun = [values for _, begins, values in self._rows if begins - t <= slack]
        r[self._slots] = begun[-1] if begun else self._before


class Function:
    """One function of the model with parameters and default inputs, NaN where an input has none."""

    repartitioned = 0

    def __init__(
        self,
        module: Interpreted,
        name: str,
        prepared: Values,
        inputs: Any = None,
        named: Callable[..., tuple[Any, ...]] | None = None,
        states: Any = None,
    ) -> None:
        if name not in module.FUNCTIONS:
            raise SolveError(
                f"{module.NAME} was built without the function {name!r}; it has {', '.join(module.FUNCTIONS)}"
            )
        self.name, self.prepared, self.shape = name, prepared, module.FUNCTIONS[name]
        self._module, self._named = module, named
        self._defaults = module.defaults(inputs, states)

    def value(
        self,
        t: Any,
        q: Any,
        u: Any,
        r: Any = None,
        s: Any = None,
        out: Any = None,
        forces: Any = None,
        free: Any = None,
    ) -> Any:
        """The value: a float, or an array of ``shape``, a new one or ``out``; with rows in an argument, (N, *shape)."""
        m = self._module
        if self._named is not None and (q is None or u is None or any(isinstance(x, Mapping) for x in (q, u, r, s))):
            q, u, r, s = self._named(q, u, r, s)
        given, n_rows = m.read(Point(t, q, u, r, s, forces, free))
        at = with_defaults(given, self._defaults, m.names, self.name)
        if n_rows is None:
            values = self._value(m.state(at))
        else:
            rows = [self._value_of_row(k, n_rows, row) for k, row in enumerate(rows_of(at, n_rows))]
            values = np.array(rows).reshape(n_rows, *self.shape)
        if out is not None:
            out[...] = values
            return out
        return values

    def _value(self, at: Point) -> Any:
        """The value at one state, whose arguments are arrays."""
        m = self._module
        values = {
            **{name: array.tolist() for name, array in at._replace(t=np.array([at.t]))._asdict().items()},
            "p": self.prepared.parameters.tolist(),
            "g": self.prepared.gains.tolist(),
        }
        status, numbers = interpret(m.program, self.name, values)
        place = f"(t={at.t!r}, q={at.q}, u={at.u})"
        if status == Status.OUTSIDE_TABLE:
            reason = m.outside(values) or _message(status)
            raise OutsideTableError(f"{self.name} cannot be evaluated: {reason} {place}")
        if status < 0:
            raise SolveError(f"{self.name} cannot be evaluated: {_message(status)} {place}")
        array = np.array(numbers, dtype=np.float64).reshape(self.shape)
        if not np.isfinite(array).all():
            entry = np.argwhere(~np.isfinite(array))[0].tolist()
            raise SolveError(f"{self.name} is not finite: {self.name}{entry} {place}")
        return array if self.shape else float(array)

    def _value_of_row(self, k: int, count: int, row: Point) -> Any:
        try:
            return self._value(_require_finite(row, self._module.names))
        except SolveError as error:
            raise SolveError(f"row {k} (of {count}, from 0): {error}") from None

    def pair(
        self,
        t: Any,
        q: Any,
        u: Any,
        r: Any = None,
        s: Any = None,
        out: Any = None,
        forces: Any = None,
        free: Any = None,
    ) -> tuple[Array, ...]:
        """``(q', u')`` of a right-hand side, and s' of a model with states."""
        rates = self._module.split(self.value(t, q, u, r, s, None, forces, free))
        if out is None:
            return rates
        for array, rate in zip(out, rates, strict=True):
            array[...] = rate
        return tuple(out)

    def with_units(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None) -> tuple[Array, Array]:
        """The residuals of constraints and their units at one state, each (n,)."""
        return with_units(lambda q, u: self.value(t, q, u, r, s), *self._module.checked_state(t, q, u))

    def ode(self, t: Any, y: Any, r: Any = None) -> Array:
        """``y'`` for ``y = (q, u, s)``."""
        q, u, *s = self._module.split(np.asarray(y))
        return np.asarray(self.value(t, q, u, r, *s))

    def low_level(self, r: Any = None) -> NoReturn:
        """Raises `SolveError`, because there is no C function."""
        _refuse("a C function of the right-hand side")


class Interpreted:
    """The functions of a program (:class:`kanegen.backends.protocol.Evaluator`)."""

    CONTACTS: tuple[str, ...] = ()
    EVENTS: tuple[str, ...] = ()
    IRREVERSIBLE_CONTACTS: tuple[str, ...] = ()
    IRREVERSIBLE_EVENTS: tuple[str, ...] = ()
    Inputs = Inputs
    Control = Control

    def __init__(self, program: Program, digest: str) -> None:
        symbols = program.symbols
        self.program = program
        self.NAME, self.DIGEST = program.name, digest
        self.COORDINATES, self.SPEEDS, self.STATES = symbols.coordinates, symbols.speeds, symbols.states
        self.INPUTS, self.PARAMETERS, self.N_GAINS = symbols.inputs, symbols.parameters, len(symbols.gains)
        self.names: Mapping[str, tuple[str, ...]] = {
            **{"q": symbols.coordinates, "u": symbols.speeds, "r": symbols.inputs, "s": symbols.states},
            **{FORCES: symbols.multipliers, FREE: symbols.free},
        }
        self.TABLES = tuple((table.label, table.lowest, table.highest) for table in program.tables)
        self.FUNCTIONS = {f.name: f.shape for f in program.functions if not f.internal}
        self.Function = partial(Function, self)

    def Prepared(
        self, parameters: Any, gains: Any = None, allowed: Iterable[int] = (), partial: bool = False
    ) -> Values:
        """Parameters and gains. Raises `SolveError` if constants outside ``allowed`` are not finite."""
        p = np.array(parameters, dtype=np.float64)
        prepared = Values(p, np.zeros(self.N_GAINS) if gains is None else np.array(gains, dtype=np.float64))
        arguments = {"p": p.tolist(), "g": prepared.gains.tolist()}
        undefined = np.flatnonzero(~np.isfinite(evaluate(self.program.constants, arguments, PYTHON))).tolist()
        if not partial and not set(undefined) <= set(allowed):
            raise SolveError(f"the equations of {self.NAME!r} {prepared.complaint}")
        return replace(prepared, undefined=tuple(undefined))

    def outside(self, values: Mapping[str, Sequence[float]]) -> str | None:
        """What to say about the first table that has no value at these arguments."""
        rows = interpret(self.program, "tables", values)[1] if self.TABLES else []
        for table, argument, inside in zip(self.TABLES, rows[::2], rows[1::2], strict=True):
            if not inside:
                return Domain(*table).refusal(argument)
        return None

    def defaults(self, inputs: Any, states: Any) -> Point:
        """The default arguments of a function, NaN for all inputs or states if there are none."""
        r, s = (
            np.full(len(self.names[what]), np.nan) if given is None else np.array(given, dtype=np.float64)
            for what, given in (("r", inputs), ("s", states))
        )
        return Point(None, None, None, r, s, *(np.zeros(len(self.names[what])) for what in (FORCES, FREE)))

    def read(self, at: Point) -> Reading:
        """The arguments as arrays. Raises `SolveError` for wrong shapes and types."""
        return read_point(at, self.names, self.NAME)

    def state(self, at: Point) -> Point:
        """The arguments at one state as finite arrays (n,) and a number. Raises `SolveError` for others."""
        return _require_finite(at._replace(t=float(at.t[0])), self.names)

    def checked_state(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None) -> tuple[Array, Array]:
        """``q`` and ``u`` as new arrays. Raises `SolveError` for wrong sizes and values that are not finite."""
        given, n_rows = self.read(Point(t, q, u, r, s))
        zeros = {what: np.zeros(len(names)) for what, names in self.names.items()}
        at = with_defaults(given, Point(None, **zeros), self.names, "a state")
        rows = [self.state(at)] if n_rows is None else [_require_finite(x, self.names) for x in rows_of(at, n_rows)]
        if n_rows is None:
            return rows[0].q.copy(), rows[0].u.copy()
        qs, us = (np.array([getattr(x, what) for x in rows]).reshape(n_rows, len(self.names[what])) for what in "qu")
        return qs, us

    def split(self, y: Array) -> tuple[Array, ...]:
        """The parts (q, u), or (q, u, s) of a model with states."""
        parts = np.split(y, [len(self.COORDINATES), y.shape[-1] - len(self.STATES)], axis=-1)
        return tuple(parts) if self.STATES else tuple(parts[:2])

    def inputs_along(self, function: Any, inputs: Any, times: Any, states: Any, control: Any = None) -> Array:
        """The inputs of a run at many states, (n_t, n_r)."""
        at = self._inputs_at(inputs, control, function.prepared)
        return np.array([at(t, y) for t, y in zip(times, states, strict=True)]).reshape(len(times), len(self.INPUTS))

    def along(
        self, function: Any, inputs: Any, control: Any, times: Any, states: Any, others: Iterable[Any] = ()
    ) -> list[Array]:
        """Values of functions at many states, NaN where a function cannot be evaluated."""
        at = self._inputs_at(inputs, control, function.prepared)
        results = []
        for f in (function, *others):
            rows = np.full((len(times), int(np.prod(f.shape))), np.nan)
            for row, t, y in zip(rows, times, states, strict=True):
                try:
                    q, u, *s = self.split(y)
                    row[:] = np.ravel(f.value(t, q, u, at(t, y), *s))
                except SolveError:
                    continue
            results.append(rows)
        return results

    def _evaluate(self, source: Source, t: float, y: Array) -> Array:
        """Inputs (n_r,) from a source. Raises `SolveError` for a wrong number of values."""
        values = np.array(source.at(t, self.split(y)), dtype=np.float64)
        return _finite(values.reshape(1) if values.ndim == 0 and len(self.INPUTS) == 1 else values, self.INPUTS, "r")

    def _values(self, law: Any, t: float, y: Array, r: Array, prepared: Values) -> Array:
        """The inputs (n_r,) from a source, or the values of a law, which reads the inputs ``r``."""
        if isinstance(law, Source):
            return self._evaluate(law, t, y)
        q, u, *s = self.split(y)
        known = np.nan_to_num(r)  # NaN before the first samples, which laws do not read
        return np.asarray(self.Function(law, prepared).value(t, q, u, known, *s))

    def _inputs_at(self, inputs: Source, control: Any, prepared: Values) -> Callable[[float, Array], Array]:
        controls = _controls(control)

        def at(t: float, y: Array) -> Array:
            r = self._evaluate(inputs, t, y)
            for item in controls:
                item.write(t, lambda law: self._values(law, t, y, r, prepared), r)
            return r

        return at

    def make_consistent(
        self, prepared: Values, t: float, q: Any, u: Any, r: Any, fixed: Iterable[int], tolerance: float, s: Any = None
    ) -> tuple[int, Array, Array, int]:
        """Status, corrected ``q`` and ``u``, and the number of corrections."""
        state = self.checked_state(t, q, u, r, s)
        levels = "position_level" in self.FUNCTIONS, "velocity_level" in self.FUNCTIONS
        flags = np.zeros(len(self.COORDINATES) + len(self.SPEEDS), dtype=bool)
        flags[list(fixed)] = True

        def value(name: str, q: Array, u: Array) -> Array:
            return np.asarray(self.Function(name, prepared, states=np.zeros(len(self.STATES))).value(t, q, u, r, s))

        try:
            status, corrections = consistent.make_consistent(value, levels, state, flags, tolerance)
        except SolveError:  # the caller says which function has no value there, and why
            status, corrections = Status.SINGULAR, 0
        return status, *state, corrections

    def integrate(
        self, function: Any, inputs: Any, t0: float, t1: float, q0: Any, u0: Any, s0: Any, **options: Unpack[ModuleRun]
    ) -> SimpleNamespace:
        """Integrate with SciPy; the result has the fields of the ``RunResult`` of compiled models."""
        method = options.get("method", "dopri5")
        _require_method(method)
        _require_supported(options)
        controls = _controls(options.get("control"))
        at = self._inputs_at(inputs, controls, function.prepared)
        run = Run(t0, np.concatenate([*self.checked_state(t0, q0, u0), _finite(s0, self.STATES, "s0")]), options)
        for item in controls:
            item.begin(t0, t1)
        known = self._instants(function.prepared, (t0, t1), options.get("instants"))

        def next_stop(t: float, y: Array) -> float:
            def values(law: Any) -> Array:
                return self._values(law, t, y, at(t, y), function.prepared)

            stops = [item.sample(t0, t, values) for item in controls]
            end = known.begin(t)
            return min([stop for stop in stops if stop + 1e-9 * (stop - t) < t1 and stop < end], default=end)

        def ode(t: float, y: Array) -> Array:
            inside = known.inside(t)
            if run.rhs_status and not np.isfinite(y).all():
                return np.full_like(y, np.nan)  # a stage after one that failed
            try:
                rates: Array = function.ode(inside, y, at(inside, y))
            except OutsideTableError:
                run.rhs_status = Status.OUTSIDE_TABLE
                if t == t0:
                    raise
                return np.full_like(y, np.nan)  # SciPy repeats the trial step with a smaller size
            return rates

        run.follow(METHODS[method], ode, t1, next_stop)
        return run.outcome((item.samples for item in controls), (len(self.COORDINATES), run.y.size - len(self.STATES)))

    def switching_times(self, prepared: Values, t0: float, t1: float) -> Array:
        """The times (n,) between ``t0`` and ``t1``, in this direction, at which functions of time switch."""
        known, times, t = self._instants(prepared, (t0, t1), None), list[float](), t0
        while (t := known.begin(t)) != t1:
            times.append(t)
        return np.array(times)

    def _instants(self, prepared: Values, span: tuple[float, float], times: Array | None) -> Instants:
        """The instants at which the model and the inputs are known to jump or to have kinks."""
        arguments = {"p": prepared.parameters.tolist(), "g": prepared.gains.tolist()}

        def values(t: float) -> Array:
            return np.array(interpret(self.program, "switches", {"t": [t], **arguments})[1]).reshape(-1, 2)

        return Instants(self.program.switches, values, span, () if times is None else times)

    def __getattr__(self, name: str) -> Any:
        # The functions of the protocol that are not supported raise SolveError when they are called.
        if name not in {**Evaluator.__dict__, **Evaluator.__annotations__}:
            raise AttributeError(name)
        return lambda *arguments, **named: _refuse(name)


def _controls(control: Any) -> tuple[Control, ...]:
    """A tuple of controls from None, one or several."""
    return () if control is None else tuple(control) if isinstance(control, (list, tuple)) else (control,)


def _finite(values: Any, names: Sequence[str], what: str) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != (len(names),):
        raise SolveError(f"{what} has shape {array.shape}; expected ({len(names)},): {', '.join(names)}")
    for name, value in zip(names, array.tolist(), strict=True):
        if not np.isfinite(value):
            raise SolveError(f"{name} ({what}) is {value}; every entry of {what} must be finite")
    return array


def _require_finite(at: Point, names: Mapping[str, tuple[str, ...]]) -> Point:
    """The arguments at one state. Raises `SolveError` that names an entry that is NaN or infinite."""
    _finite([at.t], ("t",), "t")
    for what, own in names.items():
        _finite(getattr(at, what), own, what)
    return at


def _message(status: int) -> str:
    return next((known.message for known in Status if known == status), f"status {status}")


def _require_supported(options: ModuleRun) -> None:
    for name, value in options.items():
        if name not in SUPPORTED and value is not None and not (isinstance(value, Sized) and len(value) == 0):
            _refuse(f"{name} in runs")


def _require_method(method: str) -> None:
    if method not in METHODS:
        raise SolveError(f"backend 'interpreted' has no method {method!r}; expected one of {', '.join(METHODS)}")


def _refuse(what: str) -> NoReturn:
    raise SolveError(f"backend 'interpreted' does not support {what}: build the model with backend='cython'")
