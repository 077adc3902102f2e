"""Functions and runs of a model from its program, in Python floats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from kanegen.backends.protocol import Evaluator
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.graph.interpret import PYTHON, evaluate
from kanegen.program.interpret import interpret
from kanegen.program.records import Program

Array = NDArray[np.float64]

METHODS: Mapping[str, str] = MappingProxyType({"dopri5": "RK45", "dop853": "DOP853"})
"""Methods of :meth:`kanegen.Solver.integrate` and the solvers of SciPy that take their place."""


@dataclass(frozen=True)
class Values:
    """Parameters (n_p,), gains (n_g,), and the numbers of the constants that have no finite value for them."""

    parameters: Array
    gains: Array
    undefined: tuple[int, ...]
    complaint: str = "divide by something that is zero for these parameters, or an expression has no value; give others"


class Inputs:
    """Inputs of a run, ``at(t)`` (n_r,)."""

    def __init__(self, at: Callable[[float], Any]) -> None:
        self.at = at

    @classmethod
    def constant(cls, values: Any) -> Inputs:
        """The same values at all times."""
        array = np.array(values, dtype=np.float64)
        return cls(lambda t: array)

    @classmethod
    def piecewise(cls, breakpoints: Any, coefficients: Any) -> Inputs:
        """Polynomials: coefficients (order, pieces, n_r), highest power first."""
        from scipy.interpolate import PPoly

        return cls(PPoly(coefficients, breakpoints))

    @classmethod
    def compiled(cls, source: Any) -> NoReturn:
        """Refused: there is no compiled code to call."""
        _refuse("inputs in C")

    @classmethod
    def python(cls, source: Callable[[float], Any]) -> Inputs:
        """A callable ``r(t)``."""
        return cls(source)


class Function:
    """One function of the model with parameters and default inputs, NaN where an input has none."""

    repartitioned = 0

    def __init__(self, module: Interpreted, name: str, prepared: Values, inputs: Any = None) -> None:
        if name not in module.FUNCTIONS:
            raise SolveError(
                f"{module.NAME} was built without the function {name!r}; it has {', '.join(module.FUNCTIONS)}"
            )
        self.name, self.prepared, self.shape = name, prepared, module.FUNCTIONS[name]
        self._module = module
        self._defaults = np.full(len(module.INPUTS), np.nan) if inputs is None else np.array(inputs, dtype=np.float64)

    def value(self, t: Any, q: Any, u: Any, r: Any = None, out: Any = None) -> Any:
        """The value: a float, or an array of ``shape``, a new one or ``out``."""
        m = self._module
        if r is None and np.isnan(self._defaults).any():
            missing = [name for name, value in zip(m.INPUTS, self._defaults, strict=True) if np.isnan(value)]
            raise SolveError(f"{self.name} needs values of the inputs without a default: {', '.join(missing)}; pass r=")
        q, u = m.checked_state(t, q, u)
        values = {
            "t": [float(t)],
            "q": q.tolist(),
            "u": u.tolist(),
            "r": m.inputs(self._defaults if r is None else r).tolist(),
        }
        values |= {"p": self.prepared.parameters.tolist(), "g": self.prepared.gains.tolist()}
        status, numbers = interpret(m.program, self.name, values)
        if status < 0:
            raise SolveError(f"{self.name} cannot be evaluated: {_message(status)} (t={t!r}, q={q}, u={u})")
        array = np.array(numbers, dtype=np.float64).reshape(self.shape)
        if not np.isfinite(array).all():
            place = np.argwhere(~np.isfinite(array))[0].tolist()
            raise SolveError(f"{self.name} is not finite: {self.name}{place} (t={t!r}, q={q}, u={u})")
        if out is not None:
            out[...] = array
            return out
        return array if self.shape else float(array)

    def pair(self, t: Any, q: Any, u: Any, r: Any = None, out: Any = None) -> tuple[Array, Array]:
        """``(q', u')`` of a right-hand side."""
        n_q = len(self._module.COORDINATES)
        values = self.value(t, q, u, r)
        if out is None:
            return values[:n_q].copy(), values[n_q:].copy()
        out[0][...], out[1][...] = values[:n_q], values[n_q:]
        return out[0], out[1]

    def ode(self, t: Any, y: Any, r: Any = None) -> Array:
        """``y'`` for ``y = (q, u)``."""
        n_q = len(self._module.COORDINATES)
        derivative: Array = self.value(t, y[:n_q], y[n_q:], r)
        return derivative

    def low_level(self, r: Any = None) -> NoReturn:
        """Refused: there is no C function."""
        _refuse("a C function of the right-hand side")


