"""Formulas in MathML, which browsers draw without JavaScript and fonts from a network."""

from __future__ import annotations

import re
from typing import Final

from kanegen.display import Latex, Table, escape

_NAMESPACE: Final = ' xmlns="http://www.w3.org/1998/Math/MathML"'
"""Not needed in HTML."""

_APPLIED: Final = (
    r"(</m(?:i|n|frac|row|sub|sup|subsup)>)((?:<m(?:sub|sup|subsup)>)?<mi>(?:a?(?:sin|cos|tan)h?|exp|log|sign)</mi>)"
)
"""A factor and the function that follows it, between which LaTeX puts a thin space."""

_MATRIX: Final = r"<mo[^>]*>\[</mo><mtable>(.*?)</mtable><mo[^>]*>\]</mo>"
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
    text = re.sub(_MATRIX, r'<mtable class="matrix">\1</mtable>', text.replace(_NAMESPACE, ""))
    return re.sub(_APPLIED, rf"\1{_THIN}\2", text)


def table_html(table: Table) -> str:
    """A table with formulas in MathML; wide ones can be scrolled."""
    return f'<div class="wide">{table.html(_cell)}</div>'


def _cell(formula: Latex) -> str:
    return mathml(formula)
