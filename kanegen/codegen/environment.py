"""The strict Jinja environment of all templates, and the C runtime headers.

Templates only place what Python decided: an unknown name is an error, and no escaping changes C.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kanegen.codegen.methods.table import METHODS
from kanegen.codegen.methods.tableaux import literal, terms
from kanegen.codes import ContactLaw, EventKind, Mode, Status
from kanegen.errors import BuildError
from kanegen.resources import template_folder

RUNTIME = "runtime"
_INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.MULTILINE)
LINE_WIDTH = 118
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
    result.filters.update(
        literal=literal, node=node, terms=terms, sum_of=sum_of, used_columns=used_columns, c_text=c_text, fill=fill
    )
    return result


def render(template: str, **context: object) -> str:
    """The text of one template, with Unix line ends and a newline at the end.

    Raises
    ------
    jinja2.TemplateNotFound, jinja2.UndefinedError
        When there is no such template, or it uses a name that ``context`` lacks.
    """
    return environment().get_template(template).render(**context)


def runtime_headers(methods: Iterable[str] = tuple(METHODS)) -> dict[str, str]:
    """Every header of the C runtime, file name to text, sorted; those of codes and methods are rendered.

    ``methods``: names of the integration methods that the headers hold.
    """
    return dict(_runtime_headers(tuple(methods)))


@cache
def _runtime_headers(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    entries = (template_folder() / RUNTIME).iterdir()
    headers = {entry.name: entry.read_text(encoding="utf-8") for entry in entries if entry.name.endswith(".h")}
    methods = [METHODS[name] for name in names]
    headers["kg_codes.h"] = render(
        "codes.h.jinja", statuses=list(Status), modes=list(Mode), laws=list(ContactLaw), kinds=list(EventKind)
    )
    headers["kg_methods.h"] = render("methods.h.jinja", methods=methods)
    headers["kg_tableaux.h"] = render("tableaux.h.jinja", methods=[m for m in methods if not m.is_implicit])
    headers["kg_rosenbrock.h"] = render("rosenbrock.h.jinja", methods=[m for m in methods if m.is_implicit])
    return tuple(sorted(headers.items()))


def include_closure(files: Mapping[str, str], available: Mapping[str, str]) -> dict[str, str]:
    """The headers that C files include, directly or through others, and that are not among the files.

    Both arguments map names to texts, and so does the result, sorted. Raises `BuildError` where a header is in neither.
    """
    found: dict[str, str] = {}
    waiting = [text for name, text in files.items() if name.endswith((".c", ".h"))]
    while waiting:
        for name in _INCLUDE.findall(waiting.pop()):
            if name not in files and name not in found:
                if name not in available:
                    raise BuildError(f"the generated sources lack the runtime header {name!r}")
                found[name] = available[name]
                waiting.append(found[name])
    return dict(sorted(found.items()))


def fill(text: str, first: str, rest: str) -> str:
    """The text in lines of a C comment, which begin with ``first``, then ``rest``."""
    return textwrap.fill(
        text, LINE_WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def sum_of(weights: Iterable[tuple[int, Fraction]], operand: str, indent: int) -> str:
    """A weighted sum in C, in lines: ``operand`` spells operand number ``%d``, which counts from 1."""
    pieces = [f"{'-' if w < 0 else '+'} {literal(abs(w))} * {operand % (j + 1)}" for j, w in weights]
    pieces[0] = pieces[0].removeprefix("+ ").replace("- ", "-", 1)
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if indent + len(lines[-1]) + len(piece) < LINE_WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return f"\n{' ' * indent}".join(lines)


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
