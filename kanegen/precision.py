"""Precisions of compiled code, and the tolerances and numbers that depend on them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from kanegen.errors import BuildError


class Tolerance(float):
    """A tolerance against rounding: its value in double precision, and ``single``, its value in float.

    Products with exact numbers and floats are tolerances; other results are plain numbers.
    """

    single: float

    def __new__(cls, double: float, single: float) -> Tolerance:
        result = super().__new__(cls, double)
        result.single = single
        return result

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int | float | Fraction):
            return float(self) * other
        single = other.single if isinstance(other, Tolerance) else other
        return Tolerance(float(self) * float(other), self.single * float(single))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[type[Tolerance], tuple[float, float]]:
        return Tolerance, (float(self), self.single)


@dataclass(frozen=True)
class Precision:
    """A scalar type of C: its name, its largest number and its smallest number of full precision."""

    name: str
    largest: float
    smallest: float

    def value(self, number: int | Fraction | float) -> int | Fraction | float:
        """The number in this precision: that of a tolerance depends on it."""
        return number.single if isinstance(number, Tolerance) and self.name == "float" else number

    def holds(self, number: int | Fraction | float) -> bool:
        """Whether the scalar type represents the number with its full precision. NaN and infinity count as such."""
        try:
            size = abs(float(self.value(number)))
        except OverflowError:
            return False
        return size == 0.0 or not math.isfinite(size) or self.smallest <= size <= self.largest

    def require(self, number: int | Fraction | float, what: str) -> None:
        """Raise `BuildError` if the scalar type cannot represent ``number``; ``what`` says what the number is."""
        if not self.holds(number):
            raise BuildError(self.refusal(what))

    def refusal(self, what: str) -> str:
        """What to say about numbers that the scalar type cannot represent."""
        advice = "" if self.name == "double" else ', or use precision="double"'
        return (
            f"{what}: {self.name} represents magnitudes from {self.smallest:.3g} to {self.largest:.3g}; "
            f"scale the model, for example by other units{advice}"
        )


DOUBLE: Final = Precision("double", sys.float_info.max, 0.0)
"""Literals below the smallest normal double keep what the compiler keeps of them."""
FLOAT: Final = Precision("float", (2.0 - 2.0**-23) * 2.0**127, 2.0**-126)

PRECISIONS: Final[Mapping[str, Precision]] = {precision.name: precision for precision in (DOUBLE, FLOAT)}
"""The precisions by name."""
