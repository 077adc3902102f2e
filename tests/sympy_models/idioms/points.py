"""Points and velocities: positions, velocities, or both; the theory functions; points that nobody needs."""

from __future__ import annotations

from sympy import cos, sin, symbols
from sympy.physics.mechanics import (
    KanesMethod,
    Particle,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, h, a, b, omega = symbols("m g l h a b omega", positive=True)


@idiom(run={"theta": 0.5, "phi": -0.3})
def positions_only():
    """A double pendulum by positions alone: no velocity is ever set but that of the origin."""
    q1, q2, u1, u2 = dynamicsymbols("theta phi u1 u2")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", l * sin(q1) * N.x - l * cos(q1) * N.y)
    R = P.locatenew("R", l * sin(q2) * N.x - l * cos(q2) * N.y)
    km = KanesMethod(N, [q1, q2], [u1, u2], kd_eqs=[u1 - q1.diff(t), u2 - q2.diff(t)])
    km.kanes_equations([Particle("p", P, m), Particle("r", R, 2 * m)], [(P, -m * g * N.y), (R, -2 * m * g * N.y)])
    return km


@idiom()
def velocities_only():
    """The mass-spring-damper of the documentation: a point with a velocity and no position at all."""
    q, u = dynamicsymbols("q u")
    k, c = symbols("k c")
    N, P = ReferenceFrame("N"), Point("P")
    P.set_vel(N, u * N.x)
    km = KanesMethod(N, q_ind=[q], u_ind=[u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("pa", P, m)], [(P, (-k * q - c * u) * N.x)])
    return km


@idiom()
def two_point_theory():
    """The double pendulum of the documentation: frames with set_ang_vel, velocities by v2pt_theory."""
    q1, q2, u1, u2 = dynamicsymbols("q1 q2 u1 u2")
    N = ReferenceFrame("N")
    A, B = N.orientnew("A", "Axis", [q1, N.z]), N.orientnew("B", "Axis", [q2, N.z])
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(N, u2 * N.z)
    O = Point("O")
    P = O.locatenew("P", l * A.x)
    R = P.locatenew("R", l * B.x)
    O.set_vel(N, 0)
    P.v2pt_theory(O, N, A)
    R.v2pt_theory(P, N, B)
    km = KanesMethod(N, q_ind=[q1, q2], u_ind=[u1, u2], kd_eqs=[q1.diff(t) - u1, q2.diff(t) - u2])
    km.kanes_equations([Particle("ParP", P, m), Particle("ParR", R, m)], [(P, m * g * N.x), (R, m * g * N.x)])
    return km


@idiom()
def one_point_theory():
    """A bead on a turning bar: the velocity in the bar is set, v1pt_theory gives that in N."""
    q, s, u, v = dynamicsymbols("q s u v")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    O = Point("O")
    O.set_vel(N, 0)
    O.set_vel(A, 0)
    P = O.locatenew("P", s * A.x)
    P.set_vel(A, v * A.x)
    P.v1pt_theory(O, N, A)
    km = KanesMethod(N, [q, s], [u, v], kd_eqs=[q.diff(t) - u, s.diff(t) - v])
    km.kanes_equations([Particle("bead", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def velocity_set_beside_constant_offset():
    """The velocity is set; the position beside it contains a constant that no velocity shows."""
    x, u = dynamicsymbols("x u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + h * N.y)
    P.set_vel(N, u * N.x)
    km = KanesMethod(N, [x], [u], kd_eqs=[x.diff(t) - u])
    km.kanes_equations([Particle("cart", P, m)], [(P, -x * N.x)])
    return km


@idiom()
def offset_carried_to_the_next_body():
    """A cart whose velocity is set above the ground, and a pendulum on it by v2pt_theory."""
    x, q, v, u = dynamicsymbols("x q v u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q, N.z])
    B.set_ang_vel(N, u * N.z)
    C = O.locatenew("C", x * N.x + h * N.y)
    C.set_vel(N, v * N.x)
    P = C.locatenew("P", -l * B.y)
    P.v2pt_theory(C, N, B)
    km = KanesMethod(N, [x, q], [v, u], kd_eqs=[x.diff(t) - v, q.diff(t) - u])
    km.kanes_equations([Particle("cart", C, 2 * m), Particle("bob", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def unused_end_point():
    """The end of a link is located for a plot and never used; its length stands nowhere else."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q, N.x])
    B.set_ang_vel(N, u * N.x)
    C = O.locatenew("C", -l / 2 * B.z)
    C.v2pt_theory(O, N, B)
    C.locatenew("E", -symbols("L_end") * B.z)
    rod = RigidBody("rod", C, B, m, (inertia(B, m * l**2 / 12, m * l**2 / 12, 0), C))
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([rod], [(C, -m * g * N.z)])
    return km


@idiom()
def second_model_on_the_same_origin():
    """Two models in one script share the inertial frame and its origin; only the second is read here."""
    x, y, u, v = dynamicsymbols("x y u v")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    first = O.locatenew("P", x * N.x + symbols("only_in_first") * N.z)
    first.set_vel(N, u * N.x)
    KanesMethod(N, [x], [u], kd_eqs=[x.diff(t) - u]).kanes_equations([Particle("first", first, m)])
    second = O.locatenew("P", y * N.y)
    second.set_vel(N, v * N.y)
    km = KanesMethod(N, [y], [v], kd_eqs=[y.diff(t) - v])
    km.kanes_equations([Particle("second", second, 3 * m)], [(second, -m * g * N.y)])
    return km


@idiom()
def velocity_from_differentiated_position():
    """set_vel(N, pos_from(O).dt(N)): the velocity holds q', not u."""
    q, r, u, v = dynamicsymbols("q r u v")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", r * cos(q) * N.x + r * sin(q) * N.y)
    P.set_vel(N, P.pos_from(O).dt(N))
    km = KanesMethod(N, [q, r], [u, v], kd_eqs=[q.diff(t) - u, r.diff(t) - v])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y - symbols("k") * P.pos_from(O))])
    return km


@idiom()
def origin_without_velocity():
    """Nobody says that the origin is at rest: the velocity of the only mass center is set itself."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    P = O.locatenew("P", q * N.x + q**2 / 2 * N.y)
    P.set_vel(N, u * N.x + q * u * N.y)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def positions_set_backwards():
    """set_pos of points towards the origin: the origin is the last point of the chain."""
    q, u = dynamicsymbols("q u")
    N = ReferenceFrame("N")
    B = N.orientnew("B", "Axis", [q, N.z])
    O, hinge, C = Point("O"), Point("hinge"), Point("C")
    hinge.set_pos(C, a * B.x)
    O.set_pos(hinge, -h * N.y)
    O.set_vel(N, 0)
    body = RigidBody("body", C, B, m, (inertia(B, 0, 0, m * b**2), C))
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([body], [(C, -m * g * N.y)])
    return km


@idiom()
def acceleration_by_theory():
    """v2pt_theory and a2pt_theory: the acceleration that is set agrees with the velocity and changes nothing."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q, N.z])
    B.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", l * B.x)
    P.v2pt_theory(O, N, B)
    P.a2pt_theory(O, N, B)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("p", P, m)], [(P, m * g * N.x)])
    return km


@idiom()
def position_that_depends_on_time():
    """A pendulum whose support is shaken: sin(omega t) in a position."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    S = O.locatenew("S", a * sin(omega * t) * N.y)
    P = S.locatenew("P", l * sin(q) * N.x - l * cos(q) * N.y)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def moving_origin():
    """The origin itself has a velocity, a given function of time, and everything hangs on it."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, a * omega * cos(omega * t) * N.x)
    B = N.orientnew("B", "Axis", [q, N.z])
    B.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -l * B.y)
    P.v2pt_theory(O, N, B)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def contact_point_at_rest():
    """A rolling disk: the contact point has no position in N, only the velocity zero; the rest by v2pt_theory."""
    q1, q2, q3, u1, u2, u3 = dynamicsymbols("q1 q2 q3 u1 u2 u3")
    r = symbols("r")
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    rates = R.ang_vel_in(N)
    R.set_ang_vel(N, u1 * L.x + u2 * L.y + u3 * L.z)
    C = Point("C")
    C.set_vel(N, 0)
    D = C.locatenew("D", r * L.z)
    D.v2pt_theory(C, N, R)
    disk = RigidBody("disk", D, R, m, (inertia(L, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4), D))
    km = KanesMethod(N, [q1, q2, q3], [u1, u2, u3], kd_eqs=[(R.ang_vel_in(N) - rates).dot(e) for e in L])
    km.kanes_equations([disk], [(D, -m * g * Y.z)])
    return km


@idiom()
def velocity_known_in_two_frames():
    """A point has velocities in two frames, both set; only that in N matters."""
    q, s, u, v = dynamicsymbols("q s u v")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q, N.z])
    O = Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", s * A.x)
    P.set_vel(A, v * A.x)
    P.set_vel(N, v * A.x + s * u * A.y)
    km = KanesMethod(N, [q, s], [u, v], kd_eqs=[q.diff(t) - u, s.diff(t) - v])
    km.kanes_equations([Particle("p", P, m)], [(P, m * g * N.x)])
    return km
