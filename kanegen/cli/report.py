"""``kanegen report``: one page about a model and its motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kanegen.cli.arguments import model_argument, print_line
from kanegen.cli.run import Start, motion_options, simulate
from kanegen.modelfile import ModelFile
from kanegen.pages import page_path
from kanegen.reporting.reported import Reported
from kanegen.reporting.sections import report_page, require_packages
from kanegen.solve import IntegrationError, Solution


@click.command()
@model_argument()
@click.argument("page", type=click.Path(path_type=Path), required=False)
@motion_options
@click.option("--verify/--no-verify", default=True, show_default=True, help="Run the checks of kanegen verify.")
def report(
    file: ModelFile,
    page: Path | None,
    parameters: dict[str, Any],
    start: dict[str, Any],
    inputs: dict[str, Any],
    duration: float,
    points: int | None,
    verify: bool,
    backend: str,
    **settings: Any,
) -> None:
    """Write a page of HTML with the description, the equations, a motion and checks to PAGE.

    PAGE is NAME.html of a file NAME.py by default; an existing file is replaced. The motion starts as for
    kanegen run; without a start the page has no motion.
    """
    target = page_path(Path(f"{file.path.stem}.html") if page is None else page)
    require_packages()
    motion, reason = None, ""
    if file.named_start() or start:
        motion = _motion(
            file, parameters, Start(file, start, inputs), duration, points, {**settings, "backend": backend}
        )
    else:
        reason = f"{file.path.name} gives no start: add INITIAL or Model(initial=...), or give --start NAME=VALUE"
    written = report_page(Reported(file.model, motion, reason, verify, backend))
    print_line(f"report: {written.save(target)}")
    for notice in written.notices:
        print_line(f"  {notice}")


def _motion(file: ModelFile, *arguments: Any) -> Solution:
    """The motion; of an integration that fails, the part that was integrated."""
    try:
        return simulate(file, *arguments).solution
    except IntegrationError as error:
        print_line(f"the motion is not complete: {error}")
        return error.solution
