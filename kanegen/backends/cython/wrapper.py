"""The Python module of compiled models: the same for every model, compiled when kanegen is installed.

On x86-64 an installation has two modules that differ in the instructions of the integrators: one for every processor,
and one for those since 2013 to 2015, which is taken where it runs. A file has a digest of its sources and flags in its
name, so that one that does not belong to the present sources (a checkout in which templates were changed, another
version of Python) is not found. Then the module is compiled once on this machine, for its processor, and kept in the
cache.
"""

from __future__ import annotations

import platform
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from kanegen._version import __version__
from kanegen.backends.cython.job import Job
from kanegen.backends.cython.processes import WINDOWS, processors, run, workers
from kanegen.backends.cython.toolchain import (
    CompilerOptions,
    Toolchain,
    compile_object,
    cpu_features,
    find_toolchain,
    link,
)
from kanegen.codegen.sources import (
    files_digest,
    include_closure,
    runtime_headers,
    text_digest,
    wrapper_digest,
    wrapper_files,
    wrapper_templates,
)
from kanegen.progress import activity
from kanegen.writing import write_files

MODULE: Final = "module"
"""The last part of the name of every loaded module: its init function is ``PyInit_module``."""

_SUFFIX: Final = sysconfig.get_config_var("EXT_SUFFIX") or ".so"

MODULE_FILE: Final = MODULE + _SUFFIX

PACKAGE: Final = Path(__file__).parent
"""The folder in which an installation has its module."""

FIRST_BUILD: Final = "compiling kanegen's Python module, once on this machine: the installation has none that fits"

_C_PARTS = ("steppers", "runtime")
"""Parts of the module in C, ``module_<part>.c``, with flags of the same names in CompilerOptions."""

_NATIVE: Final = "-march=native"

FEATURES: Final = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
"""What x86-64-v3 has beyond x86-64, by the names in /proc/cpuinfo; processors since 2013 to 2015 have it."""


@dataclass(frozen=True)
class Variant:
    """A module of an installation: its flags in place of ``-march=native``, and what a processor needs to run it."""

    instructions: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()

    @property
    def options(self) -> CompilerOptions:
        """The usual flags without the instructions of one processor: a wheel is used on other machines."""
        usual = CompilerOptions()

        def replaced(flags: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new for flag in flags for new in (self.instructions if flag == _NATIVE else (flag,)))

        return replace(usual, steppers=replaced(usual.steppers), runtime=replaced(usual.runtime))

    def file_name(self, sources: str) -> str:
        """The name of its file; ``sources``: a digest of what it is compiled from."""
        return f"{MODULE}_{text_digest((sources, repr(_flags(self.options))))[:16]}{_SUFFIX}"


ANY_PROCESSOR: Final = Variant()
RECENT_X86: Final = Variant(("-march=x86-64-v3",), FEATURES)


def wrapper_file(job: Job, headers: Mapping[str, str]) -> Path:
    """The compiled module: the one made at the installation, or from the cache, or compiled now. Raises `BuildError`.

    ``headers``: the C runtime (kanegen.codegen.sources.runtime_headers).
    """
    return _installed(job.options, headers) or _cached(job, headers)


def install_wrapper(folder: Path, here: bool = False) -> None:
    """Compile the modules for an installation (setup.py) into ``folder``. Raises `BuildError`.

    ``here``: for this machine only, as a checkout needs it.
    """
    headers = runtime_headers()
    variants_by_name = zip(installed_names(headers, here), _compiled(here), strict=True)
    targets = {name: variant.options for name, variant in variants_by_name}
    # In a checkout, installations with other sources have left modules that nothing loads any more.
    for other in PACKAGE.glob(f"{MODULE}_*{_SUFFIX}"):
        if other.name not in targets:
            other.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for name in targets:
        if (PACKAGE / name).is_file() and not (folder / name).is_file():
            shutil.copyfile(PACKAGE / name, folder / name)
    missing = {name: options for name, options in targets.items() if not (folder / name).is_file()}
    if missing:
        files = {**include_closure(wrapper_templates(), headers), **wrapper_files()}
        work = Path(tempfile.mkdtemp(prefix="kanegen-"))  # stays after a failure, for inspection
        _compile(find_toolchain(), missing, files, work)
        for name in missing:
            shutil.move(work / name, folder / name)
        work.rmdir()


def installed_names(headers: Mapping[str, str] | None = None, here: bool = False) -> list[str]:
    """The names of the files that an installation has for these sources, the fastest first."""
    sources = _digest(headers or runtime_headers())
    return [variant.file_name(sources) for variant in _compiled(here)]


def _compiled(here: bool) -> tuple[Variant, ...]:
    """What an installation compiles: everything that other machines of this kind need, or the best for this one."""
    return _suitable()[:1] if here else variants()


