"""The strict Jinja environment of all templates, and the C runtime headers.

Templates only place what Python decided: an unknown name is an error, and no escaping changes C.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kanegen.codegen.methods.rosenbrock import RODAS
from kanegen.codegen.methods.tableaux import literal, tableaux, terms
from kanegen.resources import template_folder

RUNTIME = "runtime"
TABLEAUX_HEADER = "kg_tableaux.h"
ROSENBROCK_HEADER = "kg_rosenbrock.h"


@cache
def environment() -> Environment:
    """The environment that renders every template; made once per process."""
    result = Environment(
        loader=FunctionLoader(_template_text),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    result.filters.update(literal=literal, node=node, terms=terms, used_columns=used_columns, fill=fill)
    return result


def render(template: str, **context: object) -> str:
    """The text of one template, with Unix line ends and a newline at the end.

    Raises
    ------
    jinja2.TemplateNotFound, jinja2.UndefinedError
        When there is no such template, or it uses a name that ``context`` lacks.
    """
    return environment().get_template(template).render(**context)


def runtime_headers() -> dict[str, str]:
    """Every header of the C runtime, file name to text, sorted; the tableaux are rendered."""
    return dict(_runtime_headers())


@cache
def _runtime_headers() -> tuple[tuple[str, str], ...]:
    entries = (template_folder() / RUNTIME).iterdir()
    headers = {entry.name: entry.read_text(encoding="utf-8") for entry in entries if entry.name.endswith(".h")}
    headers[TABLEAUX_HEADER] = render("tableaux.h.jinja", methods=list(tableaux().values()))
    headers[ROSENBROCK_HEADER] = render("rosenbrock.h.jinja", methods=[RODAS])
    return tuple(sorted(headers.items()))


def fill(text: str, first: str, rest: str) -> str:
    """The text in lines of a C comment, which begin with ``first``, then ``rest``."""
    return textwrap.fill(
        text, 118, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def used_columns(rows: Iterable[Sequence[Fraction]]) -> list[int]:
    """Indices at which at least one of the rows has a weight."""
    return sorted({j for row in rows for j, _ in terms(tuple(row))})


def node(c: Fraction) -> str:
    """A node times the step in C."""
    return "h" if c == 1 else f"{literal(c)} * h"


def _template_text(name: str) -> str | None:
    entry = template_folder() / name
    return entry.read_text(encoding="utf-8") if entry.is_file() else None
