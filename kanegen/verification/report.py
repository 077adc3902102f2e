"""The results of the self-checks, and their table."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import Any, Final

VERDICTS: Final = {True: ("ok", "green"), False: ("FAILED", "bold red"), None: ("-", "dim")}


@dataclass(frozen=True)
class Check:
    """One row: a ``principle``, the worst relative ``deviation`` over all states, and what is allowed.

    ``deviation`` is None where nothing was compared; ``tolerance`` None where the deviation is only reported. ``note``
    says what was compared, where it was worst, or why the principle does not apply.
    """

    principle: str
    deviation: float | None
    tolerance: float | None
    note: str

    @property
    def ok(self) -> bool | None:
        """Whether the deviation is within the tolerance; None where nothing is judged."""
        if self.deviation is None or self.tolerance is None:
            return None
        # A NaN is no agreement.
        return bool(self.deviation <= self.tolerance)


@dataclass(frozen=True)
class Report:
    """The checks of ``model`` (its name) in ``form``; ``notes`` say at which states. ``str()`` is the table."""

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
        """The check of that name. Raises KeyError for one that there is not."""
        for check in self.checks:
            if check.principle == principle:
                return check
        raise KeyError(f"no check {principle!r}; there are {', '.join(check.principle for check in self.checks)}")

    def table(self) -> Any:
        """The report as a ``rich.table.Table``."""
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=f"{self.model} ({self.form} form)",
            caption="\n".join(self.notes),
            title_justify="left",
            caption_justify="left",
            header_style="bold",
        )
        for heading in ("principle", "deviation", "tolerance", "", "what was compared"):
            table.add_column(heading, justify="right" if heading in ("deviation", "tolerance") else "left")
        for check in self.checks:
            verdict, style = VERDICTS[check.ok]
            numbers = (_number(check.deviation), _number(check.tolerance))
            table.add_row(Text(check.principle), *numbers, Text(verdict, style), Text(check.note))
        return table

    def __str__(self) -> str:
        from rich.console import Console

        text = StringIO()
        Console(file=text, width=140, color_system=None).print(self.table())
        return text.getvalue().rstrip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
