"""``kanegen new`` writes a model file that runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checkout import environment
from click.testing import CliRunner, Result
from messages import says

import kanegen as kg
from kanegen.cli import main
from kanegen.modelfile import read_model_file


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    result = invoke("new", tmp_path / "my_robot")
    assert result.exit_code == 0, result.output
    assert "kanegen run" in result.output
    return tmp_path / "my_robot.py"


def test_the_file_runs_as_a_script(file: Path) -> None:
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert "theta" in done.stdout


def test_its_model_has_a_start(file: Path) -> None:
    """The start was in tuples beside the model, so that `integrate` had none."""
    model = read_model_file(file).model
    solution = kg.build(model).integrate((0.0, 1.0))
    assert solution["x"][0] == 0.1
    assert solution["theta"][0] == 0.3


def test_the_commands_that_it_names_work(file: Path) -> None:
    named = [line.split()[1] for line in file.read_text(encoding="utf-8").splitlines() if "    kanegen " in line]
    assert named == ["run", "show", "verify"]
    for command in ("run", "show"):
        result = invoke(command, file)
        assert result.exit_code == 0, result.output
    result = invoke("run", file, "-o", "damped=False")
    assert result.exit_code == 0, result.output


def test_the_model_conserves_energy_without_damping(file: Path) -> None:
    read = read_model_file(file, options={"damped": False})
    start = read.start()
    solver = kg.build(read.model)
    solution = solver.integrate((0.0, 5.0), start["q"], start["u"], r=start["r"], rtol=1e-11, atol=1e-12)
    first, last = (solver.energy(solution.t[k], solution.q[k], solution.u[k], start["r"]) for k in (0, -1))
    assert last == pytest.approx(first, abs=1e-8)
    assert read.model.name == "my_robot"


def test_the_file_is_formatted(file: Path) -> None:
    for command in (["check", "--select", "E,F,I", "--ignore", "E741"], ["format", "--check"]):
        arguments = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "120", file.name]
        done = subprocess.run(arguments, cwd=file.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["1st", "my-robot", "class", "my robot", "größe", ""])
def test_names_that_python_cannot_import_are_refused(tmp_path: Path, name: str) -> None:
    result = invoke("new", tmp_path / name if name else "")
    assert result.exit_code == 2
    says(result.output, "NAME", "my_robot")
    assert not list(tmp_path.iterdir())


def test_an_existing_file_stays(file: Path) -> None:
    before = file.read_bytes()
    result = invoke("new", file)
    assert result.exit_code == 1
    says(result.output, "my_robot.py", "exists")
    assert file.read_bytes() == before


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    result = invoke("new", tmp_path / "absent" / "robot")
    assert result.exit_code == 1
    says(result.output, "absent", "No such file")


@pytest.mark.parametrize("arguments", [("run", "--html", "motion.mp4"), ("report", "report.pdf")], ids=" ".join)
def test_its_pages_are_not_written_into_files_of_other_kinds(file: Path, arguments: tuple[str, ...]) -> None:
    """The integration does not begin."""
    command, *options = arguments
    result = invoke(command, file, *options)
    assert result.exit_code == 1
    says(result.output, options[-1], "HTML", ".html")
    assert not Path(options[-1]).exists()