class Interpreted:
    """The functions of a program (:class:`kanegen.backends.protocol.Evaluator`)."""

    CONTACTS: tuple[str, ...] = ()
    EVENTS: tuple[str, ...] = ()
    IRREVERSIBLE_CONTACTS: tuple[str, ...] = ()
    IRREVERSIBLE_EVENTS: tuple[str, ...] = ()
    Inputs = Inputs

    def __init__(self, program: Program, digest: str) -> None:
        symbols = program.symbols
        self.program = program
        self.NAME, self.DIGEST = program.name, digest
        self.COORDINATES, self.SPEEDS = symbols.coordinates, symbols.speeds
        self.INPUTS, self.PARAMETERS, self.N_GAINS = symbols.inputs, symbols.parameters, len(symbols.gains)
        self.FUNCTIONS = {f.name: f.shape for f in program.functions if not f.internal}

    def Prepared(
        self, parameters: Any, gains: Any = None, allowed: Iterable[int] = (), partial: bool = False
    ) -> Values:
        """Parameters and gains. Raises `SolveError` where constants that are not allowed to have no finite value."""
        p = np.array(parameters, dtype=np.float64)
        g = np.zeros(self.N_GAINS) if gains is None else np.array(gains, dtype=np.float64)
        constants = evaluate(self.program.constants, {"p": p.tolist(), "g": g.tolist()}, PYTHON)
        undefined = tuple(k for k, value in enumerate(constants) if not np.isfinite(value))
        prepared = Values(p, g, undefined)
        if not partial and not set(undefined) <= set(allowed):
            raise SolveError(f"the equations of {self.NAME!r} {prepared.complaint}")
        return prepared

    def Function(self, name: str, prepared: Values, inputs: Any = None) -> Function:
        """A function by name. Raises `SolveError` where it was not built."""
        return Function(self, name, prepared, inputs)

    def checked_state(self, t: Any, q: Any, u: Any, r: Any = None) -> tuple[Array, Array]:
        """``q`` and ``u`` as new arrays. Raises `SolveError` for wrong sizes and values that are not finite."""
        _finite([t], ("t",), "t")
        if r is not None:
            self.inputs(r)
        return _finite(q, self.COORDINATES, "q"), _finite(u, self.SPEEDS, "u")

    def inputs(self, r: Any) -> Array:
        """The inputs with the hidden ones, zero where these are left out."""
        hidden = self.program.symbols.hidden
        if np.shape(r) == (len(self.INPUTS) + len(hidden),):
            return _finite(r, (*self.INPUTS, *hidden), "r")
        return np.concatenate([_finite(r, self.INPUTS, "r"), np.zeros(len(hidden))])

    def along(
        self, function: Any, inputs: Any, control: Any, times: Any, states: Any, others: Iterable[Any] = ()
    ) -> list[Array]:
        """Values of functions at many states, NaN where a function has none."""
        if control is not None:
            _refuse("control loops")
        n_q = len(self.COORDINATES)
        results = []
        for f in (function, *others):
            rows = np.full((len(times), int(np.prod(f.shape))), np.nan)
            for k, (t, y) in enumerate(zip(times, states, strict=True)):
                try:
                    rows[k] = np.ravel(f.value(t, y[:n_q], y[n_q:], inputs.at(t)))
                except SolveError:
                    continue
            results.append(rows)
        return results

    def integrate(
        self,
        function: Any,
        inputs: Any,
        t0: float,
        t1: float,
        q0: Any,
        u0: Any,
        *,
        method: str = "dopri5",
        rtol: Any = 1e-8,
        atol: Any = 1e-10,
        step: float | None = None,
        first_step: float | None = None,
        max_step: float | None = None,
        max_steps: int | None = None,
        t_eval: Any = None,
        dense: bool = False,
        progress: Callable[[float], None] | None = None,
        projection: Any = None,
        control: Any = None,
        events: Sequence[int] | None = None,
        modes: Mapping[int, int] | None = None,
    ) -> Any:
        """Integrate by SciPy; the fields of the result are those of the ``Outcome`` of compiled models."""
        if method not in METHODS:
            raise SolveError(f"backend 'interpreted' has no method {method!r}; expected one of {', '.join(METHODS)}")
        if projection is not None or control is not None:
            _refuse("projections and control loops in runs")
        y0 = np.concatenate(self.checked_state(t0, q0, u0))
        settings = {"rtol": rtol, "atol": atol, "first_step": first_step, "max_step": max_step or np.inf}
        run = _Run(t0, y0, t_eval)
        run.follow(METHODS[method], lambda t, y: function.ode(t, y, inputs.at(t)), t1, settings, max_steps, progress)
        return run.outcome(dense)

    def __getattr__(self, name: str) -> Any:
        # The rest of the protocol. Attributes that are not part of it do not exist.
        if name not in Evaluator.__dict__:
            raise AttributeError(name)
        return lambda *arguments, **named: _refuse(name)


