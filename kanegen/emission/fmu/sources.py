"""The C files of an FMU: the kernel, the runtime, code that is the same for every FMU, and the tables of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kanegen._version import __version__
from kanegen.backends.protocol import Generated
from kanegen.codegen.description import Description
from kanegen.codegen.kernel import kernel_context
from kanegen.codegen.sources import include_closure, render, runtime_headers
from kanegen.emission.fmu.description import Fmu
from kanegen.emission.fmu.entries import entries
from kanegen.emission.laws import context_of_laws, laws_of
from kanegen.resources import template_folder
from kanegen.run_options import Kind, StepOptions, table

FOLDER: Final = "fmu"

PREFIXES: Final = {"2.0": "FMI2", "3.0": "FMI3"}
"""Prefix of the macros of the standard's headers, by version."""


def kernel_files(generated: Generated, name: str, digest: str) -> dict[str, str]:
    """The kernel and its header; ``kg_get_model`` gets a name of its own, so that FMUs can be linked into a program."""
    context: dict[str, Any] = dict(kernel_context(generated.program, digest=digest, options_text=generated.options))
    headers = [f"{name}.h", *context["headers"][1:]]
    context |= {"stem": name, "headers": headers, "defines": (f"kg_get_model {name}_get_model",)}
    return {
        f"{name}.c": render("kernel/kernel.c.jinja", **context),
        f"{name}.h": render("kernel/kernel.h.jinja", **context),
    }


def units_of(name: str) -> tuple[str, str]:
    """Names of the two C files to compile: the kernel, and the functions of the standard."""
    return f"{name}.c", f"{name}_fmu.c"


def fmu_sources(fmu: Fmu, kernel: Mapping[str, str], description: Description) -> dict[str, str]:
    """All C files by name."""
    context = _context(fmu, description)
    files = {**kernel, units_of(fmu.identifier)[1]: render("fmu/fmu.c.jinja", **context)}
    return dict(sorted({**files, **include_closure(files, available_headers(fmu.methods, fmu.options.fmi))}.items()))


def available_headers(methods: tuple[str, ...], version: str) -> dict[str, str]:
    """The headers of the runtime with these methods, of the FMU code and of the standard, by name."""
    folder = template_folder() / FOLDER
    own = {item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.name.endswith(".h")}
    listed = list(entries(version, own[f"fmi{version[0]}FunctionTypes.h"]))
    own["fmu_entries.h"] = render("fmu/fmu_entries.h.jinja", version=version, entries=listed)
    return runtime_headers(methods) | own


def _context(fmu: Fmu, d: Description) -> dict[str, Any]:
    """What the template of the tables prints."""
    laws = context_of_laws(laws_of(d))
    starts = {kind: [v.value for v in fmu.table.variables if v.group == kind] for kind in ("STATE", "PARAMETER")}
    inputs = {v.index: v.value for v in fmu.table.variables if v.group == "INPUT"}
    gains = fmu.stabilized.gains
    defaults = [inputs.get(k, slot.default or 0.0) for k, slot in enumerate(d.input_slots)]
    return {
        "stem": fmu.identifier,
        "kanegen": __version__,
        "version": fmu.options.fmi,
        "prefix": PREFIXES[fmu.options.fmi],
        "model": fmu.name,
        "token": fmu.token,
        "events": bool(fmu.n_indicators),
        "variables": fmu.table.variables,
        "functions": fmu.table.functions,
        "n_values": fmu.table.n_values,
        "laws": laws["law_groups"],
        "clocks": laws["law_clocks"],
        "width": len(laws["laws"]),
        "n_waiting": laws["waiting"],
        "methods": [f"KG_{name.upper()}" for name in fmu.methods],
        "method": fmu.methods.index(fmu.options.stepping["method"]),
        "options": fmu.options.numbers,
        "counts": [name for name, option in table(StepOptions).items() if option.kind is Kind.COUNT],
        "start_time": fmu.start_time,
        "starts": (
            ("y", "coordinates, speeds, states", starts["STATE"]),
            ("r", "inputs", defaults),
            (
                "p",
                "parameters, gains of the stabilization",
                [*starts["PARAMETER"], *(gains or [0.0] * d.constraints.n_gains)],
            ),
        ),
        "rhs": "rhs_stabilized" if gains else "rhs",
        "mass": d.mass,
        "projection": fmu.stabilized,
    }
