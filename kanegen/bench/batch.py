"""The cost of one state in a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kanegen.bench import timing
from kanegen.bench.modelfile import ModelFile
from kanegen.pipeline import build

ROWS = 10000
"""States of a batch: their columns stay in the second-level cache of a processor (1.6 MB for the rolling disk)."""

FEW_ROWS = 16
"""States of a call whose time is the cost of calling."""


@dataclass(frozen=True)
class BatchCost:
    """Seconds for each state of one call of `rhs_batch`, and of the compiled function at one state in C.

    ``call``: seconds of a call with `FEW_ROWS` states.
    """

    batch: float
    kernel: float
    call: float


def batch_cost(file: ModelFile, rounds: int) -> BatchCost:
    """Evaluate the right-hand side of a model without inputs at `ROWS` states in column-major arrays."""
    solver = build(file.model, functions=("rhs",))
    d = solver.description
    parameters = [value for name in d.parameters if (value := solver.parameters[name]) is not None]
    states = timing.states_near(file.start(), (), parameters)
    rhs = timing.TimedFunction(timing.timed_library(solver.sources.files, solver.sources.kernel), "rhs", states)
    tasks = {"kernel": rhs.task()}
    for name, rows in (("batch", ROWS), ("call", FEW_ROWS)):
        q, u = (np.asfortranarray(np.tile(values, (rows // timing.STATES, 1))) for values in (states.q, states.u))
        out = (np.empty_like(q), np.empty_like(u))
        names = {"rhs_batch": solver.rhs_batch, "t": states.t, "q": q, "u": u, "out": out}
        solver.rhs_batch(states.t, q, u, out=out)
        tasks[name] = timing.statement_task("rhs_batch(t, q, u, out=out)", names)
    best = timing.interleaved(tasks, rounds)
    return BatchCost(best["batch"] / ROWS, best["kernel"], best["call"])
