"""The table of back ends by name. A back end is a module with a function ``build_model`` and a line of the table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, cast

from kanegen.backends.protocol import Backend
from kanegen.errors import BuildError, brief

BACKENDS: Final[Mapping[str, str]] = MappingProxyType(
    {"cython": "kanegen.backends.cython.extension", "interpreted": "kanegen.backends.interpreted"}
)
"""Name of a back end, and the module that contains its function ``build_model``."""


def backend(name: str) -> Backend:
    """The back end of this name, imported on first use. Raises `BuildError` for other names."""
    if not isinstance(name, str) or name not in BACKENDS:
        raise BuildError(f"backend is {brief(name)}; expected one of {', '.join(BACKENDS)}")
    return cast(Backend, import_module(BACKENDS[name]).build_model)
