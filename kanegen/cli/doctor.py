"""``kanegen doctor``: the compiler and the packages of kanegen, and how to install missing ones."""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from kanegen._version import __version__
from kanegen.backends.cython import packaged
from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.eviction import folder_size
from kanegen.backends.cython.toolchain import (
    QUICK_NAME,
    CompilerOptions,
    Toolchain,
    compile_object,
    compiler_version,
    find_toolchain,
    is_gcc,
    link,
    quick_toolchain,
)
from kanegen.backends.cython.wrapper import installed_wrapper
from kanegen.cli.arguments import print_line
from kanegen.cli.build import size_text
from kanegen.errors import BuildError

PYTHON_HEADERS = (
    "install them (Debian and Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel; conda and python.org "
    "contain them)"
)

CLANG: Final = "clang"

CLANG_IS_THERE = "; CC=clang: 0.92 of the time on average (0.73 to 1.29 by model)"
"""What is said where GCC is used; measured with clang 14 and gcc 12 (docs/benchmark.md)."""

PROBE = "#include <math.h>\ndouble kanegen_probe(double x) { return sin(x); }\n"
"""A C file that compiles where every model does: with the mathematical library."""

PROBE_OF_MODULE = "#include <Python.h>\n"
"""What the Python module needs besides, where it is compiled on this machine."""


@dataclass(frozen=True)
class Finding:
    """One line: what was looked for and found; ``advice`` if it is missing, and whether kanegen works without it."""

    what: str
    found: str
    advice: str = ""
    required: bool = True

    @property
    def mark(self) -> str:
        if not self.advice:
            return "ok"
        return "missing" if self.required else "optional"


@click.command()
def doctor() -> None:
    """Check the compiler, the Python packages and the cache, and say how to install what is missing.

    The exit status is 1 if something that kanegen needs is missing.
    """
    found = [*compiler(), *cache(), *packages()]
    table = Table(show_header=False, box=None)
    for finding in found:
        table.add_row(f"[bold]{finding.what}[/bold]", finding.mark, finding.found)
    print_line(f"kanegen {__version__}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}")
    Console(soft_wrap=True).print(table)
    for finding in found:
        if finding.advice:
            print_line(f"{finding.what}: {finding.advice}")
    missing = [finding.what for finding in found if finding.advice and finding.required]
    if missing:
        raise click.ClickException(
            f"kanegen cannot compile models: see {', '.join(missing)} above. "
            'kg.build(model, backend="interpreted"), and --backend interpreted of kanegen build, run, report and '
            "verify, need neither a compiler nor the cache"
        )


USES: Final = {
    "compiler": "a C compiler as a Python package",
    "plot": "plots",
    "view": "animations",
    "report": "reports",
    "units": "units",
    "data": "tables",
    "sweep": "sweeps in stores",
}
"""What the extras of kanegen are for; the others are for its developers."""


def packages() -> Iterator[Finding]:
    """The packages that kanegen requires, with a line for each missing one, and its extras by their use."""
    try:
        requirements = metadata.requires("kanegen") or []
    except metadata.PackageNotFoundError:
        yield Finding("kanegen", "not installed in this environment", "pip install -e .", required=False)
        return
    pattern = r'([\w.-]+)\s*(?:>=\s*([\d.]+))?[^;]*(?:;\s*extra == "(\w+)")?'
    read = list(filter(None, (re.match(pattern, requirement) for requirement in requirements)))
    required = [_package(match[1], match[2] or "0") for match in read if match[3] is None]
    found = [finding for finding in required if not finding.advice]
    yield Finding("packages", ", ".join(f"{finding.what} {finding.found}" for finding in found))
    yield from (finding for finding in required if finding.advice)
    for extra, use in USES.items():
        parts = [_package(match[1], match[2] or "0") for match in read if match[3] == extra]
        if parts:
            yield _extra(extra, use, parts)


def _package(name: str, least: str) -> Finding:
    install = f"pip install '{name}>={least}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "not installed", install)
    if _numbers(version) < _numbers(least):
        return Finding(name, f"{version}, older than {least}", install)
    return Finding(name, version)


