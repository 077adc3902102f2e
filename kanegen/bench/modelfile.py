"""Python files that describe a system: ``model(**options)`` and, for the initial state, ``INITIAL``."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kanegen.errors import ModelError, shown
from kanegen.model import Model
from kanegen.model.expressions import symbol_names


@dataclass(frozen=True)
class ModelFile:
    """A loaded file: ``function`` returned ``model`` for ``options``; ``initial`` is the initial state or None.

    ``initial`` maps ``t`` (s), ``q``, ``u``, ``r`` and ``s`` to numbers. It is the result of ``initial(**options)`` of
    the file, or else its ``INITIAL``.
    """

    path: Path
    function: str
    options: Mapping[str, Any]
    model: Model
    initial: Mapping[str, Any] | None

    def start(self) -> Mapping[str, Any]:
        """The initial state; `ModelError` if the file gives none."""
        if self.initial is None:
            raise ModelError(
                f"{self.path} gives no start of the motion: add "
                'INITIAL = {"t": 0.0, "q": (...), "u": (...), "r": None}'
            )
        missing = [key for key in ("t", "q", "u") if key not in self.initial]
        if missing:
            raise ModelError(
                f"INITIAL of {self.path} has no {', '.join(map(repr, missing))}: expected "
                '{"t": 0.0, "q": (...), "u": (...), "r": None}'
            )
        if self.model.states and self.initial.get("s") is None:
            raise ModelError(
                f"INITIAL of {self.path} gives no values of the states {symbol_names(self.model.states)}: add "
                '"s": (...) to it'
            )
        return self.initial


def read_model_file(path: Path, function: str = "model", options: Mapping[str, Any] | None = None) -> ModelFile:
    """Run the Python file at ``path`` (not as a script) and call ``function(**options)`` of it.

    Raises `ModelError` if the file or function does not exist, if the function does not accept these options, or if
    it returns no `Model`. Errors in the file's own code are not caught.
    """
    options = dict(options or {})
    module = _module(path)
    make = getattr(module, function, None)
    if not callable(make):
        defined = sorted(
            name for name, value in vars(module).items() if callable(value) and value.__module__ == module.__name__
        )
        raise ModelError(
            f"{path} defines no function {function!r}; expected model(**options) that returns a "
            f"kanegen.Model. It defines: {', '.join(defined) or 'no function'}"
        )
    signature = inspect.signature(make)
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ModelError(f"{function}{signature} of {path} cannot be called with {options}: {error}") from error
    model = make(**options)
    if not isinstance(model, Model):
        raise ModelError(f"{function}() of {path} returned {type(model).__name__}; expected a kanegen.Model")
    initial = getattr(module, "initial", None)
    start = initial(**options) if callable(initial) else getattr(module, "INITIAL", None)
    if start is not None and not isinstance(start, Mapping):
        raise ModelError(f"INITIAL of {path} is {shown(start)}; expected a mapping with t, q, u, and r and s if needed")
    return ModelFile(path, function, options, model, start)


def label(name: str, options: Mapping[str, Any]) -> str:
    """The name of a file with the values of its options."""
    return f"{name}({', '.join(map(str, options.values()))})" if options else name


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise ModelError(f"there is no file {path}; expected a Python file that defines model(**options)")
    spec = importlib.util.spec_from_file_location(f"kanegen_model_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path} is no Python file; expected a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
