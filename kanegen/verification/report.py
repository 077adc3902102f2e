"""The results of the self-checks: the worst deviation of each, and their table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final, TypeAlias

import mpmath
import numpy as np

from kanegen.derivation.states import Numbers, State
from kanegen.display import Table
from kanegen.errors import DerivationError

Vector: TypeAlias = "Sequence[Any] | Numbers"

SIGNIFICANT: Final = 1e-3
"""Entries below this fraction of the largest of their array are compared on the scale of this fraction."""

VERDICTS: Final = {True: ("ok", "green"), False: ("FAILED", "bold red"), None: ("-", "dim")}


class NotApplicableError(Exception):
    """The principle does not apply to the model; the message is the reason."""


@dataclass(frozen=True)
class Check:
    """One row: a ``principle``, the worst relative ``deviation`` over all states, and its ``tolerance``.

    ``deviation`` is None if nothing was compared, ``tolerance`` if the deviation is only reported. ``note`` says what
    was compared, where the deviation was largest, or why the principle does not apply.
    """

    principle: str
    deviation: float | None
    tolerance: float | None
    note: str

    @property
    def ok(self) -> bool | None:
        """Whether the deviation is within the tolerance; None if either of them is None."""
        if self.deviation is None or self.tolerance is None:
            return None
        # Comparisons with NaN are False: a NaN never agrees.
        return bool(self.deviation <= self.tolerance)


class Worst:
    """The worst deviation of one principle over the states, and where it was found."""

    def __init__(self, principle: str, tolerance: float | None) -> None:
        self.principle = principle
        self.tolerance = tolerance
        self._deviation: float | None = None
        self._where = ""
        self._compared: list[tuple[str, State, Vector, Vector, Vector | None]] = []

    def compare(
        self, what: str, state: State, actual: Vector, expected: Vector, sensitivity: Vector | None = None
    ) -> None:
        """Compare two arrays; entries that vanish at this state are judged by those of ``what`` at the others."""
        self._compared.append((what, state, actual, expected, sensitivity))

    def add(self, what: str, state: State, deviation: float = math.nan) -> None:
        """Keep a relative deviation if it is the worst; NaN, the worst of all, if there is no value to compare."""
        if self._deviation is None or not (deviation <= self._deviation or math.isnan(self._deviation)):
            self._deviation, self._where = deviation, f"{what} at {state}"

    def check(self, note: str) -> Check:
        """The row; its note names the worst place if the tolerance is exceeded."""
        usual: dict[str, Any] = {}
        for what, _, *vectors in self._compared:
            usual[what] = max(usual.get(what, 0), *map(_largest, vectors))
        for what, state, actual, expected, sensitivity in self._compared:
            self.add(what, state, deviation(actual, expected, sensitivity, usual[what]))
        row = Check(self.principle, self._deviation, self.tolerance, note)
        if row.ok is False:
            return Check(self.principle, self._deviation, self.tolerance, f"{note}; worst: {self._where}")
        return row


def judge(principle: str, tolerance: float, compare: Callable[[Worst], str]) -> Check:
    """The row of a principle: ``compare`` adds its deviations and returns the note.

    It raises `NotApplicableError`, or `DerivationError` where a function of the user has no derivatives.
    """
    worst = Worst(principle, tolerance)
    try:
        return worst.check(compare(worst))
    except (NotApplicableError, DerivationError) as reason:
        return Check(principle, None, None, f"not applicable: {reason}")


def _largest(vector: Vector | None) -> Any:
    """The largest finite size of an entry."""
    entries = () if vector is None else np.ravel(np.asarray(vector, dtype=object))
    return max((float(abs(x)) for x in entries if np.isfinite(float(x))), default=0.0)


def deviation(actual: Vector, expected: Vector, sensitivity: Vector | None = None, usual: Any = 0) -> float:
    """The largest difference of two arrays, each entry relative to its size.

    The size of an entry is its magnitude or, if larger, its ``sensitivity``: the size of its terms, or its change
    per unit of relative rounding error. The size is at least :data:`SIGNIFICANT` times the largest size in the
    array, and times the ``usual`` size at other states. The result is NaN if a value is not finite.
    """
    if len(actual) != len(expected):
        return math.nan
    sizes = [max(abs(x), abs(y)) for x, y in zip(actual, expected, strict=True)]
    if sensitivity is not None:
        sizes = [max(size, abs(s)) for size, s in zip(sizes, sensitivity, strict=True)]
    floor = SIGNIFICANT * max([usual, *sizes])
    differences = [abs(x - y) for x, y in zip(actual, expected, strict=True)]
    if not all(map(mpmath.isfinite, differences)):
        return math.nan
    pairs = zip(differences, sizes, strict=True)
    return max((float(difference / max(size, floor)) for difference, size in pairs if difference), default=0.0)


@dataclass(frozen=True)
class Report:
    """The checks of ``model`` (its name) in ``form``; ``notes`` describe the states. ``str()`` is the table."""

    model: str
    form: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks whose deviation is too large."""
        return tuple(check for check in self.checks if check.ok is False)

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    def check(self, principle: str) -> Check:
        """The check of that name. Raises KeyError if there is none."""
        for check in self.checks:
            if check.principle == principle:
                return check
        raise KeyError(f"no check {principle!r}; there are {', '.join(check.principle for check in self.checks)}")

    def table(self) -> Any:
        """The report as a ``rich.table.Table``."""
        return self.overview().rich()

    def _repr_html_(self) -> str:
        return self.overview().html()

    def overview(self) -> Table:
        """A row for each check."""
        rows = []
        for check in self.checks:
            numbers = ("-" if value is None else f"{value:.1e}" for value in (check.deviation, check.tolerance))
            rows.append((check.principle, *numbers, VERDICTS[check.ok][0], check.note))
        headings = ("principle", "deviation", "tolerance", "", "what was compared")
        numeric = ("deviation", "tolerance")
        title = f"{self.model} ({self.form} form)"
        return Table(title, headings, tuple(rows), numeric, self.notes, dict(VERDICTS.values()))

    def __str__(self) -> str:
        from rich.console import Console

        text = StringIO()
        Console(file=text, width=140, color_system=None).print(self.table())
        return text.getvalue().rstrip()