def _finite(values: Any, names: Sequence[str], what: str) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != (len(names),):
        raise SolveError(f"{what} has shape {array.shape}; expected ({len(names)},): {', '.join(names)}")
    for name, value in zip(names, array.tolist(), strict=True):
        if not np.isfinite(value):
            raise SolveError(f"{name} ({what}) is {value}; every entry of {what} must be finite")
    return array


def _refuse(what: str) -> NoReturn:
    raise SolveError(f"backend 'interpreted' does not support {what}: build the model with backend='cython'")


def _message(status: int) -> str:
    return next((known.message for known in Status if known == status), f"status {status}")


# -- runs by SciPy -----------------------------------------------------------------------------------------------------


class _Run:
    """A run by a solver of SciPy: what is stored, and how it ended."""

    def __init__(self, t0: float, y0: Array, t_eval: Any) -> None:
        self.t, self.y = t0, y0
        self.times = None if t_eval is None else [float(t) for t in t_eval]
        self.stored: list[tuple[float, Array]] = [] if t_eval is not None else [(t0, y0)]
        self.steps: list[tuple[float, float, Array]] = []
        self.evaluations = 0
        self.status = Status.OK
        self.error: SolveError | None = None

    def follow(
        self,
        method: str,
        ode: Callable[[float, Array], Array],
        t1: float,
        settings: Mapping[str, Any],
        max_steps: int | None,
        progress: Callable[[float], None] | None,
    ) -> None:
        """Take steps to ``t1``, or until something stops the run."""
        from scipy import integrate

        try:
            solver = getattr(integrate, method)(ode, self.t, self.y, t1, **settings)
            while self.status == Status.OK:
                self.status = self._step(solver, max_steps)
                self.evaluations = solver.nfev
                if progress is not None:
                    progress(self.t)
        except SolveError as error:
            self.status, self.error = Status.INTERRUPTED, error

    def _step(self, solver: Any, max_steps: int | None) -> Status:
        if solver.status == "finished":
            return Status.FINISHED
        if max_steps is not None and len(self.steps) >= max_steps:
            return Status.TOO_MANY_STEPS
        if solver.step() is not None:
            return Status.STEP_COLLAPSED
        interpolant = solver.dense_output()
        self.steps.append((self.t, solver.t - self.t, _nested(interpolant, self.t, self.y, solver.t, solver.y)))
        self.t, self.y = solver.t, solver.y.copy()
        if self.times is None:
            self.stored.append((self.t, self.y))
        while self.times and (self.times[0] - self.t) * solver.direction <= 0.0:
            t = self.times.pop(0)
            self.stored.append((t, interpolant(t)))
        return Status.OK

    def outcome(self, dense: bool) -> SimpleNamespace:
        """The fields of the ``Outcome`` of a compiled run."""
        return SimpleNamespace(
            t=np.array([time for time, _ in self.stored]),
            y=np.array([state for _, state in self.stored]).reshape(len(self.stored), len(self.y)),
            last=(self.t, self.y),
            dense=_arrays(self.steps) if dense else None,
            status=self.status,
            message=self.status.message,
            statistics=_statistics([abs(h) for _, h, _ in self.steps], self.evaluations),
            error=self.error,
            rhs_status=0,
            **dict.fromkeys(("hybrid", "culprit", "conflict", "flat_guard", "samples")),
        )


def _nested(interpolant: Any, t_old: float, y_old: Array, t: float, y: Array) -> Array:
    """The interpolant of a step in the nested form of :class:`kanegen.solve.solution.Dense`, (k, n)."""
    if hasattr(interpolant, "F"):
        return np.array([y_old, *interpolant.F])
    # RK45: a polynomial of degree 4, fixed by its values at the start and at four more places.
    places = np.array([0.25, 0.5, 0.75, 1.0])
    rest = 1.0 - places
    basis = np.stack([places, places * rest, places**2 * rest, (places * rest) ** 2], axis=1)
    values = [interpolant(t_old + x * (t - t_old)) for x in places[:-1]]
    return np.vstack([y_old, np.linalg.solve(basis, np.array([*values, y]) - y_old)])


def _arrays(steps: list[tuple[float, float, Array]]) -> tuple[Array, Array, Array]:
    starts, sizes, rows = zip(*steps, strict=True) if steps else ((), (), ())
    return np.array(starts), np.array(sizes), np.array(rows)


def _statistics(sizes: list[float], evaluations: int) -> dict[str, Any]:
    """Counts and sizes; what SciPy does not count is 0."""
    unknown = ("rejected", "repartitions", "projections", "integrals_left", "jacobians", "factorizations")
    return {
        "steps": len(sizes),
        "evaluations": evaluations,
        "smallest_step": min(sizes, default=0.0),
        "largest_step": max(sizes, default=0.0),
        "last_step": sizes[-1] if sizes else 0.0,
        "largest_error": 0.0,
        "integral_drift": 0.0,
        **dict.fromkeys(unknown, 0),
    }
