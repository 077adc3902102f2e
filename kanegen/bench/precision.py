"""Work and precision: the cost of reaching an error, rather than a tolerance.

Tolerances mean different things to different codes, so each method is run over a range of them, the error of
each run is measured against a much more precise reference, and costs are compared at equal measured error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from kanegen.arrays import Array
from kanegen.bench.timing import once

TOLERANCES = tuple(10.0**-k for k in range(2, 13))
"""Relative tolerances from loose to tight."""


@dataclass(frozen=True)
class WorkPoint:
    """One run: ``error`` of the final state (see `relative_error`) and the least ``seconds`` of its repetitions."""

    tolerance: float
    error: float
    seconds: float


@dataclass(frozen=True)
class Cost:
    """The cheapest of several methods at an error: its name and ``seconds``."""

    method: str
    seconds: float


def relative_error(state: Array, reference: Array) -> float:
    """The largest component of ``|state - reference| / (1 + |reference|)``."""
    return float(np.max(np.abs(state - reference) / (1.0 + np.abs(reference))))


def work_precision(
    run: Callable[[float], Array], reference: Array, smallest_error: float, repetitions: int
) -> tuple[WorkPoint, ...]:
    """Runs ``run(tolerance)`` with tighter and tighter tolerances until the error falls below ``smallest_error``."""
    points: list[WorkPoint] = []
    for tolerance in TOLERANCES:
        error = relative_error(run(tolerance), reference)
        seconds = min(once(partial(run, tolerance)) for _ in range(repetitions))
        points.append(WorkPoint(tolerance, error, seconds))
        if error < smallest_error:
            break
    return tuple(points)


def seconds_at_error(points: Sequence[WorkPoint], error: float) -> float:
    """Cost of reaching ``error``: between two runs that enclose it, linear in the logarithms; inf if not reached."""
    best = math.inf
    for loose, tight in pairwise(points):
        if tight.error <= error <= loose.error and tight.error < loose.error:
            part = math.log(loose.error / error) / math.log(loose.error / tight.error)
            best = min(best, loose.seconds * (tight.seconds / loose.seconds) ** part)
    if points and points[0].error <= error:
        best = min(best, points[0].seconds)
    return best


def cheapest(curves: dict[str, tuple[WorkPoint, ...]], error: float) -> Cost:
    """The cheapest method at ``error``; its cost is inf when no method reaches it."""
    costs = [Cost(method, seconds_at_error(points, error)) for method, points in curves.items()]
    return min(costs, key=lambda cost: cost.seconds)
