"""Types: quantities are declared for editors, and the examples and pages pass the strict checks of type checkers."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from checkout import EXAMPLES, ROOT
from declarations import text
from pages import all_programs

import kanegen as kg
from kanegen import quantities

DECLARED = Path(quantities.__file__)


def test_the_declared_quantities_are_those_of_the_catalogue() -> None:
    """``KANEGEN_UPDATE_GOLDENS=1`` writes the declarations anew."""
    present = DECLARED.read_text(encoding="utf-8")
    wanted = text(present)
    if os.environ.get("KANEGEN_UPDATE_GOLDENS") == "1":
        DECLARED.write_text(wanted, encoding="utf-8")
    else:
        assert present == wanted


def test_declared_quantities_have_the_arguments_that_they_have_at_run_time() -> None:
    declared = dict(
        re.findall(r"^        def (\w+)\(\s*self, ([^)]*?)\s*\) -> .*:$", DECLARED.read_text("utf-8"), re.MULTILINE)
    )
    assert {"energy", "rhs", "ode", "multipliers"} <= set(declared)
    for name, arguments in declared.items():
        names = re.findall(r"(\w+):", arguments)
        function = inspect.signature(getattr(kg.Solver, name))
        assert names == [*function.parameters][1 : len(names) + 1], name


USE = """
import kanegen as kg


def look(solver: kg.Solver, solution: kg.Solution) -> None:
    reveal_type(solver.energy(0.0, [0.1], {"omega": 0.0}))
    reveal_type(solver.Q(0.0, [0.1], [0.0]))
    reveal_type(solver.rhs(0.0, [0.1], [0.0]))
    reveal_type(solution.q)
    reveal_type(solution.energy)
    reveal_type(solution.reactions["pin"].force)
    reveal_type(solution["theta"])
    print(solver.enrgy, solution.enrgy)
"""

PATHS = (EXAMPLES, ROOT / "tests" / "sympy_models")
"""Folders whose modules the programs import."""

ARRAY = "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.float64]]"
TYPES = ["float", ARRAY, f"tuple[{ARRAY}, ...]", ARRAY, ARRAY, ARRAY, ARRAY]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of all pages, and ``USE``."""
    folder = tmp_path_factory.mktemp("programs")
    for name, code in [*all_programs(), ("use", USE)]:
        (folder / f"page_{name}.py").write_text(code, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def complaints(folder: Path) -> list[str]:
    """What one run of mypy says about all examples and pages, and about ``USE``."""
    options = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(folder / "cache")]
    command = [sys.executable, "-m", "mypy", *options, "--ignore-missing-imports", "--follow-imports", "silent"]
    command += ["--disable-error-code", "untyped-decorator", str(folder), str(EXAMPLES)]  # of jax, which is not read
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, (folder, *PATHS)))}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


@pytest.mark.target
def test_examples_and_pages_pass_mypy(complaints: list[str]) -> None:
    assert [line for line in complaints if "error:" in line and "page_use.py" not in line] == []


@pytest.mark.target
def test_quantities_have_types(complaints: list[str]) -> None:
    revealed = re.findall(r'Revealed type is "(.*)"', "\n".join(complaints))
    assert [words.replace("builtins.", "") for words in revealed] == TYPES
    unknown = [line for line in complaints if 'has no attribute "enrgy"' in line]
    assert len(unknown) == 2


@pytest.mark.target
@pytest.mark.skipif(not find_spec("basedpyright"), reason="needs basedpyright (pip install 'kanegen[targets]')")
def test_examples_and_pages_pass_pyright(folder: Path) -> None:
    """With the settings of pyproject.toml: what SymPy's source lets a checker guess is not used."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pyright"]
    settings |= {"include": [str(folder), str(EXAMPLES)], "extraPaths": [str(ROOT), *map(str, PATHS)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] > 80
    errors = [item for item in found["generalDiagnostics"] if item["severity"] == "error"]
    places = {f"{Path(item['file']).name}:{item['range']['start']['line'] + 1}: {item['message']}" for item in errors}
    wrong = {place for place in places if "enrgy" in place}
    assert len(wrong) == 2  # those of USE
    assert places - wrong == set()
