"""The standalone project: its example program against closed-form equations, its folder, its Python package."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from math import sin
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from ccompile import C_COMPILER
from messages import raises
from state_models import point_mass

import kanegen as kg
from kanegen.errors import BuildError

X, F = me.dynamicsymbols("x"), sm.Function("*/ y /*")(me.dynamicsymbols._t)
VALUES = {"m": 0.9, "l": 1.1, "g": 9.81, "theta": 0.4, "omega": 0.5}


@cache
def pendulum(name: str = "pendulum", **values: Any) -> kg.Model:
    """A pendulum of length l under gravity; parameters have no values unless they are given."""
    theta, omega = me.dynamicsymbols("theta omega")
    m, length, g = sm.symbols("m l g")
    N = me.ReferenceFrame("N")
    A = N.orientnew("A", "Axis", (theta, N.z))
    A.set_ang_vel(N, omega * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", -length * A.y)
    P.v2pt_theory(O, N, A)
    return kg.Model(
        name=name,
        frame=N,
        coordinates=(theta,),
        speeds=(omega,),
        kinematics=(theta.diff() - omega,),
        bodies=(me.Particle("bob", P, m),),
        loads=((P, -m * g * N.y),),
        parameters=values,
        potential_energy=m * g * length * (1 - sm.cos(theta)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the pendulum, with its example program built."""
    project = tmp_path_factory.mktemp("project") / "pendulum"
    folder = kg.emit(pendulum(), project, functions=["energy"], programs=["example", "selftest", "python"])
    flags = "-O1 -Werror -Wconversion"
    run(folder, "make", f"CC={C_COMPILER.command}", f"CFLAGS={flags}", "values.txt")
    return folder


