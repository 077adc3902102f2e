"""CasADi: generated C code, and CVODES of SUNDIALS.

Used as its documentation says (https://web.casadi.org/docs): SX expressions for scalar formulas (section 3.1), C code
compiled with -O3 and loaded as an external function (section 5.3), calls without the overhead of matrices by
``buffer()``, ``map`` for batches (section 4.6), and ``integrator`` with ``cvodes`` (section 4.4). The multistep method
is that of Adams with functional iteration, SUNDIALS' choice for problems that are not stiff.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.formulas import algebra
from benchmarks.gradient_problems import GradientProblem
from benchmarks.library import FAST, render
from benchmarks.problems import Problem
from benchmarks.program import FIRST_TOLERANCE, SAMPLE_SECONDS, Program, Task, check_rates
from kanegen.arrays import Array
from kanegen.cli.bench import timing
from kanegen.cli.bench.compiled import link
from kanegen.errors import SolveError

NAME = "CasADi"
METHODS = {"cvodes adams": "adams", "cvodes bdf": "bdf"}


def program(problem: Problem) -> Program:
    import casadi

    library = compiled(_function(casadi, problem))
    function = casadi.external("f", str(library))
    check_rates(problem, NAME, lambda y: np.array(function(y)).ravel())
    y, out = problem.samples[0].copy(), np.empty(problem.samples.shape[1])
    buffer, call = function.buffer()
    buffer.set_arg(0, y.data)
    buffer.set_res(0, out.data)
    return Program(
        form="formulas",
        in_c=timed_casadi(library, [problem.samples], y.size),
        in_python=timing.statement_task("call()", {"call": call, "kept": (buffer, y, out)}),
        runs={method: _Cvodes(casadi, problem, function, kind) for method, kind in METHODS.items()},
        prepares=True,
        whole=problem.formulas.whole_of,
    )


def _function(casadi: Any, problem: Problem) -> Any:
    y = casadi.SX.sym("y", len(problem.formulas.start))
    rates = problem.formulas.rates_in(algebra(casadi), casadi.vertsplit(y))
    return casadi.Function("f", [y], [casadi.vertcat(*rates)])


def compiled(function: Any) -> Path:
    """The shared library of a function and its Jacobian, which remains until the process ends."""
    import casadi

    folder = timed_folder()
    generator = casadi.CodeGenerator("f.c")
    generator.add(function)
    generator.add(function.jacobian())
    generator.generate(f"{folder}/")
    return link_timed(folder)


def link_timed(folder: Path) -> Path:
    """The library of ``f.c`` in a folder, with a timing loop."""
    (folder / "loop.c").write_text(render("casadi.c.jinja"), encoding="utf-8")
    return link(folder, {"f.c": FAST, "loop.c": FAST})


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def timed_folder() -> Path:
    """A new folder that remains until the process ends."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="kanegen-bench-"))
    return Path(_FOLDERS[-1].name)


def timed_casadi(library: Path, arguments: Sequence[Array], size: int) -> Task:
    """A task that calls the function ``f`` of a library with the rows of the arguments in turn, in C."""
    loaded = ctypes.CDLL(str(library))
    loaded.bench_casadi.restype = ctypes.c_double
    pointer = ctypes.POINTER(ctypes.c_double)
    arrays = [np.ascontiguousarray(array) for array in arguments]
    rows = (pointer * len(arrays))(*(array.ctypes.data_as(pointer) for array in arrays))
    widths = (ctypes.c_int * len(arrays))(*(array.shape[1] for array in arrays))
    out = np.empty(size)

    def seconds(calls: int) -> float:
        # This closure keeps the arrays that ``rows`` points to.
        count = (ctypes.c_long(calls), ctypes.c_int(len(arrays[0])), ctypes.c_int(len(arrays)))
        return float(loaded.bench_casadi(*count, rows, widths, out.ctypes.data_as(pointer)))

    return timing.sampled(seconds, SAMPLE_SECONDS)


