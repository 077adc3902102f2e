"""The standalone project of a model with contacts and events: its C program moves as the solver does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from ccompile import C_COMPILER
from hybrid_models import MU_K, MU_S, block, rough_block
from tolerances import STEPPER_ROUNDING

import kanegen as kg

START = np.array([0.0, 0.1, 0.2, 0.0])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example program of the block, and a file with its values."""
    folder = kg.emit(rough_block(), tmp_path_factory.mktemp("emitted") / "block")
    flags = "CFLAGS=-O1 -Werror -Wconversion"
    subprocess.run(["make", f"CC={C_COMPILER.command}", flags, "example"], cwd=folder, check=True, capture_output=True)
    names = [*(f"p[{k}]" for k in range(2)), *(f"q[{k}]" for k in range(2)), *(f"u[{k}]" for k in range(2)), "r[0]"]
    values = [MU_S, MU_K, *START.tolist(), 7.0]
    lines = [f"{name} = {value!r}" for name, value in zip(names, values, strict=True)]
    (folder / "values.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "example"


def run(program: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([program, *arguments], cwd=program.parent, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def test_the_emitted_program_meets_contacts_and_events(program: Path) -> None:
    lines = run(program, "values.txt", "2", "0.1").stdout.splitlines()
    solution = block().integrate((0.0, 2.0), START[:2], START[2:], [7.0], method="rk4", step=0.1)
    records = [line.removeprefix("# t = ").split(": ") for line in lines if line.startswith("#")]
    times, words = zip(*records, strict=True)
    expected = [f"{event.name} {'happens' if event.kind == 'user' else event.kind}" for event in solution.events]
    assert list(words) == expected
    np.testing.assert_allclose([float(t) for t in times], [event.t for event in solution.events], rtol=1e-9)
    rows = np.array([[float(x) for x in line.split()] for line in lines if not line.startswith("#")])
    # The program prints the state after every event, the solver stores it where it jumped.
    (last,) = rows[-1:]
    np.testing.assert_allclose(last[1:], np.concatenate(solution.last[1:]), atol=STEPPER_ROUNDING)
    for t, q, u in zip(solution.t, solution.q, solution.u, strict=True):
        near = rows[np.abs(rows[:, 0] - t) < 1e-9, 1:]
        assert np.abs(near - np.concatenate([q, u])).max(axis=1).min() < STEPPER_ROUNDING


def test_the_emitted_program_names_the_contact_that_is_violated(program: Path) -> None:
    values = program.with_name("values.txt").read_text(encoding="utf-8")
    program.with_name("below.txt").write_text(values.replace("q[1] = 0.1", "q[1] = -0.1"), encoding="utf-8")
    assert "(floor)" in run(program, "below.txt", "1", "0.1", status=1).stderr
