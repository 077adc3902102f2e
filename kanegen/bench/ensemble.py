"""The cost of a motion in an ensemble."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from kanegen.bench import timing
from kanegen.bench.modelfile import ModelFile
from kanegen.pipeline import build

MOTIONS, SINGLE = 10000, 1000
"""Motions of the ensemble; of these the first ones are integrated one after the other, for comparison."""


@dataclass(frozen=True)
class EnsembleCost:
    """Seconds for each motion of one call of `integrate_many` in one thread, and of a loop over `integrate`."""

    many: float
    loop: float


def ensemble_cost(file: ModelFile, seconds: float, rounds: int) -> EnsembleCost:
    """Integrate a model from starts whose speeds are 0.8 to 1.2 of those of its example; only the ends are kept."""
    solver, start = build(file.model), file.start()
    t0, q0 = float(start["t"]), np.array(start["q"], dtype=float)
    u0 = np.outer(np.linspace(0.8, 1.2, MOTIONS), start["u"])
    u0 = u0[np.random.default_rng(5).permutation(MOTIONS)]
    span, end = (t0, t0 + seconds), np.array([t0 + seconds])

    def loop() -> float:
        started = time.perf_counter()
        for speeds in u0[:SINGLE]:
            solver.integrate(span, q0, speeds, rtol=1e-8, t_eval=end, dense_output=False)
        return (time.perf_counter() - started) / SINGLE

    def many() -> float:
        started = time.perf_counter()
        solver.integrate_many(span, q0, u0, rtol=1e-8)
        return (time.perf_counter() - started) / MOTIONS

    solver.integrate_many(span, q0, u0[:1])  # compiled before it is timed
    return EnsembleCost(**timing.interleaved({"many": many, "loop": loop}, rounds))
