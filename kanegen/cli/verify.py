"""``kanegen verify``: the self-checks of a model."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from kanegen.cli.arguments import Target, model_arguments, read_target


@click.command()
@model_arguments
@click.option("--states", type=click.IntRange(min=1), default=10, show_default=True, help="Random states.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random states.")
@click.option("--form", default="auto", show_default=True, help="Form of the equations that is built in full.")
def verify(target: Target, options: dict[str, Any], states: int, seed: int, form: str) -> None:
    """Check the equations by other principles of mechanics, and the compiled code by interpreters.

    States lie around the INITIAL of the file, if it has one. The exit status is 1 where something disagrees.
    """
    file = read_target(target, options)
    from kanegen.errors import VerificationError
    from kanegen.verification import Report
    from kanegen.verification import verify as run_checks

    console = Console()
    try:
        report = run_checks(file.model, states=states, seed=seed, form=form, start=file.initial)
    except VerificationError as error:
        if isinstance(error.report, Report):
            console.print(error.report.table())
            failed = ", ".join(check.principle for check in error.report.failed)
            raise click.ClickException(f"{file.model.name!r} fails {failed}") from error
        raise
    console.print(report.table())