def _extra(extra: str, use: str, parts: Sequence[Finding]) -> Finding:
    """One line for the packages of an extra."""
    missing = [f"{part.what} ({part.found})" for part in parts if part.advice]
    if missing:
        return Finding(use, ", ".join(missing), f"pip install 'kanegen[{extra}]'", required=False)
    return Finding(use, f"installed: {', '.join(f'{part.what} {part.found}' for part in parts)}")


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without zeros at the end: (1, 14) for 1.14.0rc1."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def compiler() -> Iterator[Finding]:
    """The C compiler, the headers of Python, and whether a shared library can be made with both."""
    headers = _headers()
    yield headers
    try:
        toolchain = find_toolchain()
        version = compiler_version(toolchain).splitlines()
    except BuildError as error:
        yield Finding("C compiler", "none", str(error))
        return
    command = f"{' '.join(toolchain.command)}: {version[0] if version else 'no version'}"
    others = CLANG_IS_THERE if _could_be_clang(version) else ""
    yield Finding("C compiler", f"{command}; {toolchain.chosen}{others}")
    yield _quick()
    if not headers.advice:
        yield _probe(toolchain)
    if toolchain.is_packaged:
        yield from _packaged()


def _could_be_clang(version: Sequence[str]) -> bool:
    """Whether GCC was taken, without being named, where clang is installed; ``version``: what the compiler prints."""
    is_named = bool(os.environ.get("CC", "").strip())
    return not is_named and is_gcc("\n".join(version)) and shutil.which(CLANG) is not None


def _quick() -> Finding:
    """What compiles kernels with ``quick=True``."""
    tools = quick_toolchain()
    if tools is None:
        return Finding("quick builds", f"the C compiler without optimizations; {QUICK_NAME} is not on the PATH")
    return Finding("quick builds", f"{tools.command[0]}; {tools.chosen}")


def _headers() -> Finding:
    """The headers of Python, which only the compilation of the Python module needs."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if header.is_file():
        return Finding("headers of Python", str(header.parent))
    if installed_wrapper() is not None:
        return Finding("headers of Python", "none; not needed, because the Python module is compiled")
    return Finding("headers of Python", str(header.parent), f"{header} is missing: {PYTHON_HEADERS}")


def _probe(toolchain: Toolchain) -> Finding:
    """Compile and link a small library with the flags of the models."""
    options = CompilerOptions()
    flags = (*options.common, *options.kernel)
    with tempfile.TemporaryDirectory(prefix="kanegen-doctor-") as name:
        folder = Path(name)
        text = PROBE if installed_wrapper() is not None else PROBE_OF_MODULE + PROBE
        (folder / "probe.c").write_text(text, encoding="utf-8")
        try:
            headers = [sysconfig.get_paths()["include"], sysconfig.get_paths()["platinclude"]]
            compile_object(toolchain, flags, folder / "probe.c", folder / "probe.o", headers)
            link(toolchain, options, [str(folder / "probe.o")], folder / "probe.so")
        except BuildError as error:
            return Finding("compiling and linking", "fails", str(error))
    return Finding("compiling and linking", " ".join(flags))


def _packaged() -> Iterator[Finding]:
    """What the compiler of the package ziglang takes on the disk, and how it is removed."""
    program, kept = packaged.find_program(), packaged.folder()
    if program is not None:
        size = size_text(folder_size(program.resolve().parent))
        yield Finding(f"package {packaged.PACKAGE}", f"{size}; pip uninstall {packaged.PACKAGE} removes it")
    yield Finding("its prepared library", f"{kept}: {size_text(folder_size(kept))}; kanegen cache clear removes it")


def cache() -> Iterator[Finding]:
    """The cache folder: whether it can be used, what it contains, and the space that is left."""
    try:
        folder = open_cache()
    except BuildError as error:
        yield Finding("cache", "cannot be used", str(error))
        return
    entries = folder.entries()
    limit = f"of at most {size_text(folder.limit)}" if math.isfinite(folder.limit) else "without a limit"
    size = size_text(sum(entry.size for entry in entries))
    models = sum(entry.kind == "extensions" for entry in entries)
    yield Finding("cache", f"{folder.root}: {models} models, {size} {limit}")
    free = shutil.disk_usage(folder.root).free
    advice = "less than 50 MB: free disk space, or set KANEGEN_CACHE_DIR to a folder elsewhere" if free < 5e7 else ""
    yield Finding("free disk space", size_text(free), advice)
    if installed_wrapper() is not None:
        state = "compiled at the installation"
    elif any(entry.kind == "wrappers" for entry in entries):
        state = "compiled on this machine"
    else:
        state = "compiled with the first model, which takes some seconds longer"
    yield Finding("Python module", state)
