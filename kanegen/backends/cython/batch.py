"""Compiled batch evaluation of one function of a model: a second library, which is compiled when it is first needed."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.job import job_for
from kanegen.backends.cython.toolchain import CompilerOptions, compile_object, cpu_identity, link_command, make
from kanegen.backends.protocol import BatchPlan, Evaluator
from kanegen.codegen.lanes import BATCH_FILE, batch_sources
from kanegen.codegen.sources import Sources, files_digest, write_files
from kanegen.errors import BuildError
from kanegen.progress import activity

_OBJECT, _LIBRARY = "batch.o", "batch.so"


class _Batch(ctypes.Structure):
    """``kg_batch`` of kg_batch.h."""

    _fields_ = (
        ("model", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("p", ctypes.c_void_p),
        ("varied", ctypes.c_void_p),
        ("needed", ctypes.c_void_p),
        ("failed", ctypes.c_void_p),
        ("n_out", ctypes.c_int),
        ("n_varied", ctypes.c_int),
        ("n_needed", ctypes.c_int),
    )


class CompiledBatch:
    """A compiled function of a model at many states (:class:`kanegen.backends.protocol.BatchFunction`)."""

    def __init__(self, path: Path, model: int, name: str) -> None:
        library = load_library(path)
        self._run, self._memory, self._model = library.kg_batch_run, library.kg_batch_memory, model
        self._run.argtypes = (ctypes.POINTER(_Batch), ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)
        self._run.restype = None
        self._memory.argtypes, self._memory.restype = (ctypes.POINTER(_Batch),), ctypes.c_size_t
        find = library.kg_batch_function
        find.argtypes, find.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_void_p
        self._function = find(model, name.encode())

    def run(self, plan: BatchPlan, pieces: Iterable[tuple[int, int]]) -> None:
        """Evaluate the rows of these pieces (first, end), without the interpreter lock."""
        varied, needed = array("i", plan.varied), array("i", plan.needed)
        batch = _Batch(
            self._model,
            self._function,
            plan.arguments.buffer_info()[0],
            plan.out.buffer_info()[0],
            plan.p.ctypes.data,
            varied.buffer_info()[0],
            needed.buffer_info()[0],
            plan.failed.ctypes.data,
            len(plan.out) // 2,
            len(varied),
            len(needed),
        )
        reference = ctypes.byref(batch)
        memory: Array = np.empty(self._memory(reference))
        for first, end in pieces:
            self._run(reference, memory.ctypes.data, first, end)


def batch_function(
    extension: Path, sources: Sources, module: Evaluator, options: CompilerOptions | None, name: str
) -> CompiledBatch:
    """The batch evaluation of a function of a loaded extension; compiled unless the cache holds it.

    ``extension``: its path. Raises `BuildError`.
    """
    if (extension, name) not in _loaded:
        library = _library(sources, options or CompilerOptions(), name)
        _loaded[extension, name] = CompiledBatch(library, vars(module)["MODEL_ADDRESS"], name)
    return _loaded[extension, name]


_loaded: dict[tuple[Path, str], CompiledBatch] = {}
"""The libraries that this process loaded, by the path of the extension and the name of the function."""


def _library(sources: Sources, options: CompilerOptions, name: str) -> Path:
    title = f"{sources.name} ({name.removeprefix('output:')} in batches)"
    return lane_library(options, batch_sources(sources, name), BATCH_FILE, title)


def lane_library(options: CompilerOptions, files: dict[str, str], main: str, title: str) -> Path:
    """The shared library of code on vector lanes, compiled unless the cache holds it; ``main`` is the C file.

    Raises `BuildError`.
    """
    job = job_for(options, open_cache())
    key = job.key("batch", cpu_identity(), files_digest(files))

    def fill(work: Path) -> None:
        write_files(files, work)
        with activity(f"compiling {title}"):
            flags = (*options.common, *options.lanes)
            compile_object(job.toolchain, flags, work / main, work / _OBJECT, [str(work)])
            make(link_command(job.toolchain, options, [str(work / _OBJECT)], str(work / _LIBRARY)), work / _LIBRARY)
        for file in [_OBJECT, *(file for file in files if file != main)]:
            (work / file).unlink()

    return (job.cache.find("extensions", key) or job.cache.publish("extensions", key, title, fill)) / _LIBRARY


def load_library(path: Path) -> ctypes.CDLL:
    """A shared library. Raises `BuildError`."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"the library {path} cannot be loaded: {error}") from error
