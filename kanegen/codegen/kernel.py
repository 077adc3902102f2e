"""The kernel of a model: one C file and its header."""

from __future__ import annotations

from dataclasses import asdict

from kanegen._version import __version__
from kanegen.codegen.entries import entries
from kanegen.codegen.environment import render, runtime_headers
from kanegen.codegen.sources import Sources
from kanegen.codegen.statements import Calls, body
from kanegen.codegen.text import comment, stem, string
from kanegen.codegen.users import user_code
from kanegen.codes import ContactLaw
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.schedule import schedule_constants
from kanegen.program.records import Call, ContactEntry, EventEntry, Program


def emit_sources(program: Program, *, digest: str, options_text: str = "") -> Sources:
    """The sources of a program: kernel, header and the runtime headers.

    Parameters
    ----------
    program
        After `kanegen.program.passes.lower.hoist`.
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
    functions = entries(program, users)
    return {
        "version": __version__,
        "model": comment(program.name),
        "model_string": string(program.name),
        "stem": stem(program.name),
        "digest": digest,
        "digest_string": string(digest),
        "options": _options(program, options_text),
        "legends": _legends(program),
        "memory": _memory(program),
        "n_q": len(symbols.coordinates),
        "n_u": len(symbols.speeds),
        "n_r": len(symbols.inputs),
        "n_hidden": len(symbols.hidden),
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
        "kernel_headers": _kernel_headers(program),
        "entries": functions,
        "contacts": [_contact(contact) for contact in program.contacts],
        "n_rows": sum((contact.normal >= 0) + contact.directions for contact in program.contacts),
        "events": [_event(k, event) for k, event in enumerate(program.events)],
        "n_work": max((entry.work for entry in functions), default=0),
        "has_parts": any(entry.parts for entry in functions),
        "prepare": body(constants, Calls(users.names, {}, {})),
    }


def _options(program: Program, text: str) -> str:
    """The options in words, then the functions that the kernel holds."""
    names = " ".join(function.name for function in program.functions if not function.internal)
    return comment(f"{text}; functions {names}" if text else f"functions {names}")


def _contact(contact: ContactEntry) -> dict[str, object]:
    return {**asdict(contact), "name": string(contact.name), "law": f"KG_LAW_{ContactLaw[contact.law.upper()].name}"}


def _event(number: int, event: EventEntry) -> dict[str, object]:
    return {**asdict(event), "name": string(event.name), "number": number}


def _kernel_headers(program: Program) -> list[str]:
    """The runtime headers with the kernels the program calls: a compiler need not read the others."""
    calls = {step.kernel for f in program.functions for step in f.steps if isinstance(step, Call)}
    return sorted({KERNELS[kernel].header for kernel in calls})


def _memory(program: Program) -> str:
    """How the array p is laid out."""
    n_p, n_g, n_c = len(program.symbols.parameters), len(program.symbols.gains), len(program.constants)
    parts = [f"p ({_counted(n_p, 'parameter')})"]
    parts += [f"g ({_counted(n_g, 'gain')}, from p[{n_p}])"] if n_g else []
    parts += [f"c ({_counted(n_c, 'constant')} computed by prepare, from p[{n_p + n_g}])"] if n_c else []
    return f"The array p holds, in this order: {', '.join(parts)}."


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _legends(program: Program) -> list[tuple[str, str, list[tuple[int, str]]]]:
    symbols = program.symbols
    arrays = [
        ("q", "coordinates", symbols.coordinates),
        ("u", "speeds", symbols.speeds),
        ("r", "inputs" + ", then those the runtime fills" * bool(symbols.hidden), (*symbols.inputs, *symbols.hidden)),
        ("p", "parameters", symbols.parameters),
        ("g", "gains of the stabilization", symbols.gains),
    ]
    return [(array, title, list(enumerate(map(comment, names)))) for array, title, names in arrays if names]
