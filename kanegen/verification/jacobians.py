"""Compiled Jacobians of the right-hand side against differences of the true motion."""

from __future__ import annotations

from typing import Any

from kanegen.errors import SolveError
from kanegen.program.interpret import interpret
from kanegen.verification.arithmetic import DOUBLE, NO_DIGITS, central_difference
from kanegen.verification.compiled import Compiled
from kanegen.verification.report import Check
from kanegen.verification.states import State
from kanegen.verification.subject import Subject
from kanegen.verification.worst import Worst, not_applicable

PRINCIPLE = "Jacobians of q', u'"
PREFIX = "jacobian_"
STATES = 3
"""Differences in 50 digits cost two evaluations of the right-hand side per argument: a few states are enough."""


def rates(subject: Subject) -> Check:
    """``jacobian_q``, ``_u``, ``_r``, ``_p``, ``_t`` against central differences of (q', u') in 50 digits."""
    compiled = Compiled(subject.solver, stabilized=True)
    names = [name for name in compiled.names if name.startswith(PREFIX)]
    if not names:
        return not_applicable(PRINCIPLE, "none is compiled")
    if not subject.arithmetic.exact:
        return not_applicable(PRINCIPLE, NO_DIGITS)
    worst = Worst(PRINCIPLE, DOUBLE)
    for state in subject.states[:STATES]:
        for name in names:
            try:
                expected = _differences(subject, state, name.removeprefix(PREFIX))
            except SolveError:
                continue
            try:
                actual = compiled(name, state)
            except SolveError as error:
                worst.add(str(error), state, float("nan"))
                continue
            worst.compare(name, state, actual, expected, [max(map(abs, expected))] * len(expected))
    return worst.check(f"{', '.join(names)} against differences in 50 digits")


def _differences(subject: Subject, state: State, array: str) -> list[Any]:
    """Derivatives of (q', u') in the elements of an array, row-major; `SolveError` where the motion does not exist."""
    values = subject.values(state)
    stabilized = any(function.name == "rhs_stabilized" for function in subject.program.functions)
    name = "rhs_stabilized" if stabilized else "rhs"
    columns = []
    for k in range(len(subject.equations.system.r) if array == "r" else len(values[array])):

        def moved(step: Any, k: int = k) -> list[Any]:
            changed = list(values[array])
            changed[k] = changed[k] + step
            status, result = interpret(subject.program, name, {**values, array: changed}, subject.arithmetic.context)
            if status < 0:
                raise SolveError(name)
            return result

        columns.append(central_difference(moved))
    return [x for row in zip(*columns, strict=True) for x in row]
