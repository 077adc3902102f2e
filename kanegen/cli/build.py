"""``kanegen build`` and ``kanegen emit``: from a model to a compiled extension, or to C sources."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kanegen.cli.arguments import Target, model_arguments, read_target
from kanegen.forms import AUTO, FORMS


@click.command()
@model_arguments
@click.option("--form", default="auto", show_default=True, help=f"Form of the equations: {', '.join((AUTO, *FORMS))}.")
def build(target: Target, options: dict[str, Any], form: str) -> None:
    """Derive, compile and load the model, and say what was built."""
    file = read_target(target, options)
    from kanegen.pipeline import build as build_solver

    started = time.perf_counter()
    solver = build_solver(file.model, form=form)
    elapsed = time.perf_counter() - started
    description = solver.description
    table = Table(show_header=False, box=None)
    for what, value in (
        ("model", description.name),
        ("coordinates", ", ".join(description.coordinates)),
        ("speeds", ", ".join(description.speeds)),
        ("dependent", ", ".join(description.dependent_names) or "none"),
        ("form", f"{description.form}, {description.functions['rhs'].operations} operations"),
        ("functions", ", ".join(description.functions)),
        ("extension", str(solver.extension.path)),
        ("built in", f"{elapsed:.2f} s"),
    ):
        table.add_row(f"[bold]{what}[/bold]", value)
    Console().print(table)


@click.command()
@model_arguments
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def emit(target: Target, options: dict[str, Any], directory: Path) -> None:
    """Write the C sources of the model to DIRECTORY."""
    file = read_target(target, options)
    from kanegen.pipeline import emit as emit_sources

    emit_sources(file.model, directory)
    console = Console()
    for path in sorted(item for item in directory.rglob("*") if item.is_file()):
        console.print(f"{path}  ({path.stat().st_size} bytes)", highlight=False, soft_wrap=True)
