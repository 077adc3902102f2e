"""The stages of a build in order: model, equations, program, sources, extension, solver."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kanegen.backends.cython import CompilerOptions, c_sources
from kanegen.backends.protocol import Generated, Request
from kanegen.backends.registry import backend as backend_named
from kanegen.codegen.description import Description
from kanegen.codegen.methods.table import IMPLICIT
from kanegen.codegen.project import Control, Example, Law, Stabilized, emit_project, write_project
from kanegen.codegen.sources import Features, Sources
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.errors import BuildError, SolveError, brief
from kanegen.forms import FORMS
from kanegen.model import Baumgarte, Model, Projection
from kanegen.model.stabilization import require_stabilization
from kanegen.paths import file_path
from kanegen.program.assemble import assemble
from kanegen.program.options import BuildOptions
from kanegen.progress import activity
from kanegen.solve import Solver
from kanegen.solve.consistent import functions_of_constraints
from kanegen.solve.values import (
    form_names,
    form_values,
    gain_values,
    initial_time,
    integral_function,
)

EMITTED_METHODS = ("rk4", "kutta_merson", "dopri5", "dop853", "rodas")
"""Integration methods of standalone projects; without verner9, whose coefficients are longer than most models."""


def build(
    model: Model,
    form: str = "auto",
    stabilization: Baumgarte | Projection | None = None,
    functions: str | Iterable[str] | None = None,
    compiler: CompilerOptions | None = None,
    backend: str = "cython",
) -> Solver:
    """Derive, generate, compile and load the equations of motion of a model; returns their solver.

    Sources and compiled code of earlier builds come from the cache (``KANEGEN_CACHE_DIR`` sets its folder).

    Parameters
    ----------
    model
        The system.
    form
        How the accelerations are computed: one of :data:`kanegen.forms.FORMS` (docs/forms.md, docs/momentum.md), or
        ``"auto"`` for the form with the least estimated cost. ``"reduced"`` solves for the independent accelerations,
        ``"range_space"`` for the multipliers without a branch; ``"canonical"`` and ``"pseudoinverse"`` accept
        redundant constraints; ``"momentum"`` and ``"hamilton"`` integrate momenta in place of speeds.
    stabilization
        Baumgarte gains, or Projection of the state after the steps of an integration; None: no stabilization. Gains
        are inputs of the compiled code. The integrals of motion that a projection names are compiled with the model.
    functions
        Functions to compile; None means :data:`kanegen.program.catalogue.DEFAULT_FUNCTIONS`, ``"all"`` adds those that
        are compiled on request only: A1, A2, N, L, F, Dm, e, rank, parts, underactuation, integrals and Jacobians.
    compiler
        Flags of the C compiler, a :class:`CompilerOptions`; None: the default flags. The environment variable ``CC``
        selects the compiler.
    backend
        The back end that evaluates and integrates: a key of :data:`kanegen.backends.registry.BACKENDS`.

    Raises
    ------
    ModelError, DerivationError
        For a model that cannot be derived.
    BuildError
        For constraints the form cannot handle, options that do not exist, and failures of compiler or cache.
    """
    require_stabilization(stabilization)
    if compiler is not None and not isinstance(compiler, CompilerOptions):
        raise BuildError(
            f"compiler is {brief(compiler)}; expected kanegen.CompilerOptions (flags) or None. The environment "
            "variable CC selects the compiler"
        )
    options = _options(form, functions, stabilization)
    system = lower_model(model)

    def derive() -> Generated:
        with activity(f"deriving the equations of {model.name!r}"), _without_collections():
            return generate(Equations(system), options)

    request = Request(fingerprint(system, repr(options)), derive)
    built = backend_named(backend)(request, compiler)
    return Solver(built, built.description, model.parameters, stabilization, model.initial, model)


def _options(
    form: str, functions: str | Iterable[str] | None, stabilization: Baumgarte | Projection | None
) -> BuildOptions:
    """The options of a build, with the functions that the stabilization needs."""
    options = BuildOptions.of(form, functions)
    if isinstance(stabilization, Projection) and stabilization.integrals:
        return options.including("Q", "integrals")
    return options


@contextmanager
def _without_collections() -> Iterator[None]:
    """Disable the garbage collector: one pass over SymPy's objects takes 50 ms, as long as the derivation."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def generate(equations: Equations, options: BuildOptions) -> Generated:
    """The program of a model, with the description that a solver needs."""
    program, form = assemble(equations, options)
    return Generated(program, Description.of(equations, program, form), f"form {form}")


