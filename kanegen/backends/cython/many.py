"""Compiled integration of many motions on vector lanes: a library for each right-hand side, method and reduction."""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython.batch import lane_library, load_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.protocol import Evaluator, ManyPlan
from kanegen.codegen.lanes import many_sources
from kanegen.codegen.sources import Sources
from kanegen.codegen.structs import ctypes_struct

_SHORTEST: Final = 0.005
_LONGEST: Final = 0.02
"""Seconds of a call of compiled code; between calls, Ctrl-C is noticed."""


def _structs(files: Mapping[str, str]) -> tuple[type[Any], type[Any]]:
    """``kg_many`` and ``kg_stepper_options``, as the compiled headers declare them."""
    options = ctypes_struct(files["kg_options.h"], "kg_stepper_options")
    return ctypes_struct(files["kg_group.h"], "kg_many", kg_stepper_options=options), options


class LaneRun:
    """One ensemble that is integrated on lanes, by any number of threads."""

    def __init__(self, library: Any, structs: tuple[type[Any], type[Any]], plan: ManyPlan, **addresses: Any) -> None:
        self._library = library
        self._plan = plan  # keeps the arrays
        self._made = {
            "arguments": _columns(plan.arguments),
            "varied": array("i", plan.varied),
            "needed": array("i", plan.needed),
        }
        many, options = structs
        given = plan._asdict() | self._made
        values = {name: _value(given[name]) for name, _ in many._fields_ if name in given} | addresses
        # 0 stands for None in C; the method is that of the library.
        stepping = {name: _value(value) or 0 for name, value in plan.stepping.items() if name != "method"}
        self._many = many(
            **values,
            count=len(plan.status),
            t_start=plan.span[0],
            t_end=plan.span[1],
            options=options(**stepping),
            n_varied=len(plan.varied),
            n_needed=len(plan.needed),
            n_eval=len(plan.t_eval),
        )

    def work(self) -> Iterator[None]:
        """Integrate motions in the present thread, without the interpreter lock, until none is left."""
        reference = ctypes.byref(self._many)
        memory: Array = np.empty(self._library.kg_many_memory(reference))
        place, trials = memory.ctypes.data, 8
        self._library.kg_many_begin(reference, place)
        start = time.perf_counter()
        while self._library.kg_many_advance(place, trials):
            elapsed = time.perf_counter() - start
            if elapsed < _SHORTEST:
                trials *= 2
            elif elapsed > _LONGEST:
                trials = max(1, trials // 2)
            yield
            start = time.perf_counter()


def _columns(arrays: Iterable[Array]) -> array[int]:
    """Address and step of each column of arrays (n,), the same in all rows, or (N, n): ``kg_column`` of kg_rows.h."""
    columns = []
    for values in arrays:
        step = values.strides[0] // values.itemsize if values.ndim == 2 else 0
        columns += [(values.ctypes.data + values.strides[-1] * k, step) for k in range(values.shape[-1])]
    return array("q", chain.from_iterable(columns))


def _value(value: Any) -> Any:
    """The address of an array, or the value itself."""
    if isinstance(value, array):
        return value.buffer_info()[0]
    return value.ctypes.data if isinstance(value, np.ndarray) else value


class LaneIntegrator:
    """The compiled code for a right-hand side and a method (:class:`kanegen.backends.protocol.ManyFunction`)."""

    def __init__(self, path: Path, files: Mapping[str, str], model: int, function: str) -> None:
        self._library, self._structs = load_library(path), _structs(files)
        self._model, self._function = model, function
        many = ctypes.POINTER(self._structs[0])
        for name, arguments, result in (
            ("kg_many_memory", (many,), ctypes.c_size_t),
            ("kg_many_begin", (many, ctypes.c_void_p), None),
            ("kg_many_advance", (ctypes.c_void_p, ctypes.c_int), ctypes.c_int),
            ("kg_many_function", (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_void_p),
        ):
            getattr(self._library, name).argtypes = arguments
            getattr(self._library, name).restype = result
        self.lanes: int = self._library.kg_many_lanes()

    def run(self, plan: ManyPlan) -> LaneRun:
        """An ensemble, of which each thread does a share in ``work()``."""
        names = {"rhs": self._function, "residuals": plan.residuals, "quantity": plan.quantity}
        find = self._library.kg_many_function
        addresses = {key: find(self._model, name.encode()) if name else None for key, name in names.items()}
        return LaneRun(self._library, self._structs, plan, model=self._model, **addresses)


def lane_integrator(
    extension: Path,
    sources: Sources,
    module: Evaluator,
    options: CompilerOptions | None,
    names: tuple[str, str, str],
) -> LaneIntegrator | None:
    """The integration of many motions of a loaded extension, compiled unless the cache holds it.

    ``extension``: its path. ``names``: the right-hand side, the method, and the function that is reduced, or nothing.
    None if the right-hand side has no form on lanes. Raises `BuildError`.
    """
    key = extension, options or CompilerOptions(), names
    if key not in _loaded:
        function, method, quantity = names
        files = many_sources(sources, function, method, quantity)
        integrator = None
        if files is not None:
            path = lane_library(key[1], files, f"{sources.name} (many motions, {method})")
            integrator = LaneIntegrator(path, files, vars(module)["MODEL_ADDRESS"], function)
        _loaded[key] = integrator
    return _loaded[key]


_loaded: dict[tuple[Path, CompilerOptions, tuple[str, str, str]], LaneIntegrator | None] = {}
"""What this process loaded, by the path of the extension, options and names."""
