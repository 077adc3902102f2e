"""Arguments that several commands share, each declared once, and how lines are printed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console

from kanegen.backends.registry import BACKENDS
from kanegen.errors import KanegenError
from kanegen.forms import AUTO, FORMS
from kanegen.model import Baumgarte, Projection
from kanegen.modelfile import read_model_file
from kanegen.run_options import Kind, table

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
        problem = f"{file!r} is a folder" if Path(file).is_dir() else f"there is no file {file!r}"
        raise click.BadParameter(f"{problem}; expected a Python file", context, parameter)
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

functions_option = click.option(
    "--functions",
    callback=lambda context, parameter, value: _functions(value),
    metavar="NAMES",
    help="Functions to compile, separated by commas, or all.  [default: those of kanegen.build]",
)


def _functions(text: str | None) -> str | tuple[str, ...] | None:
    if text is None or text.strip() == "all":
        return None if text is None else "all"
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _baumgarte(text: str) -> Baumgarte:
    return Baumgarte(*(float(x) for x in text.split(",")))


def _projection(text: str) -> Projection:
    return Projection(integrals=tuple(name.strip() for name in text.split(",") if name.strip()))


STABILIZATIONS: Final[Mapping[str, Callable[[str], Baumgarte | Projection]]] = {
    "baumgarte": _baumgarte,
    "projection": _projection,
}
"""How the values of ``--stabilization`` are read, by the word before the colon."""


def parse_stabilization(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> Baumgarte | Projection | None:
    """Callback of ``--stabilization``."""
    if value is None:
        return None
    kind, _, rest = value.partition(":")
    try:
        return STABILIZATIONS[kind](rest)
    except KanegenError as error:
        raise click.BadParameter(f"{value!r}: {error}", context, parameter) from error
    except (KeyError, ValueError, TypeError):
        expected = "projection, projection:INTEGRAL,..., or baumgarte:ALPHA,BETA"
        raise click.BadParameter(f"{value!r}; expected {expected}", context, parameter) from None


stabilization_option = click.option(
    "--stabilization",
    callback=parse_stabilization,
    metavar="KIND",
    help="Against the drift of constraints: projection, projection:energy (integrals of motion that are kept), or "
    "baumgarte:ALPHA,BETA (1/s).  [default: none]",
)

BUILD_OPTIONS: Final = (form_option, stabilization_option, functions_option)


def build_options(command: Command) -> Command:
    """Add ``--form``, ``--stabilization`` and ``--functions``, the arguments of :func:`kanegen.build`."""
    for option in reversed(BUILD_OPTIONS):
        command = option(command)
    return command


backend_option = click.option(
    "--backend",
    type=click.Choice(list(BACKENDS)),
    default="cython",
    show_default=True,
    help="interpreted: in Python, without a C compiler, contacts and events; slow.",
)


def _literal(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Callback of an option whose value is a Python literal."""
    try:
        return None if value is None else ast.literal_eval(value)
    except (ValueError, SyntaxError):
        raise click.BadParameter(f"{value!r}; expected a number or numbers: 1.0,2.0", context, parameter) from None


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Callback of an option with names, separated by commas; an empty text is no name."""
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def _mapping(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, Any] | None:
    return parse_assignments(context, parameter, values) or None


_SPELLINGS: Final[Mapping[Kind, Mapping[str, Any]]] = {
    Kind.SECONDS: {"type": float},
    Kind.DELAY: {"type": float},
    Kind.TOLERANCE: {"type": float},
    Kind.POSITIVE: {"type": float},
    Kind.COUNT: {"type": int},
    Kind.FLAG: {"is_flag": True},
    Kind.PROGRESS: {"is_flag": True},
    Kind.NAMES: {"callback": _names, "metavar": "NAME,..."},
    Kind.MAPPING: {"callback": _mapping, "metavar": "NAME=VALUE", "multiple": True},
    Kind.VALUES: {"callback": _literal, "metavar": "VALUE,..."},
}
"""How options of a run are written on the command line; times of storage are ``--points``."""


def run_options(options: type, methods: Sequence[str], **others: Any) -> tuple[Callable[[Command], Command], ...]:
    """The options of a class of :mod:`kanegen.run_options`; ``others``: defaults that are not those of the table."""
    made = []
    for name, option in table(options).items():
        spelling = {Kind.METHOD: {"type": click.Choice(methods)}, **_SPELLINGS}.get(option.kind)
        if spelling is not None:
            flag, default = f"--{name.replace('_', '-')}", others.get(name, option.default)
            flags = f"{flag}/--no-{flag[2:]}" if default is True else flag
            shown = default is not None and default is not False
            text = option.text.replace("None:", "default:")
            made.append(click.option(flags, name, default=default, show_default=shown, help=text, **spelling))
    return tuple(made)


time_option = click.option("--time", "duration", type=float, default=10.0, show_default=True, help="Seconds of motion.")


def print_line(text: str) -> None:
    """Print one line as it is: not wrapped, without colors."""
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
