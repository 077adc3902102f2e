"""The kernel of a model: one C file and its header."""

from __future__ import annotations

from kanegen._version import __version__
from kanegen.codegen.functions import Entry, entries, prepare_body, user_names
from kanegen.codegen.sources import Sources, render, runtime_headers, text_digest
from kanegen.codegen.tables import tables_context
from kanegen.codegen.text import comment, stem
from kanegen.errors import BuildError
from kanegen.graph.derivatives import reachable
from kanegen.graph.functions import Tabulated
from kanegen.precision import DOUBLE
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.lowered import LoweredProgram, UserFunction, lowered_program
from kanegen.program.passes.stored import PROGRAM_FILE, is_of_code, program_text, read_program
from kanegen.program.records import Call, Program


def emit_sources(program: Program, *, digest: str, options_text: str = "") -> Sources:
    """The sources of a program: kernel, header, the runtime headers, and the lowered program for other printers.

    Parameters
    ----------
    program
        After `kanegen.program.passes.lower.hoist`.
    digest
        Digest of the model, hexadecimal; part of the comment at the top and of the compiled model.
    options_text
        One line that names the options, for the comment at the top.

    Raises
    ------
    BuildError
        For numbers or names that C cannot represent.
    """
    name, lowered = stem(program.name), lowered_in_range(program)
    context = lowered_context(lowered, digest=digest, options_text=options_text)
    code = render("kernel/kernel.c.jinja", **context)
    files = {
        PROGRAM_FILE: program_text(lowered, text_digest([code])),
        f"{name}.c": code,
        f"{name}.h": render("kernel/kernel.h.jinja", **context),
        **runtime_headers(),
    }
    return Sources(name, digest, files)


def program_of(sources: Sources) -> LoweredProgram | None:
    """The program from which the kernel was printed; None if it is not there, or the kernel was changed since."""
    text = sources.files.get(PROGRAM_FILE, "")
    return read_program(text) if is_of_code(text, text_digest([sources.text(sources.kernel)])) else None


def kernel_context(program: Program, *, digest: str, options_text: str) -> dict[str, object]:
    """The variables of the templates for one model. Raises `BuildError` for numbers that C cannot represent."""
    return lowered_context(lowered_in_range(program), digest=digest, options_text=options_text)


def lowered_in_range(program: Program) -> LoweredProgram:
    """The lowered program. Raises `BuildError` for numbers that C cannot represent."""
    _require_range(program)
    return lowered_program(program)


def lowered_context(
    program: LoweredProgram, *, digest: str, options_text: str, functions: tuple[Entry, ...] | None = None
) -> dict[str, object]:
    """The variables of the templates for a lowered program; ``functions``: its C functions, where they are known."""
    symbols = program.symbols
    functions = entries(program) if functions is None else functions
    public = " ".join(function.name for function in program.functions if not function.internal)
    return {
        "version": __version__,
        "model": program.name,
        "stem": stem(program.name),
        "digest": digest,
        "options": comment(f"{options_text}; functions {public}" if options_text else f"functions {public}"),
        "legends": _legends(program),
        "memory": _memory(program),
        "symbols": symbols,
        "n_p": len(symbols.parameters),
        "n_g": len(symbols.gains),
        "n_c": program.n_constants,
        "headers": [f"{stem(program.name)}.h", *runtime_includes(program)],
        "runtime_folder": "",
        "has_table": True,
        "defines": (),
        "entries": functions,
        "contacts": program.contacts,
        "events": program.events,
        "switches": program.switches,
        "tables": program.tables,
        "angles": program.angles,
        "levels": list(dict.fromkeys(switch.levels for switch in program.switches if switch.levels)),
        "n_work": max((entry.work for entry in functions), default=0),
        "has_parts": any(entry.parts for entry in functions),
        "prepare": prepare_body(program),
        **users_context(program),
    }


def users_context(program: LoweredProgram) -> dict[str, object]:
    """The variables of the templates for the functions and tables of the user, in the order of their first calls."""
    users = [(name, program.users[payload]) for payload, name in user_names(program).items()]
    return {
        "precision": program.precision.name,
        "user_functions": [(name, user) for name, user in users if isinstance(user, UserFunction)],
        **tables_context(
            [(name, user) for name, user in users if not isinstance(user, UserFunction)], program.precision
        ),
    }


def runtime_includes(program: LoweredProgram) -> list[str]:
    """The headers of the runtime functions that a kernel calls, and no others, to shorten the compilation."""
    tables = any(not isinstance(user, UserFunction) for user in program.users.values())
    return [*headers_of_kernels(program), "kg_sincos.h", *(["kg_table.h"] if tables else [])]


def headers_of_kernels(program: LoweredProgram) -> list[str]:
    """The headers of the runtime kernels that a program calls."""
    calls = {s.kernel for function in program.functions for s in function.code.statements if isinstance(s, Call)}
    return sorted({KERNELS[kernel].header for kernel in calls})


def _require_range(program: Program) -> None:
    """Raise `BuildError` for constants that the scalar type cannot represent; it names all and where they are."""
    if program.precision == DOUBLE:
        return  # the printer refuses the few that double cannot represent; searching for them would take time
    places: dict[float, dict[str, None]] = {}
    for function in program.functions:
        for node in reachable(function.roots):
            numbers: tuple[float, ...] = (node.payload,) if node.op == "const" else ()
            if isinstance(node.payload, Tabulated):
                numbers = node.payload.numbers
            for number in numbers:
                if not program.precision.holds(number):
                    places.setdefault(number, {})[function.name] = None
    if places:
        text = "; ".join(f"{number} in {', '.join(names)}" for number, names in places.items())
        raise BuildError(program.precision.refusal(f"the model has constants beyond its precision ({text})"))


def _memory(program: LoweredProgram) -> str:
    """A sentence on the layout of the array p."""
    n_p, n_g, n_c = len(program.symbols.parameters), len(program.symbols.gains), program.n_constants
    parts = [f"p ({_counted(n_p, 'parameter')})"]
    parts += [f"g ({_counted(n_g, 'gain')}, from p[{n_p}])"] if n_g else []
    parts += [f"c ({_counted(n_c, 'constant')} computed by prepare, from p[{n_p + n_g}])"] if n_c else []
    return f"The array p holds, in this order: {', '.join(parts)}."


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _legends(program: LoweredProgram) -> list[tuple[str, str, tuple[str, ...]]]:
    symbols = program.symbols
    arrays = [
        ("q", "coordinates", symbols.coordinates),
        ("u", "speeds", symbols.speeds),
        ("s", "states", symbols.states),
        ("r", "inputs", symbols.inputs),
        ("forces", "of the contact rows", symbols.multipliers),
        ("free", "free vector of servo-constraints", symbols.free),
        ("p", "parameters", symbols.parameters),
        ("g", "gains of the stabilization", symbols.gains),
    ]
    return [entry for entry in arrays if entry[2]]
