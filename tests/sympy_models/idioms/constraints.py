"""Constraints: nonholonomic rows, configuration constraints with and without their rates, acceleration constraints."""

from __future__ import annotations

from sympy import cos, sin, symbols
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from idioms.table import idiom

t = dynamicsymbols._t
m, g, l, a, I, r = symbols("m g l a I r", positive=True)


def planar_particle():
    """A particle with coordinates x, y and speeds u, v."""
    x, y, u, v = dynamicsymbols("x y u v")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    return N, P, x, y, u, v, [x.diff(t) - u, y.diff(t) - v]


@idiom(run={"q": 0.3, "v1": 1.0, "w": 0.4})
def chaplygin_sleigh():
    """One nonholonomic row in velocity_constraints, its dependent speed in u_dependent."""
    x, y, q, v1, v2, w = dynamicsymbols("x y q v1 v2 w")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, w * N.z)
    O = Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v1 * A.x + v2 * A.y)
    C = P.locatenew("C", a * A.x)
    C.v2pt_theory(P, N, A)
    kd = [(P.pos_from(O).dt(N) - P.vel(N)).dot(e) for e in (N.x, N.y)] + [q.diff(t) - w]
    km = KanesMethod(N, [x, y, q], [v1, w], kd_eqs=kd, u_dependent=[v2], velocity_constraints=[P.vel(N).dot(A.y)])
    km.kanes_equations([RigidBody("sleigh", C, A, m, (inertia(A, 0, 0, I), C))], [(C, -symbols("k") * x * N.x)])
    return km


@idiom()
def rolling_disk_with_dependent_speeds():
    """SymPy's rolling disk with five coordinates and two rolling rows."""
    q, u = dynamicsymbols("q1:6"), dynamicsymbols("u1:6")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q[0], N.z])
    B = A.orientnew("B", "Axis", [q[1], A.x])
    C = B.orientnew("C", "Axis", [q[2], B.y])
    B.set_ang_vel(A, u[1] * A.x)
    A.set_ang_vel(N, u[0] * N.z)
    C.set_ang_vel(B, u[2] * B.y)
    O = Point("O")
    O.set_vel(N, 0)
    contact = O.locatenew("contact", q[3] * N.x + q[4] * N.y)
    center = contact.locatenew("center", r * B.z)
    center.set_vel(N, center.pos_from(O).dt(N).subs({q[3].diff(t): u[3], q[4].diff(t): u[4]}))
    lowest = center.locatenew("lowest", -r * B.z)
    lowest.v2pt_theory(center, N, C)
    rows = [lowest.vel(N).dot(A.x), lowest.vel(N).dot(A.y)]
    body = RigidBody("disk", center, C, m, (inertia(B, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4), center))
    km = KanesMethod(
        N, q, u[:3], kd_eqs=[x.diff(t) - v for x, v in zip(q, u, strict=True)],
        u_dependent=u[3:], velocity_constraints=rows,
    )  # fmt: skip
    km.kanes_equations([body], [(center, -m * g * N.z)])
    return km


@idiom()
def configuration_and_its_rate():
    """SymPy's nonminimal pendulum: the velocity row is the derivative of the configuration constraint."""
    N, P, x, y, u, v, kd = planar_particle()
    km = KanesMethod(
        N, q_ind=[y], q_dependent=[x], u_ind=[v], u_dependent=[u], kd_eqs=kd[::-1],
        configuration_constraints=[x**2 + y**2 - l**2], velocity_constraints=[x * u + y * v],
    )  # fmt: skip
    km.kanes_equations([Particle("p", P, m)], [(P, m * g * N.x)])
    return km


@idiom()
def configuration_and_its_rate_with_q_dot():
    """The velocity row is phi.diff(t), written in q', as dynamicsymbols give it."""
    N, P, x, y, u, v, kd = planar_particle()
    phi = x**2 + y**2 - l**2
    km = KanesMethod(
        N, q_ind=[y], q_dependent=[x], u_ind=[v], u_dependent=[u], kd_eqs=kd[::-1],
        configuration_constraints=[phi], velocity_constraints=[phi.diff(t)],
    )  # fmt: skip
    km.kanes_equations([Particle("p", P, m)], [(P, m * g * N.x)])
    return km


