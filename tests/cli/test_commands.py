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
from kanegen.backends.cython.cache import open_cache
from kanegen.cli import main
from kanegen.cli.show import QUANTITIES
from kanegen.codegen.methods.files import METHODS
from kanegen.derivation import Equations
from kanegen.errors import ModelError
from kanegen.forms import FORMS
from kanegen.modelfile import read_model_file
from kanegen.run_options import RunOptions, StepOptions, table

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


def test_commands_have_all_options_of_a_run() -> None:
    names = {command: {option.name for option in main.commands[command].params} for command in ("run", "fmu")}
    assert table(RunOptions).keys() - names["run"] == {"t_eval"}  # --points
    assert table(StepOptions).keys() <= names["fmu"]


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


def test_run_writes_solutions_and_data_frames(cache: Path, file: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    motion, frame = tmp_path / "motion.nc", tmp_path / "motion.parquet"
    for path in (motion, frame):
        assert str(path.name) in output(cache, "run", file, "--time", "1", "--points", "11", "--output", path)
    loaded, table = kanegen.load(motion), pandas.read_parquet(frame)
    np.testing.assert_allclose(loaded.t, np.linspace(0.0, 1.0, 11))
    np.testing.assert_array_equal(table["x"], loaded["x"])
    np.testing.assert_array_equal(table.index, loaded.t)


def test_report_writes_a_page(cache: Path, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "pendulum.html"
    assert target.name in output(cache, "report", file, target, "--time", "1", "--no-verify", "-p", "m=3")
    text = target.read_text("utf-8")
    assert "cli_pendulum" in text
    assert ">3</td>" in text  # the value of m


def test_run_writes_an_animation(cache: Path, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("k3d")
    page = tmp_path / "motion.html"
    page.write_text("old", encoding="utf-8")
    assert str(page.name) in output(cache, "run", file, "--time", "1", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "cli_pendulum" in text
    assert "</html>" in text


def test_run_by_fixed_steps(cache: Path, file: Path) -> None:
    text = output(cache, "run", file, "--time", "0.5", "--method", "rk4", "--step", "0.01")
    assert re.search(r"steps\s*.\s*50 ", text)
    few = invoke(cache, "run", file, "--max-steps", "3")
    assert few.exit_code == 1
    assert "max_steps" in few.output


def test_run_closes_loops(cache: Path, tmp_path: Path) -> None:
    table = tmp_path / "motion.csv"
    energy, spacecraft = (EXAMPLES / f"{name}.py" for name in ("energy_servo", "spacecraft_detumbling"))
    text = output(
        cache, "run", energy, "--time", "1", "--control", "--sample-time", "0.1", "--delay", "0.02", "--output", table
    )
    assert "largest |tau2|" in text
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["t", "theta1", "theta2", "u1", "u2", "tau1", "tau2"]
    assert len({row[-1] for row in rows[1:]}) == 10  # that of the end does not act yet
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
    file.write_text(text.replace(", i: 0.0, z: 0.0", ""), encoding="utf-8")
    result = invoke(cache, "run", file)
    assert result.exit_code == 1
    says(result.output, "INITIAL", "i", "z", '"s"')


def test_an_incomplete_start_is_refused(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "incomplete.py"
    text = (EXAMPLES / "elliptic_wire.py").read_text(encoding="utf-8")
    for start, names in (("{'q': (0.0, 0.0)}", ("INITIAL", "t")), ("(0.0, 0.0)", ("INITIAL", "mapping"))):
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
    kanegen.emit(read_model_file(file).model, tmp_path / "by hand", values={"x": 0.6, "y": -0.8, "vx": 0, "vy": 0})
    assert written(folder) == written(tmp_path / "by hand")
    assert "cli_pendulum.c" in text
    kernel = [C_COMPILER.command, "-std=c99", "-fsyntax-only", "-Wall", "-Werror", "cli_pendulum.c"]
    subprocess.run(kernel, cwd=next(folder.rglob("cli_pendulum.c")).parent, check=True, capture_output=True)


def test_emit_writes_a_module_for_jax(cache: Path, file: Path, tmp_path: Path) -> None:
    text = output(cache, "emit", file, tmp_path / "generated", "--target", "jax", "--name", "swing")
    assert "swing.py" in text
    module = (tmp_path / "generated" / "swing.py").read_text(encoding="utf-8")
    compile(module, "swing.py", "exec")
    assert "import kanegen" not in module
    assert "def rhs(t, y, r=None, p=None):" in module


def test_emit_writes_functions_for_casadi(cache: Path, file: Path, tmp_path: Path) -> None:
    text = output(cache, "emit", file, tmp_path / "generated", "--target", "casadi", "--name", "swing")
    assert "swing_casadi.c" in text
    kernel = [C_COMPILER.command, "-std=c99", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "swing_casadi.c"]
    subprocess.run(kernel, cwd=tmp_path / "generated", check=True, capture_output=True)


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
        (("run", "{file}", "--output", "motion.txt"), 2, (".csv", ".npz", ".nc", ".parquet")),
        (("run", "{file}", "--plot", "motion.zzz"), 2, ("motion.zzz", ".png", ".pdf")),
        (("run", "{file}", "--plot", "motion"), 2, ("motion", ".png", ".pdf")),
        (("run", "{file}", "--plot", "absent/motion.png"), 1, ("absent", "folder")),
        (("run", "{file}", "--output", "absent/motion.csv"), 1, ("absent", "folder")),
        (("run", "{file}", "--points", str(10**15)), 1, ("memory",)),
        (("run", "{file}", "--form", "reduce"), 1, ("'reduce'", "'reduced'")),
        (("build", "{file}", "--functions", "rhs,enrgy"), 1, ("'enrgy'", "'energy'")),
        (("build", "{file}", "--stabilization", "drift"), 2, ("'drift'", "projection", "baumgarte:ALPHA,BETA")),
        (("build", "{file}", "--stabilization", "baumgarte:x"), 2, ("'baumgarte:x'", "baumgarte:ALPHA,BETA")),
        (("build", "{file}", "--stabilization", "baumgarte:-5"), 2, ("alpha", "positive")),
        (("build", "{file}", "-o", "rod=0", "--stabilization", "projection"), 1, ("stabilize",)),
        (("emit", "{file}", "project", "--target", "casady"), 1, ("'casady'", "'casadi'")),
        (("emit", "{file}", "project", "--target", "casadi", "--precision", "float"), 1, ("precision", "'c'")),
        (("emit", "{file}", "project", "--stabilization", "projection:enrgy"), 1, ("'enrgy'", "'energy'")),
        (("emit", "{file}", "project", "--name", "two words"), 1, ("'two words'", "two_words")),
        (("emit", "{file}", "project", "--method", "dopri5"), 1, ("'dopri5'", "rk4")),
        (("emit", "{file}", "project", "--stabilization", "projection", "--form", "momentum"), 1, ("'momentum'",)),
        (("build", "."), 2, ("'.'", "folder")),
        (("run", "{file}", "--html", "no/such/page.html"), 1, ("no/such/page.html", "no/such")),
        (("report", "{file}", "no/such/page.html"), 1, ("no/such/page.html", "no/such")),
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


BROKEN = """
import sympy as sm

def helper(x):
    return sm.Matrix([[x, 1]]).inv()

def model():
    return helper(2)

def leave():
    raise SystemExit(3)
"""


def test_an_error_in_the_file_shows_the_lines_of_the_file(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN, encoding="utf-8")
    result = invoke(cache, "build", file)
    assert result.exit_code == 1
    says(result.output, "return helper(2)", ".inv()", "NonSquareMatrixError", "square")
    assert "site-packages" not in result.output
    assert "kanegen/" not in result.output
    says(invoke(cache, "build", f"{file}:leave").output, "SystemExit", 3)
    file.write_text("def model(:\n", encoding="utf-8")
    says(invoke(cache, "build", file).output, "def model(:", "SyntaxError")
    file.write_text("import no_such_module_at_all\n", encoding="utf-8")
    says(invoke(cache, "build", file).output, "no_such_module_at_all", "line 1")
    assert isinstance(invoke(cache, "--traceback", "build", file).exception, ModelError)


def test_a_file_imports_modules_beside_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python does when it runs the file; the path of imports is as before afterwards."""
    expected = read_model_file(file).model.parameters
    file.rename(file.with_name("beside_it.py"))
    file.write_text("from beside_it import *\n", encoding="utf-8")
    monkeypatch.chdir(file.parent)
    before = list(sys.path)
    assert dict(read_model_file(Path(file.name)).model.parameters) == dict(expected)
    assert sys.path == before
    del sys.modules["beside_it"]


def test_the_form_the_functions_and_the_stabilization_are_options(cache: Path, file: Path, tmp_path: Path) -> None:
    options = ("--form", "nonminimal", "--stabilization", "baumgarte:5,4", "--functions", "rhs,consistency,energies")
    says(output(cache, "build", file, *options), "nonminimal", "energy", "rhs_stabilized")
    table = tmp_path / "motion.csv"
    settings = ("--time", "1", "--points", "3", "--output", table)
    model, start = read_model_file(file).model, ((0.6, -0.8), (0.0, 0.0))
    for written, stabilization in (
        ("baumgarte:5,4", kanegen.Baumgarte(5.0, 4.0)),
        ("projection:energy", kanegen.Projection(integrals="energy")),
    ):
        output(cache, "run", file, "--form", "nonminimal", "--stabilization", written, *settings)
        solver = kanegen.build(model, form="nonminimal", stabilization=stabilization)
        expected = solver.integrate((0.0, 1.0), *start, t_eval=[0.0, 0.5, 1.0])
        np.testing.assert_array_equal(last_row(table), np.hstack(expected.last))


@pytest.mark.parametrize(
    ("written", "stabilization"),
    [
        ("baumgarte:5,4", kanegen.Baumgarte(5.0, 4.0)),
        ("projection:energy", kanegen.Projection(integrals="energy")),
    ],
)
def test_an_emitted_program_is_stabilized(
    cache: Path, file: Path, tmp_path: Path, written: str, stabilization: kanegen.Baumgarte | kanegen.Projection
) -> None:
    folder = tmp_path / "project"
    output(cache, "emit", file, folder, "--form", "nonminimal", "--stabilization", written)
    make = ["make", f"CC={C_COMPILER.command}", "CFLAGS=-O1 -Wall -Wextra -Werror", "values.txt"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    command = [folder / "example", "values.txt", "1", "0.05"]
    run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    solver = kanegen.build(read_model_file(file).model, form="nonminimal", stabilization=stabilization)
    expected = solver.integrate((0.0, 1.0), (0.6, -0.8), (0.0, 0.0), method="rk4", step=0.05)
    rows = [[float(x) for x in line.split()] for line in run.stdout.splitlines()]
    np.testing.assert_allclose(rows, np.column_stack((expected.t, expected.q, expected.u)), rtol=1e-9, atol=1e-12)
    plain = kanegen.build(read_model_file(file).model, form="nonminimal")
    drifted = plain.integrate((0.0, 1.0), (0.6, -0.8), (0.0, 0.0), method="rk4", step=0.05)
    assert np.abs(drifted.q[-1] - expected.q[-1]).max() > 1e-7


def test_traceback_on_request(cache: Path, file: Path) -> None:
    result = invoke(cache, "--traceback", "show", f"{file}:absent")
    assert isinstance(result.exception, ModelError)
    says(result.exception, "'absent'")


def test_bench_compares_a_model(cache: Path, file: Path) -> None:
    text = output(cache, "bench", file, "--time", "0.5", "--rounds", "2")
    assert "right-hand side in C" in text
    assert "integration to error 1e-06" in text


NAMED = """
import sympy as sm
import sympy.physics.mechanics as me
import kanegen as kg

def model(start=True):
    theta, omega, a, force = me.dynamicsymbols("theta omega a force")
    m, l, g = sm.symbols("m l g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", (theta, N.z))
    P = O.locatenew("P", -l * B.y)
    return kg.Model(
        name="cli_named", frame=N, coordinates=(theta,), speeds=(omega,), kinematics=(omega - theta.diff(),),
        bodies=(me.Particle("bob", P, m),), gravity=-g * N.y, loads=((P, force * N.x),), inputs=(force,),
        states={a: force - a}, parameters={m: 2.0, l: 0.5},
        initial={me.dynamicsymbols._t: 0.25, theta: 0.3, "omega": -0.1, a: 0.7} if start else None,
    )
"""


def last_row(path: Path) -> list[float]:
    return [float(x) for x in path.read_text(encoding="utf-8").splitlines()[-1].split(",")]


def test_start_values_and_inputs_by_name(cache: Path, tmp_path: Path) -> None:
    file, table = tmp_path / "named.py", tmp_path / "motion.csv"
    file.write_text(NAMED, encoding="utf-8")
    arguments = ("run", file, "--time", "0.5", "-p", "g=9.81", "--points", "3", "--output", table)
    output(cache, *arguments, "--input", "force=0.2")
    solver = kanegen.build(read_model_file(file).model).with_parameters(g=9.81)
    expected = solver.integrate((0.25, 0.75), [0.3], [-0.1], {"force": 0.2}, s0=[0.7], t_eval=[0.25, 0.5, 0.75])
    np.testing.assert_array_equal(last_row(table), np.hstack(expected.last))
    # Values of the command line replace those of the model.
    output(cache, *arguments, "--input", "force=0.2", "--start", "theta=0.5", "--start", "t=0", "--start", "a=0")
    expected = solver.integrate((0.0, 0.5), [0.5], [-0.1], {"force": 0.2}, s0=[0.0], t_eval=[0.0, 0.25, 0.5])
    np.testing.assert_array_equal(last_row(table), np.hstack(expected.last))
    # Without a start in the file, the command line gives all of it.
    start = ("-o", "start=False", "--start", "theta=0.5", "--start", "omega=-0.1", "--start", "t=0")
    result = invoke(cache, *arguments, "--input", "force=0.2", *start)
    assert result.exit_code == 1
    says(result.output, "a", "--start", "INITIAL")
    output(cache, *arguments, "--input", "force=0.2", *start, "--start", "a=0")
    np.testing.assert_array_equal(last_row(table), np.hstack(expected.last))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--input", "force=0.2", "--start", "thta=1"), ("thta", "theta")),
        (("--input", "forc=0.2"), ("forc", "force")),
        (("--input", "force=strong"), ("force", "strong")),
        (("--input", "force=0.2", "--start", "t=now"), ("t", "now")),
        ((), ("force", "no value")),
        (("-o", "start=False"), ("INITIAL", "initial=")),
        (("-o", "start=False", "--start", "theta=1"), ("t", "a", "--start")),
    ],
    ids=str,
)
def test_wrong_start_values_are_named(
    cache: Path, tmp_path: Path, arguments: tuple[str, ...], names: tuple[str, ...]
) -> None:
    file = tmp_path / "named.py"
    file.write_text(NAMED, encoding="utf-8")
    result = invoke(cache, "run", file, "-p", "g=9.81", *arguments)
    assert result.exit_code == 1
    says(result.output, *names)


def test_a_changed_coordinate_moves_the_others_onto_the_constraints(cache: Path, file: Path, tmp_path: Path) -> None:
    table = tmp_path / "motion.csv"
    output(cache, "run", file, "--time", "0.1", "--start", "x=0.8", "--output", table)
    rows = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()]
    assert [float(value) for value in rows[1]] == pytest.approx([0.0, 0.8, -0.6, 0.0, 0.0], abs=1e-12)


def test_emit_fills_in_what_is_known(cache: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "named.py", tmp_path / "project"
    file.write_text(NAMED, encoding="utf-8")
    output(cache, "emit", file, folder, "--start", "a=0.5")
    make = ["make", f"CC={C_COMPILER.command}", "values.txt"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    form = (folder / "values.txt").read_text(encoding="utf-8")
    assert form.splitlines() == [
        "p[0] = 2.0  # m",
        "p[1] = 0.5  # l",
        "p[2] = ?  # g",
        "q[0] = 0.3  # theta",
        "u[0] = -0.1  # omega",
        "r[0] = ?  # force",
        "s[0] = 0.5  # a",
    ]
    (folder / "filled.txt").write_text(form.replace("?", "9.81", 1).replace("?", "0.2"), encoding="utf-8")
    run = subprocess.run(
        [folder / "example", "filled.txt", "0.75", "0.125"], cwd=folder, check=True, capture_output=True, text=True
    )
    solver = kanegen.build(read_model_file(file).model).with_parameters(g=9.81)
    expected = solver.integrate(0.75, r={"force": 0.2}, s0={"a": 0.5}, method="rk4", step=0.125)
    rows = [[float(x) for x in line.split()] for line in run.stdout.splitlines()]
    np.testing.assert_allclose(rows, np.column_stack((expected.t, expected.q, expected.u, expected.s)), rtol=1e-9)
    result = invoke(cache, "emit", file, folder, "--start", "b=0.5")
    says(result.output, "b", "there is no")


def test_verify_takes_the_start_of_the_model(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "named.py"
    file.write_text(NAMED, encoding="utf-8")
    says(output(cache, "verify", file, "--states", "2"), "around the start")


PUSHED = """import sympy.physics.mechanics as me

import kanegen as kg


def model():
    x, v, F = me.dynamicsymbols("x v F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    return kg.Model(
        name="pushed",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[x.diff() - v],
        bodies=[me.Particle("P", P, 1)],
        loads=[(P, F * N.x)],
        inputs=[F],
    )
"""


def test_a_table_in_the_file_drives_a_run_and_is_refused_by_name_elsewhere(cache: Path, tmp_path: Path) -> None:
    """1 N from 5 s to 5.5 s on 1 kg at rest, so that x = 1/8 + 3.5/2 at 9 s; a table by itself has no name."""
    file, table = tmp_path / "pushed.py", "([0, 5, 5.000001, 5.5, 5.500001, 25], [0, 0, 1, 1, 0, 0])"
    for r in (f"{{'F': {table}}}", f"[{table}]"):
        file.write_text(f"{PUSHED}\n\nINITIAL = {{'t': 0.0, 'q': (0,), 'u': (0,), 'r': {r}}}\n", encoding="utf-8")
        result = invoke(cache, "run", file, "--time", "9")
        assert result.exit_code == 0, result.output
        assert "1.874999" in result.output
    says(invoke(cache, "emit", file, tmp_path / "project").output, "F", "finite real number")
    file.write_text(f"{PUSHED}\n\nINITIAL = {{'t': 0.0, 'q': (0,), 'u': (0,), 'r': {table}}}\n", encoding="utf-8")
    says(invoke(cache, "run", file, "--time", "9").output, '"r"', "2 values", "expected 1: F")
