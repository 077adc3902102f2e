"""The options of an FMU, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from kanegen.codegen.methods.table import ADAPTIVE, EMITTED, FIXED_STEP
from kanegen.errors import SolveError, brief
from kanegen.run_options import Kind, StepOptions, defaults, table
from kanegen.solve.values import known_name, positive

VERSIONS: Final = ("2.0", "3.0")
"""Versions of the standard, the default first."""

DEFAULTS: Final[StepOptions] = {"method": EMITTED[0], "step": 1e-3}
"""Options of the co-simulation whose defaults are not those of :meth:`kanegen.Solver.integrate`."""

NUMBERS: Final = tuple(name for name in table(StepOptions) if name != "method")
"""Options of the co-simulation that are parameters ``solver.NAME``, in the order of the C code."""


@dataclass(frozen=True)
class FmuOptions:
    """Version of the standard, and how the co-simulation integrates unless the importer sets other parameters."""

    fmi: str
    stepping: StepOptions

    @classmethod
    def of(cls, fmi: Any, given: StepOptions) -> FmuOptions:
        """The options with their defaults. Raises `SolveError` for those that are wrong."""
        if fmi not in VERSIONS:
            raise SolveError(f"fmi is {brief(fmi)}; expected {' or '.join(VERSIONS)}")
        known = table(StepOptions)
        stepping = {**defaults(StepOptions), **DEFAULTS, **given}
        for name, value in stepping.items():
            if known_name(name, tuple(known), "option") == "method":
                _check_method(value)
            elif known[name].kind is Kind.TOLERANCE or value is not None:
                positive(value, name, "a positive number")
        return cls(fmi, cast(StepOptions, stepping))

    @property
    def numbers(self) -> dict[str, float]:
        """The values of the parameters ``solver.NAME``; 0 for none."""
        return {name: float(cast(Any, self.stepping.get(name)) or 0.0) for name in NUMBERS}


def _check_method(method: Any) -> None:
    if method not in EMITTED:
        kinds = f"{', '.join(m for m in EMITTED if m in FIXED_STEP)} (fixed step) or "
        adaptive = ", ".join(m for m in EMITTED if m in ADAPTIVE)
        raise SolveError(f"method is {brief(method)}; expected {kinds}{adaptive} (adaptive)")
