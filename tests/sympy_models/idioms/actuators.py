"""Actuators of sympy.physics.mechanics and their pathways, whose to_loads() become the loads of a KanesMethod."""

from __future__ import annotations

from sympy import symbols
from sympy.physics.mechanics import (
    CoulombKineticFriction,
    DuffingSpring,
    ForceActuator,
    KanesMethod,
    LinearDamper,
    LinearPathway,
    LinearSpring,
    ObstacleSetPathway,
    Particle,
    PinJoint,
    Point,
    ReferenceFrame,
    RigidBody,
    TorqueActuator,
    WrappingCylinder,
    WrappingPathway,
    WrappingSphere,
    dynamicsymbols,
    inertia,
)

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, k, c, r = symbols("m g l k c r", positive=True)


def slider(force):
    """A block on a line with the loads of actuators along the line from the origin."""
    q, u = dynamicsymbols("q u")
    N, O, P = ReferenceFrame("N"), Point("O"), Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, q * N.x)
    km = KanesMethod(N, (q,), (u,), kd_eqs=(q.diff(t) - u,))
    km.kanes_equations([Particle("block", P, m)], force(LinearPathway(O, P)))
    return km


@idiom()
def spring_and_damper():
    """LinearSpring with an equilibrium length and LinearDamper on a LinearPathway."""
    return slider(lambda path: LinearSpring(k, path, l).to_loads() + LinearDamper(c, path).to_loads())


@idiom()
def duffing_spring():
    """DuffingSpring."""
    return slider(lambda path: DuffingSpring(k, symbols("beta"), path, l).to_loads())


@idiom()
def coulomb_friction():
    """CoulombKineticFriction with Stribeck and viscous parts, as in its documentation."""
    mu_k, mu_s, v_s, sigma = symbols("mu_k mu_s v_s sigma")
    return slider(
        lambda path: (
            CoulombKineticFriction(mu_k, m * g, path, v_s=v_s, sigma=sigma, mu_s=mu_s).to_loads()
            + LinearSpring(k, path).to_loads()
        )
    )


@idiom()
def plain_coulomb_friction():
    """CoulombKineticFriction by its first three arguments alone."""
    return slider(lambda path: CoulombKineticFriction(symbols("mu_k"), symbols("f_n"), path).to_loads())


@idiom()
def force_actuator():
    """ForceActuator whose force is a specified function of time."""
    return slider(lambda path: ForceActuator(dynamicsymbols("F"), path).to_loads())


@idiom()
def spring_in_space():
    """A spring and a damper between two particles that both move in the plane."""
    q, u = dynamicsymbols("x1 y1 x2 y2"), dynamicsymbols("u1 v1 u2 v2")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    A = O.locatenew("A", q[0] * N.x + q[1] * N.y)
    B = O.locatenew("B", q[2] * N.x + q[3] * N.y + l * N.x)
    A.set_vel(N, u[0] * N.x + u[1] * N.y)
    B.set_vel(N, u[2] * N.x + u[3] * N.y)
    path = LinearPathway(A, B)
    km = KanesMethod(N, q, u, kd_eqs=[x.diff(t) - v for x, v in zip(q, u, strict=True)])
    loads = LinearSpring(k, path, l).to_loads() + LinearDamper(c, path).to_loads()
    km.kanes_equations([Particle("a", A, m), Particle("b", B, 2 * m)], loads)
    return km


def lever(loads):
    """A rod about the z axis; ``loads(N, O, B)`` are added to its weight."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q, N.z])
    B.set_ang_vel(N, u * N.z)
    C = O.locatenew("C", l * B.x)
    C.v2pt_theory(O, N, B)
    rod = RigidBody("rod", C, B, m, (inertia(B, 0, m * l**2 / 12, m * l**2 / 12), C))
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([rod], [(C, -m * g * N.y), *loads(N, O, B)])
    return km


@idiom()
def obstacle_set():
    """A cable over two obstacles on an ObstacleSetPathway."""

    def loads(N, O, B):
        anchor, first, second = (O.locatenew(f"A{i}", i * l * N.x + 2 * l * N.y) for i in range(3))
        end = O.locatenew("E", 2 * l * B.x)
        return LinearSpring(k, ObstacleSetPathway(anchor, first, second, end)).to_loads()

    return lever(loads)


@idiom()
def wrapping_cylinder():
    """A cable that wraps around a cylinder, as in the documentation of WrappingPathway."""

    def loads(N, O, B):
        start, end = O.locatenew("A", r * N.x), O.locatenew("E", r * B.x)
        path = WrappingPathway(start, end, WrappingCylinder(r, O, N.z))
        return LinearSpring(k, path, l).to_loads()

    return lever(loads)


@idiom()
def wrapping_sphere():
    """A cable that wraps around a sphere; one end moves on it with the rod."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q, N.z])
    start = O.locatenew("A", r * N.x)
    end = O.locatenew("E", r * B.x)
    path = WrappingPathway(start, end, WrappingSphere(r, O))
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("end", end, m)], ForceActuator(-k * path.length, path).to_loads())
    return km


@idiom()
def torque_actuator():
    """TorqueActuator between a frame and the inertial one."""
    return lever(lambda N, O, B: TorqueActuator(-k * dynamicsymbols("q"), N.z, B, N).to_loads())


@idiom()
def torque_at_pin_joint():
    """TorqueActuator.at_pin_joint, with bodies and a joint made for it, in a KanesMethod by hand."""
    N, A = ReferenceFrame("N"), ReferenceFrame("A")
    parent, child = RigidBody("parent", frame=N), RigidBody("child", frame=A)
    parent.masscenter.set_vel(N, 0)
    q, u = dynamicsymbols("q u")
    joint = PinJoint("pin", parent, child, q, u, parent_point=l * N.x, child_point=-l * A.x, joint_axis=N.z)
    motor = TorqueActuator.at_pin_joint(dynamicsymbols("T"), joint)
    km = KanesMethod(N, [q], [u], kd_eqs=joint.kdes, bodies=[child], forcelist=motor.to_loads())
    km.kanes_equations()
    return km
