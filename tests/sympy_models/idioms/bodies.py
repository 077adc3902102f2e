"""Bodies and inertia: particles, rigid bodies, inertia about other points and in other frames."""

from __future__ import annotations

from sympy import pi, symbols
from sympy.physics.mechanics import (
    Inertia,
    KanesMethod,
    Particle,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
    inertia_of_point_mass,
)

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, a, Ix, Iy, Iz = symbols("m g l a Ix Iy Iz", positive=True)


def arm():
    """Two frames, an elbow, and the kinematics of two angles in space."""
    q, u = dynamicsymbols("q1:3"), dynamicsymbols("u1:3")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", [q[0], N.z])
    B = A.orientnew("B", "Axis", [q[1], A.x])
    A.set_ang_vel(N, u[0] * N.z)
    B.set_ang_vel(A, u[1] * A.x)
    C = O.locatenew("C", l * A.x)
    C.v2pt_theory(O, N, A)
    E = C.locatenew("E", a * B.y)
    E.v2pt_theory(C, N, B)
    return N, A, B, C, E, q, u, [x.diff(t) - v for x, v in zip(q, u, strict=True)]


@idiom(run={"q2": 0.6, "u1": 1.0})
def particles_only():
    """Particles only."""
    N, _A, _B, C, E, q, u, kd = arm()
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([Particle("c", C, 2 * m), Particle("e", E, m)], [(E, -m * g * N.z)])
    return km


@idiom()
def rigid_bodies_only():
    """Rigid bodies only, one with products of inertia."""
    N, A, B, C, E, q, u, kd = arm()
    first = RigidBody("first", C, A, m, (inertia(A, Ix, Iy, Iz), C))
    second = RigidBody("second", E, B, m, (inertia(B, 3 * Ix, 3 * Iy, 3 * Iz, Ix / 3, Iy / 4, Iz / 5), E))
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([first, second], [(E, -m * g * N.z), (C, -m * g * N.z)])
    return km


@idiom()
def inertia_about_another_point():
    """SymPy's test_parallel_axis: the inertia is given about the hinge, not about the mass center."""
    N, _A, B, C, E, q, u, kd = arm()
    big = inertia(B, Ix, Iy, Iz) + inertia_of_point_mass(m, E.pos_from(C), B)
    body = RigidBody("body", E, B, m, (big, C))
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body, Particle("c", C, m)], [(E, -m * g * N.z)])
    return km


@idiom()
def inertia_in_the_lean_frame():
    """A spinning disk's inertia, written in the frame that does not spin with it."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", [q[0], N.z])
    L = A.orientnew("L", "Axis", [q[1], A.x])
    D = L.orientnew("D", "Axis", [q[2], L.y])
    C = O.locatenew("C", l * L.y)
    disk = RigidBody("disk", C, D, m, (inertia(L, Ix, 2 * Ix, Ix), C))
    km = KanesMethod(N, q, u, kd_eqs=[x.diff(t) - v for x, v in zip(q, u, strict=True)])
    km.kanes_equations([disk], [(C, -m * g * N.z)])
    return km


@idiom()
def inertia_in_a_fixed_frame_of_the_body():
    """Principal axes at a constant angle in the body, and a dyadic put together from two frames."""
    N, _A, B, C, E, q, u, kd = arm()
    F = B.orientnew("F", "Axis", [pi / 6, B.z])
    body = RigidBody("body", E, B, m, (inertia(F, Ix, Iy, Iz) + inertia(B, Ix, 0, Ix), E))
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([body, Particle("c", C, m)], [(E, -m * g * N.z)])
    return km


@idiom()
def inertia_objects():
    """Inertia.from_inertia_scalars, and central_inertia set after the body was made."""
    N, A, B, C, E, q, u, kd = arm()
    first = RigidBody("first", C, A, m, Inertia.from_inertia_scalars(C, A, Ix, Iy, Iz))
    second = RigidBody("second", E, B, m)
    second.central_inertia = inertia(B, Ix, Iy, Iz)
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([first, second], [(E, -m * g * N.z)])
    return km


@idiom()
def bodies_with_their_own_symbols():
    """RigidBody("B") with nothing else: mass, inertia, frame and mass center are made by SymPy."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    body = RigidBody("B")
    body.frame.orient_axis(N, N.z, q)
    body.masscenter.set_pos(O, l * body.frame.x)
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([body], [(body.masscenter, -body.mass * g * N.y)])
    return km


@idiom()
def bodies_without_mass():
    """A body with inertia and no mass, a particle with no mass, and a rod without inertia about its axis."""
    N, A, B, C, E, q, u, kd = arm()
    flywheel = RigidBody("flywheel", C, A, 0, (inertia(A, 0, 0, Iz), C))
    rod = RigidBody("rod", E, B, m, (inertia(B, Ix, 0, Ix), E))
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([flywheel, rod, Particle("marker", E, 0)], [(E, -m * g * N.z)])
    return km


@idiom()
def numbers_for_parameters():
    """Masses, lengths and gravity are numbers, exact and floating."""
    q, u = dynamicsymbols("q u")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q, N.z])
    C = O.locatenew("C", 0.35 * B.x)
    body = RigidBody("body", C, B, 2, (inertia(B, 0, 0, 0.01), C))
    km = KanesMethod(N, [q], [u], kd_eqs=[q.diff(t) - u])
    km.kanes_equations([body], [(C, -2 * 9.81 * N.y)])
    return km


@idiom()
def body_listed_and_unmoved():
    """A body that cannot move is listed with the others."""
    N, _A, _B, _C, E, q, u, kd = arm()
    ground = Point("ground")
    ground.set_vel(N, 0)
    base = RigidBody("base", ground, N, symbols("M"), (inertia(N, Ix, Iy, Iz), ground))
    km = KanesMethod(N, q, u, kd_eqs=kd)
    km.kanes_equations([base, Particle("e", E, m)], [(E, -m * g * N.z)])
    return km
