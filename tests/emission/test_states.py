"""The emitted project of a model with states: the C program, also under sanitizers, and the Python module."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ccompile import C_COMPILER, SANITIZERS, SANITIZING
from numpy.testing import assert_allclose
from state_models import cart, ticking

import kanegen as kg

FLAGS = [pytest.param(("-O0",), id="plain")]
if C_COMPILER in SANITIZING:
    FLAGS.append(pytest.param(SANITIZERS, id="sanitizers", marks=pytest.mark.target))
START = {"x": 0.4, "v": -0.3, "a": 0.2, "z": 0.1, "f": 0.5, "n": 0.0}


def emitted(model: kg.Model, folder: Path, flags: tuple[str, ...]) -> Path:
    """The folder of the project, with the compiled program and its file of values."""
    kg.emit(model, folder, name=model.name.replace(" ", "_"))
    name = next(folder.glob("*.hpp")).stem
    sources = [f"{name}.c", f"examples/{name}_example.c"]
    command = [C_COMPILER.command, "-std=c99", *flags, *sources, "-o", "checked", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    form = subprocess.run(["./checked"], cwd=folder, check=True, capture_output=True, text=True).stdout
    values = {str(symbol): value for symbol, value in model.parameters.items()} | START
    lines = [re.sub(r"\?(\s+# (\w+))", lambda m: f"{values[m[2]]!r}{m[1]}", line) for line in form.splitlines()]
    (folder / "values.txt").write_text("\n".join(lines) + "\n")
    return folder


def run(folder: Path, t_end: float, step: float) -> list[str]:
    command = ["./checked", "values.txt", str(t_end), str(step)]
    result = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    assert not result.stderr
    return result.stdout.splitlines()


@pytest.mark.parametrize("flags", FLAGS)
def test_the_emitted_program_integrates_the_states(flags: tuple[str, ...], tmp_path: Path) -> None:
    lines = run(emitted(cart(), tmp_path, flags), 1.0, 1e-3)
    solution = kg.build(cart()).integrate((0.0, 1.0), [0.4], [-0.3], s0=[0.2, 0.1], method="rk4", step=1e-3)
    last = [float(x) for x in lines[-1].split()]
    assert_allclose(last, [1.0, *solution.q[-1], *solution.u[-1], *solution.s[-1]], rtol=1e-13)
    assert "states" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("flags", FLAGS)
def test_the_emitted_program_resets_states(flags: tuple[str, ...], tmp_path: Path) -> None:
    lines = run(emitted(ticking(), tmp_path, flags), 2.2, 1e-2)
    assert sum(line.startswith("#") and "tick" in line for line in lines) == 2
    t, *_, z, n = [float(x) for x in lines[-1].split()]
    assert_allclose([t, z, n], [2.2, 0.3, 2.0], atol=1e-12)
