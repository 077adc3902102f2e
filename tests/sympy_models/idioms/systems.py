"""System and what stands beside it: constraints, actuators, auxiliary speeds, sample models, JointsMethod, Body."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

from sympy import cos, sin, symbols
from sympy.physics.mechanics import (
    Body,
    Force,
    JointsMethod,
    LinearDamper,
    LinearPathway,
    LinearSpring,
    Particle,
    PinJoint,
    PlanarJoint,
    Point,
    PrismaticJoint,
    ReferenceFrame,
    RigidBody,
    System,
    TorqueActuator,
    dynamicsymbols,
)
from sympy.physics.mechanics.models import multi_mass_spring_damper, n_link_pendulum_on_cart
from sympy.utilities.exceptions import SymPyDeprecationWarning

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, k, c = symbols("m g l k c", positive=True)


@contextmanager
def deprecated():
    """SymPy's deprecated classes, still in use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SymPyDeprecationWarning)
        yield


def cart_pendulum():
    """The system of the documentation of System."""
    mc, mp = symbols("mc mp", positive=True)
    F, qp, qc, up, uc = dynamicsymbols("F qp qc up uc")
    rail, cart, bob = RigidBody("rail"), RigidBody("cart", mass=mc), Particle("bob", mass=mp)
    bob_frame = ReferenceFrame("bob_frame")
    system = System.from_newtonian(rail)
    system.add_joints(
        PrismaticJoint("slider", rail, cart, qc, uc, joint_axis=rail.x),
        PinJoint("pin", cart, bob, qp, up, joint_axis=cart.z, child_interframe=bob_frame, child_point=l * bob_frame.y),
    )
    system.apply_uniform_gravity(-g * system.y)
    system.add_loads((cart.masscenter, F * rail.x))
    system.add_actuators(TorqueActuator(k * qp, cart.z, bob_frame, cart))
    return system, bob, (qp, qc, up, uc)


@idiom()
def documented_system():
    """The cart with a pendulum of the documentation, with a load, an actuator and uniform gravity."""
    return cart_pendulum()[0]


@idiom()
def system_with_holonomic_constraint():
    """The same with a holonomic constraint; System makes the velocity row itself."""
    system, bob, (qp, qc, up, uc) = cart_pendulum()
    system.add_holonomic_constraints(bob.masscenter.pos_from(system.fixed_point).dot(system.x))
    system.q_ind, system.q_dep = qp, qc
    system.u_ind, system.u_dep = up, uc
    return system


@idiom()
def system_with_velocity_constraints():
    """The same with velocity_constraints set by the user to a scaled form of the rate."""
    system, bob, (qp, qc, up, uc) = cart_pendulum()
    system.add_holonomic_constraints(bob.masscenter.pos_from(system.fixed_point).dot(system.x))
    system.q_ind, system.q_dep = qp, qc
    system.u_ind, system.u_dep = up, uc
    system.velocity_constraints = [2 * uc + 2 * l * cos(qp) * up]
    return system


@idiom()
def system_with_nonholonomic_constraint():
    """A skate as a System: PlanarJoint, and a nonholonomic constraint."""
    ground, skate = RigidBody("G"), RigidBody("S")
    q, x, y, w, u, v = dynamicsymbols("q x y w u v")
    system = System.from_newtonian(ground)
    system.add_joints(PlanarJoint("ice", ground, skate, q, [x, y], w, [u, v]))
    system.add_nonholonomic_constraints(skate.masscenter.vel(ground.frame).dot(skate.z))
    system.u_ind, system.u_dep = [w, u], [v]
    system.add_loads(Force(skate, -k * x * ground.y))
    return system


@idiom()
def system_with_both_constraints():
    """A holonomic and a nonholonomic constraint together, added by hand to bodies without joints."""
    q, u = dynamicsymbols("x y z"), dynamicsymbols("u v w")
    system = System()
    P = Particle("P", mass=m)
    P.masscenter.set_pos(system.fixed_point, q[0] * system.x + q[1] * system.y + q[2] * system.z)
    P.masscenter.set_vel(system.frame, u[0] * system.x + u[1] * system.y + u[2] * system.z)
    system.add_bodies(P)
    system.add_coordinates(q[0], q[1])
    system.add_coordinates(q[2], independent=False)
    system.add_speeds(u[0])
    system.add_speeds(u[1], u[2], independent=False)
    system.add_kdes(*(x.diff(t) - v for x, v in zip(q, u, strict=True)))
    system.add_holonomic_constraints(q[2] - q[0] ** 2 - q[1] ** 2)
    system.add_nonholonomic_constraints(u[1] - sin(q[0]) * u[0])
    system.apply_uniform_gravity(-g * system.z)
    return system


