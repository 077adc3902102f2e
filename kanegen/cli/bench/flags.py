"""Time of the right-hand side of small models with other flags of the compiler, and with sines of the C library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

from rich.table import Table

from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.cli.bench import compiled, timing
from kanegen.cli.bench.peers import input_values, parameter_values
from kanegen.cli.tables import make_table, seconds_text
from kanegen.modelfile import ModelFile, label
from kanegen.pipeline import sources_of

KERNEL: Final = CompilerOptions().kernel

VARIANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "default": KERNEL,
    "-O2": tuple("-O2" if flag == "-O3" else flag for flag in KERNEL),
    "without -march=native": tuple(flag for flag in KERNEL if flag != "-march=native"),
    "-ffp-contract=fast": (*KERNEL, "-ffp-contract=fast"),
    "-ftree-slp-vectorize": (*KERNEL, "-ftree-slp-vectorize"),
    "C library": (*KERNEL, "-DKG_LIBM_MATH"),
}
"""Flags of the kernel by what differs from the default; the last one takes sines and cosines from the C library."""

REPEATED: Final = 4
"""Samples of each variant in a round."""


@dataclass(frozen=True)
class FlagRow:
    """Seconds of the right-hand side of one model with each of `VARIANTS`."""

    name: str
    seconds: Mapping[str, float]

    def ratio(self, variant: str) -> float:
        return self.seconds[variant] / self.seconds["default"]


def measure_flags(file: ModelFile, rounds: int) -> FlagRow:
    """Time the right-hand side with all variants in turn. Raises `SolveError` if two of them disagree."""
    model, start = file.model, file.start()
    states = compiled.states_near(start, input_values(model, start), parameter_values(model))
    sources = sources_of(model, functions=("rhs",))
    functions = {
        name: compiled.TimedFunction(compiled.timed_library(sources.files, sources.kernel, flags), "rhs", states)
        for name, flags in VARIANTS.items()
    }
    compiled.check_agreement(model.name, {name: function.evaluate(0) for name, function in functions.items()})
    tasks = {name: function.task() for name, function in functions.items()}
    return FlagRow(label(file.path.stem, file.options), timing.interleaved(tasks, REPEATED * rounds))


def flags_table(rows: Sequence[FlagRow]) -> Table:
    """The time with the default flags, and that of the other variants relative to it."""
    others = [name for name in VARIANTS if name != "default"]
    cells = [
        (row.name, seconds_text(row.seconds["default"]), *(f"{row.ratio(name):.2f}" for name in others)) for row in rows
    ]
    means = [exp(sum(log(row.ratio(name)) for row in rows) / len(rows)) for name in others]
    cells.append(("geometric mean", "", *(f"{mean:.2f}" for mean in means)))
    title = "Right-hand side in C: time with the default flags, and times of variants relative to it"
    return make_table(title, ("model", "default", *others), cells, ("default", *others))
