"""Kinematical equations and speeds: every solvable form, and speeds without coordinates."""

from __future__ import annotations

from sympy import Matrix, cos, sin, symbols
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, I, k = symbols("m g l I k", positive=True)


def pendulum_on_cart(kd_eqs, q, u, **options):
    """Positions of a cart and a bob in q = (x, theta), velocities in q'."""
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", q[0] * N.x)
    P = C.locatenew("P", l * sin(q[1]) * N.x - l * cos(q[1]) * N.y)
    bodies = [Particle("cart", C, 2 * m), Particle("bob", P, m)]
    km = KanesMethod(N, q, u, kd_eqs=kd_eqs, **options)
    km.kanes_equations(bodies, [(P, -m * g * N.y), (C, -k * q[0] * N.x)])
    return km


@idiom()
def rates_are_speeds():
    """q' - u, the rows in another order than the coordinates."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    return pendulum_on_cart([q[1].diff(t) - u[1], q[0].diff(t) - u[0]], q, u)


@idiom()
def negative_and_scaled_rows():
    """u - q' and 2 u - 2 q': rows of any sign and scale."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    return pendulum_on_cart([u[0] - q[0].diff(t), 2 * u[1] - 2 * q[1].diff(t)], q, u)


@idiom(run={"x": 0.2, "theta": 0.7, "v": 0.4})
def speeds_that_are_combinations():
    """A speed is the velocity of the bob: u1 = x' + l theta' cos(theta), with theta' used in velocities."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    kd = [u[0] - q[0].diff(t) - l * q[1].diff(t) * cos(q[1]), u[1] - q[1].diff(t)]
    return pendulum_on_cart(kd, q, u)


@idiom()
def coupled_rates():
    """M(q) q' = u + f(q): the rates have to be solved for."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    kd = [2 * q[0].diff(t) + cos(q[1]) * q[1].diff(t) - u[0], q[1].diff(t) - sin(q[1]) * q[0].diff(t) - u[1] + q[0]]
    return pendulum_on_cart(kd, q, u)


@idiom()
def implicit_kinematics():
    """explicit_kinematics=False."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    kd = [2 * q[0].diff(t) + cos(q[1]) * q[1].diff(t) - u[0], q[1].diff(t) - u[1]]
    return pendulum_on_cart(kd, q, u, explicit_kinematics=False)


@idiom()
def solver_by_name():
    """kd_eqs_solver and constraint_solver by name."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    kd = [2 * q[0].diff(t) + cos(q[1]) * q[1].diff(t) - u[0], q[1].diff(t) - u[1]]
    return pendulum_on_cart(kd, q, u, kd_eqs_solver="GJ", constraint_solver="GJ")