@idiom()
def system_with_actuators():
    """Springs and dampers between bodies of a System, added as actuators."""
    ground, first, second = RigidBody("G"), RigidBody("A", mass=m), RigidBody("B", mass=2 * m)
    system = System.from_newtonian(ground)
    system.add_joints(
        PrismaticJoint("one", ground, first, joint_axis=ground.x, parent_point=l * ground.x),
        PrismaticJoint("two", first, second, joint_axis=first.x, parent_point=l * first.x),
    )
    path = LinearPathway(first.masscenter, second.masscenter)
    system.add_actuators(
        LinearSpring(k, path, l), LinearDamper(c, path),
        LinearSpring(2 * k, LinearPathway(ground.masscenter, first.masscenter), l),
    )  # fmt: skip
    return system


@idiom()
def system_with_auxiliary_speed():
    """SymPy's box on the ground: an auxiliary speed for the normal force."""
    mu = symbols("mu")
    q, u, ua = dynamicsymbols("q u ua")
    N, F = dynamicsymbols("N F", positive=True)
    P = Particle("P", mass=m)
    system = System()
    system.add_bodies(P)
    P.masscenter.set_pos(system.fixed_point, q * system.x)
    P.masscenter.set_vel(system.frame, u * system.x + ua * system.y)
    system.q_ind, system.u_ind, system.u_aux = [q], [u], [ua]
    system.kdes = [q.diff(t) - u]
    system.apply_uniform_gravity(-g * system.y)
    system.add_loads(Force(P, N * system.y), Force(P, F * system.x - mu * N * system.x))
    return system


@idiom()
def system_in_a_given_frame():
    """System(frame, fixed_point) with a frame and an origin of the user."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    B = N.orientnew("B", "Axis", [q, N.z])
    system = System(frame=N, fixed_point=O)
    body = RigidBody("B", frame=B, mass=m)
    body.masscenter.set_pos(O, l * B.x)
    system.add_bodies(body)
    system.q_ind, system.u_ind, system.kdes = [q], [u], [q.diff(t) - u]
    system.apply_uniform_gravity(-g * N.y)
    return system


@idiom()
def sample_pendulum_on_cart():
    """models.n_link_pendulum_on_cart, with joint torques."""
    return n_link_pendulum_on_cart(3, cart_force=True, joint_torques=True)


@idiom()
def sample_spring_damper():
    """models.multi_mass_spring_damper, with gravity and external forces."""
    return multi_mass_spring_damper(3, apply_gravity=True, apply_external_forces=True)


@idiom()
def joints_method():
    """JointsMethod, deprecated and still in use."""
    ground, first, second = RigidBody("G"), RigidBody("A"), Particle("P", mass=m)
    frame = ReferenceFrame("frame")
    pins = [
        PinJoint("one", ground, first, child_point=-l * first.x, joint_axis=ground.z),
        PinJoint(
            "two",
            first,
            second,
            parent_point=l * first.x,
            child_interframe=frame,
            child_point=-l * frame.x,
            joint_axis=first.z,
        ),
    ]
    with deprecated():
        method = JointsMethod(ground, *pins)
        method.loads.append((second.masscenter, m * g * ground.x))
        method.form_eoms()
    return method.method


@idiom()
def deprecated_bodies():
    """SymPy's deprecated Body, whose forces are applied by apply_force, in a JointsMethod."""
    with deprecated():
        wall, first, second = Body("W"), Body("A", mass=m), Body("B", mass=m)
        slides = [PrismaticJoint("one", wall, first), PrismaticJoint("two", first, second)]
        q1, q2 = slides[0].coordinates[0], slides[1].coordinates[0]
        wall.apply_force(k * q1 * wall.x, reaction_body=first)
        first.apply_force(c * q2.diff(t) * wall.x, reaction_body=second)
        method = JointsMethod(wall, *slides)
        method.form_eoms()
    return method.method
