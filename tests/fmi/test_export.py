"""FMUs without another simulator: their files, their C code, and motions of the importer in C."""

from __future__ import annotations

import ctypes
import os
import re
import stat
import subprocess
import zipfile
from pathlib import Path
from typing import Any, cast

import ccompile
import fmus
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from click.testing import CliRunner
from fmus import VERSIONS, components, fmu_of, start_of
from messages import raises
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.cli import main
from kanegen.emission.fmu.entries import entries
from kanegen.errors import BuildError, ModelError, SolveError

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only")


def exported(model: str, path: Path, **options: Any) -> Path:
    return kg.export_fmu(model_of(model), path, values=start_of(model), binary=False, **options)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["sampled_pid", "bouncing_ball"])
def test_the_sources_compile_without_warnings(name: str, version: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(exported(name, tmp_path / "x.fmu", fmi=version)) as archive:
        archive.extractall(tmp_path)
    units = [str(tmp_path / "sources" / f"{name}{part}.c") for part in ("", "_fmu")]
    command = [ccompile.C_COMPILER.command, *WARNINGS, *units]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_every_function_of_the_standard_is_defined_once(version: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(exported("slider_crank", tmp_path / "x.fmu", fmi=version)) as archive:
        archive.extractall(tmp_path)
    prefix, sources = f"fmi{version[0]}", tmp_path / "sources"
    known = re.findall(rf"{prefix}\w+(?=TYPE\s*\()", (sources / f"{prefix}FunctionTypes.h").read_text(encoding="utf-8"))
    texts = [(sources / name).read_text(encoding="utf-8") for name in ("fmu_entries.h", f"fmu_{prefix}.h")]
    defined = re.findall(rf"^[\w *]*?\b({prefix}[A-Z]\w+)\((?=[^;{{]*\{{)", "\n".join(texts), re.MULTILINE)
    assert sorted(defined) == sorted(known)


def test_a_function_without_an_entry_is_an_error() -> None:
    with raises(BuildError, "GetWeather", "2.0"):
        list(entries("2.0", "typedef fmi2Status fmi2GetWeatherTYPE(fmi2Component c);"))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_model_gives_the_same_bytes(version: str, tmp_path: Path) -> None:
    first, second = (exported("slider_crank", tmp_path / name, fmi=version) for name in ("a.fmu", "b.fmu"))
    assert first.read_bytes() == second.read_bytes()
    other = kg.export_fmu(
        model_of("slider_crank"), tmp_path / "c.fmu", fmi=version, values={**start_of("slider_crank"), "m1": 2.0},
        binary=False,
    )  # fmt: skip
    assert fmus.unpacked(first, version).token != fmus.unpacked(other, version).token


@pytest.mark.parametrize("version", VERSIONS)
def test_variables_have_roles_values_and_units(version: str, tmp_path: Path) -> None:
    fmu = fmus.unpacked(exported("dc_motor_arm", tmp_path / "arm.fmu", fmi=version), version)
    variables = fmu.variables()
    assert [variables[name]["causality"] for name in ("theta", "omega", "i", "V")] == ["output"] * 4
    assert variables["theta"]["unit"] == "rad"
    assert variables["theta"]["displayUnit"] == "deg"
    assert variables["der(theta)"]["unit"] == "rad/s"
    assert (variables["Vmax"]["causality"], variables["Vmax"]["variability"]) == ("parameter", "tunable")
    assert float(variables["Vmax"]["start"]) == 24.0
    assert variables["solver.step"]["unit"] == "s"
    assert float(variables["solver.step"]["start"]) == 1e-3
    assert len({variable["valueReference"] for variable in variables.values()}) == len(variables)
    units = {unit.attrib["name"]: unit for unit in fmu.root.iter("Unit")}
    volt = units["V"].find("BaseUnit")
    assert volt is not None
    assert volt.attrib == {"kg": "1", "m": "2", "s": "-3", "A": "-1"}
    degree = units["rad"].find("DisplayUnit")
    assert degree is not None
    assert float(degree.attrib["factor"]) == pytest.approx(180 / np.pi)


def test_dependencies_follow_from_the_equations(tmp_path: Path) -> None:
    fmu = fmus.unpacked(exported("rolling_disk", tmp_path / "disk.fmu", fmi="3.0"), "3.0")
    names = {int(v["valueReference"]): name for name, v in fmu.variables().items()}
    structure = fmu.root.find("ModelStructure")
    assert structure is not None
    found = {
        names[int(item.attrib["valueReference"])]: {names[int(k)] for k in item.attrib["dependencies"].split()}
        for item in structure.iter("ContinuousStateDerivative")
    }
    assert found["der(theta)"] == {"u1"}
    assert not found["der(u1)"] & {"X", "Y"}  # where the disk is does not matter
    assert "theta" in found["der(u1)"]


@pytest.mark.parametrize("version", ["2.0", pytest.param("3.0", marks=pytest.mark.target)])
def test_steps_have_the_bits_of_the_solver(version: str) -> None:
    fmu = fmu_of("slider_crank", version, fmus.SOLVER)
    start = initial("slider_crank")
    solution = solver_for("slider_crank").integrate((0.0, 0.5), start["q"], start["u"], method="rk4", step=fmus.STEP)
    (end,) = fmu.run("steps", 500, components("slider_crank"))
    assert end == [*solution.last[1], *solution.last[2]]


def test_states_are_saved_serialized_and_restored_in_another_instance() -> None:
    fmu = fmu_of("slider_crank", "2.0", fmus.SOLVER)
    straight, again, moved = fmu.run("rollback", 400, components("slider_crank"))
    assert straight == again == moved


# -- what is refused ----------------------------------------------------------------------------------------------


def test_a_file_that_is_no_fmu_stays(tmp_path: Path) -> None:
    model, values = model_of("slider_crank"), start_of("slider_crank")
    file = tmp_path / "notes.fmu"
    file.write_text("mine")
    with raises(BuildError, "notes.fmu", "FMU"):
        kg.export_fmu(model, file, values=values)
    assert file.read_text() == "mine"
    with raises(BuildError, "model.zip", ".fmu"):
        kg.export_fmu(model, tmp_path / "model.zip", values=values)
    with raises(BuildError, "missing", "x.fmu"):
        kg.export_fmu(model, tmp_path / "missing" / "x.fmu", values=values)
    (tmp_path / "folder.fmu").mkdir()
    with raises(BuildError, "folder.fmu", "folder"):
        kg.export_fmu(model, tmp_path / "folder.fmu", values=values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.fmu", "notes.fmu"]


def test_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = exported("slider_crank", tmp_path / "x.fmu")
    before = target.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with raises(BuildError, "x.fmu", "No space left"):
        exported("slider_crank", target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]
    assert stat.S_IMODE(target.stat().st_mode) & 0o400


def test_a_full_temporary_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kanegen.emission.fmu.archive.write_files", full)
    with raises(BuildError, "temporary", "No space left", "TMPDIR", "binary=False"):
        kg.export_fmu(model_of("slider_crank"), tmp_path / "x.fmu", values=start_of("slider_crank"))
    assert not [*tmp_path.iterdir()]


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with raises(BuildError, "cannot be written", "too long"):
        exported("slider_crank", tmp_path / f"{'x' * 300}.fmu")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"fmi": "1.0"}, ("fmi", "1.0", "2.0", "3.0")),
        ({"method": "verner9"}, ("method", "verner9", "rk4", "dop853")),
        ({"step": 0.0}, ("step", "positive")),
        ({"rtol": -1.0}, ("rtol", "positive")),
    ],
)
def test_options_that_do_not_exist(options: dict[str, object], names: tuple[str, ...], tmp_path: Path) -> None:
    with raises(SolveError, *names):
        exported("slider_crank", tmp_path / "x.fmu", **options)
    assert not list(tmp_path.iterdir())


