"""The functions of a kernel on vector lanes, for evaluation at many states (templates/batch/kg_lanes.h).

Only a few statements differ from those of the kernel: guards and checks note the lanes that they refuse, and functions
return these lanes instead of a status. Models that are never evaluated in batches need no such text: it is printed when
it is needed, from the lowered program among the sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from kanegen._version import __version__
from kanegen.codegen.functions import Entry, entries, identifiers, prepare_body, user_names
from kanegen.codegen.kernel import program_of, users_context
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.printer import Printer
from kanegen.codegen.sources import Sources, include_closure, render, runtime_headers
from kanegen.codegen.writer import Writer
from kanegen.errors import BuildError
from kanegen.program.passes.code import Code, Evaluate, Part
from kanegen.program.passes.lower import Value
from kanegen.program.passes.lowered import LoweredFunction, LoweredProgram, arguments_of
from kanegen.program.records import Call, Check, Guard
from kanegen.resources import template_folder

FOLDER: Final = "batch"
"""The folder of the templates."""

BATCH_FILE: Final = "batch.c"
MANY_FILE: Final = "many.c"
LANE_HEADERS: Final = ("kg_rows.h", "kg_lanes.h", "kg_lane_types.h")
MANY_HEADERS: Final = ("kg_many.h", "kg_motions.h", "kg_group.h", "kg_powers.h", *LANE_HEADERS)

_SCHEDULED_LINES: Final = 500
"""Most lines of a function whose instructions GCC orders before it assigns registers.

Measured with gcc 12: 3 to 9 % less time for functions of 50 to 400 lines, 7 % more for one of 640 lines.
"""


class LanePrinter(Printer):
    """Prints conditions as masks, which have no ``!`` and ``||`` in C."""

    negation, either = "~", "|"


class LaneWriter(Writer):
    """Writes statements on lanes: guards, checks and parts note the lanes without a result."""

    printer = LanePrinter

    def passes_arguments(self, code: Code) -> bool:
        """Whether the function calls others with all its arguments: it does not call the fallbacks of guards."""
        return any(isinstance(statement, Evaluate | Part) for statement in code.statements)

    def _guard(self, guard: Guard[Value], holds: str) -> list[str]:
        return [*self._reason("Valid where", guard.reason), f"KG_REQUIRE({holds});"]

    def _check(self, check: Check[Value], holds: str) -> list[str]:
        return [*self._reason("Singular unless", check.reason), f"KG_REQUIRE({holds});"]

    def _part(self, part: Part) -> list[str]:
        return [f"redo |= {line}" for line in super()._part(part)]


def batch_sources(sources: Sources, name: str) -> dict[str, str]:
    """The files of the batch evaluation of one function, `BATCH_FILE` and headers, by name.

    Functions that need a linear solver with pivots, as the general form of constrained equations, have no form on
    lanes: their file evaluates them row by row. Raises `BuildError` for a function that the kernel lacks.
    """
    program = lowered_sources(sources)
    if name not in {function.name for function in program.functions if not function.internal}:
        raise BuildError(f"the kernel {sources.kernel!r} has no function {name!r}")
    function = program.function(name)
    needed = _on_lanes(program, function)
    functions = entries(program, needed, LaneWriter)
    symbols = program.symbols
    main = render(
        f"{FOLDER}/batch.c.jinja",
        name=name,
        evaluate=identifiers(program)[name] if needed else "",
        numbers={
            "Q": len(symbols.coordinates),
            "U": len(symbols.speeds),
            "S": len(symbols.states),
            "R": len(symbols.inputs),
            "FORCES": len(symbols.multipliers),
            "FREE": len(symbols.free),
            "PARAMETERS": len(symbols.parameters),
            "OUT": prod(function.shape),
        },
        scheduled=all(_lines(entry) < _SCHEDULED_LINES for entry in functions),
        prepares=bool(needed),
        **lane_context(sources, program, functions),
    )
    return with_headers(sources, {BATCH_FILE: main, **lane_headers("kg_batch.h", *LANE_HEADERS)})


def many_sources(sources: Sources, name: str, method: str, quantity: str = "") -> dict[str, str] | None:
    """The files of the integration of many motions, `MANY_FILE` and headers, by name.

    None for a right-hand side ``name`` that has no form on lanes. ``quantity``: a function that is reduced; evaluated
    row by row if it has no form on lanes.
    """
    program = lowered_sources(sources)
    functions = _on_lanes(program, program.function(name))
    if not functions:
        return None
    others = _on_lanes(program, program.function(quantity)) if quantity else []
    symbols, names = program.symbols, identifiers(program)
    main = render(
        f"{FOLDER}/many.c.jinja",
        method=METHODS[method],
        sizes={
            "N_Q": len(symbols.coordinates),
            "N_U": len(symbols.speeds),
            "N_S": len(symbols.states),
            "N": len(symbols.coordinates) + len(symbols.speeds) + len(symbols.states),
            "N_R": len(symbols.inputs),
        },
        rhs=names[name],
        quantity=names[quantity] if others else "",
        switches=bool(program.switches),
        prepares=False,
        **lane_context(sources, program, entries(program, dict.fromkeys([*functions, *others]), LaneWriter)),
    )
    tableau = {"kg_tableaux.h": runtime_headers((method,))["kg_tableaux.h"]}
    return with_headers(sources, {MANY_FILE: main, **lane_headers(*MANY_HEADERS), **tableau})


def lowered_sources(sources: Sources) -> LoweredProgram:
    """The lowered program among the sources. Raises `BuildError`."""
    program = program_of(sources)
    if program is None:
        raise BuildError(f"{sources.kernel!r} was changed after it was generated, and cannot run on lanes; build again")
    return program


def _on_lanes(program: LoweredProgram, function: LoweredFunction) -> list[LoweredFunction]:
    """The function after those that it evaluates; none if one of them calls a runtime kernel with pivots."""
    found: dict[LoweredFunction, None] = {}

    def visit(current: LoweredFunction) -> None:
        for statement in current.code.statements:
            if isinstance(statement, Evaluate) and program.function(statement.function) not in found:
                visit(program.function(statement.function))
        found[current] = None

    visit(function)
    calls = any(isinstance(statement, Call) for f in found for statement in f.code.statements)
    return [] if calls else list(found)


def _lines(entry: Entry) -> int:
    """The most lines of a C function among a function and its parts."""
    bodies = (entry.body, *(part.body for part in entry.parts))
    return max(sum(len(section.lines) for section in body.sections) for body in bodies)


def lane_context(sources: Sources, program: LoweredProgram, functions: Sequence[Entry]) -> dict[str, Any]:
    """What the templates of batches and of many motions need; ``functions``: those on lanes."""
    users = [(name, program.users[payload]) for payload, name in user_names(program).items()]
    return {
        **users_context(program),
        "lane_users": [(name, arguments_of(user)) for name, user in users],
        "version": __version__,
        "model": sources.name,
        "kernel": sources.kernel,
        "n_p": len(program.symbols.parameters),
        "n_g": len(program.symbols.gains),
        "n_c": program.n_constants,
        "prepare": prepare_body(program, LaneWriter),
        "functions": functions,
    }


def lane_headers(*names: str) -> dict[str, str]:
    """Headers of the folder of code on lanes, by name."""
    return {name: header_text(f"{FOLDER}/{name}") for name in names}


def header_text(path: str) -> str:
    """The text of a template without anything to fill in."""
    return (template_folder() / path).read_text(encoding="utf-8")


def with_headers(sources: Sources, files: dict[str, str]) -> dict[str, str]:
    """Files with the headers that they include."""
    return {**files, **include_closure(files, sources.files)}
