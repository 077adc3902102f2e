"""The command group, and how errors reach the user."""

from __future__ import annotations

import errno
from typing import Any

import click

from kanegen._version import __version__
from kanegen.cli.bench.command import bench
from kanegen.cli.build import build, cache, emit, verify
from kanegen.cli.doctor import doctor
from kanegen.cli.fmu import fmu
from kanegen.cli.new import new
from kanegen.cli.report import report
from kanegen.cli.run import run
from kanegen.cli.show import show
from kanegen.errors import KanegenError


class _Group(click.Group):
    """A group that reports errors by a message and exit status 1, unless ``--traceback`` is given.

    These are the errors of kanegen, of files and of missing memory.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KanegenError, OSError, MemoryError) as error:
            broken_pipe = isinstance(error, OSError) and error.errno == errno.EPIPE
            if ctx.params["traceback"] or broken_pipe:  # click ends quietly where nobody reads on
                raise
            what = "not enough memory: " if isinstance(error, MemoryError) else ""
            raise click.ClickException(f"{what}{error}") from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kanegen")
@click.option("--traceback", is_flag=True, help="Show the traceback of an error.")
def main(traceback: bool) -> None:
    """Constrained mechanical systems in SymPy, compiled to fast C solvers.

    FILE is a Python file that defines model(**options) and returns a kanegen.Model; FILE:FUNCTION names
    another function. INITIAL = {"t":, "q":, "u":, "r":, "s":} in the file is the start of the motion; r
    are the inputs, s the states of a model with states. Without INITIAL the motion starts from initial= of
    the model.
    """


for command in (new, build, run, report, emit, fmu, show, verify, bench, cache, doctor):
    main.add_command(command)
