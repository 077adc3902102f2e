"""The cost of a compiled feedback law in a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

from kanegen.bench.modelfile import ModelFile
from kanegen.bench.timing import interleaved
from kanegen.pipeline import build
from kanegen.solve import Solver

SPAN, STEP = 40.0, 1e-3


def law_seconds(file: ModelFile, gains: tuple[str, ...], rounds: int) -> tuple[float, float]:
    """Seconds of an evaluation in a run of rk4 under the law of a model, and in the same motion with constant inputs.

    All gains of the law are zero, so that both runs follow the same motion. It starts near the hanging position
    theta = pi of the second coordinate.
    """
    solver = build(file.model).with_parameters(dict.fromkeys(gains, 0.0))
    constant = dict.fromkeys(solver.description.inputs, 0.0)
    tasks = {"law": partial(_run, solver, None), "constant": partial(_run, solver, constant)}
    best = interleaved(tasks, rounds)
    return best["law"], best["constant"]


def _run(solver: Solver, r: Any) -> float:
    integrate: Callable[..., Any] = solver.integrate
    start = time.perf_counter()
    solution = integrate(
        (0.0, SPAN), (0.0, pi - 0.1), (0.0, 0.0), r, method="rk4", step=STEP, t_eval=(SPAN,), dense_output=False
    )
    return (time.perf_counter() - start) / float(solution.statistics.evaluations)
