"""FMUs in FMPy: validation, both kinds of simulation, directional derivatives, and binaries from the sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import fmus
import numpy as np
import pytest
from fmus import CASES, MODELS, VERSIONS, Fmu, components, fmu_of
from systems import initial, solver_for

import kanegen as kg

pytestmark = pytest.mark.target

NAMES = {name: components(name) for name in MODELS}


@pytest.fixture(scope="module")
def fmpy() -> ModuleType:
    return pytest.importorskip("fmpy", reason="FMPy is not installed: pip install 'kanegen[targets]'")


def solved(name: str, t1: float, **options: Any) -> kg.Solution:
    start = initial(name)
    states = {"s0": start["s"]} if start.get("s") else {}
    return solver_for(name).integrate((0.0, t1), start["q"], start["u"], start["r"], **states, **options)


def final(solution: kg.Solution) -> np.ndarray:
    return np.concatenate(solution.last[1:])


def simulated(fmpy: ModuleType, fmu: Fmu, kind: str, t1: float, **options: Any) -> Any:
    options = {"output_interval": 0.01, "output": NAMES_OF_OUTPUTS[fmu.name], **options}
    return fmpy.simulate_fmu(str(fmu.path), stop_time=t1, fmi_type=kind, **options)


NAMES_OF_OUTPUTS: dict[str, list[str]] = {}


def exported(name: str, version: str) -> Fmu:
    fmu = fmu_of(name, version)
    NAMES_OF_OUTPUTS[fmu.name] = list(NAMES[name])
    return fmu


@pytest.mark.parametrize(("name", "version"), CASES)
def test_the_description_is_valid(name: str, version: str, fmpy: ModuleType) -> None:
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(exported(name, version).path)) == []


@pytest.mark.parametrize(("name", "version"), CASES)
def test_co_simulation_is_the_run_of_the_solver(name: str, version: str, fmpy: ModuleType) -> None:
    """Ten steps of the method per communication step. The compilers' flags differ, hence a tolerance."""
    result = simulated(fmpy, exported(name, version), "CoSimulation", 1.0)
    end = np.array([result[-1][x] for x in NAMES[name]])
    expected = final(solved(name, 1.0, method="rk4", step=fmus.STEP))
    assert np.abs(end - expected).max() < 1e-9 * (1 + np.abs(expected).max())


@pytest.mark.parametrize(("name", "version"), CASES)
def test_model_exchange_with_cvode(name: str, version: str, fmpy: ModuleType) -> None:
    """CVode with a tolerance of 1e-9: its global errors are larger, and it locates events with its own accuracy."""
    result = simulated(fmpy, exported(name, version), "ModelExchange", 1.0, relative_tolerance=1e-9)
    end = np.array([result[-1][x] for x in NAMES[name]])
    expected = final(solved(name, 1.0, rtol=1e-10, atol=1e-12))
    assert np.abs(end - expected).max() < 2e-5 * (1 + np.abs(expected).max())


@pytest.mark.parametrize("version", VERSIONS)
def test_contacts_show_modes_and_forces(version: str, fmpy: ModuleType) -> None:
    """The ball is at rest after 4.06 s: closed (mode 3), and the force is its weight."""
    names = ["z", "contact.floor.mode", "contact_force.floor"]
    for kind in ("CoSimulation", "ModelExchange"):
        result = simulated(fmpy, exported("bouncing_ball", version), kind, 5.0, output=names)
        assert result["contact.floor.mode"][0] == 1
        assert result["contact.floor.mode"][-1] == 3
        assert result["contact_force.floor"][-1] == pytest.approx(0.5 * 9.81, rel=1e-6)
        assert abs(result["z"][-1]) < 1e-6


def test_adaptive_methods_and_parameters_of_the_importer(fmpy: ModuleType) -> None:
    # dop853 is item 4 of the enumeration
    values = {"solver.method": 4, "solver.rtol": 1e-11, "solver.atol": 1e-13, "m1": 2.5}
    result = simulated(fmpy, exported("slider_crank", "2.0"), "CoSimulation", 1.0, start_values=values)
    start = initial("slider_crank")
    solver = solver_for("slider_crank").with_parameters({"m1": 2.5})
    expected = solver.integrate((0.0, 1.0), start["q"], start["u"], rtol=1e-11, atol=1e-13)
    end = np.array([result[-1][x] for x in NAMES["slider_crank"]])
    assert np.abs(end - final(expected)).max() < 1e-8


def test_inputs_are_held_during_steps(fmpy: ModuleType) -> None:
    """The force on the cart changes at the communication points; the solver samples the same function there."""
    times = np.arange(0.0, 1.0, 0.01)
    force = np.array([(t, np.sin(7.0 * t)) for t in times], dtype=[("time", np.double), ("F", np.double)])
    result = simulated(fmpy, exported("cart_pole", "2.0"), "CoSimulation", 1.0, input=force)
    start = initial("cart_pole")
    expected = solver_for("cart_pole").integrate(
        (0.0, 1.0), start["q"], start["u"], lambda t, *_: np.array([np.sin(7.0 * min(t, 0.99))]),
        sample_time=0.01, method="rk4", step=fmus.STEP,
    )  # fmt: skip
    end = np.array([result[-1][x] for x in NAMES["cart_pole"]])
    assert np.abs(end - final(expected)).max() < 1e-9


