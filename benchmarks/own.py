"""kanegen itself, measured as its peers are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.problems import Problem
from benchmarks.program import FIRST_TOLERANCE, SAMPLE_SECONDS, Program, Task
from kanegen.arrays import Array
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.cli.bench import compiled, timing
from kanegen.codegen.methods.table import ADAPTIVE, IMPLICIT
from kanegen.pipeline import build
from kanegen.solve import Solver

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
