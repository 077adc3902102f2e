"""Python files that describe a system: ``model(**options)`` and, for the initial state, ``INITIAL``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from sympy.physics.vector import dynamicsymbols

from kanegen.errors import KanegenError, ModelError, brief
from kanegen.model import Model
from kanegen.model.expressions import symbol_name, symbol_names


@dataclass(frozen=True)
class ModelFile:
    """A loaded file: ``function`` returned ``model`` for ``options``; ``initial`` is the initial state or None.

    ``initial`` maps ``t`` (s), ``q``, ``u``, ``r`` and ``s`` to numbers. It is the result of ``initial(**options)`` of
    the file, or else its ``INITIAL``, or else what ``initial`` of the model contains, with None for incomplete arrays.
    """

    path: Path
    function: str
    options: Mapping[str, Any]
    model: Model
    initial: Mapping[str, Any] | None

    def start(self) -> Mapping[str, Any]:
        """The initial state; `ModelError` if the file gives none, or an incomplete one."""
        if self.initial is None:
            raise ModelError(
                f"{self.path} gives no start of the motion: add "
                'INITIAL = {"t": 0.0, "q": (...), "u": (...), "r": None}, or initial= to its kanegen.Model'
            )
        model = self.model
        if model.states and self.initial.get("s") is None:
            raise ModelError(
                f"INITIAL of {self.path} gives no values of the states {symbol_names(model.states)}: add "
                '"s": (...) to it'
            )
        wanted = {"t": "the time", "q": symbol_names(model.coordinates), "u": symbol_names(model.speeds)}
        missing = [f"{key} ({names})" for key, names in wanted.items() if self.initial.get(key) is None]
        if missing:
            raise ModelError(f"the start of {self.path} is not complete: add values of {', '.join(missing)}")
        return self.initial

    def named_start(self) -> dict[str, float]:
        """The time, coordinates, speeds and states that the file gives, by name.

        Raises `ModelError` for arrays of the wrong length, and for values that are no numbers.
        """
        given, model = self.initial or {}, self.model
        values = {symbol_name(key): value for key, value in model.initial.items()}
        if given.get("t") is not None:
            values[symbol_name(dynamicsymbols._t)] = _number(given["t"], "t", self.path)
        for key, symbols in (("q", model.coordinates), ("u", model.speeds), ("s", tuple(model.states))):
            if given.get(key) is not None:
                values |= _named(given[key], key, symbols, self.path)
        return values

    def named_values(self) -> dict[str, Any]:
        """The start by name, and the inputs that the file gives; errors as for :meth:`named_start`."""
        return {**self.named_inputs(), **self.named_start()}

    def named_inputs(self) -> dict[str, Any]:
        """The inputs that the file gives by name: numbers or functions of time, as for ``integrate``.

        Raises `ModelError` for a sequence of the wrong length.
        """
        given, names = (self.initial or {}).get("r"), [item.name for item in self.model.inputs]
        if given is None:
            return {}
        if isinstance(given, Mapping):
            return {symbol_name(key): value for key, value in given.items()}
        values = list(given) if np.iterable(given) else [given]
        if len(values) != len(names):
            raise ModelError(
                f'"r" of INITIAL in {self.path} has {len(values)} values; expected {len(names)}: {", ".join(names)}, '
                "or a mapping from names to numbers, tables (times, values) and functions of time"
            )
        return dict(zip(names, values, strict=True))


def read_model_file(path: Path, function: str = "model", options: Mapping[str, Any] | None = None) -> ModelFile:
    """Run the Python file at ``path`` (not as a script) and call ``function(**options)`` of it.

    Raises `ModelError` if the file or function does not exist, if the function does not accept these options, or if
    it returns no `Model`. Other errors in the file's own code become a `ModelError` with the lines of the file.
    """
    options = dict(options or {})
    with _code_of(path):
        module = python_module(path)
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
    with _code_of(path):
        model = make(**options)
    if not isinstance(model, Model):
        raise ModelError(f"{function}() of {path} returned {type(model).__name__}; expected a kanegen.Model")
    initial = getattr(module, "initial", None)
    with _code_of(path):
        start = initial(**options) if callable(initial) else getattr(module, "INITIAL", None)
    if start is not None and not isinstance(start, Mapping):
        raise ModelError(f"INITIAL of {path} is {brief(start)}; expected a mapping with t, q, u, and r and s if needed")
    return ModelFile(path, function, options, model, _start_of(model) if start is None else start)


def _start_of(model: Model) -> Mapping[str, Any] | None:
    """``initial`` of the model as arrays, with None for incomplete ones; None for a model without a start."""
    values = model.initial
    groups = {"q": model.coordinates, "u": model.speeds, "s": tuple(model.states)}
    arrays = {key: tuple(map(values.get, symbols)) for key, symbols in groups.items()}
    complete = {key: None if None in array else array for key, array in arrays.items()}
    return {"t": values.get(dynamicsymbols._t), **complete, "r": None} if values else None


def _named(given: Any, key: str, symbols: Sequence[Any], path: Path) -> dict[str, float]:
    """The values of one array of INITIAL by name."""
    names = [symbol_name(symbol) for symbol in symbols]
    if isinstance(given, Mapping):
        pairs = [(item if isinstance(item, str) else symbol_name(item), value) for item, value in given.items()]
        unknown = [name for name, _ in pairs if name not in names]
        if unknown:
            raise ModelError(f"INITIAL[{key!r}] of {path} names {', '.join(unknown)}; expected {', '.join(names)}")
    elif not isinstance(given, Sequence | np.ndarray) or len(given) != len(names):
        raise ModelError(f"INITIAL[{key!r}] of {path} is {given!r}; expected {len(names)} values: {', '.join(names)}")
    else:
        pairs = list(zip(names, given, strict=True))
    return {name: _number(value, name, path) for name, value in pairs}


def _number(value: Any, name: str, path: Path) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"INITIAL of {path} gives {name} the value {value!r}; expected a number") from error


def label(name: str, options: Mapping[str, Any]) -> str:
    """The name of a file with the values of its options."""
    return f"{name}({', '.join(map(str, options.values()))})" if options else name


@contextmanager
def _code_of(path: Path) -> Iterator[None]:
    """Turn errors of the code of a file, except those of kanegen, into a `ModelError` with the user's lines only."""
    try:
        yield
    except KanegenError:
        raise
    except SystemExit as error:
        raise ModelError(f"{path} ends the program (SystemExit: {error}); expected a file that can be read") from error
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_user(frame.filename)]
        lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
        raise ModelError(f"the code of {path} fails:\n{''.join(lines).rstrip()}") from error


_NOT_OF_USER: Final = (
    str(Path(__file__).parent),
    *(sysconfig.get_paths()[key] for key in ("stdlib", "purelib", "platlib")),
)


def _is_of_user(file: str) -> bool:
    """Whether a file of a traceback is neither of kanegen, nor of an installed package or Python itself."""
    return not file.startswith("<") and not any(Path(file).is_relative_to(folder) for folder in _NOT_OF_USER)


def python_module(path: Path) -> ModuleType:
    """The Python file at ``path``, run as a module. Raises `ModelError` if it is none, and errors of its own code."""
    if not path.is_file():
        raise ModelError(f"there is no file {path}; expected a Python file that defines model(**options)")
    spec = importlib.util.spec_from_file_location(f"kanegen_model_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path} is no Python file; expected a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)  # a script finds the modules beside it
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module
