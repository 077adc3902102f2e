"""The C functions of a kernel: names, declarations and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from kanegen.codegen.labels import labels
from kanegen.codegen.text import comment, string
from kanegen.codegen.writer import Body, Calls, Lines, Writer
from kanegen.precision import Precision
from kanegen.program.passes.code import Gather
from kanegen.program.passes.lower import Value
from kanegen.program.passes.lowered import LoweredFunction, LoweredProgram, UserFunction, UserSpline

ARGUMENTS = ("at", "p", "work", "out")
POINT = ("t", "q", "u", "s", "r", "forces", "free")
"""The fields of ``kg_point``, the record of arguments."""
DIRECTION = ("lanes_change", "lanes_p", "lanes_c", "lanes_kept", "lanes_out")
"""The further fields of ``kg_direction``."""
GATHERED = ("sine", "cosine")


MakeWriter: TypeAlias = Callable[[Mapping[Value, int], Calls, Sequence[str], Precision], Writer]


class Local(NamedTuple):
    """The time, or a pointer into an argument: ``name = base + offset``."""

    name: str
    base: str
    offset: int
    constant: bool


@dataclass(frozen=True)
class PartEntry:
    """One part of a long function; ``gathered``: whether sines and cosines are arguments."""

    identifier: str
    gathered: bool
    locals: tuple[Local, ...]
    unused: tuple[str, ...]
    body: Body


@dataclass(frozen=True)
class Entry:
    """One C function, as the template prints it.

    ``rows`` and ``cols`` are those of ``kg_function``; ``legend`` describes the stored values.
    """

    name: str
    title: str
    identifier: str
    summary: str
    legend: str
    rows: int
    cols: int
    work: int
    internal: bool
    locals: tuple[Local, ...]
    unused: tuple[str, ...]
    parts: tuple[PartEntry, ...]
    body: Body


def identifiers(program: LoweredProgram) -> dict[str, str]:
    """The C name of each function: it contains its own name if that is an identifier, else a number."""
    return {
        f.name: f"evaluate_{f.name if f.name.isidentifier() and f.name.isascii() else k}"
        for k, f in enumerate(program.functions)
    }


def part_identifier(function: str, number: int) -> str:
    """The C name of a part of the function with the C name ``function``."""
    return f"{function}_part_{number}"


_KINDS: Mapping[type, str] = {UserFunction: "function", UserSpline: "spline"}


def user_names(program: LoweredProgram) -> dict[object, str]:
    """The C names of the user's functions and tables, by the payload of the values that call them."""
    return {
        payload: f"user_{_KINDS.get(type(user), 'table')}_{k}"
        for k, (payload, user) in enumerate(program.users.items())
    }


def entries(
    program: LoweredProgram, functions: Iterable[LoweredFunction] | None = None, writer: MakeWriter = Writer
) -> tuple[Entry, ...]:
    """Functions of a program as C functions; by default all that public ones need, each after those it calls."""
    maker = _Maker(program, writer)
    return tuple(map(maker.entry, program.in_order_of_use() if functions is None else functions))


def prepare_body(program: LoweredProgram, writer: type[Writer] = Writer) -> Body:
    """The statements of the function that computes the constants."""
    code = program.prepare
    return writer(code.kept, Calls(user_names(program), {}, {}), (), program.precision).body(code)


