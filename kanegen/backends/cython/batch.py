"""Compiled batch evaluation of one function of a model: a second library, which is compiled when it is first needed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.job import job_for
from kanegen.backends.cython.toolchain import CompilerOptions, compile_object, cpu_identity, link
from kanegen.backends.protocol import BatchPlan, Evaluator
from kanegen.codegen.lanes import batch_sources
from kanegen.codegen.sources import Sources, files_digest
from kanegen.errors import BuildError
from kanegen.progress import activity
from kanegen.writing import write_files

_LIBRARY = "batch.so"
_FUSES, _UNFUSED = "-DKG_FUSED", "-ffp-contract=off"


class CompiledBatch:
    """A compiled function of a model at many states (:class:`kanegen.backends.protocol.BatchFunction`)."""

    def __init__(self, path: Path, module: Evaluator, name: str) -> None:
        self._library = load_library(path)  # the addresses are valid as long as it exists
        entries = (self._library.kg_batch_memory, self._library.kg_batch_run)
        self._batch = module.Batch(name, *(ctypes.cast(entry, ctypes.c_void_p).value for entry in entries))

    def run(self, plan: BatchPlan, pieces: Iterable[tuple[int, int]]) -> int:
        """Evaluate the rows of these pieces (first, end), without the interpreter lock; returns how many failed."""
        failures: int = self._batch.run(*plan, pieces)
        return failures

    def run_contiguous(self, *arguments: Any) -> NDArray[np.uint8] | None:
        """Evaluate all rows of contiguous arrays that share no memory; see `BatchFunction`."""
        failed: NDArray[np.uint8] | None = self._batch.run_contiguous(*arguments)
        return failed


def batch_function(
    extension: Path, sources: Sources, module: Evaluator, options: CompilerOptions | None, name: str
) -> CompiledBatch:
    """The batch evaluation of a function of a loaded extension; compiled unless the cache holds it.

    ``extension``: its path. Raises `BuildError`.
    """
    key = extension, options or CompilerOptions(), name
    if key not in _loaded:
        _loaded[key] = CompiledBatch(_library(sources, key[1], name), module, name)
    return _loaded[key]


_loaded: dict[tuple[Path, CompilerOptions, str], CompiledBatch] = {}
"""What this process loaded, by the path of the extension, options and name of the function."""


def _library(sources: Sources, options: CompilerOptions, name: str) -> Path:
    title = f"{sources.name} ({name.removeprefix('output:')} in batches)"
    return lane_library(options, batch_sources(sources, name), title)


def lane_library(options: CompilerOptions, files: dict[str, str], title: str, fused: bool = True) -> Path:
    """The shared library of code on vector lanes, compiled unless the cache holds it. Raises `BuildError`.

    ``fused``: whether products and sums may be one operation; kernels never fuse them.
    """
    own = options.lanes if fused else (*(flag for flag in options.lanes if flag != _FUSES), _UNFUSED)
    return shared_library(options, files, title, own, () if fused else (_UNFUSED,))


def shared_library(
    options: CompilerOptions, files: Mapping[str, str], title: str, own: Sequence[str], *parts: Sequence[str]
) -> Path:
    """The shared library of C files, compiled with the flags ``own`` unless the cache holds it. Raises `BuildError`.

    ``parts``: what its key depends on besides options and files.
    """
    job = job_for(options, open_cache())
    key = job.key("batch", cpu_identity(), files_digest(files), *(x for part in parts for x in part))

    def fill(work: Path) -> None:
        write_files(files, work)
        with activity(f"compiling {title}"):
            flags = (*options.common, *own)
            objects = [work / name.replace(".c", ".o") for name in files if name.endswith(".c")]
            for file in objects:
                compile_object(job.toolchain, flags, file.with_suffix(".c"), file, [str(work)])
            link(job.toolchain, options, list(map(str, objects)), work / _LIBRARY)
        for file in [*objects, *(work / name for name in files if name.endswith(".h"))]:
            file.unlink()

    return (job.cache.find("extensions", key) or job.cache.publish("extensions", key, title, fill)) / _LIBRARY


def load_library(path: Path) -> ctypes.CDLL:
    """A shared library. Raises `BuildError`."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"the library {path} cannot be loaded: {error}") from error
