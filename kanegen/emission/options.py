"""The options of an emitted project, checked once."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from kanegen.codegen.methods.table import ADAPTIVE
from kanegen.codegen.text import LONGEST_STEM, is_identifier, stem
from kanegen.emission.methods import AUTO, NONE, STEP_METHODS
from kanegen.emission.names import identifier
from kanegen.emission.programs import DEFAULT, checked_programs
from kanegen.errors import BuildError, brief
from kanegen.precision import PRECISIONS

MATHS: Final = ("builtin", "libm")
"""Where sines and cosines come from: polynomials in the project itself, as in the solver, or the C library."""

ITERATIONS: Final = 50
"""Iterations for the contact impulses, if no other number is given."""

MOST_ITERATIONS: Final = 1000


_TRIPLE = re.compile(r"[a-z0-9_]+-[a-z0-9_.]+(-[a-z0-9_.]+)?")

_STANDARD_HEADER = re.compile(
    "assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|"
    "stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|"
    "wchar|wctype",
    re.IGNORECASE,
)
"""A file NAME.h beside these would hide the header of the C library."""


@dataclass(frozen=True)
class EmitOptions:
    """What an emitted project is like.

    Parameters
    ----------
    name
        Prefix of all files and symbols, a C identifier.
    precision, math
        Keys of :data:`kanegen.precision.PRECISIONS` and entries of :data:`MATHS`.
    method
        The method of ``NAME_step``, a key of :data:`.STEP_METHODS`; ``"auto"`` for the one that suits the model,
        ``"none"`` for a project without a step.
    projections
        Newton iterations of the projection onto the constraints after each step; None: 2 with ``Projection``, else 0.
    iterations
        Iterations of each solution for the contact impulses of a step, two in a step.
    single_header
        Whether one file holds everything.
    programs
        Keys of :data:`.PROGRAMS`; None: all that the project can have.
    target_triple
        The system for which the makefile compiles, with Zig; None: with the compiler of the machine on which it runs.
    """

    name: str
    precision: str = "double"
    math: str = MATHS[0]
    method: str = AUTO
    projections: int | None = None
    iterations: int = ITERATIONS
    single_header: bool = False
    programs: tuple[str, ...] | None = DEFAULT
    target_triple: str | None = field(default=None, repr=False)  # no part of the code, which the text identifies

    @classmethod
    def of(cls, model_name: str, name: Any = None, programs: Any = DEFAULT, **options: Any) -> EmitOptions:
        """The options for a model; ``name`` None: the model's name.

        Raises
        ------
        BuildError
            For a name that C or the project cannot have, and for options that do not exist.
        """
        given = {key: value for key, value in options.items() if value is not None}
        result = cls(_checked_name(model_name, name), programs=checked_programs(programs), **given)
        _require_one_of(result.precision, PRECISIONS, "precision")
        _require_one_of(result.math, MATHS, "math")
        _require_method(result.method)
        for what, least in (("projections", 0), ("iterations", 1)):
            _require_count(getattr(result, what), what, least)
        if not isinstance(result.single_header, bool):
            raise BuildError(f"single_header is {brief(result.single_header)}; expected True or False")
        if result.single_header and result.programs != DEFAULT:
            raise BuildError("programs are files of their own, and single_header=True writes one file: leave one out")
        _require_triple(result.target_triple, result.single_header)
        return result

    @property
    def is_float(self) -> bool:
        """Whether the scalar type is float."""
        return self.precision == "float"

    @property
    def libm_math(self) -> bool:
        """Whether sines and cosines are those of the C library."""
        return self.math == "libm"


def _checked_name(model_name: str, name: Any) -> str:
    """The name of a project: the one that was given, or one that resembles that of the model."""
    if name is None:
        return _near(model_name)
    near = _near(name if isinstance(name, str) else model_name)
    if name == near:
        return near
    if not is_identifier(name) or keyword.iskeyword(name):
        problem = "files and C symbols need an identifier"
    elif len(name) > LONGEST_STEM:
        problem = f"it may have {LONGEST_STEM} characters"
    elif name.lower().startswith("kg_"):
        problem = "the prefix kg_ belongs to the runtime"
    else:
        problem = f"{name}.h is a C header"
    raise BuildError(f"name is {brief(name)}, but {problem}: give name={near!r} (--name {near})")


def _near(name: str) -> str:
    """The name itself, if files and C symbols can have it, or one that resembles it."""
    near = name if is_identifier(name) and len(name) <= LONGEST_STEM else stem(identifier(name))
    if near.lower().startswith("kg_") or _STANDARD_HEADER.fullmatch(near) or keyword.iskeyword(near):
        return f"{near.lower().removeprefix('kg_') or 'plain'}_model"
    return near


def _require_one_of(value: Any, known: Iterable[str], what: str) -> None:
    names = list(known)
    if not isinstance(value, str) or value not in names:
        near = difflib.get_close_matches(value, names, n=1) if isinstance(value, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise BuildError(f"{what} is {brief(value)}; expected one of {', '.join(map(repr, names))}{hint}")


def _require_method(method: Any) -> None:
    if isinstance(method, str) and method in ADAPTIVE:
        raise BuildError(
            f"method is {method!r}, which chooses its steps: a step of an emitted project has a fixed amount of work. "
            f"Choose one of {', '.join(STEP_METHODS)}; the example program integrates with the runtime of kg_run.h"
        )
    _require_one_of(method, (AUTO, *STEP_METHODS, NONE), "method")


def _require_count(value: Any, what: str, least: int) -> None:
    if value is None and least == 0:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_ITERATIONS:
        raise BuildError(f"{what} is {brief(value)}; expected a whole number from {least} to {MOST_ITERATIONS}")


def _require_triple(triple: Any, single_header: bool) -> None:
    if triple is None:
        return
    if not isinstance(triple, str) or not _TRIPLE.fullmatch(triple):
        raise BuildError(
            f"target_triple is {brief(triple)}; expected processor, system and library as Zig names them, such as "
            "'aarch64-linux-musl', 'x86_64-windows-gnu' or 'aarch64-macos'"
        )
    if single_header:
        raise BuildError("target_triple is what the makefile compiles for, and single_header=True writes none")