class _Cvodes:
    """Integrations by CVODES; the integrator of a tolerance is made at its first run."""

    def __init__(self, casadi: Any, problem: Problem, function: Any, kind: str) -> None:
        x = casadi.MX.sym("x", len(problem.formulas.start))
        options = {"linear_multistep_method": kind, "max_num_steps": 10**6}
        if kind == "adams":
            options["nonlinear_solver_iteration"] = "functional"
        self._make = partial(
            casadi.integrator, "integrator", "cvodes", {"x": x, "ode": function(x)}, 0.0, problem.duration
        )
        self._problem, self._options = problem, options
        self._made: dict[float, Any] = {}

    def __call__(self, tolerance: float) -> Array:
        try:
            if tolerance not in self._made:
                self._made[tolerance] = self._make({**self._options, "reltol": tolerance, "abstol": 0.01 * tolerance})
            end = self._made[tolerance](x0=self._problem.formulas.start)["xf"]
        except RuntimeError as error:
            raise SolveError(f"CVODES with a tolerance of {tolerance:g} stopped") from error
        return np.array(end).ravel()


def first(problem: Problem) -> Array:
    """From the formulas to the end of the first motion."""
    import casadi

    function = casadi.external("f", str(compiled(_function(casadi, problem))))
    return problem.formulas.whole_of(_Cvodes(casadi, problem, function, METHODS["cvodes adams"])(FIRST_TOLERANCE))


def batch(problem: Problem, count: int) -> Task:
    """The compiled function mapped over ``count`` states: seconds for each state."""
    import casadi

    function = casadi.external("f", str(compiled(_function(casadi, problem)))).map(count)
    columns = np.ascontiguousarray(np.resize(problem.samples, (count, problem.samples.shape[1])))
    out = np.empty_like(columns)
    buffer, call = function.buffer()
    buffer.set_arg(0, columns.ravel().data)
    buffer.set_res(0, out.ravel().data)
    whole = timing.statement_task("call()", {"call": call, "kept": (buffer, columns, out)})
    return lambda: whole() / count


def gradients(problem: GradientProblem) -> Mapping[str, Mapping[str, Callable[[float], Array]]]:
    """Jacobians and gradients of an ``integrator`` by CVODES: forward and adjoint sensitivities of SUNDIALS."""
    import casadi

    n = problem.n
    y = casadi.SX.sym("y", len(problem.formulas.start))
    rates = problem.formulas.rates_in(algebra(casadi), casadi.vertsplit(y))[:n]
    ode = {"x": y[:n], "p": y[n:], "ode": casadi.vertcat(*rates)}
    made: dict[tuple[str, float], Any] = {}

    def function(kind: str, tolerance: float) -> Any:
        options = {"reltol": tolerance, "abstol": 0.01 * tolerance, "max_num_steps": 10**6, "fsens_err_con": True}
        flow = casadi.integrator("flow", "cvodes", ode, 0.0, problem.duration, options)
        z = casadi.MX.sym("z", y.numel())
        end = flow(x0=z[:n], p=z[n:])["xf"][list(problem.rows)]
        if kind == "gradient":
            return casadi.Function("g", [z], [casadi.gradient(casadi.dot(casadi.DM(problem.weights), end), z)])
        return casadi.Function("J", [z], [casadi.jacobian(end, z)])

    def run(kind: str, tolerance: float) -> Array:
        try:
            if (kind, tolerance) not in made:
                made[kind, tolerance] = function(kind, tolerance)
            found = np.array(made[kind, tolerance](problem.formulas.start))
        except RuntimeError as error:
            raise SolveError(f"CVODES with a tolerance of {tolerance:g} stopped") from error
        places = list(problem.places)
        return found.ravel()[places] if kind == "gradient" else found[:, places].ravel()

    return {kind: {"cvodes": partial(run, kind)} for kind in ("sensitivities", "gradient")}