class _Maker:
    """Makes the C functions of a program, whose statements ``writer`` writes."""

    def __init__(self, program: LoweredProgram, writer: MakeWriter) -> None:
        self._program, self._writer = program, writer
        self._names, self._users = identifiers(program), user_names(program)
        self._n_p, self._n_g = len(program.symbols.parameters), len(program.symbols.gains)

    def entry(self, function: LoweredFunction) -> Entry:
        identifier, arrays = self._names[function.name], function.work_arrays
        stored, layout = labels(function, self._program.symbols)
        calls = self._calls(function, identifier)
        text = self._new_writer(function, calls, stored).body(function.code)
        rows, cols = (*function.shape, 0)[:2] if function.shape else (-1, 0)
        return Entry(
            name=string(function.name),
            title=comment(function.name),
            identifier=identifier,
            summary=comment(function.summary),
            legend=_legend(function, layout),
            rows=rows,
            cols=cols,
            work=self._work(function),
            internal=function.internal,
            locals=self._locals(arrays, text),
            unused=() if text.passes_arguments else _unused(arrays, text),
            parts=self._parts(function, identifier, calls, stored),
            body=text,
        )

    def _new_writer(self, function: LoweredFunction, calls: Calls, stored: Sequence[str]) -> Writer:
        return self._writer(function.code.kept, calls, stored, self._program.precision)

    def _calls(self, function: LoweredFunction, identifier: str) -> Calls:
        # A called function works in the memory after the caller's arrays, because restrict forbids shared memory.
        own = sum(function.work_arrays.values())
        rest = f"work + {own}" if own else "work"
        others = {name: f"{c}(at, p, {rest}" for name, c in self._names.items()}
        arguments = ", ".join(ARGUMENTS + _gathered(function))
        parts = {p.number: f"{part_identifier(identifier, p.number)}({arguments})" for p in function.code.parts}
        return Calls(self._users, others, parts)

    def _parts(
        self, function: LoweredFunction, identifier: str, calls: Calls, stored: Sequence[str]
    ) -> tuple[PartEntry, ...]:
        result, gathered, arrays = [], _gathered(function), function.work_arrays
        for part in function.code.parts:
            writer = self._new_writer(function, calls, stored)
            text = Body((Lines("", tuple(writer.lines(part.statements))),), writer.arrays)
            unused = (*_unused(arrays, text), *(name for name in gathered if name not in text.arrays))
            name, locals_ = part_identifier(identifier, part.number), self._locals(arrays, text)
            result.append(PartEntry(name, bool(gathered), locals_, unused, text))
        return tuple(result)

    def _work(self, function: LoweredFunction) -> int:
        """Number of work values of a function: its own arrays and the largest need of the functions it calls."""
        called = [self._work(other) for other in self._program.callees(function)]
        return sum(function.work_arrays.values()) + max(called, default=0)

    def _locals(self, arrays: Mapping[str, int], text: Body) -> tuple[Local, ...]:
        inputs = [Local(name, f"at->{name}", 0, True) for name in (*POINT, *DIRECTION)]
        inputs += [Local("g", "p", self._n_p, True), Local("c", "p", self._n_p + self._n_g, True)]
        offsets = accumulate(arrays.values(), initial=0)
        work = [Local(name, "work", offset, False) for name, offset in zip(arrays, offsets, strict=False)]
        return tuple(local for local in (*inputs, *work) if local.name in text.arrays)


def _gathered(function: LoweredFunction) -> tuple[str, ...]:
    """The arrays of sines and cosines that a function passes to its parts if it gathers its angles."""
    return GATHERED if any(isinstance(statement, Gather) for statement in function.code.statements) else ()


def _legend(function: LoweredFunction, layout: str) -> str:
    """Name, size, meaning and operation count of a function in one line."""
    size = "".join(f"[{n}]" for n in function.shape)
    before = f" ({function.derived_operations})" if function.derived_operations != function.operations else ""
    summary = f"{comment(function.summary)}; {function.operations} operations{before}"
    text = f"{comment(function.name)}{size}: {summary}"
    return f"{text}; {layout}" if layout else text


def _unused(arrays: Mapping[str, int], text: Body) -> tuple[str, ...]:
    bases = {**dict.fromkeys((*POINT, *DIRECTION), "at"), "g": "p", "c": "p", **dict.fromkeys(arrays, "work")}
    used = text.arrays | {bases[name] for name in text.arrays if name in bases}
    return tuple(name for name in ARGUMENTS if name not in used)
