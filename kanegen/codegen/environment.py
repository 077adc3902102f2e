"""The strict Jinja environment of all templates, and the C runtime headers.

Templates only place what Python decided: an unknown name is an error, and no escaping changes C.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kanegen.codegen.methods.table import METHODS
from kanegen.codegen.methods.tableaux import literal, terms
from kanegen.codes import ContactLaw, EventKind, Mode, Status
from kanegen.resources import template_folder

RUNTIME = "runtime"
LITERAL_WIDTH = 90
"""Characters after which a long string literal is continued on the next line."""


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
    result.filters.update(literal=literal, node=node, terms=terms, used_columns=used_columns, c_text=c_text)
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
    """Every header of the C runtime, file name to text, sorted; those of codes and methods are rendered."""
    return dict(_runtime_headers())


@cache
def _runtime_headers() -> tuple[tuple[str, str], ...]:
    entries = (template_folder() / RUNTIME).iterdir()
    headers = {entry.name: entry.read_text(encoding="utf-8") for entry in entries if entry.name.endswith(".h")}
    methods = list(METHODS.values())
    headers["kg_codes.h"] = render(
        "codes.h.jinja", statuses=list(Status), modes=list(Mode), laws=list(ContactLaw), kinds=list(EventKind)
    )
    headers["kg_methods.h"] = render("methods.h.jinja", methods=methods)
    headers["kg_tableaux.h"] = render("tableaux.h.jinja", methods=[m for m in methods if not m.is_implicit])
    headers["kg_rosenbrock.h"] = render("rosenbrock.h.jinja", methods=[m for m in methods if m.is_implicit])
    return tuple(sorted(headers.items()))


def used_columns(rows: Iterable[Sequence[Fraction]]) -> list[int]:
    """Indices at which at least one of the rows has a weight."""
    return sorted({j for row in rows for j, _ in terms(tuple(row))})


def c_text(text: str, indent: int) -> str:
    """A C string literal of printable ASCII, continued on further lines, indented, where it is long."""
    lines = textwrap.wrap(text, LITERAL_WIDTH, break_long_words=False)
    quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return ("\n" + " " * indent).join(f'"{line}{" " * (k < len(lines) - 1)}"' for k, line in enumerate(quoted))


def node(c: Fraction) -> str:
    """A node times the step in C."""
    return "h" if c == 1 else f"{literal(c)} * h"


def _template_text(name: str) -> str | None:
    entry = template_folder() / name
    return entry.read_text(encoding="utf-8") if entry.is_file() else None
