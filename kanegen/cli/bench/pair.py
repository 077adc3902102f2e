"""One model solved by both sides: kanegen's solver and the peers made by SymPy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from kanegen.arrays import Array
from kanegen.cli.bench import compiled, peers, timing
from kanegen.cli.tables import make_table, number_text, seconds_text
from kanegen.derivation import Quantity, derive
from kanegen.model import Model
from kanegen.modelfile import ModelFile, read_model_file
from kanegen.pipeline import build
from kanegen.plot.work import WorkPoint, seconds_at_error, work_points
from kanegen.solve import Solver

COMPILED_METHODS = ("dopri5", "dop853")

ERRORS = (1e-6, 1e-8, 1e-10)
"""Errors of the final state at which integrations are compared."""

REFERENCE_TOLERANCE = 1e-13

ROWS = 100_000
"""States of the evaluation of a quantity along a motion."""


@dataclass(frozen=True)
class Pair:
    """A model with kanegen's ``solver`` and SymPy's ``equations``; ``kane_seconds`` is what deriving them took.

    ``inputs`` and ``parameters`` are the values at which both sides are evaluated.
    """

    file: ModelFile
    solver: Solver
    equations: peers.KaneEquations
    kane_seconds: float
    inputs: tuple[float, ...]
    parameters: tuple[float, ...]

    def ode(self, functions: str = "math") -> peers.Ode:
        """SymPy's equations in Python, see `python_peer`."""
        return peers.python_peer(self.equations, self.inputs, self.parameters, functions)


@dataclass(frozen=True)
class RhsTimes:
    """Seconds of one right-hand side: both sides in C, kanegen's called from Python, SymPy's in Python."""

    kernel: float
    c_peer: float
    call: float
    python: float


@dataclass(frozen=True)
class Cost:
    """The cheapest of several methods at an error: its name and ``seconds``."""

    method: str
    seconds: float


@dataclass(frozen=True)
class ErrorRow:
    """The cheapest way to an error of the state at the end, on both sides."""

    error: float
    python: Cost
    compiled: Cost

    @property
    def ratio(self) -> float:
        return self.python.seconds / self.compiled.seconds


def make_pair(file: ModelFile) -> Pair:
    """Build and derive on both sides. Raises `PeerError` when ``KanesMethod`` cannot treat the model."""
    model, start = file.model, file.start()
    derivation = peers.apply_kanes_method(model, start)
    return Pair(
        file=file,
        solver=build(model),
        equations=peers.kane_equations(derivation),
        kane_seconds=derivation.seconds,
        inputs=peers.input_values(model, start),
        parameters=peers.parameter_values(model),
    )


def derive_seconds(file: ModelFile, repetitions: int) -> float:
    """Least seconds of `kanegen.derive` including q', T and V, the quantities that ``KanesMethod`` gives.

    Each repetition reads the file again, since SymPy's frames and points remember what they have computed.
    """
    fresh = [read_model_file(file.path, file.function, file.options).model for _ in range(repetitions)]
    return min(timing.timed(partial(_derive_all, model))[1] for model in fresh)


def _derive_all(model: Model) -> tuple[Quantity, Quantity, Quantity]:
    equations = derive(model)
    return equations.qdot, equations.T, equations.V


def evaluate_pair(pair: Pair, rounds: int) -> RhsTimes:
    """Time one evaluation of (q', u', s') on all sides in turn. Raises `SolveError` when they disagree."""
    states = compiled.states_near(pair.file.start(), pair.inputs, pair.parameters)
    sources = pair.solver.sources
    kernel = compiled.TimedFunction(compiled.timed_library(sources.files, sources.kernel), "rhs", states)
    peer = compiled.TimedFunction(peers.peer_library(pair.equations), "rhs", states)
    ode = pair.ode()
    t, q, u, r = states.t, states.q[0].copy(), states.u[0].copy(), states.r
    s = states.s if states.s.size else None
    y = np.concatenate((q, u, states.s))
    sides = {"SymPy in C": peer.evaluate(0), "kanegen": kernel.evaluate(0), "Python": ode(t, y)}
    compiled.check_agreement(pair.file.model.name, sides)
    out = tuple(np.empty(part.size) for part in (q, u, s) if part is not None)
    names = {"rhs": pair.solver.rhs, "t": t, "q": q, "u": u, "r": r, "s": s, "out": out, "ode": ode, "y": y}
    inputs = ("r" * bool(r.size), "s=s" * (s is not None))
    call = f"rhs({', '.join(filter(None, ('t, q, u', *inputs, 'out=out')))})"
    tasks = {
        "kernel": kernel.task(),
        "c_peer": peer.task(),
        "call": timing.statement_task(call, names),
        "python": timing.statement_task("ode(t, y)", names),
    }
    return RhsTimes(**timing.interleaved(tasks, rounds))


