"""Units of variables on axes, in legends, tables and emitted projects; arrays remain in coherent SI units."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

matplotlib.use("agg")
UNITS = {"x": "mm", "theta": "deg", "omega": "deg/s", "m": "g"}


def model(units: dict[str, str] | None, mass: str = "m") -> kg.Model:
    """A particle on a line with a spring, and a pendulum."""
    x, theta, v, omega = me.dynamicsymbols("x theta v omega")
    l, m, g, k = sm.symbols(f"l {mass} g k")
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (theta, N.z))
    O = me.Point("O")
    O.set_vel(N, 0)
    C, P = O.locatenew("C", x * N.x), O.locatenew("P", -l * B.y)
    return kg.Model(
        name="spring_and_pendulum",
        frame=N,
        coordinates=(x, theta),
        speeds=(v, omega),
        kinematics=(x.diff() - v, theta.diff() - omega),
        bodies=(me.Particle("cart", C, m), me.Particle("bob", P, m)),
        loads=((C, -k * x * N.x),),
        gravity=-g * N.y,
        outputs={"force": k * x, "angles": [theta, 2 * theta]},
        parameters={l: 0.5, m: 0.2, g: 9.81, k: 3.0},
        initial={x: 0.1, theta: 0.5, v: 0.0, omega: 0.0},
        units=units,
    )


@cache
def motion() -> kg.Solution:
    return kg.build(model(UNITS)).integrate((0.0, 2.0))


def test_curves_are_converted_to_the_units_on_their_axes() -> None:
    solution = motion()
    axes = solution.plot("theta", ["x", "v"], ["x"], "force", "angles")
    labels = ["theta (deg)", "", "x (mm)", "force (N)", "angles"]
    assert [axis.get_ylabel() for axis in axes] == labels
    assert [line.get_label() for line in axes[1].get_lines()] == ["x (mm)", "v (m/s)"]
    assert axes[0].get_lines()[0].get_ydata()[0] == pytest.approx(np.degrees(0.5), rel=1e-14)
    assert axes[2].get_lines()[0].get_ydata()[0] == pytest.approx(100.0, rel=1e-14)
    assert solution.q[0].tolist() == [0.1, 0.5]


def test_quantities_have_units_of_their_own() -> None:
    """Those of energies; a parameter does not give its unit to a quantity of the same name."""
    units = {"Q" if name == "m" else name: unit for name, unit in UNITS.items()}
    named = model(units, mass="Q")
    solution = kg.build(named).integrate((0.0, 0.1))
    axes = solution.plot("energy", "Q", ["kinetic_energy", "x"])
    assert [axis.get_ylabel() for axis in axes] == ["energy (J)", "Q", ""]
    assert [line.get_label() for line in axes[2].get_lines()] == ["kinetic_energy (J)", "x (mm)"]
    data = solution.to_xarray(["energy", "Q"])
    assert (data["energy"].attrs, data["Q"].attrs, data["x"].attrs) == ({"units": "J"}, {}, {"units": "m"})


def test_groups_are_divided_by_unit() -> None:
    axes = motion().plot()
    labels = ["x (mm)", "theta (deg)", "v (m/s)", "omega (deg/s)", "force (N)", "outputs"]
    assert [axis.get_ylabel() for axis in axes] == labels


def test_a_phase_portrait_has_units() -> None:
    axis = kg.plot.phase(motion(), "x", "omega")
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("x (mm)", "omega (deg/s)")
    assert axis.get_lines()[0].get_xdata()[0] == pytest.approx(100.0, rel=1e-14)


def test_steady_states_are_shown_in_their_units() -> None:
    branch = motion().solver.equilibria("m", [0.1, 0.2], {"x": 0.0, "theta": 0.0})
    assert "x = 0 mm, theta = 0 deg" in branch.states[0]._repr_html_()
    assert "200 g" in branch._repr_html_()
    axes = kg.plot.modes(branch)
    assert axes[-1].get_xlabel() == "m (g)"
    assert axes[-1].get_lines()[0].get_xdata().tolist() == [100.0, 200.0]


def test_tables_show_units_and_data_sets_name_those_of_their_values() -> None:
    solution = motion()
    assert "m = 200 g" in solution.solver._repr_html_()
    assert "theta = 28.6479 deg" in solution.solver._repr_html_()
    assert " mm, theta = " in solution._repr_html_()
    data = solution.to_xarray()
    assert {name: data[name].attrs for name in ("x", "theta", "force", "angles")} == {
        "x": {"units": "m"},
        "theta": {"units": "rad"},
        "force": {"units": "N"},
        "angles": {},
    }
    assert data["theta"].values[0] == 0.5


def test_without_units_nothing_changes() -> None:
    plain = kg.build(model(None))
    assert plain.extension.digest == motion().solver.extension.digest
    solution = plain.integrate((0.0, 2.0))
    assert solution.units == {}
    assert [axis.get_ylabel() for axis in solution.plot()] == ["coordinates", "speeds", "outputs"]
    assert "theta = 0.5<" in plain._repr_html_().replace(", ", "<")
    assert pickle.loads(pickle.dumps(motion())).plot("theta")[0].get_ylabel() in ("theta", "theta (deg)")


def test_emitted_projects_list_the_units_of_their_values(tmp_path: Path) -> None:
    folder = kg.emit(model(UNITS), tmp_path / "units")
    for name, row in (
        ("README.md", "| theta | rad |"),
        ("examples/spring_and_pendulum_example.c", " *   omega: rad/s"),
        ("spring_and_pendulum.h", "/* theta (rad)"),
    ):
        assert row in (folder / name).read_text("utf-8")
    plain = kg.emit(model(None), tmp_path / "plain")
    kernel = "spring_and_pendulum.c"
    assert (plain / kernel).read_bytes() == (folder / kernel).read_bytes()
    assert all("coherent" not in path.read_text("utf-8") for path in plain.glob("*.[cm]*"))
