"""Tables for a terminal, and numbers in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.table import Table


def make_table(
    title: str, headings: Iterable[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()
) -> Table:
    """A table with a title; columns whose heading is in ``right`` are aligned on that side."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*row)
    return table


def seconds_text(seconds: float) -> str:
    """A duration with a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def number_text(value: float) -> str:
    """A number to three digits, without decimals from 100."""
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
