"""The gallery of the documentation: a page for each script of build_examples, with its motion in 3-D.

Sphinx loads this file as an extension. Before it reads the pages, :func:`write` runs the examples, writes their pages
to docs/gallery/NAME.md, and the motions to build/gallery/motions/NAME.html, from where Sphinx copies them to the site.
With KANEGEN_DOCS_MOTIONS=0 no example runs, and the pages have no motions: text can be looked at within seconds.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
EXAMPLES: Final = HERE.parent / "build_examples"
PAGES: Final = HERE / "gallery"
MOTIONS: Final = HERE.parent / "build" / "gallery" / "motions"

PAGE: Final = """\
# {title}

{text}

{picture}

{motion}

## Source

`build_examples/{name}.py`:

```{{literalinclude}} ../../build_examples/{name}.py
:language: python
```
"""

CARD: Final = """\
:::{{grid-item-card}} {title}
:link: {name}
:link-type: doc
:img-top: ../plots/{picture}

{summary}
:::
"""

INDEX: Final = """\
# Gallery

Each example compares its motion with a known one. [Examples](../examples.md) says with which, and how to run them.

::::{{grid}} 1 2 3 3
:gutter: 3

{cards}
::::

```{{toctree}}
:hidden:

{names}
```
"""


def write(_: Any = None) -> None:
    """Write the pages of all examples, and the motions of those that changed since they were written."""
    sys.path.insert(0, str(EXAMPLES))
    for folder in (PAGES, MOTIONS):
        folder.mkdir(parents=True, exist_ok=True)
    names = sorted(path.stem for path in EXAMPLES.glob("[!_]*.py"))
    cards = [_write_page(name) for name in names]
    (PAGES / "index.md").write_text(INDEX.format(cards="\n".join(cards), names="\n".join(names)), encoding="utf-8")


def _write_page(name: str) -> str:
    """Write the page of an example; returns its card in the index."""
    report, module = importlib.import_module("_report"), importlib.import_module(name)
    title, text = report.parts(module.__doc__ or "")
    picture = f"{name}.png"
    given = {
        "name": name,
        "title": title,
        "text": f"```{{eval-rst}}\n{text}\n```",
        "picture": f"![{title}](../plots/{picture})",
        "motion": _motion(name, report, module),
    }
    (PAGES / f"{name}.md").write_text(PAGE.format(**given), encoding="utf-8")
    summary = text.partition("\n\n")[0].replace("\n", " ")
    return CARD.format(name=name, title=title, picture=picture, summary=summary)


def _motion(name: str, report: Any, module: Any) -> str:
    """A section with the motion, which is computed if the script is newer than its page."""
    if os.environ.get("KANEGEN_DOCS_MOTIONS") == "0":
        return ""
    page = MOTIONS / f"{name}.html"
    if not page.exists() or os.path.getmtime(page) < os.path.getmtime(EXAMPLES / f"{name}.py"):
        cases = getattr(module, "CASES", None) or {"": {}}
        runs = {case: module.simulate(**options) for case, options in cases.items()}
        report.animation(runs).save(page)
    frame = f'<iframe class="motion" src="../motions/{name}.html" title="{name} in motion" loading="lazy"></iframe>'
    return f"## Motion\n\n```{{raw}} html\n{frame}\n```"


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
