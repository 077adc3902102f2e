"""The machine and software of a measurement."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy
import scipy
import sympy

from kanegen._version import __version__
from kanegen.backends.cython.toolchain import CompilerOptions, compiler_version, find_toolchain


def processor_name() -> str:
    """The processor's name as the operating system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine_lines() -> tuple[str, ...]:
    """Host and processor, system and versions, compiler and flags: one line each."""
    toolchain = find_toolchain()
    options = CompilerOptions()
    return (
        f"{platform.node()}: {processor_name()}, {os.cpu_count()} processors, {platform.platform()}",
        f"kanegen {__version__}, Python {platform.python_version()}, SymPy {sympy.__version__}, "
        f"NumPy {numpy.__version__}, SciPy {scipy.__version__}",
        f"{compiler_version(toolchain).splitlines()[0]}, {' '.join((*options.common, *options.kernel))}",
    )
