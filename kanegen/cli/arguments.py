"""Arguments that several commands share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Target:
    """``FILE[:FUNCTION]`` of a command line."""

    path: Path
    function: str


def parse_target(context: click.Context, parameter: click.Parameter, value: str | None) -> Target | None:
    """Callback of an argument ``FILE[:FUNCTION]``."""
    if value is None:
        return None
    file, colon, function = value.rpartition(":")
    # A colon may also belong to a path, as in C:\model.py.
    if not (colon and function.isidentifier()):
        file, function = value, "model"
    if not Path(file).is_file():
        raise click.BadParameter(f"there is no file {file!r}", context, parameter)
    return Target(Path(file), function)


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


def option_of_model(command: Command) -> Command:
    """Adds the repeatable ``-o NAME=VALUE`` as the mapping ``options``."""
    return click.option(
        "-o",
        "--option",
        "options",
        multiple=True,
        callback=parse_assignments,
        metavar="NAME=VALUE",
        help="Option of the model function, a Python literal: -o n=4.",
    )(command)


def model_arguments(command: Command) -> Command:
    """Adds ``FILE[:FUNCTION]`` as ``target``, and ``-o NAME=VALUE``."""
    argument = click.argument("target", callback=parse_target, metavar="FILE[:FUNCTION]")
    return argument(option_of_model(command))


def read_target(target: Target, options: Mapping[str, Any]) -> Any:
    """The `ModelFile` of a command line. It imports SymPy here, so that ``kanegen --help`` starts fast."""
    from kanegen.bench.modelfile import read_model_file

    return read_model_file(target.path, target.function, options)
