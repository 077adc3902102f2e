"""Inputs: specified functions of time, in loads, positions, angles and velocities."""

from __future__ import annotations

from sympy import cos, sin, symbols
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, dynamicsymbols

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, k = symbols("m g l k", positive=True)


def pendulum(N, support, loads=lambda P: []):
    """A pendulum below a support, by its position."""
    q, u = dynamicsymbols("q u")
    P = support.locatenew("P", l * sin(q) * N.x - l * cos(q) * N.y)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y), *loads(P)])
    return km


def origin(N):
    O = Point("O")
    O.set_vel(N, 0)
    return O


@idiom()
def specified_force():
    """dynamicsymbols in a load: two forces that come from outside."""
    N = ReferenceFrame("N")
    F, G = dynamicsymbols("F G")
    return pendulum(N, origin(N), lambda P: [(P, F * N.x + sin(G) * N.y)])


@idiom()
def specified_position():
    """dynamicsymbols in a position: the model needs their first and second rates."""
    N = ReferenceFrame("N")
    r, s = dynamicsymbols("r s")
    return pendulum(N, origin(N).locatenew("S", r * N.x + cos(s) * N.y))


@idiom()
def specified_velocity():
    """The velocity of the support is set to the derivative of a specified function."""
    N, S = ReferenceFrame("N"), Point("S")
    S.set_vel(N, dynamicsymbols("r", 1) * N.x)
    return pendulum(N, S)


@idiom()
def specified_speed():
    """The velocity of the support is a specified function itself."""
    N, S = ReferenceFrame("N"), Point("S")
    S.set_vel(N, dynamicsymbols("v") * N.x)
    return pendulum(N, S)


@idiom()
def specified_angle():
    """A specified angle turns the plane of a pendulum."""
    q, u, psi = dynamicsymbols("q u psi")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [psi, N.y])
    O = origin(N)
    P = O.locatenew("P", l * sin(q) * A.x - l * cos(q) * A.y)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def specified_angular_velocity():
    """An angular velocity by hand, with a specified rate."""
    q, u, psi, w = dynamicsymbols("q u psi w")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [psi, N.y])
    A.set_ang_vel(N, w * N.y)
    B = A.orientnew("B", "Axis", [q, A.z])
    B.set_ang_vel(A, u * A.z)
    O = origin(N)
    P = O.locatenew("P", -l * B.y)
    P.v2pt_theory(O, N, B)
    km = KanesMethod(N, [q, psi], [u], kd_eqs=[q.diff(t) - u, psi.diff(t) - w])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.x)])
    return km


@idiom()
def rate_of_a_specified_function_in_a_load():
    """A spring and a damper to a moving wall: r and r' in one force."""
    N = ReferenceFrame("N")
    r = dynamicsymbols("r")
    return pendulum(N, origin(N), lambda P: [(P, -k * (r - 1) * N.x - symbols("c") * r.diff(t) * N.x)])


@idiom()
def explicit_time():
    """Time itself in a load."""
    N = ReferenceFrame("N")
    return pendulum(N, origin(N), lambda P: [(P, symbols("A") * cos(symbols("Omega") * t) * N.x)])


@idiom()
def specified_function_in_the_kinematics():
    """A speed relative to a belt whose speed is specified."""
    x, u, belt = dynamicsymbols("x u belt")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    km = KanesMethod(N, [x], [u], kd_eqs=[x.diff(t) - u - belt])
    km.kanes_equations([Particle("p", P, m)], [(P, -k * x * N.x)])
    return km
