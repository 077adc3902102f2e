"""What the README and the page on the architecture show works, and the files that they name exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from checkout import ROOT
from pages import programs, run

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = " ".join(TEXT.split())
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_readme_is_short_and_begins_with_two_commands() -> None:
    assert len(TEXT.splitlines()) <= 120
    commands = re.findall(r"^\$ (.*?)(?: +#.*)?$", TEXT, re.MULTILINE)
    assert commands[:2] == ["make demo", "make test"]
    assert 'pip install "kanegen[compiler]"' in commands


def test_the_numbers_are_those_of_the_benchmark() -> None:
    """Those that the lines on the differences name are in the tables of the pages."""
    table = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    board = (ROOT / "docs" / "embedded.md").read_text(encoding="utf-8")
    (derivation,) = re.findall(r"\| (\d+)\.\d s against (\d+) ms \|", table)
    (ratio,) = re.findall(r"against `lambdify` \| 250; 350 times \| (\d+) times", table)
    (disk,) = re.findall(r"rolling disk takes ([\d.]+) ms", table)
    (many,) = re.findall(r"\| (\d+) us against \d+ us, one thread", table)
    (build,) = re.findall(r"the next model \|.*?\| ([\d.]+) s", table)
    (cached,) = re.findall(r"a model from the cache \|.*?\| ([\d.]+) ms", table)
    flash, context, stack = re.findall(r"`rolling_disk` \| float \| ([\d,]+) \| (\d+) \| \d+ \| (\d+)", board)[0]
    assert f"derived in {derivation[1]} ms; SymPy's `KanesMethod` needs {derivation[0]} s" in WORDS
    assert f"take {disk} ms at an error of 1e-6" in WORDS
    assert f"`lambdify` {round(int(ratio), -1)} times as long" in WORDS
    assert f"10,000 such disks take {int(many) / 100:.1g} s in one thread" in WORDS
    assert f"compiles in {float(build):.1f} s, and comes from the cache in {float(cached):.0f} ms" in WORDS
    memory = (int(context) + int(stack)) / 1000
    assert f"{int(flash.replace(',', '')) / 1000:.1f} kB of flash and {memory:.1g} kB of memory" in WORDS


def test_the_example_runs(tmp_path: Path) -> None:
    """The tension is ``m v^2 / l + m g cos(angle)``, in a state of the motion."""
    (program,) = programs(ROOT / "README.md")
    closed_form = "1.2 * (u @ u / 0.5 - 9.81 * q[1] / 0.5)"
    done = run(f"{program}\nq, u = solution.q[-1], solution.u[-1]\nprint({closed_form})\n", tmp_path)
    (tension,) = re.findall(r"^tension (\S+) N$", done.stdout, re.MULTILINE)
    assert float(tension) == pytest.approx(float(done.stdout.splitlines()[-1]), rel=1e-9)


def test_the_page_of_features_runs(tmp_path: Path) -> None:
    (program,) = programs(ROOT / "docs" / "features.md")
    printed = run(program, tmp_path).stdout
    assert "tension" in printed
    assert "impact" in printed


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


@pytest.mark.target
def test_the_page_on_results_runs(tmp_path: Path) -> None:
    (program,) = programs(ROOT / "docs" / "results.md")
    if not importlib.util.find_spec("xarray"):
        program, _, _ = program.partition("import xarray")
    run(f"{program}\nprint(again.energy.shape, abs(drift).max(), forces.shape, mass.shape)\n", tmp_path)


@pytest.mark.target
def test_the_page_on_ensembles_runs(tmp_path: Path) -> None:
    (program,) = programs(ROOT / "docs" / "ensembles.md")
    printed = run(f"{program}\nprint(drift.max())", tmp_path).stdout
    assert "3 0.0 " in printed
    assert float(printed.splitlines()[-1]) < 1e-6


def test_the_start_of_the_page_on_integration_runs(tmp_path: Path) -> None:
    (program,) = (code for code in programs(ROOT / "docs" / "integration.md") if "started" in code)
    assert "0.4 " in run(program, tmp_path, "-W", "error").stdout


def test_the_stages_can_be_looked_at_one_by_one(tmp_path: Path) -> None:
    (program,) = programs(ROOT / "docs" / "architecture.md")
    assert "slider_crank.c" in run(program, tmp_path).stdout


def test_the_architecture_names_existing_files() -> None:
    named = re.findall(
        r"`((?:kanegen|templates|tests)/[\w./]+\.(?:py|toml|h)|(?:kanegen|templates|tests)/[\w/]+)`", ARCHITECTURE
    )
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists() and "NAME" not in name] == []


@pytest.mark.target
def test_the_page_on_equilibria_runs(tmp_path: Path) -> None:
    (program,) = programs(ROOT / "docs" / "equilibrium.md")
    printed = run(program, tmp_path, "-W", "error").stdout
    assert "tire closed; isolated; stable" in printed
    assert "('phi', 'psi', 'X', 'Y')" in printed
