"""The stages of a build in order: model, equations, program, sources, extension, solver.

The stages that derive and generate are imported when they are needed: a model from the cache needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from kanegen.backends.cython.extension import c_sources
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.garbage import without_collections
from kanegen.backends.protocol import Generated, Request
from kanegen.backends.registry import backend as backend_named
from kanegen.codegen.sources import Sources
from kanegen.derivation import fingerprint, lower_model
from kanegen.errors import BuildError, brief
from kanegen.forms import AUTO
from kanegen.model import Baumgarte, Model, Projection
from kanegen.model.stabilization import require_stabilization
from kanegen.program.catalogue import is_variation
from kanegen.program.options import BuildOptions, Scope
from kanegen.progress import activity
from kanegen.solve import Solver

if TYPE_CHECKING:
    from kanegen.derivation import Equations
    from kanegen.program.builder import Functions


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
        ``"range_space"`` for the multipliers without a branch; ``"articulated"`` follows the bodies of chains and trees
        in a time proportional to their number; ``"canonical"`` and ``"pseudoinverse"`` accept
        redundant constraints; ``"momentum"`` and ``"hamilton"`` integrate momenta in place of speeds.
    stabilization
        Baumgarte gains, or Projection of the state after the steps of an integration; None: no stabilization. Gains
        are inputs of the compiled code. The integrals of motion that a projection names are compiled with the model.
    functions
        Functions to compile; None means :data:`kanegen.program.catalogue.DEFAULT_FUNCTIONS`, ``"all"`` adds those that
        are compiled on request only: A1, A2, N, L, F, qdot, linear_momentum, Dm, e, rank, acceleration_parts,
        underactuation, integrals and Jacobians.
        With None, those that only the user calls, such as Q, energies and outputs, are compiled when they are first
        used if the model is large (docs/building.md).
    compiler
        Flags of the C compiler, a :class:`CompilerOptions`; None: the default flags. With ``quick=True`` a model is
        compiled in the shortest time, for slower runs. The environment variable ``CC`` selects the compiler.
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
    options = options_of(form, functions, stabilization)
    if functions is None:
        options = replace(options, scope=Scope.FIRST)
    built = backend_named(backend)(_request(model, options), compiler)
    return Solver(built, built.description, model.parameters, stabilization, model.initial, model)


def _request(model: Model, options: BuildOptions) -> Request:
    """The request for a program of a model, and for functions that it leaves out."""
    system = lower_model(model)
    digest = fingerprint(system, repr(options))

    def derive() -> Generated:
        from kanegen.derivation import Equations

        with activity(f"deriving the equations of {model.name!r}"), without_collections():
            return generate(Equations(system), options)

    def derive_more(form: str, names: tuple[str, ...]) -> Generated:
        from kanegen.derivation import Equations

        with activity(f"deriving {', '.join(names)} of {model.name!r}"), without_collections():
            # Another graph than that of the first program, so that the code does not depend on what was derived before.
            scope = Scope.VARIATIONS if all(map(is_variation, names)) else Scope.LATER
            return generate(Equations(lower_model(model)), BuildOptions(form, names, scope))

    return Request(digest, derive, derive_more)


def options_of(
    form: str, functions: str | Iterable[str] | None, stabilization: Baumgarte | Projection | None
) -> BuildOptions:
    """The options of a build, with the functions that the stabilization needs."""
    options = BuildOptions.of(form, functions)
    if isinstance(stabilization, Projection) and stabilization.integrals:
        return options.including("Q", "integrals")
    return options


def generate(
    equations: Equations, options: BuildOptions, more: Callable[[Functions], None] = lambda functions: None
) -> Generated:
    """The program of a model, with the description that a solver needs. ``more`` adds functions to the program."""
    from kanegen.codegen.describe import describe
    from kanegen.program.assemble import assemble, selected

    if options.form == AUTO:
        form, equations = selected(equations)
        options = replace(options, form=form)
    program, form = assemble(equations, options, more)
    return Generated(program, describe(equations, program, form), f"form {form}")


def sources_of(model: Model, form: str = "auto", functions: str | Iterable[str] | None = None) -> Sources:
    """The generated C sources of a model; neither the cache nor a compiler is used."""
    from kanegen.derivation import Equations

    options = BuildOptions.of(form, functions)
    system = lower_model(model)
    return c_sources(generate(Equations(system), options), fingerprint(system, repr(options)))
