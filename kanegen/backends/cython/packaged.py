"""The C compiler of the Python package ziglang: clang, a linker and C libraries in one wheel.

On its first use it makes the parts of the C library that programs of this machine are linked with. They are kept in the
cache folder of kanegen, so that `kanegen doctor` counts them and `kanegen cache clear` removes them.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kanegen.backends.cython.cache import COMPILER, open_cache
from kanegen.backends.cython.ownership import require_private
from kanegen.backends.cython.processes import run
from kanegen.codegen.sources import text_digest
from kanegen.progress import activity

PACKAGE: Final = "ziglang"

ARGUMENTS: Final = ("cc", "-fno-sanitize=undefined")
"""What makes the program a C compiler like others: without optimization it would end programs with signed overflow."""

PREPARING: Final = f"preparing the C compiler of the package {PACKAGE}, once on this machine"

_PROBE: Final = "#include <math.h>\ndouble kg_probe(double x);\ndouble kg_probe(double x) { return sin(x); }\n"

_preparing = threading.Lock()


def find_program() -> Path | None:
    """The program in the package, if it is installed."""
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    files = [Path(folder) / name for folder in folders or () for name in ("zig", "zig.exe")]
    return next((file for file in files if file.is_file()), None)


def is_zig(command: Sequence[str]) -> bool:
    """Whether a command starts Zig as a C compiler: ``zig cc`` or ``python -m ziglang cc``, with any arguments."""
    direct = Path(command[0]).stem == "zig" and command[1:2] == ("cc",)
    return direct or tuple(command[1:4]) == ("-m", PACKAGE, "cc")


def spelled(flags: Iterable[str]) -> list[str]:
    """Flags with the names of processors that Zig has: ``x86_64_v3`` for ``x86-64-v3``."""
    return [
        flag.replace("x86-64", "x86_64").replace("-v", "_v") if flag.startswith("-march=") else flag for flag in flags
    ]


def folder() -> Path:
    """The folder of what the compiler keeps, which exists afterwards. Raises `BuildError`."""
    result = open_cache().root / COMPILER
    result.mkdir(mode=0o700, exist_ok=True)
    require_private(result)
    return result


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    """The variables that lead the compiler to its folder, and to a temporary one for the objects of one call."""
    with tempfile.TemporaryDirectory(prefix="kanegen-zig-", ignore_cleanup_errors=True) as objects:
        yield {"ZIG_GLOBAL_CACHE_DIR": str(folder()), "ZIG_LOCAL_CACHE_DIR": objects}


def prepare(command: Sequence[str], stamp: str) -> None:
    """Let the compiler make its parts of the C library, if it has not done so. Raises `BuildError`.

    ``stamp`` identifies the compiler: another version prepares itself again.
    """
    done = folder() / f"prepared-{text_digest((*command, stamp))[:16]}"
    if done.is_file():
        return
    with _preparing:
        if done.is_file():
            return
        with tempfile.TemporaryDirectory(prefix="kanegen-zig-") as name, environment() as variables:
            source = Path(name, "probe.c")
            source.write_text(_PROBE, encoding="utf-8")
            with activity(PREPARING, delay=0.0):
                run(
                    (*command, "-shared", "-fPIC", str(source), "-o", "probe.so", "-lm"),
                    Path(name),
                    variables,
                    group=True,
                )
        done.touch()
