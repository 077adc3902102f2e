"""User text in C: names and units reach comments and string literals only, in forms that cannot end them."""

from __future__ import annotations

import re
import textwrap

from kanegen.errors import BuildError

# In a comment: what is not printable ASCII, comment delimiters, and the start of trigraphs. A backslash
# matters only at the end of a line, and a comment never puts a name there.
_COMMENT = re.compile(r"[^ -~]|(?<=[*/])[*/]|\?(?=\?)")
_STRING = re.compile(r"[^ !#-&(-<>@-\[\]-~=]")
_NOT_IN_IDENTIFIER = re.compile(r"[^A-Za-z0-9]+")


def comment(text: str) -> str:
    """The text for the inside of a ``/* */`` comment; what could end it is spelt ``<U+002F>``."""
    return _COMMENT.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def wrapped(text: str) -> list[str]:
    """The lines of a C comment of its own; none for an empty text."""
    lines = textwrap.wrap(comment(text), 112, break_long_words=False, break_on_hyphens=False)
    return [f"{'/*' if k == 0 else ' *'} {line}{' */' * (k == len(lines) - 1)}" for k, line in enumerate(lines)]


def string(text: str) -> str:
    """The C string literal of the UTF-8 bytes of a text. Raises `BuildError` for a NUL character."""
    if "\0" in text:
        raise BuildError(f"the name {text!r} holds a NUL character, which would end it in C; choose another")
    data = text.encode("utf-8", errors="backslashreplace").decode("latin-1")
    # Octal escapes have three digits, so that a digit that follows is not taken for part of them.
    return '"' + _STRING.sub(lambda match: f"\\{ord(match[0]):03o}", data) + '"'


def stem(name: str) -> str:
    """A C identifier that resembles the name of a model."""
    result = _NOT_IN_IDENTIFIER.sub("_", name).strip("_")
    return result if result and not result[0].isdigit() else f"model_{result}".rstrip("_")
