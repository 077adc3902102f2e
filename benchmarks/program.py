"""What a peer makes of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from benchmarks.problems import Problem
from kanegen.arrays import Array
from kanegen.cli.bench.compiled import STATES, check_agreement

Task: TypeAlias = Callable[[], float]
"""Measures itself and returns seconds per evaluation, see `kanegen.cli.bench.timing.interleaved`."""

SAMPLE_SECONDS = 0.001
"""Length of one sample of an evaluation in C: short, so that some samples are not disturbed by other load."""

TOLERANCES = tuple(10.0**-k for k in range(3, 16))
"""Relative tolerances from loose to tight."""

SCIPY_TOLERANCES = tuple(tolerance for tolerance in TOLERANCES if tolerance > 3e-14)
"""Those that `scipy.integrate.solve_ivp` accepts: not below 100 times the rounding error."""

FIRST_TOLERANCE = 1e-8
"""Relative tolerance of the first motion of a model."""


@dataclass(frozen=True)
class Program:
    """A problem in the form of one program.

    Parameters
    ----------
    form
        Which equations it evaluates, in words.
    in_c, in_python
        Tasks that evaluate the right-hand side at the states of the problem, in a loop in C and by calls from Python.
    codegen
        A task like ``in_c``, of code that the peer generated, if it has compiled code of its own, too.
    runs
        By the name of the method, functions that integrate with a tolerance, and return the state at the end. They
        raise `SolveError` if they fail.
    tolerances
        Those with which ``runs`` are tried, from loose to tight.
    prepares
        Whether the first run with a tolerance compiles something.
    whole
        The model's q and u of a state that ``runs`` return. It is no part of the time of a run.
    """

    form: str
    in_c: Task | None = None
    in_python: Task | None = None
    codegen: Task | None = None
    runs: Mapping[str, Callable[[float], Any]] = field(default_factory=dict)
    tolerances: Sequence[float] = TOLERANCES
    prepares: bool = False
    whole: Callable[[Any], Array] = np.asarray


def check_rates(problem: Problem, peer: str, rates: Callable[[Array], Array]) -> None:
    """Raise `SolveError` unless ``rates(y)`` gives y' of the formulas at every sample."""
    for y in problem.samples:
        expected = problem.formulas.values(problem.formulas.rates, y)
        check_agreement(problem.name, {"the formulas": expected, peer: np.asarray(rates(y), dtype=float)})


def check_accelerations(problem: Problem, peer: str, accelerations: Callable[[Array, Array], Array]) -> None:
    """Raise `SolveError` unless ``accelerations(q, u)`` gives the model's u' at every state."""
    states, formulas = problem.states, problem.formulas
    for k in range(STATES):
        expected = formulas.values(formulas.whole_rates[states.q.shape[1] :], problem.samples[k])
        check_agreement(problem.name, {"the formulas": expected, peer: accelerations(states.q[k], states.u[k])})
