"""``kanegen new`` writes a commented model file to start from."""

from __future__ import annotations

import keyword
import os
from pathlib import Path

import click
from jinja2 import Environment, StrictUndefined

from kanegen.cli.arguments import print_line
from kanegen.resources import template_folder
from kanegen.writing import reason, replacing


@click.command()
@click.argument("name")
def new(name: str) -> None:
    """Write NAME.py, a commented model of a cart with a pendulum, to start from.

    The file runs as it is. NAME may contain folders; an existing file is not replaced.
    """
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if not path.stem.isidentifier() or not path.stem.isascii() or keyword.iskeyword(path.stem):
        raise click.UsageError(
            f"NAME is {name!r}; expected a Python name, such as my_robot: ASCII letters, digits and _, no keyword"
        )
    try:
        if os.path.lexists(path):
            raise click.ClickException(f"{path} exists already; choose another name or remove the file")
        with replacing(path) as file:
            file.write(model_text(path.stem).encode())
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {reason(error)}") from error
    print_line(f"{path} written. Next: kanegen run {path}")


def model_text(name: str) -> str:
    """The text of the model file."""
    text = template_folder().joinpath("project/new_model.py.jinja").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    return environment.from_string(text).render(name=name)
