"""The C compiler: which one, its identity, and its flags."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Final

from kanegen.backends.cython import packaged
from kanegen.backends.cython.processes import WINDOWS, run
from kanegen.errors import BuildError, brief

COMPILER_NAMES = ("cc", "gcc", "clang")

QUICK_NAME: Final = "tcc"
"""A compiler that hardly optimizes, but takes hundredths of a second for a kernel."""

_FEW_PASSES = (
    *("-fno-tree-slp-vectorize", "-fno-tree-dse", "-fno-dse", "-fno-gcse", "-fno-tree-pre", "-fno-tree-fre"),
    *("-fno-tree-sink", "-fno-code-hoisting", "-fno-tree-dominator-opts"),
)
"""Flags without optimizations that gain nothing in straight-line code whose subexpressions are shared already."""

_INSTALL_ADVICE = (
    'Run: pip install "kanegen[compiler]"\n'
    "It installs a C compiler as a Python package, which is used where there is no other. Or install one for all "
    "programs (Debian and Ubuntu: apt install gcc libc6-dev; Fedora: dnf install gcc; macOS: xcode-select --install; "
    "conda: conda install c-compiler), or set the environment variable CC to the one to use. Models without contacts "
    'and events also run without a compiler, slowly: kg.build(model, backend="interpreted"), and --backend interpreted '
    "for kanegen build, run, report and verify (not for bench and fmu)."
)

KERNEL_FLAGS: Final = ("-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-fno-tree-slp-vectorize")


def _kernel_flags() -> tuple[str, ...]:
    """The flags of generated models, followed by those of the environment variable ``KANEGEN_KERNEL_FLAGS``."""
    text = os.environ.get("KANEGEN_KERNEL_FLAGS", "")
    try:
        return (*KERNEL_FLAGS, *shlex.split(text))
    except ValueError as error:  # a quotation mark without its counterpart
        raise BuildError(
            f"the environment variable KANEGEN_KERNEL_FLAGS is {text!r}, which cannot be read as flags of a compiler: "
            f"{error}"
        ) from error


def _is_quick() -> bool:
    """The environment variable ``KANEGEN_QUICK``."""
    text = os.environ.get("KANEGEN_QUICK", "").strip()
    if text not in {"", "0", "1"}:
        raise BuildError(f"the environment variable KANEGEN_QUICK is {text!r}; expected 0 or 1")
    return text == "1"


@dataclass(frozen=True, slots=True)
class CompilerOptions:
    """Flags of the C compiler; every field is part of the key under which an extension is cached.

    ``kernel``: for the generated model. ``steppers``: for the integration loops. ``runtime``: for other parts of the
    runtime, mostly contacts and events. ``lanes``: for batch evaluation. ``wrapper``: for the Cython module.
    ``common``: for all of them. ``link``: for linking. docs/building.md has the reason of each flag. ``-ffast-math``
    raises `BuildError`, because it would remove the checks for NaN and infinity.

    ``quick``: compile the generated model in the shortest time, for evaluations that take several times as long: with
    tcc where it is installed, else without optimizations. The default is False, or the environment variable
    ``KANEGEN_QUICK``: 0 or 1.
    """

    kernel: tuple[str, ...] = field(default_factory=_kernel_flags)
    steppers: tuple[str, ...] = ("-std=c99", "-O3", "-march=native", "-ffp-contract=fast", "-fno-tree-slp-vectorize")
    runtime: tuple[str, ...] = ("-std=c99", "-O1", "-march=native", "-ffp-contract=fast")
    lanes: tuple[str, ...] = ("-std=c99", "-O3", "-march=native", "-ffp-contract=fast", "-DKG_FUSED", "-Wno-psabi")
    wrapper: tuple[str, ...] = ("-O2",)
    link: tuple[str, ...] = ()
    common: tuple[str, ...] = ("-fno-math-errno", "-fPIC", "-fvisibility=hidden")
    quick: bool = field(default_factory=_is_quick)

    def __post_init__(self) -> None:
        for name in ("kernel", "steppers", "runtime", "lanes", "wrapper", "link", "common"):
            flags = getattr(self, name)
            if not isinstance(flags, list | tuple) or not all(isinstance(flag, str) for flag in flags):
                raise BuildError(f"compiler option {name}={brief(flags)}; expected a sequence of flags, each a str")
            object.__setattr__(self, name, tuple(flags))
            unsafe = {"-ffast-math", "-Ofast", "-ffinite-math-only"}.intersection(flags)
            if unsafe:
                raise BuildError(
                    f"compiler option {name} holds {', '.join(sorted(unsafe))}, with which NaN and infinity are not "
                    "detected; use -fno-math-errno, -ffp-contract=fast or -fno-trapping-math instead"
                )
        if not isinstance(self.quick, bool):
            raise BuildError(f"compiler option quick={brief(self.quick)}; expected True or False")

    @property
    def unoptimized(self) -> tuple[str, ...]:
        """The flags of kernels without optimizations."""
        return (*self.kernel, "-O0")

    def of_long_kernels(self, *, gcc: bool) -> tuple[str, ...]:
        """Flags for kernels with functions of thousands of lines; ``gcc``: whether the compiler is GCC.

        Measured with gcc 12 on a chain of 100 spatial links: 0.42 of the time to compile with -O3, for evaluations that
        take 1.02 times as long. With -O1 it is 0.48 of the time, for evaluations that take 1.15 times as long. Clang
        refuses names of passes that it does not have.
        """
        return (*("-O2" if flag == "-O3" else flag for flag in self.kernel), *(_FEW_PASSES if gcc else ()))

    @property
    def depends_on_cpu(self) -> bool:
        """Whether an extension depends on the processor on which it is compiled; code on lanes always does."""
        flags = self.kernel + self.steppers + self.runtime + self.wrapper + self.common
        return any(flag in {"-march=native", "-mcpu=native", "-mtune=native"} for flag in flags)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A C compiler: the command (absolute path, then fixed arguments), and a stamp that identifies its file.

    ``chosen``: why it was taken, which is part of messages about it.
    """

    command: tuple[str, ...]
    stamp: str
    chosen: str = ""

    @property
    def is_packaged(self) -> bool:
        """Whether it is the compiler of the Python package ziglang, whatever command starts it."""
        return packaged.is_zig(self.command)


