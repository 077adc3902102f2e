"""The documentation site: it builds without warnings, lists every public name, and its tutorial runs."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ANSWERS, DOCS, STEPS, programs, run

import kanegen as kg

INTERNAL = {"AXES", "entry", "normalized_shapes"}
"""Names of kanegen.shapes that are no shapes."""


def public_names() -> set[str]:
    """The names that users import, with those of the modules of the interface."""
    names = {name for name in kg._HOMES if name not in kg._MODULES}
    for module in (kg.geometry, kg.plot, kg.results, kg.tires):
        members = vars(module).items()  # with submodules that were imported
        public = {name for name, value in members if not (name.startswith("_") or inspect.ismodule(value))}
        names |= {f"{module.__name__.removeprefix('kanegen.')}.{name}" for name in public}
    shapes = {name for name, value in vars(kg.shapes).items() if getattr(value, "__module__", "") == kg.shapes.__name__}
    others = {"interop.jax.motion", "interop.jax.ode", "interop.torch.motion"}
    return names | {f"shapes.{name}" for name in shapes - INTERNAL if name[0].isupper()} | others


def test_the_reference_lists_every_public_name() -> None:
    text = (DOCS / "reference.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE)) == public_names()


def test_the_tutorial_has_all_steps_in_order() -> None:
    index = (DOCS / "learn" / "index.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| \[\d\. .*?\]\((\w+)\.md\)", index, re.MULTILINE)) == STEPS
    assert {path.stem for path in (DOCS / "learn").glob("*.md")} == {"index", *STEPS}


@pytest.mark.target
def test_the_tutorial_runs_as_one_session(tmp_path: Path) -> None:
    (program,) = programs(*(DOCS / "learn" / f"{step}.md" for step in STEPS))
    done = run(program, tmp_path, "-W", "error")
    rolls = re.search(r"it rolls with (\S+) m/s; pure rolling from pure sliding would be (\S+)", done.stdout)
    assert rolls is not None
    assert float(rolls[1]) == pytest.approx(float(rolls[2]), rel=1e-9)  # 5/7 of the throw, conserved by every impact
    assert "a terminal event ended the run 5.0 passes" in done.stdout


@pytest.mark.target
def test_models_from_other_programs_are_the_same(tmp_path: Path) -> None:
    (program,) = programs(DOCS / "coming_from.md")
    done = run(program, tmp_path, "-W", "error")
    first, second = map(float, done.stdout.split())
    assert first == pytest.approx(second, rel=1e-12)


def _links_to_other_projects_and_sources(site: Path) -> None:
    """Every name of the inventories is linked, and the reference leads to the source of what it describes."""
    pages = [page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html")]
    names = [
        line.split()[0]
        for inventory in (DOCS / "inventories").glob("*.txt")
        for line in inventory.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert {name.partition(".")[0] for name in names} == {"numpy", "scipy", "sympy"}
    assert [name for name in names if not any(re.search(rf'href="https://[^"]*{name}"', page) for page in pages)] == []
    solver = (site / "api" / "kanegen.Solver.html").read_text(encoding="utf-8")
    assert 'href="../_modules/kanegen/solve/solver.html#Solver.with_parameters"' in solver


def _search_finds_every_question(site: Path) -> None:
    """The words of a question are in the index of the search, in titles of sections that answer it."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    titles = set(json.loads(index[index.index("(") + 1 : index.rindex(")")])["alltitles"])
    assert [heading for heading in ANSWERS.values() if heading not in titles] == []


@pytest.mark.target
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-E", "-b", "html"]
    environment = {**os.environ, "KANEGEN_DOCS_MOTIONS": "0"}
    command += ["-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "site")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    _links_to_other_projects_and_sources(tmp_path / "site")
    _search_finds_every_question(tmp_path / "site")
    assert all(f'href="{door}' in start for door in ("learn/index", "howto", "explain", "reference", "gallery/index"))
