"""Formulas in MathML, which browsers draw without JavaScript and fonts from a network."""

from __future__ import annotations

import re
from typing import Final

from kanegen.display import Latex, Table, escape

_NAMESPACE: Final = ' xmlns="http://www.w3.org/1998/Math/MathML"'
"""Not needed in HTML."""

_APPLIED: Final = re.compile(r"(?<=>)<mi>(a?(?:sin|cos|tan)h?|exp|log|sqrt|sign)</mi>")
"""Names of functions; LaTeX puts a thin space between a factor and the function that follows it."""

_MATRIX: Final = re.compile(r"<mo[^>]*>\[</mo><mtable>(.*?)</mtable><mo[^>]*>\]</mo>")
"""Matrices. The style sheet of the page draws their brackets, which otherwise only grow with a font for mathematics."""

_COMPARISONS: Final = {"<": ("\ue000", "&lt;"), ">": ("\ue001", "&gt;")}
"""Characters that latex2mathml writes as they are: what stands for them during the conversion, and what is written."""

_HIDDEN: Final = str.maketrans({character: hidden for character, (hidden, _) in _COMPARISONS.items()})

_THIN: Final = '<mspace width="0.17em"></mspace>'


def mathml(formula: str, display: bool = False) -> str:
    """A formula in LaTeX as MathML; the text of the formula if it cannot be read, for example for unusual names."""
    from latex2mathml.converter import convert

    try:
        text = convert(formula.translate(_HIDDEN), display="block" if display else "inline")
    except Exception:  # the package has no common class of errors
        return f"<code>{escape(formula)}</code>"
    for hidden, shown in _COMPARISONS.values():
        text = text.replace(f"<mi>{hidden}</mi>", f"<mo>{shown}</mo>").replace(hidden, shown)
    text = _MATRIX.sub(r'<mtable class="matrix">\1</mtable>', text.replace(_NAMESPACE, ""))
    return _APPLIED.sub(lambda match: _THIN + match[0], text)


def table_html(table: Table) -> str:
    """A table with formulas in MathML; wide ones can be scrolled."""
    return f'<div class="wide">{table.html(_cell)}</div>'


def _cell(formula: Latex) -> str:
    return mathml(formula)