def run(folder: Path, *command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, cwd=folder, env=dict(os.environ)
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def write_values(folder: Path, name: str) -> str:
    form = (folder / "values.txt").read_text(encoding="utf-8").splitlines()
    lines = [line.replace("?", repr(VALUES[line.split("# ")[1]])) for line in form]
    (folder / name).write_text("# comment\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return name


def rates(y: list[float]) -> list[float]:
    return [y[1], -VALUES["g"] / VALUES["l"] * sin(y[0])]


def reference(t_end: float, step: float) -> list[float]:
    """(q, u) after classical Runge-Kutta steps of the equation of the pendulum."""

    def moved(y: list[float], k: list[float], h: float) -> list[float]:
        return [a + h * b for a, b in zip(y, k, strict=True)]

    y = [VALUES["theta"], VALUES["omega"]]
    for _ in range(round(t_end / step)):
        k1 = rates(y)
        k2 = rates(moved(y, k1, step / 2))
        k3 = rates(moved(y, k2, step / 2))
        k4 = rates(moved(y, k3, step))
        y = [a + step / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4, strict=True)]
    return y


def test_the_example_prints_the_form_of_its_values(folder: Path) -> None:
    text = (folder / "values.txt").read_text(encoding="utf-8")
    assert sorted(line.split("# ")[1] for line in text.splitlines()) == sorted(VALUES)
    assert all(" = ?  # " in line for line in text.splitlines())


def test_the_example_integrates(folder: Path) -> None:
    done = run(folder, "./example", write_values(folder, "filled.txt"), "1", "0.05")
    rows = [[float(x) for x in line.split()] for line in done.stdout.splitlines()]
    assert len(rows) == 21
    assert rows[0] == [0.0, 0.4, 0.5]
    assert rows[-1][0] == pytest.approx(1.0)
    assert rows[-1][1:] == pytest.approx(reference(1.0, 0.05), rel=1e-12)


def test_the_example_names_what_is_missing(folder: Path) -> None:
    done = run(folder, "./example", "values.txt", "1", "0.1", status=2)
    assert "line 1 is not a value of this model: p[0] = ?" in done.stderr
    assert "u[0] (omega) has no value" in done.stderr
    assert "usage" in run(folder, "./example", "values.txt", "1", "-1", status=2).stderr


def test_a_project_holds_no_header_that_nothing_includes(folder: Path, tmp_path: Path) -> None:
    whole = kg.emit(pendulum(), tmp_path / "all", functions="all", programs="all")
    for project in (folder, whole):
        text = "".join(path.read_text(encoding="utf-8") for path in project.rglob("*") if path.suffix in (".h", ".c"))
        headers = {path.name for path in (project / "runtime").iterdir()}
        assert headers <= {PurePosixPath(name).name for name in re.findall('#include "(.*?)"', text)}
        assert "kg_contact.h" not in headers
        assert ("kg_rosenbrock.h" in headers) is (project is not folder)  # needs Jacobians


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with raises(BuildError, str(tmp_path), "files", "pendulum.h"):
        kg.emit(pendulum(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_project_replaces_an_earlier_one(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert kg.emit(pendulum(), folder) == folder
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    kg.emit(pendulum(), folder, precision="float")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert "typedef float pendulum_real" in (folder / "pendulum.h").read_text(encoding="utf-8")
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]


def test_nothing_remains_of_a_project_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with raises(BuildError, str(tmp_path / "file")):
        kg.emit(pendulum(), tmp_path / "file" / "inside")
    with raises(BuildError, str(tmp_path / "file")):
        kg.emit(pendulum(), tmp_path / "file")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kanegen.writing.write_files", full)
    with raises(BuildError, str(tmp_path / "full"), "No space left on device"):
        kg.emit(pendulum(), tmp_path / "full")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["example", "Makefile", "selftest", "all", "clean", "README", "values", "int"])
def test_names_that_other_files_of_a_project_resemble(name: str, tmp_path: Path) -> None:
    folder = kg.emit(pendulum(), tmp_path / "project", name=name, functions=["rhs"])
    run(folder, "make", f"CC={C_COMPILER.command}", "CFLAGS=-O0 -Werror", "all", "values.txt")
    assert "theta" in (folder / "values.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("two words", ("two words", "two_words")),
        ("9lives", ("9lives", "model_9lives")),
        ("kg_base", ("kg_base", "kg_", "base_model")),
        ("math", ("math", "math_model")),
        ("", ("name", "model")),
        ("größe", ("größe", "gr_e")),
        ("a" * 200, ("80",)),
        (3, ("3",)),
    ],
)
def test_names_that_c_or_the_project_cannot_have(name: Any, words: tuple[str, ...], tmp_path: Path) -> None:
    with raises(BuildError, *words):
        kg.emit(pendulum(), tmp_path / "project", name=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("double pendulum", "double_pendulum"),
        ("θ's arm", "theta_s_arm"),
        ("маятник", "model"),
        ("class", "class_model"),
        ("math", "math_model"),
        ("kg_base", "base_model"),
    ],
)
def test_every_name_of_a_model_becomes_one_of_a_project(model: str, name: str, tmp_path: Path) -> None:
    """Names that are no identifiers were refused: every output takes every name that a model takes."""
    folder = kg.emit(pendulum(model), tmp_path / "project", functions=["rhs"])
    assert (folder / f"{name}.h").is_file()


@pytest.mark.parametrize(
    "options",
    [{"events": [kg.Event("*/ x /*", X)]}, {"inputs": [kg.Input(F, law=-X, sample_time=0.1)]}],
    ids=["event", "law"],
)
def test_names_do_not_end_the_comments_of_a_project(options: dict[str, Any], tmp_path: Path) -> None:
    """The header named the events that a fixed step does not locate, the example the inputs with laws, as they are."""
    model = point_mass("hostile", F if "inputs" in options else -X, parameters={"m": 1.0}, **options)
    run(kg.emit(model, tmp_path / "project"), "make", f"CC={C_COMPILER.command}", "all", "selftest")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "half"}, ("precision", "half", "double", "float")),
        ({"math": "fast"}, ("math", "fast", "libm", "builtin")),
        ({"method": "dopri5"}, ("dopri5", "steps", "rk4")),
        ({"method": "rk5"}, ("rk5", "rk4")),
        ({"method": 3}, ("method", 3)),
        ({"projections": -1}, ("projections", -1)),
        ({"projections": 1.5}, ("projections", 1.5)),
        ({"projections": 2}, ("projections", 2, "no constraints")),
        ({"projections": 2, "method": "none"}, ("projections", 2)),
        ({"single_header": "yes"}, ("single_header", "yes")),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], words: tuple[Any, ...], tmp_path: Path) -> None:
    with raises(BuildError, *words):
        kg.emit(pendulum(), tmp_path / "project", **options)
    assert not list(tmp_path.iterdir())
