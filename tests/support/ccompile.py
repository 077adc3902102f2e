"""Compiles the C hosts of tests/hosts and generated C against the runtime headers: as libraries or as programs."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kanegen.codegen.sources import runtime_headers

WARNINGS = ("-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion")
HOSTS = Path(__file__).parents[1] / "hosts"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O0")
"""Without optimization, which takes four fifths of the time and can remove what the sanitizers would find."""


@dataclass(frozen=True)
class Compiler:
    """A compiler with the language it is to accept; ``suffix`` is that of its source files."""

    command: str
    standard: str
    suffix: str

    def __str__(self) -> str:
        return f"{self.command} {self.standard}"


CANDIDATES = (
    Compiler("gcc", "-std=c99", ".c"),
    Compiler("clang", "-std=c99", ".c"),
    Compiler("g++", "-std=c++11", ".cpp"),
    Compiler("clang++", "-std=c++11", ".cpp"),
)
COMPILERS = tuple(c for c in CANDIDATES if shutil.which(c.command))
C_COMPILER = next(c for c in COMPILERS if c.suffix == ".c")

PROCESSORS: dict[str, tuple[str, ...]] = {"any processor": (), "this processor": ("-march=native",)}
"""Flags of C that is computed without and with fused products and sums, where the processor has them."""


def _links_sanitizers(compiler: Compiler) -> bool:
    """Whether the compiler finds the sanitizers' runtime, which for clang is a package of its own."""
    command = [compiler.command, *SANITIZERS, "-x", "c", "-", "-o", os.devnull]
    return subprocess.run(command, input="int main(void) { return 0; }", capture_output=True, text=True).returncode == 0


SANITIZING = tuple(c for c in COMPILERS if _links_sanitizers(c))


def _each(compilers: Iterable[Compiler], first: Compiler | None = None) -> pytest.MarkDecorator:
    """Parametrize ``compiler``: ``make test`` runs the test with ``first``, ``make test-targets`` with the others."""
    marked = [pytest.param(c, marks=() if c == first else pytest.mark.target) for c in compilers]
    return pytest.mark.parametrize("compiler", marked, ids=str)


with_each_compiler = _each(COMPILERS, C_COMPILER)
with_each_c_compiler = _each((c for c in COMPILERS if c.suffix == ".c"), C_COMPILER)
with_each_sanitizer = _each(SANITIZING)
with_each_c_sanitizer = _each(c for c in SANITIZING if c.suffix == ".c")


def require_cpp() -> Compiler:
    """The first C++ compiler; skips the test where there is none."""
    found = next((c for c in COMPILERS if c.suffix == ".cpp"), None)
    if found is None:
        pytest.skip("there is no C++ compiler (Debian's package g++)")
    return found


def host_source(name: str) -> str:
    """The text of a file in tests/hosts: C that gives tests access to the runtime headers."""
    return (HOSTS / name).read_text(encoding="utf-8")


def compile_source(
    compiler: Compiler, source: str, target: Path, *flags: str, headers: dict[str, str] | None = None
) -> None:
    """Compile one source next to its headers into ``target``; a warning fails the test with stderr.

    The source may include files of tests/hosts.
    """
    folder = target.parent
    for name, text in (runtime_headers() if headers is None else headers).items():
        (folder / name).write_text(text, encoding="utf-8")
    path = target.with_suffix(compiler.suffix)
    path.write_text(source, encoding="utf-8")
    folders = ("-I", str(folder), "-I", str(HOSTS))
    command = [compiler.command, compiler.standard, *WARNINGS, *folders, *flags, str(path), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def shared_library(source: str, folder: Path, *flags: str) -> ctypes.CDLL:
    """A C source as a loaded library."""
    target = folder / "snippet.so"
    compile_source(C_COMPILER, source, target, "-O1", "-shared", "-fPIC", *flags)
    return ctypes.CDLL(str(target))


def run_program(compiler: Compiler, source: str, folder: Path, *flags: str) -> str:
    """Compile and run a program: it must exit with 0 and write nothing to stderr. Returns its stdout."""
    target = folder / "program"
    compile_source(compiler, source, target, *flags)
    done = subprocess.run([str(target)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout
