"""heyoka: Taylor series and compiled functions by LLVM.

Used as its documentation says: ``taylor_adaptive`` with a tolerance and ``propagate_until`` ("Customising the adaptive
integrator", https://bluescarni.github.io/heyoka.py/notebooks/Customising the adaptive integrator.html), which also
recommends the compact mode for large systems, because the time to compile grows steeply without it; and ``cfunc`` with
an output array for one state and for batches ("Compiled functions",
https://bluescarni.github.io/heyoka.py/notebooks/compiled_functions.html).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from benchmarks.formulas import algebra
from benchmarks.gradient_problems import GradientProblem
from benchmarks.problems import Problem
from benchmarks.program import FIRST_TOLERANCE, Program, Task, check_rates
from kanegen.arrays import Array
from kanegen.cli.bench import timing
from kanegen.errors import SolveError
from kanegen.graph import evaluate

NAME = "heyoka"
LARGE = 600
"""Operations from which the compact mode is used: the bicycle takes a minute to compile without it."""

AVX2: dict[str, Any] = {"batch_size": 4}
AVX512: dict[str, Any] = {"force_avx512": True, "batch_size": 8}

System: TypeAlias = list[tuple[Any, Any]]
"""Differential equations: variables and their rates."""

TOLERANCES = tuple(10.0**-k for k in range(3, 16, 2))
"""A Taylor integrator is compiled for its tolerance, so that there are fewer of them."""


def program(problem: Problem) -> Program:
    import heyoka as hy

    system = _system(problem)
    function = _compiled(system)
    check_rates(problem, NAME, function)
    y = problem.samples[0].copy()
    names = {"function": function, "y": y, "out": np.empty_like(y)}
    compact = problem.formulas.operations > LARGE
    return Program(
        form="formulas" + (", compact mode" if compact else ""),
        in_python=timing.statement_task("function(y, outputs=out)", names),
        runs={"taylor": _Taylor(hy, problem, system, compact)},
        tolerances=TOLERANCES,
        prepares=True,
        whole=problem.formulas.whole_of,
    )


def _system(problem: Problem) -> System:
    """The formulas."""
    import heyoka as hy

    variables = [hy.expression(f"y_{i}") for i in range(len(problem.formulas.start))]
    rates = problem.formulas.rates_in(algebra(hy), variables)
    return [
        (y, hy.expression(rate) if isinstance(rate, float) else rate) for y, rate in zip(variables, rates, strict=True)
    ]


def _lagrangian_system(problem: Problem) -> System:
    """What ``lagrangian`` makes of the kinetic and potential energy."""
    import heyoka as hy

    n = len(problem.formulas.start) // 2
    q, u = ([hy.expression(f"{name}_{i}") for i in range(n)] for name in "qu")
    (energy,) = evaluate([problem.lagrangian], {"q": q, "u": u}, algebra(hy))
    system: System = hy.lagrangian(energy, q, u)
    return system


def _compiled(system: System, **options: Any) -> Any:
    import heyoka as hy

    return hy.cfunc([rate for _, rate in system], vars=[y for y, _ in system], **options)


class _Taylor:
    """Integrations by Taylor series; the integrator of a tolerance is compiled at its first run."""

    def __init__(self, hy: Any, problem: Problem, system: System, compact: bool) -> None:
        self._make = partial(hy.taylor_adaptive, system, list(problem.formulas.start), compact_mode=compact)
        self._problem, self._success = problem, hy.taylor_outcome.time_limit
        self._made: dict[float, Any] = {}

    def __call__(self, tolerance: float) -> Array:
        formulas = self._problem.formulas
        if tolerance not in self._made:
            self._made[tolerance] = self._make(tol=tolerance)
        integrator = self._made[tolerance]
        integrator.time = 0.0
        integrator.state[:] = formulas.start
        outcome = integrator.propagate_until(self._problem.duration)[0]
        if outcome != self._success:
            raise SolveError(f"heyoka stopped: {outcome}")
        return np.array(integrator.state)


def first(problem: Problem) -> Array:
    """From the formulas to the end of the first motion, without what heyoka has in its caches."""
    import heyoka as hy

    enabled = hy.llvm_state.get_diskcache_enabled()
    hy.llvm_state.set_diskcache_enabled(False)
    hy.llvm_state.clear_memcache()
    try:
        system = _system(problem)
        run = _Taylor(hy, problem, system, problem.formulas.operations > LARGE)
        return problem.formulas.whole_of(run(FIRST_TOLERANCE))
    finally:
        hy.llvm_state.set_diskcache_enabled(enabled)


def batch(problem: Problem, count: int) -> Task:
    """The faster of two variants: the defaults, and vectors of eight doubles in registers of AVX-512."""
    return _batch(problem, count, _system(problem), {}, AVX512)


def batch_avx2(problem: Problem, count: int) -> Task:
    """Vectors of four doubles: the defaults use registers of AVX-512 on some processors."""
    return _batch(problem, count, _system(problem), AVX2)


def batch_lagrangian(problem: Problem, count: int) -> Task:
    """As `batch`, with the equations of ``lagrangian``, which heyoka's documentation has for mechanical systems."""
    return _batch(problem, count, _lagrangian_system(problem), {}, AVX512)


def _batch(problem: Problem, count: int, system: System, *variants: dict[str, Any]) -> Task:
    """``cfunc`` with an array (n, ``count``), in one thread: seconds for each state, by the fastest of the variants."""
    import heyoka as hy

    hy.set_nthreads(1)
    columns = np.ascontiguousarray(np.resize(problem.samples, (count, problem.samples.shape[1])).T)
    names = {"y": columns, "out": np.empty_like(columns)}
    tasks = []
    for options in variants:
        function = _compiled(system, **options)
        check_rates(problem, NAME, function)
        tasks.append(timing.statement_task("function(y, outputs=out)", {**names, "function": function}))
    return lambda: min(task() for task in tasks) / count


def gradients(problem: GradientProblem) -> Mapping[str, Mapping[str, Callable[[float], Array]]]:
    """``var_ode_sys``, as in "Variational ODEs" of the documentation; heyoka has no reverse mode."""
    import heyoka as hy

    made: dict[float, tuple[Any, Array]] = {}
    n, k = problem.n, len(problem.names)
    x = [hy.expression(f"x_{i}") for i in range(n)]
    p = [hy.par[i] for i in range(len(problem.p0))]
    rates = problem.formulas.rates_in(algebra(hy), [*x, *p])[:n]
    varied = [x[place] if place < n else p[place - n] for place in problem.places]
    compact = problem.formulas.operations > LARGE
    beside = hy.var_ode_sys(list(zip(x, rates, strict=True)), args=varied, order=1)

    def sensitivities(tolerance: float) -> Array:
        if tolerance not in made:
            integrator = hy.taylor_adaptive(
                beside, list(problem.x0), pars=list(problem.p0), tol=tolerance, compact_mode=compact
            )
            made[tolerance] = integrator, integrator.state.copy()
        integrator, start = made[tolerance]
        integrator.time, integrator.state[:] = 0.0, start
        if integrator.propagate_until(problem.duration)[0] != hy.taylor_outcome.time_limit:
            raise SolveError("heyoka stopped")
        slopes = np.array([integrator.state[integrator.get_vslice(order=1, component=row)] for row in problem.rows])
        return slopes.reshape(len(problem.rows) * k)

    def gradient(tolerance: float) -> Array:
        return np.asarray(problem.weights @ sensitivities(tolerance).reshape(-1, k))

    return {"sensitivities": {"taylor": sensitivities}, "gradient": {"taylor": gradient}}
