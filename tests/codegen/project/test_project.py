"""The standalone project: its C program against the interpreter, its folder, its Python package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ccompile import C_COMPILER
from messages import raises
from programs import DIGEST, pendulum, solver_program

from kanegen.codegen.kernel import emit_sources
from kanegen.codegen.project import emit_project, write_project
from kanegen.codegen.sources import Features
from kanegen.errors import BuildError
from kanegen.program.interpret import interpret

PLAIN = Features(events=False, impulses=False, inverse=False, methods=("rk4", "kutta_merson", "dopri5"))
VALUES = {"p": [0.9, 1.1, 9.81], "q": [0.4], "u": [0.5], "r": [], "g": [], "t": [0.0]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the pendulum, with what a model without contacts needs, and its C program built."""
    project = emit_project(emit_sources(pendulum(), digest=DIGEST), features=PLAIN)
    folder = write_project(project, tmp_path_factory.mktemp("project") / "pendulum")
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
    lines = [f"{a}[{i}] = {x!r} # kept" for a in "pqu" for i, x in enumerate(VALUES[a])]
    (folder / name).write_text("# comment\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return name


def reference(t_end: float, step: float) -> list[float]:
    """(q, u) after classical Runge-Kutta steps on the interpreter."""

    def rhs(y: list[float]) -> list[float]:
        return [float(x) for x in interpret(pendulum(), "rhs", {**VALUES, "q": y[:1], "u": y[1:]})[1]]

    def moved(y: list[float], k: list[float], h: float) -> list[float]:
        return [a + h * b for a, b in zip(y, k, strict=True)]

    y = [*VALUES["q"], *VALUES["u"]]
    for _ in range(round(t_end / step)):
        k1 = rhs(y)
        k2 = rhs(moved(y, k1, step / 2))
        k3 = rhs(moved(y, k2, step / 2))
        k4 = rhs(moved(y, k3, step))
        y = [a + step / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4, strict=True)]
    return y


def test_the_example_prints_the_form_of_its_values(folder: Path) -> None:
    text = (folder / "values.txt").read_text(encoding="utf-8")
    assert text.splitlines() == [
        "p[0] = ?  # m",
        "p[1] = ?  # l",
        "p[2] = ?  # g",
        "q[0] = ?  # theta",
        "u[0] = ?  # omega",
    ]


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


def test_the_python_package_installs_and_evaluates(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    run(folder, *pip, "--disable-pip-version-check", "--target", str(target), ".")
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r}); import pendulum_model as m;"
        "f = m.Function('rhs', m.Prepared([0.9, 1.1, 9.81])); (a,), (b,) = f.pair(0.0, [0.4], [0.5]);"
        "assert not any(name.split('.')[0] in ('kanegen', 'sympy', 'scipy') for name in sys.modules);"
        "print(m.NAME, repr(float(a)), repr(float(b)))"
    )
    done = run(tmp_path, sys.executable, "-c", code)
    name, qdot, udot = done.stdout.split()
    assert name == "pendulum"
    assert [float(qdot), float(udot)] == pytest.approx(interpret(pendulum(), "rhs", VALUES)[1], rel=1e-14)


@pytest.mark.parametrize("features", [PLAIN, Features()], ids=["plain", "everything"])
def test_a_project_holds_no_header_that_nothing_includes(features: Features) -> None:
    project = emit_project(emit_sources(pendulum(), digest=DIGEST), features=features)
    text = "".join(project.files.values())
    headers = {name for name in project.files if name.endswith(".h") and "/" not in name}
    assert headers == {name for name in headers if f'#include "{name}"' in text}
    assert ("kg_contact.h" in headers) is features.events
    assert ("kg_rosenbrock.h" in headers) is ("rodas" in features.methods)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    project = emit_project(emit_sources(pendulum(), digest=DIGEST))
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with raises(BuildError, str(tmp_path), "files"):
        write_project(project, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_project_replaces_an_earlier_one(tmp_path: Path) -> None:
    project = emit_project(emit_sources(pendulum(), digest=DIGEST))
    assert write_project(project, tmp_path / "new" / "folder") == tmp_path / "new" / "folder"
    write_project(project, tmp_path / "new" / "folder")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with raises(BuildError, str(tmp_path / "file")):
        write_project(emit_project(emit_sources(pendulum(), digest=DIGEST)), tmp_path / "file" / "inside")


def test_hostile_names_reach_no_file_name() -> None:
    project = emit_project(emit_sources(solver_program(), digest=DIGEST))
    assert all(path.replace("/", "").replace(".", "").replace("_", "").isalnum() for path in project.files)
