"""Pages of HTML that need no network: how they are saved and shown in notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kanegen.display import escape
from kanegen.errors import FileError
from kanegen.paths import require_writable
from kanegen.writing import written

SUFFIXES: Final = ("", ".html", ".htm")
"""Those of pages; one in a file called .mp4 or .pdf would be read as what it is not."""


def page_path(path: Any) -> Path:
    """The path of a page that can be written. Raises `FileError` that says why it cannot, before any work is done."""
    target = require_writable(path, "the page")
    if target.suffix.lower() not in SUFFIXES:
        raise FileError(f"the page {target} cannot be written: it is HTML; expected a name that ends in .html")
    return target


@dataclass(frozen=True, eq=False)
class Page:
    """A self-contained page of HTML; a notebook shows it inline.

    ``html`` is the text of the page, ``notices`` are the sentences that it shows about what was assumed or left out,
    ``inline_height`` is the height in a notebook in pixels.
    """

    title: str
    html: str = field(repr=False)
    notices: tuple[str, ...] = ()
    inline_height: int = field(default=520, repr=False)

    def save(self, path: Any) -> Path:
        """Write the page to the file ``path``, which is replaced if it exists; returns the path.

        Raises `SolveError` if ``path`` is no path, `FileError` if it cannot be written or has the suffix of something
        else; an earlier file stays.
        """
        target = page_path(path)
        with written(target, "the page") as file:
            file.write(self.html.encode("utf-8", errors="replace"))  # names can contain surrogates
        return target

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
            f'style="width: 100%; height: {self.inline_height}px; border: 1px solid #d5d8dd"></iframe>'
        )
