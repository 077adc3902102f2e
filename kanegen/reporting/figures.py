"""Figures of matplotlib as images inside a page."""

from __future__ import annotations

import base64
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

from kanegen.display import escape
from kanegen.solve.solution.drawing import BESIDES, PANEL, WIDTH

LARGEST: Final = 1_000_000
"""Bytes of a drawing with lines (SVG); figures with more points are pictures (PNG)."""


def figure(draw: Callable[[Any], Any], text: str, panel: float = PANEL) -> str:
    """The figure that ``draw`` makes, as an image that ``text`` describes; ``panel``: height of each axis, inches."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawn = Figure(layout="constrained")
    draw(drawn)
    drawn.set_size_inches(WIDTH, BESIDES + panel * max(1, len(drawn.axes)))
    with rc_context({"svg.hashsalt": "kanegen"}):  # the same figure gives the same text
        kind, content = "svg+xml", _saved(drawn, format="svg", metadata={"Date": None})
    if len(content) > LARGEST:
        kind, content = "png", _saved(drawn, format="png", dpi=150)
    data = base64.b64encode(content).decode("ascii")
    return f'<div class="wide"><img alt="{escape(text)}" src="data:image/{kind};base64,{data}"></div>'


def _saved(drawn: Any, **options: Any) -> bytes:
    buffer = BytesIO()
    drawn.savefig(buffer, **options)
    return buffer.getvalue()
