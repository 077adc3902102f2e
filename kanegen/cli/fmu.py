"""``kanegen fmu`` writes a model as an FMU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.cli.arguments import (
    Command,
    assignments_option,
    form_option,
    input_option,
    model_argument,
    print_line,
    run_options,
    stabilization_option,
    start_option,
)
from kanegen.codegen.methods.table import EMITTED
from kanegen.emission.fmu import export_fmu
from kanegen.emission.fmu.options import DEFAULTS, VERSIONS
from kanegen.modelfile import ModelFile
from kanegen.run_options import StepOptions


def step_options(command: Command) -> Command:
    """Add the options of the co-simulation."""
    for option in reversed(run_options(StepOptions, EMITTED, **DEFAULTS)):
        command = option(command)
    return command


@click.command()
@model_argument()
@click.argument("path", type=click.Path(path_type=Path), metavar="TARGET.fmu")
@click.option("--fmi", type=click.Choice(VERSIONS), default=VERSIONS[0], show_default=True, help="Version of FMI.")
@click.option("--name", help="Model identifier of the FMU.  [default: the name of the model]")
@assignments_option("-p", "--parameter", "parameters", help="A parameter's value.")
@start_option
@input_option
@form_option
@stabilization_option
@step_options
@click.option("--binary/--no-binary", default=True, help="Compile the shared library for this platform.")
@click.option("--native", is_flag=True, help="Compile for the processor of this machine; it may not run on others.")
def fmu(
    file: ModelFile,
    path: Path,
    parameters: dict[str, Any],
    start: dict[str, Any],
    inputs: dict[str, Any],
    native: bool,
    **options: Any,
) -> None:
    """Write the model as an FMU for model exchange and co-simulation.

    TARGET.fmu contains C sources and, unless --no-binary is given, a shared library for this platform. Start
    values are those of the model, of INITIAL and of the options; importers can change them.
    """
    compiler = CompilerOptions() if native else None
    values = {**file.named_values(), **parameters, **start, **inputs}
    written = export_fmu(file.model, path, values=values, compiler=compiler, **options)
    print_line(f"{written}  ({written.stat().st_size} bytes)")
