"""The kinds of projects that ``kanegen emit`` writes: one table."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kanegen.emission.casadi import emit_casadi
from kanegen.emission.jax import emit_jax
from kanegen.emission.project import emit
from kanegen.errors import BuildError, brief
from kanegen.model import Model


class Target(NamedTuple):
    """A kind of project: one line about it, and the function that writes it."""

    summary: str
    write: Callable[..., Path]


C: Final = "c"
"""The target without ``--target``."""

TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        C: Target("a project in C with a typed interface", emit),
        "casadi": Target("functions and derivatives with CasADi's C interface", emit_casadi),
        "jax": Target("pure functions in a Python module that needs JAX only", emit_jax),
    }
)
"""Every target by name."""


def emit_for(target: str, model: Model, directory: str | Path, **options: Any) -> Path:
    """Write a project of this kind into ``directory``; ``options`` are those of :func:`kanegen.emit`.

    Raises
    ------
    BuildError
        For a target that does not exist, and for options that it does not have.
    """
    if target not in TARGETS:
        near = difflib.get_close_matches(target, TARGETS, n=1) if isinstance(target, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise BuildError(f"target is {brief(target)}; expected one of {', '.join(TARGETS)}{hint}")
    write, every = TARGETS[target].write, signature(emit).parameters
    own = signature(write).parameters
    foreign = {name for name in options if name not in own}
    refused = [name for name in sorted(foreign) if options[name] != every[name].default]
    if refused:
        raise BuildError(
            f"projects for the target {target!r} have no option {', '.join(refused)}, which those for {C!r} have: "
            f"leave it out, or give target={C!r}"
        )
    return write(model, directory, **{name: value for name, value in options.items() if name in own})
