"""The table of numbers with targets: `kanegen bench` without a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kanegen.bench.kane import PeerError, apply_kanes_method, build_from_kane
from kanegen.bench.modelfile import ModelFile, label, read_model_file
from kanegen.bench.pair import Evaluation, Pair, derive_seconds, evaluate_pair, integrate_pair, make_pair
from kanegen.bench.results import Result, Target, seconds_text
from kanegen.bench.startup import measure_startup
from kanegen.codegen.description import Description
from kanegen.errors import BuildError
from kanegen.pipeline import sources_of

CONSTRAINED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("constrained_particle", {}),
    ("rheonomic_particle", {}),
    ("appell_hamel", {"constraints": "nonlinear"}),
    ("appell_hamel", {"constraints": "linear"}),
    ("elliptic_wire", {}),
    ("varying_pendulum", {}),
    ("slider_crank", {}),
    ("rolling_disk", {}),
)
ERRORS = (1e-6, 1e-8, 1e-10)
ROLLING_SECONDS = 10.0
TARGET_LINKS = 6
"""Number of links of the chain to which the target of the derivation applies."""
STARTS = 5
"""Number of processes for each waiting time that is measured repeatedly."""


@dataclass(frozen=True)
class Benchmark:
    """One run: the folder of the examples, links of the chain that is derived, rounds of repetitions."""

    examples: Path
    links: int
    rounds: int

    def parts(self) -> tuple[tuple[str, Callable[[], list[Result]]], ...]:
        """The parts of the table in order: a title, and a function that measures."""
        return (
            (f"deriving spatial_chain({self.links})", self._derivation),
            ("counting operations", self._operations),
            ("evaluating unconstrained systems", self._unconstrained),
            ("evaluating constrained systems", self._constrained),
            ("calling from Python", self._call),
            ("starting up", self._startup),
            ("integrating the rolling disk", self._integration),
        )

    def _file(self, name: str, **options: Any) -> ModelFile:
        path = self.examples / f"{name}.py"
        if not path.is_file():
            raise BuildError(
                f"the benchmark needs the example {path}, which is not there; run it in a checkout of "
                "kanegen or name the folder with --examples"
            )
        return read_model_file(path, options=options)

    @cache  # noqa: B019  (a process has one benchmark)
    def _pair(self, name: str, **options: Any) -> Pair:
        return make_pair(self._file(name, **options))

    @cache  # noqa: B019  (a process has one benchmark)
    def _evaluation(self, name: str, **options: Any) -> Evaluation:
        with tempfile.TemporaryDirectory(prefix="kanegen-bench-") as folder:
            return evaluate_pair(self._pair(name, **options), Path(folder), self.rounds)

    def _derivation(self) -> list[Result]:
        file = self._file("spatial_chain", n=self.links)
        derivation = apply_kanes_method(file.model, file.start())
        kane = derivation.seconds
        read = build_from_kane(derivation)
        ours = derive_seconds(file, self.rounds)
        chain = f"spatial_chain({self.links})"
        return [
            Result(
                f"deriving {chain} against KanesMethod",
                kane / ours,
                Target(500.0, 1000.0, "times"),
                f"{seconds_text(kane)} against {seconds_text(ours)}",
                judged=self.links >= TARGET_LINKS,
            ),
            Result(
                f"from_kane and build of the KanesMethod of {chain}",
                read.seconds,
                Target(2.0, 1.0, "s"),
                f"on which kanes_equations took {seconds_text(kane)}",
                judged=self.links >= TARGET_LINKS,
            ),
        ]

    def _operations(self) -> list[Result]:
        sources = sources_of(self._file("spatial_chain", n=4).model, functions=("rhs",))
        count = Description.from_sources(sources).functions["rhs"].operations
        return [
            Result(
                "operations of the right-hand side, spatial_chain(4)",
                float(count),
                Target(2300.0, 1900.0, ""),
                "C operations and function calls, the solve included",
            )
        ]

    def _unconstrained(self) -> list[Result]:
        cases = (("spatial_chain", 4, 2.5, 3.5), ("n_link_pendulum", 10, 2.0, 2.5))
        results = []
        for name, links, at_least, goal in cases:
            evaluation = self._evaluation(name, n=links)
            ratio = evaluation.c_peer.best / evaluation.kernel.best
            what = f"C evaluation, {label(name, {'n': links})}"
            results.append(Result(what, ratio, Target(at_least, goal, "times"), _against(evaluation)))
        return results

    def _constrained(self) -> list[Result]:
        target = Target(0.7, 0.5, "of its time")
        results = []
        for name, options in CONSTRAINED:
            what = f"C evaluation, {label(name, options)}"
            try:
                evaluation = self._evaluation(name, **options)
            except PeerError as error:
                results.append(Result(what, None, target, str(error)))
            else:
                results.append(
                    Result(what, evaluation.kernel.best / evaluation.c_peer.best, target, _against(evaluation))
                )
        return results

    def _call(self) -> list[Result]:
        evaluation = self._evaluation("rolling_disk")
        extra = 1e9 * (evaluation.call.best - evaluation.kernel.best)
        detail = (
            f"rolling_disk: {seconds_text(evaluation.call.best)} against {seconds_text(evaluation.kernel.best)} in C"
        )
        return [Result("solver.rhs(..., out=...) above the C evaluation", extra, Target(150.0, 60.0, "ns"), detail)]

    def _startup(self) -> list[Result]:
        first, following = (self.examples / f"{name}.py" for name in ("rolling_disk", "slider_crank"))
        startup = measure_startup(first, following, STARTS)
        imports = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in startup.imports.items())
        without = f"kanegen.build in a new process; imports not included ({imports})"
        small = self._file("rolling_disk")
        built = build_from_kane(apply_kanes_method(small.model, small.start()))
        share = 100.0 * built.checking / built.seconds
        times = f"{seconds_text(built.checking)} of {seconds_text(built.seconds)}"
        return [
            Result("checking velocities against positions", share, Target(10.0, 5.0, "%"), f"rolling_disk, {times}"),
            Result("first model on a machine", startup.first, Target(8.0, 4.0, "s"), "rolling_disk, a whole process"),
            Result("the next model", startup.following, Target(0.6, 0.3, "s"), "slider_crank, kanegen.build"),
            Result("a model from the cache", 1e3 * startup.cached, Target(50.0, 20.0, "ms"), without),
        ]

    def _integration(self) -> list[Result]:
        what = "rolling disk, 10 s at equal measured error"
        # lambdify with its defaults, and the faster variant of a careful user, have the same target.
        return [
            self._equal_error(what, "numpy"),
            self._equal_error(f"{what}, lambdify with math on Python floats", "math"),
        ]

    def _equal_error(self, what: str, functions: str) -> Result:
        repetitions = max(2, self.rounds // 3)
        rows = integrate_pair(self._pair("rolling_disk"), ROLLING_SECONDS, ERRORS, repetitions, functions)
        worst = min(rows, key=lambda row: row.ratio)
        ratios = ", ".join(f"{row.error:.0e}: {row.ratio:.0f}" for row in rows)
        detail = (
            f"the least of the ratios at errors {ratios}; at {worst.error:.0e} "
            f"{worst.python.method} {seconds_text(worst.python.seconds)}, {worst.compiled.method} "
            f"{seconds_text(worst.compiled.seconds)}"
        )
        return Result(what, worst.ratio, Target(200.0, 300.0, "times"), detail)


def _against(evaluation: Evaluation) -> str:
    return f"{seconds_text(evaluation.kernel.best)} against {seconds_text(evaluation.c_peer.best)}"
