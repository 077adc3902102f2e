"""From generated sources to a loaded extension module."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import shutil
import sys
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from kanegen.backends.cython.cache import Cache, open_cache
from kanegen.backends.cython.job import Job, job_for
from kanegen.backends.cython.processes import workers
from kanegen.backends.cython.toolchain import CompilerOptions, compile_object, link_command, make
from kanegen.backends.cython.wrapper import MODULE, MODULE_FILE, wrapper_file
from kanegen.backends.protocol import BatchFunction, Evaluator, Generated, Request
from kanegen.codegen.description import DESCRIPTION_FILE, Description
from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.sources import (
    Sources,
    files_digest,
    runtime_headers,
    wrapper_digest,
    write_files,
)
from kanegen.errors import BuildError, SolveError
from kanegen.progress import activity


@dataclass(frozen=True)
class Extension:
    """A compiled model: the loaded ``module``, its ``digest`` (over sources, compiler, flags, interpreter and
    processor), the ``path`` of its kernel's library in the cache, the ``sources`` and ``options`` it was built with.

    A pickle holds sources and options; unpickling takes the compiled code from the cache or builds it again.
    """

    module: Evaluator
    digest: str
    path: Path
    sources: Sources
    options: CompilerOptions | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return build, (self.sources, self.options)

    @property
    def description(self) -> Description:
        """The description of the model. Raises `BuildError` for sources without one."""
        return Description.from_sources(self.sources)

    def batch(self, name: str) -> BatchFunction:
        """The batch evaluation of a function, compiled on first use. Raises `BuildError`."""
        from kanegen.backends.cython.batch import batch_function

        return batch_function(self.path, self.sources, self.module, self.options, name)


def c_sources(generated: Generated, digest: str) -> Sources:
    """The C sources of a model, with its description for the solver."""
    sources = emit_sources(generated.program, digest=digest, options_text=generated.options)
    return replace(sources, files={**sources.files, DESCRIPTION_FILE: generated.description.to_json()})


def build_model(request: Request, options: CompilerOptions | None = None) -> Extension:
    """Compile and load a model; earlier sources and compiled code come from the cache. Raises `BuildError`."""
    cache = open_cache()
    sources = cache.load_sources(request.digest)
    if sources is not None:
        return build(sources, options, cache)
    with workers(1) as submit:
        # Where the Python module must be compiled, other processes do it while the model is derived.
        wrapper = submit(wrapper_file, job_for(options or CompilerOptions(), cache), runtime_headers())
        sources = c_sources(request.generated, request.digest)
        cache.store_sources(sources)
        return build(sources, options, cache, wrapper)


def build(
    sources: Sources,
    options: CompilerOptions | None = None,
    cache: Cache | None = None,
    wrapper: Future[Path] | None = None,
) -> Extension:
    """Compile ``sources`` unless the cache holds the result, and load the extension module.

    ``wrapper``: the result of `wrapper_file` in another thread. Raises `BuildError`: no compiler, a failing compiler
    (with its command, full stderr and the folder kept), a cache that cannot be used, or a kernel made for another
    version of the C interface.
    """
    job = job_for(options or CompilerOptions(), cache or open_cache())
    key = job.key(files_digest(sources.files), wrapper_digest())
    folder = job.cache.find("extensions", key)
    if folder is None:
        folder = job.cache.publish("extensions", key, sources.name, lambda work: _compile(job, sources, work, wrapper))
    path = folder / _file_name(sources)
    return Extension(cast(Evaluator, load(path, key)), key, path, sources, options)


def load(kernel: Path, digest: str) -> ModuleType:
    """Load a kernel, and the copy of the Python module beside it under a name made from ``digest``, once per process.

    A loaded file belongs to one model, which is why each entry of the cache has a copy. Raises `BuildError`.
    """
    name = f"kanegen_extension_{digest}.{MODULE}"
    if name in sys.modules:
        return sys.modules[name]
    path = kernel.parent / MODULE_FILE
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise BuildError(f"{path} cannot be loaded as an extension module")
    try:
        get_model = ctypes.CDLL(str(kernel)).kg_get_model
        get_model.restype = ctypes.c_size_t
        module = importlib.util.module_from_spec(spec)
        vars(module)["MODEL_ADDRESS"] = get_model()
        loader.exec_module(module)
    except (ImportError, OSError) as error:
        raise BuildError(f"the compiled model {kernel} cannot be loaded: {error}") from error
    # The module does not import kanegen, which emitted projects do not need; here it raises kanegen's error.
    vars(module)["SolveError"] = SolveError
    sys.modules[name] = module
    return module


def _compile(job: Job, sources: Sources, work: Path, wrapper: Future[Path] | None) -> None:
    """Write the sources into ``work``, the library of the kernel, and a copy of the Python module."""
    write_files(sources.files, work)
    kernel, library = work / f"{sources.name}.o", work / _file_name(sources)
    with activity(f"compiling {sources.name!r}"), workers(1) as submit:
        # The Python module, if it is not there, is compiled in other processes at the same time as the kernel.
        pending = wrapper or submit(wrapper_file, job, sources.files)
        flags = (*job.options.common, *job.options.kernel, "-fvisibility=default")
        compile_object(job.toolchain, flags, work / sources.kernel, kernel, [str(work)])
        make(link_command(job.toolchain, job.options, [str(kernel)], str(library)), library)
        shutil.copyfile(pending.result(), work / MODULE_FILE)
    kernel.unlink()
    # The entry keeps the C code of the model, but not the headers of the runtime, a third of its size.
    for name in sources.files:
        if name.endswith(".h") and name != f"{sources.name}.h":
            (work / name).unlink()


def _file_name(sources: Sources) -> str:
    return f"{sources.name}.so"
