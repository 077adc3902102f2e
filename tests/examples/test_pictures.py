"""Every example shows its motion in the documentation, in small files."""

from __future__ import annotations

import re

from checkout import EXAMPLES, ROOT

PLOTS = ROOT / "docs" / "plots"
LARGEST, ALL = 60_000, 1_500_000
"""Sizes in bytes: of a picture, and of all of them, which every clone of the repository contains."""


def shown() -> set[str]:
    """The pictures that the pages show."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    return {name for page in pages for name in re.findall(r"plots/(\w+\.png)\)", page.read_text("utf-8"))}


def test_every_example_has_a_picture_in_the_documentation() -> None:
    examples = {f"{path.stem}.png" for path in EXAMPLES.glob("[!_]*.py")}
    assert len(examples) > 20
    assert examples <= shown(), "draw them by make pictures, and show them in docs/examples.md"
    assert shown() == {path.name for path in PLOTS.iterdir()}


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in PLOTS.iterdir()}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
    assert sum(sizes.values()) < ALL
