"""The C functions of a kernel: names, declarations and bodies of everything in the function table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from kanegen.codegen.labels import Labels, labels
from kanegen.codegen.statements import Body, Calls, body, part_body
from kanegen.codegen.text import comment, string
from kanegen.codegen.users import UserCode
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.schedule import Code, Gather, schedule, split
from kanegen.program.records import Function, Program

ARGUMENTS = ("t", "q", "u", "r", "p", "work", "out")
GATHERED = ("sine", "cosine")


@dataclass(frozen=True)
class Local:
    """A pointer into an argument: ``name = base + offset``."""

    name: str
    base: str
    offset: int
    constant: bool


@dataclass(frozen=True)
class PartEntry:
    """One part of a long function; ``gathered``: whether it gets the sines and cosines."""

    identifier: str
    gathered: bool
    locals: tuple[Local, ...]
    unused: tuple[str, ...]
    body: Body


@dataclass(frozen=True)
class Entry:
    """One C function: what the template prints of it.

    ``rows`` and ``cols`` are those of ``kg_function``; ``legend`` tells the reader what the function stores.
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


def entries(program: Program, users: UserCode) -> tuple[Entry, ...]:
    """All functions of a program, each after those it calls."""
    codes = {f.name: split(schedule(f, program.constants)) for f in program.functions}
    names = identifiers(program.functions)
    return tuple(_entry(f, program, users, codes, names) for f in in_order_of_use(program))


def identifiers(functions: Iterable[Function]) -> dict[str, str]:
    """The C name of each function: its own where that is an identifier, else a number."""
    result: dict[str, str] = {}
    for k, function in enumerate(functions):
        plain = function.name.isidentifier() and function.name.isascii()
        result[function.name] = f"evaluate_{function.name}" if plain else f"evaluate_{k}"
    return result


def in_order_of_use(program: Program) -> list[Function]:
    """The functions of the table and those they call, each after those it calls; else as in the program."""
    result: dict[str, Function] = {}

    def visit(function: Function) -> None:
        if function.name not in result:
            for called in program.callees(function):
                visit(called)
            result[function.name] = function

    for function in program.functions:
        if not function.internal:
            visit(function)
    return list(result.values())


def _arrays(function: Function, code: Code) -> dict[str, int]:
    """The arrays of a function in ``work``, in order, with their lengths."""
    return {**function.arrays, "kept": len(code.kept)} if code.kept else dict(function.arrays)


def _work(function: Function, program: Program, codes: dict[str, Code]) -> int:
    """Work values of a function: its own arrays, then those of the largest function it calls."""
    called = [_work(other, program, codes) for other in program.callees(function)]
    return sum(_arrays(function, codes[function.name]).values()) + max(called, default=0)


def _entry(
    function: Function, program: Program, users: UserCode, codes: dict[str, Code], names: dict[str, str]
) -> Entry:
    code, identifier = codes[function.name], names[function.name]
    arrays = _arrays(function, code)
    # What is called works behind the arrays of its caller: restrict forbids that it shares them.
    own = sum(arrays.values())
    rest = f"work + {own}" if own else "work"
    others = {name: f"{c}(t, q, u, r, p, {rest}" for name, c in names.items()}
    arguments = ", ".join(ARGUMENTS + (GATHERED if _gathers(code) else ()))
    parts = {part.number: f"{identifier}_part_{part.number}({arguments})" for part in code.parts}
    calls = Calls(users.names, others, parts)
    stored = labels(function, program.symbols)
    text = body(code, calls, stored.at)
    rows, cols = (*function.shape, 0)[:2] if function.shape else (-1, 0)
    return Entry(
        name=string(function.name),
        title=comment(function.name),
        identifier=identifier,
        summary=comment(function.summary),
        legend=_legend(function, program, stored),
        rows=rows,
        cols=cols,
        work=_work(function, program, codes),
        internal=function.internal,
        locals=_locals(arrays, program, text),
        unused=() if text.passes_arguments else _unused(arrays, text),
        parts=_parts(identifier, code, arrays, program, calls, stored),
        body=text,
    )


def _legend(function: Function, program: Program, stored: Labels) -> str:
    """Name, size, meaning and cost of a function in one line."""
    size = "".join(f"[{n}]" for n in function.shape)
    layout = f"; {stored.layout}" if stored.layout else ""
    hoisted, derived = operation_count(function, program.constants), operation_count(function)
    before = f" ({derived})" if derived != hoisted else ""
    return f"{comment(function.name)}{size}: {comment(function.summary)}; {hoisted} operations{before}{layout}"


def _gathers(code: Code) -> bool:
    return any(isinstance(statement, Gather) for statement in code.statements)


def _parts(
    identifier: str, code: Code, arrays: dict[str, int], program: Program, calls: Calls, stored: Labels
) -> tuple[PartEntry, ...]:
    result = []
    gathered = _gathers(code)
    for part in code.parts:
        text = part_body(part, code.kept, calls, stored.at)
        unused = _unused(arrays, text)
        if gathered:
            unused += tuple(name for name in GATHERED if name not in text.arrays)
        locals_ = _locals(arrays, program, text)
        result.append(PartEntry(f"{identifier}_part_{part.number}", gathered, locals_, unused, text))
    return tuple(result)


def _locals(arrays: dict[str, int], program: Program, text: Body) -> tuple[Local, ...]:
    n_p, n_g = len(program.symbols.parameters), len(program.symbols.gains)
    inputs = [Local("g", "p", n_p, True), Local("c", "p", n_p + n_g, True)]
    offsets = accumulate(arrays.values(), initial=0)
    work = [Local(name, "work", offset, False) for name, offset in zip(arrays, offsets, strict=False)]
    return tuple(local for local in (*inputs, *work) if local.name in text.arrays)


def _unused(arrays: dict[str, int], text: Body) -> tuple[str, ...]:
    used = set(text.arrays)
    if used & {"g", "c"}:
        used.add("p")
    if used & set(arrays):
        used.add("work")
    return tuple(name for name in ARGUMENTS if name not in used)
