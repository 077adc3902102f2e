"""The worst deviation over the states, and where it was."""

from __future__ import annotations

import math
from dataclasses import replace

from kanegen.verification.arithmetic import Vector, deviation
from kanegen.verification.report import Check
from kanegen.verification.states import State


class Worst:
    """Collects comparisons of one principle."""

    def __init__(self, principle: str, tolerance: float | None) -> None:
        self.principle = principle
        self.tolerance = tolerance
        self._deviation: float | None = None
        self._where = ""

    def compare(
        self, what: str, state: State, actual: Vector, expected: Vector, sensitivity: Vector | None = None
    ) -> None:
        """One array against another."""
        self.add(what, state, deviation(actual, expected, sensitivity))

    def add(self, what: str, state: State, deviation: float) -> None:
        """A relative deviation; NaN is the worst of all."""
        if self._deviation is None or not deviation <= self._deviation:
            if self._deviation is not None and math.isnan(self._deviation):
                return
            self._deviation, self._where = deviation, f"{what} at {state}"

    def check(self, note: str) -> Check:
        """The row; with the worst place where the tolerance is exceeded."""
        row = Check(self.principle, self._deviation, self.tolerance, note)
        return replace(row, note=f"{note}; worst: {self._where}") if row.ok is False else row


def not_applicable(principle: str, reason: str) -> Check:
    """The row of a principle that says nothing about this model."""
    return Check(principle, None, None, f"not applicable: {reason}")
