"""The text of a Python module with the functions of a model, and the module itself."""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Mapping
from types import ModuleType
from typing import Final, NamedTuple

from kanegen._version import __version__
from kanegen.codegen.description import Description
from kanegen.codegen.functions import user_names
from kanegen.codegen.sources import render
from kanegen.codegen.text import LINE_WIDTH, comment
from kanegen.emission.jax.functions import Written, preparation, written
from kanegen.emission.jax.runtime import kernel_texts
from kanegen.emission.names import identifiers, member
from kanegen.errors import BuildError
from kanegen.graph.functions import Function
from kanegen.program.passes.lowered import LoweredProgram, UserGrid, UserInterval, UserSpline
from kanegen.solve.values import TIME

TEMPLATE: Final = "jax/module.py.jinja"

STABILIZED: Final = "rhs_stabilized"
"""The function that is `rhs` of a module with gains."""


class Values(NamedTuple):
    """Values by name of parameters, coordinates, speeds, states, inputs and the time; gains, () without them."""

    known: Mapping[str, float]
    gains: tuple[float, ...]


def module_text(program: LoweredProgram, description: Description, values: Values, origin: str) -> str:
    """The module as text; ``origin``: form and digest, for the docstring."""
    public = public_names(program, bool(values.gains))
    plain = identifiers(f.name for f in program.functions)
    names = {f.name: f"_{name}" for f, name in zip(program.functions, plain, strict=True)}
    functions = [written(program, f, names) for f in program.in_order_of_use(*public)]
    users, symbols = user_names(program), program.symbols
    context = {
        "version": __version__,
        "model": program.name,
        "origin": origin,
        "symbols": symbols,
        "values": {name: float(values.known[name]) if name in values.known else None for name in _named(program)},
        "t": values.known.get(TIME, 0.0),
        "gains": list(values.gains) or [0.0] * len(symbols.gains),
        "laws": list(description.laws),
        "rates": {k: slot.rate_of for k, slot in enumerate(description.input_slots) if slot.rate_of is not None},
        **{
            name: [(users[key], user) for key, user in program.users.items() if isinstance(user, kind)]
            for name, kind in (("splines", UserSpline), ("intervals", UserInterval), ("grids", UserGrid))
        },
        "prepare": preparation(program),
        "functions": functions,
        "public": [
            (public[f.function.name], _summary(f), f, _needs(description, f.function.name, values.known))
            for f in functions
            if f.function.name in public
        ],
    }
    code = render(TEMPLATE, **context, kernels=[])
    return render(TEMPLATE, **context, kernels=kernel_texts(code))


def public_names(program: LoweredProgram, stabilized: bool) -> dict[str, str]:
    """The functions of a module: their Python names by their names in the program."""
    left_out = "rhs" if stabilized else STABILIZED
    listed = [f for f in program.functions if not f.internal and f.name != left_out]
    named = [f.name if f.name != STABILIZED else "rhs" for f in listed]
    return {f.name: member(name) for f, name in zip(listed, identifiers(named), strict=True)}


def _named(program: LoweredProgram) -> list[str]:
    s = program.symbols
    return [*s.coordinates, *s.speeds, *s.states, *s.inputs, *s.parameters]


def _needs(d: Description, function: str, known: Mapping[str, float]) -> tuple[str, ...]:
    """The parameters and inputs without a value that a function reads, or a law that gives its inputs."""
    entries = [d.functions[name] for name in (function, "laws") if name in d.functions]
    parameters = {d.parameters[k] for entry in entries for k in entry.parameters}
    inputs = {d.inputs[k] for entry in entries for k in entry.inputs}
    return tuple(name for name in (*d.parameters, *d.inputs) if name in parameters | inputs and name not in known)


def _summary(function: Written) -> list[str]:
    """What a function computes, in lines of a docstring."""
    f = function.function
    size = "".join(f"[{n}]" for n in f.shape) or "a number"
    before = f" ({f.derived_operations})" if f.derived_operations != f.operations else ""
    text = f"{comment(f.summary)}: {size}; {f.operations} operations{before}"
    if function.layout:
        text += f"; {function.layout}"
    return textwrap.wrap(f"{text}.", LINE_WIDTH - 8, break_long_words=False, break_on_hyphens=False)


def load_module(text: str, name: str, users: Mapping[str, Function]) -> ModuleType:
    """The module with this text; ``users``: the functions of the user by their names in it.

    Raises `BuildError` for a function whose Python code JAX cannot trace.
    """
    for function in users.values():
        _require_traceable(function)
    file = f"<kanegen jax {name} {abs(hash(text)):x}>"
    # So that tracebacks, debuggers and inspect.getsource show the text.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    module = ModuleType(name)
    vars(module).update({name: function.python for name, function in users.items()}, __file__=file, __text__=text)
    exec(compile(text, file, "exec"), vars(module))
    return module


def _require_traceable(function: Function) -> None:
    import jax

    try:
        jax.eval_shape(function.python, *[0.0] * function.arity)
    except Exception as error:
        raise BuildError(
            f"JAX cannot trace the Python code of kg.Function {function.name!r} ({type(error).__name__}): use "
            "functions of jax.numpy in it, which take NumPy arrays too, and no branches on values"
        ) from error


def user_functions(program: LoweredProgram) -> dict[str, Function]:
    """The functions of the user by their names in the module."""
    names = user_names(program)
    return {names[key]: key for key in program.users if isinstance(key, Function)}
