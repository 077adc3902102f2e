"""A project for CasADi: a C file with the equations of a model and CasADi's C interface, and a Makefile."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan, prod
from pathlib import Path
from typing import Any

from kanegen._version import __version__
from kanegen.backends.protocol import Generated
from kanegen.codegen.description import Description
from kanegen.codegen.functions import Entry
from kanegen.codegen.kernel import kernel_context
from kanegen.codegen.sources import include_closure, render, runtime_headers
from kanegen.codegen.text import LINE_WIDTH
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.emission.casadi.interface import CasadiFunction, Differentiated, defaults, groups, values_of
from kanegen.emission.options import EmitOptions
from kanegen.errors import BuildError, ModelError, brief
from kanegen.model import Baumgarte, Model
from kanegen.model.stabilization import require_stabilization
from kanegen.paths import file_path
from kanegen.pipeline import generate
from kanegen.program.builder import Functions
from kanegen.program.options import BuildOptions
from kanegen.program.records import Program
from kanegen.solve.values import form_values, gain_values
from kanegen.writing import write_folder


def emit_casadi(
    model: Model,
    directory: str | Path,
    form: str = "auto",
    values: Mapping[Any, float] | None = None,
    stabilization: Baumgarte | None = None,
    *,
    name: str | None = None,
) -> Path:
    """Write functions with CasADi's C interface into ``directory``; ``make`` there builds ``NAME_casadi.so``.

    The library contains, for ``casadi.external``,

    ======================  ==========================================================================================
    ``NAME_dynamics``       ``(x, u, p) -> xdot`` with x = (q, u, s), the inputs u, and the parameters p
    ``NAME_outputs``        ``(x, u, p) -> y``, if the model has outputs
    ``NAME_constraints``    ``(x, u, p) -> c``, residuals of positions, then of velocities, if it has constraints
    ``NAME_defaults``       ``() -> (x, u, p)``, start, inputs and parameters of the model, NaN where there is no value
    ======================  ==========================================================================================

    and their exact sparse derivatives of first and second order, which CasADi finds by their names. If the model
    depends on time, ``t`` is the fourth argument.

    Parameters
    ----------
    model, form
        As for :func:`kanegen.build`. Inputs with a feedback law are arguments like the others.
    values
        Values by name or symbol that replace those of the model in ``NAME_defaults``.
    stabilization
        Gains of the constraints, which become constants of the code; None: no stabilization.
    name
        Prefix of the files and functions, a C identifier; None: one that resembles the name of the model.

    Returns
    -------
    The folder.

    Raises
    ------
    BuildError
        For models with contacts, for projection, for names that C cannot have, and if the folder holds files but no
        project of this model, or cannot be written.
    SolveError
        For unknown names in ``values``, and if ``directory`` is not a path.
    """
    folder = file_path(directory, "directory")
    files = casadi_files(model, form, {} if values is None else values, stabilization, name=name)
    (marker,) = (file for file in files if file.endswith("_casadi.c"))
    return write_folder(files, folder, marker)


def casadi_files(
    model: Model,
    form: str = "auto",
    values: Mapping[Any, float] | None = None,
    stabilization: Baumgarte | None = None,
    *,
    name: str | None = None,
) -> dict[str, str]:
    """The texts of the project by relative path; the arguments are those of :func:`emit_casadi`."""
    _require_smooth(model, stabilization)
    prefix = EmitOptions.of(model.name, name).name
    options, system = BuildOptions.of(form, ()), lower_model(model)
    made: list[Differentiated] = []

    def add(f: Functions) -> None:
        arguments = groups(f)
        made.extend(Differentiated(f, prefix, each, arguments) for each in values_of(f))

    generated = generate(Equations(system), options, add)
    known = form_values(generated.description, model.parameters, model.initial, {} if values is None else values)
    gains = gain_values(stabilization, generated.description).tolist()
    functions = [*(f for each in made for f in each.functions), _defaults(prefix, generated.description, known)]
    program = _used(generated.program, functions)
    digest = fingerprint(system, f"casadi {options!r} {prefix} {gains}")
    kernel: dict[str, Any] = kernel_context(program, digest=digest, options_text=generated.options)
    kernel |= {"stem": prefix, "has_table": False, "headers": ["kg_model.h", *kernel["headers"][1:]]}
    units = {name: unit.si for name, unit in model.all_units.items()}
    arguments = _legends(generated.description, units)
    context = {**kernel, **_context(generated, kernel["entries"], made, functions, gains), "arguments": arguments}
    code = render("kernel/kernel.c.jinja", **context)
    files = {f"{prefix}_casadi.c": render("casadi/functions.c.jinja", **context, kernel=code)}
    files |= include_closure(files, runtime_headers())
    headers = [file for file in files if file.endswith(".h")]
    files["Makefile"] = render("casadi/makefile.jinja", version=__version__, stem=prefix, headers=headers)
    return files


def _require_smooth(model: Any, stabilization: Any) -> None:
    """Raise an error for what functions of the state that CasADi can differentiate cannot have."""
    if not isinstance(model, Model):
        raise ModelError(f"the model is {brief(model)}; expected a kanegen.Model")
    require_stabilization(stabilization)
    if stabilization is not None and not isinstance(stabilization, Baumgarte):
        raise BuildError(
            f"the functions of {model.name!r} for CasADi cannot project states: a projection follows a step of an "
            "integration. Give kg.Baumgarte gains, or add the function NAME_constraints to the optimization"
        )
    if model.resolved_contacts:
        names = ", ".join(contact.name for contact in model.resolved_contacts)
        raise BuildError(
            f"{model.name!r} has contacts ({names}): their forces are not functions of the state that CasADi could "
            "differentiate. Give a model without contacts, with smooth contact forces as loads"
        )


def _defaults(prefix: str, d: Description, known: Mapping[str, float]) -> CasadiFunction:
    """The function of the values by default; NaN for those that are not known."""
    names = d.components, d.inputs, d.parameters
    return defaults(prefix, *(tuple(known.get(name, nan) for name in group) for group in names))


def _used(program: Program, functions: Sequence[CasadiFunction]) -> Program:
    """The program with all functions internal that CasADi's functions do not evaluate: they are not written."""
    used = {evaluation.kernel for function in functions for evaluation in function.evaluations}
    marked = tuple(replace(f, internal=f.name not in used) for f in program.functions)
    return replace(program, functions=marked)


