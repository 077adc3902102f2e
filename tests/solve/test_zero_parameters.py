"""Zero masses as parameter values: legal where the equations do not divide by them, refused by name where they do."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from tolerances import EVALUATION

import kanegen as kg

TIME = me.dynamicsymbols._t


@pytest.fixture(scope="module")
def cart_with_bob() -> kg.Solver:
    """A cart of mass M on a line with a second mass m fixed to it, and a free third mass k beside."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    M, m, k, F = sm.symbols("M m k F")
    inertial = me.ReferenceFrame("N")
    origin = me.Point("O")
    origin.set_vel(inertial, 0)
    cart, other = origin.locatenew("cart", x * inertial.x), origin.locatenew("other", y * inertial.x)
    bodies = [me.Particle("A", cart, M), me.Particle("B", cart, m), me.Particle("C", other, k)]
    model = kg.Model(
        name="cart with bob",
        frame=inertial,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff(TIME) - u, y.diff(TIME) - v],
        bodies=bodies,
        loads=[(cart, F * inertial.x), (other, F * inertial.x)],
    )
    return kg.build(model, functions=["rhs", "Q"])


def test_a_zero_mass_that_is_not_divided_by(cart_with_bob: kg.Solver) -> None:
    solver = cart_with_bob.with_parameters({"M": 2.0, "m": 0.0, "k": 1.0, "F": 3.0})
    assert np.allclose(solver.rhs(0.0, [0.0, 0.0], [0.0, 0.0])[1], [1.5, 3.0], rtol=EVALUATION)


def test_a_zero_mass_that_leaves_a_speed_without_inertia(cart_with_bob: kg.Solver) -> None:
    solver = cart_with_bob.with_parameters({"M": 2.0, "m": 1.0, "k": 0.0, "F": 3.0})
    refusal = ("rhs", "zero", "k")
    with raises(kg.SolveError, *refusal):
        solver.rhs(0.0, [0.0, 0.0], [0.0, 0.0])
    with raises(kg.SolveError, *refusal):
        solver.integrate((0.0, 1.0), [0.0, 0.0], [0.0, 0.0])
    np.testing.assert_array_equal(solver.Q(0.0, [0.0, 0.0], [0.0, 0.0]), [[3.0, 0.0], [0.0, 0.0]])
    assert solver.with_parameters(k=1.0).rhs(0.0, [0.0, 0.0], [0.0, 0.0])[1][1] == 3.0


def test_a_negative_mass_at_run_time(cart_with_bob: kg.Solver) -> None:
    solver = cart_with_bob.with_parameters({"M": -2.0, "m": 1.0, "k": 1.0, "F": 3.0})
    with raises(kg.SolveError, "mass"):
        solver.rhs(0.0, [0.0, 0.0], [0.0, 0.0])


def test_a_function_asks_only_for_the_parameters_and_inputs_that_it_reads() -> None:
    """A planar pendulum with a torque: its energy needs no torque, its motion no third moment of inertia."""
    q, u, torque = me.dynamicsymbols("q u torque")
    m, length, g, Ixx, Iyy, Izz = sm.symbols("m l g Ixx Iyy Izz")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q)
    center = O.locatenew("C", length * A.x)
    body = me.RigidBody("rod", center, A, m, (me.inertia(A, Ixx, Iyy, Izz), center))
    model = kg.Model(
        name="driven rod",
        frame=N,
        coordinates=(q,),
        speeds=(u,),
        kinematics=(u - q.diff(),),
        bodies=(body,),
        loads=((A, torque * N.z),),
        gravity=-g * N.y,
        inputs=(torque,),
        parameters={Izz: 1.75, m: 1.0, length: 0.5},
    )
    solver = kg.build(model)
    assert solver.kinetic_energy(0.0, [0.1], [3.0]) == pytest.approx(9.0)
    with raises(kg.SolveError, "g"):
        solver.rhs(0.0, [0.1], [3.0], r=[1.0])
    heavy = solver.with_parameters(g=10.0)
    with raises(kg.SolveError, "torque"):
        heavy.rhs(0.0, [0.1], [3.0])
    assert heavy.energy(0.0, [0.0], [3.0]) == pytest.approx(9.0)
    assert heavy.rhs(0.0, [0.0], [3.0], r=[1.0])[1] == pytest.approx([(1.0 - 5.0) / 2.0])
    assert set(heavy.parameters) == {"Ixx", "Iyy", "Izz", "g", "l", "m"}
