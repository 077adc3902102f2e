"""``python -m benchmarks`` in a checkout measures kanegen beside the other packages that are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from rich.console import Console

from benchmarks.measure import Comparison
from benchmarks.registry import PEERS
from benchmarks.tables import all_tables
from kanegen.cli.arguments import print_line
from kanegen.cli.bench.timing import machine_lines
from kanegen.cli.tables import make_table
from kanegen.errors import KanegenError
from kanegen.paths import require_writable
from kanegen.progress import activity

EXAMPLES: Final = Path(__file__).parents[1] / "build_examples"
PROBLEM: Final = 'Only this problem, such as "spatial_chain(3)"; can be given several times.'


@click.command(help=f"Measure kanegen beside those of {', '.join(PEERS)} that are installed.")
@click.option("--problem", "problems", multiple=True, help=PROBLEM)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="A JSON file of results.")
@click.option("--rounds", type=click.IntRange(min=1), default=25, show_default=True, help="Interleaved repetitions.")
def main(problems: tuple[str, ...], output: Path | None, rounds: int) -> None:
    try:
        _measure(problems, output, rounds)
    except KanegenError as error:
        raise click.ClickException(str(error)) from error


def _measure(problems: tuple[str, ...], output: Path | None, rounds: int) -> None:
    target = None if output is None else require_writable(output, "the file of results")
    comparison = Comparison(EXAMPLES, rounds=rounds)
    results = comparison.results
    for line in machine_lines():
        print_line(line)
    print_line(", ".join(f"{name} {version}" for name, version in results.versions.items()))
    for name, reason in results.missing.items():
        print_line(f"{name} is not measured: {reason}")
    for title, part in comparison.parts(problems):
        with activity(title, delay=0.0):
            part()
        if target is not None:
            results.write(target)
    console = Console()
    for table in all_tables(results, lambda text: f"[bold]{text}[/bold]"):
        console.print(make_table(table.title, table.headings, table.rows, table.headings[table.left :]))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
