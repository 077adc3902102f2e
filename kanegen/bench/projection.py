"""What a projection after each step adds to a run of dopri5."""

from __future__ import annotations

from dataclasses import dataclass

from kanegen.bench.modelfile import ModelFile
from kanegen.bench.timing import interleaved, statement_task
from kanegen.model import Projection
from kanegen.pipeline import build

SECONDS = 10.0
"""Length of the motion."""


@dataclass(frozen=True)
class ProjectionCost:
    """Seconds of the same run without and with a projection after each step."""

    plain: float
    projected: float


def projection_cost(file: ModelFile, rounds: int) -> ProjectionCost:
    """Time ``integrate`` with its default tolerances and dense output, in turns, from the start of the example."""
    start = file.start()
    t0 = float(start["t"])
    projected = build(file.model, stabilization=Projection())
    solvers = {"plain": projected.with_stabilization(None), "projected": projected}
    q, u = projected.make_consistent(t0, start["q"], start["u"])[:2]
    call = "solver.integrate((t0, t1), q, u, method='dopri5')"
    names = {"t0": t0, "t1": t0 + SECONDS, "q": q, "u": u}
    tasks = {name: statement_task(call, {**names, "solver": solver}) for name, solver in solvers.items()}
    return ProjectionCost(**interleaved(tasks, 4 * rounds))
