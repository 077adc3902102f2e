"""FMUs in importers other than FMPy: fmuloader, libcosimpy, and the importer in C of the tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmus
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from ccompile import C_COMPILER, SANITIZERS, SANITIZING
from fmus import CASES, VERSIONS, Fmu, components, fmu_of
from systems import initial, model_of, solver_for

import kanegen as kg

pytestmark = pytest.mark.target


def final(name: str, t1: float, **options: Any) -> np.ndarray:
    start = initial(name)
    states = {"s0": start["s"]} if start.get("s") else {}
    options = options or {"method": "rk4", "step": fmus.STEP}
    return np.concatenate(
        solver_for(name).integrate((0.0, t1), start["q"], start["u"], start["r"], **states, **options).last[1:]
    )


def close(found: Any, expected: np.ndarray, tolerance: float = 1e-10) -> bool:
    """Whether two states agree; the flags of the compilers differ, and with them roundings."""
    return bool(np.abs(np.array(found) - expected).max() <= tolerance * (1 + np.abs(expected).max()))


# -- fmuloader ----------------------------------------------------------------------------------------------------


def loaded(fmu: Fmu, cosimulation: bool) -> Any:
    """An instance of fmuloader in initialization mode."""
    if fmu.version == "2.0":
        fmi2 = pytest.importorskip(
            "fmuloader.fmi2", reason="fmuloader is not installed: pip install 'kanegen[targets]'"
        )
        made = fmi2.Fmi2Slave(fmu.folder, model_identifier=fmu.library.stem)
        kind = fmi2.Fmi2Type.CO_SIMULATION if cosimulation else fmi2.Fmi2Type.MODEL_EXCHANGE
        made.instantiate("one", kind, guid=fmu.token)
        made.setup_experiment(start_time=0.0)
        made.enter_initialization_mode()
    else:
        fmi3 = pytest.importorskip(
            "fmuloader.fmi3", reason="fmuloader is not installed: pip install 'kanegen[targets]'"
        )
        made = fmi3.Fmi3Slave(fmu.folder, model_identifier=fmu.library.stem)
        (made.instantiate_co_simulation if cosimulation else made.instantiate_model_exchange)(
            "one", instantiation_token=fmu.token
        )
        made.enter_initialization_mode(start_time=0.0)
    return made


def read(made: Any, references: list[int]) -> list[float]:
    values: list[float] = (made.get_real if hasattr(made, "get_real") else made.get_float64)(references)
    return values


@pytest.mark.parametrize(("name", "version"), CASES)
def test_fmuloader_steps(name: str, version: str) -> None:
    fmu = fmu_of(name, version)
    made = loaded(fmu, cosimulation=True)
    made.exit_initialization_mode()
    for k in range(100):
        made.do_step(k * 0.01, 0.01)
    assert close(read(made, fmu.references(*components(name))), final(name, 1.0))
    made.terminate()
    made.free_instance()


@pytest.mark.parametrize("version", VERSIONS)
def test_fmuloader_rolls_back(version: str) -> None:
    """A state that was saved before an impact gives the same motion again, also from its bytes."""
    fmu = fmu_of("bouncing_ball", version)
    made = loaded(fmu, cosimulation=True)
    made.exit_initialization_mode()
    references = fmu.references("z", "u1", "contact_force.floor")

    def advance(first: int, last: int) -> list[float]:
        for k in range(first, last):
            made.do_step(k * 0.01, 0.01)
        return read(made, references)

    advance(0, 40)
    state = made.get_fmu_state()
    data = made.serialize_fmu_state(state)
    end = advance(40, 120)
    made.set_fmu_state(state)
    assert advance(40, 120) == end
    copy = made.deserialize_fmu_state(data)
    made.set_fmu_state(copy)
    assert advance(40, 120) == end
    for each in (state, copy):
        made.free_fmu_state(each)
    made.free_instance()


def runge_kutta(f: Callable[[float, np.ndarray], np.ndarray], t: float, y: np.ndarray, h: float) -> np.ndarray:
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def start_model_exchange(made: Any) -> Any:
    made.exit_initialization_mode()
    info = (made.new_discrete_states if hasattr(made, "new_discrete_states") else made.update_discrete_states)()
    made.enter_continuous_time_mode()
    return info


@pytest.mark.parametrize("version", VERSIONS)
def test_fmuloader_evaluates_for_an_integrator_in_python(version: str) -> None:
    """The classical method in Python on the derivatives of the FMU makes the steps of the solver."""
    fmu, n = fmu_of("slider_crank", version), len(components("slider_crank"))
    made = loaded(fmu, cosimulation=False)
    start_model_exchange(made)
    derivatives = made.get_derivatives if version == "2.0" else made.get_continuous_state_derivatives

    def f(t: float, y: np.ndarray) -> np.ndarray:
        made.set_time(t)
        made.set_continuous_states(list(y))
        return np.array(derivatives(n))

    y = np.array(made.get_continuous_states(n))
    for k in range(200):
        y = runge_kutta(f, k * fmus.STEP, y, fmus.STEP)
    made.free_instance()
    assert close(y, final("slider_crank", 0.2), 1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_fmuloader_finds_impacts_by_event_indicators(version: str) -> None:
    """An integrator in Python that halves its step at a change of sign finds the impacts in closed form."""
    fmu = fmu_of("bouncing_ball", version)
    made = loaded(fmu, cosimulation=False)
    start_model_exchange(made)
    mode = fmu.references("contact.floor.mode")
    modes = made.get_integer if version == "2.0" else made.get_int64
    derivatives = made.get_derivatives if version == "2.0" else made.get_continuous_state_derivatives
    update = made.new_discrete_states if version == "2.0" else made.update_discrete_states

    def f(t: float, y: np.ndarray) -> np.ndarray:
        made.set_time(t)
        made.set_continuous_states(list(y))
        return np.array(derivatives(2))

    def signs(t: float, y: np.ndarray) -> list[bool]:
        f(t, y)
        return [z > 0 for z in made.get_event_indicators(4)]

    t, y, impacts = 0.0, np.array(made.get_continuous_states(2)), []
    while len(impacts) < 5:
        h, before = 0.01, signs(t, y)
        moved = runge_kutta(f, t, y, h)
        if signs(t + h, moved) != before:
            low, high = 0.0, h
            for _ in range(60):
                middle = (low + high) / 2
                changed = signs(t + middle, runge_kutta(f, t, y, middle)) != before
                low, high = (low, middle) if changed else (middle, high)
            h, moved = high, runge_kutta(f, t, y, high)
        t, y, falling = t + h, moved, moved[1] < 0
        f(t, y)
        made.completed_integrator_step()
        if signs(t, y) != before:
            made.enter_event_mode()
            update()
            made.enter_continuous_time_mode()
            y = np.array(made.get_continuous_states(2))
            if falling and y[1] > 0:
                impacts.append(t)
                assert modes(mode) == [1]  # open: it rebounds
    from systems import example

    assert np.abs(np.array(impacts) - example("bouncing_ball").impact_times(5)).max() < 1e-9
    made.free_instance()


# -- libcosimpy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["slider_crank", "bouncing_ball", "dc_motor_arm"])
def test_libcosim_steps(name: str) -> None:
    package = pytest.importorskip("libcosimpy", reason="libcosimpy is not installed: pip install 'kanegen[targets]'")
    assert package
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    fmu = fmu_of(name, "2.0")
    execution = CosimExecution.from_step_size(step_size=10_000_000)  # ns
    first, second = (
        execution.add_local_slave(CosimLocalSlave(fmu_path=str(fmu.path), instance_name=key)) for key in ("a", "b")
    )
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    execution.simulate_until(1_000_000_000)
    references = fmu.references(*components(name))
    for slave in (first, second):
        assert close(observer.last_real_values(slave, references), final(name, 1.0))


# -- the importer in C --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "version"), CASES)
def test_the_importer_in_c_saves_and_restores_states(name: str, version: str) -> None:
    straight, again, moved = fmu_of(name, version).run("rollback", 800, components(name))
    assert straight == again == moved
    assert close(straight, final(name, 0.8))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["slider_crank", "dc_motor_arm"])
def test_model_exchange_in_c(name: str, version: str) -> None:
    """The classical method of the importer makes the steps of the solver; coefficients are rounded in another order."""
    fmu = fmu_of(name, version)
    end, _ = fmu.run("exchange", 500, components(name))
    assert close(end, final(name, 0.5), 1e-11)


MAIN = """
#include <stddef.h>
void *slider_crank_fmi2Instantiate(const char *, int, const char *, const char *, const void *, int, int);
void *bouncing_ball_fmi2Instantiate(const char *, int, const char *, const char *, const void *, int, int);
int main(void) {
  return slider_crank_fmi2Instantiate("a", 1, "other", "", NULL, 0, 0) == NULL &&
         bouncing_ball_fmi2Instantiate("b", 1, "other", "", NULL, 0, 0) == NULL ? 0 : 1;
}
"""


def test_two_fmus_are_linked_into_one_program(tmp_path: Path) -> None:
    """Without the macro for shared libraries every symbol has the prefix of its model."""
    (tmp_path / "main.c").write_text(MAIN)
    units = [tmp_path / "main.c"]
    for name in ("slider_crank", "bouncing_ball"):
        sources = fmu_of(name, "2.0").folder / "sources"
        units += [sources / f"{name}.c", sources / f"{name}_fmu.c"]
    command = [C_COMPILER.command, "-std=c99", "-O0", *map(str, units), "-o", str(tmp_path / "main"), "-lm"]
    subprocess.run(command, check=True)
    subprocess.run([str(tmp_path / "main")], check=True)


@pytest.mark.skipif(C_COMPILER not in SANITIZING, reason="the sanitizers of the C compiler are not installed")
@pytest.mark.parametrize(("name", "version"), [("bouncing_ball", "2.0"), ("sampled_pid", "3.0")])
def test_no_error_of_memory(name: str, version: str) -> None:
    """Both kinds of simulation with events, saved states and derivatives, under the address sanitizer."""
    fmu, library = fmu_of(name, version), fmus.folder() / f"{name}_sanitized.so"
    units = [str(fmu.folder / "sources" / f"{name}{part}.c") for part in ("", "_fmu")]
    flags = ["-std=c99", "-O0", *SANITIZERS, "-fPIC", "-shared", "-fvisibility=hidden"]
    prefixes = [f"-DFMI{v}_OVERRIDE_FUNCTION_PREFIX" for v in (2, 3)]
    subprocess.run([C_COMPILER.command, *flags, *prefixes, *units, "-o", str(library), "-lm"], check=True)
    program = fmus.importer(version, *SANITIZERS)
    for what in ("rollback", "pair", "exchange"):
        rows = fmu.run(what, 800, components(name), library, program)
        if what != "pair":
            assert close(rows[0], final(name, 0.8), 1e-2)  # the importer locates events at the ends of its steps


def test_two_instances_do_not_disturb_each_other() -> None:
    fmu, names = fmu_of("cart_pole", "2.0"), components("cart_pole")
    first, second = fmu.run("pair", 500, names)
    (alone,) = fmu.run("steps", 500, names)
    assert first == alone
    start = initial("cart_pole")
    expected = solver_for("cart_pole").integrate(
        (0.0, 0.5), 1.25 * np.array(start["q"]), 1.25 * np.array(start["u"]), (0.0,), method="rk4", step=fmus.STEP
    )
    assert close(second, np.concatenate(expected.last[1:]))


def test_motions_without_events_have_the_bits_of_the_solver() -> None:
    (end,) = fmu_of("rolling_disk", "2.0", fmus.SOLVER).run("steps", 1000, components("rolling_disk"))
    assert end == final("rolling_disk", 1.0).tolist()


def test_an_importer_that_is_not_exact_about_time_gets_the_same_steps() -> None:
    """Communication points that are sums of steps differ from multiples of the step by rounding."""
    fmu = fmu_of("slider_crank", "2.0", fmus.SOLVER)
    made = loaded(fmu, cosimulation=True)
    made.exit_initialization_mode()
    t = 0.0
    for _ in range(500):
        made.do_step(t, fmus.STEP)
        t += fmus.STEP
    assert read(made, fmu.references(*components("slider_crank"))) == final("slider_crank", 0.5).tolist()
    made.free_instance()


def test_gains_act_in_both_kinds_of_simulation(tmp_path: Any) -> None:
    """With Baumgarte gains the right-hand side is that of the solver with the same gains."""
    gains, name = kg.Baumgarte(20.0, 20.0), "slider_crank"
    path = kg.export_fmu(
        model_of(name), tmp_path / "stabilized.fmu", values=fmus.start_of(name), stabilization=gains,
        compiler=fmus.FAST,
    )  # fmt: skip
    start = initial(name)
    solution = solver_for(name).with_stabilization(gains).integrate(
        (0.0, 0.5), start["q"], start["u"], method="rk4", step=fmus.STEP
    )  # fmt: skip
    (end,) = fmus.unpacked(path, "2.0").run("steps", 500, components(name))
    assert close(end, np.concatenate(solution.last[1:]), 1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_projections_act_in_co_simulation(version: str, tmp_path: Any) -> None:
    """The state stays on the constraints and keeps the energy; the FMU is not for model exchange."""
    projection, name = kg.Projection(integrals=("energy",)), "spherical_pendulum"
    path = kg.export_fmu(
        model_of(name), tmp_path / "projected.fmu", fmi=version, values=fmus.start_of(name), stabilization=projection,
        step=0.01, compiler=fmus.FAST,
    )  # fmt: skip
    fmu, start = fmus.unpacked(path, version), initial(name)
    assert fmu.root.find("ModelExchange") is None
    solver = kg.build(model_of(name), stabilization=projection)
    solution = solver.integrate((0.0, 2.0), start["q"], start["u"], method="rk4", step=0.01)
    made = loaded(fmu, cosimulation=True)
    made.exit_initialization_mode()
    energy = fmu.references("energy.total")
    first = read(made, energy)[0]
    for k in range(200):
        made.do_step(k * 0.01, 0.01)
    assert close(read(made, fmu.references(*components(name))), np.concatenate(solution.last[1:]))
    assert read(made, energy)[0] == pytest.approx(first, rel=1e-12)
    made.free_instance()


def test_a_start_that_violates_constraints_is_refused() -> None:
    fmu = fmu_of("slider_crank", "2.0")
    made = loaded(fmu, cosimulation=True)
    made.set_real(fmu.references("theta"), [1.0])
    with pytest.raises(Exception, match="ERROR"):
        made.exit_initialization_mode()


def test_a_start_is_judged_in_the_unit_of_its_constraints(tmp_path: Path) -> None:
    """The closure of a pendulum of one micrometer, in square meters: no residual exceeds 1e-11."""
    x, y, v, w = me.dynamicsymbols("x y v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    length = sm.Symbol("l")
    model = kg.Model(
        name="micro", frame=N, coordinates=(x, y), speeds=(v, w), kinematics=(v - x.diff(), w - y.diff()),
        bodies=(me.Particle("bob", P, 1e-12),), gravity=-9.81 * N.y, parameters={length: 1e-6},
        holonomic_constraints=(x**2 + y**2 - length**2,), initial={"x": 6e-7, "y": -8e-7, "v": 0, "w": 0},
    )  # fmt: skip
    fmu = fmus.unpacked(kg.export_fmu(model, tmp_path / "micro.fmu", compiler=fmus.FAST), "2.0")
    made = loaded(fmu, cosimulation=True)
    made.exit_initialization_mode()
    made.free_instance()
    made = loaded(fmu, cosimulation=True)
    made.set_real(fmu.references("x"), [6.1e-7])
    with pytest.raises(Exception, match="ERROR"):
        made.exit_initialization_mode()


def test_calls_of_the_other_kind_are_errors() -> None:
    fmu = fmu_of("slider_crank", "2.0")
    simulation, exchange = loaded(fmu, cosimulation=True), loaded(fmu, cosimulation=False)
    simulation.exit_initialization_mode()
    start_model_exchange(exchange)
    for call in (
        lambda: simulation.get_derivatives(6),
        lambda: simulation.set_continuous_states([0.0] * 6),
        lambda: exchange.get_derivatives(7),
        lambda: exchange.do_step(0.0, 0.1),
        lambda: simulation.do_step(0.5, 0.1),  # it is at 0
        lambda: simulation.do_step(0.0, -0.1),
        lambda: simulation.set_real(fmu.references("theta"), [0.0]),  # a state, after the start
        lambda: simulation.set_real(fmu.references("energy.total"), [0.0]),
        lambda: simulation.get_real([10_000]),
        lambda: simulation.get_integer(fmu.references("theta")),
    ):
        with pytest.raises(Exception, match="ERROR"):
            call()
    for made in (simulation, exchange):
        made.free_instance()
