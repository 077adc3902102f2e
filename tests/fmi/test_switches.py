"""Forces that begin at known times, in FMUs: time events in model exchange, ends of steps in co-simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import fmus
import numpy as np
import pytest
import sympy as sm
from fmus import VERSIONS, Fmu
from state_models import point_mass
from switching import FORCES, driven, reference, t, x

import kanegen as kg

pytestmark = pytest.mark.target

T1 = 7.0
METHODS = ("dopri5", "dop853", "rodas")


@pytest.fixture(scope="module")
def fmpy() -> ModuleType:
    return pytest.importorskip("fmpy", reason="FMPy is not installed: pip install 'kanegen[targets]'")


def exported(model: kg.Model, path: Path, version: str = "2.0", **options: Any) -> Fmu:
    kg.export_fmu(model, path, fmi=version, name=model.name, compiler=fmus.FAST, **options)
    return fmus.unpacked(path, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FORCES)
def test_nothing_that_begins_later_is_stepped_over(name: str, version: str, fmpy: ModuleType, tmp_path: Path) -> None:
    """x(7) of the pulse is 0.0419 m; without time events CVode, and dopri5 with long steps, may give 0."""
    exported(driven(name), tmp_path / "x.fmu", version, method="dopri5")
    options = {"stop_time": T1, "output_interval": T1, "relative_tolerance": 1e-9, "output": ["x", "v"]}
    for kind in ("CoSimulation", "ModelExchange"):
        result = fmpy.simulate_fmu(str(tmp_path / "x.fmu"), fmi_type=kind, **options)[-1]
        assert np.abs([result["x"], result["v"]] - reference(name, T1)).max() < 1e-7, kind


@contextmanager
def exchange(fmpy: ModuleType, fmu: Fmu, stop: float | None, start: float = 0.0) -> Iterator[Any]:
    """An instance for model exchange, in event mode at the start."""
    description = fmpy.read_model_description(str(fmu.path))
    made = fmpy.instantiate_fmu(str(fmu.folder), description, "ModelExchange")
    if fmu.version == "2.0":
        made.setupExperiment(startTime=start, stopTime=stop)
        made.enterInitializationMode()
    else:
        made.enterInitializationMode(startTime=start, stopTime=stop)
    made.exitInitializationMode()
    yield made
    made.terminate()
    made.freeInstance()


def next_time(made: Any) -> float:
    """The next time event after a round of event mode, or NaN."""
    if hasattr(made, "updateDiscreteStates"):
        *_, defined, time = made.updateDiscreteStates()
    else:
        info = made.newDiscreteStates()
        *_, defined, time = info
    return float(time) if defined else np.nan


def rates(made: Any) -> np.ndarray[Any, Any]:
    import ctypes

    values = np.empty(2)
    pointer = values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    if hasattr(made, "getDerivatives"):
        made.getDerivatives(pointer, 2)
    else:
        made.getContinuousStateDerivatives(pointer, 2)
    return values


@pytest.mark.parametrize("version", VERSIONS)
def test_derivatives_are_those_before_a_time_event_and_then_those_after_it(
    version: str, fmpy: ModuleType, tmp_path: Path
) -> None:
    fmu = exported(driven("step"), tmp_path / "x.fmu", version)
    with exchange(fmpy, fmu, 10.0) as made:
        assert next_time(made) == 5.0
        made.enterContinuousTimeMode()
        made.setTime(5.0)
        assert rates(made)[1] == 0.0
        made.enterEventMode()
        assert next_time(made) == 5.5
        assert rates(made)[1] == 1.0
        made.enterContinuousTimeMode()
        made.setTime(5.5)
        assert rates(made)[1] == 1.0
        made.enterEventMode()
        assert np.isnan(next_time(made))
        assert rates(made)[1] == 0.0


def test_the_search_for_curved_switches_goes_to_the_end_of_the_experiment_or_a_second_ahead(
    fmpy: ModuleType, tmp_path: Path
) -> None:
    fmu = exported(driven("curved"), tmp_path / "x.fmu")
    with exchange(fmpy, fmu, 10.0) as made:
        assert next_time(made) == pytest.approx(np.sqrt(30.0), abs=1e-13)
    times = [0.0]
    with exchange(fmpy, fmu, None) as made:
        while times[-1] < 6.0:
            times.append(next_time(made))
            made.enterContinuousTimeMode()
            made.setTime(times[-1])
            made.enterEventMode()
    assert times == pytest.approx([0, 1, 2, 3, 4, 5, np.sqrt(30.0), np.sqrt(30.0) + 1])


def test_parameters_move_time_events(fmpy: ModuleType, tmp_path: Path) -> None:
    begin = sm.Symbol("begin")
    force = sm.Piecewise((0, t < begin), (1, True))
    parameters = {"m": 1.0, "begin": 3.0}
    model = point_mass("begins", force, initial={"x": 0.0, "v": 0.0}, parameters=parameters)
    fmu = exported(model, tmp_path / "x.fmu", method="dopri5")
    with exchange(fmpy, fmu, 10.0) as made:
        assert next_time(made) == 3.0
        made.setReal(fmu.references("begin"), [4.0])
        assert next_time(made) == 4.0
    for kind in ("CoSimulation", "ModelExchange"):
        options = {"stop_time": 6.0, "output_interval": 3.0, "fmi_type": kind, "output": ["v"]}
        assert fmpy.simulate_fmu(str(fmu.path), start_values={"begin": 4.0}, **options)["v"][-1] == pytest.approx(2.0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_guard_that_jumps_at_a_time_event_has_its_event(version: str, fmpy: ModuleType, tmp_path: Path) -> None:
    """The guard is -1 until 2 s and 1 after it; the event resets z, which counts the time, so that z(3) = 1."""
    z = sm.Function("z")(t)
    event = kg.Event("begins", sm.Piecewise((-1, t < 2), (1, True)), direction=1, reset={z: 0})
    model = point_mass(
        "jumps", 0, states={z: 1}, events=(event,), initial={"x": 0.0, "v": 0.0, "z": 0.0}, parameters={"m": 1.0}
    )
    fmu = exported(model, tmp_path / "x.fmu", version, method="dopri5")
    for kind in ("CoSimulation", "ModelExchange"):
        row = fmpy.simulate_fmu(
            str(fmu.path), stop_time=3.0, output_interval=0.7, fmi_type=kind, output=["z", "event.begins.count"]
        )[-1]
        assert row["event.begins.count"] == 1, kind
        assert row["z"] == pytest.approx(1.0, abs=1e-9), kind


def test_a_saved_state_knows_the_next_instant(fmpy: ModuleType, tmp_path: Path) -> None:
    """Serialized at 4 s and read by another instance, the run has the bits of the first one."""
    fmu = exported(driven("curved"), tmp_path / "x.fmu", method="dopri5")
    rows = fmu.run("rollback", 7000, ("x", "v"))
    assert rows[0] == rows[1]
    assert np.abs(np.array(rows[0]) - reference("curved", T1)).max() < 1e-7


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_the_co_simulation_stops(method: str, fmpy: ModuleType, tmp_path: Path) -> None:
    options = {"solver.rtol": 1e-8, "solver.atol": 1e-10}
    fmu = exported(driven("pulse"), tmp_path / "x.fmu", method=method)
    result = fmpy.simulate_fmu(
        str(fmu.path), stop_time=T1, output_interval=T1, start_values=options, fmi_type="CoSimulation", output=["x"]
    )
    assert result["x"][-1] == pytest.approx(reference("pulse", T1)[0], abs=1e-6)


def test_a_body_at_rest_on_its_guard_and_a_step_of_length_zero(fmpy: ModuleType, tmp_path: Path) -> None:
    """At rest at x = 0, where the guard is zero: no event, no error."""
    start = {"initial": {"x": 0.0, "v": 0.0}, "parameters": {"m": 1.0}}
    model = point_mass("rests", 0, events=[kg.Event("here", x)], **start)
    fmu = exported(model, tmp_path / "x.fmu", method="dopri5")
    for kind in ("CoSimulation", "ModelExchange"):
        row = fmpy.simulate_fmu(str(fmu.path), stop_time=2.0, fmi_type=kind, output=["x", "event.here.count"])[-1]
        assert (row["x"], row["event.here.count"]) == (0.0, 0), kind
    made = fmpy.instantiate_fmu(str(fmu.folder), fmpy.read_model_description(str(fmu.path)), "CoSimulation")
    made.setupExperiment(startTime=0.0)
    made.enterInitializationMode()
    made.exitInitializationMode()
    made.doStep(0.0, 0.0)
    assert made.getReal(fmu.references("x")) == [0.0]
    made.terminate()
    made.freeInstance()


def test_at_the_time_of_this_century(fmpy: ModuleType, tmp_path: Path) -> None:
    """A force from t0 + 1 s on moves 1 kg by 1/2 m until t0 + 2 s; one rounding of the time is 2e-7 s."""
    t0 = 1.7e9
    force = sm.Piecewise((0, t < t0 + 1), (1, True))
    model = point_mass("late", force, initial={"t": t0, "x": 0.0, "v": 0.0}, parameters={"m": 1.0})
    fmu = exported(model, tmp_path / "x.fmu", method="dopri5")
    made = fmpy.instantiate_fmu(str(fmu.folder), fmpy.read_model_description(str(fmu.path)), "CoSimulation")
    made.setupExperiment(startTime=t0)  # fmpy.simulate_fmu takes t0 and t0 + 2 s for equal
    made.enterInitializationMode()
    made.exitInitializationMode()
    for k in range(4):
        made.doStep(t0 + k / 2, 0.5)
    assert made.getReal(fmu.references("x"))[0] == pytest.approx(0.5, abs=1e-5)
    made.terminate()
    made.freeInstance()
    with exchange(fmpy, fmu, t0 + 2, start=t0) as made:
        assert next_time(made) == t0 + 1
