"""From generated sources to a loaded extension module."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final, TypeAlias, cast

from kanegen.backends.cython.cache import MANIFEST, open_cache
from kanegen.backends.cython.generator import known_texts
from kanegen.backends.cython.job import Job, job_for
from kanegen.backends.cython.processes import processors, workers
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.cython.wrapper import MODULE, MODULE_FILE, wrapper_file
from kanegen.backends.garbage import without_collections
from kanegen.backends.parts import remember, request_of
from kanegen.backends.protocol import (
    AdjointFunction,
    BatchFunction,
    DeriveMore,
    Evaluator,
    Generated,
    ManyFunction,
    Request,
    VariationFunction,
)
from kanegen.codegen.description import DESCRIPTION_FILE, Description
from kanegen.codegen.sources import (
    Sources,
    files_digest,
    include_closure,
    runtime_headers,
    text_digest,
    wrapper_digest,
)
from kanegen.errors import BuildError, SolveError
from kanegen.progress import activity
from kanegen.writing import write_files

KERNEL_FILE: Final = "kernel.so"
"""The library of the kernel in an entry of the cache."""

_TEXTS = (".c", ".h", Path(DESCRIPTION_FILE).suffix)


Names: TypeAlias = tuple[str, ...]
Recipe: TypeAlias = tuple[str, Sources]
"""The identity and the sources of an extension."""


@dataclass(frozen=True)
class Extension:
    """A compiled model: the loaded ``module``, its ``digest`` (over sources, compiler, flags, interpreter and
    processor), the ``path`` of its kernel's library in the cache, and the ``options`` it was built with.

    ``identity`` determines the sources and the Python module; ``complete``: all sources, or None for a model from the
    cache, where ``files`` are those of the model. A pickle has sources and options; unpickling takes the compiled code
    from the cache or builds it again.

    ``derive_more`` derives functions that the model leaves out; None after unpickling. ``parts``: builds of such
    functions, or after unpickling their identity and sources, by names.
    """

    backend: ClassVar[str] = "cython"
    module: Evaluator
    digest: str
    path: Path
    options: CompilerOptions | None
    identity: str
    files: Mapping[str, str]
    complete: Sources | None = None
    derive_more: DeriveMore | None = field(default=None, compare=False, repr=False)
    parts: dict[Names, Extension | Recipe] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def sources(self) -> Sources:
        """All C sources. Those of a model from the cache are completed with the runtime when they are first read."""
        if self.complete is not None:
            return self.complete
        stem = next(name.removesuffix(".h") for name in self.files if name.endswith(".h"))
        return Sources(stem, self.module.DIGEST, {**runtime_headers(), **self.files})

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {names: part if isinstance(part, tuple) else part._recipe for names, part in self.parts.items()}
        return _restored, (*self._recipe, self.options, parts)

    @property
    def _recipe(self) -> Recipe:
        return self.identity, self.sources

    def more(self, names: tuple[str, ...]) -> Extension:
        """A build of functions that this one leaves out, by their names in the catalogue. Raises `BuildError`."""
        part = self.parts.get(names)
        if isinstance(part, Extension):
            return part
        if part is None:
            built = build_model(request_of(names, self.identity, self.description.form, self.derive_more), self.options)
        else:
            built = _build(*part, self.options)
        self.parts[names] = built
        return built

    @property
    def description(self) -> Description:
        """The description of the model. Raises `BuildError` for sources without one."""
        text = self.files.get(DESCRIPTION_FILE)
        return Description.from_json(text) if text is not None else Description.from_sources(self.sources)

    def batch(self, name: str) -> BatchFunction:
        """The batch evaluation of a function, compiled on first use. Raises `BuildError`."""
        from kanegen.backends.cython.batch import batch_function

        return batch_function(self.path, self.sources, self.module, self.options, name)

    def many(self, function: str, method: str, quantity: str) -> ManyFunction | None:
        """The integration of many motions on lanes, compiled on first use; None where there is none."""
        from kanegen.backends.cython.many import lane_integrator

        return lane_integrator(self.path, self.sources, self.module, self.options, (function, method, quantity))

    def variations(self, name: str, method: str) -> VariationFunction:
        """The derivatives of motions by a function of variations, compiled on first use. Raises `BuildError`."""
        from kanegen.backends.cython.variations import variation_function

        part = self.more((name,))
        return variation_function(part.path, part.sources, part.module, self.options, (name, method))

    def adjoint(self, names: tuple[str, str], method: str) -> AdjointFunction:
        """The discrete adjoint of a method, compiled on first use. Raises `BuildError`."""
        from kanegen.backends.cython.adjoints import adjoint_function

        part = self.more(names)
        return adjoint_function(part.path, part.sources, part.module, self.options, names, method)


def c_sources(generated: Generated, digest: str) -> Sources:
    """The C sources of a model, with its description for the solver."""
    from kanegen.codegen.kernel import emit_sources  # a model from the cache needs no generator

    sources = emit_sources(generated.program, digest=digest, options_text=generated.options)
    return replace(sources, files={**sources.files, DESCRIPTION_FILE: generated.description.to_json()})


def build_model(request: Request, options: CompilerOptions | None = None) -> Extension:
    """Compile and load a model; earlier sources and compiled code come from the cache. Raises `BuildError`."""
    remember(request.digest, request.derive_more)
    return replace(_built(request, options), derive_more=request.derive_more)


def _restored(
    identity: str, sources: Sources, options: CompilerOptions | None, parts: dict[Names, Recipe]
) -> Extension:
    """The extension of a pickle; its parts are built when they are used."""
    return replace(_build(identity, sources, options), parts=dict(parts))


def _built(request: Request, options: CompilerOptions | None) -> Extension:
    job = job_for(options or CompilerOptions(), open_cache())
    key = job.key(request.digest)
    folder = job.cache.find("extensions", key)
    if folder is not None:
        return _loaded(folder, key, request.digest, options)
    with known_texts(job.cache):
        sources = job.cache.load_sources(request.digest)
        if sources is not None:
            return _build(request.digest, sources, options)
        with workers(1) as submit:
            # Where the Python module must be compiled, other processes do it while the model is derived.
            wrapper = submit(wrapper_file, job, runtime_headers())
            with without_collections():
                sources = c_sources(request.generated, request.digest)
            stored = submit(job.cache.store_sources, sources)
            extension = _build(request.digest, sources, options, wrapper)
            stored.result()
            return extension


def build(sources: Sources, options: CompilerOptions | None = None) -> Extension:
    """Compile ``sources`` unless the cache holds the result, and load the extension module.

    Raises `BuildError`: no compiler, a failing compiler (with its command, full stderr and the folder kept), a cache
    that cannot be used, or a kernel made for another version of the C interface.
    """
    return _build(text_digest((files_digest(sources.files), wrapper_digest())), sources, options)


def _build(
    identity: str, sources: Sources, options: CompilerOptions | None, wrapper: Future[Path] | None = None
) -> Extension:
    """Build sources; ``identity`` determines them and the Python module. ``wrapper``: its file, from another thread."""
    job = job_for(options or CompilerOptions(), open_cache())
    key = job.key(identity)
    folder = job.cache.find("extensions", key)
    if folder is None:
        folder = job.cache.publish("extensions", key, sources.name, lambda work: _compile(job, sources, work, wrapper))
    return _loaded(folder, key, identity, options, sources)


def _loaded(
    folder: Path, key: str, identity: str, options: CompilerOptions | None, sources: Sources | None = None
) -> Extension:
    """Load an entry of the cache. Files that are not among ``sources`` are read now: the entry may be removed later."""
    kernel = folder / KERNEL_FILE
    try:
        files = sources.files if sources else {path.name: path.read_text(encoding="utf-8") for path in _texts(folder)}
    except OSError as error:
        raise BuildError(f"the compiled model {folder} cannot be read: {error}; build again") from error
    return Extension(cast(Evaluator, load(kernel, key)), key, kernel, options, identity, files, sources)


def _texts(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in _TEXTS and path.name != MANIFEST]


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
    from kanegen.backends.cython.kernel import compile_kernel  # a model from the cache is not compiled

    kept = {name: text for name, text in sources.files.items() if not name.endswith(".h") or name == sources.header}
    headers = include_closure(kept, sources.files)
    write_files({**kept, **headers}, work)
    library = work / KERNEL_FILE
    with activity(f"compiling {sources.name!r}"), workers(processors()) as submit:
        # The Python module, if it is not there, is compiled in other processes at the same time as the kernel.
        pending = wrapper or submit(wrapper_file, job, sources.files)
        compile_kernel(job, sources, work, library, submit)
        shutil.copyfile(pending.result(), work / MODULE_FILE)
    # The entry keeps the C code of the model, but not the headers of the runtime, a third of its size.
    for name in headers:
        (work / name).unlink()
