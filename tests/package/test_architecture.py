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

from kanegen.codes import Status

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


OPTION = """    patience: Annotated[int | None, Option(None, Kind.COUNT, "Most rejections; None: no limit.")]


class ControlOptions("""

STEPS = """
import inspect, sys
from pathlib import Path
from click.testing import CliRunner
import kanegen as kg
from kanegen.cli import main
from kanegen.codegen.sources import runtime_headers, wrapper_files
from kanegen.emission.fmu.options import FmuOptions

for function in (kg.Solver.integrate, kg.Solver.integrate_many, kg.export_fmu):
    assert inspect.signature(function).parameters["patience"].default is None
    assert "Most rejections" in function.__doc__
assert "--patience" in CliRunner().invoke(main, ["run", "--help"]).output
assert "patience" in FmuOptions.of("3.0", {"patience": 3}).numbers
assert "options.patience = 0 if patience is None else" in wrapper_files()["module_integrate.pxi"]
for name, text in runtime_headers().items():
    Path(name).write_text(text, encoding="utf-8")
"""

PATIENT = """
#include <stdio.h>
#include "kg_steppers.h"
static int rhs(void *context, double t, const double *y, double *dydt) {
  (void)context;
  dydt[0] = t < 0.5 ? -y[0] : 1e6 * (1.0 - y[0]);
  return KG_OK;
}
int main(void) {
  static double work[1000];
  const double y0[1] = {1.0}, tolerance[1] = {1e-10};
  for (long long patience = 0; patience < 3; ++patience) {
    const kg_ode ode = {.n = 1, .rhs = rhs};
    const kg_stepper_options options = {
      .method = KG_DOPRI5, .rtol = tolerance, .atol = tolerance, .patience = patience};
    kg_stepper stepper;
    int status = kg_stepper_start(&stepper, &ode, &options, 0.0, y0, 0.51, work);
    while (status == KG_OK) {
      status = kg_stepper_step(&stepper);
    }
    printf("%d %lld\\n", status, stepper.statistics.rejected);
  }
  return 0;
}
"""

CONSTRAINT = """
import sympy as sm
from sympy.physics.mechanics import dynamicsymbols, ReferenceFrame, Point, Particle
import kanegen as kg

x, y, vx, vy = dynamicsymbols("x y vx vy")
t = dynamicsymbols._t
N, O = ReferenceFrame("N"), Point("O")
P = O.locatenew("P", x*N.x + y*N.y)
O.set_vel(N, 0)
P.set_vel(N, vx*N.x + vy*N.y)

def model(**constraints):
    return kg.Model(
        name="pendulum", frame=N, coordinates=[x, y], speeds=[vx, vy], kinematics=[vx - x.diff(t), vy - y.diff(t)],
        bodies=[Particle("p", P, 1)], loads=[(P, -9.81*N.y)], **constraints,
    )

rod = x**2 + y**2 - 1
pinned, holonomic = model(pinned_constraints=[rod]), model(holonomic_constraints=[rod])
assert "1 constraints" in repr(pinned), repr(pinned)
assert ("pinned constraint", ) == tuple(row[0] for row in pinned.overview().rows if "constraint" in row[0])
new, old = kg.derive(pinned), kg.derive(holonomic)
for name in ("J", "b", "Q", "P"):
    assert getattr(new, name).to_sympy() == getattr(old, name).to_sympy(), name
assert "J^T lambda" in new._repr_html_()
assert not kg.verify(pinned, states=2, forms=(), backend="interpreted").failed
try:
    model(pinned_constraints=[sm.Symbol("c") - 1])
except kg.ModelError as error:
    assert "pinned_constraints[0]" in str(error), error
else:
    raise AssertionError("a constraint without coordinates was accepted")
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


def output_of(command: list[str], folder: Path, package: Path | None = None) -> str:
    """The standard output of a program that must succeed; Python imports ``package``."""
    environment = {**os.environ, **({} if package is None else {"PYTHONPATH": str(package)})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    output_of([sys.executable, "-c", EMIT], tmp_path, package)
    folder = tmp_path / "spring"
    assert "method of Heun" in (folder / "spring.h").read_text(encoding="utf-8")
    (folder / "host.c").write_text(HOST, encoding="utf-8")
    output_of([C_COMPILER.command, "-std=c99", *SANITIZERS, "host.c", "spring.c", "-o", "host", "-lm"], folder)
    output = output_of(["./host"], folder)
    np.testing.assert_allclose(np.array(output.split(), dtype=float), heun3(64, 1.0 / 64.0), rtol=1e-14)


def test_an_option_of_a_run_needs_its_line_and_its_use(package: Path, tmp_path: Path) -> None:
    changed(package / "kanegen" / "run_options.py", "\nclass ControlOptions(", OPTION)
    changed(
        package / "templates" / "runtime" / "kg_steppers.h",
        "  if (s->short_steps >= KG_SHORT_STEPS) {\n",
        "  if (s->options.patience > 0 && s->statistics.rejected >= s->options.patience) {\n"
        "    return KG_TOO_MANY_STEPS;\n  }\n  if (s->short_steps >= KG_SHORT_STEPS) {\n",
    )
    output_of([sys.executable, "-c", STEPS], tmp_path, package)
    (tmp_path / "host.c").write_text(PATIENT, encoding="utf-8")
    output_of([C_COMPILER.command, "-std=c99", *SANITIZERS, "host.c", "-o", "host", "-lm"], tmp_path)
    unlimited, *limited = [line.split() for line in output_of(["./host"], tmp_path).splitlines()]
    assert (unlimited[0], int(unlimited[1]) > 2) == (str(int(Status.FINISHED)), True)
    assert [line[0] for line in limited] == [str(int(Status.TOO_MANY_STEPS))] * 2


def test_a_kind_of_constraints_needs_a_field_and_an_argument(package: Path, tmp_path: Path) -> None:
    model = package / "kanegen" / "model"
    changed(
        model / "description.py",
        "    implied_constraints: tuple",
        "    pinned_constraints: tuple[Any, ...] = _constraints(POSITION)\n    implied_constraints: tuple",
    )
    changed(
        model / "model.py",
        "        implied_constraints: Any = (),\n",
        "        pinned_constraints: Any = (),\n        implied_constraints: Any = (),\n",
    )
    output_of([sys.executable, "-c", CONSTRAINT], tmp_path, package)
