"""The stages in order: model, equations, program, sources, extension, solver."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kanegen.backends.cython import CompilerOptions, build_wrapper, open_cache
from kanegen.backends.cython import build as build_extension
from kanegen.codegen.describe import describe
from kanegen.codegen.description import DESCRIPTION_FILE, Description
from kanegen.codegen.environment import runtime_headers
from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.project import Control, emit_project, write_project
from kanegen.codegen.sources import Sources
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.model import Baumgarte, Model, Projection
from kanegen.options import BuildOptions
from kanegen.program.assemble import assemble
from kanegen.solve import Solver


def build(
    model: Model,
    form: str = "auto",
    stabilization: Baumgarte | Projection | None = None,
    functions: str | Iterable[str] | None = None,
    compiler: CompilerOptions | None = None,
) -> Solver:
    """Derive, generate, compile and load a model: the solver of its equations of motion.

    What was generated or compiled before is taken from the cache (``KANEGEN_CACHE_DIR`` moves it).

    Parameters
    ----------
    model
        The system.
    form
        How the accelerations are computed: one of :data:`kanegen.forms.FORMS` (docs/forms.md, docs/momentum.md), or
        ``"auto"`` for the one with the least estimated cost. ``"reduced"`` solves for the independent accelerations,
        ``"range_space"`` for the multipliers without a branch; ``"canonical"`` and ``"pseudoinverse"`` accept
        redundant constraints; ``"momentum"`` and ``"hamilton"`` integrate momenta in place of speeds.
    stabilization
        Baumgarte gains, or Projection of the state after the steps of an integration; None integrates the bare
        constraints. Gains are inputs of the compiled code. Integrals a projection names are compiled with it.
    functions
        What to compile; None means :data:`kanegen.options.DEFAULT_FUNCTIONS`, ``"all"`` adds those that are compiled on
        request only: A1, A2, N, L, F, Dm, e, rank, parts, underactuation, integrals and Jacobians.
    compiler
        Compiler and flags; None takes the machine's C compiler.

    Raises
    ------
    ModelError, DerivationError
        For a model that cannot be derived.
    BuildError
        For constraints the form cannot handle, options that do not exist, and failures of compiler or cache.
    """
    options = BuildOptions.of(form, functions)
    if isinstance(stabilization, Projection) and stabilization.integrals:
        options = options.including("Q", "integrals")
    system = lower_model(model)
    digest = fingerprint(system, repr(options))
    cache = open_cache()
    sources = cache.load_sources(digest)
    if sources is None:
        with ThreadPoolExecutor(max_workers=1) as pool:
            # Once per machine this takes seconds, in processes of its own: they pass while the model is derived.
            wrapper = pool.submit(build_wrapper, runtime_headers(), compiler, cache)
            with _without_collections():
                sources = generate(Equations(system), options, digest)
            cache.store_sources(sources)
            wrapper.result()
    extension = build_extension(sources, compiler, cache)
    return Solver(extension, Description.from_sources(sources), model.parameters, stabilization)


@contextmanager
def _without_collections() -> Iterator[None]:
    """No pass of the garbage collector: one over SymPy's many objects takes 50 ms, as long as the derivation."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def generate(equations: Equations, options: BuildOptions, digest: str) -> Sources:
    """The C sources of a model with the description a solver needs."""
    program, form = assemble(equations, options)
    sources = emit_sources(program, digest=digest, options_text=f"form {form}; functions {' '.join(options.functions)}")
    description = describe(equations, program, form)
    return replace(sources, files={**sources.files, DESCRIPTION_FILE: description.to_json()})


def sources_of(model: Model, form: str = "auto", functions: str | Iterable[str] | None = None) -> Sources:
    """The generated sources of a model, without cache or compiler."""
    options = BuildOptions.of(form, functions)
    system = lower_model(model)
    return generate(Equations(system), options, fingerprint(system, repr(options)))


def emit(model: Model, directory: str | Path, form: str = "auto", functions: str | Iterable[str] | None = None) -> Path:
    """Write a standalone project into ``directory``: C99 kernel, runtime, an example program, a Python package.

    The C needs a C99 compiler and its mathematics library only; ``pip install DIRECTORY`` builds the Python module.

    Raises
    ------
    BuildError
        When the folder exists and holds files that the project would not replace, or cannot be written.
    """
    sources = sources_of(model, form, functions)
    description = Description.from_json(sources.files[DESCRIPTION_FILE])
    constraints = description.control_constraints
    states = [] if constraints is None else [(description.inputs[slot], slot) for slot in constraints.states]
    return write_project(emit_project(sources, _sampled_controls(description), states), Path(directory))


def _sampled_controls(description: Description) -> list[Control]:
    """The controls of the servo-constraints, where the function ``control`` is there."""
    servo = description.servo
    if servo is None or "control" not in description.functions:
        return []
    return [
        Control(slot, description.inputs[slot], *limits)
        for slot, limits in zip(servo.controls, servo.limits, strict=True)
    ]
