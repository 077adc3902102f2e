"""Auxiliary speeds, which are zero and bring reactions into evidence."""

from __future__ import annotations

from sympy import symbols
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, I = symbols("m g l I", positive=True)


@idiom(run={"q": 0.8})
def pendulum_with_reaction():
    """The hinge of a pendulum moves with auxiliary speeds; the unknown reaction acts on it."""
    q, u, ua1, ua2, R1, R2 = dynamicsymbols("q u ua1 ua2 R1 R2")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, ua1 * N.x + ua2 * N.y)
    B = N.orientnew("B", "Axis", [q, N.z])
    B.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", l * B.x)
    P.v2pt_theory(O, N, B)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u], u_auxiliary=[ua1, ua2])
    km.kanes_equations([Particle("p", P, m)], [(P, m * g * N.x), (O, R1 * N.x + R2 * N.y)])
    return km


@idiom()
def disk_with_contact_forces():
    """The rolling disk with auxiliary speeds of its contact point, accelerations left to SymPy."""
    q, u, ua = dynamicsymbols("q1:4"), dynamicsymbols("u1:4"), dynamicsymbols("ua1:4")
    r = symbols("r")
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q[0], N.z])
    L = Y.orientnew("L", "Axis", [q[1], Y.x])
    R = L.orientnew("R", "Axis", [q[2], L.y])
    rates = R.ang_vel_in(N)
    R.set_ang_vel(N, u[0] * L.x + u[1] * L.y + u[2] * L.z)
    C = Point("C")
    C.set_vel(N, ua[0] * L.x + ua[1] * Y.z.cross(L.x) + ua[2] * N.z)
    D = C.locatenew("D", r * L.z)
    D.v2pt_theory(C, N, R)
    body = RigidBody("disk", D, R, m, (inertia(L, I, 2 * I, I), D))
    F = dynamicsymbols("F1:4")
    loads = [(D, -m * g * Y.z), (C, F[0] * L.x + F[1] * Y.z.cross(L.x) + F[2] * N.z)]
    km = KanesMethod(N, q, u, kd_eqs=[(R.ang_vel_in(N) - rates).dot(e) for e in L], u_auxiliary=ua)
    km.kanes_equations([body], loads)
    return km


@idiom()
def auxiliary_speed_and_constraint():
    """A skate with a dependent speed and an auxiliary speed across its plane."""
    x, y, q, v1, v2, w, ua, F = dynamicsymbols("x y q v1 v2 w ua F")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, w * N.z)
    C = Point("C")
    C.set_vel(N, v1 * N.x + v2 * N.y + ua * N.z)
    km = KanesMethod(
        N, [x, y, q], [v1, w], kd_eqs=[x.diff(t) - v1, y.diff(t) - v2, q.diff(t) - w], u_dependent=[v2],
        velocity_constraints=[C.vel(N).dot(A.y)], u_auxiliary=[ua],
    )  # fmt: skip
    km.kanes_equations([RigidBody("skate", C, A, m, (inertia(A, 0, 0, I), C))], [(C, m * g * N.x + (F - m * g) * N.z)])
    return km
