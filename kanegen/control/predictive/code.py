"""The C files of a predictive controller: the functions of its model, its tables, and the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kanegen._version import __version__
from kanegen.backends.cython.batch import shared_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.codegen.kernel import kernel_context
from kanegen.codegen.lanes import header_text
from kanegen.codegen.sources import include_closure, render, runtime_headers
from kanegen.control.predictive.functions import END, PATH, POINT, ControllerFunctions
from kanegen.control.predictive.receding import Receding
from kanegen.control.predictive.sides import StageSides
from kanegen.control.predictive.status import SampleStatus
from kanegen.program.records import Program

_HEADERS: Final = (
    "kg_convex.h",
    "kg_interior.h",
    "kg_predictive.h",
    "kg_riccati.h",
    "kg_shooting.h",
    "kg_shooting_values.h",
    "kg_stage_program.h",
)

_VALUES: Final = {
    "kg_at_point": POINT,
    "kg_at_point_rest": f"{POINT}_rest",
    "kg_at_path": PATH,
    "kg_at_end": END,
    "kg_at_end_rest": f"{END}_rest",
}
"""The functions of the program by their names in C."""


@dataclass(frozen=True)
class Settings:
    """``horizon``, ``sample_time``, s; ``intervals``, and ``steps`` of the integration in each; the relative
    ``tolerance`` and most ``iterations`` of a quadratic program."""

    horizon: float
    sample_time: float
    intervals: int
    steps: int
    tolerance: float
    iterations: int


@dataclass(frozen=True)
class Sizes:
    """Numbers of states, planned inputs, inputs, inputs and constants, parameters, and lengths of arrays."""

    n_x: int
    n_u: int
    n_r: int
    n_held: int
    n_p: int
    n_prepared: int
    n_memory: int


@dataclass(frozen=True, eq=False)
class ControllerCode:
    """The files of a controller called ``name``."""

    name: str
    files: Mapping[str, str]
    sizes: Sizes

    def library(self, title: str) -> Path:
        """The compiled controller. Raises `BuildError`."""
        options = CompilerOptions()
        return shared_library(options, self.files, title, options.kernel, ("predictive control",))


def controller_code(
    name: str, problem: Receding, functions: ControllerFunctions, sides: StageSides, settings: Settings, digest: str
) -> ControllerCode:
    """The C file and header of a controller, with the headers that they include."""
    program = _used(functions.generated.program, {each.name for each in functions.stored}, problem)
    context: dict[str, Any] = kernel_context(program, digest=digest, options_text="predictive control")
    context |= {"stem": name, "has_table": False, "headers": ["kg_model.h", *context["headers"][1:]]}
    entries = {entry.title: entry for entry in context["entries"]}
    values = {
        title: {
            "identifier": entries[each].identifier if each in entries else "NULL",
            "places": functions.of(each).places,
        }
        for title, each in _VALUES.items()
    }
    macros = _macros(problem, functions, sides, settings)
    work = max((entry.work for entry in entries.values()), default=0)
    macros |= {"WORK": max(1, work), "MOST_VALUES": max(1, *(len(each["places"]) for each in values.values()))}
    sizes = _sizes(program, macros)
    context |= {
        **vars(sizes),
        **_numbers(problem, sides, settings),
        "name": name,
        "version": __version__,
        "sizes": list(macros.items()),
        "values": values,
        "statuses": list(SampleStatus),
        "legends": context["legends"],
    }
    kernel = render("kernel/kernel.c.jinja", **context)
    context["legends"] = _legends(program, problem)
    files = {
        f"{name}_controller.c": render("control/controller.c.jinja", **context, kernel=kernel),
        f"{name}_controller.h": render("control/controller.h.jinja", **context),
    }
    own = {header: header_text(f"control/{header}") for header in _HEADERS}
    return ControllerCode(name, {**files, **include_closure(files, {**runtime_headers(), **own})}, sizes)


def _used(program: Program, used: set[str], problem: Receding) -> Program:
    """The program with all functions internal that are not ``used``, and with the constants as inputs."""
    functions = tuple(replace(f, internal=f.name not in used) for f in program.functions)
    return replace(program, functions=functions, symbols=replace(program.symbols, inputs=problem.held_names))


def _macros(problem: Receding, functions: ControllerFunctions, sides: StageSides, settings: Settings) -> dict[str, int]:
    """The sizes that the headers read, by name."""
    statement = problem.statement
    model, running, final = statement.model, problem.running, problem.final
    n_paths = len(problem.path)
    n_end_paths = len(problem.end) + functions.with_inputs.count(False)
    return {
        "X": statement.n_state,
        "U": len(problem.inputs),
        "COORDINATES": len(model.coordinates),
        "SPEEDS": len(model.speeds),
        "INPUTS": len(problem.held),
        "OUTPUTS": len(model.inputs),
        "INTERVALS": settings.intervals,
        "STEPS": settings.steps,
        "MOST_ITERATIONS": settings.iterations,
        "STAGE_ROWS": max(1, *(len(each.rows) for each in sides)),
        "SIDES": max(1, *(len(each.sides) for each in sides)),
        "GENERAL": max(1, n_paths, n_end_paths),
        "SQUARES": len(running.bases),
        "REST": int(running.rest != 0),
        "END_SQUARES": len(final.bases),
        "END_REST": int(final.rest != 0),
        "PATHS": n_paths,
        "END_PATHS": n_end_paths,
        "CONVEX_FORM": int(running.is_convex and final.is_convex),
    }


def _sizes(program: Program, macros: Mapping[str, int]) -> Sizes:
    symbols = program.symbols
    n_prepared = len(symbols.parameters) + len(symbols.gains) + len(program.constants)
    n_x, n_u, n_r = macros["X"], macros["U"], macros["OUTPUTS"]
    return Sizes(n_x, n_u, n_r, macros["INPUTS"], len(symbols.parameters), max(1, n_prepared), _memory(macros))


def _memory(macros: Mapping[str, int]) -> int:
    """The length of ``kg_solver`` in numbers; the compiler refuses one that is too small."""
    m = macros
    x, u, w, sides = m["X"], m["U"], m["X"] + m["U"], m["SIDES"]
    stage = (
        w * w
        + w
        + x * w
        + x
        + m["GENERAL"] * w
        + m["STAGE_ROWS"]
        + 4 * w
        + x
        + 13 * sides
        + u * u
        + 2 * x * u
        + x * x
        + u
        + x
    )
    record = 1 + w
    points = x + 2 * m["SQUARES"] + m["REST"] + max(1, m["PATHS"])
    points += max(1, 2 * m["END_SQUARES"] + m["END_REST"] + m["END_PATHS"])
    return (m["INTERVALS"] + 1) * stage + points * record + 2 * w * w + m["INPUTS"] + m["WORK"] + 8


def _numbers(problem: Receding, sides: StageSides, settings: Settings) -> dict[str, Any]:
    """What the templates read of the problem besides sizes."""
    largest = 1e300
    return {
        "horizon": settings.horizon,
        "interval": settings.horizon / settings.intervals,
        "n_intervals": settings.intervals,
        "sample_time": settings.sample_time,
        "tolerance": settings.tolerance,
        "stages": sides._asdict(),
        "places": problem.inputs,
        "low": [max(low, -largest) for low in problem.input_bounds[:, 0].tolist()],
        "high": [min(high, largest) for high in problem.input_bounds[:, 1].tolist()],
        "parameters": problem.statement.values.tolist(),
        "held": problem.held.tolist(),
    }


def _legends(program: Program, problem: Receding) -> list[tuple[str, Sequence[str]]]:
    """The arrays of the header with the names of their entries."""
    symbols = program.symbols
    arrays = [
        ("x", (*symbols.coordinates, *symbols.speeds, *symbols.states)),
        ("r", [item.name for item in problem.statement.model.inputs]),
        ("inputs", problem.held_names),
        ("controls", problem.input_names),
        ("parameters", symbols.parameters),
    ]
    return [(title, names) for title, names in arrays if names]
