"""The command line and the table of checks that the example scripts share.

An example provides three functions:

``simulate(**options) -> (solver, solution)``
    builds the model and integrates it,
``checks(solver, solution) -> iterator of (description, value, bound)``
    compares the motion with known results; the absolute value of each ``value`` must not exceed ``bound``,
``plot(figure, runs)``
    draws ``runs``, a mapping from the name of a case to its (solver, solution), on a matplotlib figure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import kanegen as kg
from kanegen.cli.run import check_figure

Run = tuple[Any, Any]
"""A `kg.Solver` and a `kg.Solution`, or what an example compares them with."""

Check = tuple[str, float, float]


def script(
    doc: str | None,
    simulate: Callable[..., Run],
    checks: Callable[[Any, Any], Iterator[Check]],
    plot: Callable[[Any, Mapping[str, Run]], None],
    cases: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Run an example from the command line.

    ``doc`` is the docstring of the example: a title, underlined for the gallery of the documentation, and paragraphs,
    the first of which says what moves. ``cases`` maps the name of a case to the options of ``simulate``. Exits with
    status 1 if a value exceeds its bound.
    """
    command(doc, simulate, checks, plot, cases)()


def command(
    doc: str | None,
    simulate: Callable[..., Run],
    checks: Callable[[Any, Any], Iterator[Check]],
    plot: Callable[[Any, Mapping[str, Run]], None],
    cases: Mapping[str, Mapping[str, Any]] | None = None,
) -> click.Command:
    """The command that :func:`script` runs."""
    title, text = parts(doc or "")
    summary = text.partition("\n\n")[0].replace("\n", " ")

    @click.command(help=text)
    @click.option("--plot", "file", type=click.Path(path_type=Path, dir_okay=False), help="Draw the motion to FILE.")
    @click.option("--html", "page", type=click.Path(path_type=Path), help="Write the motion in 3-D to the page FILE.")
    def run(file: Path | None, page: Path | None) -> None:
        if file is not None:
            check_figure(file)
        console = Console()
        console.print(f"[bold]{title}[/bold]: {summary}\n", soft_wrap=True)
        runs = _simulate_all(console, simulate, cases or {"value": {}})
        passed = _print_checks(console, {name: list(checks(*run)) for name, run in runs.items()})
        if file is not None:
            draw(plot, runs).savefig(file, dpi=120)
            console.print(f"figure: {file}", soft_wrap=True)
        if page is not None:
            console.print(f"animation: {animation(runs).save(page)}", soft_wrap=True)
        sys.exit(0 if passed else 1)

    return run


def parts(doc: str) -> tuple[str, str]:
    """The title of the docstring of an example, and its paragraphs."""
    title, _, text = doc.strip().partition("\n")
    return title, text.lstrip("=\n")


def _simulate_all(
    console: Console, simulate: Callable[..., Run], cases: Mapping[str, Mapping[str, Any]]
) -> dict[str, Run]:
    runs = {}
    for name, options in cases.items():
        started = time.perf_counter()
        solver, solution = simulate(**options)
        elapsed = time.perf_counter() - started
        label = "" if len(cases) == 1 else f"{name}: "
        console.print(
            f"{label}{len(solution.t)} points from t = {solution.t[0]:g} s to {solution.t[-1]:g} s, "
            f"built and integrated in {elapsed:.2f} s",
            highlight=False,
            soft_wrap=True,
        )
        runs[name] = (solver, solution)
    return runs


def _print_checks(console: Console, results: Mapping[str, list[Check]]) -> bool:
    """Print one row per check and case; return whether every value is within its bound."""
    several = len(results) > 1
    table = Table("check", *(["case"] if several else []), header_style="bold")
    for title in ("value", "at most", ""):
        table.add_column(title, justify="right", no_wrap=True)
    passed = True
    # A check may exist for some of the cases only.
    for description in dict.fromkeys(check[0] for checks in results.values() for check in checks):
        title = description
        for name, checks in results.items():
            for value, limit in ((v, bound) for words, v, bound in checks if words == description):
                good = abs(value) <= limit
                passed = passed and good
                verdict = "[green]ok[/green]" if good else "[red]FAILED[/red]"
                table.add_row(title, *([name] if several else []), f"{value:.2e}", f"{limit:.0e}", verdict)
                title = ""  # the description is printed in the first row only
        if several:
            table.add_section()
    console.print(table)
    return passed


def animation(runs: Mapping[str, Run]) -> kg.results.Animation:
    """The motions of all cases in one scene."""
    motions = {name: solution for name, (_, solution) in runs.items() if isinstance(solution, kg.Solution)}
    return kg.animate(list(motions.values()), labels=list(motions))


def draw(plot: Callable[[Any, Mapping[str, Run]], None], runs: Mapping[str, Run]) -> Any:
    """The figure of an example."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 7.0), layout="constrained")
    plot(figure, runs)
    return figure
