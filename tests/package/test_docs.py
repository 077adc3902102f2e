"""The code of the documentation runs, and uses names and arguments that exist."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import PAGES, all_programs, blocks, run, runnable

import kanegen as kg

CHECKED = (
    "README",
    "architecture",
    "coming_from",
    "ensembles",
    "equilibrium",
    "features",
    "fmi",
    "learn",
    "recipes",
    "results",
)
"""Pages whose programs other tests run with more checks."""

OWNERS: dict[str, Any] = {"kg": kg, "kanegen": kg, "solver": kg.Solver, "solution": kg.Solution, "model": kg.Model}
"""What the names in excerpts stand for."""


BLOCKS = {f"{page.stem}[{k}]": code for page in PAGES for k, code in enumerate(blocks(page))}
PROGRAMS = {name: code for name, code in all_programs() if name.rpartition("_")[0] not in CHECKED and name != "learn"}


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


def test_every_block_is_in_a_program() -> None:
    known = "\n".join(code for _, code in all_programs())
    shown = [runnable(code).rstrip("\n") for page in PAGES for code in blocks(page)]
    assert len(shown) > 80
    assert [code for code in shown if code not in known] == []


@pytest.mark.target
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name: str, tmp_path: Path) -> None:
    if name.startswith("torch"):
        pytest.importorskip("torch")
    run(PROGRAMS[name], tmp_path)
