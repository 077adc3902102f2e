"""One header from the files of a project, after the manner of header-only libraries in C."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from kanegen.codegen.sources import include_closure, runtime_headers

_INCLUDE = re.compile(r'^ *# *include "([^"]+)".*\n', re.MULTILINE)


def amalgamated(stem: str, code: Mapping[str, str]) -> str:
    """``NAME.h`` with its implementation, which is compiled where ``NAME_IMPLEMENTATION`` is defined."""
    texts = {**include_closure(code, runtime_headers()), **code}
    implementation = _expanded(code[f"{stem}.c"], texts, {f"{stem}.h"})
    return (
        f"{code[f'{stem}.h']}\n"
        f"/* The implementation: define {stem}_IMPLEMENTATION before this file is included in one C file. */\n"
        f"#ifdef {stem}_IMPLEMENTATION\n#undef {stem}_IMPLEMENTATION\n\n{implementation}\n#endif\n"
    )


def _expanded(text: str, texts: Mapping[str, str], done: set[str]) -> str:
    """A text with the included files of the project in place of their first inclusion."""

    def included(match: re.Match[str]) -> str:
        name = PurePosixPath(match[1]).name
        if name in done:
            return ""
        done.add(name)
        return _expanded(texts[name], texts, done)

    return _INCLUDE.sub(included, text)
