"""The index of the documentation: questions of a newcomer, links of all pages, and the recipes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT
from pages import ANSWERS, DOCS, programs, run

INDEX = (DOCS / "README.md").read_text(encoding="utf-8")
PAGES = [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "learn").glob("*.md")), ROOT / "README.md"]

QUESTIONS = (
    *("own output", "reaction of a joint", "reset a state at an event", "reset a speed", "impulses", "PID", "gravity"),
    *("units", "change a parameter", "sweep", "FMU", "in C,", "C++", "MATLAB", "Simulink", "Octave", "equilibrium"),
    *("animation", "linearize", "gradients", "KanesMethod", "friction", "microcontroller", "data frames"),
)

DOORS = ("changelog.md", "explain.md", "howto.md", "index.md")
"""Pages of the site that only lead to other pages."""


def text_of(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and most renderers name them."""
    found: dict[str, int] = {}
    names = set()
    for heading in re.findall(r"^#+ +(.*)$", text_of(page), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = found[slug] = found.get(slug, -1) + 1
        names.add(f"{slug}-{count}" if count else slug)
    return names


@pytest.mark.parametrize("words", QUESTIONS)
def test_the_index_has_the_words_of_a_question(words: str) -> None:
    assert words in INDEX


def test_the_index_names_every_page() -> None:
    names = [page.name for page in DOCS.glob("*.md") if page.name not in ("README.md", *DOORS)]
    assert [name for name in names if f"]({name}" not in INDEX] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        if page.name in DOORS and name.startswith("gallery/"):
            continue  # written when the site is built, which is the place of these pages
        other = (page.parent / name).resolve() if name else page
        assert other.exists(), target
        if anchor:
            assert anchor in anchors(other), target


def linked(page: Path) -> set[tuple[Path, str]]:
    """The places to which a page leads, by links, cards and tables of contents."""
    text = text_of(page) if page.suffix == ".md" else ""
    whole = page.read_text(encoding="utf-8")
    targets = {target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:", target)}
    targets |= {f"{name}.md" for name in re.findall(r"^:link: (\S+)$", whole, re.MULTILINE)}
    for entries in re.findall(r"```\{toctree\}\n(.*?)```", whole, re.DOTALL):
        names = (
            line.rpartition("<")[2].rstrip(">") for line in entries.split("\n") if line and not line.startswith(":")
        )
        targets |= {f"{name}.md" for name in names}
    places = {target.partition("#")[::2] for target in targets}
    return {((page.parent / name).resolve() if name else page, anchor) for name, anchor in places}


@pytest.mark.parametrize("question", ANSWERS)
def test_two_clicks_lead_from_the_start_page_to_the_answer(question: str) -> None:
    slug = re.sub(r"[^\w\- ]", "", ANSWERS[question].lower()).replace(" ", "-")
    answer = DOCS / "recipes.md", slug
    assert slug in anchors(answer[0])
    first = linked(DOCS / "index.md")
    second = {place for page, _ in first if page.suffix == ".md" and page.exists() for place in linked(page)}
    assert answer in first | second


def test_the_recipes_run(tmp_path: Path) -> None:
    (program,) = programs(DOCS / "recipes.md")
    lines = run(program, tmp_path, "-W", "error").stdout.splitlines()
    assert float(lines[1]) == pytest.approx(0.3)  # the swing on a slope hangs vertically
    assert lines[-1].startswith("8.25")  # the torque m g l sin(1 rad)
    assert {"swing.html", "swing.fmu", "swing"} <= {path.name for path in tmp_path.iterdir()}
