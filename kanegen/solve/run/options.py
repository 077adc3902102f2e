"""The options of a run and its span: checks of the arguments of `integrate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np

from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP, NAMES
from kanegen.errors import SolveError, brief
from kanegen.run_options import Kind, RunOptions, defaults, table
from kanegen.solve.values import flag, number, positive


def read_options(given: RunOptions) -> RunOptions:
    """All options of a run: those that are ``given``, and defaults; the result must not be changed.

    Raises `SolveError` for values that are invalid or contradict the method, `TypeError` for unknown names.
    """
    # Reading options takes as long as a short run, and programs repeat runs with the same ones.
    key = tuple([(name, type(value), value) for name, value in given.items()])
    try:
        return _read_again(key)
    except TypeError:  # values without a hash, such as arrays; or an unknown name, which is raised again
        return _read(given)


@lru_cache(maxsize=64)
def _read_again(key: tuple[tuple[str, type, Any], ...]) -> RunOptions:
    return _read(cast(RunOptions, {name: value for name, _, value in key}))


def _read(given: RunOptions) -> RunOptions:
    options = cast(RunOptions, {**_DEFAULTS, **given})
    if len(options) != len(_DEFAULTS):
        unknown = next(name for name in given if name not in _DEFAULTS)
        raise TypeError(f"integrate() got an unexpected keyword argument {unknown!r}")
    check_options(given, options["method"])
    return cast(RunOptions, MappingProxyType(options))


def check_options(given: Mapping[str, Any], method: Any) -> None:
    """Raise `SolveError` for options that are invalid or contradict the method."""
    _check_method(method, "method")
    own, other = ("fixed", "adaptive") if method in FIXED_STEP else ("adaptive", "fixed")
    if own == "fixed" and given.get("step") is None:
        raise SolveError(f"{method} has a fixed step: give step= (seconds), or use {' or '.join(ADAPTIVE)}")
    for name, value in given.items():
        option = _TABLE[name]
        if value is option.default:
            continue
        if option.methods == other and value is not None:
            adaptive = ", ".join(name for name, known in _TABLE.items() if known.methods == "adaptive")
            advice = "leave it out" if own == "fixed" else f"give {adaptive} or tolerances, or use rk4"
            kind = "has a fixed step" if own == "fixed" else "chooses its steps"
            raise SolveError(f"{method} {kind} and accepts no {name}: {advice}")
        check_value(option.kind, value, name)


def check_value(kind: Kind, value: Any, name: str) -> None:
    """Raise `SolveError` for a value that an option of this kind cannot have; some are checked where they are read."""
    check = _CHECKS.get(kind)
    if check is not None:
        check(value, name)


def _check_method(value: Any, name: str) -> None:
    if not isinstance(value, str) or value not in NAMES:
        raise SolveError(
            f"{name} is {brief(value)}; expected {', '.join(FIXED_STEP)} (fixed step) or {', '.join(ADAPTIVE)} "
            "(adaptive)"
        )


def _check_seconds(value: Any, name: str) -> None:
    if value is not None:
        positive(value, name, "a positive number of seconds")


def _check_delay(value: Any, name: str) -> None:
    if value is not None and number(value, name) < 0.0:
        raise SolveError(f"{name} is {value!r}; expected a number of seconds that is not negative")


def _check_positive(value: Any, name: str) -> None:
    if value is not None:
        positive(value, name, "a positive number, or None for no check")


def _check_count(value: Any, name: str) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if value is not None and not (whole and 1 <= value <= _MOST):
        raise SolveError(f"{name} is {brief(value)}; expected an integer from 1 to 2**63 - 1, or None")


def _check_progress(value: Any, name: str) -> None:
    if not (isinstance(value, (bool, np.bool_)) or callable(value)):
        raise SolveError(f"{name} is {brief(value)}; expected True, False or a function")


def _check_tolerance(value: Any, name: str) -> None:
    if isinstance(value, float) and 0.0 < value < math.inf:
        return  # the usual case, without the time that NumPy takes
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    zero = name == "atol"
    if not (np.isfinite(array).all() and ((array >= 0.0) if zero else (array > 0.0)).all()):
        raise SolveError(
            f"{name} is {brief(value)}; expected finite numbers that are {'not negative' if zero else 'positive'}"
        )


_MOST: Final = 2**63 - 1
"""The compiled integrator counts with 64 bits."""

_TABLE: Final = table(RunOptions)
_DEFAULTS: Final = defaults(RunOptions)
_CHECKS: Final[Mapping[Kind, Callable[[Any, str], Any]]] = {
    Kind.METHOD: _check_method,
    Kind.SECONDS: _check_seconds,
    Kind.DELAY: _check_delay,
    Kind.POSITIVE: _check_positive,
    Kind.FLAG: flag,
    Kind.COUNT: _check_count,
    Kind.TOLERANCE: _check_tolerance,
    Kind.PROGRESS: _check_progress,
}


def span_of(t_span: Any, start: float | None) -> tuple[float, float]:
    """First and last time; ``start`` is the first one if ``t_span`` is a number."""
    try:
        t0, t1 = t_span
    except (TypeError, ValueError) as error:
        if not isinstance(t_span, (int, float, np.number)) or isinstance(t_span, bool):
            raise SolveError(f"t_span is {brief(t_span)}; expected a pair (t0, t1) in seconds") from error
        if start is None:
            raise SolveError(
                f"t_span is {brief(t_span)}, the end of the run, and the start has no time: give (t0, t1), or t in "
                "Model(initial=...) or solver.with_initial(...)"
            ) from error
        t0, t1 = start, t_span
    first, last = number(t0, "t0"), number(t1, "t1")
    if not math.isfinite(last - first):
        raise SolveError(f"t_span is {t_span!r}; its length exceeds the largest floating-point number")
    return first, last
