"""Emitted predictive controllers against the module, with all warnings, in C and C++ and under sanitizers."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
from ccompile import SANITIZERS, SANITIZING, WARNINGS, with_each_compiler
from controlled import T, omega, pendulum, theta
from messages import raises
from numpy.testing import assert_allclose

import kanegen as kg

SAME = 1e-12
"""The same operations in the same order: products and sums are never fused in the module, and not here."""

START, KICK = (0.4, 0.0), 0.01

MAIN = """
#include "swing_controller.h"
#include <stdio.h>

static swing_controller c;

int main(void) {
  double x[2] = {0.4, 0.0}, r[1];
  int k;
  swing_controller_reset(&c);
  c.inputs[1] = 0.5;
  for (k = 0; k < 30; ++k) {
    if (k % 2 == 1) {
      swing_controller_prepare(&c, 0.05 * k);
    }
    swing_controller_step(&c, 0.05 * k, x, r);
    printf("%.17g %.17g %d %d\\n", r[0], c.violation, c.status, c.iterations);
    x[0] = c.states[2];
    x[1] = c.states[3] + 0.01;
  }
  return 0;
}
"""


@cache
def controller() -> Any:
    """With functions of all kinds: squares and a rest in the integrand and at the end, conditions along the motion with
    inputs and without, and at the end."""
    goal, height = sm.Symbol("goal"), 5 * (1 + sm.cos(theta))
    problem = kg.OptimalControl(
        pendulum(),
        kg.Integral(height + omega**2 / 10 + (T - goal) ** 2 / 50) + kg.AtEnd(height + omega**2),
        1.0,
        bounds={T: (-6, 6), omega: (-4, 4)},
        path=[(T * omega, None, 15), (omega**3, -30, 30)],
        subject_to=[(kg.AtEnd(omega), -2, 2)],
        parameters={goal: 0.0},
    )
    return problem.controller(1.0, 0.05)


def of_module() -> np.ndarray[Any, Any]:
    """What the program of `MAIN` prints."""
    own, state, rows = controller(), np.array(START), []
    own.reset()
    own.set("goal", 0.5)
    for k in range(30):
        (torque,) = own(0.05 * k, state[:1], state[1:])
        rows.append((torque, own.violation, 0 if own.solved else 1, own.iterations))
        state = own.prediction.states[1] + [0.0, KICK]
    return np.array(rows)


def run(command: list[str], folder: Path) -> np.ndarray[Any, Any]:
    """Compile the program in the folder, with warnings as errors, and return what it prints."""
    program = folder / "program"
    done = subprocess.run(
        [*command, "-o", str(program), "-lm"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return np.array([[float(x) for x in line.split()] for line in ran.stdout.splitlines()])


def project(folder: Path) -> Path:
    controller().emit(folder, name="swing")
    (folder / "main.c").write_text(MAIN, encoding="utf-8")
    return folder


@with_each_compiler
def test_an_emitted_controller_gives_the_inputs_of_the_module(compiler: Any, tmp_path: Path) -> None:
    """Also where the next sample is prepared before."""
    folder = project(tmp_path / "swing")
    language = ("-x", "c++") if compiler.suffix == ".cpp" else ()
    flags = ("-O1", "-ffp-contract=off", *language, "main.c", "swing_controller.c")
    found, expected = run([compiler.command, compiler.standard, *WARNINGS, *flags], folder), of_module()
    assert_allclose(found[:, :2], expected[:, :2], rtol=SAME, atol=SAME)
    assert (found[:, 2:] == expected[:, 2:]).all()
    assert expected[:, 3].max() > 0


def test_nothing_is_allocated_and_nothing_is_global(tmp_path: Path) -> None:
    """The object file calls functions of the mathematical library and of memory only, and has no data that change."""
    folder = project(tmp_path / "swing")
    subprocess.run(
        ["gcc", "-std=c99", "-O1", "-fno-pie", "-c", "swing_controller.c", "-o", "c.o"], cwd=folder, check=True
    )
    listed = subprocess.run(["nm", "c.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-2:] for line in listed.splitlines()]
    called = {name for kind, name in symbols if kind == "U"}
    assert called <= {"memset", "memcpy", "sqrt", "sin", "cos", "fabs", "_GLOBAL_OFFSET_TABLE_"}
    assert not [name for kind, name in symbols if kind in "bBdDC"]
    public = {name for kind, name in symbols if kind == "T"}
    assert public == {f"swing_controller_{name}" for name in ("reset", "restart", "step", "prepare", "iterate")}


@pytest.mark.target
@pytest.mark.parametrize("compiler", [c for c in SANITIZING if c.suffix == ".c"], ids=str)
def test_an_emitted_controller_passes_the_sanitizers(compiler: Any, tmp_path: Path) -> None:
    folder = project(tmp_path / "swing")
    command = [compiler.command, compiler.standard, *WARNINGS, *SANITIZERS, "main.c", "swing_controller.c"]
    assert len(run(command, folder)) == 30


def test_folders_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with raises(kg.BuildError, "swing_controller.c"):
        controller().emit(tmp_path, name="swing")
    folder = controller().emit(tmp_path / "new")
    assert (folder / "driven_pendulum_controller.h").is_file()
    assert controller().emit(folder) == folder
