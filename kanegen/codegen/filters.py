"""The filters of the templates."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from kanegen.codegen.methods import tableaux
from kanegen.codegen.text import LINE_WIDTH, comment, literal, string

LITERAL_WIDTH: Final = 90
"""Width at which a long string literal continues on the next line."""


def fill(text: str, first: str, rest: str) -> str:
    """The text in lines of a C comment, which begin with ``first``, then ``rest``."""
    return textwrap.fill(
        text, LINE_WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def sum_of(weights: Iterable[tuple[int, Fraction]], operand: str, indent: int) -> str:
    """A weighted sum in C, wrapped; ``operand`` is the text of an operand with ``%d`` for its number, from 1."""
    pieces = [f"{'-' if w < 0 else '+'} {tableaux.literal(abs(w))} * {operand % (j + 1)}" for j, w in weights]
    pieces[0] = pieces[0].removeprefix("+ ").replace("- ", "-", 1)
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if indent + len(lines[-1]) + len(piece) < LINE_WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return f"\n{' ' * indent}".join(lines)


def used_columns(rows: Iterable[Sequence[Fraction]]) -> list[int]:
    """Indices at which at least one of the rows has a nonzero weight."""
    return sorted({j for row in rows for j, _ in tableaux.terms(tuple(row))})


def c_text(text: str, indent: int) -> str:
    """A C string literal of printable ASCII; a long literal continues on further, indented lines."""
    lines = textwrap.wrap(text, LITERAL_WIDTH, break_long_words=False)
    quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return ("\n" + " " * indent).join(f'"{line}{" " * (k < len(lines) - 1)}"' for k, line in enumerate(quoted))


def docstring(text: str) -> str:
    """The text for the inside of a docstring of Python: printable ASCII, without quotation marks that end it."""
    return comment(text).replace("\\", "\\\\").replace('"', '\\"')


def node(c: Fraction) -> str:
    """The product of a node and the step size in C."""
    return "h" if c == 1 else f"{tableaux.literal(c)} * h"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "comment": comment,
        "cstring": string,
        "number": literal,
        "literal": tableaux.literal,
        "terms": tableaux.terms,
        "node": node,
        "sum_of": sum_of,
        "used_columns": used_columns,
        "c_text": c_text,
        "fill": fill,
        "docstring": docstring,
        "python": repr,
    }
)
"""All filters by their names in templates."""
