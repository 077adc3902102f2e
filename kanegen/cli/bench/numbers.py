"""The table of numbers with targets of `kanegen bench` without a file. Waiting times are measured in new processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from kanegen.cli.bench import costs, predictive
from kanegen.cli.bench.fits import fit_costs
from kanegen.cli.bench.pair import (
    ROWS,
    Pair,
    RhsTimes,
    derive_seconds,
    energy_of_rows,
    evaluate_pair,
    integrate_pair,
    make_pair,
)
from kanegen.cli.bench.peers import PeerError, apply_kanes_method, build_from_kane
from kanegen.cli.bench.startup import measure_startup
from kanegen.cli.bench.tables import CALLS, table_costs
from kanegen.cli.tables import make_table, number_text, seconds_text
from kanegen.codegen.description import Description
from kanegen.errors import BuildError
from kanegen.modelfile import ModelFile, label, read_model_file
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
ROLLING_SECONDS = 10.0
BATCHES = ("rolling_disk", "slider_crank", "whipple_bicycle")
DIFFERENTIATED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rolling_disk", {}),
    ("slider_crank", {}),
    ("spatial_chain", {"n": 4}),
    ("whipple_bicycle", {}),
)
LAW_GAINS = ("k_x", "k_theta", "k_v", "k_w")
TARGET_LINKS = 6
"""Number of links of the chain to which the target of the derivation applies."""
STARTS = 5
"""Number of processes for each waiting time that is measured repeatedly."""


@dataclass(frozen=True)
class Target:
    """The targets of a number: ``at_least`` and the better ``goal``. If ``goal < at_least``, less is better."""

    at_least: float
    goal: float
    unit: str

    @property
    def less_is_better(self) -> bool:
        return self.goal < self.at_least

    def verdict(self, measured: float) -> str:
        """``"goal"``, ``"met"`` or ``"missed"``."""
        sign = -1.0 if self.less_is_better else 1.0
        if sign * measured >= sign * self.goal:
            return "goal"
        return "met" if sign * measured >= sign * self.at_least else "missed"


@dataclass(frozen=True)
class Result:
    """A measured number; ``measured`` is None if there is no peer, and ``detail`` says why.

    ``judged`` is False for a smaller problem than the one that the target is for.
    """

    what: str
    measured: float | None
    target: Target
    detail: str
    judged: bool = True

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "no peer"
        return self.target.verdict(self.measured) if self.judged else "not judged"


def small_examples(folder: Path) -> Iterator[ModelFile]:
    """The small models on which flags of the compiler are judged: `CONSTRAINED`, and two chains of two links."""
    for name, options in (*CONSTRAINED, ("n_link_pendulum", {"n": 2}), ("spatial_chain", {"n": 2})):
        yield _example(folder, name, options)


FITTED: Final[tuple[tuple[tuple[str, dict[str, Any]], tuple[str, ...], tuple[float, int], float, Target], ...]] = (
    (
        ("identify_double_pendulum", {}),
        ("m_2", "l_1", "l_2", "c_1", "c_2", "k"),
        (5.0, 501),
        0.05,
        Target(2.0, 3.0, "times"),
    ),
    (
        ("n_link_pendulum", {"n": 10}),
        tuple(f"{kind}_{i}" for kind in "ml" for i in range(1, 11)),
        (2.0, 1000),
        0.02,
        Target(5.0, 8.0, "times"),
    ),
)
"""Models with the parameters that are fitted, the duration and the number of samples, and the error of the guess."""


def _example(folder: Path, name: str, options: dict[str, Any]) -> ModelFile:
    path = folder / f"{name}.py"
    if not path.is_file():
        raise BuildError(
            f"the benchmark needs the example {path}, which is not there; run it in a checkout of "
            "kanegen or name the folder with --examples"
        )
    return read_model_file(path, options=options)


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
            ("evaluating right-hand sides", self._evaluations),
            ("evaluating batches", self._batches),
            ("integrating ensembles", self._ensemble),
            ("calling from Python", self._call),
            ("evaluating a feedback law", self._law),
            ("evaluating tables", self._tables),
            ("sampling inputs", self._samples),
            ("starting up", self._startup),
            ("integrating the rolling disk", self._integration),
            ("projecting after each step", self._projections),
            ("differentiating motions", self._gradients),
            ("fitting parameters", self._fits),
            ("sampling predictive control", self._predictive),
        )

    def _file(self, name: str, **options: Any) -> ModelFile:
        return _example(self.examples, name, options)

    @cache  # noqa: B019  (a process has one benchmark)
    def _pair(self, name: str, **options: Any) -> Pair:
        return make_pair(self._file(name, **options))

    @cache  # noqa: B019  (a process has one benchmark)
    def _evaluation(self, name: str, **options: Any) -> RhsTimes:
        return evaluate_pair(self._pair(name, **options), self.rounds)

    def _derivation(self) -> list[Result]:
        file = self._file("spatial_chain", n=self.links)
        derivation = apply_kanes_method(file.model, file.start())
        kane, (reading, _) = derivation.seconds, build_from_kane(derivation)
        ours = derive_seconds(file, self.rounds)
        chain, judged = f"spatial_chain({self.links})", self.links >= TARGET_LINKS
        against = f"{seconds_text(kane)} against {seconds_text(ours)}"
        deriving = f"deriving {chain} against KanesMethod"
        building = f"from_kane and build of the KanesMethod of {chain}"
        took = f"on which kanes_equations took {seconds_text(kane)}"
        return [
            Result(deriving, kane / ours, Target(500.0, 1000.0, "times"), against, judged),
            Result(building, reading, Target(2.0, 1.0, "s"), took, judged),
        ]

    def _operations(self) -> list[Result]:
        sources = sources_of(self._file("spatial_chain", n=4).model, functions=("rhs",))
        count = float(Description.from_sources(sources).functions["rhs"].operations)
        what = "operations of the right-hand side, spatial_chain(4)"
        return [Result(what, count, Target(2300.0, 1900.0, ""), "C operations and function calls, the solve included")]

    def _evaluations(self) -> list[Result]:
        return [
            self._evaluated("spatial_chain", {"n": 4}, Target(2.5, 3.5, "times")),
            self._evaluated("n_link_pendulum", {"n": 10}, Target(2.0, 2.5, "times")),
            *(self._evaluated(name, options, Target(0.7, 0.5, "of its time")) for name, options in CONSTRAINED),
        ]

    def _evaluated(self, name: str, options: dict[str, Any], target: Target) -> Result:
        """The evaluation in C: speed against the peer's, or time where less is better."""
        what = f"C evaluation, {label(name, options)}"
        try:
            evaluation = self._evaluation(name, **options)
        except PeerError as error:
            return Result(what, None, target, str(error))
        share = evaluation.kernel / evaluation.c_peer
        against = f"{seconds_text(evaluation.kernel)} against {seconds_text(evaluation.c_peer)}"
        return Result(what, share if target.less_is_better else 1.0 / share, target, against)

    def _batches(self) -> list[Result]:
        results, calls = [], []
        for name in BATCHES:
            best = costs.batch_costs(self._file(name), self.rounds)
            batch, kernel = best["batch"], best["kernel"]
            detail = f"{seconds_text(batch)} against {seconds_text(kernel)} for each of {costs.ROWS} states"
            results.append(Result(f"rhs_batch, {name}", batch / kernel, Target(0.3, 0.15, "of the C time"), detail))
            calls.append(1e6 * best["call"])
        detail = f"{', '.join(BATCHES)}: the longest of {costs.FEW_ROWS} states each"
        return [*results, Result("rhs_batch, a call with few states", max(calls), Target(20.0, 15.0, "us"), detail)]

    def _ensemble(self) -> list[Result]:
        best = costs.ensemble_costs(self._file("rolling_disk"), max(2, self.rounds // 3))
        many, loop = best["many"], best["loop"]
        detail = f"{seconds_text(many)} against {seconds_text(loop)} for each motion, one thread"
        what = f"integrate_many, {costs.MOTIONS} rolling disks, 10 s, against a loop of integrate"
        return [Result(what, loop / many, Target(4.0, 7.0, "times"), detail)]

    def _call(self) -> list[Result]:
        evaluation = self._evaluation("rolling_disk")
        extra = 1e9 * (evaluation.call - evaluation.kernel)
        detail = f"rolling_disk: {seconds_text(evaluation.call)} against {seconds_text(evaluation.kernel)} in C"
        rows, kernel = energy_of_rows(self._pair("rolling_disk"), self.rounds)
        against = f"rolling_disk: {seconds_text(rows)} against {seconds_text(kernel)} for each state"
        return [
            Result("solver.rhs(..., out=...) above the C evaluation", extra, Target(64.0, 45.0, "ns"), detail),
            Result(f"solver.energy at {ROWS} states", rows / kernel, Target(3.0, 1.5, "times the C time"), against),
        ]

    def _law(self) -> list[Result]:
        best = costs.law_costs(self._file("lqr_cart_pole", limited=False), LAW_GAINS, 10 * self.rounds)
        law, constant = best["law"], best["constant"]
        detail = f"lqr_cart_pole, rk4: {seconds_text(law)} against {seconds_text(constant)} with a constant input"
        what = "an evaluation in a run under a law u = -K x"
        return [Result(what, law / constant, Target(1.05, 1.03, "times"), detail)]

    def _tables(self) -> list[Result]:
        best = table_costs(self.rounds)
        targets = {"curve": Target(8.0, 4.0, "ns"), "surface": Target(20.0, 10.0, "ns")}
        of = {"curve": "a cubic table of 100 uneven points", "surface": "a cubic table of 50 x 50 uneven points"}
        return [
            Result(f"{of[name]} at random arguments", 1e9 * best[name], target, f"{CALLS} evaluations in a function")
            for name, target in targets.items()
        ]

    def _samples(self) -> list[Result]:
        best = costs.sample_costs(self._file("cart_pole"), self.rounds)
        python, called, constant = best["python"], best["callable"], best["constant"]
        against = (
            f"cart_pole: {seconds_text(python)} with a callable that takes {seconds_text(called)}, against "
            f"{seconds_text(constant)} with constant inputs"
        )
        what = "a sample at 1 kHz by a Python callable, above the callable and a compiled input"
        return [Result(what, 1e6 * (python - called - constant), Target(2.0, 0.5, "us"), against)]

    def _startup(self) -> list[Result]:
        disk, crank = (self.examples / f"{name}.py" for name in ("rolling_disk", "slider_crank"))
        times = measure_startup(disk, crank, STARTS)
        imports = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in times.imports.items())
        imported = times.imports["kanegen"]
        without = f"kanegen.build in a new process; imports not included ({imports})"
        small = self._file("rolling_disk")
        reading, checking = build_from_kane(apply_kanes_method(small.model, small.start()))
        share, took = 100.0 * checking / reading, f"{seconds_text(checking)} of {seconds_text(reading)}"
        module = "its Python module from the installation" if times.is_installed else "its Python module compiled too"
        return [
            Result("checking velocities against positions", share, Target(10.0, 5.0, "%"), f"rolling_disk, {took}"),
            Result("first model on a machine", times.first, Target(2.0, 1.2, "s"), f"rolling_disk, {module}"),
            Result("the next model", times.following, Target(0.4, 0.2, "s"), "slider_crank, kanegen.build"),
            Result("a model from the cache", 1e3 * times.cached, Target(15.0, 8.0, "ms"), without),
            Result("import kanegen", 1e3 * imported, Target(120.0, 60.0, "ms"), "after SymPy and NumPy"),
        ]

    def _integration(self) -> list[Result]:
        what = "rolling disk, 10 s at equal measured error"
        careful = f"{what}, lambdify with math on Python floats"
        return [
            self._equal_error(what, "numpy", Target(250.0, 350.0, "times")),
            self._equal_error(careful, "math", Target(200.0, 300.0, "times")),
        ]

    def _projections(self) -> list[Result]:
        return [self._projected(name) for name in ("slider_crank", "rolling_disk")]

    def _gradients(self) -> list[Result]:
        results = []
        for name, options in DIFFERENTIATED:
            best = costs.gradient_costs(self._file(name, **options), self.rounds)
            plain, what = best["plain"], label(name, options)
            for kind, title, target in (
                ("forward", f"{costs.DIRECTIONS} directions beside a motion", Target(5.0, 3.5, "times")),
                ("adjoint", "a gradient in all parameters, the motion included", Target(6.0, 4.0, "times")),
            ):
                detail = f"dopri5, 10 s: {seconds_text(best[kind])} against {seconds_text(plain)} for the motion"
                results.append(Result(f"{title}, {what}", best[kind] / plain, target, detail))
        return results

    def _fits(self) -> list[Result]:
        results = []
        for (name, options), unknowns, motion, wrong, target in FITTED:
            best = fit_costs(self._file(name, **options), unknowns, motion, wrong, max(3, self.rounds // 2))
            what = f"a fit of {len(unknowns)} parameters against differences, {label(name, options)}"
            detail = f"{motion[1]} times: {seconds_text(best['fit'])} against {seconds_text(best['differences'])}"
            results.append(Result(what, best["differences"] / best["fit"], target, detail))
        return results

    def _predictive(self) -> list[Result]:
        found, kernel = (
            predictive.predictive_costs(self._file("optimal_swing_up"), self.rounds),
            self._evaluation("optimal_swing_up").kernel,
        )
        mean, limited = found.seconds.mean(), found.seconds[found.limited].mean()
        detail = (
            f"swing-up: {seconds_text(mean)} in the mean, as {mean / kernel:.0f} right-hand sides, "
            f"{seconds_text(found.seconds.max())} the longest; here the mean of those with active bounds"
        )
        what = f"a sample of predictive control, cart-pole, {predictive.INTERVALS} intervals"
        return [Result(what, 1e3 * float(limited), Target(0.5, 0.2, "ms"), detail)]

    def _projected(self, name: str) -> Result:
        best = costs.projection_costs(self._file(name), self.rounds)
        plain, projected = best["plain"], best["projected"]
        more = 100.0 * (projected / plain - 1.0)
        detail = f"dopri5, 10 s: {seconds_text(projected)} against {seconds_text(plain)} without"
        return Result(f"a projection after each step, {name}", more, Target(35.0, 20.0, "% more"), detail)

    def _equal_error(self, what: str, functions: str, target: Target) -> Result:
        rows = integrate_pair(self._pair("rolling_disk"), ROLLING_SECONDS, max(2, self.rounds // 3), functions)
        worst = min(rows, key=lambda row: row.ratio)
        ratios = ", ".join(f"{row.error:.0e}: {row.ratio:.0f}" for row in rows)
        costs = ", ".join(f"{cost.method} {seconds_text(cost.seconds)}" for cost in (worst.python, worst.compiled))
        detail = f"the least of the ratios at errors {ratios}; at {worst.error:.0e} {costs}"
        return Result(what, worst.ratio, target, detail)


def numbers_table(results: Sequence[Result]) -> Table:
    """One line per number: measured, at least, goal, and whether it is met."""
    colors = {"goal": "green", "met": "green", "missed": "red", "no peer": "yellow", "not judged": "yellow"}
    right = ("measured", "at least", "goal")
    rows = []
    for result in results:
        target, color = result.target, colors[result.verdict]
        measured = "-" if result.measured is None else f"{number_text(result.measured)} {target.unit}".rstrip()
        numbers = (measured, number_text(target.at_least), number_text(target.goal))
        rows.append((result.what, *numbers, f"[{color}]{result.verdict}[/{color}]", result.detail))
    return make_table("Numbers", ("what", *right, "", "how"), rows, right)
