"""Linear models, inverse dynamics and controls do not depend on the units of a model: micrometers, nanonewtons."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg
from kanegen.errors import SolveError

x, y, v, w = me.dynamicsymbols("x y v w")
t = me.dynamicsymbols._t
F, G = me.dynamicsymbols("F G")
N = me.ReferenceFrame("N")
ANALYSIS = ("rhs", "residuals", "jacobians")


def particle(position, mass):
    point, origin = me.Point("P"), me.Point("O")
    origin.set_vel(N, 0)
    point.set_pos(origin, position)
    point.set_vel(N, position.diff(t, N).subs({x.diff(): v, y.diff(): w}))
    return point, me.Particle("body", point, mass)


def model_of(coordinates, speeds, bodies, loads, **options):
    kinematics = [u - q.diff(t) for q, u in zip(coordinates, speeds, strict=True)]
    return kg.Model(
        name="particle",
        frame=N,
        coordinates=coordinates,
        speeds=speeds,
        kinematics=kinematics,
        bodies=bodies,
        loads=loads,
        **options,
    )


def sliding(force, mass=1e-9, **options):
    """A particle on a line with one force."""
    point, body = particle(x * N.x, mass)
    return model_of([x], [v], [body], [(point, force * N.x)], **options)


def planar(forces, mass, **options):
    point, body = particle(x * N.x + y * N.y, mass)
    loads = [(point, forces[0] * N.x + forces[1] * N.y)]
    return model_of([x, y], [v, w], [body], loads, **options)


# -- linear models -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("force", [1e-12, 1.0, 1e9])
def test_closed_loops_beside_the_kink_of_a_small_law(force):
    law = sm.Max(-force, sm.Min(force, -force * x - force * v / 10))
    solver = kg.build(sliding(F, mass=force, inputs=[kg.Input(F, law=law)]), functions=ANALYSIS)
    linear = solver.linearize(0.0, [0.5], [0.0], closed_loop=True)
    np.testing.assert_allclose(linear.A, [[0.0, 1.0], [-1.0, -0.1]], atol=1e-12)
    with pytest.raises(SolveError, match="kink"):
        solver.linearize(0.0, [1.0], [0.0], closed_loop=True)


@pytest.mark.parametrize("acceleration", [1e-9, 1.0, 1e9])
def test_a_body_that_accelerates_slowly_is_not_steady(acceleration):
    solver = kg.build(sliding(acceleration * (1 + sm.cos(x)), mass=1), functions=ANALYSIS)
    assert not solver.linearize(0.0, [0.0], [0.0]).steady
    assert solver.linearize(0.0, [np.pi], [0.0]).steady


@pytest.mark.parametrize("length", [1e-9, 1.0, 1e9])
def test_steady_with_lengths_in_any_unit(length):
    """A spring whose relaxed length is the only length."""
    solver = kg.build(sliding(-(x - length), mass=1), functions=ANALYSIS)
    assert solver.linearize(0.0, [length], [0.0]).steady
    assert not solver.linearize(0.0, [0.9 * length], [0.0]).steady


def test_the_equilibrium_at_zero_is_steady():
    """Newton's method ends at rounding errors of zero, which are no deviation."""
    solver = kg.build(sliding(-sm.sin(x), mass=1), functions=ANALYSIS)
    found = solver.equilibrium([0.3])
    assert found["x"] == 0.0
    assert found.linear.steady


def test_a_slow_pendulum_beside_a_stiff_spring_is_not_ignorable():
    """1 rad/s beside 1e8 rad/s."""
    solver = kg.build(planar((-sm.sin(x), -1e16 * y), 1), functions=ANALYSIS)
    linear = solver.linearize(0.0, [0.0, 0.0], [0.0, 0.0])
    assert linear.without_ignorable().states == ("x", "y", "v", "w")


def test_roundings_do_not_hide_an_ignorable_coordinate():
    """A force that is the same everywhere, written so that its slope is a rounding error."""
    force = sm.sin(x) ** 2 + sm.cos(x) ** 2 - (sm.sin(x + y) ** 2 + sm.cos(x + y) ** 2) - 4 * y
    solver = kg.build(planar((force, -3 * y), 1), functions=ANALYSIS)
    linear = solver.linearize(0.0, [0.3, 0.0], [0.0, 0.0])
    assert linear.without_ignorable().coordinates == ("y",)


