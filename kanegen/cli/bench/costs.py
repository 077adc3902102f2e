"""The costs of runs with samples, laws and projections, and of many states and motions at once.

Each function measures a model in several ways, in turns, and returns the least seconds by name.
"""

from __future__ import annotations

from functools import partial
from math import pi
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.cli.bench.compiled import STATES, TimedFunction, states_near, timed_library
from kanegen.cli.bench.timing import call_task, interleaved, statement_task
from kanegen.model import Projection
from kanegen.modelfile import ModelFile
from kanegen.pipeline import build
from kanegen.solve import Objective

SAMPLE_TIME, SAMPLES = 1e-3, 2000
"""Samples of the inputs at 1 kHz, with one step of rk4 each."""

LAW_SECONDS, LAW_STEP = 40.0, 1e-3
MOTION_SECONDS = 10.0

GRADIENT_SECONDS, DIRECTIONS = 10.0, 8
"""A motion that is differentiated, and the directions of its sensitivities."""

ROWS = 10000
"""States of a batch: their columns stay in the second-level cache of a processor (1.6 MB for the rolling disk)."""

FEW_ROWS = 16
"""States of a call whose time is the cost of calling."""

MOTIONS, SINGLE = 10000, 1000
"""Motions of an ensemble; of these the first ones are integrated one after the other, for comparison."""


def sample_costs(file: ModelFile, rounds: int) -> dict[str, float]:
    """For each sample of a run with ``constant`` inputs, of one with a ``python`` callable that returns the same array
    at every call, and of a call of this ``callable`` alone. No compiled law takes less time than constant inputs."""
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
        "start_tolerance": None,
    }
    run = partial(solver.integrate, (t0, end), q0, u0, **options)
    tasks = {
        "constant": call_task(partial(run, r=values), SAMPLES),
        "python": call_task(partial(run, r=controller), SAMPLES),
        "callable": statement_task("controller(t, q, u)", {"controller": controller, "t": t0, "q": q0, "u": u0}),
    }
    return interleaved(tasks, rounds)


def law_costs(file: ModelFile, gains: tuple[str, ...], rounds: int) -> dict[str, float]:
    """For each evaluation in a run of rk4 under the ``law`` of a model, and in one with ``constant`` inputs.

    All gains of the law are zero, so that both runs follow the same motion. It starts near the hanging position
    theta = pi of the second coordinate.
    """
    solver = build(file.model).with_parameters(dict.fromkeys(gains, 0.0))
    options: dict[str, Any] = {"method": "rk4", "step": LAW_STEP, "t_eval": (LAW_SECONDS,), "dense_output": False}
    run = partial(solver.integrate, (0.0, LAW_SECONDS), (0.0, pi - 0.1), (0.0, 0.0), **options)
    inputs = {"law": None, "constant": dict.fromkeys(solver.description.inputs, 0.0)}
    evaluations = run().statistics.evaluations
    return interleaved({name: call_task(partial(run, r=r), evaluations) for name, r in inputs.items()}, rounds)


def projection_costs(file: ModelFile, rounds: int) -> dict[str, float]:
    """For ``integrate`` by dopri5 with its default options, ``plain`` and ``projected`` after each step."""
    start = file.start()
    t0 = float(start["t"])
    projected = build(file.model, stabilization=Projection())
    solvers = {"plain": projected.with_stabilization(None), "projected": projected}
    q, u = projected.make_consistent(t0, start["q"], start["u"])[:2]
    call = "solver.integrate((t0, t1), q, u, method='dopri5')"
    names = {"t0": t0, "t1": t0 + MOTION_SECONDS, "q": q, "u": u}
    tasks = {name: statement_task(call, {**names, "solver": solver}) for name, solver in solvers.items()}
    return interleaved(tasks, 4 * rounds)


def gradient_costs(file: ModelFile, rounds: int) -> dict[str, float]:
    """For ``integrate`` by dopri5 to rtol 1e-10: ``plain``, with `DIRECTIONS` directions as ``forward``, and a gradient
    in all parameters as ``adjoint``."""
    solver, start = build(file.model), file.start()
    d, t0 = solver.description, float(start["t"])
    q, u = solver.make_consistent(t0, start["q"], start["u"])[:2]
    varied = (*d.parameters, *d.coordinates, *d.speeds) if not d.constraints.levels else d.parameters
    names = {
        **{"solver": solver, "t0": t0, "t1": t0 + GRADIENT_SECONDS, "q": q, "u": u},
        **{"directions": varied[:DIRECTIONS], "parameters": d.parameters},
        "objective": Objective(terminal=file.model.coordinates[0]),
    }
    arguments = "(t0, t1), q, u, rtol=1e-10, atol=1e-12"
    calls = {
        "plain": f"solver.integrate({arguments}, dense_output=False)",
        "forward": f"solver.integrate({arguments}, sensitivities=directions)",
        "adjoint": f"solver.value_and_gradient(objective, {arguments}, with_respect_to=parameters)",
    }
    return interleaved({name: statement_task(call, names) for name, call in calls.items()}, rounds)


def batch_costs(file: ModelFile, rounds: int) -> dict[str, float]:
    """For each state of a ``batch`` of `ROWS` column-major ones, for the ``kernel`` in C at one state, and for a
    ``call`` with `FEW_ROWS` states. The model has no inputs."""
    solver = build(file.model, functions=("rhs",))
    parameters = [solver.parameters[name] for name in solver.description.parameters]
    states = states_near(file.start(), (), [value for value in parameters if value is not None])
    rhs = TimedFunction(timed_library(solver.sources.files, solver.sources.kernel), "rhs", states)
    tasks = {"kernel": rhs.task()}
    for name, rows in (("batch", ROWS), ("call", FEW_ROWS)):
        q, u = (np.asfortranarray(np.tile(values, (rows // STATES, 1))) for values in (states.q, states.u))
        out = (np.empty_like(q), np.empty_like(u))
        names = {"rhs_batch": solver.rhs_batch, "t": states.t, "q": q, "u": u, "out": out}
        tasks[name] = statement_task("rhs_batch(t, q, u, out=out)", names)
    best = interleaved(tasks, rounds)
    return {**best, "batch": best["batch"] / ROWS}


def ensemble_costs(file: ModelFile, rounds: int) -> dict[str, float]:
    """For each motion of one call of `integrate_many` in one thread, and of a ``loop`` over `integrate`.

    The speeds at the start are 0.8 to 1.2 of those of the file; only the ends are kept.
    """
    solver, start = build(file.model), file.start()
    t0, q0 = float(start["t"]), np.array(start["q"], dtype=float)
    u0 = np.outer(np.linspace(0.8, 1.2, MOTIONS), start["u"])
    u0 = u0[np.random.default_rng(5).permutation(MOTIONS)]
    span, end = (t0, t0 + MOTION_SECONDS), np.array([t0 + MOTION_SECONDS])

    def loop() -> None:
        for speeds in u0[:SINGLE]:
            solver.integrate(span, q0, speeds, rtol=1e-8, t_eval=end, dense_output=False)

    solver.integrate_many(span, q0, u0[:1])  # compiled before it is timed
    many = partial(solver.integrate_many, span, q0, u0, rtol=1e-8)
    return interleaved({"many": call_task(many, MOTIONS), "loop": call_task(loop, SINGLE)}, rounds)
