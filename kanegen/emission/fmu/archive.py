"""The archive of an FMU: its files in a ZIP file that depends on its contents only, and the compiled binary."""

from __future__ import annotations

import platform
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kanegen.backends.cython.toolchain import CompilerOptions, compile_object, find_toolchain, link
from kanegen.errors import BuildError
from kanegen.writing import reason, replacing, write_files

PORTABLE: Final = CompilerOptions(
    kernel=("-std=c99", "-O3", "-fno-tree-slp-vectorize"),
    steppers=("-std=c99", "-O3", "-fno-tree-slp-vectorize"),
)
"""Flags of the binaries: those of the solver without ``-march=native``, since an FMU goes to other machines."""

_SYSTEMS: Final = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
_MACHINES: Final = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64", "i686": "x86"}
_SHORT: Final = {("linux", "x86_64"): "linux64", ("darwin", "x86_64"): "darwin64", ("linux", "x86"): "linux32"}

_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The time of all files in the archive, so that the same model gives the same bytes."""


def binary_path(identifier: str, version: str) -> str:
    """Path of the binary for this machine within the archive. Raises `BuildError` where the standard has no name."""
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    folder = None
    if system in ("linux", "darwin") and machine is not None:
        folder = f"{machine}-{system}" if version == "3.0" else _SHORT.get((system, machine))
    if folder is None:
        raise BuildError(
            f"FMI {version} has no name for binaries of {sys.platform} on {platform.machine()}, or kanegen cannot make "
            "them: write an FMU with sources only (binary=False, --no-binary), or use another version (fmi=)"
        )
    return f"binaries/{folder}/{identifier}{'.dylib' if system == 'darwin' else '.so'}"


def compile_binary(files: Mapping[str, str], units: Sequence[str], options: CompilerOptions) -> bytes:
    """The shared library of an FMU. Raises `BuildError` if it cannot be compiled in the temporary folder."""
    try:
        with tempfile.TemporaryDirectory(prefix="kanegen-fmu-") as name:
            return _compiled(files, units, options, Path(name))
    except OSError as error:
        raise BuildError(
            f"the FMU cannot be compiled in a temporary folder: {reason(error)}; the environment variable TMPDIR names "
            "another place, and binary=False (--no-binary) needs none"
        ) from error


def _compiled(files: Mapping[str, str], units: Sequence[str], options: CompilerOptions, folder: Path) -> bytes:
    """The library compiled in ``folder``: the kernel with the flags of kernels, the rest with those of steppers."""
    toolchain = find_toolchain()
    kernel, functions = units
    write_files(files, folder)
    names = ("-DFMI2_OVERRIDE_FUNCTION_PREFIX", "-DFMI3_OVERRIDE_FUNCTION_PREFIX")
    # A shared library with an undefined function can be linked, but no importer can load it.
    declared = "-Werror=implicit-function-declaration"
    for unit, flags in ((kernel, options.kernel), (functions, (*options.steppers, *names, declared))):
        target = (folder / unit).with_suffix(".o")
        compile_object(toolchain, (*flags, *options.common), folder / unit, target, include=(str(folder),))
    objects = [str((folder / unit).with_suffix(".o")) for unit in units]
    library = folder / "library"
    link(toolchain, options, objects, library)
    return library.read_bytes()


def require_target(path: Path) -> None:
    """Raise `BuildError` for a path to which no FMU can be written."""
    if path.suffix != ".fmu":
        raise BuildError(f"the target is {str(path)!r}; importers expect a file name that ends in .fmu")
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # a name that is too long, or a link that leads back to itself
        raise BuildError(f"the FMU cannot be written to {path}: {reason(error)}") from error
    if path.is_dir():
        raise BuildError(f"{path} is a folder; an FMU is a file")
    if path.exists() and not zipfile.is_zipfile(path):
        raise BuildError(f"{path} exists and is not an FMU: only an FMU is replaced; choose another name")
    folder = path.parent
    if not folder.is_dir():
        raise BuildError(f"there is no folder {str(folder)!r} for {path.name}; make it, or choose another one")


def write_archive(files: Mapping[str, bytes], path: Path) -> None:
    """Write the archive, completely or not at all. Raises `BuildError` if that is impossible."""
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
            for name, data in sorted(files.items()):
                entry = zipfile.ZipInfo(name, _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100755 if name.startswith("binaries/") else 0o100644) << 16
                archive.writestr(entry, data)
    except OSError as error:
        raise BuildError(f"the FMU cannot be written to {path}: {reason(error)}") from error
