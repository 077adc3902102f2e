"""The command line on a small model file, in one process and one build."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ccompile import C_COMPILER
from click.testing import CliRunner, Result
from handmade import pendulum
from messages import says
from systems import EXAMPLES

import kanegen
from kanegen._version import __version__
from kanegen.backends.cython import open_cache
from kanegen.bench.modelfile import read_model_file
from kanegen.cli import main
from kanegen.cli.show import QUANTITIES
from kanegen.codegen.methods.table import METHODS
from kanegen.derivation import Equations
from kanegen.errors import ModelError
from kanegen.forms import FORMS

FILE = """
import sympy as sm
import sympy.physics.mechanics as me
import kanegen as kg

INITIAL = {"t": 0.0, "q": (0.6, -0.8), "u": (0.0, 0.0), "r": None}

def model(rod=True):
    x, y, vx, vy = me.dynamicsymbols("x y vx vy")
    m, g = sm.symbols("m g")
    t = me.dynamicsymbols._t
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    bob = me.Particle("bob", O.locatenew("P", x * N.x + y * N.y), m)
    return kg.Model(
        name="cli_pendulum", frame=N, coordinates=(x, y), speeds=(vx, vy),
        kinematics=(vx - x.diff(t), vy - y.diff(t)), bodies=(bob,), gravity=-g * N.y,
        holonomic_constraints=(x**2 + y**2 - 1,) if rod else (), parameters={m: 2.0, g: 9.81},
    )

def wrong():
    return kg.Model(name="wrong", frame=3, coordinates=(), speeds=(), kinematics=(), bodies=())
"""

COUNTER = """
import sympy.physics.mechanics as me
import kanegen as kg

INITIAL = {"t": 0.0, "q": (0.0,), "u": (1.0,), "r": None, "s": (0.0,)}

def model():
    x, v, z = me.dynamicsymbols("x v z")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    return kg.Model(
        name="counter", frame=N, coordinates=(x,), speeds=(v,), kinematics=(v - x.diff(),),
        bodies=(me.Particle("P", P, 1),), states={z: v}, events=(kg.Event("full", z - 1, direction=1, reset={z: 0}),),
    )
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pendulum.py"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def cache(session_cache: Path) -> Path:
    return session_cache


def invoke(cache: Path, *arguments: str | Path) -> Result:
    runner = CliRunner(env={"KANEGEN_CACHE_DIR": str(cache), "COLUMNS": "200"})
    return runner.invoke(main, [str(argument) for argument in arguments])


