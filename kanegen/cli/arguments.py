"""Arguments that several commands share, each declared once, and how lines are printed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from kanegen.bench.modelfile import read_model_file
from kanegen.forms import AUTO, FORMS

Command = TypeVar("Command", bound=Callable[..., Any])


def parse_target(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Path, str] | None:
    """Callback of an argument ``FILE[:FUNCTION]``."""
    if value is None:
        return None
    file, colon, function = value.rpartition(":")
    # A colon may also belong to a path, as in C:\model.py.
    if not (colon and function.isidentifier()):
        file, function = value, "model"
    if not Path(file).is_file():
        raise click.BadParameter(f"there is no file {file!r}", context, parameter)
    return Path(file), function


def parse_assignments(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, Any]:
    """Callback of a repeatable option ``name=value``: a Python literal, or else a string."""
    assignments: dict[str, Any] = {}
    for text in values:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not of the form name=value", context, parameter)
        if name in assignments:
            raise click.BadParameter(f"{name} is given twice", context, parameter)
        try:
            assignments[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            assignments[name] = value
    return assignments


def assignments_option(*names: str, help: str) -> Callable[[Command], Command]:
    """A repeatable option ``NAME=VALUE``, which arrives as a mapping."""
    return click.option(*names, multiple=True, callback=parse_assignments, metavar="NAME=VALUE", help=help)


def model_argument(required: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add ``FILE[:FUNCTION]`` and ``-o NAME=VALUE``; the command receives the `ModelFile`, or None, as ``file``."""
    metavar = "FILE[:FUNCTION]" if required else "[FILE[:FUNCTION]]"
    argument = click.argument("target", callback=parse_target, metavar=metavar, required=required)
    option = assignments_option(
        "-o", "--option", "options", help="Option of the model function, a Python literal: -o n=4."
    )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_file(target: tuple[Path, str] | None, options: dict[str, Any], **others: Any) -> None:
            command(file=None if target is None else read_model_file(*target, options), **others)

        return argument(option(with_file))

    return decorate


start_option = assignments_option(
    "--start", "start", help="Start value of a coordinate, a speed, a state or t: --start theta=0.3."
)

input_option = assignments_option("--input", "inputs", help="Value of an input, constant in time.")

form_option = click.option(
    "--form", default="auto", show_default=True, help=f"Form of the equations: {', '.join((AUTO, *FORMS))}."
)

time_option = click.option("--time", "duration", type=float, default=10.0, show_default=True, help="Seconds of motion.")


def print_line(text: str) -> None:
    """Print one line as it is: not wrapped, without colors."""
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
