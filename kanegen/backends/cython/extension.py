"""From generated sources to a loaded extension module."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from kanegen.backends.cython.cache import Cache, open_cache
from kanegen.backends.cython.job import Job, job_for
from kanegen.backends.cython.processes import Submit, processors, run, workers
from kanegen.backends.cython.toolchain import (
    CompilerOptions,
    compile_object,
    link_command,
    make,
)
from kanegen.backends.parts import remember, request_of
from kanegen.backends.protocol import BatchFunction, DeriveMore, Evaluator, Generated, ManyFunction, Request
from kanegen.codegen.description import DESCRIPTION_FILE, Description
from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.pieces import has_long_functions, pieces
from kanegen.codegen.sources import (
    Sources,
    files_digest,
    include_closure,
    runtime_headers,
    wrapper_digest,
    wrapper_files,
    write_files,
)
from kanegen.errors import BuildError, SolveError
from kanegen.progress import activity

MODULE = "module"
"""The last part of every extension's module name: its init function is ``PyInit_module``."""

_FIRST_BUILD = "compiling kanegen's Python module, once on this machine"

_C_PARTS = ("steppers", "runtime")
"""Parts of the wrapper in C, ``module_<part>.c``, with flags of the same names in CompilerOptions."""


@dataclass(frozen=True)
class Extension:
    """A compiled model: the loaded ``module``, its ``digest`` (over sources, compiler, flags, interpreter and
    processor), the ``path`` of the shared library in the cache, the ``sources`` and ``options`` it was built with.

    ``derive_more`` derives functions that the model leaves out; None after unpickling. ``parts``: builds of such
    functions, or their sources, by names. A pickle holds sources and options; unpickling takes the compiled code from
    the cache or builds it again.
    """

    module: Evaluator
    digest: str
    path: Path
    sources: Sources
    options: CompilerOptions | None = None
    derive_more: DeriveMore | None = field(default=None, compare=False, repr=False)
    parts: dict[tuple[str, ...], Extension | Sources] = field(default_factory=dict, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {names: part if isinstance(part, Sources) else part.sources for names, part in self.parts.items()}
        return _restored, (self.sources, self.options, parts)

    def more(self, names: tuple[str, ...]) -> Extension:
        """A build of functions that this one leaves out, by their names in the catalogue. Raises `BuildError`."""
        part = self.parts.get(names)
        if part is None:
            request = request_of(names, self.sources.digest, self.description.form, self.derive_more)
            part = self.parts[names] = build_model(request, self.options)
        elif isinstance(part, Sources):
            part = self.parts[names] = build(part, self.options)
        return part

    @property
    def description(self) -> Description:
        """The description of the model. Raises `BuildError` for sources without one."""
        return Description.from_sources(self.sources)

    def batch(self, name: str) -> BatchFunction:
        """The batch evaluation of a function, compiled on first use. Raises `BuildError`."""
        from kanegen.backends.cython.batch import batch_function

        return batch_function(self.path, self.sources, self.module, self.options, name)

    def many(self, function: str, method: str, quantity: str) -> ManyFunction | None:
        """The integration of many motions on lanes, compiled on first use; None where there is none."""
        from kanegen.backends.cython.many import lane_integrator

        return lane_integrator(self.path, self.sources, self.module, self.options, (function, method, quantity))


def c_sources(generated: Generated, digest: str) -> Sources:
    """The C sources of a model, with its description for the solver."""
    sources = emit_sources(generated.program, digest=digest, options_text=generated.options)
    return replace(sources, files={**sources.files, DESCRIPTION_FILE: generated.description.to_json()})


def _restored(sources: Sources, options: CompilerOptions | None, parts: dict[tuple[str, ...], Sources]) -> Extension:
    """The extension of a pickle; its parts are built when they are used."""
    return replace(build(sources, options), parts=dict(parts))


def build_model(request: Request, options: CompilerOptions | None = None) -> Extension:
    """Compile and load a model; earlier sources and compiled code come from the cache. Raises `BuildError`."""
    remember(request.digest, request.derive_more)
    return replace(_built(request, options), derive_more=request.derive_more)


def _built(request: Request, options: CompilerOptions | None) -> Extension:
    cache = open_cache()
    sources = cache.load_sources(request.digest)
    if sources is not None:
        return build(sources, options, cache)
    with workers(1) as submit:
        # This takes seconds once per machine; the compiler runs in other processes while the model is derived.
        wrapper = submit(build_wrapper, runtime_headers(), options, cache)
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

    ``wrapper``: the result of `build_wrapper` in another thread. Raises `BuildError`: no compiler, a failing compiler
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


def build_wrapper(
    headers: Mapping[str, str], options: CompilerOptions | None = None, cache: Cache | None = None
) -> Path:
    """Compile the part of an extension that is the same for every model, unless the cache holds it.

    ``headers``: the C runtime (kanegen.codegen.sources.runtime_headers). `build` calls this itself; an earlier call in
    a thread while a model is derived hides the seconds it takes once per machine. Returns the folder with the object
    files. Raises `BuildError`.
    """
    return _wrapper_folder(job_for(options or CompilerOptions(), cache or open_cache()), headers)


def load(path: Path, digest: str) -> ModuleType:
    """Load the shared library at ``path`` under a module name made from ``digest``, once per process.

    Models of the same name can be loaded together, because the module name has the digest. Raises `BuildError`.
    """
    name = f"kanegen_extension_{digest}.{MODULE}"
    if name in sys.modules:
        return sys.modules[name]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise BuildError(f"{path} cannot be loaded as an extension module")
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise BuildError(f"the extension {path} cannot be loaded: {error}") from error
    # The module does not import kanegen, which emitted projects do not need; here it raises kanegen's error.
    vars(module)["SolveError"] = SolveError
    sys.modules[name] = module
    return module


def _file_name(sources: Sources) -> str:
    return sources.name + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")


def _compile(job: Job, sources: Sources, work: Path, wrapper: Future[Path] | None) -> None:
    """Write the sources into ``work``, and the shared library of kernel, steppers and wrapper."""
    write_files(sources.files, work)
    with activity(f"compiling {sources.name!r}"), workers(processors()) as submit:
        # The wrapper is compiled in other processes at the same time as the kernel.
        pending = wrapper or submit(_wrapper_folder, job, sources.files)
        kernel = _compile_kernel(job, sources, work, submit)
        objects = pending.result()
    parts = [*map(str, kernel), *(str(objects / f"{part}.o") for part in (MODULE, *_C_PARTS))]
    library = work / _file_name(sources)
    make(link_command(job.toolchain, job.options, parts, str(library)), library)
    for file in kernel:
        file.unlink()
    # The entry keeps the C code of the model, but not the headers of the runtime, a third of its size.
    for name in sources.files:
        if name.endswith(".h") and name != f"{sources.name}.h":
            (work / name).unlink()


def _compile_kernel(job: Job, sources: Sources, work: Path, submit: Submit) -> list[Path]:
    """Compile the kernel, a long one in several pieces at the same time; returns the object files."""
    text = sources.text(sources.kernel)
    flags = (*job.options.common, *(job.options.of_long_kernels if has_long_functions(text) else job.options.kernel))
    texts = pieces(text, processors())
    if len(texts) == 1:
        files = [work / sources.kernel]
    else:
        files = [work / f"piece_{k}.c" for k in range(len(texts))]
        write_files({file.name: piece for file, piece in zip(files, texts, strict=True)}, work)
    objects = [file.with_suffix(".o") for file in files]
    running = [
        submit(compile_object, job.toolchain, flags, file, target, [str(work)])
        for file, target in zip(files[1:], objects[1:], strict=True)
    ]
    compile_object(job.toolchain, flags, files[0], objects[0], [str(work)])
    for compilation in running:
        compilation.result()
    for file in files:
        if file.name != sources.kernel:
            file.unlink()
    return objects


def _wrapper_folder(job: Job, available: Mapping[str, str]) -> Path:
    """The cached objects of the Cython module and the steppers."""
    from importlib.metadata import version

    wrapper = wrapper_files()
    headers = include_closure(wrapper, available)
    key = job.key(files_digest(headers), wrapper_digest(), sys.version, version("cython"))
    folder = job.cache.find("wrappers", key)
    if folder is not None:
        return folder
    files = {**headers, **wrapper}
    return job.cache.publish("wrappers", key, MODULE, lambda work: _compile_wrapper(job, files, work))


def _compile_wrapper(job: Job, files: Mapping[str, str], work: Path) -> None:
    write_files(files, work)
    common = job.options.common
    paths = sysconfig.get_paths()
    include = list(dict.fromkeys([str(work), paths["include"], paths["platinclude"], np.get_include()]))
    # The Cython module takes longest. It gets a processor of its own, the other parts share the remaining ones.
    with activity(_FIRST_BUILD, delay=0.0), workers(max(1, min(len(_C_PARTS), processors() - 1))) as submit:

        def start(part: str) -> Future[None]:
            flags, source = (*common, *getattr(job.options, part)), work / f"{MODULE}_{part}.c"
            return submit(compile_object, job.toolchain, flags, source, work / f"{part}.o", [str(work)])

        pending = [start(part) for part in _C_PARTS]
        source = work / f"{MODULE}.c"
        # Cython runs as a program, which returns errors as text and leaves no modules loaded in this process.
        run([sys.executable, "-m", "cython", f"{MODULE}.pyx", "-o", source.name], folder=work)
        compile_object(job.toolchain, (*common, *job.options.wrapper), source, work / f"{MODULE}.o", include)
        for compilation in pending:
            compilation.result()
    source.unlink()
