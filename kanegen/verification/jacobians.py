"""Compiled Jacobians of the right-hand side against differences of the true motion."""

from __future__ import annotations

from typing import Any

import mpmath

from kanegen.errors import SolveError
from kanegen.program.interpret import interpret
from kanegen.verification.arithmetic import DOUBLE, STEP
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
        return not_applicable(PRINCIPLE, "functions of the user have no 50 digits to take differences of")
    worst = Worst(PRINCIPLE, DOUBLE)
    for state in subject.states[:STATES]:
        for name in names:
            expected = _differences(subject, state, name.removeprefix(PREFIX))
            if expected is None:
                continue
            try:
                actual = compiled(name, state)
            except SolveError as error:
                worst.add(str(error), state, float("nan"))
                continue
            worst.compare(name, state, actual, expected, [max(map(abs, expected))] * len(expected))
    return worst.check(f"{', '.join(names)} against differences in 50 digits")


def _differences(subject: Subject, state: State, array: str) -> list[Any] | None:
    """Derivatives of (q', u') in the elements of an array, row-major; None where the motion does not exist."""
    values = subject.values(state)
    stabilized = any(function.name == "rhs_stabilized" for function in subject.program.functions)
    columns = []
    for k in range(len(subject.equations.system.r) if array == "r" else len(values[array])):
        ends = []
        for sign in (1, -1):
            moved = list(values[array])
            moved[k] = moved[k] + sign * mpmath.mpf(STEP)
            arrays = {**values, array: moved}
            name = "rhs_stabilized" if stabilized else "rhs"
            status, result = interpret(subject.program, name, arrays, subject.arithmetic.context)
            if status < 0:
                return None
            ends.append(result)
        columns.append([(a - b) / (2 * mpmath.mpf(STEP)) for a, b in zip(*ends, strict=True)])
    return [x for row in zip(*columns, strict=True) for x in row]
