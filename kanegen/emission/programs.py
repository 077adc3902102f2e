"""The programs of an emitted project besides the model itself: one table, and which of them a project has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kanegen.errors import BuildError, brief

EXAMPLE: Final = "example"
SELFTEST: Final = "selftest"
PYTHON: Final = "python"

PROGRAMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        EXAMPLE: "integrates with fixed steps and prints a table, with contacts and events",
        SELFTEST: "compares all functions with values that were computed when the project was written",
        "realtime": "runs the step in real time beside a controller in a second thread (POSIX)",
        "bench": "measures the times of a million steps",
        PYTHON: "a Python package with the functions and the integration (pip install)",
    }
)
"""What each program does, by name."""

DEFAULT: Final = (EXAMPLE, SELFTEST)
ALL: Final = "all"
"""Every program that the project can have."""

OF_STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {"realtime": "interface/realtime_demo.c.jinja", "bench": "interface/bench.c.jinja"}
)
"""Templates of the programs that need a step."""


def checked_programs(programs: Any) -> tuple[str, ...] | None:
    """The names in the order of the table; None for all that are possible. Raises `BuildError` for unknown ones."""
    if programs == ALL:
        return None
    names = [programs] if isinstance(programs, str) else programs
    if not isinstance(names, Iterable):
        raise BuildError(f"programs is {brief(programs)}; expected names among {', '.join(PROGRAMS)}, or {ALL!r}")
    names = list(names)
    for name in names:
        if name not in PROGRAMS:
            near = difflib.get_close_matches(name, PROGRAMS, n=1) if isinstance(name, str) else []
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise BuildError(
                f"programs has {brief(name)}; expected names among {', '.join(PROGRAMS)}, or {ALL!r}{hint}"
            )
    return tuple(name for name in PROGRAMS if name in names)


def programs_of(
    asked: tuple[str, ...] | None, *, has_step: bool, is_float: bool, notes: Iterable[str]
) -> frozenset[str]:
    """The programs of a project; ``asked``: names, or None for all. ``notes``: why there is no step, in sentences.

    Raises `BuildError` for one that was asked for and that the project cannot have.
    """
    missing = dict.fromkeys(OF_STEPS, f"it needs a step. {' '.join(notes)}") if not has_step else {}
    if is_float:
        missing[PYTHON] = 'the Python package computes in double precision; leave out precision="float"'
    refused = [f"{name!r}: {missing[name]}" for name in asked or () if name in missing]
    if refused:
        raise BuildError(f"the project cannot have the program {'; '.join(refused)}")
    return frozenset(PROGRAMS if asked is None else asked) - missing.keys()