def sources_of(model: Model, form: str = "auto", functions: str | Iterable[str] | None = None) -> Sources:
    """The generated C sources of a model; neither the cache nor a compiler is used."""
    return _sources_with(model, BuildOptions.of(form, functions))


def _sources_with(model: Model, options: BuildOptions) -> Sources:
    system = lower_model(model)
    return c_sources(generate(Equations(system), options), fingerprint(system, repr(options)))


def emit(
    model: Model,
    directory: str | Path,
    form: str = "auto",
    functions: str | Iterable[str] | None = None,
    values: Mapping[Any, float] | None = None,
    stabilization: Baumgarte | Projection | None = None,
) -> Path:
    """Write a standalone project into ``directory``: C99 kernel, runtime, an example program, a Python package.

    The C code needs only a C99 compiler and its math library; ``pip install DIRECTORY`` builds the Python module.

    Parameters
    ----------
    model, form, functions
        As for :func:`build`.
    values
        Values by name or symbol for the form of the example program: of parameters, coordinates, speeds, states, inputs
        and the time ``t`` at which it starts. Others are those of the model: ``parameters``, ``initial`` and the
        defaults of inputs; what is not known either, the form asks for.
    stabilization
        As for :func:`build`, for the example program.

    Raises
    ------
    SolveError
        For unknown names, for values that are not finite, and if ``directory`` is not a path.
    BuildError
        If the folder holds files but no project of this model, or cannot be written.
    """
    folder = file_path(directory, "directory")
    require_stabilization(stabilization)
    sources = _sources_with(model, _options(form, functions, stabilization))
    description = Description.from_sources(sources)
    known = form_values(description, model.parameters, model.initial, {} if values is None else values)
    constraints = description.control_constraints
    control_states = () if constraints is None else constraints.states
    example = Example(
        controls=_sampled_controls(description),
        control_states=[(description.inputs[slot], slot) for slot in control_states],
        path_controls=[(description.inputs[slot], slot) for slot in description.path_controls],
        states=description.states,
        mass=description.mass,
        known=[known.get(name) for name in form_names(description)] if known else (),
        start_time=initial_time(description, known) or 0.0,
        laws=[Law(k, description.inputs[k], law.sample_time, law.delay) for k, law in description.laws.items()],
        stabilization=_stabilized(description, stabilization),
        units=[(name, unit.si) for name, unit in model.all_units.items()],
    )
    project = emit_project(sources, example, _emitted_features(description))
    return write_project(project, folder)


def _stabilized(description: Description, stabilization: Baumgarte | Projection | None) -> Stabilized:
    """The stabilization of the example program.

    Raises `SolveError` for a model that has nothing to stabilize, and if functions of the projection were not compiled.
    """
    gains = gain_values(stabilization, description)
    form = FORMS[description.form]
    if not isinstance(stabilization, Projection):
        return Stabilized(gains=tuple(gains.tolist()) if stabilization is not None else ())
    needed = {*functions_of_constraints(description), *map(integral_function, stabilization.integrals)} - {"residuals"}
    missing = [name for name in sorted(needed) if name not in description.functions]
    if missing or form.momenta:
        reason = f"needs the functions {', '.join(missing)}" if missing else f"does not apply to form={form.name!r}"
        raise SolveError(f"the projection of the example program of {description.name!r} {reason}")
    integrals = tuple(map(integral_function, stabilization.integrals))
    return Stabilized((), stabilization.every, stabilization.tolerance, integrals, form.any_rank)


def _emitted_features(description: Description) -> Features:
    """The features of a standalone project: all for which the model has the functions."""
    available = set(description.functions)
    events = bool({"gaps", "events"} & available)
    # In models with contacts or events, difference quotients replace Jacobians that were not compiled.
    implicit = events or "jacobian_q" in available
    return Features(
        events=events,
        impulses="impulses" in available,
        inverse=bool(description.path_controls)
        and {"control_forces", "kinematics", description.mass, "P"} <= available,
        methods=tuple(name for name in EMITTED_METHODS if implicit or name not in IMPLICIT),
    )


def _sampled_controls(description: Description) -> list[Control]:
    """The controls of the servo-constraints; empty if the function ``control`` was not compiled."""
    servo = description.servo
    if servo is None or "control" not in description.functions:
        return []
    limits = zip(servo.controls, servo.limits, strict=True)
    return [Control(slot, description.inputs[slot], *pair) for slot, pair in limits]