@idiom()
def solver_that_is_a_function():
    """kd_eqs_solver=lambda A, b: ..."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    kd = [2 * q[0].diff(t) + cos(q[1]) * q[1].diff(t) - u[0], q[1].diff(t) - u[1]]
    return pendulum_on_cart(kd, q, u, kd_eqs_solver=lambda A, b: A.inv() * b)


@idiom()
def rates_with_time():
    """Rows that contain time: speeds relative to a belt that is switched on slowly."""
    q, u = dynamicsymbols("x theta"), dynamicsymbols("v omega")
    return pendulum_on_cart([q[0].diff(t) - u[0] - sin(2 * t) * cos(q[1]), q[1].diff(t) - u[1]], q, u)


@idiom()
def symbols_with_assumptions():
    """Coordinates and speeds are declared real, parameters positive."""
    q, u = dynamicsymbols("x theta", real=True), dynamicsymbols("v omega", real=True)
    return pendulum_on_cart([x.diff(t) - v for x, v in zip(q, u, strict=True)], q, u)


@idiom()
def matrices_for_lists():
    """Coordinates, speeds and rows come as matrices and tuples."""
    q, u = Matrix(dynamicsymbols("x theta")), Matrix(dynamicsymbols("v omega"))
    return pendulum_on_cart(q.diff(t) - u, q, tuple(u))


@idiom()
def rigid_body_in_space():
    """Six coordinates; the speeds are velocity and angular velocity, measured in the body (an aircraft's)."""
    x, angle = dynamicsymbols("x:z"), dynamicsymbols("phi theta psi")
    v, w = dynamicsymbols("U V W"), dynamicsymbols("P Q R")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_body_fixed(N, angle[::-1], "ZYX")
    rates = B.ang_vel_in(N)
    B.set_ang_vel(N, sum((c * e for c, e in zip(w, B, strict=True)), 0 * N.x))
    O = Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", x[0] * N.x + x[1] * N.y + x[2] * N.z)
    C.set_vel(N, sum((c * e for c, e in zip(v, B, strict=True)), 0 * N.x))
    kd = [(rates - B.ang_vel_in(N)).dot(e) for e in B] + [(C.pos_from(O).dt(N) - C.vel(N)).dot(e) for e in N]
    km = KanesMethod(N, [*x, *angle], [*v, *w], kd_eqs=kd)
    body = RigidBody("aircraft", C, B, m, (inertia(B, 2 * I, 3 * I, 4 * I, 0, 0, I / 2), C))
    km.kanes_equations([body], [(C, m * g * N.z), (B, symbols("M") * B.y)])
    return km


def disk(speeds, contact_velocity):
    """The disk of SymPy's test_rolling_disc: three coordinates, contact point with a given velocity."""
    q, r = dynamicsymbols("q1:4"), symbols("r")
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q[0], N.z])
    L = Y.orientnew("L", "Axis", [q[1], Y.x])
    R = L.orientnew("R", "Axis", [q[2], L.y])
    rates = R.ang_vel_in(N)
    R.set_ang_vel(N, speeds[0] * L.x + speeds[1] * L.y + speeds[2] * L.z)
    C = Point("C")
    C.set_vel(N, contact_velocity(L, Y))
    D = C.locatenew("D", r * L.z)
    D.v2pt_theory(C, N, R)
    kd = [(R.ang_vel_in(N) - rates).dot(e) for e in L]
    body = RigidBody("disk", D, R, m, (inertia(L, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4), D))
    return N, q, kd, body, [(D, -m * g * Y.z)]


@idiom()
def more_speeds_than_coordinates():
    """A sliding disk: where it touches the plane is ignorable, so it has 3 coordinates and 5 speeds."""
    u = dynamicsymbols("u1:6")
    N, q, kd, body, loads = disk(u, lambda L, Y: u[3] * L.x + u[4] * Y.z.cross(L.x))
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body], loads)
    return km


@idiom()
def ignorable_coordinates_with_constraints():
    """The same with the velocities of the contact point as dependent speeds, which two rows hold at zero."""
    u = dynamicsymbols("u1:6")
    N, q, kd, body, loads = disk(u, lambda L, Y: u[3] * L.x + u[4] * Y.z.cross(L.x))
    km = KanesMethod(N, q, u[:3], kd_eqs=kd, u_dependent=u[3:], velocity_constraints=[u[3], u[4]])
    km.kanes_equations([body], loads)
    return km


@idiom()
def skate_without_position():
    """A skate: its place is ignorable, its heading the only coordinate; a nonholonomic row on three speeds."""
    q, w, v1, v2 = dynamicsymbols("q w v1 v2")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, w * N.z)
    C = Point("C")
    C.set_vel(N, v1 * N.x + v2 * N.y)
    edge = C.vel(N).dot(A.y) - l * w
    km = KanesMethod(N, [q], [w, v1], kd_eqs=[q.diff(t) - w], u_dependent=[v2], velocity_constraints=[edge])
    km.kanes_equations([RigidBody("skate", C, A, m, (inertia(A, 0, 0, I), C))], [(C, m * g * N.x)])
    return km
