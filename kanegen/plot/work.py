"""Error against work of integrations.

Tolerances mean different things to different codes, so each method of integration is run over a range of them, the
error of each run is measured against a much more precise reference, and costs are compared at equal measured error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from timeit import repeat

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError

TOLERANCES = tuple(10.0**-k for k in range(2, 13))
"""Relative tolerances from loose to tight."""


@dataclass(frozen=True)
class WorkPoint:
    """One run: ``error`` of the final state (see `relative_error`) and the least ``seconds`` of its repetitions."""

    tolerance: float
    error: float
    seconds: float


def relative_error(state: Array, reference: Array) -> float:
    """The largest component of ``|state - reference| / (1 + |reference|)``."""
    return float(np.max(np.abs(state - reference) / (1.0 + np.abs(reference))))


def work_points(
    run: Callable[[float], Array],
    reference: Array,
    smallest_error: float,
    repetitions: int,
    tolerances: Sequence[float] = TOLERANCES,
) -> tuple[WorkPoint, ...]:
    """Runs ``run(tolerance)`` with tighter and tighter tolerances until the error falls below ``smallest_error``.

    A run that fails gives no point: with a loose tolerance its steps may leave the domain of the equations.
    """
    points: list[WorkPoint] = []
    for tolerance in tolerances:
        try:
            error = relative_error(run(tolerance), reference)
        except SolveError:
            continue
        seconds = min(repeat(partial(run, tolerance), repeat=repetitions, number=1))
        points.append(WorkPoint(tolerance, error, seconds))
        if error < smallest_error:
            break
    return tuple(points)


def seconds_at_error(points: Sequence[WorkPoint], error: float) -> float:
    """Cost of reaching ``error``: between two runs that enclose it, linear in the logarithms; inf if not reached."""
    best = points[0].seconds if points and points[0].error <= error else math.inf
    for loose, tight in pairwise(points):
        if tight.error <= error <= loose.error and tight.error < loose.error:
            part = math.log(loose.error / error) / math.log(loose.error / tight.error)
            best = min(best, loose.seconds * (tight.seconds / loose.seconds) ** part)
    return best
