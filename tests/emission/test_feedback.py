"""Emitted projects of models with feedback laws: continuous, sampled and delayed, with contacts, events and a servo."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from ccompile import C_COMPILER
from feedback_models import hybrid, hybrid_model, sampled, sampled_model, servo_model
from messages import says

import kanegen as kg

STEP = 1e-3
SAME_STEPS = 1e-12
"""The same steps in the module and in the program, compiled with other flags."""


def last_line(model: kg.Model, folder: Path, start: dict[str, float], end: float) -> list[float]:
    """The last state that the emitted program prints."""
    kg.emit(model, folder, values=start)
    name = next(folder.glob("*.hpp")).stem
    sources = [f"{name}.c", f"examples/{name}_example.c"]
    warnings = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    command = [C_COMPILER.command, *warnings, "-O0", *sources, "-o", "checked", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    form = subprocess.run(["./checked"], cwd=folder, check=True, capture_output=True, text=True).stdout
    (folder / "values.txt").write_text(form)
    arguments = ["./checked", "values.txt", str(end), str(STEP)]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=True)
    assert not done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return [float(value) for value in lines[-1].split()[1:]]


def same_steps(solver: kg.Solver, start: dict[str, float], end: float, **options: Any) -> np.ndarray:
    """The last state of a run of the module with the same steps."""
    solution = solver.with_initial(start).integrate((0.0, end), method="rk4", step=STEP, **options)
    return np.concatenate(solution.last[1:])


def test_emitted_program_samples_and_delays_laws(tmp_path: Path) -> None:
    start = {"x": 0.3, "y": -0.2, "v": 0.1, "w": 0.4}
    state = last_line(sampled_model(), tmp_path, start, 0.5)
    np.testing.assert_allclose(state, same_steps(sampled(), start, 0.5), rtol=0, atol=SAME_STEPS)
    says(
        (tmp_path / "README.md").read_text(encoding="utf-8"), "laws", "F", "every 0.05 s", "after 0.07 s", "continuous"
    )


def test_emitted_program_follows_a_law_with_contacts_events_and_states(tmp_path: Path) -> None:
    start = {"x": 0.0, "y": 1.0, "v": 2.0, "w": 0.0, "a": 0.5}
    state = last_line(hybrid_model(True), tmp_path, start, 1.5)
    np.testing.assert_allclose(state, same_steps(hybrid(True), start, 1.5), rtol=0, atol=SAME_STEPS)


def test_emitted_program_samples_a_servo_beside_a_law(tmp_path: Path) -> None:
    start = {"x": 0.0, "y": 0.5, "v": 0.0, "w": 1.0}
    state = last_line(servo_model(), tmp_path, start, 0.5)
    expected = same_steps(kg.build(servo_model(), functions="all"), start, 0.5, control=True, sample_time=STEP)
    np.testing.assert_allclose(state, expected, rtol=0, atol=SAME_STEPS)
