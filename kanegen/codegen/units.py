"""The C functions of a kernel one by one, for kernels in several files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kanegen.codegen.functions import Entry, entries
from kanegen.codegen.sources import environment
from kanegen.codegen.writer import Writer
from kanegen.program.passes.code import Gather, Statement
from kanegen.program.passes.lowered import LoweredFunction, LoweredProgram
from kanegen.program.records import Call

MOST_ANGLES: Final = 4
"""Most angles whose sines and cosines are computed by one call: the lanes of the largest vector."""

SINES, KERNEL, SMALL_KERNEL = 1300, 6500, 2200
"""What inlined sines and cosines, the call of a runtime kernel, and that of one that is optimized for size cost to
compile, in characters of other code."""


class CallingWriter(Writer):
    """Writes functions that call the code for sines and cosines in place of inlining it."""

    def _sines(self, length: int) -> str:
        calls = []
        for first in range(0, length, MOST_ANGLES):
            angles = [f"angle[{k}]" for k in range(first, min(length, first + MOST_ANGLES))]
            calls.append(f"kg_sincos_of_{len(angles)}({', '.join(angles)}, sine + {first}, cosine + {first});")
        return " ".join(calls)


@dataclass(frozen=True, eq=False)
class Unit:
    """A C function that can be in any file: a function of the program without its parts, or one of its parts.

    ``entry``: the function as the kernel prints it. ``part``: the number of the part, or None.
    """

    program: LoweredProgram
    function: LoweredFunction
    entry: Entry
    part: int | None = None

    @property
    def prototype(self) -> str:
        """The declaration, without its storage class."""
        if self.part is None:
            return f"int {self.entry.identifier}(KG_ARGUMENTS)"
        part = self.entry.parts[self.part]
        return f"void {part.identifier}({_macros().arguments(part)})"

    @property
    def name(self) -> str:
        """The name in the program; that of a part is its C name."""
        return self.function.name if self.part is None else self.entry.parts[self.part].identifier

    @property
    def callees(self) -> set[str]:
        """The names of the C functions that it calls or may call, parts included; a part calls none."""
        if self.part is not None:
            return set()
        return {*self.function.code.callees, *(part.identifier for part in self.entry.parts)}

    @property
    def kernels(self) -> int:
        """The number of calls of runtime kernels."""
        return sum(isinstance(statement, Call) for statement in self._statements)

    @property
    def angles(self) -> list[int]:
        """How many sines and cosines each statement computes that computes them."""
        return [len(statement.angles) for statement in self._statements if isinstance(statement, Gather)]

    @property
    def called_angles(self) -> set[int]:
        """How many each call computes, where they are called."""
        return {min(MOST_ANGLES, n - first) for n in self.angles for first in range(0, n, MOST_ANGLES)}

    @property
    def _statements(self) -> tuple[Statement, ...]:
        return self.function.code.statements if self.part is None else ()

    @cached_property
    def text(self) -> str:
        """The C code with inlined sines and cosines, for one file."""
        return self.definition("static ")

    @property
    def _calling(self) -> Entry:
        """The function with calls for sines and cosines."""
        return entries(self.program, [self.function], CallingWriter)[0]

    def cost(self, *, calls_sines: bool = False) -> int:
        """What the function costs to compile, in characters; one takes about 8 us with -O3."""
        return len(self.text) + KERNEL * self.kernels + (0 if calls_sines else SINES * len(self.angles))

    def definition(self, storage: str, *, calls_sines: bool = False) -> str:
        """The C code, with a storage class."""
        entry, macros = self._calling if calls_sines and self.angles else self.entry, _macros()
        text = (
            macros.definition(entry, storage)
            if self.part is None
            else macros.part_definition(entry, self.part, storage)
        )
        return str(text)


def _macros() -> Any:
    return environment().get_template("kernel/functions.c.jinja").module


def units(program: LoweredProgram) -> list[Unit]:
    """All C functions of a kernel but `prepare`, each after the functions that it calls."""
    result, needed = [], program.in_order_of_use()
    for function, entry in zip(needed, entries(program, needed), strict=True):
        result += [Unit(program, function, entry, number) for number in range(len(entry.parts))]
        result.append(Unit(program, function, entry))
    return result
