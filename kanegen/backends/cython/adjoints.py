"""Compiled gradients of motions: a library for each method, and functions of a program of variations."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython.batch import lane_library, load_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.protocol import AdjointPlan, AdjointResult, Evaluator
from kanegen.codegen.adjoints import ADJOINT_HEADER, adjoint_sources
from kanegen.codegen.structs import ctypes_struct


class CompiledAdjoint:
    """The discrete adjoint of the steps of a method (:class:`kanegen.backends.protocol.AdjointFunction`)."""

    def __init__(self, options: CompilerOptions | None, method: str) -> None:
        files = adjoint_sources(method)
        path: Path = lane_library(options or CompilerOptions(), files, f"gradients of motions ({method})", fused=False)
        self._library, self._struct = load_library(path), ctypes_struct(files[ADJOINT_HEADER], "kg_adjoints")
        pointer = ctypes.POINTER(self._struct)
        for name, arguments, result in (
            ("kg_adjoint_memory", [pointer], ctypes.c_size_t),
            ("kg_adjoint_run", [pointer, ctypes.c_void_p], ctypes.c_int),
            ("kg_adjoint_function", [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_void_p),
        ):
            getattr(self._library, name).argtypes = arguments
            getattr(self._library, name).restype = result

    def run(self, module: Evaluator, names: tuple[str, str], plan: AdjointPlan) -> AdjointResult:
        """Pull weights back with the functions of these names, of rates and of their gradient."""
        model = vars(module)["MODEL_ADDRESS"]
        rates, adjoint = (self._library.kg_adjoint_function(model, name.encode()) for name in names)
        values = {name: _value(value) for name, value in plan._asdict().items()}
        run = self._struct(
            model=model,
            rates=rates,
            adjoint=adjoint,
            n_steps=len(plan.t),
            n=len(plan.weights),
            n_loads=plan.loads.shape[1],
            n_p=len(plan.of_p),
            **values,
        )
        reference = ctypes.byref(run)
        memory: Array = np.empty(self._library.kg_adjoint_memory(reference))
        status = self._library.kg_adjoint_run(reference, memory.ctypes.data)
        return AdjointResult(status, run.failed, run.cost)


def _value(value: Any) -> Any:
    return value.ctypes.data if isinstance(value, np.ndarray) else value


def adjoint_function(options: CompilerOptions | None, method: str) -> CompiledAdjoint:
    """The discrete adjoint of a method, compiled unless the cache holds it. Raises `BuildError`."""
    key = options, method
    if key not in _loaded:
        _loaded[key] = CompiledAdjoint(*key)
    return _loaded[key]


_loaded: dict[tuple[CompilerOptions | None, str], CompiledAdjoint] = {}
"""What this process loaded, by options and method."""