def find_toolchain(environment: Mapping[str, str] | None = None) -> Toolchain:
    """The compiler of ``CC``, else the one Python was built with, else ``cc``, ``gcc``, ``clang`` or that of ziglang.

    Raises `BuildError` if there is none, and if ``CC`` cannot be run, even where another compiler exists.
    """
    variables = os.environ if environment is None else environment
    search_path, named = variables.get("PATH"), variables.get("CC", "")
    if named.strip():
        toolchain = _toolchain(named, search_path, f"the environment variable CC is {named!r}")
        if toolchain is None:
            raise BuildError(
                f"the environment variable CC is {named!r}, which is not a program that can be run. Unset it, or "
                "correct it. " + _INSTALL_ADVICE
            )
        return toolchain
    candidates = [sysconfig.get_config_var("CC") or "", *COMPILER_NAMES]
    for candidate in candidates:
        toolchain = _toolchain(candidate, search_path, f"{candidate!r} was found on the PATH")
        if toolchain is not None:
            return toolchain
    found = packaged_toolchain("no other compiler was found")
    if found is not None:
        return found
    looked_for = ", ".join(dict.fromkeys(c.split()[0] for c in candidates if c.split()))
    raise BuildError(
        f"no C compiler: looked for {looked_for} on PATH={search_path!r}, and for the Python package "
        f"{packaged.PACKAGE}. " + _INSTALL_ADVICE
    )


def quick_toolchain() -> Toolchain | None:
    """The compiler of kernels with ``quick=True``, if it is installed; the others compile everything else."""
    return _toolchain(QUICK_NAME, os.environ.get("PATH"), f"{QUICK_NAME!r} was found on the PATH, for quick=True")


def packaged_toolchain(chosen: str) -> Toolchain | None:
    """The compiler of the Python package ziglang, if it is installed; ``chosen``: why it is taken."""
    program = packaged.find_program()
    return None if program is None else Toolchain((str(program), *packaged.ARGUMENTS), _stamp(program), chosen)


