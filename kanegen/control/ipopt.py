"""IPOPT through the package ipyopt, whose wheels contain it: callbacks are the functions in C, in capsules."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.control.program import Program
from kanegen.errors import SolveError

INTERRUPTED: Final = 5
STATUSES: Final[Mapping[int, str]] = {
    0: "solved",
    1: "solved to an acceptable level",
    2: "the conditions cannot be met near the point that was reached",
    3: "the search directions became too small",
    4: "the iterates diverge",
    5: "stopped",
    6: "a feasible point was found",
    -1: "the largest number of iterations was reached",
    -2: "the restoration of feasibility failed",
    -3: "a step could not be computed",
    -4: "the largest time was reached",
    -10: "there are more equations than unknowns",
    -13: "a function or derivative is not a number at the start",
}


class Progress(NamedTuple):
    """An iteration of the solver, for ``callback=``: its number, the cost, and the largest violation of a constraint
    and of the optimality conditions, in the scaled problem."""

    iteration: int
    cost: float
    infeasibility: float
    dual_infeasibility: float


class Minimum(NamedTuple):
    """What the solver found: scaled variables (n_x,), multipliers of constraints (n_g,) and bounds (n_x,), twice."""

    x: Array
    multipliers: Array
    lower: Array
    upper: Array
    cost: float
    status: int
    iterations: int
    seconds: float

    @property
    def success(self) -> bool:
        """Whether the tolerance of the solver was reached."""
        return self.status in (0, 1)


def require_ipopt() -> Any:
    """The module ipyopt. Raises `SolveError` if it is not installed."""
    try:
        import ipyopt
    except ImportError as error:
        raise SolveError(
            "optimal control needs IPOPT, which the package ipyopt contains: pip install 'kanegen[control]'"
        ) from error
    return ipyopt


def minimize(
    program: Program,
    x: Array,
    bounds: tuple[Array, Array],
    options: Mapping[str, Any],
    callback: Callable[[Progress], Any] | None = None,
    multipliers: tuple[Array, Array, Array] | None = None,
) -> Minimum:
    """Solve a nonlinear program from ``x``, between ``bounds``. Raises what the callback raises, after the run."""
    ipyopt = require_ipopt()
    watch = _Watch(callback)
    problem = ipyopt.Problem(
        program.n_x, *map(np.ascontiguousarray, bounds), program.n_g, program.low, program.high,
        tuple(program.jacobian_pattern), tuple(program.hessian_pattern),
        *(_capsule(program, name) for name in ("cost", "gradient", "constraints", "jacobian", "hessian")),
        intermediate_callback=watch, ipopt_options=dict(options),
    )  # fmt: skip
    given = (np.zeros(program.n_g), np.zeros(program.n_x), np.zeros(program.n_x))
    mult_g, lower, upper = (np.array(each) for each in (given if multipliers is None else multipliers))
    began = time.perf_counter()
    with _deferred_interrupts(watch):
        found, cost, status = problem.solve(np.array(x), mult_g=mult_g, mult_x_L=lower, mult_x_U=upper)
    seconds = time.perf_counter() - began
    if watch.error is not None:
        raise watch.error
    return Minimum(found, mult_g, lower, upper, float(cost), int(status), watch.iterations, seconds)


class _Watch:
    """The callback of iterations, which ends the run after Ctrl-C and after an error of the user's callback."""

    def __init__(self, callback: Callable[[Progress], Any] | None) -> None:
        self.callback = callback
        self.iterations, self.stop = 0, False
        self.error: BaseException | None = None

    def __call__(self, mode: Any, iteration: int, cost: float, primal: float, dual: float, *rest: Any) -> bool:
        self.iterations = iteration
        if self.callback is not None:
            try:
                self.callback(Progress(iteration, cost, primal, dual))
            except KeyboardInterrupt:
                self.stop = True
            except BaseException as error:  # must not pass through the solver; raised after the run
                self.error, self.stop = error, True
        return not self.stop


@contextmanager
def _deferred_interrupts(watch: _Watch) -> Iterator[None]:
    """Ctrl-C ends the run at the next iteration, so that its best point is not lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(*_: Any) -> None:
        watch.stop = True

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _capsule(program: Program, name: str) -> Any:
    """A capsule with a function in C, and the program as its context."""
    api = ctypes.pythonapi
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = make(("PyCapsule_New", api))(program.function(name), None, None)
    place = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(("PyCapsule_SetContext", api))
    place(capsule, program.data)
    return capsule
