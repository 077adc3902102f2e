"""The names of ``kanegen`` itself, which are imported when they are first used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import environment
from systems import solver_for

import kanegen
from kanegen import _HOMES, _MODULES

SCRIPT = """
import sys
import kanegen as kg
from systems import model_of
print(kg.build(model_of("rolling_disk")).extension.digest, *sys.modules)
"""


def test_type_checkers_see_the_names_that_exist_at_run_time() -> None:
    tree = ast.parse(Path(kanegen.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    declared = {
        alias.asname: f"{node.module}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert declared == _HOMES | dict.fromkeys(_MODULES, "kanegen")


@pytest.mark.parametrize("name", sorted([*_HOMES, *_MODULES]))
def test_every_name_can_be_used(name: str) -> None:
    assert name in dir(kanegen)
    assert getattr(kanegen, name) is vars(kanegen)[name]


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="modle"):
        kanegen.modle  # noqa: B018


def test_a_model_from_the_cache_needs_no_stage_that_generates() -> None:
    digest = solver_for("rolling_disk").extension.digest
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment())
    built, *loaded = done.stdout.split()
    assert built == digest
    assert {"kanegen.pipeline", "kanegen.model.model"} <= set(loaded)
    unneeded = (
        *("jinja2", "Cython", "scipy", "filelock", "kanegen.derivation.equations", "kanegen.derivation.inertia"),
        *("kanegen.program.functions", "kanegen.program.assemble", "kanegen.codegen.kernel", "kanegen.emission"),
        *("kanegen.verification", "kanegen.reporting", "kanegen.plot", "kanegen.interop", "kanegen.cli"),
    )
    assert not [name for name in loaded if name.startswith(unneeded)]
