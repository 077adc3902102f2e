"""Four example models on the boards: emits, compiles and runs them, and measures their steps."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from boards import OPTIMIZATION, RIG, WARNINGS, Board, Output, compile_object, compile_program, run_command, run_program
from ccompile import C_COMPILER
from footprint import Footprint, footprint
from systems import example

import kanegen as kg

PRECISIONS = ("float", "double")


@dataclass(frozen=True, eq=False)
class Case:
    """An example model, what ``kg.emit`` is told, and a run of ``steps`` steps of ``dt`` seconds.

    With ``controlled``, the inputs of each step are those that ``NAME_control`` computes before it.
    """

    example: str
    kind: str
    dt: float
    steps: int = 200
    options: Mapping[str, Any] = field(default_factory=dict)
    controlled: bool = False

    def __str__(self) -> str:
        return self.example

    def emit(self, folder: Path, precision: str, math: str) -> Project:
        """Write the project into ``folder``."""
        module = example(self.example)
        model, start = module.model(), module.INITIAL
        values = dict(zip((*model.coordinates, *model.speeds), (*start["q"], *start["u"]), strict=True))
        kg.emit(model, folder, name=self.example, values=values, precision=precision, math=math, **self.options)
        return Project(self, folder, precision)


LOOP = ("rhs", "Q", "displacements", "position_level", "velocity_level")
"""What a step with a projection onto the constraints calls."""

CASES = (
    Case("rolling_disk", "rolling without slip", 0.005, options={"functions": "rhs", "form": "range_space"}),
    Case("slider_crank", "closed loop", 0.002, options={"functions": LOOP, "stabilization": kg.Projection()}),
    Case("bouncing_ball", "contact", 0.01, options={"functions": "rhs"}),
    Case("particle_tracking", "servo-constraint", 0.01, options={"functions": ("rhs", "control")}, controlled=True),
)


@dataclass(frozen=True)
class Run:
    """What the program ``rig/steps.c`` printed: the state after each step, and instructions and memory of the steps.

    ``context`` is the size of the context and ``stack`` what a step used of the stack, in bytes.
    """

    states: np.ndarray
    instructions: tuple[int, ...]
    context: int
    stack: int


@dataclass(frozen=True)
class Project:
    """An emitted project in ``folder``."""

    case: Case
    folder: Path
    precision: str

    @property
    def source(self) -> Path:
        return self.folder / f"{self.case.example}.c"

    @property
    def entries(self) -> tuple[str, ...]:
        """The functions that a firmware calls."""
        called = ("step", "init", *(("control",) if self.case.controlled else ()))
        return tuple(f"{self.case.example}_{name}" for name in called)

    def compiled(self, board: Board, folder: Path, *flags: str) -> Path:
        """The object file of the project in ``folder``."""
        target = folder / f"{board.name}.o"
        compile_object(board, target, self.source, *flags)
        return target

    def run(self, board: Board, compiled: Path) -> Run:
        """Step on a board."""
        program = compiled.with_suffix(".steps")
        compile_program(board, program, [RIG / "steps.c", compiled], *self._defines())
        output = run_program(board, program)
        return self._read(output, board)

    def self_test(self, board: Board, compiled: Path) -> Output:
        """Run the project's self-test on a board."""
        program = compiled.with_suffix(".selftest")
        sources = [RIG / "selftest.c", RIG / "console.c", self.folder / f"{self.case}_selftest.c", compiled]
        flags = (f"-DMODEL={self.case}", "-DKG_SELFTEST_NO_MAIN", "-I", str(self.folder), *board.printf)
        compile_program(board, program, sources, *flags)
        return run_program(board, program)

    def run_here(self, folder: Path) -> Run:
        """Step on this computer, with the same options of the compiler."""
        program = folder / "here"
        sources = [str(path) for path in (RIG / "steps.c", RIG / "computer.c", self.source)]
        command = [C_COMPILER.command, *OPTIMIZATION, *WARNINGS, "-I", str(RIG), *self._defines()]
        run_command([*command, *sources, "-lm", "-o", str(program)])
        return self._read(Output.of(0, run_command([str(program)])), None)

    def footprint(self, board: Board, compiled: Path) -> Footprint:
        """Memory of the functions that a firmware calls."""
        return footprint(board, compiled, self.entries)

    def stack_bound(self, memory: Footprint) -> int:
        """Bytes of stack that the code of the project needs at most, in what is called in a control loop."""
        return max(memory.calls.deepest(name) for name in self.entries if name != f"{self.case}_init")

    def _defines(self) -> list[str]:
        case, name = self.case, self.case.example
        values = [f"-DMODEL={name}", f'-DHEADER="{name}.h"', f"-DSTEPS={case.steps}", f"-DDT={case.dt!r}"]
        return [*values, "-I", str(self.folder), *(["-DCONTROL"] if case.controlled else [])]

    def _read(self, output: Output, board: Board | None) -> Run:
        assert output.status == 0, output.text
        word = "f" if self.precision == "float" else "d"
        rows = [bytes.fromhex(row) for row in output.values["state"]]
        states = np.array([struct.unpack(f"<{len(row) // struct.calcsize(word)}{word}", row) for row in rows])
        assert len(states) == self.case.steps, output.text
        ticks = output.numbers("step")
        nothing = output.numbers("nothing")[0]
        counted = tuple(0 if board is None else board.instructions(each - nothing) for each in ticks)
        return Run(states, counted, output.numbers("context")[0], output.numbers("stack")[0])
