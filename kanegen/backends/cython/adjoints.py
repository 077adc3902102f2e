"""Compiled gradients of motions: a library for each function of gradients and each method."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython.batch import lane_library, load_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.cython.variations import struct_value
from kanegen.backends.protocol import AdjointPlan, AdjointResult, Evaluator
from kanegen.codegen.gradients import ADJOINT_HEADER, adjoint_sources
from kanegen.codegen.sources import Sources
from kanegen.codegen.structs import ctypes_struct
from kanegen.program.catalogue import NUMBERS


class CompiledAdjoint:
    """The discrete adjoint of the steps of a method (:class:`kanegen.backends.protocol.AdjointFunction`)."""

    def __init__(self, path: Path, files: Mapping[str, str], module: Evaluator, names: tuple[str, str]) -> None:
        self._library, self._struct = load_library(path), ctypes_struct(files[ADJOINT_HEADER], "kg_adjoints")
        pointer = ctypes.POINTER(self._struct)
        for function, arguments, result in (
            ("kg_adjoint_memory", [pointer], ctypes.c_size_t),
            ("kg_adjoint_run", [pointer, ctypes.c_void_p], ctypes.c_int),
            ("kg_adjoint_function", [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_void_p),
        ):
            getattr(self._library, function).argtypes = arguments
            getattr(self._library, function).restype = result
        self._model, (rates, adjoint) = vars(module)["MODEL_ADDRESS"], names
        called = {"rates": rates, "adjoint": adjoint, "numbers": f"{adjoint}{NUMBERS}"}
        find = self._library.kg_adjoint_function
        self._functions = {field: find(self._model, name.encode()) for field, name in called.items()}

    def run(self, plan: AdjointPlan) -> AdjointResult:
        """Pull weights back."""
        values = {name: struct_value(value) for name, value in plan._asdict().items()}
        run = self._struct(model=self._model, n_steps=len(plan.t), **self._functions, **values)
        reference = ctypes.byref(run)
        memory: Array = np.empty(self._library.kg_adjoint_memory(reference))
        status = self._library.kg_adjoint_run(reference, memory.ctypes.data)
        return AdjointResult(status, run.failed, run.cost)


def adjoint_function(
    extension: Path,
    sources: Sources,
    module: Evaluator,
    options: CompilerOptions | None,
    names: tuple[str, str],
    method: str,
) -> CompiledAdjoint:
    """The gradients of motions of a loaded program of variations, compiled unless the cache holds them.

    ``extension``: its path. ``names``: the functions of rates and of their gradient. Raises `BuildError`.
    """
    key = extension, options, names, method
    if key not in _loaded:
        files = adjoint_sources(sources, names[1], method)
        title = f"{sources.name} (gradients, {method})"
        path = lane_library(options or CompilerOptions(), files, title, fused=False)
        _loaded[key] = CompiledAdjoint(path, files, module, names)
    return _loaded[key]


_loaded: dict[tuple[Path, CompilerOptions | None, tuple[str, str], str], CompiledAdjoint] = {}
"""What this process loaded, by the path of the extension, options, names and method."""
