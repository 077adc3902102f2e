"""The options of a run and its span: arguments of `integrate`, with their checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.codegen.methods.table import ADAPTIVE, FIXED_STEP
from kanegen.errors import SolveError, brief
from kanegen.solve.values import flag, number, positive


class Options(NamedTuple):
    """How to integrate: arguments of :meth:`kanegen.Solver.integrate`."""

    method: str
    rtol: Any
    atol: Any
    step: float | None
    first_step: float | None
    max_step: float | None
    max_steps: int | None
    t_eval: Any
    events: Any
    modes: Mapping[str, str] | None
    dense_output: bool
    progress: bool | Callable[[float], None]

    def checked(self) -> Options:
        """These options. Raises `SolveError` for step options that contradict the method, and for invalid values."""
        if not isinstance(self.method, str) or self.method not in FIXED_STEP + ADAPTIVE:
            raise SolveError(
                f"method is {brief(self.method)}; expected {', '.join(FIXED_STEP)} (fixed step) or "
                f"{', '.join(ADAPTIVE)} (adaptive)"
            )
        fixed = self.method in FIXED_STEP
        if fixed and self.step is None:
            raise SolveError(f"{self.method} has a fixed step: give step= (seconds), or use {' or '.join(ADAPTIVE)}")
        if not (self.step is self.first_step is self.max_step is None):
            self._check_steps(fixed)
        steps = self.max_steps
        whole = isinstance(steps, (int, np.integer)) and not isinstance(steps, bool)
        if steps is not None and not (whole and 1 <= steps <= _MOST_STEPS):
            raise SolveError(f"max_steps is {brief(steps)}; expected an integer from 1 to 2**63 - 1, or None")
        flag(self.dense_output, "dense_output")
        if not (isinstance(self.progress, (bool, np.bool_)) or callable(self.progress)):
            raise SolveError(f"progress is {brief(self.progress)}; expected True, False or a function")
        _check_tolerance(self.rtol, "rtol", zero=False)
        _check_tolerance(self.atol, "atol", zero=True)
        return self

    def _check_steps(self, fixed: bool) -> None:
        for name in ("first_step", "max_step") if fixed else ("step",):
            if getattr(self, name) is not None:
                advice = "leave it out" if fixed else "give first_step, max_step or tolerances, or use rk4"
                kind = "has a fixed step" if fixed else "chooses its steps"
                raise SolveError(f"{self.method} {kind} and accepts no {name}: {advice}")
        for name in ("step", "first_step", "max_step"):
            value = getattr(self, name)
            if value is not None:
                positive(value, name, "a positive number of seconds")


RTOL: Final = 1e-8
ATOL: Final = 1e-10
STEPPING: Final = Options._fields[: Options._fields.index("events")]
"""The options of the steps and of what is stored, which the compiled integrator reads."""


_MOST_STEPS: Final = 2**63 - 1
"""The compiled integrator counts steps with 64 bits."""


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


def _check_tolerance(value: Any, name: str, zero: bool) -> None:
    if isinstance(value, float) and 0.0 < value < math.inf:
        return  # the usual case, without the time that NumPy takes
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if not (np.isfinite(array).all() and ((array >= 0.0) if zero else (array > 0.0)).all()):
        raise SolveError(
            f"{name} is {brief(value)}; expected finite numbers that are {'not negative' if zero else 'positive'}"
        )
