"""The options of an FMU, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kanegen.codegen.methods.table import ADAPTIVE, EMITTED, FIXED_STEP
from kanegen.errors import SolveError, brief
from kanegen.solve.values import positive

VERSIONS: Final = ("2.0", "3.0")
"""Versions of the standard, the default first."""

SOLVER: Final = MappingProxyType(
    {
        "step": ("fixed step of rk4 and kutta_merson", "s"),
        "max_step": ("largest step of adaptive methods; 0: no limit", "s"),
        "rtol": ("relative tolerance of adaptive methods", ""),
        "atol": ("absolute tolerance of adaptive methods", ""),
    }
)
"""Options of the co-simulation that are parameters ``solver.NAME``, in the order of the C code: meaning and unit."""


@dataclass(frozen=True)
class FmuOptions:
    """Version of the standard, and how the co-simulation integrates unless the importer sets other parameters.

    ``step`` (s) is the step of methods with a fixed step, ``max_step`` (s, None: no limit) the largest step of adaptive
    methods, ``rtol`` and ``atol`` are their tolerances.
    """

    fmi: str = VERSIONS[0]
    method: str = EMITTED[0]
    step: float = 1e-3
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: float | None = None

    def __post_init__(self) -> None:
        if self.fmi not in VERSIONS:
            raise SolveError(f"fmi is {brief(self.fmi)}; expected {' or '.join(VERSIONS)}")
        if self.method not in EMITTED:
            kinds = f"{', '.join(m for m in EMITTED if m in FIXED_STEP)} (fixed step) or "
            adaptive = ", ".join(m for m in EMITTED if m in ADAPTIVE)
            raise SolveError(f"method is {brief(self.method)}; expected {kinds}{adaptive} (adaptive)")
        positive(self.step, "step", "a positive number of seconds")
        positive(self.rtol, "rtol", "a positive number")
        positive(self.atol, "atol", "a positive number")
        if self.max_step is not None:
            positive(self.max_step, "max_step", "a positive number of seconds")

    def solver(self) -> dict[str, Any]:
        """The values of the parameters ``solver.NAME``."""
        return {name: float(getattr(self, name) or 0.0) for name in SOLVER}
