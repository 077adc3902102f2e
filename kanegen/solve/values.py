"""Checks of values from the user: mappings by name, numbers, parameters and gains; parts of error messages."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, shown
from kanegen.model import Baumgarte, Projection
from kanegen.model.stabilization import require_stabilization


def key_name(key: Any) -> str:
    """The name that a key refers to: the text itself, or the printed name of a symbol (``"r"`` for ``r(t)``)."""
    if isinstance(key, str):
        return key
    from kanegen.model.expressions import symbol_name

    return symbol_name(key)


def names_in(given: Any, what: str) -> list[str]:
    """Names from one name, or from a sequence of names or symbols. Raises `SolveError` for anything else."""
    if not isinstance(given, Iterable):
        raise SolveError(f"{what} is {shown(given)}; expected a sequence of names or symbols")
    return [key_name(key) for key in ([given] if isinstance(given, str) else given)]


def by_name(given: Mapping[Any, Any], known: Sequence[str], what: str) -> dict[str, Any]:
    """The mapping with names in place of symbols as keys. Raises `SolveError` for unknown and repeated names."""
    if not isinstance(given, Mapping):
        raise SolveError(f"values of {what}s are {shown(given)}; expected a mapping from names or symbols to values")
    result: dict[str, Any] = {}
    problems = []
    for key, value in given.items():
        name = key_name(key)
        if name not in known:
            problems.append(unknown(name, known, what))
        elif name in result:
            problems.append(f"{what} {name!r} is given twice, by name and by symbol")
        result[name] = value
    require_none(problems)
    return result


def unknown(name: str, known: Sequence[str], what: str) -> str:
    """The message that ``name`` is unknown, with similar names or a list of all names."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        hint = f"there are {', '.join(known)}" if known else "the model has none"
    return f"there is no {what} {name!r}: {hint}"


def require_none(problems: Sequence[str], headline: str = "", advice: str = "") -> None:
    """Raise `SolveError` with the problems in one sentence, if there are any."""
    if problems:
        raise SolveError(headline + "; ".join(problems) + advice)


def listed(headline: str, problems: Sequence[str], advice: str) -> str:
    """A message with a line for each problem."""
    return "\n  - ".join([f"{headline}:", *problems]) + f"\n{advice}"


def beyond(labels: Iterable[str], residuals: Array, limit: float) -> list[str]:
    """One message for each row whose residual exceeds the limit or is NaN."""
    return [
        f"{_short(label)}: residual {value:.6g}, allowed {limit:.3g}"
        for label, value in zip(labels, residuals.tolist(), strict=True)
        if not abs(value) <= limit
    ]


def _short(label: str) -> str:
    """The label, or its beginning and end: constraints of spatial systems can be pages long."""
    return label if len(label) <= 120 else f"{label[:75]} ... {label[-40:]}"


def largest(values: Any) -> float:
    """The largest magnitude of the values, or 1 if that is larger; tolerances are relative to it."""
    return max(1.0, float(np.abs(np.asarray(values, dtype=np.float64)).max(initial=0.0)))


def number(value: Any, what: str) -> float:
    """``value`` as a finite float. Raises `SolveError` for anything that is not a finite real number."""
    try:
        result = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise SolveError(f"{what} is {shown(value)}; expected a finite real number")
    return result


def positive(value: Any, what: str, expected: str = "a positive number") -> float:
    """``value`` as a positive float. Raises `SolveError` for anything else."""
    result = number(value, what)
    if not result > 0.0:
        raise SolveError(f"{what} is {shown(value)}; expected {expected}")
    return result


def real_array(values: Any, what: str) -> Array:
    """``values`` as an array of floats of any shape, which can be NaN. Raises `SolveError` for anything else."""
    try:
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "fiu":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SolveError(f"{what} is {shown(values)}; expected real numbers") from error


def numbers(values: Any, what: str, names: Sequence[str]) -> Array:
    """One finite float for each name, (n,); a single number applies to all. Raises `SolveError` for anything else."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if array.shape not in ((), (len(names),)) or not np.isfinite(array).all():
        raise SolveError(
            f"{what} is {shown(values)}; expected {len(names)} finite number(s), for {', '.join(names)}, or one for all"
        )
    return np.broadcast_to(array, (len(names),)).copy()


def start_states(description: Description, given: Any) -> Array:
    """The states (n_s,) at the start of a run, from an array or a mapping from names; empty without states.

    Raises `SolveError` for a model without states, unknown names, missing values and values that are not finite.
    """
    names = description.states
    if isinstance(given, Mapping):
        named = by_name(given, names, "state")
        missing = [name for name in names if name not in named]
        require_none([f"s0 has no value of the state {name}" for name in missing])
        given = [named[name] for name in names]
    if not names:
        if given is not None and real_array(given, "s0").size:
            raise SolveError(f"s0 is {shown(given)}, but the model {description.name!r} has no states: leave s0 out")
        return np.empty(0)
    if given is None:
        raise SolveError(
            f"the model {description.name!r} has states: give s0= ({len(names)} values: {', '.join(names)})"
        )
    array = real_array(given, "s0")
    if array.shape != (len(names),):
        raise SolveError(f"s0 has shape {array.shape}; expected ({len(names)},): {', '.join(names)}")
    return np.array([number(value, f"state {name}") for name, value in zip(names, array.tolist(), strict=True)])


def parameter_values(given: Mapping[Any, float | None], description: Description) -> dict[str, float | None]:
    """A number or None for every parameter, in order. Raises `SolveError` for unknown names and other values."""
    named = by_name(given, description.parameters, "parameter")
    values = {name: named.get(name) for name in description.parameters}
    return {name: None if value is None else number(value, f"parameter {name}") for name, value in values.items()}


def gain_values(stabilization: Baumgarte | Projection | None, description: Description) -> Array:
    """The gains (n_g,) in the order of the compiled code; zero without stabilization and with projection.

    Raises `SolveError` for a model without constraints to stabilize, and for integrals that cannot be preserved,
    `ModelError` for anything that is no stabilization.
    """
    require_stabilization(stabilization)
    constraints = description.constraints
    n_h, n_v = constraints.n_holonomic, constraints.n_nonholonomic
    useful = stabilization is None
    if isinstance(stabilization, Projection):
        _check_integrals(stabilization, description)
        useful = bool(constraints.positions or stabilization.integrals)
    if not useful and n_h + n_v == 0:
        raise SolveError(
            f"the model {description.name!r} has no holonomic or nonholonomic constraint on its speeds, so that there "
            "is nothing to stabilize; leave stabilization out"
        )
    if stabilization is None or isinstance(stabilization, Projection):
        return np.zeros(constraints.n_gains)
    return stabilization.flatten(n_h, n_v)


def _check_integrals(projection: Projection, description: Description) -> None:
    """Raise `SolveError` for integrals of motion that do not exist, cannot be preserved or were not built."""
    known, reasons = ("energy", *description.outputs), description.no_integrals
    problems = []
    for name in projection.integrals:
        if name not in known:
            problems.append(unknown(name, known, "integral of motion (the energy or an output)"))
        elif name in reasons:
            problems.append(f"{name!r} cannot be kept: {reasons[name]}")
        elif integral_function(name) not in description.functions:
            problems.append(
                f"{name!r} was not built for the model {description.name!r}: give the projection to kanegen.build, or "
                'name "integrals" in functions='
            )
    require_none(problems, "Projection(integrals=...): ")


def integral_function(name: str) -> str:
    """Name of the compiled function [I_u | I] of an integral of motion."""
    return f"integral:{name}"
