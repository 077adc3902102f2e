"""Microcontrollers under QEMU: compiles C with the start-up code of ``tests/embedded/rig``, runs it and measures it.

Instructions are counted by the clock of the emulator: with ``-icount shift=N`` each instruction takes 2^N ns. RISC-V
has a register with the number of instructions, which is exact with ``shift=0``. The clock of the Cortex-M boards,
SysTick, counts at 25 MHz, one tick every 40 instructions with ``shift=0``. With ``shift=7`` an instruction takes
128 ns, 3.2 ticks, and the difference of two readings gives the number of instructions without an error.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

RIG = Path(__file__).parents[1] / "embedded" / "rig"
OPTIMIZATION = ("-O2", "-std=c99", "-ffp-contract=off", "-fno-math-errno", "-ffunction-sections", "-fdata-sections")
WARNINGS = ("-Wall", "-Wextra", "-Werror")
SYSTICK_HERTZ = 25e6
RUN_SECONDS = 60.0
FAULT = 70
"""Exit status of a program after an exception of the processor (board.h)."""


@dataclass(frozen=True)
class Tool:
    """A command, the Debian packages that provide it, and a file of the C library that its compiler must find."""

    command: str
    packages: str
    library: str = ""

    def missing(self) -> bool:
        """Whether this machine lacks the command, or the C library."""
        if shutil.which(self.command) is None:
            return True
        # A compiler prints the bare name of a file that it does not find.
        question = [self.command, f"-print-file-name={self.library}"]
        return bool(self.library) and run_command(question).strip() == self.library


@dataclass(frozen=True)
class Board:
    """A processor on a machine of QEMU.

    ``target`` are the compiler's options that select processor and C library. ``precisions`` are the scalar types that
    the floating-point unit knows; software computes with others. ``shift`` is the exponent of ``-icount``, and
    ``hertz`` is the frequency of the clock, None for a clock that counts instructions. ``printf`` are the options with
    which the C library prints floating-point numbers.
    """

    name: str
    title: str
    compiler: Tool
    target: tuple[str, ...]
    precisions: tuple[str, ...]
    emulator: Tool
    machine: tuple[str, ...]
    startup: str
    script: str
    shift: int
    hertz: float | None
    printf: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def require(self) -> None:
        """Skip the test if a tool is missing, and say which package has it."""
        if lacks := [tool for tool in (self.compiler, self.emulator) if tool.missing()]:
            what = "; ".join(f"{tool.command} is not installed (packages: {tool.packages})" for tool in lacks)
            pytest.skip(f"{what}: nothing runs on {self.title}")

    def instructions(self, ticks: int, shift: int | None = None) -> int:
        """The number of instructions between two readings of the clock, from a run with ``-icount shift=``."""
        if self.hertz is None:
            return ticks
        seconds = ticks / self.hertz
        return round(seconds * 1e9 / 2 ** (self.shift if shift is None else shift))


ARM_COMPILER = Tool("arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi", "nano.specs")
ARM_EMULATOR = Tool("qemu-system-arm", "qemu-system-arm")
RISCV_COMPILER = Tool(
    "riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf", "picolibc.specs"
)


def _cortex_m(name: str, title: str, cpu: str, fpu: str, machine: str, *precisions: str) -> Board:
    target = (f"-mcpu={cpu}", "-mthumb", "-mfloat-abi=hard", f"-mfpu={fpu}", "-specs=nano.specs")
    return Board(
        name,
        title,
        ARM_COMPILER,
        target,
        precisions,
        ARM_EMULATOR,
        ("-M", machine),
        startup="cortex_m.c",
        script="cortex_m.ld",
        shift=7,
        hertz=SYSTICK_HERTZ,
        printf=("-Wl,-u,_printf_float",),
    )


def _riscv(name: str, title: str, arch: str, abi: str, bits: int, *precisions: str) -> Board:
    target = (f"-march={arch}", f"-mabi={abi}", "-mcmodel=medany", "-specs=picolibc.specs")
    emulator = Tool(f"qemu-system-riscv{bits}", "qemu-system-misc")
    machine = ("-M", "virt", "-bios", "none")
    return Board(
        name,
        title,
        RISCV_COMPILER,
        target,
        precisions,
        emulator,
        machine,
        startup="riscv.c",
        script="riscv.ld",
        shift=0,
        hertz=None,
    )


BOARDS = (
    _cortex_m("cortex-m4f", "Cortex-M4F", "cortex-m4", "fpv4-sp-d16", "mps2-an386", "float"),
    _cortex_m("cortex-m7", "Cortex-M7", "cortex-m7", "fpv5-d16", "mps2-an500", "float", "double"),
    _riscv("rv32imafc", "RISC-V RV32IMAFC", "rv32imafc", "ilp32f", 32, "float"),
    _riscv("rv64gc", "RISC-V RV64GC", "rv64gc", "lp64d", 64, "float", "double"),
)


@dataclass(frozen=True)
class Output:
    """What a program printed: the values of all lines ``name value``, by name, and its exit status."""

    status: int
    text: str
    values: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, text: str) -> Output:
        values = defaultdict(list)
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            values[name].append(value)
        return cls(status, text, dict(values))

    def numbers(self, name: str) -> list[int]:
        """The values of the lines that begin with ``name``."""
        return [int(value) for value in self.values[name]]


def compile_object(board: Board, target: Path, source: Path, *flags: str) -> None:
    """Compile one source into the object file ``target``, and write its calls and frames beside it (``.ci``)."""
    command = [board.compiler.command, *board.target, *OPTIMIZATION, *WARNINGS, "-I", str(RIG), *flags]
    run_command([*command, "-fcallgraph-info=su", "-c", str(source), "-o", str(target)])


def compile_program(board: Board, target: Path, sources: Sequence[Path], *flags: str) -> None:
    """Link C sources and object files with the board's start-up code into ``target``; warnings are errors."""
    files = [str(path) for path in (RIG / board.startup, *sources)]
    script = ("-nostartfiles", f"-T{RIG / board.script}", "-Wl,--gc-sections")
    command = [board.compiler.command, *board.target, *OPTIMIZATION, *WARNINGS, "-I", str(RIG), *flags, *script]
    run_command([*command, *files, "-lm", "-o", str(target)])


def run_program(board: Board, program: Path, *, shift: int | None = None) -> Output:
    """Run a program until it ends; ``shift`` instead of the board's own."""
    counting = ("-icount", f"shift={board.shift if shift is None else shift}")
    console = ("-chardev", "stdio,id=console", "-semihosting-config", "enable=on,target=native,chardev=console")
    quiet = ("-display", "none", "-monitor", "none", "-serial", "none")
    command = [board.emulator.command, *board.machine, *quiet, *console, *counting, "-kernel", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, stdin=subprocess.DEVNULL)
    assert not done.stderr, done.stderr
    return Output.of(done.returncode, done.stdout)


def run_command(command: Sequence[str]) -> str:
    """The output of a compiler or a tool of its; an error or a warning fails the test."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    assert not done.stderr, done.stderr
    return done.stdout
