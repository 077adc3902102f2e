"""The sources of docs/matlab.md: the MEX function in Octave, the S-function with declarations of Simulink's header."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from ccompile import COMPILERS, HOSTS
from checkout import ROOT
from systems import example

import kanegen as kg

PAGE = (ROOT / "docs" / "matlab.md").read_text(encoding="utf-8")
START = {"x": 0.1, "theta": 3.0, "v": 0.0, "w": 0.0}


def block(language: str, words: str) -> str:
    """The block of the page that contains these words."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if words in text]
    return str(found)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project of the page."""
    text = block("python", "kg.emit")
    assert f"start = {START}".replace("'", '"') in text
    assert 'kg.emit(cart_pole.model(), "cart_pole", name="cart_pole", values=start, functions=["rhs"])' in text
    folder = tmp_path / "cart_pole"
    return kg.emit(example("cart_pole").model(), folder, name="cart_pole", values=START, functions=["rhs"])


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("compiler", [c for c in COMPILERS if c.suffix == ".c"], ids=str)
def test_the_s_function_makes_the_steps_of_the_project(project: Path, compiler: object) -> None:
    (project / "cart_pole_sfun.c").write_text(block("c", "S_FUNCTION_NAME"), encoding="utf-8")
    for name in ("simstruc.h", "simulink.c"):
        shutil.copy(HOSTS / name, project)
    command, standard = str(compiler).split()
    flags = [standard, "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wno-comma", "-Wno-unused-value"]
    sources = ["-DMATLAB_MEX_FILE", "-I.", "cart_pole_sfun.c", "cart_pole.c", "-o", "block", "-lm"]
    run([command, *flags, *sources], project)
    t, *y = map(float, run([str(project / "block")], project).split())
    solver = kg.build(example("cart_pole").model())
    first = solver.integrate((0.0, 1.0), [0.1, 3.0], [0.0, 0.0], {"F": 1.5}, method="rk4", step=0.001)
    last = solver.integrate((1.0, 2.0), first.q[-1], first.u[-1], {"F": -1.5}, method="rk4", step=0.001)
    assert t == pytest.approx(2.0)
    assert y == pytest.approx([*last.q[-1], *last.u[-1]], rel=1e-9)


@pytest.mark.target
def test_the_mex_function_is_integrated_by_octave(project: Path) -> None:
    if not (shutil.which("octave-cli") and shutil.which("mkoctfile")):
        pytest.skip("Octave (Debian's packages octave and octave-dev) is not installed: the MEX function is not run")
    (project / "cart_pole_mex.c").write_text(block("c", "mexFunction"), encoding="utf-8")
    first, *script = block("matlab", "ode45").splitlines()
    (command,) = re.findall(r"% Octave: (.*)", first)
    run(command.split(), project)
    refusal = "try; cart_pole_mex(0, 1, 2); catch problem; printf('%s', problem.identifier); end"
    text = run(["octave-cli", "--quiet", "--norc", "--eval", "\n".join([*script, refusal])], project)
    solver = kg.build(example("cart_pole").model())
    motion = solver.integrate((0.0, 2.0), [0.1, 3.0], [0.0, 0.0], {"F": 1.5}, method="dop853", rtol=1e-12, atol=1e-12)
    *values, identifier = text.split()
    assert np.array(values, dtype=float) == pytest.approx([*motion.q[-1], *motion.u[-1]], abs=1e-6)
    assert identifier == "cart_pole:arguments"
