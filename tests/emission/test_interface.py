"""The typed interface of emitted projects: values, steps, failures, several models in one program, C++."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ccompile import C_COMPILER, require_cpp
from checkout import ROOT
from feedback_models import sampled, sampled_model
from messages import raises
from state_models import cart
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.methods.table import FIXED_STEP
from kanegen.emission.methods import SEMI_IMPLICIT
from kanegen.emission.names import identifier, identifiers, member
from kanegen.errors import BuildError

STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O1")
STEP = 1.0 / 1024.0
"""A power of two, so that the times of steps are exact."""


def emitted(folder: Path, name: str, **options: Any) -> Path:
    """The project of an example with its start."""
    start = initial(name)
    d = solver_for(name).description
    values = dict(zip((*d.coordinates, *d.speeds), (*start["q"], *start["u"]), strict=True))
    return kg.emit(model_of(name), folder, values=values, **{"name": name, **options})


def library(folder: Path, name: str, *sources: str) -> ctypes.CDLL:
    """The project as a shared library."""
    command = [C_COMPILER.command, *STRICT, "-shared", "-fPIC", f"{name}.c", *sources, "-o", "model.so", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "model.so"))


HOST = """
#include <stddef.h>
#include "NAME.h"
#define N_R (NAME_N_R > 0 ? NAME_N_R : 1)
size_t memory(void) { return sizeof(NAME_context); }
double *state(NAME_context *ctx) { return ctx->y; }
double now(const NAME_context *ctx) { return ctx->t; }
"""


class Simulation:
    """A context of a project that was compiled with `HOST`."""

    def __init__(self, folder: Path, name: str, n_y: int) -> None:
        (folder / "host.c").write_text(HOST.replace("NAME", name), encoding="utf-8")
        flags = "-Wno-missing-prototypes" if C_COMPILER.command == "clang" else "-Wall"
        self.code, self.name, self.n_y = library(folder, name, flags, "host.c"), name, n_y
        self.code.memory.restype = ctypes.c_size_t
        self.code.state.restype = ctypes.POINTER(ctypes.c_double)
        self.code.now.restype = ctypes.c_double
        self.context = ctypes.create_string_buffer(self.code.memory())
        self.started = self.call("init", None)

    def call(self, function: str, *arguments: Any) -> int:
        converted = [
            np.ascontiguousarray(x, dtype=float).ctypes.data_as(ctypes.c_void_p) if isinstance(x, list) else x
            for x in arguments
        ]
        converted = [ctypes.c_double(x) if isinstance(x, float) else x for x in converted]
        return int(getattr(self.code, f"{self.name}_{function}")(self.context, *converted))

    def values(self, function: str, n: int) -> np.ndarray[Any, Any]:
        out = np.full(n, np.nan)
        assert self.call(function, out.ctypes.data_as(ctypes.c_void_p)) >= 0
        return out

    @property
    def t(self) -> float:
        return float(self.code.now(self.context))

    @property
    def y(self) -> np.ndarray[Any, Any]:
        return np.array(self.code.state(self.context)[: self.n_y])


def stated_memory(folder: Path) -> int:
    """The bytes of a context according to the README."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    return int(re.findall(r"sizeof\(\w+\)` is (\d+) bytes", text)[0])


@pytest.fixture(scope="module")
def crank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return emitted(tmp_path_factory.mktemp("crank"), "slider_crank", projections=2)


def test_values_start_and_functions_are_those_of_the_solver(crank: Path) -> None:
    simulation, solver, start = (
        Simulation(crank, "slider_crank", 6),
        solver_for("slider_crank"),
        initial("slider_crank"),
    )
    assert simulation.started == 0
    assert stated_memory(crank) == len(simulation.context)
    np.testing.assert_array_equal(simulation.y, [*start["q"], *start["u"]])
    state = (0.0, start["q"], start["u"])
    np.testing.assert_allclose(simulation.values("energy", 1), solver.energy(*state), rtol=1e-14)
    np.testing.assert_allclose(simulation.values("T", 9).reshape(3, 3), solver.T(*state), rtol=1e-13, atol=1e-15)
    outputs = [solver.output(name, *state) for name in solver.description.outputs]
    np.testing.assert_allclose(simulation.values("outputs", 7), outputs, rtol=1e-12)


def test_steps_are_those_of_the_solver_with_projection(crank: Path) -> None:
    simulation, solver, start = (
        Simulation(crank, "slider_crank", 6),
        solver_for("slider_crank"),
        initial("slider_crank"),
    )
    for _ in range(1024):
        assert simulation.call("step", None, STEP) == 0
    assert simulation.t == 1.0
    run = solver.integrate((0.0, 1.0), start["q"], start["u"], method="rk4", step=STEP)
    np.testing.assert_allclose(
        simulation.y, np.concatenate(run.last[1:]), atol=1e-9
    )  # the drift that projection removes
    assert np.abs(simulation.values("residuals", 4)).max() < 1e-15
    assert np.abs(solver.residuals(*run.last)).max() > 1e-14


def test_a_failed_step_keeps_the_state(crank: Path) -> None:
    simulation = Simulation(crank, "slider_crank", 6)
    assert simulation.call("step", None, STEP) == 0
    before, t = simulation.y, simulation.t
    for dt in (0.0, -1.0, float("nan"), float("inf")):
        assert simulation.call("step", None, dt) == kg.codes.Status.INVALID_ARGUMENT
    assert simulation.call("step", None, 1e200) < 0
    assert simulation.call("set_state", 0.0, [float("nan")] * 6) == kg.codes.Status.NOT_FINITE
    np.testing.assert_array_equal(simulation.y, before)
    assert simulation.t == t
    flat = [0.5 * np.pi, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert simulation.call("set_state", 0.0, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]) == 0
    assert simulation.call("set_state", 0.0, flat) == 0
    copy = bytes(simulation.context)
    assert simulation.call("step", None, STEP) in (0, -1)
    simulation.context[:] = copy
    np.testing.assert_array_equal(simulation.y, flat)


def test_parameters_without_values_are_refused(tmp_path: Path) -> None:
    model = cart()
    folder = kg.emit(model, tmp_path / "cart", name="cart", values={"x": 0.4, "v": -0.3, "a": 0.2, "z": 0.1})
    simulation = Simulation(folder, "cart", 4)
    missing = [name for name, value in model.parameters.items() if value is None]
    assert simulation.started == (kg.codes.Status.NOT_FINITE if missing else 0)
    np.testing.assert_array_equal(simulation.y, [0.4, -0.3, 0.2, 0.1])


def test_sampled_laws_act_as_in_the_solver(tmp_path: Path) -> None:
    start = {"x": 0.3, "y": -0.2, "v": 0.1, "w": 0.4}
    folder = kg.emit(sampled_model(), tmp_path / "sampled", values=start, name="sampled")
    simulation = Simulation(folder, "sampled", 4)
    assert stated_memory(folder) == len(simulation.context)
    for _ in range(500):
        assert simulation.call("step", None, 1e-3) == 0
    run = sampled().with_initial(start).integrate((0.0, 0.5), method="rk4", step=1e-3)
    np.testing.assert_allclose(simulation.y, np.concatenate(run.last[1:]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", [*FIXED_STEP, SEMI_IMPLICIT])
def test_methods_have_their_order(method: str, tmp_path: Path) -> None:
    order = METHODS[method].coefficients.order if method in METHODS else 1
    solver, span = solver_for("rolling_disk"), (0.0, 0.5)
    folder = emitted(tmp_path / method, "rolling_disk", method=method, functions=["energy"])
    exact = solver.integrate(span, *_start("rolling_disk"), rtol=1e-13, atol=1e-13)
    errors = []
    for steps in (64, 128):
        simulation = Simulation(folder, "rolling_disk", 10)
        for _ in range(steps):
            assert simulation.call("step", None, span[1] / steps) == 0
        errors.append(np.abs(simulation.y - np.concatenate(exact.last[1:])).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)
    if method in METHODS:
        run = solver.integrate(span, *_start("rolling_disk"), method=method, step=span[1] / steps)
        np.testing.assert_allclose(simulation.y, np.concatenate(run.last[1:]), rtol=0, atol=1e-13)  # 128 roundings


def _start(name: str) -> tuple[Any, Any]:
    return initial(name)["q"], initial(name)["u"]


def test_several_models_link_into_one_program(tmp_path: Path) -> None:
    first = emitted(tmp_path / "a", "slider_crank")
    second = emitted(tmp_path / "b", "rolling_disk", precision="float", math="builtin")
    (tmp_path / "main.c").write_text(
        '#include "a/slider_crank.h"\n#include "b/rolling_disk.h"\n'
        "int main(void) { slider_crank_context a; rolling_disk_context b;\n"
        "  if (slider_crank_init(&a, 0) || rolling_disk_init(&b, 0)) { return 1; }\n"
        "  return slider_crank_step(&a, 0, 0.001) || rolling_disk_step(&b, 0, 0.001f); }\n",
        encoding="utf-8",
    )
    sources = ["main.c", str(first / "slider_crank.c"), str(second / "rolling_disk.c")]
    command = [C_COMPILER.command, *STRICT, *sources, "-o", "both", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "both"], check=False).returncode == 0


def test_one_header_is_enough(tmp_path: Path) -> None:
    folder = emitted(tmp_path / "one", "rolling_disk", single_header=True)
    assert [path.name for path in folder.iterdir()] == ["rolling_disk.h"]
    (folder / "main.c").write_text(
        '#define rolling_disk_IMPLEMENTATION\n#include "rolling_disk.h"\n'
        "int main(void) { rolling_disk_context a;\n"
        "  return rolling_disk_init(&a, 0) || rolling_disk_step(&a, 0, 0.001); }",
        encoding="utf-8",
    )
    command = [C_COMPILER.command, *STRICT, "main.c", "-o", "main", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([folder / "main"], check=False).returncode == 0


CPP = """
#include <array>
#include "slider_crank.hpp"
int main() {
  slider_crank::model model;
  const slider_crank::model snapshot = model;
  std::array<slider_crank::real, slider_crank::n_y> dydt{};
  slider_crank::real energy[1] = {0}, later[1] = {0};
  if (!model.started().ok() || !model.energy(energy) || !model.rhs(0.0, model.state(), dydt)) { return 1; }
  for (int k = 0; k < 100; k++) { if (!model.step(1e-3)) { return 2; } }
  if (model.step(-1.0).value() != slider_crank_INVALID_ARGUMENT) { return 3; }
  model = snapshot;
  if (!model.energy(later) || later[0] != energy[0] || model.time() != 0.0) { return 4; }
  return model.coordinates().size() == 3 && model.speeds()[0] == model.state()[3] ? 0 : 5;
}
"""


def test_the_class_for_cpp(crank: Path) -> None:
    compiler = require_cpp()
    (crank / "host.cpp").write_text(CPP, encoding="utf-8")
    strict = ["-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    for command in (
        [C_COMPILER.command, *STRICT, "-c", "slider_crank.c"],
        [compiler.command, *strict, "host.cpp", "slider_crank.o", "-o", "hosted", "-lm"],
    ):
        done = subprocess.run(command, cwd=crank, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert subprocess.run([crank / "hosted"], check=False).returncode == 0


def test_the_program_in_cpp_of_the_page(crank: Path) -> None:
    compiler = require_cpp()
    page = (ROOT / "docs" / "standalone.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)
    (crank / "host.cpp").write_text(program, encoding="utf-8")
    (c_line, cpp_line) = re.findall(r"^    (cc .* -c .*|c\+\+ .*)$", page, re.MULTILINE)
    strict = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    for command in (
        [C_COMPILER.command, *c_line.split()[1:]],
        [compiler.command, *strict, *cpp_line.split()[1:]],
    ):
        done = subprocess.run(command, cwd=crank, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    text = subprocess.run([crank / "host"], check=True, capture_output=True, text=True).stdout
    changed = solver_for("slider_crank").with_parameters(tau=4.0)
    run = changed.integrate((0.0, 1.0), *_start("slider_crank"), method="rk4", step=0.001)
    theta, energy = (float(part.split()[0]) for part in text.split("= ")[1:])
    assert (theta, energy) == pytest.approx((run.q[-1, 0], run.energy[-1]), rel=1e-5)  # of the digits that are printed


def compiled(folder: Path, source: str, *others: str) -> str:
    """What a program prints that uses the project in ``folder``."""
    (folder / "shown.c").write_text(source, encoding="utf-8")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-empty-body"]
    command = [C_COMPILER.command, *flags, "shown.c", *others, "-o", "shown", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run([folder / "shown"], check=True, capture_output=True, text=True).stdout


def test_the_host_of_the_page(crank: Path) -> None:
    page = (ROOT / "docs" / "standalone.md").read_text(encoding="utf-8")
    (host,) = [block for block in re.findall(r"```c\n(.*?)```", page, re.DOTALL) if "int main" in block]
    text = compiled(crank, host, "slider_crank.c")
    changed = solver_for("slider_crank").with_parameters(tau=4.0)
    run = changed.integrate((0.0, 1.0), *_start("slider_crank"), method="rk4", step=0.001)
    assert float(text.split()[2]) == pytest.approx(run.q[-1, 0], rel=1e-5)  # of the digits that are printed


@pytest.mark.parametrize("name", ["slider_crank", "lqr_cart_pole", "struck_four_bar"])
def test_the_lines_of_the_readme_compile(name: str, tmp_path: Path) -> None:
    folder = kg.emit(model_of(name), tmp_path / "project", name="shown_model", functions=["rhs"])
    text = (folder / "README.md").read_text(encoding="utf-8")
    include, lines = re.findall(r"```c\n(#include[^\n]*)\n(.*?)```", text, re.DOTALL)[0]
    compiled(folder, f"#include <stddef.h>\n{include}\nint main(void)\n{{{lines} return 0; }}", "shown_model.c")


def test_what_a_step_cannot_do_is_named(tmp_path: Path) -> None:
    with raises(BuildError, "struck", "rk4", "method="):
        kg.emit(model_of("struck_four_bar"), tmp_path / "a", name="bar", method="rk4")
    folder = kg.emit(model_of("struck_four_bar"), tmp_path / "b", name="bar")
    assert "bar_step" not in (folder / "bar.h").read_text(encoding="utf-8")
    with raises(BuildError, "projections", "Baumgarte", "pseudoinverse"):
        kg.emit(model_of("slider_crank"), tmp_path / "c", form="pseudoinverse", projections=1)
    with raises(BuildError, "projections", "momenta"):
        kg.emit(model_of("slider_crank"), tmp_path / "d", form="momentum", projections=1)
    with raises(BuildError, "semi_implicit_euler", "momenta"):
        kg.emit(model_of("slider_crank"), tmp_path / "e", form="momentum", method="semi_implicit_euler")
    with raises(BuildError, "1e+60", "float"):
        kg.emit(model_of("slider_crank"), tmp_path / "f", precision="float", values={"g": 1e60})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("struck_four_bar", {}, "There is no step with a fixed amount of work: it has the events struck."),
        ("slider_crank", {"form": "pseudoinverse"}, "left to the example program: it needs independent constraints"),
        ("n_link_pendulum", {"stabilization": kg.Projection(integrals=["energy"])}, "the model has no constraints"),
        ("slider_crank", {"stabilization": kg.Projection(integrals=["energy"])}, "does not keep integrals of motion"),
        ("slider_crank", {"method": "none"}, "There is no step"),
    ],
)
def test_what_only_the_example_program_does_is_said(
    name: str, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    options = {"stabilization": kg.Projection(), "functions": ["rhs"], **options}
    folder = kg.emit(model_of(name), tmp_path, name="said", **options)
    for file in ("README.md", "said.h"):
        text = " ".join((folder / file).read_text(encoding="utf-8").replace("\n *", " ").split())
        assert words in text
    assert "kg_host_open_projection" in (folder / "examples/said_example.c").read_text(encoding="utf-8")


def test_names_become_identifiers() -> None:
    assert [identifier(name) for name in ("θ_1", "I_{xx}", "F^x", "Ωmega", "größe", "*")] == [
        "theta_1",
        "I_xx",
        "F_x",
        "omegamega",
        "gr_e",
        "_",
    ]
    assert identifiers(["a", "a'", "a*", "b"]) == ("a", "a_2", "a_3", "b")
    assert [member(name) for name in ("lambda", "double", "new", "1st")] == ["lambda", "double_", "new_", "_1st"]
