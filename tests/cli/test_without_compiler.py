"""The command line on a machine without a C compiler: an empty PATH, an empty cache, no compiler as a package."""

from __future__ import annotations

import csv
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from messages import says
from scipy.integrate import solve_ivp

FILE = """
import sympy as sm
import sympy.physics.mechanics as me
import kanegen as kg

INITIAL = {"t": 0.0, "q": (0.6, -0.8), "u": (0.0, 0.0), "r": None}

def model():
    x, y, vx, vy = me.dynamicsymbols("x y vx vy")
    m, g = sm.symbols("m g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bob = me.Particle("bob", O.locatenew("P", x * N.x + y * N.y), m)
    return kg.Model(
        name="pendulum", frame=N, coordinates=(x, y), speeds=(vx, vy), kinematics=(vx - x.diff(), vy - y.diff()),
        bodies=(bob,), gravity=-g * N.y, holonomic_constraints=(x**2 + y**2 - 1,), parameters={m: 2.0, g: 9.81},
    )
"""


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("CC", "PATH")}
    environment |= {"PATH": "", "KANEGEN_CACHE_DIR": str(folder / "cache")}
    # A package of this name without a compiler hides the one that may be installed.
    (folder / "site" / "ziglang").mkdir(parents=True, exist_ok=True)
    (folder / "site" / "ziglang" / "__init__.py").touch()
    paths = [str(folder / "site"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return subprocess.run(
        [sys.executable, "-c", "from kanegen.cli import main; main()", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pendulum.py"
    path.write_text(FILE)
    return path


def test_a_missing_compiler_names_the_interpreted_back_end(file: Path) -> None:
    done = command(file.parent, "run", str(file))
    assert done.returncode != 0
    says(done.stderr, "compiler", 'pip install "kanegen[compiler]"', "--backend interpreted")


def test_run_and_build_without_a_compiler(file: Path) -> None:
    assert "interpreted" in command(file.parent, "build", str(file), "--backend", "interpreted").stdout
    output = file.parent / "motion.csv"
    options = ("--backend", "interpreted", "--time", "0.5", "--points", "3", "--output", str(output))
    done = command(file.parent, "run", str(file), *options)
    assert done.returncode == 0, done.stderr
    *_, last = csv.reader(output.read_text().splitlines())
    # The same pendulum by its angle from the vertical: x = sin(a), y = -cos(a).
    angle = solve_ivp(
        lambda t, y: [y[1], -9.81 * math.sin(y[0])],
        (0, 0.5),
        [0.6435011087932844, 0.0],
        rtol=1e-11,
        atol=1e-12,
    ).y[0, -1]
    assert float(last[1]) == pytest.approx(math.sin(angle), abs=1e-6)


def test_a_start_that_violates_the_constraints_is_corrected(file: Path) -> None:
    done = command(file.parent, "run", str(file), "--backend", "interpreted", "--time", "0.1", "--start", "x=0.8")
    assert done.returncode == 0, done.stderr


def test_verify_without_a_compiler(file: Path) -> None:
    done = command(file.parent, "verify", str(file), "--backend", "interpreted", "--states", "2")
    assert done.returncode == 0, done.stderr
    says(done.stdout, "interpreted functions", "form nonminimal")
    assert "compiled" not in done.stdout


@pytest.mark.parametrize("start", [(), ("INITIAL",)])
def test_a_report_without_a_compiler_has_every_section(file: Path, start: tuple[str, ...]) -> None:
    """Also where there is no motion, whose solver would be known."""
    if not start:
        file.write_text(FILE.replace("INITIAL", "OTHER"))
    page = file.with_suffix(".html")
    done = command(file.parent, "report", str(file), str(page), "--backend", "interpreted", "--time", "0.1")
    assert done.returncode == 0, done.stderr
    assert "compiler" not in done.stdout
    text = page.read_text(encoding="utf-8")
    says(text, "interpreted functions", "comparisons")
    assert "no C compiler" not in text
