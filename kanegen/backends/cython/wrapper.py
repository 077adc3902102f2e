"""The Python module of compiled models: the same for every model, compiled when kanegen is installed.

The file has a digest of its sources and flags in its name, so that one that does not belong to the present sources (a
checkout in which templates were changed, another version of Python) is not found. Then the module is compiled once on
this machine, for its processor, and kept in the cache.
"""

from __future__ import annotations

import platform
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from kanegen._version import __version__
from kanegen.backends.cython.job import Job
from kanegen.backends.cython.processes import processors, run, workers
from kanegen.backends.cython.toolchain import (
    CompilerOptions,
    Toolchain,
    compile_object,
    cpu_features,
    find_toolchain,
    link_command,
    make,
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

_NATIVE, _COMMON_X86 = "-march=native", "-march=x86-64-v3"

FEATURES: Final = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
"""What x86-64-v3 has beyond x86-64, by the names in /proc/cpuinfo; processors since 2013 to 2015 have it. Runs are at
most 1 % longer than with instructions of the machine (3 % with x86-64 alone)."""


def wrapper_file(job: Job, headers: Mapping[str, str]) -> Path:
    """The compiled module: the one made at the installation, or from the cache, or compiled now. Raises `BuildError`.

    ``headers``: the C runtime (kanegen.codegen.sources.runtime_headers).
    """
    return _installed(job.options, headers) or _cached(job, headers)


def install_wrapper(folder: Path) -> None:
    """Compile the module for an installation (setup.py) into ``folder``. Raises `BuildError`."""
    name = installed_name()
    target, present = folder / name, PACKAGE / name
    # In a checkout, installations with other sources have left modules that nothing loads any more.
    for other in PACKAGE.glob(f"{MODULE}_*{_SUFFIX}"):
        if other != present:
            other.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    if present.is_file():
        if present != target:
            shutil.copyfile(present, target)
        return
    headers = runtime_headers()
    files = {**include_closure(wrapper_templates(), headers), **wrapper_files()}
    work = Path(tempfile.mkdtemp(prefix="kanegen-"))  # stays after a failure, for inspection
    _compile(find_toolchain(), _portable(), files, work)
    shutil.move(work / MODULE_FILE, target)
    work.rmdir()


def installed_name(headers: Mapping[str, str] | None = None) -> str:
    """The name of the file that an installation has for these sources."""
    return f"{MODULE}_{_digest(headers or runtime_headers())}{_SUFFIX}"


def has_installed_wrapper() -> bool:
    """Whether the installation has a module for the present sources that this processor can run."""
    return _installed(CompilerOptions(), runtime_headers()) is not None


def _digest(headers: Mapping[str, str]) -> str:
    """What the installed module is compiled from; the version of NumPy's interface is part of it."""
    included = files_digest(include_closure(wrapper_templates(), headers))
    numpy_interface = np.__version__.partition(".")[0]
    return text_digest((__version__, repr(_flags(_portable())), numpy_interface, included, wrapper_digest()))[:16]


def _flags(options: CompilerOptions) -> tuple[tuple[str, ...], ...]:
    """The flags that matter to the module."""
    return options.wrapper, options.steppers, options.runtime, options.common


def _portable() -> CompilerOptions:
    """The usual flags without the instructions of one processor: a wheel is used on other machines."""
    usual, common = CompilerOptions(), (_COMMON_X86,) if _is_x86() else ()

    def replaced(flags: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new for flag in flags for new in (common if flag == _NATIVE else (flag,)))

    return replace(usual, steppers=replaced(usual.steppers), runtime=replaced(usual.runtime))


def _is_x86() -> bool:
    """Whether the features of the processor are known here, so that the module can need more than the oldest ones."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def _installed(options: CompilerOptions, headers: Mapping[str, str]) -> Path | None:
    """The module of the installation, if it has the present sources and these flags, and this processor can run it."""
    if _flags(options) != _flags(CompilerOptions()) or (_is_x86() and not cpu_features() >= FEATURES):
        return None
    file = PACKAGE / installed_name(headers)
    return file if file.is_file() else None


def _cached(job: Job, available: Mapping[str, str]) -> Path:
    """The module in the cache."""
    from importlib.metadata import version

    headers = include_closure(wrapper_templates(), available)
    key = job.key(files_digest(headers), wrapper_digest(), sys.version, version("cython"))

    def fill(work: Path) -> None:
        with activity(FIRST_BUILD, delay=0.0):
            _compile(job.toolchain, job.options, {**headers, **wrapper_files()}, work)

    return (job.cache.find("wrappers", key) or job.cache.publish("wrappers", key, MODULE, fill)) / MODULE_FILE


def _compile(toolchain: Toolchain, options: CompilerOptions, files: Mapping[str, str], work: Path) -> None:
    """Compile the module in ``work``, which contains it afterwards and nothing else."""
    sources = work / "sources"
    write_files(files, sources)
    paths = sysconfig.get_paths()
    include = list(dict.fromkeys([str(sources), paths["include"], paths["platinclude"], np.get_include()]))
    # The Cython module takes longest. It gets a processor of its own, the other parts share the remaining ones.
    with workers(max(1, min(len(_C_PARTS), processors() - 1))) as submit:

        def start(part: str) -> Future[None]:
            flags, source = (*options.common, *getattr(options, part)), sources / f"{MODULE}_{part}.c"
            return submit(compile_object, toolchain, flags, source, sources / f"{part}.o", [str(sources)])

        pending = [start(part) for part in _C_PARTS]
        source = sources / f"{MODULE}.c"
        # Cython runs as a program, which returns errors as text and leaves no modules loaded in this process.
        run([sys.executable, "-m", "cython", f"{MODULE}.pyx", "-o", source.name], folder=sources)
        compile_object(toolchain, (*options.common, *options.wrapper), source, sources / f"{MODULE}.o", include)
        for compilation in pending:
            compilation.result()
    objects = [str(sources / f"{part}.o") for part in (MODULE, *_C_PARTS)]
    make(link_command(toolchain, options, objects, str(work / MODULE_FILE)), work / MODULE_FILE)
    shutil.rmtree(sources)
