"""``kanegen bench``: against pure Python, or the table of numbers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from kanegen.cli.arguments import Target, option_of_model, parse_target, read_target

QUICK_LINKS, FULL_LINKS = 4, 6


@click.command()
@click.argument("target", callback=parse_target, metavar="[FILE[:FUNCTION]]", required=False)
@option_of_model
@click.option("--time", "duration", type=float, default=10.0, show_default=True, help="Seconds of motion, with FILE.")
@click.option("--rounds", type=click.IntRange(min=1), default=25, show_default=True, help="Interleaved repetitions.")
@click.option(
    "--full",
    is_flag=True,
    help=f"Without FILE: derive {FULL_LINKS} links by KanesMethod (a minute or two), not {QUICK_LINKS}.",
)
@click.option(
    "--forms", is_flag=True, help="The right-hand side in every form of the equations: of FILE, or the examples."
)
@click.option(
    "--examples",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build_examples"),
    show_default=True,
    help="Without FILE: the folder of the example models.",
)
def bench(
    target: Target | None,
    options: dict[str, Any],
    duration: float,
    rounds: int,
    full: bool,
    forms: bool,
    examples: Path,
) -> None:
    """Compare with SymPy and SciPy.

    With FILE: this model in pure Python (KanesMethod, lambdify, solve_ivp) against the compiled solver.
    Without: the table of numbers that kanegen is held to. With --forms: all forms of the equations, and the one
    that form="auto" takes.
    """
    from kanegen.bench.machine import machine_lines

    console = Console()
    for line in machine_lines():
        console.print(line, highlight=False, soft_wrap=True)
    if forms:
        _forms(console, None if target is None else read_target(target, options), examples, rounds)
    elif target is None:
        _numbers(console, examples, FULL_LINKS if full else QUICK_LINKS, rounds)
    else:
        _comparison(console, read_target(target, options), duration, rounds)


def _numbers(console: Console, examples: Path, links: int, rounds: int) -> None:
    from kanegen.bench.numbers import Benchmark
    from kanegen.bench.tables import numbers_table

    if links < FULL_LINKS:
        console.print(
            f"derivation on spatial_chain({links}); the target is meant for ({FULL_LINKS}): --full",
            highlight=False,
        )
    results = []
    for title, part in Benchmark(examples, links, rounds).parts():
        with console.status(title):
            results += part()
    console.print(numbers_table(results))


def _forms(console: Console, file: Any, examples: Path, rounds: int) -> None:
    from kanegen.bench.forms import example_files, measure_forms
    from kanegen.bench.tables import forms_table

    rows = []
    for each in example_files(examples) if file is None else [file]:
        with console.status(each.model.name), tempfile.TemporaryDirectory(prefix="kanegen-bench-") as folder:
            rows.append(measure_forms(each, Path(folder), rounds))
    console.print(forms_table(rows))


def _comparison(console: Console, file: Any, duration: float, rounds: int) -> None:
    from kanegen.bench.numbers import ERRORS
    from kanegen.bench.pair import derive_seconds, evaluate_pair, integrate_pair, make_pair
    from kanegen.bench.tables import comparison_table

    with console.status("KanesMethod"):
        pair = make_pair(file)
    with console.status("derivation"):
        derivation = (pair.kane_seconds, derive_seconds(file, rounds))
    with console.status("right-hand sides"), tempfile.TemporaryDirectory(prefix="kanegen-bench-") as folder:
        evaluation = evaluate_pair(pair, Path(folder), rounds)
    with console.status("integration"):
        rows = integrate_pair(pair, duration, ERRORS, repetitions=2)
    console.print(comparison_table(file.model.name, derivation, evaluation, rows))
