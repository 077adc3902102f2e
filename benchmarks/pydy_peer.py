"""PyDy: the equations of SymPy's ``KanesMethod`` in Cython, integrated by SciPy.

Used as its documentation says (https://pydy.readthedocs.io, ``generate_ode_function``): the Cython generator, the
minimal mass matrix with q' apart from it, constants as an array, which is the fastest argument type, and NumPy's solve,
the default. ``odeint`` is the default of ``System.integrate``; DOP853 of ``solve_ivp`` is better at small errors. The
velocity constraints are solved by the default of ``KanesMethod``, or as its documentation says if that divides by zero.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from benchmarks.problems import Problem
from benchmarks.program import FIRST_TOLERANCE, SCIPY_TOLERANCES, Program
from kanegen.arrays import Array
from kanegen.cli.bench import compiled, timing
from kanegen.cli.bench.peers import KaneDerivation, Ode, PeerError, apply_kanes_method, integrate
from kanegen.errors import SolveError

NAME = "PyDy"
CONSTRAINT_SOLVERS = ("LU", "CRAMER")
"""The default of ``KanesMethod``, and the solver that its documentation recommends if the default divides by zero."""


def program(problem: Problem) -> Program:
    function, order = _generated(problem)
    inverse, constants = np.argsort(order), np.array(problem.parameters)

    def ode(t: float, x: Array) -> Array:
        return np.array(function(x, t, constants))

    states, formulas = problem.states, problem.formulas
    whole = np.hstack((states.q, states.u))[:, order]
    for x, y in zip(whole, problem.samples, strict=True):
        expected = formulas.values(formulas.whole_rates, y)
        compiled.check_agreement(problem.name, {"the formulas": expected, NAME: ode(0.0, x)[inverse]})
    start = np.concatenate(problem.start)[order]
    runs = {
        "odeint": partial(_odeint, function, constants, start, inverse, problem.duration),
        "DOP853": partial(_solve_ivp, ode, start, inverse, problem.duration),
    }
    names = {"f": function, "x": whole[0].copy(), "p": constants}
    return Program(
        form="KanesMethod, numpy.linalg.solve",
        in_python=timing.statement_task("f(x, 0.0, p)", names),
        runs=runs,
        tolerances=SCIPY_TOLERANCES,
    )


def first(problem: Problem) -> Array:
    """From the model to the end of the first motion."""
    function, order = _generated(problem)
    start = np.concatenate(problem.start)[order]
    return _odeint(function, np.array(problem.parameters), start, np.argsort(order), problem.duration, FIRST_TOLERANCE)


def _generated(problem: Problem) -> tuple[Any, Any]:
    """The generated function, and the places of its states x in (q, u) of the model.

    Raises `PeerError` if the function is not finite at the start.
    """
    model, constants = problem.file.model, np.array(problem.parameters)
    for solver in CONSTRAINT_SOLVERS if model.constraints else CONSTRAINT_SOLVERS[:1]:
        derivation = apply_kanes_method(model, problem.file.start(), solver)
        places = [len(model.coordinates) + model.speeds.index(speed) for speed in derivation.method.u]
        function, order = generated_function(derivation), np.array([*range(len(model.coordinates)), *places])
        if np.isfinite(function(np.concatenate(problem.start)[order], 0.0, constants)).all():
            return function, order
    raise PeerError(f"{problem.name}: the equations of KanesMethod divide by zero at the start")


def generated_function(derivation: KaneDerivation) -> Any:
    """``f(x, t, p)`` with x = (q, speeds in the order of the `KanesMethod`), by the Cython generator."""
    from pydy.codegen.ode_function_generators import generate_ode_function

    method, model = derivation.method, derivation.model
    rates = method.kindiffdict()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return generate_ode_function(
            derivation.forcing,
            list(model.coordinates),
            list(method.u),
            list(model.parameters),
            mass_matrix=derivation.mass,
            coordinate_derivatives=sm.Matrix([rates[q.diff(dynamicsymbols._t)] for q in model.coordinates]),
            generator="cython",
            constants_arg_type="array",
            force_c_contiguous=True,
        )


def _odeint(function: Any, constants: Array, start: Array, inverse: Any, duration: float, tolerance: float) -> Array:
    from scipy.integrate import ODEintWarning, odeint

    options = {"rtol": tolerance, "atol": 0.01 * tolerance, "mxstep": 10**6}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ODEintWarning)
        try:
            motion = odeint(function, start, (0.0, duration), args=(constants,), **options)
        except ODEintWarning as error:
            raise SolveError(f"odeint with rtol={tolerance:g} stopped: {error}") from error
    return np.asarray(motion[-1][inverse])


def _solve_ivp(ode: Ode, start: Array, inverse: Any, duration: float, tolerance: float) -> Array:
    return np.asarray(integrate(ode, duration, (0.0, start), "DOP853", tolerance)[inverse])
