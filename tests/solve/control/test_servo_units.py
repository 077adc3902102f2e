"""Servo-constraints do not depend on units: masses, controls and constraints of very different sizes."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

x, y, v, w = me.dynamicsymbols("x y v w")
F, G = me.dynamicsymbols("F G")
t = me.dynamicsymbols._t
N, O = me.ReferenceFrame("N"), me.Point("O")
O.set_vel(N, 0)
SIZES = [1e-12, 1.0, 1e12]


def two_bodies(mass, unit, servo, force=0, coupling=None, **options):
    """Bodies of 1 kg and ``mass`` on lines along x and y, with the forces F + ``force`` and ``unit`` G."""
    points = O.locatenew("P", x * N.x), O.locatenew("S", y * N.y)
    points[0].set_vel(N, v * N.x)
    points[1].set_vel(N, w * N.y)
    return kg.Model(
        name="two_bodies",
        frame=N,
        coordinates=[x, y],
        speeds=[v, w],
        kinematics=[v - x.diff(t), w - y.diff(t)],
        bodies=[me.Particle("first", points[0], 1), me.Particle("second", points[1], mass)],
        loads=[(points[0], (F + force) * N.x), (points[1], unit * G * N.y)],
        inputs=[kg.Input(F), kg.Input(G)],
        holonomic_constraints=[] if coupling is None else [coupling],
        control=servo,
        **options,
    )


@pytest.mark.parametrize("mass", SIZES)
@pytest.mark.parametrize("unit", SIZES)
def test_bodies_and_controls_of_any_size(mass, unit):
    model = two_bodies(
        mass, unit, kg.Servo([x - sm.sin(t), y - sm.sin(t)], theta=[(-2, -1), (-2, -1)], controls=[F, G])
    )
    found = kg.build(model).control(0.5, [np.sin(0.5)] * 2, [np.cos(0.5)] * 2)
    expected = -np.sin(0.5) * np.array([1.0, mass / unit])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("ratio", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("mass", SIZES)
def test_bodies_of_any_size_on_a_gear(mass, ratio):
    """The force on the first body moves the second one through a gear."""
    model = two_bodies(mass, 1, kg.Servo([x - sm.sin(t)], theta=(-2, -1), controls=[F, G]), coupling=y - ratio * x)
    solver = kg.build(model)
    q, u = [np.sin(0.5), ratio * np.sin(0.5)], [np.cos(0.5), ratio * np.cos(0.5)]
    found = solver.control(0.5, q, u)
    total = -np.sin(0.5) * (1 + mass * ratio**2)
    np.testing.assert_allclose(found, total * np.array([1.0, ratio]) / (1 + ratio**2), rtol=1e-10)


@pytest.mark.parametrize("resolution", ["moore_penrose", "ideal"])
@pytest.mark.parametrize("unit", [1e-15, 1.0, 1e15])
def test_whether_dependent_servo_constraints_agree_in_any_unit(unit, resolution):
    """At y = pi/2, an angle, the rates of x and x + unit sin(y) are one; forces balance each other but for rounding."""
    a, b, c, target = sm.symbols("a b c target")
    constraints = [x, x + unit * (sm.sin(y) - target)]
    servo = kg.Servo(constraints, theta=[(-2, -1)] * 2, controls=[F, G], resolution=resolution)
    values = {a: 0.1, b: 0.2, c: 0.3, target: 1.0}
    solver = kg.build(two_bodies(unit**2, unit, servo, unit * (a + b - c), parameters=values))
    state = 0.0, [0.0, np.pi / 2], [0.0, 0.0]
    assert solver.feasibility(*state).kind != "none"
    np.testing.assert_allclose(solver.control(*state), [0.0, 0.0], atol=1e-15 * unit)
    other = solver.with_parameters({target: 1.001})
    assert other.feasibility(*state).kind == "none"
    with pytest.raises(kg.SolveError, match="control"):
        other.control(*state)
