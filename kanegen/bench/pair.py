"""One model on both sides: kanegen's solver and the peers made by SymPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from kanegen.arrays import Array
from kanegen.bench.c_peer import peer_library
from kanegen.bench.harness import States, TimedFunction, check_agreement, states_near, timed_library
from kanegen.bench.kane import (
    KaneEquations,
    apply_kanes_method,
    input_values,
    kane_equations,
    parameter_values,
)
from kanegen.bench.modelfile import ModelFile, read_model_file
from kanegen.bench.precision import Cost, cheapest, work_precision
from kanegen.bench.python_peer import METHODS, PythonPeer, python_peer
from kanegen.bench.timing import Timing, interleaved, once, statement_task
from kanegen.derivation import Quantity, derive
from kanegen.model import Model
from kanegen.pipeline import build
from kanegen.solve import Solver

COMPILED_METHODS = ("dopri5", "dop853")
REFERENCE_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Pair:
    """A model with kanegen's ``solver`` and SymPy's ``equations``; ``kane_seconds`` is what deriving them took."""

    file: ModelFile
    solver: Solver
    equations: KaneEquations
    kane_seconds: float

    @property
    def states(self) -> States:
        """The states at which the right-hand sides are timed."""
        model, start = self.file.model, self.file.start()
        return states_near(start, input_values(model, start), parameter_values(model))


@dataclass(frozen=True)
class Evaluation:
    """Seconds of one right-hand side: both sides in C, kanegen's called from Python, SymPy's in Python."""

    kernel: Timing
    c_peer: Timing
    call: Timing
    python: Timing


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
    derivation = apply_kanes_method(file.model, file.start())
    return Pair(file, build(file.model), kane_equations(derivation), derivation.seconds)


def derive_seconds(file: ModelFile, repetitions: int) -> float:
    """Least seconds of `kanegen.derive` with q', T and V, the quantities that ``KanesMethod`` gives, read.

    Each repetition reads the file again, since SymPy's frames and points remember what they have computed.
    """
    fresh = [read_model_file(file.path, file.function, file.options).model for _ in range(repetitions)]
    return min(once(partial(_derive_all, model)) for model in fresh)


def _derive_all(model: Model) -> tuple[Quantity, Quantity, Quantity]:
    equations = derive(model)
    return equations.qdot, equations.T, equations.V


def evaluate_pair(pair: Pair, folder: Path, rounds: int) -> Evaluation:
    """Time one evaluation of (q', u') on all sides in turn. Raises `SolveError` when they disagree."""
    states = pair.states
    sources = pair.solver.sources
    kernel = TimedFunction(timed_library(sources.files, sources.kernel, folder / "kernel"), "rhs", states)
    peer = TimedFunction(peer_library(pair.equations, folder / "peer"), "rhs", states)
    python = _python_peer(pair)
    t, q, u, r = states.t, states.q[0].copy(), states.u[0].copy(), states.r
    y = np.concatenate((q, u))
    check_agreement(
        pair.file.model.name,
        {"SymPy in C": peer.evaluate(0), "kanegen": kernel.evaluate(0), "Python": python.ode(t, y)},
    )
    names = {
        "rhs": pair.solver.rhs,
        "t": t,
        "q": q,
        "u": u,
        "r": r if r.size else None,
        "out": (np.empty(q.size), np.empty(u.size)),
        "ode": python.ode,
        "y": y,
    }
    call = "rhs(t, q, u, r, out=out)" if r.size else "rhs(t, q, u, out=out)"
    tasks = {
        "kernel": kernel.task(),
        "c_peer": peer.task(),
        "call": statement_task(call, names),
        "python": statement_task("ode(t, y)", names),
    }
    return Evaluation(**interleaved(tasks, rounds))


def integrate_pair(
    pair: Pair, duration: float, errors: Sequence[float], repetitions: int, functions: str = "math"
) -> list[ErrorRow]:
    """The cost on each side of reaching each of ``errors`` after ``duration`` seconds of motion.

    The reference is SciPy's DOP853 on SymPy's equations with rtol = `REFERENCE_TOLERANCE`, so that nothing of
    kanegen judges itself. ``functions``: those `python_peer` evaluates with.
    """
    python, start = _python_peer(pair, functions), pair.file.start()
    t0 = float(start["t"])
    q0, u0 = (np.array(start[name], dtype=float) for name in ("q", "u"))
    y0 = np.concatenate((q0, u0))
    end = t0 + duration
    reference = python.integrate(end, (t0, y0), "DOP853", REFERENCE_TOLERANCE)
    r = np.array(input_values(pair.file.model, start)) if pair.file.model.inputs else None

    def run_python(method: str, tolerance: float) -> Array:
        return python.integrate(end, (t0, y0), method, tolerance)

    def run_compiled(method: str, tolerance: float) -> Array:
        solution = pair.solver.integrate(
            (t0, end), q0, u0, r=r, method=method, rtol=tolerance, atol=0.01 * tolerance, dense_output=False
        )
        return np.concatenate((solution.q[-1], solution.u[-1]))

    smallest = min(errors)
    python_curves = {
        method: work_precision(partial(run_python, method), reference, smallest, repetitions) for method in METHODS
    }
    compiled_curves = {
        method: work_precision(partial(run_compiled, method), reference, smallest, 10 * repetitions)
        for method in COMPILED_METHODS
    }
    return [ErrorRow(error, cheapest(python_curves, error), cheapest(compiled_curves, error)) for error in errors]


def _python_peer(pair: Pair, functions: str = "math") -> PythonPeer:
    model = pair.file.model
    return python_peer(pair.equations, input_values(model, pair.file.start()), parameter_values(model), functions)