def four_bar(velocity_rows):
    """A four-bar linkage in three angles; two configuration constraints, whose rates come in some form."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    la, lb, lc, ld, rho = symbols("l_a l_b l_c l_d rho", positive=True)
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    point, bodies = O, []
    for k, length in enumerate((la, lb, lc)):
        F = N.orientnew(f"F{k}", "Axis", [q[k], N.z])
        F.set_ang_vel(N, u[k] * N.z)
        center = point.locatenew(f"C{k}", length / 2 * F.x)
        center.v2pt_theory(point, N, F)
        mass = rho * length
        bodies.append(RigidBody(f"B{k}", center, F, mass, (inertia(F, 0, 0, mass * length**2 / 12), center)))
        point = point.locatenew(f"P{k}", length * F.x)
        point.v2pt_theory(center, N, F)
    loop = point.pos_from(O) - ld * N.x
    phi = [loop.dot(N.x), loop.dot(N.y)]
    rate = [point.vel(N).dot(N.x), point.vel(N).dot(N.y)]
    km = KanesMethod(
        N, q_ind=q[:1], q_dependent=q[1:], u_ind=u[:1], u_dependent=u[1:],
        kd_eqs=[x.diff(t) - v for x, v in zip(q, u, strict=True)],
        configuration_constraints=phi, velocity_constraints=velocity_rows(rate, q),
    )  # fmt: skip
    km.kanes_equations(bodies, [(body.masscenter, -body.mass * g * N.y) for body in bodies])
    return km


@idiom()
def four_bar_linkage():
    """The velocity rows of a closed loop are the velocities of its ends."""
    return four_bar(lambda rate, q: rate)


@idiom()
def four_bar_with_combined_rates():
    """The velocity rows are linear combinations of the rates, with coefficients that depend on q."""
    return four_bar(lambda rate, q: [rate[0] + 2 * rate[1], (2 + cos(q[0])) * rate[1] - rate[0]])


@idiom(configuration_constraints="ignore")
def configuration_constraint_alone():
    """A configuration constraint without velocity_constraints: KanesMethod does nothing with it."""
    N, P, x, y, u, v, kd = planar_particle()
    km = KanesMethod(
        N, q_ind=[x], q_dependent=[y], u_ind=[u, v], kd_eqs=kd, configuration_constraints=[x**2 + y**2 - l**2]
    )
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def configuration_constraint_and_another_row():
    """A particle on a sphere that also has to obey a nonholonomic row: one of two rows is the rate."""
    q, u = dynamicsymbols("x y z"), dynamicsymbols("u v w")
    N, O = ReferenceFrame("N"), Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q[0] * N.x + q[1] * N.y + q[2] * N.z)
    P.set_vel(N, u[0] * N.x + u[1] * N.y + u[2] * N.z)
    rows = [q[0] * u[0] + q[1] * u[1] + q[2] * u[2], u[1] - q[2] * u[0]]
    km = KanesMethod(
        N, q_ind=q[:2], q_dependent=q[2:], u_ind=u[:1], u_dependent=u[1:],
        kd_eqs=[x.diff(t) - v for x, v in zip(q, u, strict=True)],
        configuration_constraints=[q[0] ** 2 + q[1] ** 2 + q[2] ** 2 - l**2], velocity_constraints=rows,
    )  # fmt: skip
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.z)])
    return km


@idiom()
def given_acceleration_constraints():
    """acceleration_constraints that are the derivatives of the velocity rows, given by the user."""
    N, P, x, y, u, v, kd = planar_particle()
    row = v - sin(x) * u
    km = KanesMethod(
        N, [x, y], [u], kd_eqs=kd, u_dependent=[v], velocity_constraints=[row], acceleration_constraints=[row.diff(t)]
    )
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def rheonomic_row():
    """A velocity row with time: a particle is driven along a line that turns."""
    N, P, x, y, u, v, kd = planar_particle()
    row = v * cos(t) - u * sin(2 * t) - symbols("v0") * sin(t)
    km = KanesMethod(N, [x, y], [u], kd_eqs=kd, u_dependent=[v], velocity_constraints=[row])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def driven_row():
    """A velocity row with a specified function of time, which becomes an input with its rate."""
    N, P, x, y, u, v, kd = planar_particle()
    km = KanesMethod(N, [x, y], [u], kd_eqs=kd, u_dependent=[v], velocity_constraints=[v - x * u - dynamicsymbols("s")])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def dependent_speed_given_first():
    """The dependent speed is the first in every other list, so that q and u are in different orders."""
    N, P, x, y, u, v, kd = planar_particle()
    km = KanesMethod(N, [x, y], [v], kd_eqs=kd, u_dependent=[u], velocity_constraints=[(2 + y) * u - cos(x) * v])
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.y)])
    return km


@idiom()
def constraint_solver_by_name():
    """constraint_solver="CRAMER" with two rows."""
    q, u = dynamicsymbols("x y z"), dynamicsymbols("u v w")
    N, P = ReferenceFrame("N"), Point("P")
    P.set_vel(N, u[0] * N.x + u[1] * N.y + u[2] * N.z)
    rows = [u[1] - q[0] * u[0] + u[2] * sin(q[1]), u[2] - q[1] * u[0]]
    km = KanesMethod(
        N, q, u[:1], kd_eqs=[x.diff(t) - v for x, v in zip(q, u, strict=True)],
        u_dependent=u[1:], velocity_constraints=rows, constraint_solver="CRAMER",
    )  # fmt: skip
    km.kanes_equations([Particle("p", P, m)], [(P, -m * g * N.z)])
    return km
