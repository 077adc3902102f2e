"""The environment of a build, on which its result depends beside the sources."""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass

import numpy as np

from kanegen._version import __version__
from kanegen.backends.cython.cache import COMPILERS_NOTE, Cache
from kanegen.backends.cython.toolchain import (
    CompilerOptions,
    Toolchain,
    compiler_version,
    cpu_identity,
    find_toolchain,
    is_gcc,
    quick_toolchain,
)
from kanegen.codegen.sources import text_digest


@dataclass(frozen=True)
class Job:
    """The environment of one build; ``machine`` (versions, compiler, interpreter, CPU) is part of every key.

    ``gcc``: whether the compiler is GCC. ``quick``: the compiler of kernels, if it is another one.
    """

    cache: Cache
    toolchain: Toolchain
    options: CompilerOptions
    machine: tuple[str, ...]
    gcc: bool
    quick: Toolchain | None = None

    def key(self, *parts: str) -> str:
        quick = self.quick.stamp if self.quick is not None else ""
        return text_digest((*self.machine, quick, repr(self.options), *parts))


def job_for(options: CompilerOptions, cache: Cache) -> Job:
    """The environment of a build with these options, which is part of its key. Raises `BuildError`."""
    toolchain = find_toolchain()
    version = _compiler_version(toolchain, cache)
    quick = quick_toolchain() if options.quick else None
    machine = (
        __version__,
        toolchain.stamp,
        version,
        " ".join(toolchain.command),
        str(sysconfig.get_config_var("SOABI")),
        sysconfig.get_platform(),
        np.__version__,
        cpu_identity() if options.depends_on_cpu else "",
    )
    return Job(cache, toolchain, options, machine, is_gcc(version), quick)


def _compiler_version(toolchain: Toolchain, cache: Cache) -> str:
    known = cache.read_note(COMPILERS_NOTE)
    if toolchain.stamp not in known:
        known = {**known, toolchain.stamp: compiler_version(toolchain)}
        cache.write_note(COMPILERS_NOTE, known)
    return known[toolchain.stamp]
