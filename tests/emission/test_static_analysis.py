"""Analyzers find nothing in emitted projects but the deviations that docs/misra.md lists with their reasons."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT
from systems import example

from kanegen.emission.options import EmitOptions
from kanegen.emission.project import project_files

pytestmark = pytest.mark.target

PAGE = (ROOT / "docs" / "misra.md").read_text(encoding="utf-8")
MODELS = ("slider_crank", "bouncing_ball", "cart_pole", "n_link_pendulum")
"""A closed loop, a contact with time stepping, servo-constraints, a smooth chain."""


CASES = [
    *((name, "double") for name in MODELS),
    ("slider_crank", "float"),
    *(pytest.param((name, "float"), marks=pytest.mark.campaign) for name in MODELS[1:]),
]
"""Models and precisions; those of the campaigns differ from others in the types and endings of numbers only."""


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``NAME.c`` of an emitted project with mathematics of its own."""
    name, precision = request.param
    folder = tmp_path_factory.mktemp(f"{name}-{precision}")
    options = EmitOptions.of(name, precision=precision, math="builtin")
    for path, text in project_files(example(name).model(), options).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder / f"{name}.c"


def run(source: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder of a project, or skip the test."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False, timeout=300)


def page_command(tool: str, source: Path) -> list[str]:
    """The command of the page for a tool."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"{tool} "))
    return line.replace("NAME", source.stem).replace("'", "").split()


def test_clang_tidy(project: Path) -> None:
    settings = PAGE.split("```yaml\n")[1].split("```")[0]
    (project.parent / ".clang-tidy").write_text(settings, encoding="utf-8")
    done = run(project, *page_command("clang-tidy", project))
    assert done.returncode == 0, done.stdout


def test_cppcheck_and_misra(project: Path) -> None:
    listed = set(re.findall(r"^\| (\d+\.\d+) \|", PAGE, re.MULTILINE))
    done = run(project, *page_command("cppcheck", project))
    assert "Checking" in done.stdout
    findings = [line for line in done.stderr.splitlines() if re.search(r":\d+: \w+: .*\[[\w.-]+\]$", line)]
    rules = {rule for line in findings for rule in re.findall(r"\[misra-c2012-([\d.]+)\]$", line)}
    assert "12.1" in rules, "the add-on ran"
    assert rules <= listed, [line for line in findings if not any(f"-{rule}]" in line for rule in listed)]
    assert not [line for line in findings if "[misra-" not in line]


def test_gcc_analyzer(project: Path) -> None:
    done = run(project, *page_command("gcc", project))
    assert done.returncode == 0, done.stderr


def test_every_function_has_a_bounded_stack(project: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    done = run(project, "make", "--no-print-directory", "stack", "CC=gcc")
    assert done.returncode == 0, done.stdout + done.stderr
    bounds = {name: int(chain) for chain, name in re.findall(r"^ +\d+ +(\d+)  (\w+)", done.stdout, re.MULTILINE)}
    deepest = re.search(r"^deepest chain: (\d+) bytes: (\w+)", done.stdout, re.MULTILINE)
    assert deepest is not None
    assert bounds[deepest[2]] == int(deepest[1]) == max(bounds.values())
    assert bounds[f"{project.stem}_rhs"] < 4000
    library = done.stdout.splitlines()[-1].split(":")[1].split()
    assert set(library) <= {
        "memcpy",
        "memset",
        "memcmp",
        "memmove",
        "sqrt",
        "sqrtf",
    }  # no sine, with its own mathematics


@pytest.mark.parametrize(("compiler", "standard"), [("gcc", "c99"), ("clang", "c11")])
def test_compilers_accept_the_project_without_a_conversion(project: Path, compiler: str, standard: str) -> None:
    flags = ("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wfloat-conversion", "-Wdouble-promotion", "-Wvla")
    for source in (project.name, f"examples/{project.stem}_example.c"):
        done = run(project, compiler, f"-std={standard}", *flags, "-Werror", "-fsyntax-only", source)
        assert done.returncode == 0, done.stderr