def _toolchain(command: str, search_path: str | None, chosen: str) -> Toolchain | None:
    try:
        words = _words(command)
    except ValueError as error:  # a quotation mark without its counterpart
        raise BuildError(f"the command of the C compiler, CC={command!r}, cannot be read: {error}") from error
    path = shutil.which(words[0], path=search_path) if words else None
    if path is None:
        return None
    path = str(Path(path).absolute())
    return Toolchain((path, *words[1:]), _stamp(Path(path)), chosen)


def _words(command: str) -> list[str]:
    """The words of a command. On Windows a backslash separates folders, and quotation marks enclose a path."""
    if not WINDOWS:
        return shlex.split(command)
    return [word.strip("\"'") for word in shlex.split(command, posix=False)]


def _stamp(path: Path) -> str:
    """What changes when the compiler is updated: text of --version that is stored for a stamp remains valid."""
    real = path.resolve()
    status = real.stat()
    return f"{path}:{real}:{status.st_mtime_ns}:{status.st_size}"


def compiler_version(toolchain: Toolchain) -> str:
    """The text that the compiler prints for ``--version``. Raises `BuildError`."""
    return _run(toolchain, (*toolchain.command, "--version"), folder=None).strip()


def is_gcc(version: str) -> bool:
    """Whether a compiler that prints this for ``--version`` is GCC."""
    return "Free Software Foundation" in version


def _run(toolchain: Toolchain, command: Sequence[str], folder: Path | None) -> str:
    """Run the compiler and return its output. Raises `BuildError`, which says why this compiler was taken."""
    with packaged.environment() if toolchain.is_packaged else nullcontext() as environment:
        return run(command, folder, environment, group=toolchain.is_packaged, about=toolchain.chosen)


def cpu_identity() -> str:
    """The processor's name and instruction sets, on which ``-march=native`` depends."""
    known = _cpu_information()
    features = [known[name] for name in ("model name", "flags", "Features", "CPU part") if name in known]
    # platform.processor() can start a program, so it is called only without /proc/cpuinfo.
    return "\n".join([platform.machine(), *(features or [platform.processor()])])


def cpu_features() -> frozenset[str]:
    """The instruction sets of the processor by the names of Linux; empty on other systems."""
    known = _cpu_information()
    return frozenset((known.get("flags") or known.get("Features", "")).split())


@cache
def _cpu_information() -> Mapping[str, str]:
    """The lines of /proc/cpuinfo about the first processor, by name; empty without this file."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = list(takewhile(str.strip, file))
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def compile_object(
    toolchain: Toolchain, flags: Sequence[str], source: Path, target: Path, include: Sequence[str]
) -> None:
    """Compile one C file to an object file. Raises `BuildError`."""
    folders = [f"-I{folder}" for folder in include]
    flags = packaged.spelled(flags) if toolchain.is_packaged else flags
    make(toolchain, (*toolchain.command, *flags, *folders, "-c", str(source), "-o", str(target)), target)


def link(toolchain: Toolchain, options: CompilerOptions, parts: Sequence[str], target: Path) -> None:
    """Link objects (and C files, which are compiled) to a loadable library. Raises `BuildError`."""
    if toolchain.is_packaged:
        packaged.prepare(toolchain.command, toolchain.stamp)
    make(toolchain, link_command(toolchain, options, parts, str(target)), target)


def link_command(toolchain: Toolchain, options: CompilerOptions, parts: Sequence[str], target: str) -> list[str]:
    """The command that links objects (and C files, which it compiles) to a loadable extension."""
    shared: tuple[str, ...] = ("-shared",)
    if sys.platform == "darwin":
        shared = ("-shared" if toolchain.is_packaged else "-bundle", "-undefined", "dynamic_lookup")
    return [*toolchain.command, *shared, *parts, "-o", target, *options.link, "-lm"]


def make(toolchain: Toolchain, command: Sequence[str], target: Path) -> None:
    """Run a compiler in the folder of ``target``, the file that it writes. Raises `BuildError` if there is no file."""
    output = _run(toolchain, command, target.parent)
    if not target.is_file():
        raise BuildError(
            f"{Path(command[0]).name} reported success but did not write {target.name}; set CC to a C compiler",
            command=command,
            stderr=output,
            folder=target.parent,
        )
