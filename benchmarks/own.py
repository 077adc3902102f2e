"""kanegen itself, measured as its peers are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.gradient_problems import GradientProblem
from benchmarks.problems import Problem
from benchmarks.program import FIRST_TOLERANCE, SAMPLE_SECONDS, Program, Task
from kanegen.arrays import Array
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.cli.bench import compiled, timing
from kanegen.codegen.methods.table import ADAPTIVE, IMPLICIT
from kanegen.errors import ModelWarning
from kanegen.pipeline import build
from kanegen.solve import Solver
from kanegen.solve.gradients.objective import Objective

NAME = "kanegen"
METHODS = tuple(method for method in ADAPTIVE if method not in IMPLICIT)


def program(problem: Problem) -> Program:
    """The model of the problem with ``form="auto"``; parameters remain arguments of the compiled functions."""
    model = problem.file.model
    # Integrations with constraints check the start with other functions.
    solver = build(model) if model.constraints else build(model, functions=("rhs",))
    states = problem.states
    kernel = compiled.TimedFunction(compiled.timed_library(solver.sources.files, solver.sources.kernel), "rhs", states)
    for k, y in enumerate(problem.samples):
        expected = problem.formulas.values(problem.formulas.whole_rates, y)
        compiled.check_agreement(problem.name, {"the formulas": expected, NAME: kernel.evaluate(k)})
    q, u = states.q[0].copy(), states.u[0].copy()
    names = {"rhs": solver.rhs, "q": q, "u": u, "out": (np.empty_like(q), np.empty_like(u))}
    return Program(
        form=f"the model, form {solver.description.form}",
        in_c=kernel.task(SAMPLE_SECONDS),
        in_python=timing.statement_task("rhs(0.0, q, u, out=out)", names),
        runs={method: partial(_run, solver, problem, method) for method in METHODS},
        whole=np.concatenate,
    )


def _run(solver: Solver, problem: Problem, method: str, tolerance: float) -> tuple[Array, Array]:
    q, u = problem.start
    solution = solver.integrate(
        (0.0, problem.duration),
        q,
        u,
        method=method,
        rtol=tolerance,
        atol=0.01 * tolerance,
        t_eval=(problem.duration,),
        dense_output=False,
    )
    return solution.q[-1], solution.u[-1]


def batch(problem: Problem, count: int) -> Task:
    """`rhs_batch` of column-major arrays with ``count`` states: seconds for each state."""
    return _batch(problem, count, CompilerOptions())


def batch_avx2(problem: Problem, count: int) -> Task:
    """The same without the registers of AVX-512."""
    usual = CompilerOptions()
    lanes = tuple("-march=x86-64-v3" if flag == "-march=native" else flag for flag in usual.lanes)
    return _batch(problem, count, replace(usual, lanes=lanes))


def _batch(problem: Problem, count: int, compiler: CompilerOptions) -> Task:
    solver = build(problem.file.model, compiler=compiler)
    q, u = (np.asfortranarray(np.resize(part, (count, part.shape[1]))) for part in (problem.states.q, problem.states.u))
    names = {"rhs_batch": solver.rhs_batch, "q": q, "u": u, "out": (np.empty_like(q), np.empty_like(u))}
    whole = timing.statement_task("rhs_batch(0.0, q, u, out=out)", names)
    return lambda: whole() / count


def first(problem: Problem) -> Array:
    """From the model to the end of its first motion."""
    return np.concatenate(_run(build(problem.file.model), problem, "dop853", FIRST_TOLERANCE))


# -- derivatives of motions -------------------------------------------------------------------------------------------

DIFFERENCE = 1e-5
"""Relative change of what varies for differences."""


def gradients(problem: GradientProblem) -> Mapping[str, Mapping[str, Callable[[float], Array]]]:
    """By kind and method, functions of a tolerance."""
    solver = build(problem.model)
    if problem.initial:
        solver = solver.with_initial(problem.initial)
    return {
        "sensitivities": {method: partial(_sensitivities, solver, problem, method) for method in METHODS},
        "gradient": {method: _gradient(solver, problem, method) for method in METHODS},
    }


def differences(problem: GradientProblem) -> Mapping[str, Mapping[str, Callable[[float], Array]]]:
    """Central differences of motions by `integrate_many`, which has them side by side on vector lanes."""
    solver = build(problem.model)
    if problem.initial:
        solver = solver.with_initial(problem.initial)
    methods = {method: partial(_differences, solver, problem, method) for method in METHODS}
    by_weights = {
        method: lambda tolerance, run=run: _weighted(problem, run(tolerance)) for method, run in methods.items()
    }
    return {"sensitivities": methods, "gradient": by_weights}


def _weighted(problem: GradientProblem, slopes: Array) -> Array:
    return np.asarray(problem.weights @ slopes.reshape(len(problem.rows), -1))


def _options(method: str, tolerance: float) -> dict[str, Any]:
    return {"method": method, "rtol": tolerance, "atol": 0.01 * tolerance}


def _sensitivities(solver: Solver, problem: GradientProblem, method: str, tolerance: float) -> Array:
    run: dict[str, Any] = {"sensitivities": problem.names, **_options(method, tolerance)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # that a loose tolerance is not reached
        solution = solver.integrate((0.0, problem.duration), problem.q0, problem.u0, **run)
    found = solution.sensitivities
    places = [found.variables.index(name) for name in problem.variables]
    return np.asarray(found.matrix[-1][places]).ravel()


def _gradient(solver: Solver, problem: GradientProblem, method: str) -> Callable[[float], Array]:
    model: Any = problem.model
    symbols = {symbol.func.__name__: symbol for symbol in (*model.coordinates, *model.speeds)}
    terminal = sum(w * symbols[name] for w, name in zip(problem.weights, problem.variables, strict=True))
    objective, span = Objective(terminal=terminal), (0.0, problem.duration)

    def run(tolerance: float) -> Array:
        options: dict[str, Any] = {"with_respect_to": problem.names, **_options(method, tolerance)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            _, found = solver.value_and_gradient(objective, span, problem.q0, problem.u0, **options)
        return np.array([found[name] for name in problem.names])

    return run


def _differences(solver: Solver, problem: GradientProblem, method: str, tolerance: float) -> Array:
    d, k = solver.description, len(problem.names)
    groups: dict[str, dict[str, Any]] = {"parameters": {}, "q0": dict(problem.q0), "u0": dict(problem.u0)}
    steps = np.empty(k)
    for column, name in enumerate(problem.names):
        key = "parameters" if name in d.parameters else "q0" if name in d.coordinates else "u0"
        value = float(solver.parameters[name] if key == "parameters" else groups[key][name])
        values = np.full(2 * k, value)
        steps[column] = DIFFERENCE * max(abs(value), 1.0)
        values[[2 * column, 2 * column + 1]] += steps[column], -steps[column]
        groups[key][name] = values
    arguments: dict[str, Any] = {**groups, **_options(method, tolerance)}
    ends = solver.integrate_many((0.0, problem.duration), **arguments)
    states = np.concatenate((ends.q, ends.u), axis=2)[:, -1]
    known = (*d.coordinates, *d.speeds)
    chosen = states[:, [known.index(name) for name in problem.variables]]
    return np.asarray(((chosen[::2] - chosen[1::2]) / (2.0 * steps[:, None])).T).ravel()