# -- equilibria ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-9, 1.0, 1e9])
def test_forces_that_depend_on_time_are_refused_whatever_the_unit_of_time(rate):
    """Cycles of 1 GHz repeat after 1 s; those of 1 nHz hardly change in 1 s."""
    drive = sm.sin(2 * sm.pi * rate * t) / 10
    solver = kg.build(sliding(rate**2 * (1 - x + drive), mass=1), functions=ANALYSIS)
    with pytest.raises(SolveError, match="depend on time"):
        solver.equilibrium([0.5])
    late = sm.Piecewise((0, t < 20 / rate), (1, True))
    solver = kg.build(sliding(rate**2 * (1 - x + late), mass=1), functions=ANALYSIS)
    assert solver.equilibrium([0.5])["x"] == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("length", [1e-9, 1e-3, 1.0, 1e3, 1e6])
def test_differences_over_any_length(length):
    """Gravity that decreases with the height, from zero: built without Jacobians."""
    solver = kg.build(sliding(1 - (1 + x / length) ** -2, mass=1), functions=("rhs", "residuals"))
    found = solver.equilibrium([0.0], fixed=["x"])
    slope = 2 / length
    np.testing.assert_allclose(found.linear.A, [[0.0, 1.0], [slope, 0.0]], rtol=1e-8, atol=0.0)


# -- inverse dynamics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_motion_that_no_control_drives_is_infeasible(size):
    """The force acts along x, and the body accelerates along y."""
    solver = kg.build(planar((F, 0), size, inputs=[kg.Input(F)]))
    times = np.linspace(0.0, 1.0, 5)
    driven = solver.inverse_dynamics({x: t**2, y: 0 * t}, times)
    assert driven.feasible.all()
    assert not solver.inverse_dynamics({x: t**2, y: t**2 / 1000}, times).feasible.any()
    assert not solver.inverse_dynamics({x: 0 * t, y: t**2 / 1000}, times).feasible.any()


def test_a_motion_between_large_forces_is_feasible():
    """Forces that balance each other but for rounding, and controls that are zero."""
    solver = kg.build(planar((F, 1e9 * sm.cos(y) ** 2 + 1e9 * sm.sin(y) ** 2 - 1e9), 1, inputs=[kg.Input(F)]))
    driven = solver.inverse_dynamics({x: 0 * t, y: t}, np.linspace(0.1, 1.0, 5))
    assert driven.feasible.all()


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_a_path_off_its_constraint_is_refused_in_any_unit(length):
    model = planar((F, 0), 1, inputs=[kg.Input(F)], holonomic_constraints=[x**2 + y**2 - length**2])
    solver = kg.build(model)
    circle = {x: length * sm.cos(t), y: length * sm.sin(t)}
    times = np.linspace(0.1, 1.0, 5)
    assert solver.inverse_dynamics(circle, times).feasible.all()
    with pytest.raises(SolveError, match="violates"):
        solver.inverse_dynamics({x: 1.1 * circle[x], y: 1.1 * circle[y]}, times)


# -- controls ------------------------------------------------------------------------------------------------


def accelerated(unit):
    """A body of mass ``unit`` with the velocity t, by control constraints; the force is then ``unit``."""
    control = kg.ControlConstraints([v - t], controls=[F])
    return kg.build(sliding(F, mass=unit, inputs=[kg.Input(F)], control=control))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_wrong_control_at_the_start_is_refused_in_any_unit(unit):
    solver = accelerated(unit)
    np.testing.assert_allclose(solver.consistent_controls(0.0, [0.0], [0.0]), [unit], rtol=1e-15)
    run = solver.integrate((0, 1), [0.0], [0.0], control=True, tau0=[unit], rtol=1e-10)
    np.testing.assert_allclose(run.u[:, 0], run.t, rtol=0.0, atol=1e-9)
    with pytest.raises(SolveError, match="violates 1 control constraint"):
        solver.integrate((0, 1), [0.0], [0.0], control=True, tau0=[1.001 * unit])


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_controls_that_contradict_each_other_are_refused_in_any_unit(unit):
    control = kg.ControlConstraints([F - unit, F - 2 * unit], controls=[F])
    solver = kg.build(sliding(F, inputs=[kg.Input(F)], control=control))
    with pytest.raises(SolveError, match="no controls satisfy"):
        solver.consistent_controls(0.0, [0.0], [0.0])


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_control_constraints_times_a_factor(factor):
    control = kg.ControlConstraints([F - 2, factor * (G - 3)], controls=[F, G])
    solver = kg.build(planar((F, G), 1, inputs=[kg.Input(F), kg.Input(G)], control=control))
    np.testing.assert_allclose(solver.consistent_controls(0.0, [0.0] * 2, [0.0] * 2), [2.0, 3.0], rtol=1e-15)
