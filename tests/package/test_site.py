"""The documentation site: it builds without warnings, lists every public name, and its tutorial runs."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

import kanegen as kg

DOCS = ROOT / "docs"
STEPS = ("pendulum", "questions", "constraint", "inputs", "events", "rolling", "contact", "bicycle")
INTERNAL = {"AXES", "entry", "normalized_shapes"}
"""Names of kanegen.shapes that are no shapes."""


def public_names() -> set[str]:
    """The names that users import, with those of the modules of the interface."""
    names = {name for name in kg._HOMES if name not in kg._MODULES}
    for module in (kg.plot, kg.results):
        members = vars(module).items()  # with submodules that were imported
        public = {name for name, value in members if not (name.startswith("_") or inspect.ismodule(value))}
        names |= {f"{module.__name__.removeprefix('kanegen.')}.{name}" for name in public}
    shapes = {name for name, value in vars(kg.shapes).items() if getattr(value, "__module__", "") == kg.shapes.__name__}
    return names | {f"shapes.{name}" for name in shapes - INTERNAL if name[0].isupper()} | {"interop.jax.ode"}


def code(*pages: Path) -> str:
    """The Python code of pages, one block after the other."""
    blocks = (re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL) for page in pages)
    return "\n".join(block for page in blocks for block in page)


def test_the_reference_lists_every_public_name() -> None:
    text = (DOCS / "reference.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE)) == public_names()


def test_the_tutorial_has_all_steps_in_order() -> None:
    index = (DOCS / "learn" / "index.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| \[\d\. .*?\]\((\w+)\.md\)", index, re.MULTILINE)) == STEPS
    assert {path.stem for path in (DOCS / "learn").glob("*.md")} == {"index", *STEPS}


@pytest.mark.target
def test_the_tutorial_runs_as_one_session(tmp_path: Path) -> None:
    program = code(*(DOCS / "learn" / f"{step}.md" for step in STEPS))
    program = program.replace('"build_examples"', repr(str(ROOT / "build_examples")))
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rolls = re.search(r"it rolls with (\S+) m/s; pure rolling from pure sliding would be (\S+)", done.stdout)
    assert rolls is not None
    assert float(rolls[1]) == pytest.approx(float(rolls[2]), rel=1e-9)  # 5/7 of the throw, conserved by every impact
    assert "a terminal event ended the run 5.0 passes" in done.stdout


@pytest.mark.target
def test_models_from_other_programs_are_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", code(DOCS / "coming_from.md")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = map(float, done.stdout.split())
    assert first == pytest.approx(second, rel=1e-12)


@pytest.mark.target
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-E", "-b", "html"]
    environment = {**os.environ, "KANEGEN_DOCS_MOTIONS": "0"}
    command += ["-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "site")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{door}' in start for door in ("learn/index", "howto", "explain", "reference", "gallery/index"))