def energy_of_rows(pair: Pair, rounds: int) -> tuple[float, float]:
    """Seconds for each of `ROWS` states of one call ``solver.energy(t, q, u)``, and of the compiled function in C."""
    states = compiled.states_near(pair.file.start(), pair.inputs, pair.parameters)
    sources, copies = pair.solver.sources, ROWS // compiled.STATES
    energy = compiled.TimedFunction(compiled.timed_library(sources.files, sources.kernel), "energy", states)
    q, u = np.tile(states.q, (copies, 1)), np.tile(states.u, (copies, 1))
    names = {"energy": pair.solver.energy, "t": np.full(len(q), states.t), "q": q, "u": u, "r": states.r}
    call = timing.statement_task(f"energy(t, q, u{', r' * bool(states.r.size)})", names)
    best = timing.interleaved({"rows": call, "kernel": energy.task()}, rounds)
    return best["rows"] / len(q), best["kernel"]


def integrate_pair(pair: Pair, duration: float, repetitions: int, functions: str = "math") -> list[ErrorRow]:
    """The cost of reaching each of `ERRORS` after ``duration`` seconds of motion, on both sides.

    The reference is SciPy's DOP853 on SymPy's equations with rtol = `REFERENCE_TOLERANCE`, so that
    kanegen does not judge its own results. ``functions`` is that of `python_peer`.
    """
    ode, start = pair.ode(functions), pair.file.start()
    t0 = float(start["t"])
    q0, u0 = (np.array(start[name], dtype=float) for name in ("q", "u"))
    s0 = compiled.start_states(start)
    y0, end = np.concatenate((q0, u0, s0)), t0 + duration
    reference = peers.integrate(ode, end, (t0, y0), "DOP853", REFERENCE_TOLERANCE)
    r = np.array(pair.inputs) if pair.inputs else None

    def run_python(method: str, tolerance: float) -> Array:
        return peers.integrate(ode, end, (t0, y0), method, tolerance)

    def run_compiled(method: str, tolerance: float) -> Array:
        options: dict[str, Any] = {"rtol": tolerance, "atol": 0.01 * tolerance, "dense_output": False}
        solution = pair.solver.integrate((t0, end), q0, u0, r=r, s0=s0, method=method, **options)
        return np.concatenate((solution.q[-1], solution.u[-1], solution.s[-1]))

    def curves(run: Callable[[str, float], Array], methods: Sequence[str], repetitions: int) -> Any:
        return {method: work_points(partial(run, method), reference, min(ERRORS), repetitions) for method in methods}

    slow = curves(run_python, peers.METHODS, repetitions)
    fast = curves(run_compiled, COMPILED_METHODS, 10 * repetitions)
    return [ErrorRow(error, cheapest(slow, error), cheapest(fast, error)) for error in ERRORS]


def cheapest(curves: Mapping[str, Sequence[WorkPoint]], error: float) -> Cost:
    """The cheapest method at ``error``; its cost is inf when no method reaches it."""
    costs = [Cost(method, seconds_at_error(points, error)) for method, points in curves.items()]
    return min(costs, key=lambda cost: cost.seconds)


def comparison_table(
    name: str, derivation: tuple[float, float], evaluation: RhsTimes, rows: Sequence[ErrorRow]
) -> Table:
    """Pure Python against the compiled solver: ``derivation`` holds the seconds of both."""
    pairs = {
        "derivation": derivation,
        "right-hand side, called from Python": (evaluation.python, evaluation.call),
        "right-hand side in C (SymPy's cse)": (evaluation.c_peer, evaluation.kernel),
    }
    cells = [(what, *map(seconds_text, pair), number_text(pair[0] / pair[1])) for what, pair in pairs.items()]
    for row in rows:
        costs = (f"{seconds_text(cost.seconds)} {cost.method}" for cost in (row.python, row.compiled))
        cells.append((f"integration to error {row.error:.0e}", *costs, number_text(row.ratio)))
    right = ("pure Python", "kanegen", "ratio")
    return make_table(f"{name}: SymPy and SciPy against kanegen", ("what", *right), cells, right)
