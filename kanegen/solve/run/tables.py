"""Runs that end at the end of a table: which one, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.graph.functions import advice
from kanegen.solve.run.problem import Problem

_GROWTH: Final = 4.0
"""Ratio of the steps with which the state is moved beyond the last one, until an argument leaves its table."""

_SHORTEST: Final = 1e-15
"""The first of these steps, as a fraction of the span."""


def left_table(problem: Problem, last: tuple[Any, ...], span: tuple[float, float]) -> str | None:
    """The message on the table beyond whose end the run does not go on from its last state; None: it is not known."""
    tables = problem.functions.module.TABLES
    if not tables:
        return None
    known = None if problem.momenta is not None or problem.loop is not None else _left(problem, last, span)
    if known is None:
        each = ", ".join(f"{label} (from {low:.9g} to {high:.9g})" for label, low, high in tables)
        return f"the argument of one of {each} is beyond: {advice(tables[0][0])}"
    k, value, at_once = known
    label, low, high = tables[k]
    then = "is beyond" if at_once else "is about to leave"
    return (
        f"the argument of {label} is {value:.9g} at t = {last[0]:.9g} s and {then} the interval from {low:.9g} to "
        f"{high:.9g}, in which it has values: {advice(label)}"
    )


def _left(problem: Problem, last: tuple[Any, ...], span: tuple[float, float]) -> tuple[int, float, bool] | None:
    """The table that the motion leaves next, its argument at the last state, and whether it is outside already."""
    at_last: Array | None = None
    try:
        for h, state in _ahead(problem, last, span):
            rows = np.asarray(problem.at(*state).evaluate(problem.functions.get("tables").value))
            at_last = rows if at_last is None else at_last
            outside = np.flatnonzero(rows[:, 1] == 0.0)
            if outside.size:
                k = int(outside[0])
                return k, float(at_last[k, 0]), h == 0.0
    except SolveError:
        return None
    return None


def _ahead(problem: Problem, last: tuple[Any, ...], span: tuple[float, float]) -> Iterator[tuple[float, Any]]:
    """Yield steps and states along the rates of the last state, which is the first one."""
    t, q, u, *s = last
    yield 0.0, last
    rates = problem.at(*last).evaluate(problem.function.pair)
    h = _SHORTEST * (span[1] - span[0])
    while abs(h) <= abs(span[1] - span[0]):
        yield h, (t + h, *(x + h * rate for x, rate in zip((q, u, *s), rates, strict=True)))
        h *= _GROWTH
