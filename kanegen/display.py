"""Tables for notebooks and terminals: what models, solvers and results show of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_ROWS = 30
"""Rows of a table; of more, the first and the last ones are shown."""

MOST_NAMES = 24
"""Names in a cell; of more, the first and the last ones are shown."""


def escape(text: str) -> str:
    """Text for HTML, also for attributes; the module ``html`` would cost 5 ms of ``import kanegen``."""
    return "".join(_ESCAPED.get(character, character) for character in text)


_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}


class Latex(str):
    """A formula in LaTeX, which a notebook typesets."""

    __slots__ = ()

    def html(self) -> str:
        """The formula for a cell; a dollar sign in a name must not end it."""
        protected = re.sub(r"(?<!\\)\$", r"\\$", self)
        return escape(f"$\\displaystyle {protected}$")


def latex(expression: Any) -> str:
    """A SymPy expression in LaTeX, with dots for rates; names of several letters are words, not products of letters."""
    from sympy import Symbol
    from sympy.core.function import AppliedUndef
    from sympy.physics.vector.printing import vlatex

    found = expression.atoms(Symbol, AppliedUndef) if hasattr(expression, "atoms") else ()
    symbols = [Symbol(x.func.__name__) if isinstance(x, AppliedUndef) else x for x in found]
    return str(vlatex(expression, symbol_names={symbol: _name_latex(symbol.name) for symbol in symbols}))


def _name_latex(name: str) -> str:
    from sympy.printing.conventions import split_super_sub

    base, above, below = split_super_sub(name)
    ends = [rf"{sign}{{{' '.join(map(_word, parts))}}}" for sign, parts in (("^", above), ("_", below)) if parts]
    return "".join([_word(base), *ends])


def _word(part: str) -> str:
    """A letter, a number, a Greek letter, or an accented one, as SymPy writes it; anything else as a word."""
    from sympy.printing.latex import translate

    written: str = translate(part)
    if written != part:
        return re.sub(r"\{(\w{2,})\}", r"{\\text{\1}}", written)
    if (len(part) == 1 and part.isalnum()) or part.isdecimal():
        return part
    return rf"\text{{{latex_text(part)}}}"


def latex_text(words: str) -> str:
    """Words for a text in LaTeX."""
    return "".join(_IN_TEXT.get(character, character) for character in words)


_IN_TEXT = {
    **{character: f"\\{character}" for character in "_%$#&{}"},
    "\\": r"\textbackslash ",
    "^": r"\textasciicircum ",
    "~": r"\textasciitilde ",
}


@dataclass(frozen=True)
class Table:
    """A table of texts and formulas.

    ``headings`` can be empty; the columns whose headings are in ``right`` are aligned on that side. ``notes`` are lines
    below the table. ``styles`` maps the text of a cell to its style, such as ``"bold red"``.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    styles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], **options: Any) -> Table:
        """A table of at most :data:`MOST_ROWS` rows; a row of dots stands for those in the middle."""
        kept = [tuple(row) for row in rows]
        if len(kept) > MOST_ROWS:
            dots = ("...", *("" for _ in kept[0][1:]))
            kept = [*kept[: MOST_ROWS // 2], dots, *kept[-(MOST_ROWS // 2) :]]
        return cls(title, tuple(headings), tuple(kept), **options)

    def html(self, formula: Callable[[Latex], str] = Latex.html) -> str:
        """The table as HTML; texts are escaped and, unlike formulas, not typeset.

        ``formula`` writes a formula for a page; by default it remains LaTeX, which notebooks typeset.
        """
        lines = [f"<caption {_LEFT}><b>{escape(self.title)}</b></caption>"]
        if self.headings:
            cells = "".join(self._cell("th", heading, k, formula) for k, heading in enumerate(self.headings))
            lines.append(f"<thead><tr>{cells}</tr></thead>")
        rows = ("".join(self._cell("td", cell, k, formula) for k, cell in enumerate(row)) for row in self.rows)
        lines.append("<tbody>" + "\n".join(f"<tr>{row}</tr>" for row in rows) + "</tbody>")
        notes = "".join(f"<div {_PLAIN}>{escape(note)}</div>" for note in self.notes)
        return "<table>" + "\n".join(lines) + "</table>" + notes

    def rich(self) -> Any:
        """The table as a ``rich.table.Table``, for a terminal."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            title=Text(self.title),
            caption=Text("\n".join(self.notes)) if self.notes else None,
            title_justify="left",
            caption_justify="left",
            header_style="bold",
            show_header=bool(self.headings),
        )
        for heading in self.headings or [""] * max(map(len, self.rows), default=0):
            table.add_column(Text(heading), justify="right" if heading in self.right else "left")
        for row in self.rows:
            table.add_row(*(Text(cell, self.styles.get(cell, "")) for cell in row))
        return table

    def _cell(self, tag: str, cell: str, column: int, formula: Callable[[Latex], str]) -> str:
        aligned = "right" if self.headings and self.headings[column] in self.right else "left"
        style = self.styles.get(cell, "").split()
        color = f"; color: {style[-1]}" if style else ""
        attributes = f'style="text-align: {aligned}{color}"'
        if isinstance(cell, Latex):
            return f"<{tag} {attributes}>{formula(cell)}</{tag}>"
        return f"<{tag} {_PLAIN} {attributes}>{escape(cell)}</{tag}>"


_LEFT = 'style="text-align: left; white-space: nowrap"'
_PLAIN = 'class="tex2jax_ignore mathjax_ignore"'
"""The class of texts in which dollar signs are no formulas."""


def page(*tables: Table) -> str:
    """Tables one below the other as HTML."""
    return "\n".join(table.html() for table in tables)


def facts(title: str, pairs: Iterable[tuple[str, str]], **options: Any) -> Table:
    """A table without headings of pairs (what, value); pairs without a value are left out."""
    return Table.of(title, (), [pair for pair in pairs if pair[1]], **options)


def names(entries: Iterable[str]) -> str:
    """Names as one text, shortened in the middle."""
    known = list(entries)
    if len(known) > MOST_NAMES:
        known[MOST_NAMES // 2 : -(MOST_NAMES // 2)] = [f"... ({len(known)} in all) ..."]
    return ", ".join(known)


def values(entries: Mapping[str, Any], units: Any = None) -> str:
    """Names with values as one text, in the units of :class:`kanegen.units.Units`; None is a missing value."""
    return names(f"{name} = {value_text(name, value, units)}" for name, value in entries.items())


def value_text(name: str, value: Any, units: Any = None, digits: int = 6) -> str:
    """A value in the unit of its name, if it has one, with the unit."""
    if value is None:
        return "?"
    if not units:
        return format(value, f".{digits}g")
    return f"{units.display(name, value):.{digits}g} {units.text(name)}".rstrip()
