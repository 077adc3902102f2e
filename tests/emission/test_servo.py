"""The standalone project of a model with servo-constraints: its C program samples and holds as the solver does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from ccompile import C_COMPILER
from control_models import slider
from tolerances import STEPPER_ROUNDING

import kanegen as kg

START = np.array([0.1, 1.0, 0.0, 0.0])
STEP = 0.02
FLAGS = "CFLAGS=-O1 -Werror -Wconversion"


def particle(floor: bool) -> kg.Model:
    """A particle that a limited force moves to and fro while it falls, with ``floor`` until it bounces."""
    x, y, v, w, F, g = me.dynamicsymbols("x y v w F g")
    m = sm.Symbol("m")
    time = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    return kg.Model(
        name="servo_particle",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(v - x.diff(time), w - y.diff(time)),
        bodies=(me.Particle("particle", P, m),),
        loads=((P, F * N.x - m * g * N.y),),
        inputs=(g, F),
        parameters={m: 2.0},
        control=kg.Servo(x - sm.sin(time), theta=(-4, -4), controls=(F,), limits=[(None, 4.0)]),
        contacts=(kg.Unilateral(y, law=kg.Restitution(0.5), name="floor"),) if floor else (),
    )


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "floor"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the particle, compiled, with the form of its values."""
    folder = kg.emit(particle(request.param), tmp_path_factory.mktemp("servo") / "project")
    make = ["make", f"CC={C_COMPILER.command}", FLAGS, "values.txt"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [folder / "example", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_emitted_program_samples_the_controls(folder: Path, request: pytest.FixtureRequest) -> None:
    floor = "floor" in request.node.name
    form = (folder / "values.txt").read_text(encoding="utf-8").splitlines()
    # The control has no value in the file: it is computed.
    assert [line.split(" ")[0] for line in form] == ["p[0]", "q[0]", "q[1]", "u[0]", "u[1]", "r[0]"]
    values = [2.0, *START.tolist(), 9.81]
    lines = [line.replace("?", repr(x), 1) for line, x in zip(form, values, strict=True)]
    (folder / "filled.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run(folder, "filled.txt", "1", str(STEP))
    assert done.returncode == 0, done.stderr
    rows = np.array([[float(x) for x in line.split()] for line in done.stdout.splitlines() if line[0] != "#"])
    assert ("# t = 0.4515" in done.stdout) == floor
    options = {"method": "rk4", "step": STEP, "sample_time": STEP}
    solver = kg.build(particle(floor))
    solution = solver.integrate((0.0, 1.0), START[:2], START[2:], {"g": 9.81}, control=True, **options)
    assert solution.control.saturation  # the limit acts in the program as well
    np.testing.assert_allclose(rows[-1, 1:], np.concatenate(solution.last[1:]), atol=STEPPER_ROUNDING)


def test_the_readme_tells_where_the_controls_go(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "| F | 1 | -inf | 4.0 |" in text
    assert "inputs[1] = tau[0];" in text


def test_the_readme_tells_which_controls_are_part_of_the_state(tmp_path: Path) -> None:
    text = (kg.emit(slider(), tmp_path / "project") / "README.md").read_text(encoding="utf-8")
    assert "q', u', then the derivatives of `r[0]` (tau)" in text


def test_a_value_for_a_control_is_refused(folder: Path) -> None:
    (folder / "wrong.txt").write_text("r[1] = 3.0\n", encoding="utf-8")
    done = run(folder, "wrong.txt", "1", "0.1")
    assert done.returncode == 2
    assert "line 1 is not a value of this model: r[1] = 3.0" in done.stderr
