"""The programs of emitted projects that need a clock: they build without warnings, run, and print what they promise."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ccompile import C_COMPILER
from contact_models import ball
from feedback_models import sampled_model, servo_model
from messages import raises
from systems import example

import kanegen as kg
from kanegen.errors import BuildError

FLAGS = "-O1 -Werror -Wconversion -Wshadow"


def make(folder: Path, target: str) -> Path:
    command = ["make", f"CC={C_COMPILER.command}", f"CFLAGS={FLAGS}", target]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder / target


def output(program: Path, *arguments: str, status: int = 0) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def slider_crank(folder: Path, **options: Any) -> Path:
    module = example("slider_crank")
    model = module.model()
    names = [str(symbol.func) for symbol in (*model.coordinates, *model.speeds)]
    start = dict(zip(names, (*module.INITIAL["q"], *module.INITIAL["u"]), strict=True))
    return kg.emit(model, folder / "project", values=start, name="crank", programs="all", **options)


def test_the_demo_runs_plant_and_controller(tmp_path: Path) -> None:
    program = make(slider_crank(tmp_path), "realtime")
    text = output(program, "0.2", "0.002")
    assert "at t = 0.2 s, y =" in text
    assert "crank: 100 steps of 0.002 s" in text
    for words in ("delay of waking up", "step and exchange", "99.9 %", "missed deadlines: ", " of 100", "#"):
        assert words in text
    assert "usage" in output(program, "-1", status=1)
    assert "usage" in output(program, "1", "0", status=1)


def test_the_controller_brings_the_energy_to_its_target(tmp_path: Path) -> None:
    # E = E_f + (E0 - E_f) exp(-t) with controls without delay; a busy machine delays samples, and nothing diverges.
    module = example("energy_servo")
    start = dict(zip(("theta1", "theta2", "u1", "u2"), (*module.INITIAL["q"], *module.INITIAL["u"]), strict=True))
    folder = kg.emit(module.model(), tmp_path / "project", values=start, name="m", programs="realtime")
    text = output(make(folder, "realtime"), "1.5")
    (line,) = (line for line in text.splitlines() if line.startswith("at t = 1.5 s, y ="))
    y = [float(x) for x in line.split("=")[2].split()]
    energy = kg.build(module.model()).energy
    before, after = (float(energy(0.0, x[:2], x[2:])) for x in (list(start.values()), y))
    target = module.DEFAULTS["E_f"]
    assert abs(after - target) < 0.5 * abs(before - target)


def test_the_bench_counts_steps_and_times(tmp_path: Path) -> None:
    program = make(slider_crank(tmp_path), "bench")
    text = output(program, "2000")
    assert "crank: 2000 steps of 0.001 s" in text
    counts = [int(line.split(" us ")[1].split()[0]) for line in text.splitlines() if " to " in line]
    assert sum(counts) == 2000
    assert "steps in less than 3 medians: " in text
    assert "usage" in output(program, "0", status=1)


@pytest.mark.parametrize("model", [servo_model(), sampled_model(), ball()], ids=["servo", "laws", "contacts"])
def test_the_demo_of_controlled_models_and_contacts_compiles(model: kg.Model, tmp_path: Path) -> None:
    folder = kg.emit(model, tmp_path / "project", name="m", programs=("realtime", "bench"))
    make(folder, "realtime")
    make(folder, "bench")


def test_a_start_that_is_not_known_is_reported(tmp_path: Path) -> None:
    program = make(kg.emit(ball(), tmp_path / "project", name="m", programs="realtime"), "realtime")
    assert "not a number" in output(program, "0.1", status=1)


def test_projects_without_a_step_have_no_programs_of_steps(tmp_path: Path) -> None:
    folder = kg.emit(ball(), tmp_path / "project", name="m", method="none", programs="all")
    assert [path.name for path in (folder / "examples").iterdir()] == ["m_example.c"]
    assert "realtime" not in (folder / "Makefile").read_text(encoding="utf-8")
    with raises(BuildError, "'bench'", "needs a step", "'none'"):
        kg.emit(ball(), tmp_path / "refused", name="m", method="none", programs=["example", "bench"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"programs": ["exampel"]}, ("'exampel'", "'example'", "selftest")),
        ({"programs": 3}, ("3", "example", "'all'")),
        ({"programs": "python", "precision": "float"}, ("'python'", "double")),
        ({"programs": "bench", "single_header": True}, ("single_header", "programs")),
    ],
)
def test_programs_that_a_project_cannot_have_are_refused(options: Any, words: tuple[str, ...], tmp_path: Path) -> None:
    with raises(BuildError, *words):
        kg.emit(ball(), tmp_path / "project", name="m", **options)
