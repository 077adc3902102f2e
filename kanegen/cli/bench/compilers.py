"""Time of the right-hand side of models with every C compiler at hand, with default flags and with fused operations."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

from rich.table import Table

from kanegen.backends.cython import toolchain
from kanegen.backends.cython.toolchain import CompilerOptions, Toolchain
from kanegen.cli.bench import compiled, timing
from kanegen.cli.bench.peers import input_values, parameter_values
from kanegen.cli.tables import make_table, seconds_text
from kanegen.modelfile import ModelFile, label
from kanegen.pipeline import sources_of

NAMES: Final = ("gcc", "clang")
"""Compilers that are looked for on the PATH."""

FUSED: Final = "-ffp-contract=fast"

REPEATED: Final = 4
"""Samples of each compiler in a round."""


def toolchains() -> Mapping[str, Toolchain]:
    """The compilers at hand by name, kanegen's choice first. Raises `BuildError` if there is none."""
    chosen = toolchain.find_toolchain()
    found = {_name(chosen): chosen}
    for name in NAMES:
        if shutil.which(name) is not None:
            found.setdefault(name, toolchain.find_toolchain({**os.environ, "CC": name}))
    packaged = toolchain.packaged_toolchain("kanegen bench --compilers measures it")
    if packaged is not None:
        found.setdefault(_name(packaged), packaged)
    return found


def _name(tools: Toolchain) -> str:
    if tools.is_packaged:
        return "ziglang"
    return "gcc" if toolchain.is_gcc(toolchain.compiler_version(tools)) else os.path.basename(tools.command[0])


@dataclass(frozen=True)
class CompilerRow:
    """Seconds of the right-hand side of one model, by compiler and whether operations are fused."""

    name: str
    seconds: Mapping[str, float]

    def ratio(self, variant: str) -> float:
        """The time relative to that of the first compiler."""
        return self.seconds[variant] / next(iter(self.seconds.values()))


def measure_compilers(file: ModelFile, rounds: int) -> CompilerRow:
    """Time the right-hand side with all compilers in turn. Raises `SolveError` if two of them disagree."""
    model, start = file.model, file.start()
    states = compiled.states_near(start, input_values(model, start), parameter_values(model))
    sources, default = sources_of(model, functions=("rhs",)), CompilerOptions().kernel
    functions = {}
    for name, tools in toolchains().items():
        for variant, flags in ((name, default), (f"{name}, fused", (*default, FUSED))):
            library = compiled.timed_library(sources.files, sources.kernel, flags, tools)
            functions[variant] = compiled.TimedFunction(library, "rhs", states)
    compiled.check_agreement(model.name, {name: function.evaluate(0) for name, function in functions.items()})
    tasks = {name: function.task() for name, function in functions.items()}
    return CompilerRow(label(file.path.stem, file.options), timing.interleaved(tasks, REPEATED * rounds))


def compilers_table(rows: Sequence[CompilerRow]) -> Table:
    """The time with the compiler that kanegen takes, and that of the others relative to it."""
    first, *others = rows[0].seconds
    cells = [
        (row.name, seconds_text(row.seconds[first]), *(f"{row.ratio(name):.2f}" for name in others)) for row in rows
    ]
    means = [exp(sum(log(row.ratio(name)) for row in rows) / len(rows)) for name in others]
    cells.append(("geometric mean", "", *(f"{mean:.2f}" for mean in means)))
    title = f"Right-hand side in C: time with {first}, and times with other compilers relative to it"
    return make_table(title, ("model", first, *others), cells, (first, *others))
