"""Loads: tuples and objects, where and when they are given, and what they may depend on."""

from __future__ import annotations

from sympy import Abs, Heaviside, Max, Min, Piecewise, atan2, exp, sign, sin, sqrt, symbols, tanh
from sympy.physics.mechanics import (
    Force,
    KanesMethod,
    Particle,
    Point,
    ReferenceFrame,
    RigidBody,
    Torque,
    dynamicsymbols,
    inertia,
)
from sympy.physics.mechanics.loads import gravity

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, k, c = symbols("m g l k c", positive=True)


def plane():
    """A body in the plane: x, y, angle; its kinematics, and a point on its edge."""
    q, u = dynamicsymbols("x y theta"), dynamicsymbols("u v omega")
    N = ReferenceFrame("N")
    B = N.orientnew("B", "Axis", [q[2], N.z])
    B.set_ang_vel(N, u[2] * N.z)
    O = Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", q[0] * N.x + q[1] * N.y)
    C.set_vel(N, u[0] * N.x + u[1] * N.y)
    E = C.locatenew("E", l * B.x)
    E.v2pt_theory(C, N, B)
    body = RigidBody("body", C, B, m, (inertia(B, 0, 0, m * l**2), C))
    return N, O, B, C, E, body, q, u, [x.diff(t) - v for x, v in zip(q, u, strict=True)]


@idiom()
def tuples():
    """(point, force) and (frame, torque) pairs, several on one point."""
    N, _O, B, C, E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [(C, -m * g * N.y), (E, -k * q[0] * B.y), (E, -c * E.vel(N)), (B, -c * u[2] * N.z)])
    return km


@idiom()
def load_objects():
    """Force and Torque objects."""
    N, _O, B, C, E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [Force(C, -m * g * N.y), Torque(B, -c * u[2] * N.z), Force(E, k * q[1] * N.x)])
    return km


@idiom()
def load_objects_on_bodies():
    """Force(body, ...) acts at the mass center, Torque(body, ...) on its frame."""
    N, _O, _B, _C, _E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [Force(body, -m * g * N.y), Torque(body, -c * u[2] * N.z)])
    return km


@idiom()
def given_at_construction():
    """bodies= and forcelist= at construction, kanes_equations() without arguments."""
    N, _O, _B, C, _E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd, bodies=[body], forcelist=[(C, -m * g * N.y)])
    km.kanes_equations()
    return km


@idiom()
def equations_not_formed():
    """bodies= and forcelist= at construction, and kanes_equations is never called."""
    N, _O, _B, C, E, body, q, u, kd = plane()
    return KanesMethod(N, q, u, kd_eqs=kd, bodies=(body,), forcelist=((C, -m * g * N.y), (E, k * N.x)))


@idiom()
def no_loads():
    """kanes_equations(bodies) without loads."""
    N, _O, _B, _C, _E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body])
    return km


@idiom()
def empty_list_of_loads():
    """kanes_equations(bodies, [])."""
    N, _O, _B, _C, E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body, Particle("weight", E, m)], [])
    return km


@idiom()
def gravity_helper():
    """The forces of gravity(acceleration, *bodies)."""
    N, _O, _B, _C, E, body, q, u, kd = plane()
    weight = Particle("weight", E, m / 3)
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body, weight], gravity(-g * N.y, body, weight))
    return km


@idiom()
def forces_with_rates():
    """Forces written in q' although speeds are used everywhere else."""
    N, _O, B, C, _E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [(C, -c * q[0].diff(t) * N.x), (B, -c * q[2].diff(t) ** 2 * N.z)])
    return km


@idiom()
def switching_forces():
    """Piecewise, Max, Min, Abs, sign and Heaviside in forces: stops, dry friction, drag."""
    N, _O, B, C, E, body, q, u, kd = plane()
    wall = Piecewise((-k * q[0], q[0] > 0), (0, True))
    drag = -c * Abs(u[1]) * u[1] - m * sign(u[0])
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations(
        [body],
        [(C, wall * N.x + drag * N.y), (E, Max(0, -k * q[1]) * N.y + Min(1, u[2]) * B.x), (B, Heaviside(q[2]) * N.z)],
    )
    return km


@idiom()
def smooth_functions():
    """exp, tanh, atan2 and sqrt in forces."""
    N, _O, B, C, _E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    force = -k * exp(-q[0]) * N.x - m * tanh(10 * u[1]) * N.y
    km.kanes_equations([body], [(C, force), (B, (atan2(q[1], q[0]) - sqrt(1 + u[2] ** 2)) * N.z)])
    return km


@idiom()
def force_along_a_line():
    """A spring along a normalized vector between points: pos.normalize() and pos.magnitude()."""
    N, O, _B, _C, E, body, q, u, kd = plane()
    line = E.pos_from(O)
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [(E, -k * (line.magnitude() - l) * line.normalize())])
    return km


@idiom()
def action_and_reaction():
    """Pairs of opposite loads, one half of each on the inertial frame or its origin, which cannot move."""
    N, O, B, _C, E, body, q, u, kd = plane()
    torque, force = -k * q[2] * N.z, -c * E.vel(N)
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [(B, torque), (N, -torque), (E, force), (O, -force)])
    return km


@idiom()
def zero_loads():
    """Loads that are zero: a Vector 0, and a force that vanishes because of its factor."""
    N, _O, B, C, E, body, q, u, kd = plane()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [(C, 0 * N.x), (E, sin(0) * k * N.y), (B, c * N.z)])
    return km


@idiom()
def load_on_a_point_of_no_body():
    """A load on a massless point that is located by the mass centers only."""
    N, _O, _B, C, _E, body, q, u, kd = plane()
    middle = C.locatenew("M", q[0] / 2 * N.x)
    middle.set_vel(N, 3 * u[0] / 2 * N.x + u[1] * N.y)
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], [(middle, -k * q[0] * N.x)])
    return km
