"""``kanegen bench``: one model compared with pure Python, or the table of measured numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

from kanegen.cli.arguments import model_argument, print_line, time_option
from kanegen.cli.bench.forms import example_files, forms_table, measure_forms
from kanegen.cli.bench.numbers import Benchmark, numbers_table, small_examples
from kanegen.cli.bench.pair import comparison_table, derive_seconds, evaluate_pair, integrate_pair, make_pair
from kanegen.cli.bench.timing import machine_lines
from kanegen.cli.bench.variants import FLAG_VARIANTS, compiler_variants, measure_variants, variants_table
from kanegen.errors import BuildError
from kanegen.modelfile import ModelFile
from kanegen.progress import activity

Row = TypeVar("Row")

QUICK_LINKS, FULL_LINKS = 4, 6
FULL = f"Without FILE: derive {FULL_LINKS} links by KanesMethod (a minute or two), not {QUICK_LINKS}."
FORMS = "Time the right-hand side of FILE, or of the examples, in every form of the equations."
COMPILERS = "Time the right-hand side of FILE, or of the examples, with every C compiler at hand."
FLAGS = "Time the right-hand side of FILE, or of the small examples, with other flags of the compiler."


@click.command()
@model_argument(required=False)
@time_option
@click.option("--rounds", type=click.IntRange(min=1), default=25, show_default=True, help="Interleaved repetitions.")
@click.option("--full", is_flag=True, help=FULL)
@click.option("--forms", is_flag=True, help=FORMS)
@click.option("--flags", is_flag=True, help=FLAGS)
@click.option("--compilers", is_flag=True, help=COMPILERS)
@click.option(
    "--examples",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build_examples"),
    show_default=True,
    help="Without FILE: the folder of the example models.",
)
def bench(
    file: ModelFile | None,
    duration: float,
    rounds: int,
    full: bool,
    forms: bool,
    flags: bool,
    compilers: bool,
    examples: Path,
) -> None:
    """Compare with SymPy and SciPy.

    With FILE: this model in pure Python (KanesMethod, lambdify, solve_ivp) against the compiled solver, which
    also integrates --time seconds of motion. Without FILE: the table of measured numbers and their targets. With
    --forms: all forms of the equations, and the one that form="auto" selects. With --flags: what the flags of the C
    compiler contribute. With --compilers: what other compilers would.
    """
    _require_one({"--forms": forms, "--flags": flags, "--compilers": compilers})
    console = Console()
    if file is None and not examples.is_dir():
        raise BuildError(
            f"there is no folder {examples}; run this in a checkout of kanegen, or name a folder by --examples"
        )
    for line in machine_lines():
        print_line(line)
    if forms:
        measure = partial(measure_forms, rounds=rounds)
        console.print(forms_table(_rows(example_files(examples) if file is None else [file], measure)))
    elif flags or compilers:
        files = small_examples(examples) if flags else example_files(examples)
        variants = partial(measure_variants, variants=FLAG_VARIANTS if flags else compiler_variants(), rounds=rounds)
        console.print(variants_table(_rows(files if file is None else [file], variants)))
    elif file is None:
        _numbers(console, examples, FULL_LINKS if full else QUICK_LINKS, rounds)
    else:
        _comparison(console, file, duration, rounds)


def _require_one(options: Mapping[str, bool]) -> None:
    """Raise an error for options that ask for several tables."""
    given = [name for name, is_given in options.items() if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} make a table each: give one of them")


def _numbers(console: Console, examples: Path, links: int, rounds: int) -> None:
    if links < FULL_LINKS:
        print_line(f"derivation on spatial_chain({links}); the target is for ({FULL_LINKS}), see --full")
    results = []
    for title, part in Benchmark(examples, links, rounds).parts():
        with activity(title, delay=0.0):
            results += part()
    console.print(numbers_table(results))


def _rows(files: Iterable[ModelFile], measure: Callable[[ModelFile], Row]) -> list[Row]:
    """What is measured of each model."""
    rows = []
    for file in files:
        with activity(file.model.name, delay=0.0):
            rows.append(measure(file))
    return rows


def _comparison(console: Console, file: ModelFile, duration: float, rounds: int) -> None:
    with activity("KanesMethod", delay=0.0):
        pair = make_pair(file)
    with activity("derivation", delay=0.0):
        derivation = (pair.kane_seconds, derive_seconds(file, rounds))
    with activity("right-hand sides", delay=0.0):
        evaluation = evaluate_pair(pair, rounds)
    with activity("integration", delay=0.0):
        rows = integrate_pair(pair, duration, repetitions=2)
    console.print(comparison_table(file.model.name, derivation, evaluation, rows))
