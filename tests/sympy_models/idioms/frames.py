"""Frames and orientations: every way to orient a frame, angular velocities by hand, frames that nobody needs."""

from __future__ import annotations

from sympy import Matrix, cos, pi, sin, symbols
from sympy.physics.mechanics import KanesMethod, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, Ix, Iy, Iz = symbols("m g l Ix Iy Iz", positive=True)


def top(N, B, q, u, kd_eqs):
    """A heavy top about a fixed point, whose frame B turns in N."""
    O = Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", l * B.z)
    C.v2pt_theory(O, N, B)
    km = KanesMethod(N, q, u, kd_eqs=kd_eqs)
    km.kanes_equations([RigidBody("top", C, B, m, (inertia(B, Ix, Iy, Iz), C))], [(C, -m * g * N.z)])
    return km


def simple(q, u):
    """u = q' for each."""
    return [x.diff(t) - v for x, v in zip(q, u, strict=True)]


@idiom()
def axis_chain():
    """Three simple rotations by orientnew, u = q', no angular velocity set."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q[0], N.z])
    A2 = A.orientnew("A2", "Axis", [q[1], A.x])
    B = A2.orientnew("B", "Axis", [q[2], A2.z])
    return top(N, B, q, u, simple(q, u))


@idiom(run={"q1": 0.3, "q2": 0.4, "q3": 0.2, "u3": 2.0})
def body_fixed():
    """orient_body_fixed, speeds are the measure numbers of the angular velocity in B."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_body_fixed(N, q, "zxy")
    rates = B.ang_vel_in(N)
    B.set_ang_vel(N, u[0] * B.x + u[1] * B.y + u[2] * B.z)
    return top(N, B, q, u, [(rates - B.ang_vel_in(N)).dot(e) for e in B])


@idiom()
def body_fixed_by_name():
    """orientnew(..., "Body", angles, "123") with upper-case rotation type, speeds are q'."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    N = ReferenceFrame("N")
    B = N.orientnew("B", "Body", q, "123")
    return top(N, B, q, u, simple(q, u))


@idiom()
def space_fixed():
    """orient_space_fixed."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_space_fixed(N, q, "312")
    return top(N, B, q, u, simple(q, u))


def quaternion_top(**options):
    """A top with four Euler parameters; the rate of the norm is the fourth kinematical equation."""
    q, u = dynamicsymbols("e0:4"), dynamicsymbols("u1:4")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_quaternion(N, q)
    rates = B.ang_vel_in(N)
    B.set_ang_vel(N, u[0] * B.x + u[1] * B.y + u[2] * B.z)
    kd = [(rates - B.ang_vel_in(N)).dot(e) for e in B] + [sum(x * x.diff(t) for x in q)]
    O = Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", l * B.z)
    C.v2pt_theory(O, N, B)
    dependent = len(options.get("velocity_constraints", ()))
    km = KanesMethod(
        N,
        q[1:],
        u[: 3 - dependent],
        kd_eqs=kd,
        q_dependent=[q[0]],
        configuration_constraints=[sum(x**2 for x in q) - 1],
        u_dependent=u[3 - dependent :],
        **options,
    )
    km.kanes_equations([RigidBody("top", C, B, m, (inertia(B, Ix, Iy, Iz), C))], [(C, -m * g * N.z)])
    return km


@idiom()
def euler_parameters():
    """Four Euler parameters and three speeds; the norm is a configuration constraint that no velocity row needs."""
    return quaternion_top(explicit_kinematics=False)


@idiom()
def euler_parameters_with_velocity_constraint():
    """The norm is a configuration constraint beside a velocity row that has nothing to do with it."""
    u1, u3 = dynamicsymbols("u1 u3")
    return quaternion_top(velocity_constraints=[u3 - 2 * u1 - symbols("Omega")])


@idiom()
def direction_cosine_matrix():
    """orient_explicit with a matrix that holds a coordinate; SymPy finds the angular velocity by differentiation."""
    q, u = dynamicsymbols("q u")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_explicit(N, Matrix([[1, 0, 0], [0, cos(q), -sin(q)], [0, sin(q), cos(q)]]))
    return top(N, B, [q], [u], simple([q], [u]))


