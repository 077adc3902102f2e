"""Measures how the right-hand sides of chains grow with the number of bodies: table and figure of docs/benchmark.md.

``python docs/make_growth.py`` prints the table in Markdown and writes docs/plots/growth.png. ``--bodies 5 10 20``
selects other numbers of bodies.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from math import log2

from make_pictures import EXAMPLES, PLOTS, save
from matplotlib.figure import Figure

from kanegen.cli.bench import compiled, timing
from kanegen.cli.bench.peers import input_values, parameter_values
from kanegen.codegen.description import Description
from kanegen.modelfile import ModelFile, read_model_file
from kanegen.pipeline import sources_of

CHAINS = {"n_link_pendulum": 80, "spatial_chain": 80, "scissor_lift": 40}
"""The chains, with the largest number of bodies, or of stages of the lift, that is measured."""

BODIES = (5, 10, 20, 40, 80)
WRITTEN_OUT, DENSE = 32, 45
"""Most speeds for which the factors of the dense mass matrix are written out, and for which it is measured at all."""

ROUNDS = 200


@dataclass(frozen=True)
class Row:
    """Operations and time (s) of the right-hand side of one chain in one form, and the time to its sources (s)."""

    chain: str
    bodies: int
    form: str
    operations: int
    seconds: float
    derivation: float


def chain_of(chain: str, bodies: int) -> ModelFile:
    return read_model_file(EXAMPLES / f"{chain}.py", options={"n": bodies})


def dense_form(chain: str, bodies: int) -> str | None:
    """The fastest form with a dense mass matrix; None for chains that are too long."""
    model = chain_of(chain, bodies).model
    speeds = len(model.speeds)
    if speeds > DENSE:
        return None
    if model.holonomic_constraints:
        return "reduced"
    return "range_space" if speeds <= WRITTEN_OUT else "reduced"


def measure(chain: str, bodies: int, form: str) -> Row:
    file = chain_of(chain, bodies)
    start = time.perf_counter()
    sources = sources_of(file.model, form, ("rhs",))
    derivation = time.perf_counter() - start
    library = compiled.timed_library(sources.files, sources.kernel)
    task = compiled.TimedFunction(library, "rhs", states(file)).task()
    seconds = timing.interleaved({form: task}, ROUNDS)[form]
    operations = Description.from_sources(sources).functions["rhs"].operations
    return Row(chain, bodies, form, operations, seconds, derivation)


def states(file: ModelFile) -> compiled.States:
    return compiled.states_near(file.start(), input_values(file.model, file.start()), parameter_values(file.model))


def print_table(rows: list[Row]) -> None:
    print("| chain | bodies | form | operations | exponent | time (ns) | derivation and C text (s) |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for row in rows:
        halves = [r for r in rows if (r.chain, r.form, 2 * r.bodies) == (row.chain, row.form, row.bodies)]
        exponent = f"{log2(row.operations / halves[0].operations):.2f}" if halves else ""
        numbers = f"{row.operations} | {exponent} | {row.seconds * 1e9:.0f} | {row.derivation:.2f}"
        print(f"| `{row.chain}` | {row.bodies} | `{row.form}` | {numbers} |")


def draw(rows: list[Row]) -> None:
    figure = Figure(figsize=(10.0, 3.4), layout="constrained")
    for axes, chain in zip(figure.subplots(1, 3, sharey=True), CHAINS, strict=True):
        for dense, style in ((False, "o-"), (True, "s--")):
            chosen = [row for row in rows if row.chain == chain and (row.form != "articulated") == dense]
            label = "range_space, reduced" if dense else "articulated"
            axes.loglog([row.bodies for row in chosen], [row.seconds * 1e9 for row in chosen], style, label=label)
        axes.set(title=chain, xlabel="stages" if chain == "scissor_lift" else "bodies")
        ticks = sorted({row.bodies for row in rows})
        axes.set_xticks(ticks, map(str, ticks), minor=False)
        axes.set_xticks([], minor=True)
        axes.grid(True, alpha=0.3)
        axes.legend()
    figure.axes[0].set_ylabel("right-hand side (ns)")
    save(figure, PLOTS / "growth.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, nargs="+", default=BODIES)
    arguments = parser.parse_args()
    lengths = [(chain, n) for chain, most in CHAINS.items() for n in arguments.bodies if n <= most]
    found = [measure(chain, n, "articulated") for chain, n in lengths]
    found += [measure(chain, n, form) for chain, n in lengths if (form := dense_form(chain, n))]
    for line in timing.machine_lines():
        print(line)
    print_table(sorted(found, key=lambda row: (row.chain, row.form != "articulated", row.bodies)))
    draw(found)
