"""Compiled integration of many motions on vector lanes: a library for each right-hand side, method and reduction."""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.backends.cython.batch import lane_library, load_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.protocol import Evaluator, ManyPlan
from kanegen.codegen.lanes import MANY_FILE, many_sources
from kanegen.codegen.sources import Sources
from kanegen.run_options import Kind, StepOptions, table

_SHORTEST: Final = 0.005
_LONGEST: Final = 0.02
"""Seconds of a call of compiled code; between calls, Ctrl-C is noticed."""

_POINTERS: Final = (
    *("model", "rhs", "residuals", "quantity", "arguments", "p", "varied", "needed", "t_eval"),
    *("y", "values", "t_ends", "status", "cause", "steps", "evaluations", "completed"),
)


_FIELDS: Final[dict[Kind, Any]] = {
    Kind.METHOD: ctypes.c_int,
    Kind.SECONDS: ctypes.c_double,
    Kind.COUNT: ctypes.c_longlong,
    Kind.TOLERANCE: ctypes.c_void_p,
}


class _StepperOptions(ctypes.Structure):
    """``kg_stepper_options`` of kg_options.h."""

    _fields_ = tuple((name, _FIELDS[option.kind]) for name, option in table(StepOptions).items())


def _stepper_options(given: StepOptions) -> _StepperOptions:
    """The options in C, where 0 stands for None; the method is that of the library."""
    values = {name: _address(value) if isinstance(value, np.ndarray) else value or 0 for name, value in given.items()}
    return _StepperOptions(**{**values, "method": 0})


class _Many(ctypes.Structure):
    """``kg_many`` of kg_group.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_ssize_t) for name in ("next", "count")),
        *((name, ctypes.c_double) for name in ("t_start", "t_end", "start_tolerance")),
        ("options", _StepperOptions),
        *((name, ctypes.c_int) for name in ("n_varied", "n_needed", "n_eval", "at_end")),
        *((name, ctypes.c_int) for name in ("keep", "component")),
    )


class LaneRun:
    """One ensemble that is integrated on lanes, by any number of threads."""

    def __init__(self, library: Any, plan: ManyPlan, addresses: dict[str, int | None]) -> None:
        self._library = library
        self._plan = plan  # keeps the arrays
        self._made = {
            "arguments": _columns(plan.arguments),
            "varied": array("i", plan.varied),
            "needed": array("i", plan.needed),
        }
        pointers = {name: _address(values) for name, values in self._made.items()} | addresses
        pointers |= {name: _address(getattr(plan, name)) for name in _POINTERS if name not in pointers}
        self._many = _Many(
            **pointers,
            next=0,
            count=len(plan.status),
            t_start=plan.span[0],
            t_end=plan.span[1],
            start_tolerance=plan.start_tolerance,
            options=_stepper_options(plan.stepping),
            n_varied=len(plan.varied),
            n_needed=len(plan.needed),
            n_eval=len(plan.t_eval),
            at_end=plan.at_end,
            keep=plan.keep,
            component=plan.component,
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


def _address(values: Any) -> int | None:
    if values is None:
        return None
    if isinstance(values, array):
        return values.buffer_info()[0]
    found: NDArray[Any] = values
    return found.ctypes.data


class LaneIntegrator:
    """The compiled code for a right-hand side and a method (:class:`kanegen.backends.protocol.ManyFunction`)."""

    def __init__(self, path: Path, model: int, function: str) -> None:
        self._library = load_library(path)
        self._model, self._function = model, function
        many = ctypes.POINTER(_Many)
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
        return LaneRun(self._library, plan, {"model": self._model, **addresses})


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
            path = lane_library(key[1], files, MANY_FILE, f"{sources.name} (many motions, {method})")
            integrator = LaneIntegrator(path, vars(module)["MODEL_ADDRESS"], function)
        _loaded[key] = integrator
    return _loaded[key]


_loaded: dict[tuple[Path, CompilerOptions, tuple[str, str, str]], LaneIntegrator | None] = {}
"""What this process loaded, by the path of the extension, options and names."""
