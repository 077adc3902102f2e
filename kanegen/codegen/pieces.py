"""A kernel as several C files, which compilers translate at the same time.

They are printed from the lowered program; the kernel stays one file for every other use. Two kinds of functions can be
in files of their own: parts of long functions (:data:`kanegen.program.passes.schedule.PART`), and those that only the
user calls. The latter call the code for sines and cosines instead of inlining it, which would take longer to compile
than all the rest of a small model. So do functions that are called in rare states only, where a guard does not hold;
runtime kernels that only they call are optimized for size, and compile in two fifths of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kanegen.codegen.kernel import headers_of_kernels, lowered_context
from kanegen.codegen.sources import render
from kanegen.codegen.units import KERNEL, SMALL_KERNEL, Unit, units
from kanegen.program.catalogue import spec_of
from kanegen.program.passes.code import Evaluate
from kanegen.program.passes.lowered import LoweredFunction, LoweredProgram
from kanegen.program.records import Guard

LONG: Final = 100_000
"""Length of a text in characters, from which dividing it saves more time than starting another compiler takes."""

SHORT: Final = 6000
"""The same of functions that only the user calls."""

LONG_FUNCTION: Final = 2000
"""Lines of a C function from which optimizations that take more than linear time are left out.

Without them, `n_link_pendulum(80)` (2026 lines) compiles in 0.25 of the time and is 3 % faster; `humanoid` (1738 lines)
compiles in 0.3 of the time, but is 3 to 5 % slower.
"""


@dataclass(frozen=True)
class Pieces:
    """The texts of the C files, none if the kernel is compiled as one file, and whether it has long functions.

    Long functions were divided, or are nearly as long.
    """

    texts: tuple[str, ...]
    has_long_functions: bool


def pieces(program: LoweredProgram, digest: str, count: int) -> Pieces:
    """A kernel in at most ``count`` files; the first one has what cannot be in others. ``digest``: of the model.

    One file, the kernel itself, if it is short, or has neither parts nor functions that only the user calls.
    """
    all_units = units(program)
    division = _division(program, all_units, count)
    lines = (unit.text.count("\n") for unit in all_units)
    is_long = any(unit.part is not None for unit in all_units) or any(n > LONG_FUNCTION for n in lines)
    return Pieces(tuple(division.texts(digest)) if division else (), is_long)


def _division(program: LoweredProgram, all_units: Sequence[Unit], count: int) -> Division | None:
    parts = [unit for unit in all_units if unit.part is not None]
    if parts:
        count = min(count, sum(len(unit.text) for unit in all_units) // LONG, len(parts))
        return Division(program, all_units, parts, count) if count > 1 else None
    often, seldom = _evaluated_in_runs(program)
    others = [unit for unit in all_units if unit.function not in often | seldom]
    length = sum(len(unit.text) for unit in others)
    if length < SHORT:
        return None
    # The code of a runtime kernel is compiled in every file that calls it: such functions are in the same one.
    others.sort(key=lambda unit: unit.kernels > 0)
    return Division(program, all_units, others, min(count, 1 + length // SHORT), frozenset(seldom))


def _evaluated_in_runs(program: LoweredProgram) -> tuple[set[LoweredFunction], set[LoweredFunction]]:
    """The functions that integrations evaluate often, and of those that they evaluate in rare states.

    The latter are what a guard calls, without the listed functions that it calls. They are in the same file: where they
    cannot be inlined, the code before the guard becomes slower (the right-hand side of `whipple_bicycle` by 8 %).
    """

    def named(names: Iterable[str | None]) -> set[LoweredFunction]:
        return {program.function(name) for name in names if name is not None}

    functions = program.in_order_of_use()
    listed = {function for function in functions if not function.internal}
    evaluated = {f: named(s.function for s in f.code.statements if isinstance(s, Evaluate)) for f in functions}
    fallbacks = {f: named(s.otherwise for s in f.code.statements if isinstance(s, Guard)) for f in functions}
    specs = {function: spec_of(function.name) for function in listed}

    roots = [f for f, spec in specs.items() if spec is None or spec.name == "rhs" or not spec.on_request]
    often = _reached(roots, lambda function: evaluated[function])
    behind_guards = {other for function in often for other in fallbacks[function]} - listed
    return often, _reached(behind_guards - often, lambda f: (evaluated[f] | fallbacks[f]) - listed - often)


def _reached(
    roots: Iterable[LoweredFunction], following: Callable[[LoweredFunction], set[LoweredFunction]]
) -> set[LoweredFunction]:
    """These functions and all that follow them."""
    found: set[LoweredFunction] = set()
    waiting = set(roots)
    while waiting:
        found |= waiting
        waiting = {other for function in waiting for other in following(function)} - found
    return found


@dataclass(frozen=True)
class Division:
    """A kernel in ``count`` files, among which the C functions ``moved`` are distributed; others are in the first one.

    ``seldom``: functions in the first file that are called in rare states only.
    """

    program: LoweredProgram
    units: Sequence[Unit]
    moved: Sequence[Unit]
    count: int
    seldom: frozenset[LoweredFunction] = frozenset()

    def texts(self, digest: str) -> list[str]:
        """The texts of the files."""
        functions = tuple(unit.entry for unit in self.units if unit.part is None)
        kernel = lowered_context(self.program, digest=digest, options_text="", functions=functions)
        groups = self._groups(len(render("kernel/tables.c.jinja", **kernel)))
        kernel_of_runs = any(unit.kernels for unit in groups[0] if unit.function not in self.seldom)
        for_size = [] if kernel_of_runs else headers_of_kernels(self.program)
        context = {
            **kernel,
            "declarations": [unit.prototype for unit in self.units if unit in self._shared],
            "sines": sorted({n for unit in self.units if self._calls_sines(unit) for n in unit.called_angles}),
            "count": len(groups),
        }
        return [
            render(
                "kernel/piece.c.jinja",
                **context,
                number=number,
                definitions=list(map(self._definition, group)),
                for_size=for_size if number == 0 else [],
            )
            for number, group in enumerate(groups)
        ]

    def _groups(self, rest: int) -> list[list[Unit]]:
        """The functions of each file; the files take about the same time. ``rest``: length of the rest of the first."""
        stay = [unit for unit in self.units if unit not in self._elsewhere]
        costs = {unit: unit.cost(calls_sines=self._calls_sines(unit)) for unit in self.units}
        filled = float(rest + sum(costs[unit] for unit in stay))
        if not any(unit.kernels for unit in stay if unit.function not in self.seldom):
            filled -= sum(unit.kernels for unit in stay) * (KERNEL - SMALL_KERNEL)
        share = (filled + sum(costs[unit] for unit in self.moved)) / self.count
        groups: list[list[Unit]] = [stay, *([] for _ in range(self.count - 1))]
        group = 0
        for unit in self.moved:
            while filled >= share and group < self.count - 1:
                filled, group = filled - share, group + 1
            groups[group].append(unit)
            filled += costs[unit]
        return [group for group in groups if group]

    @cached_property
    def _elsewhere(self) -> frozenset[Unit]:
        return frozenset(self.moved)

    @cached_property
    def _shared(self) -> set[Unit]:
        """The functions that other files may call."""
        called = {name for unit in self.moved for name in unit.callees}
        return {*self.moved, *(unit for unit in self.units if unit.name in called)}

    def _calls_sines(self, unit: Unit) -> bool:
        return unit in self._elsewhere or unit.function in self.seldom

    def _definition(self, unit: Unit) -> str:
        """The C code of a function, with external linkage if other files call it."""
        storage = "KG_PIECE " if unit in self._shared else "static "
        return unit.definition(storage, calls_sines=self._calls_sines(unit))
