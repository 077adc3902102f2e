"""The comparison with other packages: everything is measured in one process, and the results can be written as JSON."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from benchmarks.gradient_problems import NAMES, GradientProblem, read_gradient_problem
from benchmarks.problems import INTEGRATED, Problem, read_problem, require_problem
from benchmarks.program import Program, Task
from benchmarks.registry import OWN, PEERS, installed
from kanegen.arrays import Array
from kanegen.cli.bench.timing import interleaved, machine_lines, timed
from kanegen.errors import KanegenError, ModelError, SolveError
from kanegen.model import Model
from kanegen.pipeline import build
from kanegen.plot.work import WorkPoint, relative_error
from kanegen.writing import replacing

Made = TypeVar("Made")

SMALLEST_ERROR: Final = 1e-12
SAMPLES: Final = 4
"""Samples of each evaluation in a round."""

RUN_SECONDS: Final = 0.1
"""Shorter runs are repeated for this time, at most `REPETITIONS` times."""

REPETITIONS: Final = 200
NEAR: Final = 1e-3
"""A program without any result of this error solves another problem."""

LONGEST_RUN: Final = 2.0
"""Tighter tolerances are not tried after a run of this length (s)."""

TREES: Final = ("Pinocchio", "MuJoCo")
"""The peers for bodies and joints, which large models are compared with."""

LARGE: Final = ("spatial_chain(16)", "humanoid")
BATCHES: Final = ("n_link_pendulum(2)", "spatial_chain(4)")
BATCH_STATES: Final = (1_000, 10_000, 100_000)
BATCH_FUNCTIONS: Final = {
    "": {"": "batch", ", lagrangian": "batch_lagrangian"},
    ", AVX2": {"": "batch_avx2"},
}
"""What comes after the numbers of states in the titles of batches: what comes after the names of the peers, and the
functions of their modules that measure."""
GRADIENT_TOLERANCES: Final = tuple(10.0**-k for k in range(5, 12))
GRADIENT_ROUNDS: Final = 10
"""How often each run is timed, in turn with the others."""

GRADIENT_NEAR: Final = 1e-2
"""Runs with larger errors of the derivatives are not timed."""

Runs: TypeAlias = Mapping[str, Mapping[str, Callable[[float], Array]]]
"""By peer and method, functions of a tolerance."""

GROWING: Final = ("n_link_pendulum",)
BODIES: Final = (5, 10, 20, 40, 80)
FIRST: Final = ("n_link_pendulum(5)", "rolling_disk")


@dataclass
class Results:
    """What was measured, in seconds.

    Parameters
    ----------
    machine
        Lines of text.
    versions
        Of the programs that were measured, by name.
    missing
        Peers that were not measured, and why.
    refused
        By problem and peer, why a peer could not treat the problem, or why its answer was not right.
    forms
        By problem and peer, which equations were evaluated.
    evaluation
        By problem, ``"in C"`` or ``"from Python"``, and peer, the seconds of an evaluation. ``"Pinocchio, generated"``
        is another code of the same peer.
    integration
        By problem, peer and method, the runs.
    batch
        By problem with the number of states, and peer, the seconds for each state.
    growth
        By family of models, number of bodies and peer, the seconds of an evaluation in C.
    first
        By problem and peer, the seconds to the end of the first motion.
    gradients
        By problem with the kind of derivatives, peer and method, the runs; ``"kanegen, differences"`` is a peer, too.
    """

    machine: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    forms: dict[str, dict[str, str]] = field(default_factory=dict)
    evaluation: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    integration: dict[str, dict[str, dict[str, list[WorkPoint]]]] = field(default_factory=dict)
    batch: dict[str, dict[str, float]] = field(default_factory=dict)
    growth: dict[str, dict[int, dict[str, float]]] = field(default_factory=dict)
    first: dict[str, dict[str, float]] = field(default_factory=dict)
    gradients: dict[str, dict[str, dict[str, list[WorkPoint]]]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(json.dumps(asdict(self), indent=1).encode() + b"\n")


def read_results(path: Path) -> Results:
    """The results in a file of `Results.write`."""
    given = json.loads(path.read_text(encoding="utf-8"))
    curves = [*given["integration"].values(), *given.get("gradients", {}).values()]
    for methods in (methods for peers in curves for methods in peers.values()):
        methods.update({method: [WorkPoint(**point) for point in points] for method, points in methods.items()})
    given["growth"] = {name: {int(n): row for n, row in rows.items()} for name, rows in given["growth"].items()}
    return Results(**{**given, "machine": tuple(given["machine"])})


class Comparison:
    """One run of the comparison with the models in the folder ``examples`` and the peers of these names."""

    def __init__(self, examples: Path, peers: Sequence[str] = tuple(PEERS), rounds: int = 25) -> None:
        self._examples, self._rounds = examples, rounds
        self._modules, missing = installed(tuple(peers))
        versions = {name: {OWN.name: OWN, **PEERS}[name].version for name in self._modules}
        self.results = Results(machine_lines(), versions, missing)

    def parts(self, problems: Sequence[str] = ()) -> Iterator[tuple[str, Callable[[], None]]]:
        """Titles, and functions that measure. With ``problems``, only these are evaluated and integrated.

        Raises `BuildError` for an unknown problem.
        """
        for name in problems:
            require_problem(self._examples, name)
        if not problems:
            yield "time to the first motion", self._firsts
        for name in problems or INTEGRATED:
            yield name, partial(self._problem, name)
        if not problems:
            for name in LARGE:
                yield name, partial(self._large, name)
            yield "batches", self._batches
            for name in NAMES:
                yield f"derivatives of {name}", partial(self._gradients, name)
            for name in GROWING:
                yield f"{name} of many bodies", partial(self._growth, name)

    # -- the parts ---------------------------------------------------------------------------------------------

    def _problem(self, name: str) -> None:
        problem = self._read(name)
        if problem is None:
            return
        programs = self._programs(problem, tuple(self._modules))
        self._evaluate(problem, programs)
        curves: dict[str, dict[str, list[WorkPoint]]] = {}
        for peer, program in programs.items():
            for method, run in program.runs.items():
                points = self._tried(problem, peer, partial(self._curve, problem, program, run))
                if points:
                    curves.setdefault(peer, {})[method] = points
        self.results.integration[name] = curves

    def _large(self, name: str) -> None:
        problem = self._read(name)
        if problem is not None:
            self._evaluate(problem, self._programs(problem, (OWN.name, *TREES)))

    def _batches(self) -> None:
        for name in BATCHES:
            problem = self._read(name)
            if problem is None:
                continue
            for count, (suffix, functions) in product(BATCH_STATES, BATCH_FUNCTIONS.items()):
                tasks: dict[str, Task] = {}
                for (peer, module), (way, function) in product(self._modules.items(), functions.items()):
                    if hasattr(module, function):
                        task = self._tried(problem, peer, partial(getattr(module, function), problem, count))
                        tasks |= {} if task is None else {f"{peer}{way}": task}
                self.results.batch[f"{name}, {count} states{suffix}"] = interleaved(tasks, self._rounds)

    def _gradients(self, name: str) -> None:
        problem = read_gradient_problem(self._examples, name)
        runs: dict[str, dict[str, Mapping[str, Callable[[float], Array]]]] = {}
        for peer, module in self._modules.items():
            for way, function in (("", "gradients"), (", differences", "differences")):
                if hasattr(module, function):
                    made = self._tried(problem, peer, partial(getattr(module, function), problem))
                    for kind, methods in (made or {}).items():
                        runs.setdefault(kind, {})[f"{peer}{way}"] = methods
        for kind, peers in runs.items():
            self.results.gradients[f"{name}, {kind}"] = differentiated(peers, problem.reference(kind))

    def _growth(self, family: str) -> None:
        rows = self.results.growth.setdefault(family, {})
        for n in BODIES:
            problem = self._read(f"{family}({n})")
            if problem is not None:
                programs = self._programs(problem, (OWN.name, *TREES))
                tasks = {peer: program.in_c for peer, program in programs.items() if program.in_c is not None}
                rows[n] = self._interleaved(tasks)

    def _firsts(self) -> None:
        small = self._read("n_link_pendulum(1)")
        if small is None:
            return
        with _cache_after(small.file.model):
            for name in FIRST:
                self._first(name)

    def _first(self, name: str) -> None:
        problem = self._read(name)
        if problem is None:
            return
        # What the reference and the peers need of the formulas is not a part of their time.
        reference, row = problem.reference, self.results.first.setdefault(name, {})
        for peer, module in self._modules.items():
            if not hasattr(module, "first"):
                continue
            made = self._tried(problem, peer, partial(timed, partial(module.first, problem)))
            if made is not None and relative_error(made[0], reference) < NEAR:
                row[peer] = made[1]

    # -- what they need ----------------------------------------------------------------------------------------

    def _read(self, name: str) -> Problem | None:
        """The problem; None, with the reason in the results, if there is no such example."""
        try:
            return read_problem(self._examples, name)
        except ModelError as error:
            self.results.refused.setdefault(name, {})[OWN.name] = _reason(error)
            return None

    def _tried(self, problem: Problem | GradientProblem, peer: str, make: Callable[[], Made]) -> Made | None:
        """What ``make`` returns; None, with the reason in the results, if it fails."""
        try:
            return make()
        except Exception as error:  # whatever a package raises must not end the comparison
            self.results.refused.setdefault(problem.name, {})[peer] = _reason(error)
            return None

    def _programs(self, problem: Problem, peers: Sequence[str]) -> dict[str, Program]:
        """The programs of the peers that can treat the problem; their accelerations have been compared."""
        made = {}
        for peer in peers:
            if peer in self._modules and hasattr(self._modules[peer], "program"):
                module = self._modules[peer]
                program = self._tried(problem, peer, partial(module.program, problem))
                if program is not None:
                    made[peer] = program
                    self.results.forms.setdefault(problem.name, {})[peer] = program.form
        return made

    def _evaluate(self, problem: Problem, programs: Mapping[str, Program]) -> None:
        in_c = {peer: program.in_c for peer, program in programs.items()}
        in_c |= {f"{peer}, generated": program.codegen for peer, program in programs.items()}
        in_python = {peer: program.in_python for peer, program in programs.items()}
        self.results.evaluation[problem.name] = {
            way: self._interleaved({name: task for name, task in tasks.items() if task is not None})
            for way, tasks in (("in C", in_c), ("from Python", in_python))
        }

    def _interleaved(self, tasks: Mapping[str, Task]) -> dict[str, float]:
        return interleaved(tasks, SAMPLES * self._rounds)

    def _curve(self, problem: Problem, program: Program, run: Callable[[float], Any]) -> list[WorkPoint]:
        """Runs with tighter and tighter tolerances. Raises `SolveError` if none comes near the reference."""
        points: list[WorkPoint] = []
        for tolerance in program.tolerances:
            try:
                end, seconds = timed(partial(run, tolerance))
            except SolveError:
                continue
            error = relative_error(program.whole(end), problem.reference)
            if program.prepares or seconds < RUN_SECONDS:
                seconds = repeated(partial(run, tolerance))
            points.append(WorkPoint(tolerance, error, seconds))
            if error < SMALLEST_ERROR or seconds > LONGEST_RUN:
                break
        if not any(point.error < NEAR for point in points):
            raise SolveError(f"no run of at most {LONGEST_RUN:g} s comes near the reference solution")
        return points


def differentiated(peers: Runs, reference: Array) -> dict[str, dict[str, list[WorkPoint]]]:
    """The runs of all methods of all programs with `GRADIENT_TOLERANCES`; those that fail are left out.

    Programs are timed in turn, because a busy machine must not slow down one of them only.
    """
    curves: dict[str, dict[str, list[WorkPoint]]] = {
        peer: {method: [] for method in methods} for peer, methods in peers.items()
    }
    for tolerance in GRADIENT_TOLERANCES:
        errors, tasks = {}, {}
        for peer, method in ((peer, method) for peer, methods in peers.items() for method in methods):
            task = partial(peers[peer][method], tolerance)
            try:
                errors[peer, method] = relative_error(task(), reference)
            except SolveError:
                continue
            if errors[peer, method] < GRADIENT_NEAR:
                tasks[peer, method] = task
        least = dict.fromkeys(tasks, float("inf"))
        for _ in range(GRADIENT_ROUNDS):
            for key, task in tasks.items():
                least[key] = min(least[key], timed(task)[1])
        for (peer, method), seconds in least.items():
            curves[peer][method].append(WorkPoint(tolerance, errors[peer, method], seconds))
    return curves


def repeated(function: Callable[[], object]) -> float:
    """The least seconds of calls for about `RUN_SECONDS`."""
    best, total = float("inf"), 0.0
    for _ in range(REPETITIONS):
        seconds = timed(function)[1]
        best, total = min(best, seconds), total + seconds
        if total > RUN_SECONDS:
            break
    return best


def _reason(error: Exception) -> str:
    """The first line of the message, after the type of errors that are not kanegen's own."""
    first = next(iter(str(error).strip().splitlines()), "")
    return first if isinstance(error, KanegenError) else f"{type(error).__name__}: {first}"


@contextmanager
def _cache_after(model: Model) -> Iterator[None]:
    """A cache of kanegen that contains this model only, and with it the Python wrapper, compiled once per machine."""
    before = os.environ.get("KANEGEN_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="kanegen-bench-") as folder:
        os.environ["KANEGEN_CACHE_DIR"] = folder
        try:
            build(model)
            yield
        finally:
            if before is None:
                del os.environ["KANEGEN_CACHE_DIR"]
            else:
                os.environ["KANEGEN_CACHE_DIR"] = before
