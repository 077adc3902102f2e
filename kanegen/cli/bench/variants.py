"""Time of the right-hand side of models with other flags of the compiler, and with other compilers."""

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

KERNEL: Final = CompilerOptions().kernel

FUSED: Final = (*KERNEL, "-ffp-contract=fast")

REPEATED: Final = 32
"""Samples of each variant in a round."""

SHORT_SAMPLE: Final = 0.0005
"""Seconds of a sample: on a machine with other load, longer ones are all disturbed."""


@dataclass(frozen=True)
class Variant:
    """How a kernel is compiled: the flags, and the compiler, that of kanegen if None."""

    flags: tuple[str, ...]
    tools: Toolchain | None = None


FLAG_VARIANTS: Final[Mapping[str, Variant]] = {
    "default": Variant(KERNEL),
    "-O2": Variant(tuple("-O2" if flag == "-O3" else flag for flag in KERNEL)),
    "without -march=native": Variant(tuple(flag for flag in KERNEL if flag != "-march=native")),
    "-ffp-contract=fast": Variant(FUSED),
    "-ftree-slp-vectorize": Variant((*KERNEL, "-ftree-slp-vectorize")),
    "C library": Variant((*KERNEL, "-DKG_LIBM_MATH")),
}
"""Flags of the kernel by what differs from the default; the last one takes sines and cosines from the C library."""


def compiler_variants() -> Mapping[str, Variant]:
    """The default flags, and fused operations, with each compiler at hand. Raises `BuildError` if there is none."""
    return {
        name: Variant(flags, tools)
        for compiler, tools in toolchains().items()
        for name, flags in ((compiler, KERNEL), (f"{compiler}, fused", FUSED))
    }


def toolchains() -> Mapping[str, Toolchain]:
    """The compilers at hand by name, kanegen's choice first. Raises `BuildError` if there is none."""
    chosen = toolchain.find_toolchain()
    found = {_name(chosen): chosen}
    for name in ("gcc", "clang"):
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
class VariantRow:
    """Seconds of the right-hand side of one model by variant; the others are compared with the first one."""

    name: str
    seconds: Mapping[str, float]

    def ratio(self, variant: str) -> float:
        """The time relative to that of the first variant."""
        return self.seconds[variant] / next(iter(self.seconds.values()))


def measure_variants(file: ModelFile, variants: Mapping[str, Variant], rounds: int) -> VariantRow:
    """Time the right-hand side with all variants in turn. Raises `SolveError` if two of them disagree."""
    model, start = file.model, file.start()
    inputs = input_values(model, start, of_laws=0.0)
    states = compiled.states_near(start, inputs, parameter_values(model))
    sources = sources_of(model, functions=("rhs",))
    functions = {
        name: compiled.TimedFunction(
            compiled.timed_library(sources.files, sources.kernel, variant.flags, variant.tools), "rhs", states
        )
        for name, variant in variants.items()
    }
    compiled.check_agreement(model.name, {name: function.evaluate(0) for name, function in functions.items()})
    tasks = {name: function.task(SHORT_SAMPLE) for name, function in functions.items()}
    return VariantRow(label(file.path.stem, file.options), timing.interleaved(tasks, REPEATED * rounds))


def variants_table(rows: Sequence[VariantRow]) -> Table:
    """The time with the first variant, and that of the others relative to it."""
    first, *others = rows[0].seconds
    cells = [
        (row.name, seconds_text(row.seconds[first]), *(f"{row.ratio(name):.2f}" for name in others)) for row in rows
    ]
    means = [exp(sum(log(row.ratio(name)) for row in rows) / len(rows)) for name in others]
    cells.append(("geometric mean", "", *(f"{mean:.2f}" for mean in means)))
    title = f"Right-hand side in C: time with {first}, and times of the others relative to it"
    return make_table(title, ("model", first, *others), cells, (first, *others))
