"""Shared libraries from C files, compiled with kanegen's compiler."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kanegen.backends.cython import processes, toolchain
from kanegen.writing import write_files

FAST = ("-std=c99", "-fPIC", "-O3", "-march=native")


def link(folder: Path, sources: Mapping[str, Sequence[str]]) -> Path:
    """Compile C files in a folder, each with its flags, and link them to ``library.so`` there. Raises `BuildError`."""
    tools, options = toolchain.find_toolchain(), toolchain.CompilerOptions()
    objects = []
    for name, flags in sources.items():
        objects.append(str(folder / Path(name).with_suffix(".o")))
        toolchain.compile_object(tools, flags, folder / name, Path(objects[-1]), [str(folder)])
    target = folder / "library.so"
    processes.run(toolchain.link_command(tools, options, objects, str(target)), folder=folder)
    return target


def load(files: Mapping[str, str], sources: Mapping[str, Sequence[str]]) -> ctypes.CDLL:
    """The library of C texts: ``files`` by their names, ``sources`` the flags of those that are compiled.

    The files are removed at once. Raises `BuildError`.
    """
    with tempfile.TemporaryDirectory(prefix="kanegen-bench-") as name:
        folder = Path(name)
        write_files(files, folder)
        return ctypes.CDLL(str(link(folder, sources)))
