"""JiTCODE: derivatives compiled from SymEngine expressions, integrated by SciPy's ``ode``.

Used as its documentation says (https://jitcode.readthedocs.io): intermediate results are helpers, parameters that do
not change are numbers, the code is compiled with the default flags (``-O3 -ffast-math -march=native``), and the
integrators are ``dopri5``, its first choice, and ``dop853``, which have less overhead than those of ``solve_ivp``.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import Any

import numpy as np

from benchmarks.formulas import algebra
from benchmarks.problems import Problem
from benchmarks.program import FIRST_TOLERANCE, Program, check_rates
from kanegen.arrays import Array
from kanegen.cli.bench import timing
from kanegen.errors import SolveError
from kanegen.graph import Node

NAME = "JiTCODE"
METHODS = ("dopri5", "dop853")


def program(problem: Problem) -> Program:
    system = compiled_system(problem)
    check_rates(problem, NAME, lambda y: np.array(system.f(0.0, y)))
    names = {"f": system.f, "y": problem.samples[0].copy()}
    return Program(
        form="formulas as helpers",
        in_python=timing.statement_task("f(0.0, y)", names),
        runs={method: partial(_run, system, problem, method) for method in METHODS},
        whole=problem.formulas.whole_of,
    )


def compiled_system(problem: Problem) -> Any:
    import jitcode
    import symengine

    helpers: list[tuple[Any, Any]] = []

    def named(node: Node, value: Any) -> Any:
        """A helper for each intermediate result, so that no expression is repeated."""
        if not node.args or isinstance(value, float):
            return value
        helpers.append((symengine.Symbol(f"v_{node.index}"), symengine.sympify(value)))
        return helpers[-1][0]

    formulas = problem.formulas
    rates = formulas.rates_in(algebra(symengine, named), [jitcode.y(i) for i in range(len(formulas.start))])
    limit = sys.getrecursionlimit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # JiTCODE sorts helpers recursively, as deep as they depend on each other.
        sys.setrecursionlimit(limit + 10 * len(helpers))
        try:
            system = jitcode.jitcode(list(map(symengine.sympify, rates)), helpers=helpers, verbose=False)
            system.generate_f_C(simplify=False)
            system.compile_C()
        finally:
            sys.setrecursionlimit(limit)
    return system


def first(problem: Problem) -> Array:
    """From the formulas to the end of the first motion."""
    return problem.formulas.whole_of(_run(compiled_system(problem), problem, "dop853", FIRST_TOLERANCE))


def _run(system: Any, problem: Problem, method: str, tolerance: float) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            system.set_integrator(method, rtol=tolerance, atol=0.01 * tolerance)
            system.set_initial_value(problem.formulas.start, 0.0)
            end = system.integrate(problem.duration)
        except (ArithmeticError, ValueError, RuntimeError, UserWarning) as error:
            raise SolveError(f"JiTCODE with {method} and rtol={tolerance:g} stopped: {error}") from error
    return np.asarray(end)
