"""`export_fmu` writes a model as an FMU for other simulators."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Unpack

from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import EMITTED, IMPLICIT
from kanegen.codegen.sources import files_digest, text_digest
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.emission.example import Stabilized, stabilized_by
from kanegen.emission.fmu.archive import PORTABLE, binary_path, compile_binary, require_target, write_archive
from kanegen.emission.fmu.dependencies import Dependencies
from kanegen.emission.fmu.description import Fmu, build_description, model_description
from kanegen.emission.fmu.options import DEFAULTS, FmuOptions
from kanegen.emission.fmu.sources import fmu_sources, kernel_files, units_of
from kanegen.emission.fmu.variables import Subject, variable_table
from kanegen.emission.options import EmitOptions
from kanegen.errors import BuildError, ModelError, SolveError, brief
from kanegen.model import Baumgarte, Model, Projection
from kanegen.model.stabilization import require_stabilization
from kanegen.paths import file_path
from kanegen.pipeline import generate
from kanegen.program.options import BuildOptions
from kanegen.progress import activity
from kanegen.resources import template_folder
from kanegen.run_options import StepOptions, takes
from kanegen.solve.values import form_values, initial_time

FUNCTIONS: Final = (
    "outputs",
    "energies",
    "reactions",
    "residuals",
    "control",
    "laws",
    "state_rates",
    "Q",
    "M",
    "J",
    "velocity_level",
    *(f"jacobian_{argument}" for argument in "qusrpt"),
    *(f"outputs_{argument}" for argument in "qusr"),
    *(f"laws_{argument}" for argument in "qusr"),
)
"""The functions of the kernel of an FMU, those of them that the model has."""


@takes(StepOptions, **DEFAULTS)
def export_fmu(
    model: Model,
    path: str | Path,
    *,
    fmi: str = "2.0",
    name: str | None = None,
    form: str = "auto",
    stabilization: Baumgarte | Projection | None = None,
    values: Mapping[Any, float] | None = None,
    binary: bool = True,
    compiler: CompilerOptions | None = None,
    **options: Unpack[StepOptions],
) -> Path:
    """Write a model as an FMU, for model exchange and co-simulation, with its C sources (docs/fmi.md).

    Parameters
    ----------
    model, form
        As for :func:`kanegen.build`.
    path
        The file, ``NAME.fmu``. An FMU of this name is replaced.
    fmi
        Version of the standard: ``"2.0"``, which nearly all simulators read, or ``"3.0"``.
    name
        The model identifier, a C identifier: name of the library and prefix of functions; None: one that resembles the
        model's name.
    stabilization
        As for :func:`kanegen.build`. With a projection the FMU is for co-simulation only.
    values
        Start values by name or symbol: of parameters, coordinates, speeds, states, inputs and the time ``t``. Others
        are those of the model; inputs without a value start at zero.
    binary
        Whether to compile the shared library for this platform.
    compiler
        Flags of the C compiler; None: those of :data:`kanegen.emission.fmu.archive.PORTABLE`, for any processor of
        this kind.
    **options
        See :class:`kanegen.run_options.StepOptions`.

    The last options say how the co-simulation integrates, as for :meth:`kanegen.Solver.integrate`: they are defaults of
    the parameters ``solver.method``, ``solver.step`` ... of the FMU.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    SolveError
        For options that do not exist, unknown names, and missing values.
    BuildError
        If the file cannot be written or is no FMU, and as for :func:`kanegen.build`.
    """
    fmu_options = FmuOptions.of(fmi, options)
    identifier = _identifier(model, name)
    target = file_path(path, "path")
    require_target(target)
    require_stabilization(stabilization)
    flags = _flags(compiler)
    system, build_options = lower_model(model), _build_options(form, stabilization)
    with activity(f"deriving the equations of {model.name!r}"):
        equations = Equations(system)
        generated = generate(equations, build_options)
    description = generated.description
    kernel = kernel_files(generated, identifier, fingerprint(system, repr(build_options)))
    known = form_values(description, model.parameters, model.initial, {} if values is None else values)
    stabilized = stabilized_by(description, stabilization)
    subject = Subject(description, model.all_units, known, _methods(description), fmu_options)
    fmu = _fmu(subject, equations, identifier, files_digest(kernel), stabilized)
    files = fmu_sources(fmu, kernel, description)
    write_archive(_contents(fmu, files, flags if binary else None), target)
    return target


def _identifier(model: Any, name: str | None) -> str:
    """The model identifier. Raises `ModelError` or `BuildError` for what is no model or no name."""
    if not isinstance(model, Model):
        raise ModelError(f"the model is {brief(model)}; expected a kanegen.Model")
    identifier = EmitOptions.of(model.name, name).name
    if identifier.lower().startswith(("fmu_", "fmi2", "fmi3")):
        raise BuildError(
            f"the name of the FMU is {identifier!r}, but files fmu_..., fmi2... and fmi3... belong to the code of "
            "every FMU: give another name= (--name)"
        )
    return identifier


def _build_options(form: str, stabilization: Baumgarte | Projection | None) -> BuildOptions:
    """The functions of the kernel, with those of a projection."""
    options = BuildOptions.of(form, FUNCTIONS)
    if not isinstance(stabilization, Projection):
        return options
    integrals = ("integrals",) if stabilization.integrals else ()
    return options.including("displacements", "position_level", *integrals)


def _flags(compiler: Any) -> CompilerOptions:
    if compiler is None:
        return PORTABLE
    if not isinstance(compiler, CompilerOptions):
        raise BuildError(f"compiler is {brief(compiler)}; expected kanegen.CompilerOptions (flags) or None")
    return compiler


def _methods(description: Description) -> tuple[str, ...]:
    """The methods that the model can use: implicit ones need the Jacobians, and inputs without continuous laws."""
    continuous = any(law.sample_time is None for law in description.laws.values())
    implicit = "jacobian_t" in description.functions and not continuous
    return tuple(name for name in EMITTED if implicit or name not in IMPLICIT)


def _fmu(subject: Subject, equations: Equations, identifier: str, digest: str, stabilized: Stabilized) -> Fmu:
    options, methods = subject.options, subject.methods
    method = options.stepping["method"]
    if method not in methods:
        raise SolveError(
            f"method is {method!r}, which needs the Jacobian of {equations.model.name!r}, and none is compiled "
            f"for models with continuous feedback laws or redundant constraints; use {', '.join(methods)}"
        )
    table = variable_table(subject)
    start_time = initial_time(subject.description, subject.values) or 0.0
    return Fmu(
        name=equations.model.name,
        identifier=identifier,
        token=_token(digest, table, options, start_time, stabilized),
        table=table,
        dependencies=Dependencies(equations, table),
        options=options,
        methods=methods,
        start_time=start_time,
        n_indicators=len(table.places("GUARD")),
        files=units_of(identifier),
        stabilized=stabilized,
    )


def _token(digest: str, *parts: Any) -> str:
    """A name of the FMU that is the same for the same model, values and options."""
    text = text_digest((digest, *map(repr, parts)))
    return f"{{{uuid.UUID(text[:32])}}}"


def _contents(fmu: Fmu, files: Mapping[str, str], flags: CompilerOptions | None) -> dict[str, bytes]:
    """The files of the archive; ``flags`` are those of the binary, None for none."""
    contents = _documents(fmu) | {f"sources/{name}": text.encode() for name, text in files.items()}
    if flags is not None:
        place = binary_path(fmu.identifier, fmu.options.fmi)
        with activity(f"compiling the FMU of {fmu.name!r}"):
            contents[place] = compile_binary(files, fmu.files, flags)
    return contents


def _documents(fmu: Fmu) -> dict[str, bytes]:
    """The files of the archive besides sources and binaries."""
    folder = "documentation" if fmu.options.fmi == "2.0" else "documentation/licenses"
    license_text = (template_folder() / "fmu" / "LICENSE.fmi.txt").read_bytes()
    documents = {"modelDescription.xml": model_description(fmu), f"{folder}/LICENSE.fmi.txt": license_text}
    if fmu.options.fmi == "3.0":
        documents["sources/buildDescription.xml"] = build_description(fmu)
    return documents
