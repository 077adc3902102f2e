"""The time of tables at random arguments, without that of the call and of reading the arguments."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import sympy
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, dynamicsymbols

from kanegen.cli.bench.compiled import STATES, States, TimedFunction, timed_library
from kanegen.cli.bench.timing import interleaved
from kanegen.graph.tables import Table
from kanegen.model import Model
from kanegen.pipeline import build

CALLS: Final = 16
"""Evaluations of a table in one function, at independent arguments."""


def table_costs(rounds: int) -> dict[str, float]:
    """For one evaluation of a ``curve`` of 100 and a ``surface`` of 50 x 50 uneven points."""
    generator = np.random.default_rng(35)
    x, a, b = (_points(generator, n) for n in (100, 50, 50))
    curve = Table(x, np.sin(9 * x), extrapolate="polynomial")
    surface = Table(a, b, np.outer(np.sin(9 * a), np.cos(7 * b)), extrapolate="polynomial")
    q = dynamicsymbols(f"q:{CALLS}")
    outputs = {
        "nothing": sum(q),
        "curve": sum(map(curve, q)),
        "surface": sum(surface(q[k], q[k - 1]) for k in range(CALLS)),
    }
    tasks = {name: _timed(name, q, output, generator).task() for name, output in outputs.items()}
    best = interleaved(tasks, rounds)
    return {name: (best[name] - best["nothing"]) / CALLS for name in ("curve", "surface")}


def _points(generator: np.random.Generator, n: int) -> Any:
    """Uneven points from 0 to 1."""
    points = np.cumsum(generator.exponential(size=n) + 0.05)
    return (points - points[0]) / (points[-1] - points[0])


def _timed(name: str, q: Any, output: Any, generator: np.random.Generator) -> TimedFunction:
    """The function of an output of particles on a line, at states from 0 to 1."""
    u, m, N, O = dynamicsymbols(f"u:{CALLS}"), sympy.Symbol("m"), ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    bodies = [Particle(f"b{k}", O.locatenew(f"P{k}", x * N.x), m) for k, x in enumerate(q)]
    model = Model(
        name=f"table_{name}",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[x.diff() - v for x, v in zip(q, u, strict=True)],
        bodies=bodies,
        parameters={m: 1.0},
        outputs={"value": output},
    )
    solver = build(model, functions=("rhs", "outputs"))
    rows, none = (STATES, CALLS), np.zeros(0)
    states = States(0.0, generator.uniform(size=rows), generator.uniform(size=rows), none, none, np.ones(1))
    return TimedFunction(timed_library(solver.sources.files, solver.sources.kernel), "output:value", states)
