"""The kernel of a model: one C file and its header."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from kanegen._version import __version__
from kanegen.codegen.functions import Calls, body, entries
from kanegen.codegen.sources import Sources, render, runtime_headers
from kanegen.codegen.text import comment, stem
from kanegen.errors import BuildError
from kanegen.graph.derivatives import reachable
from kanegen.graph.functions import Spline
from kanegen.precision import DOUBLE
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.schedule import schedule_constants
from kanegen.program.records import Call, Program


def emit_sources(program: Program, *, digest: str, options_text: str = "") -> Sources:
    """The sources of a program: kernel, header and the runtime headers.

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
    name = stem(program.name)
    context = kernel_context(program, digest=digest, options_text=options_text)
    files = {
        f"{name}.c": render("kernel.c.jinja", **context),
        f"{name}.h": render("kernel.h.jinja", **context),
        **runtime_headers(),
    }
    return Sources(name, digest, files)


def kernel_context(program: Program, *, digest: str, options_text: str) -> dict[str, object]:
    """The variables of the templates for one model."""
    _require_range(program)
    symbols = program.symbols
    users = _user_functions(program)
    functions = entries(program, users)
    public = " ".join(function.name for function in program.functions if not function.internal)
    return {
        "version": __version__,
        "model": program.name,
        "stem": stem(program.name),
        "precision": program.precision.name,
        "digest": digest,
        "options": comment(f"{options_text}; functions {public}" if options_text else f"functions {public}"),
        "legends": _legends(program),
        "memory": _memory(program),
        "symbols": symbols,
        "n_p": len(symbols.parameters),
        "n_g": len(symbols.gains),
        "n_c": len(program.constants),
        "user_functions": [(name, payload) for payload, name in users.items() if not isinstance(payload, Spline)],
        "splines": [(name, payload) for payload, name in users.items() if isinstance(payload, Spline)],
        "headers": _headers(program, users),
        "table_guard": "",
        "defines": (),
        "entries": functions,
        "contacts": program.contacts,
        "n_rows": sum((contact.normal >= 0) + contact.directions for contact in program.contacts),
        "events": program.events,
        "switches": program.switches,
        "tables": program.tables,
        "angles": program.angles,
        "levels": list(dict.fromkeys(switch.levels for switch in program.switches if switch.levels)),
        "n_work": max((entry.work for entry in functions), default=0),
        "has_parts": any(entry.parts for entry in functions),
        "prepare": body(schedule_constants(program), Calls(users, {}, {}), (), program.precision),
    }


def _headers(program: Program, users: Mapping[object, str]) -> list[str]:
    """The headers of a kernel: its own, and those of the runtime functions it calls, to shorten the compilation."""
    calls = {step.kernel for f in program.functions for step in f.steps if isinstance(step, Call)}
    splines = any(isinstance(payload, Spline) for payload in users)
    of_kernels = sorted({KERNELS[kernel].header for kernel in calls})
    return [f"{stem(program.name)}.h", *of_kernels, "kg_sincos.h", *(["kg_spline.h"] if splines else [])]


def _require_range(program: Program) -> None:
    """Raise `BuildError` for constants that the scalar type cannot represent; it names all and where they are."""
    if program.precision == DOUBLE:
        return  # the printer refuses the few that double cannot represent; searching for them would take time
    places: dict[float, dict[str, None]] = {}
    for function in program.functions:
        for node in reachable(function.roots):
            numbers = [node.payload] if node.op == "const" else ()
            if isinstance(node.payload, Spline):
                numbers = [*node.payload.breakpoints, *chain.from_iterable(node.payload.coefficients)]
            for number in numbers:
                if not program.precision.holds(number):
                    places.setdefault(number, {})[function.name] = None
    if places:
        text = "; ".join(f"{number} in {', '.join(names)}" for number, names in places.items())
        raise BuildError(program.precision.refusal(f"the model has constants beyond its precision ({text})"))


def _user_functions(program: Program) -> dict[object, str]:
    """The C names of the user's functions and splines that a program calls, in the order of the first calls."""
    nodes = reachable(root for function in program.functions for root in function.roots)
    called = dict.fromkeys(node.payload for node in nodes if node.op == "call")
    return {f: f"user_{'spline' if isinstance(f, Spline) else 'function'}_{k}" for k, f in enumerate(called)}


def _memory(program: Program) -> str:
    """A sentence on the layout of the array p."""
    n_p, n_g, n_c = len(program.symbols.parameters), len(program.symbols.gains), len(program.constants)
    parts = [f"p ({_counted(n_p, 'parameter')})"]
    parts += [f"g ({_counted(n_g, 'gain')}, from p[{n_p}])"] if n_g else []
    parts += [f"c ({_counted(n_c, 'constant')} computed by prepare, from p[{n_p + n_g}])"] if n_c else []
    return f"The array p holds, in this order: {', '.join(parts)}."


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _legends(program: Program) -> list[tuple[str, str, tuple[str, ...]]]:
    symbols = program.symbols
    arrays = [
        ("q", "coordinates", symbols.coordinates),
        ("u", "speeds", symbols.speeds),
        ("r", "inputs" + ", then values set by the runtime" * bool(symbols.hidden), (*symbols.inputs, *symbols.hidden)),
        ("p", "parameters", symbols.parameters),
        ("g", "gains of the stabilization", symbols.gains),
    ]
    return [entry for entry in arrays if entry[2]]
