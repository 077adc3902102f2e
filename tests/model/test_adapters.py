"""Models read from SymPy's KanesMethod and System."""

from __future__ import annotations

import pytest
import sympy as sm
from messages import raises, warns
from sympy.physics import mechanics as me
from tolerances import PROJECTED

from kanegen import build, derive
from kanegen.errors import ModelError, ModelWarning
from kanegen.model import Model, Projection
from kanegen.model.expressions import symbol_name

t = me.dynamicsymbols._t


def planar_particle():
    """A particle in the plane, not yet constrained."""
    q, u = me.dynamicsymbols("x y"), me.dynamicsymbols("v_x v_y")
    m, l = sm.symbols("m l")
    N, P = me.ReferenceFrame("N"), me.Point("P")
    P.set_vel(N, u[0] * N.x + u[1] * N.y)
    kinematics = [a.diff(t) - b for a, b in zip(q, u, strict=True)]
    return q, u, m, l, N, P, kinematics


def kane(**constraints):
    q, u, m, l, N, P, kinematics = planar_particle()
    phi = q[0] ** 2 + q[1] ** 2 - l**2
    method = me.KanesMethod(
        N,
        q_ind=[q[0]],
        q_dependent=[q[1]],
        u_ind=[u[0]] if "velocity_constraints" in constraints else u,
        u_dependent=[u[1]] if "velocity_constraints" in constraints else None,
        kd_eqs=kinematics,
        configuration_constraints=[phi],
        bodies=[me.Particle("P", P, m)],
        forcelist=[(P, 9.81 * m * N.y)],
        **constraints,
    )
    return method, phi


def test_configuration_constraints_that_the_velocity_constraints_keep_add_no_rows():
    q, u, *_ = planar_particle()
    scaled = (q[0] * u[0] + q[1] * u[1]) * sm.sin(q[0] + 2)
    method, phi = kane(velocity_constraints=[scaled])
    model = Model.from_kane(method, name="pendulum")
    assert model.name == "pendulum"
    assert model.implied_constraints == (phi,)
    assert model.holonomic_constraints == ()
    assert len(model.nonholonomic_constraints) == 1
    assert model.acceleration_constraints == ()
    assert [symbol_name(x) for x in model.coordinates] == ["x", "y"]
    assert [symbol_name(x) for x in model.dependent_speeds or ()] == ["v_y"]


def test_rates_follow_on_the_manifold_in_rank_and_as_combinations():
    """Two positions whose rates are combinations of the velocity constraints, one of them on the manifold only."""
    x, y, z, ux, uy, uz = me.dynamicsymbols("x y z ux uy uz")
    N, P = me.ReferenceFrame("N"), me.Point("P")
    P.set_vel(N, ux * N.x + uy * N.y + uz * N.z)
    sphere, cone = x**2 + y**2 + z**2 - 1, z - sm.sqrt(x**2 + y**2)
    rates = [phi.diff(t).subs({x.diff(t): ux, y.diff(t): uy, z.diff(t): uz}) for phi in (sphere, cone)]
    rows = [rates[0] + 3 * rates[1], rates[0] - sm.cos(x) * rates[1] + sphere * ux]
    method = me.KanesMethod(
        N,
        [x],
        [ux],
        [x.diff(t) - ux, y.diff(t) - uy, z.diff(t) - uz],
        q_dependent=[y, z],
        configuration_constraints=[sphere, cone],
        u_dependent=[uy, uz],
        velocity_constraints=rows,
        bodies=[me.Particle("P", P, 1)],
    )
    model = Model.from_kane(method)
    assert model.implied_constraints == (sphere, cone)
    assert derive(model).J.shape == (2, 3)


