"""``kanegen build``, ``emit`` and ``verify`` make and check the code of a model; ``kanegen cache``."""

from __future__ import annotations

import time
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kanegen import pipeline
from kanegen.backends.cython.cache import open_cache
from kanegen.cli.arguments import (
    assignments_option,
    backend_option,
    build_options,
    form_option,
    input_option,
    model_argument,
    print_line,
    start_option,
)
from kanegen.cli.bench.timing import timed
from kanegen.cli.tables import make_table
from kanegen.emission.methods import STEP_METHODS
from kanegen.emission.options import ITERATIONS, MATHS
from kanegen.emission.programs import ALL, DEFAULT, PROGRAMS
from kanegen.emission.targets import TARGETS, C, emit_for
from kanegen.errors import VerificationError
from kanegen.modelfile import ModelFile
from kanegen.precision import PRECISIONS
from kanegen.verification import Report
from kanegen.verification import verify as run_checks


@click.command()
@model_argument()
@backend_option
@build_options
def build(file: ModelFile, **options: Any) -> None:
    """Derive, compile and load the model, and describe what was built."""
    solver, elapsed = timed(partial(pipeline.build, file.model, **options))
    description = solver.description
    table = Table(show_header=False, box=None)
    for what, value in (
        ("model", description.name),
        ("coordinates", ", ".join(description.coordinates)),
        ("speeds", ", ".join(description.speeds)),
        *([("states", ", ".join(description.states))] if description.states else []),
        ("dependent", ", ".join(description.dependent_names) or "none"),
        ("form", f"{description.form}, {description.functions['rhs'].operations} operations"),
        ("functions", ", ".join(description.functions)),
        *([("on first use", ", ".join(description.deferred))] if description.deferred else []),
        ("extension", str(solver.extension.path or "none: the program is interpreted")),
        ("built in", f"{elapsed:.2f} s"),
    ):
        table.add_row(f"[bold]{what}[/bold]", value)
    Console().print(table)


@click.command()
@model_argument()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@assignments_option("-p", "--parameter", "parameters", help="A parameter's value.")
@start_option
@input_option
@build_options
@click.option(
    "--target",
    "kind",
    default=C,
    show_default=True,
    help="; ".join(f"{name}: {target.summary}" for name, target in TARGETS.items()) + ".",
)
@click.option("--name", help="Prefix of files and C symbols.  [default: the name of the model]")
@click.option("--precision", default="double", show_default=True, help=f"Scalar type: {', '.join(PRECISIONS)}.")
@click.option("--math", default=MATHS[0], show_default=True, help=f"Sines and cosines: {', '.join(MATHS)}.")
@click.option(
    "--method", default="auto", show_default=True, help=f"Method of the step: auto, {', '.join(STEP_METHODS)}, none."
)
@click.option("--projections", type=int, help="Newton iterations onto the constraints after each step.")
@click.option(
    "--iterations", type=int, default=ITERATIONS, show_default=True, help="For the contact impulses of a step."
)
@click.option("--target-triple", help="Compile for another system, such as aarch64-linux-musl, with Zig.")
@click.option("--single-header", is_flag=True, help="Write one file, NAME.h.")
@click.option(
    "--programs",
    default=",".join(DEFAULT),
    show_default=True,
    help=f"Separated by commas: {'; '.join(f'{name} {what}' for name, what in PROGRAMS.items())}; or all.",
)
def emit(
    file: ModelFile,
    directory: Path,
    parameters: dict[str, Any],
    start: dict[str, Any],
    inputs: dict[str, Any],
    kind: str,
    programs: str,
    **options: Any,
) -> None:
    """Write a project in C to DIRECTORY: the model with a typed interface, an example program and a self-test.

    With --target, write functions for another program instead. Parameters, start and inputs are those of the model, of
    INITIAL in the file, and of the options.
    """
    values = {**file.named_values(), **parameters, **start, **inputs}
    asked = programs if programs == ALL else tuple(name.strip() for name in programs.split(",") if name.strip())
    emit_for(kind, file.model, directory, values=values, programs=asked, **options)
    for path in sorted(item for item in directory.rglob("*") if item.is_file()):
        print_line(f"{path}  ({path.stat().st_size} bytes)")


@click.command()
@model_argument()
@click.option("--states", type=click.IntRange(min=1), default=10, show_default=True, help="Random states.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random states.")
@form_option
@backend_option
def verify(file: ModelFile, states: int, seed: int, form: str, backend: str) -> None:
    """Check the equations by other principles of mechanics, and the compiled code by interpreters.

    States are drawn around the INITIAL of the file, if it has one. All functions of --form are checked, and
    the right-hand sides of the other forms. The exit status is 1 if a check fails.
    """
    try:
        report = run_checks(file.model, states=states, seed=seed, form=form, start=file.initial, backend=backend)
    except VerificationError as error:
        if not isinstance(error.report, Report):
            raise
        Console().print(error.report.table())
        failed = ", ".join(check.principle for check in error.report.failed)
        raise click.ClickException(f"{file.model.name!r} fails {failed}") from error
    Console().print(report.table())


@click.group()
def cache() -> None:
    """Show or empty the cache of derived sources and compiled models.

    The environment variable KANEGEN_CACHE_DIR replaces the user's cache folder, and KANEGEN_CACHE_SIZE is
    its largest size in MB (default 500; inf for none): entries not used for the longest time are removed.
    """


@cache.command("list")
def list_entries() -> None:
    """List the entries with their sizes."""
    folder = open_cache()
    entries = folder.entries()
    rows = [
        (entry.kind, entry.name, entry.key[:12], size_text(entry.size), time.strftime("%Y-%m-%d %H:%M", used))
        for entry, used in ((entry, time.localtime(entry.used)) for entry in entries)
    ]
    Console().print(make_table(f"{folder.root}", ("kind", "model", "key", "size", "last used"), rows, right=("size",)))
    limit = f"of at most {size_text(folder.limit)}" if isfinite(folder.limit) else "without a limit"
    print_line(f"{len(entries)} entries, {size_text(sum(entry.size for entry in entries))} {limit}")


@cache.command()
def clear() -> None:
    """Remove everything in the cache; kanegen makes entries again when it needs them."""
    folder = open_cache()
    print_line(f"{size_text(folder.clear())} freed in {folder.root}")


def size_text(size: float) -> str:
    """A number of bytes in kB or MB."""
    return f"{size / 1e6:.1f} MB" if size >= 1_000_000 else f"{size / 1e3:.1f} kB"