@idiom()
def direction_cosine_matrix_of_constants():
    """orient_dcm between two frames fixed in each other."""
    q, u = dynamicsymbols("q u")
    alpha = symbols("alpha")
    N, A, B = ReferenceFrame("N"), ReferenceFrame("A"), ReferenceFrame("B")
    A.orient_dcm(N, Matrix([[cos(alpha), sin(alpha), 0], [-sin(alpha), cos(alpha), 0], [0, 0, 1]]))
    B.orient_axis(A, A.x, q)
    return top(N, B, [q], [u], simple([q], [u]))


@idiom()
def angular_velocity_without_orientation():
    """A gyroscope's rotor has an angular velocity and no orientation: its inertia is written in the gimbal."""
    q, u, w, psi = dynamicsymbols("q u w psi")
    N = ReferenceFrame("N")
    G = N.orientnew("G", "Axis", [q, N.x])
    G.set_ang_vel(N, u * N.x)
    R = ReferenceFrame("R")
    R.set_ang_vel(G, w * G.z)
    O = Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", l * G.z)
    C.v2pt_theory(O, N, G)
    rotor = RigidBody("rotor", C, R, m, (inertia(G, Ix, Ix, Iz), C))
    km = KanesMethod(N, [q, psi], [u, w], kd_eqs=[q.diff(t) - u, psi.diff(t) - w])
    km.kanes_equations([rotor], [(C, -m * g * N.z), (R, -symbols("c") * w * G.z)])
    return km


@idiom()
def axis_in_another_frame():
    """orient_axis about a vector of a third frame that is fixed in the parent."""
    q, p, u, v = dynamicsymbols("q p u v")
    N, A, F, B = (ReferenceFrame(name) for name in "NAFB")
    A.orient_axis(N, N.z, q)
    F.orient_axis(A, A.y, symbols("delta"))
    B.orient_axis(A, F.x, p)
    return top(N, B, [q, p], [u, v], simple([q, p], [u, v]))


@idiom()
def skew_axis():
    """orient_axis about a vector that is not a unit vector of a frame."""
    q, u = dynamicsymbols("q u")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_axis(N, N.x + 2 * N.y - N.z, q)
    return top(N, B, [q], [u], simple([q], [u]))


@idiom()
def unused_frames():
    """Frames made for a plot or an output, and one that is not connected to anything."""
    q, u = dynamicsymbols("q u")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_axis(N, N.x, q)
    B.orientnew("camera", "Axis", [symbols("unused_angle"), B.y])
    ReferenceFrame("lonely")
    return top(N, B, [q], [u], simple([q], [u]))


@idiom()
def constant_angle_between():
    """A frame turned by a constant angle stands between the moving ones."""
    q, p, u, v = dynamicsymbols("q p u v")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q, N.z])
    C = A.orientnew("C", "Axis", [pi / 2 - symbols("lam"), A.y])
    B = C.orientnew("B", "Axis", [p, C.z])
    return top(N, B, [q, p], [u, v], simple([q, p], [u, v]))


@idiom()
def turning_by_the_clock():
    """A frame that turns at a constant rate, orient_axis(N, N.z, Omega*t), carries a pendulum."""
    q, u = dynamicsymbols("q u")
    N, A, B = ReferenceFrame("N"), ReferenceFrame("A"), ReferenceFrame("B")
    A.orient_axis(N, N.z, symbols("Omega") * t)
    B.orient_axis(A, A.x, q)
    return top(N, B, [q], [u], simple([q], [u]))


@idiom()
def inertial_frame_is_the_child():
    """N is oriented in the moving frame, not the other way around."""
    q, u = dynamicsymbols("q u")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    N.orient_axis(B, B.x, -q)
    return top(N, B, [q], [u], simple([q], [u]))


@idiom()
def reoriented_frame():
    """A frame is oriented a second time: the last orientation counts, as SymPy has it."""
    q, u = dynamicsymbols("q u")
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.orient_axis(N, N.z, symbols("forgotten"))
    B.orient_axis(N, N.x, q)
    return top(N, B, [q], [u], simple([q], [u]))
