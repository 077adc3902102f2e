"""Standalone projects: a model in C with a typed interface, its example program, a build and a Python package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kanegen.backends.protocol import Generated
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.emission.example import Example
from kanegen.emission.files import ProjectFiles
from kanegen.emission.methods import AUTO, MOREAU_JEAN
from kanegen.emission.options import ITERATIONS, EmitOptions
from kanegen.emission.programs import DEFAULT, SELFTEST
from kanegen.emission.selftest.source import selftest_source
from kanegen.emission.step import FUNCTIONS_OF_PROJECTION
from kanegen.errors import ModelError, brief
from kanegen.model import Baumgarte, Model, Projection
from kanegen.model.stabilization import require_stabilization
from kanegen.paths import file_path
from kanegen.pipeline import generate, options_of
from kanegen.precision import PRECISIONS, Precision
from kanegen.progress import activity
from kanegen.solve.values import form_values
from kanegen.writing import write_folder


def emit(
    model: Model,
    directory: str | Path,
    form: str = "auto",
    functions: str | Sequence[str] | None = None,
    values: Mapping[Any, float] | None = None,
    stabilization: Baumgarte | Projection | None = None,
    *,
    name: str | None = None,
    precision: str = "double",
    math: str = "builtin",
    method: str = "auto",
    projections: int | None = None,
    iterations: int = ITERATIONS,
    single_header: bool = False,
    programs: str | Sequence[str] = DEFAULT,
    target_triple: str | None = None,
) -> Path:
    """Write a standalone project into ``directory``: the model in C99 with a typed interface, and what goes with it.

    The C code needs only a compiler and its math library.

    Parameters
    ----------
    model, form, functions
        As for :func:`build`.
    values
        Values by name or symbol that replace those of the model in the project: of parameters, coordinates, speeds,
        states, inputs and the time ``t`` of the start. Others are those of the model: ``parameters``, ``initial`` and
        the defaults of inputs.
    stabilization
        As for :func:`build`. Gains become part of the right-hand side of the steps; with a projection, each step ends
        with ``projections`` Newton iterations.
    name
        Prefix of the files and of all symbols, a C identifier; None: one that resembles the name of the model.
    precision
        ``"double"`` or ``"float"``, the scalar type of the C code.
    math
        ``"builtin"`` or ``"libm"``: sines and cosines of the project itself, as in the solver, or of the C library.
    method
        The method of ``NAME_step``, a key of :data:`kanegen.emission.methods.STEP_METHODS`: ``"auto"`` for the one that
        suits the model, ``"none"`` for a project without a step.
    projections
        Newton iterations of the projection onto the constraints at the end of a step; None: 2 with
        ``stabilization=kanegen.Projection()`` where a step can project, otherwise none.
    iterations
        Iterations for the contact impulses in a step of a model with contacts (``method="moreau_jean"``).
    single_header
        Write one file, ``NAME.h``, which contains everything; one C file defines ``NAME_IMPLEMENTATION`` before it
        includes it.
    programs
        What the project contains besides the model, keys of :data:`kanegen.emission.programs.PROGRAMS`: ``"example"``,
        ``"selftest"``, ``"realtime"``, ``"bench"`` and ``"python"``, a package that ``pip install DIRECTORY`` builds;
        ``"all"`` for every one that the project can have.
    target_triple
        Processor, system and C library for which the makefile compiles, such as ``"aarch64-linux-musl"``, with the
        compiler of the Python package ziglang; None: for the machine on which it runs, with its compiler.

    Returns
    -------
    The folder.

    Raises
    ------
    SolveError
        For unknown names, for values that are not finite, and if ``directory`` is not a path.
    BuildError
        For names that C cannot have, options that do not exist, a method, projection or program that the model cannot
        have,
        and if the folder holds files but no project of this model, or cannot be written.
    """
    if not isinstance(model, Model):
        raise ModelError(f"the model is {brief(model)}; expected a kanegen.Model")
    folder = file_path(directory, "directory")
    require_stabilization(stabilization)
    options = EmitOptions.of(
        model.name,
        name,
        precision=precision,
        math=math,
        method=method,
        projections=projections,
        iterations=iterations,
        single_header=single_header,
        programs=programs,
        target_triple=target_triple,
    )
    files = project_files(model, options, form, functions, {} if values is None else values, stabilization)
    return write_folder(files, folder, f"{options.name}.h")


def project_files(
    model: Model,
    options: EmitOptions,
    form: str = "auto",
    functions: str | Sequence[str] | None = None,
    values: Mapping[Any, float] | None = None,
    stabilization: Baumgarte | Projection | None = None,
) -> dict[str, str]:
    """The texts of a project by relative path; the arguments are those of :func:`emit`."""
    system = lower_model(model)
    build_options = options_of(form, functions, stabilization)
    build_options = build_options.including(*_functions_of_step(model, options, stabilization))
    equations = Equations(system)
    generated = _prepared(generate(equations, build_options), PRECISIONS[options.precision])
    digest = fingerprint(system, repr((build_options, options, stabilization)))
    known = form_values(generated.description, model.parameters, model.initial, {} if values is None else values)
    units = model.all_units
    si_units = [(name, unit.si) for name, unit in units.items()]
    example = Example.of(generated.description, known, stabilization, si_units)
    project = ProjectFiles.of(generated, options, digest, example, known, units)
    files = project.texts()
    if SELFTEST in project.programs:
        with activity(f"computing the values of the self-test of {model.name!r}"):
            files[f"{options.name}_selftest.c"] = selftest_source(equations, project, known)
    return files


def _functions_of_step(
    model: Model, options: EmitOptions, stabilization: Baumgarte | Projection | None
) -> tuple[str, ...]:
    """The functions of the model that a step calls besides the right-hand side."""
    contacts = ("qdot",) if model.resolved_contacts and options.method in (AUTO, MOREAU_JEAN) else ()
    projects = options.projections or isinstance(stabilization, Projection)
    return (*contacts, *(FUNCTIONS_OF_PROJECTION if projects else ()))


def _prepared(generated: Generated, precision: Precision) -> Generated:
    """The generated model in a precision, without functions that have no values (J of a model without constraints)."""
    program = generated.program
    called = {callee.name for function in program.functions for callee in program.callees(function)}
    kept = tuple(f for f in program.functions if f.internal or 0 not in f.shape or f.name in called)
    return replace(generated, program=replace(program, functions=kept, precision=precision))
