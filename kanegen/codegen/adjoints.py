"""The C code that pulls gradients back along the steps of a method; it does not depend on the model."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from kanegen._version import __version__
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.sources import include_closure, render, runtime_headers
from kanegen.resources import template_folder

ADJOINT_FILE: Final = "adjoint.c"
ADJOINT_HEADER: Final = "kg_adjoint.h"
_FOLDER: Final = "sensitivities"


def adjoint_sources(method: str) -> dict[str, str]:
    """The files of the gradients of motions by an explicit method, `ADJOINT_FILE` and headers, by name."""
    main = render(f"{_FOLDER}/{ADJOINT_FILE}.jinja", method=METHODS[method], version=__version__, padded=padded)
    header = (template_folder() / _FOLDER / ADJOINT_HEADER).read_text(encoding="utf-8")
    files = {ADJOINT_FILE: main, ADJOINT_HEADER: header}
    return {**files, **include_closure(files, runtime_headers())}


def padded(row: Sequence[Fraction], length: int) -> list[Fraction]:
    """A row with zeros behind it, or without what is beyond this length."""
    return [*row, *[Fraction(0)] * length][:length]