def output(cache: Path, *arguments: str | Path) -> str:
    result = invoke(cache, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_names_follow_the_layers_below() -> None:
    choices = {option.name: option.type for option in main.commands["run"].params}["method"].choices
    assert set(choices) == set(METHODS)
    assert [name for name in QUANTITIES if not hasattr(Equations, name)] == []


def test_version_and_help(cache: Path) -> None:
    assert __version__ in output(cache, "--version")
    text = output(cache, "--help")
    assert all(command in text for command in ("build", "run", "emit", "show", "bench", "cache"))


@pytest.mark.parametrize("command", ["build", "verify"])
def test_help_lists_every_form(cache: Path, command: str) -> None:
    says(output(cache, command, "--help"), "auto", *FORMS)


def test_help_imports_neither_scipy_nor_matplotlib() -> None:
    program = (
        "import sys\nfrom kanegen.cli import main\nmain(['--help'], standalone_mode=False)\n"
        "assert 'scipy' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_build_says_what_was_built(cache: Path, file: Path) -> None:
    text = output(cache, "build", file)
    assert "cli_pendulum" in text
    assert "x, y" in text
    assert "constraint_force" in text


def test_run_integrates_and_writes(cache: Path, file: Path, tmp_path: Path) -> None:
    table, arrays, figure = (tmp_path / name for name in ("motion.csv", "motion.npz", "motion.png"))
    arguments = ("run", file, "--time", "1", "--points", "11", "-p", "g=4.0")
    text = output(cache, *arguments, "--output", table, "--plot", figure)
    assert re.search(r"steps\s*.\s*\d+", text)
    assert "position residual" in text
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["t", "x", "y", "vx", "vy"]
    values = np.array(rows[1:], dtype=float)
    assert values.shape == (11, 5)
    t, x, y, vx, vy = values.T
    np.testing.assert_allclose(t, np.linspace(0.0, 1.0, 11))
    np.testing.assert_allclose(x**2 + y**2, 1.0, atol=1e-7)
    np.testing.assert_allclose((vx**2 + vy**2) / 2 + 4.0 * y, 4.0 * -0.8, atol=1e-6)
    assert figure.read_bytes().startswith(b"\x89PNG")
    output(cache, *arguments, "--output", arrays)
    with np.load(arrays) as data:
        np.testing.assert_array_equal(data["q"], values[:, 1:3])
        assert list(data["names"]) == ["x", "y", "vx", "vy"]


def test_run_by_fixed_steps(cache: Path, file: Path) -> None:
    text = output(cache, "run", file, "--time", "0.5", "--method", "rk4", "--step", "0.01")
    assert re.search(r"steps\s*.\s*50 ", text)


def test_run_closes_loops(cache: Path, tmp_path: Path) -> None:
    table = tmp_path / "motion.csv"
    energy, spacecraft = (EXAMPLES / f"{name}.py" for name in ("energy_servo", "spacecraft_detumbling"))
    text = output(cache, "run", energy, "--time", "1", "--control", "--sample-time", "0.1", "--output", table)
    assert "largest |tau2|" in text
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["t", "theta1", "theta2", "u1", "u2", "tau1", "tau2"]
    assert len({row[-1] for row in rows[1:]}) == 11  # ten samples, and the one at the end
    assert "largest |tau3|" in output(cache, "run", spacecraft, "--time", "1", "--control")


def test_models_with_states_run_from_their_start(cache: Path, tmp_path: Path) -> None:
    file = EXAMPLES / "dc_motor_arm.py"
    table, arrays, figure = (tmp_path / name for name in ("motion.csv", "motion.npz", "motion.png"))
    arguments = ("run", file, "--time", "0.2", "--points", "5", "--method", "rodas")
    text = output(cache, *arguments, "--output", table, "--plot", figure)
    assert figure.read_bytes().startswith(b"\x89PNG")
    with table.open(encoding="utf-8") as stream:
        heading, *rows = csv.reader(stream)
    assert heading == ["t", "theta", "omega", "i", "z"]
    values = np.array(rows, dtype=float)
    np.testing.assert_array_equal(values[0, 1:], 0.0)
    assert re.search(rf"i\s*. {values[-1, 3]:.9g} ", text)
    output(cache, *arguments, "--output", arrays)
    with np.load(arrays) as data:
        np.testing.assert_array_equal(data["s"], values[:, 3:])
        assert list(data["names"]) == heading[1:]


def test_a_start_without_states_is_refused(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "without.py"
    text = (EXAMPLES / "dc_motor_arm.py").read_text(encoding="utf-8")
    file.write_text(text.replace(', "s": (0.0, 0.0)', ""), encoding="utf-8")
    result = invoke(cache, "run", file)
    assert result.exit_code == 1
    says(result.output, "INITIAL", "i", "z", '"s"')


def test_an_incomplete_start_is_refused(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "incomplete.py"
    text = (EXAMPLES / "elliptic_wire.py").read_text(encoding="utf-8")
    for start, names in (("{'q': (0.0, 0.0)}", ("'t'", "'u'")), ("(0.0, 0.0)", ("INITIAL", "mapping"))):
        file.write_text(f"{text}\n\nINITIAL = {start}\n", encoding="utf-8")
        result = invoke(cache, "run", file)
        assert result.exit_code == 1
        says(result.output, *names)
        assert "Traceback" not in result.output


def test_events_that_reset_states_are_listed(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "counter.py"
    file.write_text(COUNTER, encoding="utf-8")
    text = output(cache, "run", file, "--time", "2.5")
    assert "change of s" in text
    assert len(re.findall(r"full\s*. user\s*. +. 1 ", text)) == 2


def test_states_are_shown(cache: Path) -> None:
    file = EXAMPLES / "dc_motor_arm.py"
    text = output(cache, "show", file)
    assert "n_s = 2" in text
    assert re.search(r"M\[0, 0\] = Jr\*N\*\*2", text)
    assert re.search(r"sdot\[0\] = .*/La", text)
    assert re.search(r"states +i, z", output(cache, "build", file))
    assert "n_s" not in output(cache, "show", EXAMPLES / "rolling_disk.py", "--counts")


def test_show_as_text_and_as_latex(cache: Path, file: Path) -> None:
    text = output(cache, "show", file)
    assert re.search(r"J\[0, 0\] = 2\*x", text)
    assert "right-hand side, the solve included" in text
    latex = output(cache, "show", file, "--latex", "-q", "J")
    assert latex.startswith("J = \\left[")
    assert "Q[0, 0]" not in output(cache, "show", file, "--counts")
    assert "J[0, 0]" not in output(cache, "show", file, "-o", "rod=False")


def written(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_emit_writes_sources(cache: Path, file: Path, tmp_path: Path) -> None:
    text = output(cache, "emit", file, tmp_path / "generated")
    folder = tmp_path / "generated"
    kanegen.emit(read_model_file(file).model, tmp_path / "by hand")
    assert written(folder) == written(tmp_path / "by hand")
    assert "cli_pendulum.c" in text
    kernel = [C_COMPILER.command, "-std=c99", "-fsyntax-only", "-Wall", "-Werror", "cli_pendulum.c"]
    subprocess.run(kernel, cwd=next(folder.rglob("cli_pendulum.c")).parent, check=True, capture_output=True)


def test_cache_is_listed_and_cleared(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own-cache"
    assert "0 entries" in output(folder, "cache", "list")
    open_cache(folder).store_sources(pendulum("swinging"))
    text = output(folder, "cache", "list")
    assert "swinging" in text
    assert "0 entries" not in text
    assert "freed" in output(folder, "cache", "clear")
    assert "0 entries" in output(folder, "cache", "list")
    assert not open_cache(folder).entries()


@pytest.mark.parametrize(
    ("arguments", "status", "names"),
    [
        (("run", "absent.py"), 2, ("'absent.py'",)),
        (("run", "{file}", "-o", "n"), 2, ("name=value",)),
        (("run", "{file}", "-o", "rod=1", "-o", "rod=2"), 2, ("rod", "twice")),
        (("run", "{file}", "--output", "motion.txt"), 2, (".csv", ".npz")),
        (("run", "{file}", "--plot", "motion.zzz"), 2, ("motion.zzz", ".png", ".pdf")),
        (("show", "{file}", "-o", "n=3"), 1, ("'n'",)),
        (("show", "{file}:absent"), 1, ("'absent'",)),
        (("show", "{file}:wrong"), 1, ("frame", "3")),
        (("run", "{file}", "-p", "mass=3"), 1, ("mass",)),
        (("run", "{file}", "--method", "rk4"), 1, ("step",)),
        (("bench", "--examples", "nowhere"), 1, ("nowhere",)),
    ],
)
def test_errors_are_one_message(
    cache: Path, file: Path, arguments: tuple[str, ...], status: int, names: tuple[str, ...]
) -> None:
    result = invoke(cache, *(argument.format(file=file) for argument in arguments))
    assert result.exit_code == status
    says(result.output, *names)
    assert "Traceback" not in result.output


def test_traceback_on_request(cache: Path, file: Path) -> None:
    result = invoke(cache, "--traceback", "show", f"{file}:absent")
    assert isinstance(result.exception, ModelError)
    says(result.exception, "'absent'")


def test_bench_compares_a_model(cache: Path, file: Path) -> None:
    text = output(cache, "bench", file, "--time", "0.5", "--rounds", "2")
    assert "right-hand side in C" in text
    assert "integration to error 1e-06" in text
