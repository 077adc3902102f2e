"""What identifies a sweep, so that the results in a store are continued by the same sweep only."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, Final

import numpy as np

from kanegen.codegen.sources import files_digest, text_digest
from kanegen.solve import Solver
from kanegen.sweeps.designs import Design

Fingerprint = dict[str, str]
"""Digests by what they are of, in words for messages; the chunk size is written as such."""

CHUNK_SIZE: Final = "chunk_size="


def fingerprint(solver: Solver, design: Design, settings: Mapping[str, Any], chunk_size: int) -> Fingerprint:
    """The digests of the parts of a sweep. ``settings``: those of its task, by the names of arguments."""
    columns = [part for name, array in design.items() for part in (name, array.tobytes().hex())]
    return {
        "model": text_digest(_of_model(solver)),
        "parameters and start": text_digest(_of_values(solver)),
        "design": text_digest(columns),
        **{f"{name}=": text_digest(_words(value, ())) for name, value in sorted(settings.items())},
        CHUNK_SIZE: str(chunk_size),
    }


def _of_model(solver: Solver) -> list[str]:
    options = getattr(solver.extension, "options", None)
    return [type(solver.extension).__name__, files_digest(solver.sources.files), repr(options)]


def _of_values(solver: Solver) -> list[str]:
    values = *sorted(solver.parameters.items()), *sorted(solver.initial.items())
    return [*map(repr, values), *_words(solver.stabilization, ())]


def _words(value: Any, outer: tuple[int, ...]) -> Iterator[str]:
    """Texts that are the same in every process for equal values; functions are known by their code.

    ``outer``: the objects that contain this one; an object that contains itself is named, but not described again.
    """
    yield type(value).__qualname__
    if id(value) in outer:
        return
    outer = (*outer, id(value))
    if isinstance(value, str | bytes | int | float | complex | None):
        yield repr(value)
    elif isinstance(value, Solver):
        yield from (*_of_model(value), *_of_values(value))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    else:
        for part in _parts(value):
            yield from _words(part, outer)
        yield "end"


def _parts(value: Any) -> list[Any]:
    """What an object consists of."""
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, value.co_consts]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        return _parts_of_function(value)
    if isinstance(value, set | frozenset):
        return sorted("\x1f".join(_words(part, ())) for part in value)
    if isinstance(value, type | BuiltinFunctionType):
        return [value.__module__, value.__qualname__]
    return _reduced(value)


def _reduced(value: Any) -> list[Any]:
    """The parts from which pickle would make an object; what cannot be pickled is known by its class only."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # any class of the user
        return [type(value).__module__]
    if isinstance(reduced, str):
        return [type(value).__module__, reduced]
    maker, *parts = reduced
    return [maker.__module__, maker.__qualname__, *(list(x) if isinstance(x, Iterator) else x for x in parts)]


def _parts_of_function(function: FunctionType) -> list[Any]:
    try:
        code: Any = inspect.getsource(function)
    except (OSError, TypeError):
        code = function.__code__
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [function.__module__, function.__qualname__, code, function.__defaults__, function.__kwdefaults__, cells]