def _suitable() -> tuple[Variant, ...]:
    """The modules that this processor can run, the fastest first."""
    return tuple(variant for variant in variants() if variant.features <= cpu_features())


def installed_wrapper() -> Path | None:
    """The module of the installation that this process uses, if it has one for the present sources."""
    return _installed(CompilerOptions(), runtime_headers())


def _digest(headers: Mapping[str, str]) -> str:
    """What an installed module is compiled from; the version of NumPy's interface is part of it."""
    included = files_digest(include_closure(wrapper_templates(), headers))
    numpy_interface = np.__version__.partition(".")[0]
    return text_digest((__version__, numpy_interface, included, wrapper_digest()))


def _flags(options: CompilerOptions) -> tuple[tuple[str, ...], ...]:
    """The flags that matter to the module."""
    return options.wrapper, options.steppers, options.runtime, options.common


def variants() -> tuple[Variant, ...]:
    """The modules of an installation on this kind of machine, the fastest first."""
    return (RECENT_X86, ANY_PROCESSOR) if _is_x86() else (ANY_PROCESSOR,)


def _is_x86() -> bool:
    """Whether the processor is one whose features are known here."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def _installed(options: CompilerOptions, headers: Mapping[str, str]) -> Path | None:
    """The module of the installation, if it has the present sources and these flags."""
    if _flags(options) != _flags(CompilerOptions()):
        return None
    sources = _digest(headers)
    files = [PACKAGE / variant.file_name(sources) for variant in _suitable()]
    return next((file for file in files if file.is_file()), None)


def _cached(job: Job, available: Mapping[str, str]) -> Path:
    """The module in the cache."""
    from importlib.metadata import version

    headers = include_closure(wrapper_templates(), available)
    flags = repr((_flags(job.options), job.options.link))  # those of kernels do not matter
    key = text_digest((*job.machine, flags, files_digest(headers), wrapper_digest(), sys.version, version("cython")))

    def fill(work: Path) -> None:
        with activity(FIRST_BUILD, delay=0.0):
            _compile(job.toolchain, {MODULE_FILE: job.options}, {**headers, **wrapper_files()}, work)

    return (job.cache.find("wrappers", key) or job.cache.publish("wrappers", key, MODULE, fill)) / MODULE_FILE


def _compile(
    toolchain: Toolchain, targets: Mapping[str, CompilerOptions], files: Mapping[str, str], work: Path
) -> None:
    """Compile the module in ``work``, which contains the targets afterwards and nothing else.

    ``targets``: the flags of each file, by its name. Those of the Cython code, which takes longest, are the same in all
    of them: it is compiled once.
    """
    sources = work / "sources"
    write_files(files, sources)
    # The Cython module gets a processor of its own, the other parts share the remaining ones.
    with workers(max(1, min(len(_C_PARTS), processors() - 1))) as submit:

        def start(part: str, options: CompilerOptions, target: Path) -> Future[None]:
            flags, source = (*options.common, *getattr(options, part)), sources / f"{MODULE}_{part}.c"
            return submit(compile_object, toolchain, flags, source, target, [str(sources)])

        parts = {
            name: {sources / f"{part}_{k}.o": start(part, options, sources / f"{part}_{k}.o") for part in _C_PARTS}
            for k, (name, options) in enumerate(targets.items())
        }
        module = _compile_cython(toolchain, next(iter(targets.values())), sources)
        for compilation in (pending for part in parts.values() for pending in part.values()):
            compilation.result()
    for name, options in targets.items():
        objects = [str(object_file) for object_file in (module, *parts[name])]
        link(toolchain, options, [*objects, *_python_library()], work / name)
    shutil.rmtree(sources)


def _compile_cython(toolchain: Toolchain, options: CompilerOptions, sources: Path) -> Path:
    """The object file of the Cython code in ``sources``."""
    paths = sysconfig.get_paths()
    include = list(dict.fromkeys([str(sources), paths["include"], paths["platinclude"], np.get_include()]))
    source = sources / f"{MODULE}.c"
    # Cython runs as a program, which returns errors as text and leaves no modules loaded in this process.
    run([sys.executable, "-m", "cython", f"{MODULE}.pyx", "-o", source.name], folder=sources)
    target = source.with_suffix(".o")
    compile_object(toolchain, (*options.common, *options.wrapper), source, target, include)
    return target


def _python_library() -> list[str]:
    """What a module is linked with: on Windows the library of the interpreter, elsewhere nothing."""
    if not WINDOWS:
        return []
    return [f"-L{Path(sys.base_prefix, 'libs')}", f"-lpython{sys.version_info.major}{sys.version_info.minor}"]
