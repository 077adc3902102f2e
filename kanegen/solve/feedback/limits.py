"""Checks of the limits of feedback laws with the parameters of a solver."""

from __future__ import annotations

from kanegen.model.checks.feedback import limit_problem
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import require_none

LIMITS = "law_limits"


def require_limits(functions: CompiledFunctions) -> None:
    """Raise `SolveError` if the limits of a law contradict each other with the parameters of the solver."""
    d = functions.description
    if LIMITS not in d.functions or functions.problem(LIMITS) is not None:
        return
    values = iter(functions.of_parameters(LIMITS).tolist())
    problems = []
    for k, law in d.laws.items():
        problem = limit_problem(d.inputs[k], {what: next(values) for what in law.limits})
        problems += [] if problem is None else [problem]
    require_none(problems)