def test_missing_values_and_names(tmp_path: Path) -> None:
    with raises(SolveError, "theta", "beta", "initial=", "values=", "--start"):
        kg.export_fmu(model_of("slider_crank"), tmp_path / "x.fmu", binary=False)
    with raises(SolveError, "bet", "beta"):
        kg.export_fmu(model_of("slider_crank"), tmp_path / "x.fmu", values={"bet": 1.0})
    with raises(BuildError, "fmu_data", "name="):
        exported("slider_crank", tmp_path / "x.fmu", name="fmu_data")
    with raises(ModelError, "model", "kanegen.Model"):
        kg.export_fmu(cast(Any, 3), tmp_path / "x.fmu")
    with raises(ModelError, "stabilization", "kg.Projection()"):
        exported("slider_crank", tmp_path / "x.fmu", stabilization="projection")
    with raises(BuildError, "compiler", "-O2"):
        exported("slider_crank", tmp_path / "x.fmu", compiler="-O2")


def block_with_a_law(**more: Any) -> kg.Model:
    """A block on a line whose force is a continuous law, without limits and events unless ``more`` has some."""
    x, v, F = me.dynamicsymbols("x v F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    m = sm.Symbol("m")
    block = O.locatenew("block", x * N.x)
    return kg.Model(
        name="servo", frame=N, coordinates=(x,), speeds=(v,), kinematics=(v - x.diff(me.dynamicsymbols._t),),
        bodies=(me.Particle("block", block, m),), loads=((block, F * N.x),), inputs=(kg.Input(F, law=-x - v),),
        parameters={m: 1.0}, initial={x: 1.0, v: 0.0}, **more,
    )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_whose_only_extra_is_a_law_loads(version: str, tmp_path: Path) -> None:
    """A function that no header declares is an error of the compiler, not of the importer."""
    kg.export_fmu(block_with_a_law(), tmp_path / "x.fmu", fmi=version)
    with zipfile.ZipFile(tmp_path / "x.fmu") as archive:
        (binary,) = [name for name in archive.namelist() if name.startswith("binaries/")]
        archive.extractall(tmp_path)
    library = ctypes.CDLL(str(tmp_path / binary), mode=os.RTLD_NOW)
    assert hasattr(library, "fmi2Instantiate" if version == "2.0" else "fmi3InstantiateCoSimulation")


def test_implicit_methods_need_a_jacobian(tmp_path: Path) -> None:
    with raises(SolveError, "rodas", "servo", "rk4"):
        kg.export_fmu(block_with_a_law(), tmp_path / "x.fmu", method="rodas", binary=False)


def test_command(tmp_path: Path) -> None:
    target = tmp_path / "ball.fmu"
    arguments = ["fmu", "build_examples/bouncing_ball.py", str(target), "--fmi", "3.0", "--no-binary", "-p", "e=0.5"]
    result = CliRunner().invoke(main, [str(fmus.ROOT / a) if a.startswith("build_") else a for a in arguments])
    assert result.exit_code == 0, result.output
    assert str(target) in result.output.replace("\n", "")
    variables = fmus.unpacked(target, "3.0").variables()
    assert float(variables["e"]["start"]) == 0.5
    assert variables["contact.floor.mode"]["variability"] == "discrete"
    with zipfile.ZipFile(target) as archive:
        assert not [name for name in archive.namelist() if name.startswith("binaries/")]
    result = CliRunner().invoke(main, ["fmu", str(fmus.EXAMPLES / "bouncing_ball.py"), str(tmp_path / "ball.zip")])
    assert result.exit_code == 1
    assert ".fmu" in result.output
