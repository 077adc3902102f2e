"""C identifiers that resemble the names of a model: of its variables, parameters, outputs and functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_NOT_IN_IDENTIFIER = re.compile(r"[^A-Za-z0-9]+")

_KEYWORD = re.compile(
    "alignas|alignof|and|and_eq|asm|atomic_cancel|atomic_commit|atomic_noexcept|auto|bitand|bitor|bool|"
    "break|case|catch|char|char8_t|char16_t|char32_t|class|compl|concept|const|consteval|constexpr|"
    "constinit|const_cast|continue|co_await|co_return|co_yield|decltype|default|delete|do|double|"
    "dynamic_cast|else|enum|explicit|export|extern|false|float|for|friend|goto|if|inline|int|long|mutable|"
    "namespace|new|noexcept|not|not_eq|nullptr|operator|or|or_eq|private|protected|public|reflexpr|"
    "register|reinterpret_cast|requires|restrict|return|short|signed|sizeof|static|static_assert|"
    "static_cast|struct|switch|synchronized|template|this|thread_local|throw|true|try|typedef|typeid|"
    "typename|union|unsigned|using|virtual|void|volatile|wchar_t|while|xor|xor_eq"
)
"""The keywords of C and C++, which cannot be members of a structure."""


def identifier(name: str) -> str:
    """The part of a C identifier that stands for a name: Greek letters by their names, others that C lacks as ``_``."""
    spelled = "".join(_letter(character) for character in name)
    return _NOT_IN_IDENTIFIER.sub("_", spelled).strip("_") or "_"


def _letter(character: str) -> str:
    words = unicodedata.name(character, "").split()
    return words[-1].lower() if words[:1] == ["GREEK"] and len(words) == 4 else character


def identifiers(names: Iterable[str]) -> tuple[str, ...]:
    """An identifier for each name; equal ones get numbers, except the first."""
    result: list[str] = []
    for name in names:
        plain = candidate = identifier(name)
        number = 2
        while candidate in result:
            candidate, number = f"{plain}_{number}", number + 1
        result.append(candidate)
    return tuple(result)


def member(name: str) -> str:
    """The identifier as a member of a structure, which cannot be a keyword or begin with a digit."""
    return f"{name}_" if _KEYWORD.fullmatch(name) else f"_{name}" if name[:1].isdigit() else name
