"""Runs of the command line that end before their time."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from messages import says

from kanegen.cli import main

SLIDE = """
import sympy.physics.mechanics as me
import kanegen as kg

def model():
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    lift = kg.Spline([0, 0.5, 1], [0, 0, 0], "linear", "lift", extrapolate="error")
    return kg.Model(
        name="slide", frame=N, coordinates=[x], speeds=[v], kinematics=[v - x.diff()],
        bodies=[me.Particle("p", P, 1)], loads=[(P, lift(x) * N.x)],
    )

INITIAL = {"t": 0, "q": [0], "u": [1]}
"""


def test_the_part_of_a_run_that_ends_early_is_written(session_cache: Path, tmp_path: Path) -> None:
    file, table = tmp_path / "slide.py", tmp_path / "motion.csv"
    file.write_text(SLIDE, encoding="utf-8")
    command = ["run", str(file), "--time", "2", "--output", str(table)]
    done = CliRunner(env={"KANEGEN_CACHE_DIR": str(session_cache)}).invoke(main, command)
    assert done.exit_code == 1
    says(done.output, "lift", f"written: {table}, up to t = 1")
    with table.open(encoding="utf-8") as stream:
        heading, *rows = csv.reader(stream)
    assert heading == ["t", "x", "v"]
    np.testing.assert_allclose([float(rows[-1][0]), float(rows[-1][1])], 1.0, rtol=1e-6)