def test_configuration_constraints_that_are_not_kept_are_refused_with_two_ways_out():
    q, u, *_ = planar_particle()
    method, phi = kane(velocity_constraints=[q[0] * u[0] + 2 * q[1] * u[1]])
    with raises(ModelError, "0", "x(t)**2", "'enforce'", "'ignore'"):
        Model.from_kane(method)
    enforced = Model.from_kane(method, configuration_constraints="enforce")
    assert enforced.holonomic_constraints == (phi,)
    assert enforced.dependent_speeds is None
    ignored = Model.from_kane(method, configuration_constraints="ignore")
    assert ignored.holonomic_constraints == ignored.implied_constraints == ()
    for model in (enforced, ignored):
        assert len(model.nonholonomic_constraints) == 1
        assert sm.expand(model.nonholonomic_constraints[0] - q[0] * u[0] - 2 * q[1] * u[1]) == 0
    with raises(ModelError, "configuration_constraints", "'drop'", "'enforce'", "'ignore'"):
        Model.from_kane(method, configuration_constraints="drop")


def test_configuration_constraints_alone_are_enforced_with_a_warning():
    method, phi = kane()
    with warns(ModelWarning, "velocity constraints") as caught:
        model = Model.from_kane(method)
    assert caught[0].filename == __file__
    assert model.holonomic_constraints == (phi,)
    assert model.nonholonomic_constraints == ()
    assert model.dependent_speeds is None
    assert Model.from_kane(method, configuration_constraints="enforce").holonomic_constraints == (phi,)
    assert Model.from_kane(method, configuration_constraints="ignore").holonomic_constraints == ()


def test_implied_constraints_are_projected_and_add_no_rows():
    """A pendulum with its rod as a velocity constraint drifts; projection keeps the length, which J does not hold."""
    q, u, *_ = planar_particle()
    method, _ = kane(velocity_constraints=[q[0] * u[0] + q[1] * u[1]])
    solver = build(Model.from_kane(method, parameters={"l": 1.0, "m": 2.0}))
    assert solver.J(0.0, [0.6, 0.8], [0.0, 0.0]).shape == (1, 2)
    assert solver.residuals(0.0, [0.6, 0.9], [0.0, 0.0])[0] == pytest.approx([0.36 + 0.81 - 1.0])
    start, rest = solver.make_consistent(0.0, [0.6, 0.9], [0.1, 0.2])
    assert solver.residuals(0.0, start, rest)[0] == pytest.approx([0.0], abs=1e-13)
    loose = {"rtol": 1e-4, "atol": 1e-4}
    drifts = []
    for each in (solver, solver.with_stabilization(Projection())):
        solution = each.integrate((0.0, 20.0), start, rest, **loose)
        states = zip(solution.t, solution.q, solution.u, strict=True)
        drifts.append(max(abs(solver.residuals(*state)[0][0]) for state in states))
    assert drifts[0] > 1e-4
    assert drifts[1] < PROJECTED


def test_acceleration_constraints_that_are_derivatives_are_not_added():
    q, u, *_ = planar_particle()
    row = q[0] * u[0] + q[1] * u[1]
    method, _ = kane(velocity_constraints=[row], acceleration_constraints=[row.diff(t)])
    assert Model.from_kane(method).acceleration_constraints == ()


def test_acceleration_constraints_at_odds_with_velocity_constraints():
    q, u, *_ = planar_particle()
    row = q[0] * u[0] + q[1] * u[1]
    method, _ = kane(velocity_constraints=[row], acceleration_constraints=[row.diff(t) + 5 * row])
    with raises(ModelError, "acceleration constraint", "0", "kg.Baumgarte"):
        Model.from_kane(method)


def test_general_kinematics_are_kept():
    q, u = me.dynamicsymbols("q"), me.dynamicsymbols("u")
    N, P = me.ReferenceFrame("N"), me.Point("P")
    P.set_vel(N, u * N.x)
    method = me.KanesMethod(N, [q], [u], kd_eqs=[(2 + sm.cos(q)) * q.diff(t) - 3 * u + sm.sin(t)])
    model = Model.from_kane(method, bodies=[me.Particle("P", P, sm.Symbol("m"))], loads=[(P, -q * N.x)])
    expected = (2 + sm.cos(q)) * q.diff(t) - 3 * u + sm.sin(t)
    assert sm.expand(model.kinematics[0] - expected) == 0
    assert len(model.loads) == 1


