"""The cost of a sample of the inputs: a controller in Python against inputs that cost nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.bench import timing
from kanegen.bench.modelfile import ModelFile
from kanegen.pipeline import build

SAMPLE_TIME = 1e-3
"""Samples at 1 kHz, with one step of rk4 each."""
SAMPLES = 2000


@dataclass(frozen=True)
class SampleCost:
    """Seconds for each sample of a run with ``constant`` inputs, of one with a ``python`` callable, and of a call of
    this callable alone. No compiled law takes less time than constant inputs."""

    constant: float
    python: float
    callable: float

    @property
    def overhead(self) -> float:
        """What the run spends to call Python, in seconds for each sample."""
        return self.python - self.constant - self.callable


def sample_cost(file: ModelFile, rounds: int) -> SampleCost:
    """Time the samples of a model with inputs; the callable returns the same array at every call."""
    solver, start = build(file.model), file.start()
    t0, q0, u0 = float(start["t"]), *(np.array(start[name], dtype=float) for name in ("q", "u"))
    values = np.zeros(len(solver.description.inputs))

    def controller(t: float, q: Array, u: Array) -> Array:
        return values

    end = t0 + SAMPLES * SAMPLE_TIME
    options: dict[str, Any] = {
        "method": "rk4",
        "step": SAMPLE_TIME,
        "sample_time": SAMPLE_TIME,
        "t_eval": [end],
        "dense_output": False,
    }

    def run(r: Any) -> Callable[[], float]:
        def task() -> float:
            started = time.perf_counter()
            solver.integrate((t0, end), q0, u0, r, start_tolerance=None, **options)
            return (time.perf_counter() - started) / SAMPLES

        return task

    names = {"controller": controller, "t": t0, "q": q0, "u": u0}
    tasks = {
        "constant": run(values),
        "python": run(controller),
        "callable": timing.statement_task("controller(t, q, u)", names),
    }
    return SampleCost(**timing.interleaved(tasks, rounds))
