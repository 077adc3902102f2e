"""Compiled derivatives of motions along directions: a library for each function of variations and each method."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython.batch import lane_library, load_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.protocol import Evaluator, VariationPlan
from kanegen.codegen.gradients import VARIATIONS_HEADER, variation_sources
from kanegen.codegen.sources import Sources
from kanegen.codegen.structs import ctypes_struct
from kanegen.program.catalogue import NUMBERS


class CompiledVariations:
    """The derivatives of the steps of a method (:class:`kanegen.backends.protocol.VariationFunction`)."""

    def __init__(self, path: Path, files: Mapping[str, str], module: Evaluator, name: str) -> None:
        self._library, self._struct = load_library(path), ctypes_struct(files[VARIATIONS_HEADER], "kg_variations")
        pointer = ctypes.POINTER(self._struct)
        self._library.kg_variations_memory.argtypes = [pointer]
        self._library.kg_variations_memory.restype = ctypes.c_size_t
        self._library.kg_variations_run.argtypes = [pointer, ctypes.c_void_p]
        self._model = vars(module)["MODEL_ADDRESS"]
        find = self._library.kg_variations_function
        find.argtypes, find.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_void_p
        self._functions = {"variation": find(self._model, name.encode())}
        self._functions["numbers"] = find(self._model, f"{name}{NUMBERS}".encode())
        self.lanes: int = self._library.kg_variations_lanes()

    def run(self, plan: VariationPlan) -> tuple[int, int]:
        """Fill the changes of a plan; returns the status and, if it is negative, the step that failed."""
        values = {name: struct_value(value) for name, value in plan._asdict().items()}
        run = self._struct(
            model=self._model,
            **self._functions,
            n_steps=len(plan.t),
            n_directions=plan.changes.shape[2],
            **values,
        )
        reference = ctypes.byref(run)
        memory: Array = np.empty(self._library.kg_variations_memory(reference))
        status: int = self._library.kg_variations_run(reference, memory.ctypes.data)
        return status, run.failed


def struct_value(value: Any) -> Any:
    """A value of a plan as a field of a C struct: the address of an array."""
    return value.ctypes.data if isinstance(value, np.ndarray) else value


def variation_function(
    extension: Path, sources: Sources, module: Evaluator, options: CompilerOptions | None, names: tuple[str, str]
) -> CompiledVariations:
    """The derivatives of motions of a loaded program of variations, compiled unless the cache holds them.

    ``extension``: its path. ``names``: the function and the method. Raises `BuildError`.
    """
    key = extension, options, names
    if key not in _loaded:
        name, method = names
        files = variation_sources(sources, name, method)
        path = lane_library(
            options or CompilerOptions(), files, f"{sources.name} (sensitivities, {method})", fused=True
        )
        _loaded[key] = CompiledVariations(path, files, module, name)
    return _loaded[key]


_loaded: dict[tuple[Path, CompilerOptions | None, tuple[str, str]], CompiledVariations] = {}
"""What this process loaded, by the path of the extension, options and names."""
