"""The cost of one state in a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kanegen.bench import timing
from kanegen.bench.modelfile import ModelFile
from kanegen.pipeline import build

ROWS = 100000
"""States of a batch: their columns stay in the second-level cache of a processor."""


@dataclass(frozen=True)
class BatchCost:
    """Seconds for each state of one call of `rhs_batch`, and of the compiled function at one state in C."""

    batch: float
    kernel: float


def batch_cost(file: ModelFile, rounds: int) -> BatchCost:
    """Evaluate the right-hand side of a model without inputs at `ROWS` states in column-major arrays."""
    solver = build(file.model, functions=("rhs",))
    d = solver.description
    parameters = [value for name in d.parameters if (value := solver.parameters[name]) is not None]
    states = timing.states_near(file.start(), (), parameters)
    rhs = timing.TimedFunction(timing.timed_library(solver.sources.files, solver.sources.kernel), "rhs", states)
    copies = ROWS // timing.STATES
    q, u = (np.asfortranarray(np.tile(values, (copies, 1))) for values in (states.q, states.u))
    out = (np.empty_like(q), np.empty_like(u))
    names = {"rhs_batch": solver.rhs_batch, "t": states.t, "q": q, "u": u, "out": out}
    solver.rhs_batch(states.t, q, u, out=out)
    tasks = {"batch": timing.statement_task("rhs_batch(t, q, u, out=out)", names), "kernel": rhs.task()}
    best = timing.interleaved(tasks, rounds)
    return BatchCost(best["batch"] / len(q), best["kernel"])