# -- an instance by itself ----------------------------------------------------------------------------------------


@contextmanager
def instance(fmpy: ModuleType, fmu: Fmu) -> Iterator[Any]:
    """A started instance for model exchange."""
    description = fmpy.read_model_description(str(fmu.path))
    made = fmpy.instantiate_fmu(str(fmu.folder), description, "ModelExchange")
    if fmu.version == "2.0":
        made.setupExperiment(startTime=0.0)
    made.enterInitializationMode()
    made.exitInitializationMode()
    if fmu.version == "2.0":
        made.newDiscreteStates()
    else:
        made.updateDiscreteStates()
    made.enterContinuousTimeMode()
    yield made
    made.terminate()
    made.freeInstance()


def values(made: Any, references: list[int]) -> np.ndarray:
    read = made.getReal if hasattr(made, "getReal") else made.getFloat64
    return np.array(read(references))


def put(made: Any, references: list[int], given: np.ndarray) -> None:
    write = made.setReal if hasattr(made, "setReal") else made.setFloat64
    write(references, list(given))


@pytest.mark.parametrize(("name", "version"), [*CASES[:3], ("cart_pole", "2.0"), *CASES[-3:]])
def test_directional_derivatives_are_those_of_differences(name: str, version: str, fmpy: ModuleType) -> None:
    fmu = exported(name, version)
    known = fmu.variables()
    states = fmu.references(*NAMES[name])
    inputs = [int(v["valueReference"]) for v in known.values() if v["causality"] == "input"]
    tunable = [int(v["valueReference"]) for v in known.values() if v["variability"] == "tunable"]
    rates = [int(v["valueReference"]) for n, v in known.items() if n.startswith("der(")]
    outputs = [int(known[x]["valueReference"]) for x in ("ground_pin_x", "guide", "V", "energy.total") if x in known]
    rng = np.random.default_rng(3)
    with instance(fmpy, fmu) as made:
        for unknowns, directions in ((rates, states + inputs), (rates, tunable), (outputs, states + inputs)):
            if not unknowns or not directions:
                continue
            v = rng.normal(size=len(directions))
            v *= values(made, directions) if directions is tunable else 1.0  # parameters have any magnitude
            exact = np.array(made.getDirectionalDerivative(unknowns, directions, list(v)))
            x = values(made, directions)
            sides = []
            for sign in (1.0, -1.0):
                moved = x + sign * 1e-6 * v
                if directions is tunable:
                    put(made, directions, moved)
                else:
                    made.setContinuousStates(_pointer(moved[: len(states)]), len(states))
                    put(made, inputs, moved[len(states) :])
                sides.append(values(made, unknowns))
            slopes = (sides[0] - sides[1]) / 2e-6
            assert np.abs(exact - slopes).max() < 1e-5 * (1 + np.abs(slopes).max())


def _pointer(array: np.ndarray) -> Any:
    import ctypes

    return np.ascontiguousarray(array).ctypes.data_as(ctypes.POINTER(ctypes.c_double))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_binary_from_the_sources(version: str, fmpy: ModuleType, tmp_path: Path) -> None:
    """FMPy compiles the sources with CMake, with the prefix that a shared library does not have switched off.

    Without optimization, which takes most of the time.
    """
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    from fmpy.build import build_platform_binary

    source = fmus.folder() / f"source_{version[0]}.fmu"
    values = fmus.start_of("slider_crank")
    kg.export_fmu(fmus.model_of("slider_crank"), source, fmi=version, values=values, binary=False)
    fmu = fmus.unpacked(source, version)
    flags = {
        "CMAKE_C_FLAGS:STRING": "-DFMI2_OVERRIDE_FUNCTION_PREFIX -Werror",
        "CMAKE_SHARED_LINKER_FLAGS:STRING": "-lm",
    }
    build_platform_binary(fmu.folder, build_dir=tmp_path, configuration="Debug", cmake_options=flags, all_warnings=True)
    result = fmpy.simulate_fmu(
        str(fmu.folder), stop_time=1.0, output_interval=0.01, fmi_type="CoSimulation", output=NAMES["slider_crank"]
    )
    end = np.array([result[-1][x] for x in NAMES["slider_crank"]])
    assert np.abs(end - final(solved("slider_crank", 1.0, method="rk4", step=fmus.STEP))).max() < 1e-9


def test_the_programs_of_the_page(fmpy: ModuleType, tmp_path: Path) -> None:
    page = (fmus.ROOT / "docs" / "fmi.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    program = program.replace('"build_examples"', repr(str(fmus.EXAMPLES)))
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *_, same = done.stdout.split()
    assert abs(float(same)) < 1e-4  # FMPy integrates with a tolerance of 1e-4 times a factor
