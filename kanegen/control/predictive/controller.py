"""The predictive controller as users hold it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.backends.cython.batch import load_library
from kanegen.codegen.text import is_identifier, stem
from kanegen.control.predictive.code import ControllerCode, Settings, Sizes, controller_code
from kanegen.control.predictive.functions import controller_functions
from kanegen.control.predictive.receding import Receding, receding
from kanegen.control.predictive.sides import stage_sides
from kanegen.control.predictive.status import SampleStatus
from kanegen.control.statement import Statement
from kanegen.derivation import fingerprint
from kanegen.derivation.speeds import lower_model
from kanegen.errors import BuildError, SolveError, brief
from kanegen.paths import file_path
from kanegen.progress import activity
from kanegen.solve.values import key_name, number, positive, positive_integer, unknown
from kanegen.writing import write_folder

_TOLERANCE: Final = 1e-12
"""Products of distances and multipliers of a quadratic program, relative to what it costs."""

_SLOW: Final = 1.0
_FASTER: Final = 1.5
_LEAST_PART: Final = 1.0 / 64.0
"""Steps that are longer than this part of the one before are halved; others become longer by this factor, up to whole
ones."""

_REALS = ctypes.POINTER(ctypes.c_double)


class Prediction(NamedTuple):
    """The plan of the last sample.

    Attributes
    ----------
    t
        Times, s, (N + 1,).
    states
        Coordinates, speeds and states at these times, (N + 1, n_x); the first row is the measured state.
    inputs
        Planned inputs in the intervals that begin at the first N times, (N, n).
    names, input_names
        The names of both.
    """

    t: Array
    states: Array
    inputs: Array
    names: tuple[str, ...]
    input_names: tuple[str, ...]


class SampleTimes(NamedTuple):
    """How long samples took, s: the ``last`` one, their ``mean``, the ``longest``; ``samples``: how many there were."""

    last: float
    mean: float
    longest: float
    samples: int


class PredictiveController:
    """Predictive control: at each sample, the inputs that are best over a horizon ahead.

    Made by :meth:`kanegen.OptimalControl.controller`. ``r=`` of :meth:`kanegen.Solver.integrate` accepts it, with
    ``sample_time``. It has a plan from one sample to the next; one controller drives one motion at a time.

    Attributes
    ----------
    horizon, sample_time
        Times, s.
    inputs
        The names of the inputs that it plans.
    status
        What became of the last sample, a text.
    solved
        Whether the last sample met all bounds and conditions, and was solved to the tolerance.
    violation
        The largest violation of a bound or condition in the last plan, relative to half its range, or to its bound.
    iterations
        Iterations of the quadratic program of the last sample; 0 if no bound was active.
    """

    def __init__(self, problem: Receding, settings: Settings, write: Callable[[str], ControllerCode]) -> None:
        model = problem.statement.model
        code = write(stem(model.name))
        self._problem, self._settings, self._write, self._name = problem, settings, write, code.name
        self.horizon, self.sample_time = settings.horizon, settings.sample_time
        self.inputs = problem.input_names
        self._library = load_library(code.library(f"{model.name} (predictive control)"))
        self._data = _record(code.sizes, settings.intervals)()
        self._address = ctypes.c_void_p(ctypes.addressof(self._data))
        self._x, self._r = np.zeros(code.sizes.n_x), np.zeros(code.sizes.n_r)
        self._x_at, self._r_at = (array.ctypes.data_as(_REALS) for array in (self._x, self._r))
        self._step, self._iterate = (self._function(name) for name in ("step", "iterate"))
        self._t, self._times = 0.0, SampleTimes(0.0, 0.0, 0.0, 0)
        self._function("reset")(self._address)

    def __call__(self, t: float, q: Array, u: Array) -> Array:
        """The inputs of a sample, (n_r,)."""
        return self._sample(t, q, u, ())

    def _sample(self, t: float, q: Any, u: Any, s: Any) -> Array:
        started = perf_counter()
        self._place(t, q, u, s)
        self._step(self._address, self._t, self._x_at, self._r_at)
        self._count(perf_counter() - started)
        return self._r.copy()

    def solve(self, t: Any, q: Any, u: Any, s: Any = (), *, tolerance: Any = 1e-6, max_iterations: Any = 100) -> Array:
        """Repeat the iteration at one state until the plan does not change, for a good first plan.

        Parameters
        ----------
        t, q, u, s
            The time, and the state.
        tolerance
            The largest change of the plan, relative to the largest magnitude of each variable, at which it ends.
        max_iterations
            Most iterations.

        Returns
        -------
        All inputs, (n_r,). ``status`` says if the last iteration was not solved to its tolerance.

        Raises
        ------
        SolveError
            If it does not converge, or the prediction has values that are not finite.
        """
        self._place(t, q, u, s)
        tolerance, n = positive(tolerance, "tolerance"), positive_integer(max_iterations, "max_iterations")
        before, moved, part = None, np.inf, 1.0
        for _ in range(n):
            self._iterate(self._address, self._t, self._x_at, part, self._r_at)
            if self._data.status > SampleStatus.INEXACT:
                raise SolveError(f"predictive control at t = {self._t:g} s: {self.status}")
            now = self._plan
            change = np.inf if before is None else _changed(before, now) / part
            if change <= tolerance:
                return self._r.copy()
            # Without the curvature of the motion, full steps can go to and fro.
            part = max(_LEAST_PART, 0.5 * part) if change > _SLOW * moved else min(1.0, _FASTER * part)
            before, moved = now, change
        raise SolveError(
            f"predictive control at t = {self._t:g} s: the plan did not converge within {n} iterations; give a shorter "
            "horizon, more intervals, or larger weights of the inputs"
        )

    def reset(self) -> None:
        """Forget the plan and the times; parameters and inputs remain. The next plan begins with the state at rest."""
        self._function("restart")(self._address)
        self._t, self._times = 0.0, SampleTimes(0.0, 0.0, 0.0, 0)

    def set(self, name: Any, value: Any) -> None:
        """Change a parameter, an input that is not planned, or a constant of the cost from the next sample on.

        Parameters
        ----------
        name
            Its name or symbol.
        value
            Its value, SI units.

        Raises
        ------
        SolveError
            For unknown names, planned inputs, and values that are no finite numbers.
        """
        model, key = self._problem.statement.model, key_name(name)
        parameters, held = [str(x) for x in model.parameters], list(self._problem.held_names)
        if key in self.inputs:
            raise SolveError(f"controller.set: {key} is an input that the controller plans")
        if key not in (*parameters, *held):
            raise SolveError(f"controller.set: {unknown(key, (*parameters, *held), 'parameter or input')}")
        array, names = (self._data.parameters, parameters) if key in parameters else (self._data.inputs, held)
        array[names.index(key)] = number(value, key)

    def emit(self, directory: str | Path, name: str | None = None) -> Path:
        """Write the controller as C files ``NAME_controller.c`` and ``.h``, with the headers that they include.

        Parameters
        ----------
        directory
            The folder; it is created if it is missing.
        name
            Prefix of files and functions, a C identifier; None: one that resembles the name of the model.

        Returns
        -------
        The folder.

        Raises
        ------
        BuildError
            For names that C cannot have, and if the folder holds files but no controller of this name.
        SolveError
            If ``directory`` is not a path.
        """
        folder = file_path(directory, "directory")
        prefix = self._name if name is None else name
        if not is_identifier(prefix) or prefix.startswith("kg_"):
            raise BuildError(f"name is {brief(name)}; expected a C identifier, which does not begin with kg_")
        return write_folder(self._write(prefix).files, folder, f"{prefix}_controller.c")

    @property
    def status(self) -> str:
        """What became of the last sample."""
        return SampleStatus.of(self._data.status).label

    @property
    def solved(self) -> bool:
        """Whether the last sample met all bounds and conditions, and was solved to the tolerance."""
        return bool(self._data.status == SampleStatus.SOLVED)

    @property
    def violation(self) -> float:
        """The largest violation of a bound or condition in the last plan, relative to its size."""
        return float(self._data.violation)

    @property
    def iterations(self) -> int:
        """Iterations of the quadratic program of the last sample."""
        return int(self._data.iterations)

    @property
    def prediction(self) -> Prediction:
        """The plan of the last sample. Raises `SolveError` before the first one."""
        if not self._data.planned:
            raise SolveError(f"the controller has no plan: {self.status}")
        times = self._t + np.linspace(0.0, self.horizon, self._settings.intervals + 1)
        return Prediction(times, *self._plan, self._problem.statement.components, self.inputs)

    @property
    def seconds(self) -> SampleTimes:
        """How long samples took."""
        return self._times

    @property
    def _plan(self) -> tuple[Array, Array]:
        """States and inputs of the plan."""
        n = self._settings.intervals
        states, controls = np.array(self._data.states), np.array(self._data.controls)
        return states.reshape(n + 1, -1), controls.reshape(n, -1)

    def _place(self, t: Any, q: Any, u: Any, s: Any) -> None:
        parts = [np.ravel(real_array(part, what)) for part, what in ((q, "q"), (u, "u"), (s, "s"))]
        model = self._problem.statement.model
        sizes = len(model.coordinates), len(model.speeds), len(model.states)
        for part, size, what in zip(parts, sizes, "qus", strict=True):
            if part.size != size:
                raise SolveError(f"predictive control: {what} has {part.size} values; expected {size}")
        np.concatenate(parts, out=self._x)
        self._t = float(t)

    def _count(self, seconds: float) -> None:
        _, mean, longest, n = self._times
        self._times = SampleTimes(seconds, mean + (seconds - mean) / (n + 1), max(longest, seconds), n + 1)

    def _function(self, name: str) -> Any:
        function = getattr(self._library, f"{self._name}_controller_{name}")
        function.restype = None
        sampled = {
            "step": (ctypes.c_double, _REALS, _REALS),
            "iterate": (ctypes.c_double, _REALS, ctypes.c_double, _REALS),
        }
        function.argtypes = (ctypes.c_void_p, *sampled.get(name, ()))
        return function

    def __reduce__(self) -> Any:
        raise SolveError(
            "a predictive controller is not copied or pickled: make another one by problem.controller(...)"
        )

    def __repr__(self) -> str:
        names = ", ".join(self.inputs)
        return (
            f"<PredictiveController of {names}: {self.horizon:g} s ahead, every {self.sample_time:g} s; {self.status}>"
        )


class PredictiveControllerOfStates(PredictiveController):
    """The same for a model with first-order states, whose values are an argument."""

    def __call__(self, t: float, q: Array, u: Array, s: Array) -> Array:  # type: ignore[override]
        """The inputs of a sample, (n_r,)."""
        return self._sample(t, q, u, s)


def predictive_controller(
    statement: Statement,
    horizon: Any,
    sample_time: Any,
    *,
    intervals: Any,
    steps: Any,
    penalty: Any,
    max_iterations: Any,
) -> PredictiveController:
    """The controller of a problem; the arguments are those of `OptimalControl.controller`."""
    settings = _settings(horizon, sample_time, intervals, steps, max_iterations)
    problem, model = receding(statement, settings.horizon), statement.model
    penalty = positive(penalty, "penalty")
    with activity(f"deriving the predictive control of {model.name!r}"):
        functions = controller_functions(problem)
        sides = stage_sides(problem, functions.with_inputs, penalty)
        digest = fingerprint(lower_model(model), f"predictive control {settings}")
        kind = PredictiveControllerOfStates if model.states else PredictiveController
        write = partial(
            controller_code, problem=problem, functions=functions, sides=sides, settings=settings, digest=digest
        )
        return kind(problem, settings, write)


def _settings(horizon: Any, sample_time: Any, intervals: Any, steps: Any, max_iterations: Any) -> Settings:
    horizon, sample_time = positive(horizon, "horizon"), positive(sample_time, "sample_time")
    if sample_time > horizon:
        raise SolveError(f"sample_time is {sample_time:g} s, longer than the horizon of {horizon:g} s")
    n = max(1, round(horizon / sample_time)) if intervals is None else positive_integer(intervals, "intervals")
    counts = positive_integer(steps, "steps"), positive_integer(max_iterations, "max_iterations")
    return Settings(horizon, sample_time, n, counts[0], _TOLERANCE, counts[1])


def _record(sizes: Sizes, intervals: int) -> type[ctypes.Structure]:
    """``NAME_controller`` of the generated header."""
    lengths: Mapping[str, int] = {
        "parameters": sizes.n_prepared,
        "inputs": sizes.n_held,
        "states": (intervals + 1) * sizes.n_x,
        "controls": intervals * sizes.n_u,
    }
    fields = [
        *((name, ctypes.c_double * length) for name, length in lengths.items()),
        ("violation", ctypes.c_double),
        *((name, ctypes.c_int) for name in ("status", "iterations", "planned", "prepared")),
        ("memory", ctypes.c_double * sizes.n_memory),
    ]
    return type("Controller", (ctypes.Structure,), {"_fields_": fields})


def _changed(before: tuple[Array, Array], now: tuple[Array, Array]) -> float:
    """The largest change of a plan, relative to the largest magnitude of each variable, or to 1e-6 of its unit."""
    sizes = (np.maximum(np.abs(b).max(axis=0), 1e-6) for b in now)
    return max(float((np.abs(b - a).max(axis=0) / size).max()) for a, b, size in zip(before, now, sizes, strict=True))
