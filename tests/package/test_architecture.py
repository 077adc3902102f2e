"""The recipes of docs/architecture.md, each carried out in a copy of the package with the files that it names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ccompile import C_COMPILER, SANITIZERS
from checkout import ROOT

HEUN3 = """
title = "the method of Heun (Heun 1900)"
order = 3
dense_order = 3
stages = 3
c = "0 1/3 2/3 1"
a = [
  "",
  "1/3",
  "0 2/3",
  "1/4 0 3/4",
]
"""

EMIT = """
import sympy as sm
from sympy.physics.mechanics import dynamicsymbols, ReferenceFrame, Point, Particle
import kanegen as kg

x, v = dynamicsymbols("x v")
t = dynamicsymbols._t
N, O = ReferenceFrame("N"), Point("O")
P = O.locatenew("P", x*N.x)
O.set_vel(N, 0)
P.set_vel(N, v*N.x)
model = kg.Model(
    name="spring", frame=N, coordinates=[x], speeds=[v], kinematics=[v - x.diff(t)],
    bodies=[Particle("p", P, 1)], loads=[(P, -x**3*N.x)],
)
kg.emit(model, "spring", method="heun3", values={"x": 1.0, "v": 0.0})
"""

HOST = """
#include <stdio.h>
#include "spring.h"
int main(void) {
  spring_context ctx;
  if (spring_init(&ctx, NULL) < 0) return 1;
  for (int i = 0; i < 64; i++) {
    if (spring_step(&ctx, NULL, 1.0 / 64.0) < 0) return 2;
  }
  printf("%.17g %.17g\\n", ctx.y[0], ctx.y[1]);
  return 0;
}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package and its templates."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for name in ("kanegen", "templates"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name, ignore=ignored)
    return tmp_path / "copy"


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new), encoding="utf-8")


def heun3(steps: int, h: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The state of x'' = -x^3 after steps of the method of Heun, from its formulas."""

    def rate(y: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([y[1], -(y[0] ** 3)])

    y = np.array([1.0, 0.0])
    for _ in range(steps):
        k1 = rate(y)
        k2 = rate(y + h / 3 * k1)
        y = y + h * (k1 / 4 + 3 * rate(y + 2 * h / 3 * k2) / 4)
    return y


def test_a_method_with_a_fixed_step_needs_two_files(package: Path, tmp_path: Path) -> None:
    """Its step in emitted projects follows from the tableau: sanitizers find no array that is too small."""
    methods = package / "kanegen" / "codegen" / "methods"
    (methods / "heun3.toml").write_text(HEUN3, encoding="utf-8")
    changed(methods / "table.py", '"rodas", "verner9")\n', '"rodas", "verner9", "heun3")\n')
    changed(methods / "table.py", '("rk4", "kutta_merson")\n', '("rk4", "kutta_merson", "heun3")\n')
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run([sys.executable, "-c", EMIT], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "spring"
    assert "method of Heun" in (folder / "spring.h").read_text(encoding="utf-8")
    (folder / "host.c").write_text(HOST, encoding="utf-8")
    command = [C_COMPILER.command, "-std=c99", *SANITIZERS, "host.c", "spring.c", "-o", "host", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./host"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_allclose(np.array(done.stdout.split(), dtype=float), heun3(64, 1.0 / 64.0), rtol=1e-14)
