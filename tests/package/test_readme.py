"""What the README and the page on the architecture show works, and the files that they name exist."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text("\n".join(programs), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tension" in done.stdout
    assert "impact" in done.stdout


def test_the_tension_is_that_of_a_pendulum() -> None:
    """``m v^2 / l + m g cos(angle)``, in a state of the motion."""
    first, *_ = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    closed_form = "1.2 * (u @ u / 0.5 - 9.81 * q[1] / 0.5)"
    program = f"{first}\nq, u = solution.q[-1], solution.u[-1]\nprint({closed_form})\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    (tension,) = re.findall(r"^tension (\S+)$", done.stdout, re.MULTILINE)
    # The stabilization adds to the multiplier; the violation that it removes is below 1e-8 of the length.
    assert float(tension) == pytest.approx(float(done.stdout.splitlines()[-1]), rel=1e-6)


def test_files_and_links_exist() -> None:
    named = [*re.findall(r"\]\(([^)#:]+)\)", TEXT), *re.findall(r"build_examples/\w+\.py", TEXT)]
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_example_is_described() -> None:
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    scripts = [path.stem for path in (ROOT / "build_examples").glob("[!_]*.py")]
    assert len(scripts) > 20
    assert [name for name in scripts if f"`{name}`" not in text] == []


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)\b", re.sub(r"```python.*?```", "", TEXT, flags=re.DOTALL))) <= targets


def test_the_page_on_states_runs() -> None:
    first, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "states.md").read_text("utf-8"), re.DOTALL)
    program = f"{first}\nprint(sdot, s, solution.s.shape)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.target
def test_the_page_on_results_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    program, batches, reading = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = program.replace('"build_examples"', repr(str(ROOT / "build_examples"))) + batches
    reading = reading if importlib.util.find_spec("xarray") else ""
    program = f"{program}\nprint(again.energy.shape, abs(drift).max(), forces.shape, mass.shape)\n{reading}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.target
def test_the_page_on_ensembles_runs(tmp_path: Path) -> None:
    program = "".join(
        re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "ensembles.md").read_text("utf-8"), re.DOTALL)
    )
    program = program.replace('"build_examples"', repr(str(ROOT / "build_examples"))) + "print(drift.max())"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "3 0.0 " in done.stdout
    assert float(done.stdout.splitlines()[-1]) < 1e-6


def test_the_start_of_the_page_on_integration_runs() -> None:
    text = (ROOT / "docs" / "integration.md").read_text(encoding="utf-8")
    program, *_ = (code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "import" in code)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "0.4 " in done.stdout


def test_the_stages_can_be_looked_at_one_by_one() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", ARCHITECTURE, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "slider_crank.c" in done.stdout


def test_the_architecture_names_existing_files() -> None:
    named = re.findall(
        r"`((?:kanegen|templates|tests)/[\w./]+\.(?:py|toml|h)|(?:kanegen|templates|tests)/[\w/]+)`", ARCHITECTURE
    )
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists() and "NAME" not in name] == []


@pytest.mark.target
@pytest.mark.parametrize("page", ["plotting", "report"])
def test_the_pages_on_plots_and_reports_run(tmp_path: Path, page: str) -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text("utf-8"), re.DOTALL)
    program = "\n".join(programs).replace('"build_examples"', repr(str(ROOT / "build_examples")))
    environment = {**os.environ, "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.target
def test_the_page_on_equilibria_runs() -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "equilibrium.md").read_text("utf-8"), re.DOTALL)
    program = "import matplotlib\nmatplotlib.use('Agg')\n" + "\n".join(programs)
    program = program.replace('"build_examples"', repr(str(ROOT / "build_examples")))
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tire closed; isolated; stable" in done.stdout
    assert "('phi', 'psi', 'X', 'Y')" in done.stdout
