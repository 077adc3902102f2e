"""Further recipes of docs/architecture.md, all carried out in one copy of the package and used in one process."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from ccompile import C_COMPILER, SANITIZERS
from checkout import ROOT, SUPPORT, environment
from recipes import RECIPES, Recipe

from kanegen.codes import Status

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

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTIONS = {text.splitlines()[0].rsplit(":", 1)[0]: text for text in PAGE.split("\n### ")[1:]}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_the_page_names_every_file_of_a_recipe(recipe: Recipe) -> None:
    named = re.findall(r"`((?:kanegen|templates)/[^`]*)`", SECTIONS[recipe.title])
    patterns = [name.replace("NAME", "*") + "*" * name.endswith("/") for name in named]
    assert [file for file in recipe.files if not any(fnmatch(file, pattern) for pattern in patterns)] == []


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of the process that used all additions, and what it printed."""
    folder = tmp_path_factory.mktemp("recipes")
    copy, work = folder / "copy", folder / "work"
    for name in ("kanegen", "templates"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for recipe in RECIPES:
        recipe.carry_out(copy)
    work.mkdir()
    command = [sys.executable, str(SUPPORT / "recipes_used.py")]
    done = subprocess.run(command, cwd=work, env=environment(PYTHONPATH=str(copy)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return work, json.loads(done.stdout)


def value(used: tuple[Path, dict[str, Any]], name: str) -> Any:
    found = used[1][name]
    assert "error" not in found, found["error"]
    return found["value"]


def test_a_contact_law(used: Any) -> None:
    status, (gap, _, _, load, *_) = value(used, "law")
    assert (status, gap) == (0, -0.1)
    assert load == pytest.approx(100.0 * 0.1**3, rel=1e-14)


def test_a_quantity(used: Any) -> None:
    power, expected = value(used, "quantity")
    assert power == pytest.approx(expected, rel=1e-14)


def test_a_form(used: Any) -> None:
    bordered, reduced = value(used, "form")
    assert bordered == pytest.approx(reduced, rel=1e-12)


def test_a_kernel(used: Any) -> None:
    """The self-test of the emitted project compares C with the twin."""
    largest, P = value(used, "kernel")
    assert largest == max(map(abs, P))
    project = used[0] / "kernel"
    assert (project / "runtime" / "kg_norms.h").is_file()
    (source,) = project.rglob("pendulum_selftest.c")
    command = [C_COMPILER.command, "-std=c99", "-I.", str(source), "pendulum.c", "-o", "selftest", "-lm"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./selftest"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "largest_force" in source.read_text(encoding="utf-8")
    assert " = kg_largest_size(2, x)" in (used[0] / "jax" / "pendulum.py").read_text(encoding="utf-8")


def test_a_back_end(used: Any) -> None:
    assert value(used, "back_end") == ["pendulum"]


def test_a_target_and_a_printer(used: Any) -> None:
    printed, expected = value(used, "target")
    assert printed == pytest.approx(expected, rel=1e-14)


def test_a_check(used: Any) -> None:
    assert value(used, "check")["symmetry"] is True


def test_a_plot(used: Any) -> None:
    drawn, steps = value(used, "plot")
    assert drawn == steps > 1


def test_a_section_of_a_report(used: Any) -> None:
    assert value(used, "section") == ["<p>body_0, body_1</p>"]


def test_a_shape(used: Any) -> None:
    assert value(used, "shape") == [0.1, 0.1, 2.0, 1.0]


def test_an_option_of_a_run(used: Any) -> None:
    """Everything names it, and C reads it."""
    assert all(value(used, "option"))
    folder = used[0] / "option"
    (folder / "host.c").write_text(PATIENT, encoding="utf-8")
    command = [C_COMPILER.command, "-std=c99", *SANITIZERS, "host.c", "-o", "host", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./host"], cwd=folder, capture_output=True, text=True)
    unlimited, *limited = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert unlimited[0] == Status.FINISHED
    assert unlimited[1] > 2
    assert [status for status, _ in limited] == [Status.TOO_MANY_STEPS] * 2


def test_a_kind_of_constraints(used: Any) -> None:
    """Nothing forgets it: representation, overview, equations, checks of the model and of kg.verify."""
    found = value(used, "constraints")
    pinned, holonomic = found["equations"]
    assert pinned == holonomic
    assert found["rows"] == ["pinned constraint"]
    assert found["check"] is True
    for text, part in (("repr", "1 constraints"), ("table", "J^T lambda"), ("refused", "pinned_constraints[0]")):
        assert part in found[text]
