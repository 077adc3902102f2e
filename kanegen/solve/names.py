"""Values by name, and numbers that the user gives: checks whose messages name what is wrong."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError


def key_name(key: Any) -> str:
    """The name that a key means: the text itself, or the printed name of a symbol (``"r"`` for ``r(t)``)."""
    if isinstance(key, str):
        return key
    from kanegen.model.expressions import symbol_name

    return symbol_name(key)


def by_name(given: Mapping[Any, Any], known: Sequence[str], what: str) -> dict[str, Any]:
    """The mapping with names as keys, which may be given as text or as SymPy symbols.

    Raises
    ------
    SolveError
        Listing all names that are not in ``known``, and all that are given twice (as text and as symbol).
    """
    result: dict[str, Any] = {}
    problems = []
    for key, value in given.items():
        name = key_name(key)
        if name not in known:
            problems.append(unknown(name, known, what))
        elif name in result:
            problems.append(f"{what} {name!r} is given twice, by name and by symbol")
        result[name] = value
    if problems:
        raise SolveError("; ".join(problems))
    return result


def unknown(name: str, known: Sequence[str], what: str) -> str:
    """A sentence that says that ``name`` is unknown, and lists similar names or all names."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        hint = f"there are {', '.join(known)}" if known else "the model has none"
    return f"there is no {what} {name!r}: {hint}"


def listed(headline: str, problems: Sequence[str], advice: str) -> str:
    """A message with a line for each problem."""
    return "\n  - ".join([f"{headline}:", *problems]) + f"\n{advice}"


def number(value: Any, what: str) -> float:
    """``value`` as a finite float. Raises `SolveError` for anything that is not a finite real number."""
    try:
        result = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise SolveError(f"{what} is {value!r}; expected a finite real number")
    return result


def positive(value: Any, what: str, expected: str = "a positive number") -> float:
    """``value`` as a positive float. Raises `SolveError` for anything else."""
    result = number(value, what)
    if not result > 0.0:
        raise SolveError(f"{what} is {value!r}; expected {expected}")
    return result


def numbers(values: Any, what: str, names: Sequence[str]) -> Array:
    """One finite float for each name, (n,); a single number applies to all. Raises `SolveError` for anything else."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.shape not in ((), (len(names),)) or not np.isfinite(array).all():
        raise SolveError(
            f"{what} is {values!r}; expected {len(names)} finite number(s), for {', '.join(names)}, or one for all"
        )
    return np.broadcast_to(array, (len(names),)).copy()