def test_other_dynamic_symbols_become_inputs_with_the_rates_they_need():
    q, u, f, r = me.dynamicsymbols("q u f r")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", (q + r) * N.x)
    P.set_vel(N, P.pos_from(O).dt(N))
    method = me.KanesMethod(
        N, [q], [u], kd_eqs=[q.diff(t) - u], bodies=[me.Particle("P", P, 1)], forcelist=[(P, f * N.x)]
    )
    model = Model.from_kane(method)
    assert [item.name for item in model.inputs] == ["f", "r", "r_dot", "r_ddot"]
    assert symbol_name(model.inputs[1].rate) == "r_dot"
    assert symbol_name(model.inputs[1].acceleration) == "r_ddot"
    assert symbol_name(model.inputs[2].rate) == "r_ddot"


def test_auxiliary_speeds_are_recorded():
    q, u, a = me.dynamicsymbols("q u a")
    N, P = me.ReferenceFrame("N"), me.Point("P")
    P.set_vel(N, u * N.x + a * N.y)
    method = me.KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u], u_auxiliary=[a], bodies=[me.Particle("P", P, 1)])
    model = Model.from_kane(method)
    assert model.auxiliary_speeds == (a,)
    assert model.speeds == (u,)
    assert model.inputs == ()


def test_something_else_is_refused():
    with raises(ModelError, "sympy.physics.mechanics.KanesMethod"):
        Model.from_kane(object())
    with raises(ModelError, "sympy.physics.mechanics.System"):
        Model.from_system(object())


def test_system_with_joint_gravity_and_actuator():
    wall, bob = me.RigidBody("W"), me.RigidBody("B")
    q, u = me.dynamicsymbols("q u")
    k, g, l = sm.symbols("k g l")
    system = me.System.from_newtonian(wall)
    joint = me.PinJoint("pin", wall, bob, q, u, child_point=l * bob.frame.y, joint_axis=wall.frame.z)
    system.add_joints(joint)
    system.apply_uniform_gravity(-g * system.y)
    system.add_actuators(me.TorqueActuator(-k * q, wall.z, bob, wall))
    model = Model.from_system(system, parameters={g: 9.81})
    assert model.coordinates == (q,)
    assert model.speeds == (u,)
    assert [body.name for body in model.bodies] == ["W", "B"]
    assert {str(p) for p in model.parameters} == {"g", "k", "l", "B_mass", *(f"B_i{a}{b}" for a, b in AXES)}
    assert len(model.loads) == 4
    assert next(iter(model.parameters.values())) == 9.81


AXES = ("xx", "yy", "zz", "xy", "yz", "zx")


def test_system_constraints():
    q, u, m, l, N, P, kinematics = planar_particle()
    origin = me.Point("O")
    origin.set_vel(N, 0)
    system = me.System(N, origin)
    system.add_coordinates(*q)
    system.add_speeds(u[0])
    system.add_speeds(u[1], independent=False)
    system.add_kdes(*kinematics)
    system.add_bodies(me.Particle("P", P, m))
    phi = q[0] ** 2 + q[1] ** 2 - l**2
    system.add_holonomic_constraints(phi)
    model = Model.from_system(system)
    assert model.holonomic_constraints == (phi,)
    assert model.dependent_speeds == (u[1],)
    system.velocity_constraints = [q[0] * u[0] + q[1] * u[1]]
    model = Model.from_system(system)
    assert model.implied_constraints == (phi,)
    assert len(model.nonholonomic_constraints) == 1
    system.velocity_constraints = [u[0] - q[1] * u[1]]
    with raises(ModelError, "configuration constraint", "0", "System"):
        Model.from_system(system)
    assert len(Model.from_system(system, configuration_constraints="ignore").nonholonomic_constraints) == 1
