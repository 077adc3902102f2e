"""Names, comments, strings and numbers in C.

Text from the user occurs only in comments and string literals, escaped so that it cannot end them.
"""

from __future__ import annotations

import math
import re
import textwrap
from fractions import Fraction
from typing import Any, Final

from kanegen.errors import BuildError
from kanegen.precision import DOUBLE, Precision

# In a comment: characters that are not printable ASCII, comment delimiters, and the start of trigraphs. A backslash
# matters only at the end of a line, where comments have no names.
_COMMENT = re.compile(r"[^ -~]|(?<=[*/])[*/]|\?(?=\?)")
_STRING = re.compile(r"[^ !#-&(-<>@-\[\]-~=]")
_NOT_IN_IDENTIFIER = re.compile(r"[^A-Za-z0-9]+")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def is_identifier(name: Any) -> bool:
    """Whether files and C symbols can begin with a name."""
    return isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None


def comment(text: str) -> str:
    """The text for the inside of a ``/* */`` comment; characters that could end it become ``<U+002F>``."""
    return _COMMENT.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def wrapped(text: str) -> list[str]:
    """The lines of a separate C comment; none for an empty text."""
    lines = textwrap.wrap(comment(text), 112, break_long_words=False, break_on_hyphens=False)
    return [f"{'/*' if k == 0 else ' *'} {line}{' */' * (k == len(lines) - 1)}" for k, line in enumerate(lines)]


def string(text: str) -> str:
    """The C string literal of the UTF-8 bytes of a text. Raises `BuildError` for a NUL character."""
    if "\0" in text:
        raise BuildError(f"the name {text!r} contains a NUL character, which ends a string in C; choose another name")
    data = text.encode("utf-8", errors="backslashreplace").decode("latin-1")
    # Octal escapes have three digits, so that a digit that follows is not part of them.
    return '"' + _STRING.sub(lambda match: f"\\{ord(match[0]):03o}", data) + '"'


LINE_WIDTH: Final = 118
"""Columns of generated files."""

LONGEST_STEM: Final = 80
"""File systems limit names to 255 bytes or fewer, and the names of files and folders have further parts."""


def stem(name: str) -> str:
    """A C identifier that resembles the name of a model; short enough for the name of a file."""
    result = _NOT_IN_IDENTIFIER.sub("_", name).strip("_")[:LONGEST_STEM].rstrip("_")
    return result if result and not result[0].isdigit() else f"model_{result}".rstrip("_")


def literal(value: int | Fraction | float, precision: Precision = DOUBLE) -> str:
    """The C literal of the double nearest to ``value``: the shortest decimal that is converted to this double.

    Raises `BuildError` for a number outside the range of the scalar type.
    """
    precision.require(value, f"the constant {value}")
    number = float(precision.value(value))
    if math.isnan(number):
        return "(kg_real)NAN"
    if math.isinf(number):
        return "(kg_real)HUGE_VAL" if number > 0 else "-(kg_real)HUGE_VAL"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    return f"{sign}KG_C({abs(number)!r})"
