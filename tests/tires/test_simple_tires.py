"""Tires with few constants against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises

import kanegen as kg
from kanegen.graph import Graph, Lowering, gradient
from kanegen.graph.interpret import evaluate

COMMON: dict[str, Any] = {"radius": 0.33, "stiffness": 2e5, "nominal_load": 4000.0, "cornering_stiffness": 6e4}


def numbers(forces: Any) -> list[float]:
    return [float(x) for x in forces]


def test_linear_forces_are_proportional_to_slip_and_load() -> None:
    tire = kg.tires.linear(**COMMON, slip_stiffness=8e4, camber_stiffness=3e3, trail=0.03, rolling_resistance=0.01)
    Fx, Fy, Mx, My, Mz = numbers(tire.forces(2000.0, 0.02, np.arctan(0.05), 0.1, 20.0))
    assert Fx == pytest.approx(0.5 * 8e4 * 0.02)
    assert Fy == pytest.approx(-0.5 * (6e4 * 0.05 + 3e3 * 0.1))
    assert (Mx, My) == (0.0, pytest.approx(-0.01 * 2000.0 * 0.33))
    assert Mz == pytest.approx(0.03 * 0.5 * 6e4 * 0.05)
    backward = numbers(tire.forces(2000.0, 0.02, np.arctan(0.05), 0.1, -20.0))
    assert backward == pytest.approx([Fx, Fy, Mx, -My, -Mz])


@pytest.mark.parametrize(
    ("kappa", "tangent", "Fx", "Fy", "Mz"),
    [
        # mu = 1 - 0.2 |slip|; adhering, sliding longitudinally, sliding laterally.
        (0.01, 0.0, 800.0, 0.0, 0.0),
        (0.2, 0.0, 0.96 * 4000 * (1 - 0.96 * 4000 / (4 * 8e4 * 0.2)), 0.0, 0.0),
        (0.0, 0.5, 0.0, -0.9 * 4000, 0.0),
        (
            *(0.0, 0.1, 0.0),
            -0.98 * 4000 * (1 - (1 - 6e4 * 0.1 / (3 * 0.98 * 4000)) ** 3),
            0.98 * 4000 * 0.05 * (6e4 * 0.1 / (3 * 0.98 * 4000)) * (1 - 6e4 * 0.1 / (3 * 0.98 * 4000)) ** 3,
        ),
    ],
)
def test_fiala_has_the_published_formulas(kappa: float, tangent: float, Fx: float, Fy: float, Mz: float) -> None:
    tire = kg.tires.fiala(**COMMON, slip_stiffness=8e4, friction=1.0, sliding_friction=0.8, width=0.05)
    found = tire.forces(4000.0, kappa, np.arctan(tangent), 0.0, 20.0)
    assert numbers(found) == pytest.approx([Fx, Fy, 0.0, 0.0, Mz], rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("slip", [(0.0, 0.02), (0.05, 0.0), (-0.08, 0.05), (0.1, -0.3), (-0.5, 0.2)])
def test_brush_is_the_integral_over_its_bristles(slip: tuple[float, float]) -> None:
    load, half, mu = 3000.0, 0.06, 0.9
    tire = kg.tires.brush(**COMMON, friction=mu, half_length=half)
    kappa, tangent = slip
    # Bristles at the distance x from the front edge deflect by x times the theoretical slip, until they slide.
    x, width = np.linspace(0.0, 2 * half, 200001, retstep=True)
    pressure = 3 * load / (4 * half**3) * x * (2 * half - x)
    stiffness = COMMON["cornering_stiffness"] * load / COMMON["nominal_load"] / (2 * half**2)
    direction = np.array([kappa, -tangent]) / np.hypot(kappa, tangent)
    size = np.minimum(stiffness * x * np.hypot(kappa, tangent) / (1 + kappa), mu * pressure)
    Fx, Fy = direction * np.trapezoid(size, dx=width)
    Mz = direction[1] * np.trapezoid(size * (half - x), dx=width)
    found = numbers(tire.forces(load, kappa, np.arctan(tangent), 0.0, 20.0))
    assert found == pytest.approx([Fx, Fy, 0.0, 0.0, Mz], rel=1e-8, abs=1e-5)


def test_a_locked_brush_slides() -> None:
    tire = kg.tires.brush(**COMMON, friction=0.9, half_length=0.06)
    Fx, Fy, *_ = numbers(tire.forces(4000.0, -1.0, np.arctan(0.5)))
    assert np.hypot(Fx, Fy) == pytest.approx(3600.0)
    assert Fy / Fx == pytest.approx(0.5)


@pytest.mark.parametrize(
    "tire",
    [
        kg.tires.linear(**COMMON, slip_stiffness=8e4),
        kg.tires.fiala(**COMMON, slip_stiffness=8e4, friction=1.0, width=0.05),
        kg.tires.brush(**COMMON, friction=1.0, half_length=0.06),
    ],
    ids=["linear", "fiala", "brush"],
)
def test_without_load_there_is_no_force(tire: Any) -> None:
    assert numbers(tire.forces(0.0, 0.1, 0.1, 0.1, 20.0)) == [0.0] * 5
    assert numbers(tire.forces(4000.0)) == [0.0] * 5
    assert float(tire.load(0.01)) == pytest.approx(2000.0)
    assert float(tire.load(-0.01)) == 0.0


def test_a_tire_shows_its_constants() -> None:
    assert repr(kg.tires.brush(**COMMON, friction=0.9)).startswith("kg.tires.brush(radius=0.33, stiffness=200000.0, ")


def test_constants_must_be_positive() -> None:
    with raises(kg.ModelError, "radius", "friction", "relaxation"):
        kg.tires.brush(**{**COMMON, "radius": 0.0}, friction=-1.0, relaxation=(0.0, 1.0))


@pytest.mark.parametrize(
    "tire",
    [
        kg.tires.linear(**COMMON, slip_stiffness=8e4),
        kg.tires.fiala(**COMMON, slip_stiffness=8e4, friction=0.9, width=0.1),
        kg.tires.brush(**COMMON, friction=0.9, half_length=0.06),
    ],
)
def test_stiffnesses_at_zero_slip_are_those_given(tire: Any) -> None:
    """The derivatives that linear models of straight running read, exactly at zero; the load is half of the nominal."""
    graph = Graph()
    slip = [sm.Symbol(name, real=True) for name in ("kappa", "tangent")]
    inputs = [graph.input("q", k) for k in range(2)]
    forces = tire.forces_at(kg.tires.Contact(sm.Float(2000.0), *slip, sm.S.Zero, None, sm.Float(20.0), sm.S.One))
    lowering = Lowering(graph, dict(zip(slip, inputs, strict=True)))
    nodes = [lowering.lower(forces.Fx), lowering.lower(forces.Fy)]
    slopes = [gradient([node], [graph.one], [x])[0] for node, x in zip(nodes, inputs, strict=True)]
    along, aside = evaluate(slopes, {"q": [0.0, 0.0]})
    assert along == pytest.approx(0.5 * getattr(tire, "slip_stiffness", tire.cornering_stiffness))
    assert aside == pytest.approx(-0.5 * tire.cornering_stiffness)


def test_driven_wheels_give_no_more_power_than_they_get() -> None:
    """A brush tire without rolling resistance pulls a drag of 30 N s/m: torque times spin, less what slip takes."""
    x, z, angle, vx, vz, w, torque = me.dynamicsymbols("x z angle vx vz w torque")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", x * N.x + z * N.z)
    C.set_vel(N, vx * N.x + vz * N.z)
    rotor = N.orientnew("rotor", "Axis", (angle, N.y))
    rotor.set_ang_vel(N, w * N.y)
    given = {"radius": 0.33, "stiffness": 2e5, "damping": 500.0, "nominal_load": 4000.0, "cornering_stiffness": 6e4}
    tire = kg.tires.brush(**given, friction=1.0, half_length=0.06)
    wheel = kg.tires.wheel(tire, "wheel", center=C, frame=rotor, axis=N.y, road=kg.tires.road(N, O))
    model = kg.Model(
        name="driven brush",
        frame=N,
        coordinates=[x, z, angle],
        speeds=[vx, vz, w],
        kinematics=[x.diff() - vx, z.diff() - vz, angle.diff() - w],
        bodies=[me.RigidBody("rotor", C, rotor, 400, (me.inertia(rotor, 1, 1.2, 1), C))],
        loads=[*wheel.loads, (rotor, torque * N.y), (C, -30 * vx * N.x)],
        gravity=-9.81 * N.z,
        inputs=(kg.Input(torque, default=100.0),),
        states=wheel.states,
        initial={"t": 0.0, **wheel.initial},
    )
    solution = kg.build(model).integrate((0.0, 100.0), [0.0, 0.31, 0.0], [10.0, 0.0, 32.0], rtol=1e-8)
    speed, _, spin = solution.u[-1]
    assert 0.98 < 30.0 * speed**2 / (100.0 * spin) < 1.0
