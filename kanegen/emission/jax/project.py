"""A module of JAX functions for a model: as an object, and as a folder with its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from kanegen.codegen.kernel import lowered_in_range
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.emission.jax.module import Values, load_module, module_text, user_functions
from kanegen.emission.options import EmitOptions
from kanegen.errors import BuildError, ModelError, SolveError, brief
from kanegen.graph.functions import Function
from kanegen.model import Baumgarte, Model, Projection
from kanegen.model.stabilization import require_stabilization
from kanegen.paths import file_path
from kanegen.pipeline import generate, options_of
from kanegen.solve.values import form_values, gain_values
from kanegen.writing import write_folder


def emit_jax(
    model: Model,
    directory: str | Path,
    form: str = "auto",
    functions: str | Sequence[str] | None = None,
    values: Mapping[Any, float] | None = None,
    stabilization: Baumgarte | None = None,
    *,
    name: str | None = None,
) -> Path:
    """Write ``NAME.py``, a module with the functions of a model in JAX, into ``directory``.

    The module needs jax, not kanegen. Its docstring says what it contains; :meth:`kanegen.Equations.to_jax` gives the
    same module without a file.

    Parameters
    ----------
    model, form, functions
        As for :func:`kanegen.build`.
    values
        Values by name or symbol that replace those of the model in the module.
    stabilization
        Gains of the constraints, which are constants of the module; None: no stabilization.
    name
        Name of the module, an identifier; None: one that resembles the name of the model.

    Returns
    -------
    The folder.

    Raises
    ------
    BuildError
        For functions of the user (`kg.Function`), for projection, for names that a file cannot have, and if the folder
        holds files but no module of this model, or cannot be written.
    SolveError
        For unknown names in ``values``, and if ``directory`` is not a path.
    """
    folder = file_path(directory, "directory")
    if not isinstance(model, Model):
        raise ModelError(f"the model is {brief(model)}; expected a kanegen.Model")
    stem = EmitOptions.of(model.name, name).name
    text, users = module_source(model, form, functions, stabilization, values)
    _require_no_code(users, model.name)
    return write_folder({f"{stem}.py": text}, folder, f"{stem}.py")


def to_jax(
    model: Model, form: str, functions: str | Sequence[str] | None, stabilization: Baumgarte | None
) -> ModuleType:
    """The module of JAX functions of a model; :meth:`kanegen.Equations.to_jax` describes it."""
    try:
        import jax as jax
    except ImportError as error:
        raise SolveError("functions in JAX need jax: pip install 'kanegen[targets]'") from error
    text, users = module_source(model, form, functions, stabilization)
    return load_module(text, EmitOptions.of(model.name).name, users)


def module_source(
    model: Model,
    form: str = "auto",
    functions: str | Sequence[str] | None = None,
    stabilization: Baumgarte | None = None,
    values: Mapping[Any, float] | None = None,
) -> tuple[str, dict[str, Function]]:
    """The text of the module, and the functions of the user by their names in it; arguments as for :func:`emit_jax`."""
    _require_gains(stabilization, model.name)
    options, system = options_of(form, functions, stabilization), lower_model(model)
    digest = fingerprint(system, f"jax {options!r}")
    generated = generate(Equations(system), options)
    d, program = generated.description, lowered_in_range(generated.program)
    known = form_values(d, model.parameters, model.initial, {} if values is None else values)
    gains = () if stabilization is None else tuple(gain_values(stabilization, d).tolist())
    text = module_text(program, d, Values(known, gains), f"{generated.options}, digest {digest}")
    return text, user_functions(program)


def _require_gains(stabilization: Any, name: str) -> None:
    """Raise an error for a stabilization that functions of a state cannot have."""
    require_stabilization(stabilization)
    if isinstance(stabilization, Projection):
        raise BuildError(
            f"the functions of {name!r} in JAX cannot project states: a projection follows a step of an integration. "
            "Give kg.Baumgarte gains, or solve residuals = 0 after the steps"
        )


def _require_no_code(functions: Mapping[str, Function], model: str) -> None:
    """Raise `BuildError` for functions of the user, which a module of its own cannot have."""
    if functions:
        listed = ", ".join(repr(function.name) for function in functions.values())
        raise BuildError(
            f"{model!r} calls {listed}: a kg.Function is text in C and an object of Python, and a module of its own "
            "has neither. Use kanegen.derive(model).to_jax(), which calls the object, or replace it by a kg.Table or "
            "a SymPy expression"
        )
