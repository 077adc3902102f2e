"""The code of the documentation: complete programs run, and excerpts use names and arguments that exist."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

import kanegen as kg

PAGES = sorted((ROOT / "docs").glob("*.md"))
TESTED = ("architecture", "equilibrium", "integration", "results", "states")
"""Pages whose programs test_readme runs with more checks."""

OWNERS: dict[str, Any] = {"kg": kg, "kanegen": kg, "solver": kg.Solver, "solution": kg.Solution, "model": kg.Model}
"""What the names in excerpts stand for."""


def blocks() -> Iterator[tuple[str, str]]:
    """A name and the text of every block of Python in the documentation."""
    for page in PAGES:
        for k, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)):
            yield f"{page.stem}[{k}]", code


BLOCKS = dict(blocks())
PROGRAMS = [name for name, code in BLOCKS.items() if "import kanegen" in code and name.split("[")[0] not in TESTED]


def calls(tree: ast.AST) -> Iterator[tuple[Any, ast.Call]]:
    """The calls of functions and methods of kanegen in an excerpt."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            owner = OWNERS.get(node.func.value.id)
            if owner is not None:
                yield getattr(owner, node.func.attr), node


@pytest.mark.parametrize("name", BLOCKS)
def test_names_and_arguments_exist(name: str) -> None:
    tree = ast.parse(BLOCKS[name])
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in OWNERS:
            owner = OWNERS[node.value.id]
            fields = getattr(owner, "__dataclass_fields__", {})
            annotated = {key for base in getattr(owner, "__mro__", ()) for key in getattr(base, "__annotations__", {})}
            known = hasattr(owner, node.attr) or node.attr in {*fields, *annotated} or node.attr in dir(kg.Solver)
            assert known, f"{node.value.id}.{node.attr}"
    for function, call in calls(tree):
        parameters = inspect.signature(function).parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            named = {keyword.arg for keyword in call.keywords if keyword.arg}
            assert named <= {p.name for p in parameters}, ast.unparse(call)


@pytest.mark.target
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name: str, tmp_path: Path) -> None:
    program = BLOCKS[name].replace('"build_examples"', repr(str(ROOT / "build_examples")))
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
