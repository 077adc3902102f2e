"""The kernel of a model: one C file and its header."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from kanegen._version import __version__
from kanegen.emit.environment import render, runtime_headers
from kanegen.emit.sources import Sources
from kanegen.emit.statements import Body, body
from kanegen.emit.text import comment, stem, string
from kanegen.emit.users import UserCode, user_code
from kanegen.program.count import operation_count
from kanegen.program.records import Function, Guard, Program
from kanegen.program.schedule import schedule, schedule_constants

ARGUMENTS = ("t", "q", "u", "r", "p", "work", "out")


@dataclass(frozen=True)
class Local:
    """A pointer into an argument: ``name = base + offset``."""

    name: str
    base: str
    offset: int
    constant: bool


@dataclass(frozen=True)
class Entry:
    """One C function: what the template prints of it."""

    name: str
    title: str
    identifier: str
    summary: str
    rows: int
    cols: int
    work: int
    operations: int
    unhoisted: int
    internal: bool
    locals: tuple[Local, ...]
    unused: tuple[str, ...]
    body: Body


def emit_sources(program: Program, *, digest: str, options_text: str = "") -> Sources:
    """The sources of a program: kernel, header and the runtime headers.

    Parameters
    ----------
    program
        After `kanegen.program.hoist.hoist`.
    digest
        Digest of the model, hexadecimal; printed and compiled in.
    options_text
        One line that names the options, for the reader of the C.

    Raises
    ------
    BuildError
        For numbers or names that C cannot hold.
    """
    name = stem(program.name)
    context = kernel_context(program, digest=digest, options_text=options_text)
    files = {
        f"{name}.c": render("kernel.c.jinja", **context),
        f"{name}.h": render("kernel.h.jinja", **context),
        **runtime_headers(),
    }
    return Sources(name, digest, files)


def kernel_context(program: Program, *, digest: str, options_text: str) -> dict[str, object]:
    """What the templates of one model print, C text and numbers only."""
    symbols = program.symbols
    users = user_code(program)
    constants = schedule_constants(program)
    return {
        "version": __version__,
        "model": comment(program.name),
        "model_string": string(program.name),
        "stem": stem(program.name),
        "digest": digest,
        "digest_string": string(digest),
        "options": comment(options_text),
        "legends": _legends(program),
        "n_q": len(symbols.coordinates),
        "n_u": len(symbols.speeds),
        "n_r": len(symbols.inputs),
        "n_p": len(symbols.parameters),
        "n_g": len(symbols.gains),
        "n_c": len(program.constants),
        "names": {
            "coordinates": [string(name) for name in symbols.coordinates],
            "speeds": [string(name) for name in symbols.speeds],
            "inputs": [string(name) for name in symbols.inputs],
            "parameters": [string(name) for name in symbols.parameters],
        },
        "users": users,
        "entries": _entries(program, users),
        "prepare": body(constants, users.names, {}),
    }


def _legends(program: Program) -> list[tuple[str, str, list[tuple[int, str]]]]:
    symbols = program.symbols
    arrays = [
        ("q", "coordinates", symbols.coordinates),
        ("u", "speeds", symbols.speeds),
        ("r", "inputs", symbols.inputs),
        ("p", "parameters", symbols.parameters),
        ("g", "gains of the stabilisation", symbols.gains),
    ]
    return [(array, title, list(enumerate(map(comment, names)))) for array, title, names in arrays if names]


def identifiers(functions: Iterable[Function]) -> dict[str, str]:
    """The C name of each function: its own where that is an identifier, else a number."""
    result: dict[str, str] = {}
    for k, function in enumerate(functions):
        plain = function.name.isidentifier() and function.name.isascii()
        result[function.name] = f"evaluate_{function.name}" if plain else f"evaluate_{k}"
    return result


def _entries(program: Program, users: UserCode) -> list[Entry]:
    names = identifiers(program.functions)
    works = {f.name: _work(f, program) for f in program.functions}
    return [_entry(f, program, users, names, works[f.name]) for f in in_order_of_use(program)]


def in_order_of_use(program: Program) -> list[Function]:
    """The functions, each after the fallbacks it calls; otherwise in the order of the program."""
    result: dict[str, Function] = {}

    def visit(function: Function) -> None:
        if function.name not in result:
            for step in function.steps:
                if isinstance(step, Guard) and step.otherwise is not None:
                    visit(program.function(step.otherwise))
            result[function.name] = function

    for function in program.functions:
        visit(function)
    return list(result.values())


def _work(function: Function, program: Program) -> int:
    """Work values of a function: its own arrays, then those of the largest fallback."""
    fallbacks = [
        _work(program.function(step.otherwise), program)
        for step in function.steps
        if isinstance(step, Guard) and step.otherwise is not None
    ]
    return sum(function.arrays.values()) + max(fallbacks, default=0)


def _entry(function: Function, program: Program, users: UserCode, names: dict[str, str], work: int) -> Entry:
    own = sum(function.arrays.values())
    # A fallback works behind the arrays of its caller: restrict forbids that it shares them.
    rest = f"work + {own}" if own else "work"
    fallbacks = {name: f"{c_name}(t, q, u, r, p, {rest}, out)" for name, c_name in names.items()}
    text = body(schedule(function, program.constants), users.names, fallbacks)
    rows, cols = (*function.shape, 0, 0)[:2] if function.shape else (-1, 0)
    return Entry(
        name=string(function.name),
        title=comment(function.name),
        identifier=names[function.name],
        summary=comment(function.summary),
        rows=rows,
        cols=cols,
        work=work,
        operations=operation_count(function, program.constants),
        unhoisted=operation_count(function),
        internal=function.internal,
        locals=_locals(function, program, text),
        unused=_unused(function, text),
        body=text,
    )


def _locals(function: Function, program: Program, text: Body) -> tuple[Local, ...]:
    n_p, n_g = len(program.symbols.parameters), len(program.symbols.gains)
    inputs = [Local("g", "p", n_p, True), Local("c", "p", n_p + n_g, True)]
    offsets = accumulate(function.arrays.values(), initial=0)
    arrays = [Local(name, "work", k, False) for name, k in zip(function.arrays, offsets, strict=False)]
    return tuple(local for local in (*inputs, *arrays) if local.name in text.arrays)


def _unused(function: Function, text: Body) -> tuple[str, ...]:
    if text.falls_back:
        return ()
    used = set(text.arrays)
    if used & {"g", "c"}:
        used.add("p")
    if used & set(function.arrays):
        used.add("work")
    return tuple(name for name in ARGUMENTS if name not in used)
