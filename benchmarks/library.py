"""C files of this folder's ``templates``, and the flags with which they and the code of peers are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kanegen.codegen.sources import environment

FAST: Final = ("-std=c99", "-fPIC", "-O3", "-march=native")


def render(template: str, **context: object) -> str:
    """The text of a template, rendered as those of kanegen are."""
    source = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
    text: str = environment().from_string(source).render(**context)
    return text