def _context(
    generated: Generated,
    kernel: Sequence[Entry],
    made: Sequence[Differentiated],
    functions: Sequence[CasadiFunction],
    gains: Sequence[float],
) -> dict[str, Any]:
    """What the template of the C file reads besides the variables of the kernel, of which ``kernel`` are functions."""
    program = generated.program
    ports = [port for function in functions for port in (*function.inputs, *function.outputs)]
    patterns = {pattern: k for k, pattern in enumerate(dict.fromkeys(port.pattern for port in ports))}
    copies = [copy for f in functions for evaluation in f.evaluations for copy in evaluation.copies]
    tables = {indices: k for k, indices in enumerate(dict.fromkeys(c.indices for c in copies if not c.is_range))}
    arrays = [_array(f"static const casadi_int pattern_{k}", p.compressed) for p, k in patterns.items()]
    arrays += [_array(f"static const int indices_{k}", table) for table, k in tables.items()]
    symbols = program.symbols
    used = {evaluation.kernel for function in functions for evaluation in function.evaluations}
    found = {entry.title: entry for entry in kernel}
    return {
        "functions": functions,
        "missing": [(each.values.name, each.reason) for each in made if each.reason is not None],
        "timed": len(made[0].arguments) == 4,
        "n_q": len(symbols.coordinates),
        "n_x": len(symbols.coordinates) + len(symbols.speeds) + len(symbols.states),
        "n_s": len(symbols.states),
        "n_r": len(symbols.inputs),
        "n_zeros": max(len(symbols.multipliers), len(symbols.free)),
        "n_prepared": len(symbols.parameters) + len(symbols.gains) + len(program.constants),
        "n_seeds": max(len(each.seeds) for each in made),
        "n_values": max(max(1, found[name].rows) * max(1, found[name].cols) for name in used),
        "n_scratch": max(found[name].work for name in used),
        "gains": gains,
        "arrays": arrays,
        "has_tables": bool(tables),
        "pattern_of": patterns,
        "table_of": tables,
        "identifiers": {name: entry.identifier for name, entry in found.items()},
    }


def _legends(d: Description, units: Mapping[str, str]) -> list[tuple[str, str, list[str]]]:
    """The arguments and values of the functions, with the names of their entries and, where known, their SI units."""
    entries = [
        ("x", "coordinates, speeds, states", d.components),
        ("u", "inputs", d.inputs),
        ("p", "parameters", d.parameters),
        ("y", "outputs", [name for name, shape in d.outputs.items() for _ in range(prod(shape))]),
        ("c", "residuals of the constraints", d.constraints.levels),
    ]
    return [
        (name, title, [f"{label} ({units[label]})" if units.get(label) else label for label in labels])
        for name, title, labels in entries
        if labels
    ]


def _array(declaration: str, values: Sequence[int]) -> str:
    """A constant array in C, in lines."""
    text = f"{declaration}[{len(values)}] = {{{', '.join(map(str, values))}}};"
    return textwrap.fill(text, LINE_WIDTH, subsequent_indent="    ", break_long_words=False)
