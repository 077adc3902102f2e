"""Loads that depend on accelerations in every form, against SymPy's residuals ``Fr + Fr*`` and closed forms."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from accelerated_models import (
    CONSTRAINTS,
    LOADS,
    SYMMETRIC,
    TIME,
    Line,
    chain,
    chain_solver,
    follower,
    inerter,
    line,
)
from messages import raises
from scipy.integrate import solve_ivp
from shares import share
from sympy.physics.mechanics import dynamicsymbols
from tolerances import EVALUATION, FINE_INTEGRATION, SOLVE

import kanegen as kg
from kanegen.forms import FORMS
from kanegen.graph import count_operations
from kanegen.program.functions.right_sides import RIGHT_SIDES

GENERAL = [form.name for form in FORMS.values() if not form.symmetric and not form.momenta]
MOMENTA = [form.name for form in FORMS.values() if form.momenta]
ACCEPTING = [form for form in RIGHT_SIDES if not FORMS[form].recursive]
"""The forms that accept all symmetric loads that depend on accelerations."""
RECURSIVE = [form for form in RIGHT_SIDES if FORMS[form].recursive]
INERTIAS = ("inerter", "squared")
"""The loads that are inertias of few speeds, which recursive forms accept."""
STRICT = {"rtol": 1e-10, "atol": 1e-12}


def forms_of(kind: str) -> list[str]:
    forms = [*ACCEPTING, *(RECURSIVE if kind in INERTIAS else [])] if kind in SYMMETRIC else GENERAL
    return ["auto", *forms]


CASES = [(kind, constraint, form) for kind in LOADS for constraint in CONSTRAINTS for form in forms_of(kind)]


# -- forms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "constraint", "form"), share(CASES, of=2))
def test_accelerations_satisfy_sympys_equations(kind: str, constraint: str | None, form: str) -> None:
    """Compiled for one kind of each symmetry, interpreted for the others."""
    system = chain(kind, constraint)
    compiled = kind in ("added mass", "unsteady")
    solver = chain_solver(kind, constraint, form, "rhs", backend="cython" if compiled else "interpreted")
    for t, q, u in system.states:
        qdot, udot = solver.rhs(t, q, u)
        expected = system.udot(t, q, u)
        assert np.array_equal(qdot, u)
        assert np.abs(udot - expected).max() < EVALUATION * (1 + np.abs(expected).max())


@pytest.mark.parametrize("form", [form.name for form in FORMS.values() if form.symmetric])
def test_forms_that_need_symmetry_name_the_load_the_speeds_and_other_forms(form: str) -> None:
    with raises(kg.BuildError, form, "P1", "u1", "u2", "nonminimal"):
        kg.build(line(2, follower), form=form)
    assert kg.build(line(2, follower), functions=["rhs"]).description.form == "nonminimal"


@pytest.mark.parametrize("form", RECURSIVE)
def test_recursive_forms_refuse_loads_that_couple_bodies(form: str) -> None:
    with raises(kg.BuildError, form, "P3", "couple"):
        chain_solver("added mass", None, form, "rhs", backend="interpreted")


def geared_chain(n: int) -> kg.Model:
    """Particles on a chain of rods, whose joints turn wheels: torques -I u' on a rod and I u' on the one before it."""
    c = [dynamicsymbols(f"{name}1:{n + 1}") for name in "qu"]
    inertia, g, N, point = sm.Symbol("I"), sm.Symbol("g"), me.ReferenceFrame("N"), me.Point("O")
    point.set_vel(N, 0)
    frames, bodies, loads = [N], [], []
    for k, (angle, speed) in enumerate(zip(*c, strict=True)):
        frame = frames[-1].orientnew(f"A{k}", "Axis", [angle, N.z])
        frame.set_ang_vel(frames[-1], speed * N.z)
        before, point = point, point.locatenew(f"P{k}", frame.x)
        point.v2pt_theory(before, N, frame)
        bodies.append(me.Particle(f"body{k}", point, 1))
        torque = inertia * speed.diff(TIME) * N.z
        loads += [(point, g * N.x), (frame, -torque), *([(frames[-1], torque)] if k else [])]
        frames.append(frame)
    kinematics = [angle.diff(TIME) - speed for angle, speed in zip(*c, strict=True)]
    return kg.Model(
        name=f"geared_chain_{n}",
        frame=N,
        coordinates=c[0],
        speeds=c[1],
        kinematics=kinematics,
        bodies=bodies,
        loads=loads,
        parameters={inertia: 0.1, g: 9.81},
    )


def test_reflected_inertias_keep_order_n() -> None:
    """The recursive form is chosen, its operations grow with n, and it agrees with the matrix of the accelerations."""
    equations = [kg.derive(geared_chain(n)) for n in (5, 10, 20)]
    counts = [count_operations(e.articulated_accelerations(stabilized=False).udot) for e in equations]
    assert counts[2] - counts[1] < 2.1 * (counts[1] - counts[0])
    model = geared_chain(12)
    solver = kg.build(model, functions=["rhs"], backend="interpreted")
    assert FORMS[solver.description.form].recursive
    other = kg.build(model, form="nonminimal", functions=["rhs"], backend="interpreted")
    rng = np.random.default_rng(4)
    for q, u in rng.uniform(-1.0, 1.0, (3, 2, 12)):
        expected = other.rhs(0.0, q, u)[1]
        np.testing.assert_allclose(solver.rhs(0.0, q, u)[1], expected, rtol=0.0, atol=SOLVE * np.abs(expected).max())


def test_without_such_loads_the_matrix_is_that_of_the_kinetic_energy() -> None:
    solver = kg.build(line(1, lambda of: [(of.points[0], -of.b * of.u[0] * of.N.x)]))
    with raises(kg.SolveError, "M", "Q"):
        solver.M(0.0, [0], [0])


@pytest.mark.parametrize("kind", ["follower", "squared"])
def test_functions_of_symmetric_forms_say_why_they_do_not_exist(kind: str) -> None:
    with raises(kg.SolveError, "acceleration_parts", "P1", "u1"):
        chain_solver(kind, None, "nonminimal").acceleration_parts(0.0, [0, 0, 0], [0, 0, 0])


def test_only_the_parts_of_the_canonical_form_need_a_rate_of_the_matrix() -> None:
    solver = chain_solver("squared", None, "canonical")
    with raises(kg.SolveError, "acceleration_parts", "P1", "u1"):
        solver.acceleration_parts(0.0, [0, 0, 0], [0, 0, 0])


@pytest.mark.parametrize("kind", ["added mass", "unsteady"])
def test_a_singular_choice_of_dependent_speeds_is_replaced(kind: str) -> None:
    """With the last rod across the line, the constraint does not contain the dependent speed u3."""
    form = "reduced" if kind in SYMMETRIC else "nonminimal"
    solver, u = chain_solver(kind, "holonomic", form), np.array([0.2, -0.4, 0.7])
    assert solver.description.dependent == (2,)
    for angle in (np.pi / 2 - 0.7, np.pi / 2 - 0.7 - 1e-9):
        q = np.array([0.3, 0.4, angle])
        J, udot = solver.J(0.1, q, u), solver.rhs(0.1, q, u)[1]
        bordered = np.block([[solver.M(0.1, q, u), -J.T], [J, np.zeros((1, 1))]])
        expected = np.linalg.solve(bordered, np.append(solver.P(0.1, q, u), solver.b(0.1, q, u)))
        assert udot == pytest.approx(expected[:3], rel=SOLVE)
        assert solver.multipliers(0.1, q, u) == pytest.approx(expected[3:], rel=SOLVE)


@pytest.mark.parametrize(
    ("kind", "constraint"),
    [("added mass", "holonomic"), ("squared", None), ("unsteady", "nonholonomic"), ("follower", "holonomic")],
)
def test_momentum_forms_move_as_the_speeds_do(kind: str, constraint: str | None) -> None:
    system, reference = chain(kind, constraint), chain_solver(kind, constraint, "auto", "rhs", "consistency")
    q, u = reference.make_consistent(0.0, system.q, system.u)
    expected = reference.integrate((0.0, 0.5), q, u, **STRICT)
    for form in MOMENTA:
        run = chain_solver(kind, constraint, form, "rhs", "momentum", "consistency").integrate(
            (0.0, 0.5), q, u, **STRICT
        )
        assert run.q[-1] == pytest.approx(expected.q[-1], rel=FINE_INTEGRATION)
        assert run.u[-1] == pytest.approx(expected.u[-1], rel=FINE_INTEGRATION)


@pytest.mark.parametrize(
    ("kind", "constraint"),
    [
        ("unsteady", None),
        ("follower", "holonomic"),
        *(pytest.param(*case, marks=pytest.mark.target) for case in (("squared", "nonholonomic"), ("inerter", None))),
    ],
)
def test_the_self_checks_pass(kind: str, constraint: str | None) -> None:
    """They compare M with forces by forward mode, and the Jacobians with differences in 50 digits."""
    kg.verify(chain(kind, constraint).model)


# -- singular and indefinite matrices -----------------------------------------------------------------------------


def cancelling(of: Line) -> list[Any]:
    """M = [[m1 - b, 0], [0, m2]]."""
    return [(of.points[0], (of.b * of.u[0].diff(TIME) - 1) * of.N.x)]


@pytest.mark.parametrize("form", [*ACCEPTING, *RECURSIVE])
def test_a_singular_matrix_is_named_at_run_time(form: str) -> None:
    solver = kg.build(line(2, cancelling), form=form, functions=["rhs"])
    assert solver.rhs(0.0, [0, 0], [0, 0])[1] == pytest.approx([-2.0, 0.0])
    with raises(kg.SolveError, "Q - dF/du'"):
        solver.with_parameters(b=1.0).rhs(0.0, [0, 0], [0, 0])
    indefinite = solver.with_parameters(b=3.0)
    if form == "nonminimal":
        assert indefinite.rhs(0.0, [0, 0], [0, 0])[1] == pytest.approx([0.5, 0.0])
    else:
        with raises(kg.SolveError, 'form="nonminimal"'):
            indefinite.rhs(0.0, [0, 0], [0, 0])


def test_an_inerter_moves_a_massless_slider() -> None:
    solver = kg.build(line(2, lambda of: [*inerter(of), (of.points[0], of.N.x)])).with_parameters(m1=0.0)
    assert solver.rhs(0.0, [0, 0], [0, 0])[1] == pytest.approx([1 / 0.5 + 1 / 2, 1 / 2])


# -- closed forms -------------------------------------------------------------------------------------------------


def test_an_oscillator_with_an_inerter_has_the_frequency_by_hand() -> None:
    def loads(of: Line) -> list[Any]:
        spring = 3.0 * (of.x[1] - of.x[0]) * of.N.x
        return [*inerter(of), (of.points[0], spring), (of.points[1], -spring)]

    omega = np.sqrt(3.0 * (1 + 0.5) / (1 + 0.5 * (1 + 0.5)))  # masses 1 and 2, inertance 0.5
    run = kg.build(line(2, loads)).integrate((0.0, 5.0), [1.0, 0.0], [0.0, 0.0], **STRICT)
    assert run.q[:, 1] - run.q[:, 0] == pytest.approx(-np.cos(omega * run.t), abs=FINE_INTEGRATION)


def pendulum(loads: Any, axial: Any = 0, **fields: Any) -> kg.Model:
    """A bob P of mass m at the distance l from O, at the angle q from the vertical N.x, under gravity and ``loads``.

    ``loads`` and the function ``reactions`` of ``fields`` take N, A (A.x along the rod), O, P and u; ``axial`` is the
    velocity of O along the rod.
    """
    q, u = me.dynamicsymbols("q u")
    m, length, g = sm.symbols("m l g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    O.set_vel(N, axial * A.x)
    P = O.locatenew("P", length * A.x)
    P.v2pt_theory(O, N, A)
    return kg.Model(
        **{"name": "pendulum", "frame": N, "coordinates": [q], "speeds": [u], "kinematics": [q.diff(TIME) - u]},
        bodies=[me.Particle("bob", P, m)],
        loads=[(P, m * g * N.x), *loads(N, A, P, u)],
        parameters={m: 2.0, length: 0.5, g: 9.81, **fields.pop("parameters")},
        reactions=fields.pop("reactions")(N, A, O, P),
        **fields,
    )


def test_a_geared_wheel_adds_its_reflected_inertia() -> None:
    """A pendulum whose joint turns a wheel of inertia I at n times its speed: (m l^2 + n^2 I) u' = -m g l sin q."""
    n, inertia = sm.symbols("n I", positive=True)
    model = pendulum(
        lambda N, A, P, u: [(A, -(n**2) * inertia * u.diff(TIME) * N.z)],
        parameters={n: 20.0, inertia: 1e-3},
        reactions=lambda N, A, O, P: {"joint": kg.Reaction(("bob",), O, N, loads=(P,))},
    )
    solver = kg.build(model)
    udot = -2.0 * 9.81 * 0.5 * np.sin(0.4) / (2.0 * 0.25 + 400 * 1e-3)
    assert solver.rhs(0.0, [0.4], [0.3])[1] == pytest.approx([udot], rel=EVALUATION)
    assert solver.kinetic_energy(0.0, [0.4], [0.3]) == pytest.approx(0.5 * 2.0 * 0.25 * 0.09, rel=EVALUATION)


def test_reactions_and_auxiliary_loads_contain_the_loads_at_the_true_accelerations() -> None:
    """A bob in a fluid: the rod bears m a less the weight and the force of the added mass, -b a."""
    w, b = me.dynamicsymbols("w"), sm.Symbol("b", positive=True)
    model = pendulum(
        lambda N, A, P, u: [(P, -b * P.acc(N))],  # w and w' are in it
        axial=w,
        parameters={b: 0.7},
        auxiliary_speeds=[w],
        reactions=lambda N, A, O, P: {"rod": kg.Reaction(("bob",), P, A)},
        check_kinematics=False,
    )
    solver = kg.build(model)
    udot = -2.0 * 9.81 * np.sin(0.4) / ((2.0 + 0.7) * 0.5)
    assert solver.rhs(0.0, [0.4], [0.3])[1] == pytest.approx([udot], rel=EVALUATION)
    along = -(2.0 + 0.7) * 0.5 * 0.09 - 2.0 * 9.81 * np.cos(0.4)
    assert solver.reaction("rod", 0.0, [0.4], [0.3]).force == pytest.approx(
        [along, 0.0, 0.0], rel=EVALUATION, abs=EVALUATION
    )
    assert solver.output("w", 0.0, [0.4], [0.3]) == pytest.approx(along, rel=EVALUATION)


def test_redundant_constraints_take_the_full_matrix() -> None:
    """x1 = x2 given twice: both masses and the loads in u' move together."""

    def loads(of: Line) -> list[Any]:
        return [*inerter(of), (of.points[0], (1 - of.b * of.u[0].diff(TIME)) * of.N.x)]

    model = line(2, loads, holonomic_constraints=lambda of: [of.x[0] - of.x[1], 2 * of.x[0] - 2 * of.x[1]])
    solver = kg.build(model, form="pseudoinverse")
    assert solver.rhs(0.0, [0, 0], [0, 0])[1] == pytest.approx([1 / 3.5] * 2, rel=EVALUATION)
    assert solver.rank(0.0, [0, 0], [0, 0]) == 1


@pytest.mark.parametrize("loads", [inerter, follower])
def test_states_and_loads_in_accelerations_work_together(loads: Any) -> None:
    """The inertance is a state whose rate contains u'; every form moves as SciPy does by the equations by hand."""
    s = me.dynamicsymbols("s")

    def all_loads(of: Line) -> list[Any]:
        return [*loads(of), (of.points[0], -(s * of.u[0].diff(TIME) + of.x[0]) * of.N.x)]

    model = line(2, all_loads, states=lambda of: {s: 0.1 * of.u[0].diff(TIME) - s})
    added = np.array([[0.5, -0.5], [-0.5, 0.5]] if loads is inerter else [[0.0, 0.5], [0.0, 0.0]])

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        udot = np.linalg.solve(np.diag([1.0 + y[4], 2.0]) + added, [-y[0], 0.0])
        return np.array([*y[2:4], *udot, 0.1 * udot[0] - y[4]])

    expected = solve_ivp(rates, (0.0, 1.0), [0.1, 0.2, 0.3, 0.4, 0.6], method="DOP853", **STRICT).y[:, -1]
    for form in ("auto", "nonminimal", *MOMENTA):
        run = kg.build(model, form=form).integrate((0.0, 1.0), [0.1, 0.2], [0.3, 0.4], s0=[0.6], **STRICT)
        assert [*run.q[-1], *run.u[-1], *run.s[-1]] == pytest.approx(expected, rel=FINE_INTEGRATION)
    kg.verify(model)


@pytest.mark.parametrize("kind", ["added mass", "follower"])
def test_lagranges_method_takes_such_loads(kind: str) -> None:
    """A double pendulum in a Lagrangian, against the solution of SymPy's ``eom`` for q''."""
    q, (m, length, g, b) = me.dynamicsymbols("q1:3"), sm.symbols("m l g b")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O]
    for k, angle in enumerate(q, start=1):
        points.append(points[-1].locatenew(f"P{k}", length * (sm.cos(angle) * N.x + sm.sin(angle) * N.y)))
        points[-1].set_vel(N, points[-1].pos_from(O).dt(N))
    v1, v2 = (point.vel(N) for point in points[1:])
    height = (points[1].pos_from(O) + points[2].pos_from(O)).dot(N.x)
    loads = {"added mass": (points[2], -b * points[2].acc(N)), "follower": (points[1], -b * q[1].diff(TIME, 2) * N.y)}
    method = me.LagrangesMethod(m * (v1.dot(v1) + v2.dot(v2)) / 2 + m * g * height, q, forcelist=[loads[kind]], frame=N)
    values, state = {m: 1.1, length: 0.7, g: 9.81, b: 0.3}, ([0.3, 0.5], [0.2, -0.4])
    accelerations = [angle.diff(TIME, 2) for angle in q]
    equations = method.form_lagranges_equations().xreplace({a: sm.Dummy(str(k)) for k, a in enumerate(accelerations)})
    unknowns = sorted(equations.atoms(sm.Dummy), key=str)
    rates = dict(zip((angle.diff(TIME) for angle in q), state[1], strict=True))
    numbers = equations.subs(rates).subs(dict(zip(q, state[0], strict=True))).subs(values)
    expected = [float(sm.solve(numbers, unknowns)[x]) for x in unknowns]
    model = kg.Model.from_lagrange(method, parameters=values)
    solver = kg.build(model)
    assert solver.rhs(0.0, *state)[1] == pytest.approx(expected, rel=EVALUATION)
    motion = solver.integrate((0.0, 0.5), *state, **STRICT)
    for form in MOMENTA:
        assert kg.build(model, form=form).integrate((0.0, 0.5), *state, **STRICT).q[-1] == pytest.approx(
            motion.q[-1], rel=FINE_INTEGRATION
        )
    kg.verify(model)


# -- impulses and contacts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loads", [inerter, follower])
def test_impulses_use_the_full_matrix(loads: Any) -> None:
    """Integrating M u' = ... over the instant: M (u+ - u-) = I."""
    solver = kg.build(line(2, loads))
    matrix = np.array([[1.5, -0.5], [-0.5, 2.5]] if loads is inerter else [[1.0, 0.5], [0.0, 2.0]])
    result = solver.impulse(0.0, [0, 0], [0.3, 0.1], [1.0, 2.0])
    assert result.u == pytest.approx(np.array([0.3, 0.1]) + np.linalg.solve(matrix, [1.0, 2.0]), rel=EVALUATION)
    assert result.momentum_after == pytest.approx([1.0, 2.0] * result.u, rel=EVALUATION)


def test_a_ball_with_added_mass_bounces_as_by_hand() -> None:
    def loads(of: Line) -> list[Any]:
        return [(of.points[0], (-of.b * of.u[0].diff(TIME) - 9.81 * of.m[0]) * of.N.x)]

    model = line(1, loads, contacts=lambda of: [kg.Unilateral(of.x[0], kg.Restitution(0.5), name="floor")])
    run = kg.build(model).integrate((0.0, 1.0), [1.0], [0.0], **STRICT)
    fall = 9.81 / 1.5
    impact = run.events[0]
    assert impact.t == pytest.approx(np.sqrt(2 / fall), rel=FINE_INTEGRATION)
    assert impact.u_before == pytest.approx([-np.sqrt(2 * fall)], rel=FINE_INTEGRATION)
    assert impact.u_after == pytest.approx(-0.5 * impact.u_before, rel=FINE_INTEGRATION)
    assert impact.impulse == pytest.approx([1.5 * 1.5 * np.sqrt(2 * fall)], rel=FINE_INTEGRATION)


def test_two_bodies_with_an_inerter_collide_as_by_hand() -> None:
    """The impulse is v / (W M^-1 W^T) with W = (-1, 1) and M = [[1.5, -0.5], [-0.5, 2.5]]."""
    model = line(2, inerter, contacts=lambda of: [kg.Unilateral(of.x[1] - of.x[0], name="bump")])
    impact = kg.build(model).integrate((0.0, 1.0), [0.0, 1.0], [0.0, -2.0]).events[0]
    W, M = np.array([-1.0, 1.0]), np.array([[1.5, -0.5], [-0.5, 2.5]])
    jump = 2.0 / (W @ np.linalg.solve(M, W))
    assert impact.impulse == pytest.approx([jump], rel=FINE_INTEGRATION)
    assert impact.u_after == pytest.approx([0.0, -2.0] + np.linalg.solve(M, W) * jump, rel=FINE_INTEGRATION)


def test_impulses_of_events_use_the_full_matrix() -> None:
    model = line(
        2,
        inerter,
        impulses=lambda of: {"kick": [(of.points[0], of.N.x)]},
        events=lambda of: [kg.Event("there", of.x[0] - 1, impulse="kick")],
    )
    run = kg.build(model, functions=["rhs"]).integrate((0.0, 2.0), [0.0, 0.0], [1.0, 0.0])
    assert run.u[-1] == pytest.approx(np.array([1.0, 0.0]) + np.linalg.solve([[1.5, -0.5], [-0.5, 2.5]], [1.0, 0.0]))


def test_contacts_with_an_unsymmetric_matrix_are_refused_by_name() -> None:
    with raises(kg.BuildError, "contacts", "P1", "u1", "u2"):
        kg.build(line(2, follower, contacts=lambda of: [of.x[0]]))


def squared(of: Line) -> list[Any]:
    return [(of.points[0], -of.b * of.u[1] ** 2 * of.u[0].diff(TIME) * of.N.x)]


def test_jumps_of_speeds_on_which_the_matrix_depends_are_refused_by_name() -> None:
    for options in (
        {"contacts": lambda of: [of.x[0]]},
        {"impulses": lambda of: {"kick": [(of.points[0], of.N.x)]}},
    ):
        with raises(kg.BuildError, "P1", "u2"):
            kg.build(line(2, squared, **options))
    with raises(kg.SolveError, "impulse", "loads"):
        kg.build(line(2, squared)).impulse(0.0, [0, 0], [0, 1], [1, 1])


# -- controls -----------------------------------------------------------------------------------------------------


def driven(loads: Any, control: Any) -> kg.Model:
    """The line with the force f on the first body."""
    f = me.dynamicsymbols("f")

    def all_loads(of: Line) -> list[Any]:
        return [*loads(of), (of.points[0], (f - of.x[0]) * of.N.x)]

    return line(2, all_loads, inputs=[f], control=control)


@pytest.mark.parametrize("resolution", ["moore_penrose", "ideal"])
@pytest.mark.parametrize(
    ("kind", "constraint"),
    [
        ("follower", "holonomic"),
        ("added mass", "nonholonomic"),
        pytest.param("follower", None, marks=pytest.mark.target),
    ],
)
def test_servo_constraints_hold(kind: str, constraint: str | None, resolution: str) -> None:
    """The error of q1 = sin t follows e'' = -2 e' - 3 e under the torques of three motors."""
    system = chain(kind, constraint)
    c, torques = system.symbols, me.dynamicsymbols("tau1:4")
    motors = [(c.frames[k + 1], (torques[k] - (torques[k + 1] if k < 2 else 0)) * c.N.z) for k in range(3)]
    count = 3 if constraint is None else 2
    targets = [c.q[0] - sm.sin(TIME), c.q[1], c.q[2]][:count]
    model = kg.Model.from_kane(
        system.method,
        loads=[*system.method.loads, *motors],
        parameters=system.parameters,
        control=kg.Servo(targets, theta=[(-2, -3)] * count, resolution=resolution),
    )
    solver = kg.build(model)
    q, u = solver.make_consistent(0.0, system.q, system.u)
    run = solver.integrate((0.0, 1.0), q, u, control=True, **STRICT)
    decay = np.roots([1, 2, 3])
    amplitudes = np.linalg.solve([[1, 1], decay], [q[0], u[0] - 1])
    assert run.q[:, 0] - np.sin(run.t) == pytest.approx(
        (np.exp(np.outer(run.t, decay)) @ amplitudes).real, abs=FINE_INTEGRATION
    )
    if resolution == "ideal" and kind == "follower":
        kg.verify(model)


def test_a_control_in_the_factor_of_an_acceleration_is_refused_by_name() -> None:
    f = me.dynamicsymbols("f")
    servo = lambda of: kg.Servo([of.x[0] - sm.sin(TIME)], theta=[(-2, -3)])  # noqa: E731
    with raises(kg.ModelError, "f"):
        kg.build(
            line(
                2, lambda of: [(of.points[0], (f - f * of.b * of.u[0].diff(TIME)) * of.N.x)], inputs=[f], control=servo
            )
        )


@pytest.mark.parametrize("loads", [inerter, follower])
def test_control_constraints_hold(loads: Any) -> None:
    model = driven(loads, lambda of: kg.ControlConstraints([of.x[0] - sm.sin(TIME)]))
    run = kg.build(model).integrate((0.0, 1.0), [0.0, 0.0], [1.0, 0.0], control=True, tau0=[0.0], **STRICT)
    assert run.q[:, 0] == pytest.approx(np.sin(run.t), abs=FINE_INTEGRATION)


@pytest.mark.parametrize("loads", [inerter, follower])
def test_inverse_dynamics_includes_the_loads(loads: Any) -> None:
    solver, times = kg.build(driven(loads, None), functions="all"), np.linspace(0, 1, 5)
    found = solver.inverse_dynamics({"x1": sm.sin(TIME), "x2": 0}, times)
    inertia = 1.5 if loads is inerter else 1.0
    assert found.controls[:, 0] == pytest.approx((1 - inertia) * np.sin(times), abs=EVALUATION)
    R, c = solver.underactuation(0.0, [0, 0], [0, 0], r=[0.0])
    assert R / R[0, 1] == pytest.approx(np.array([[-0.2 if loads is inerter else 0.0, 1.0]]))
    assert c == pytest.approx([0.0])


# -- what integrates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["added mass", "follower"])
def test_stabilized_stiff_and_interpreted_runs_agree(kind: str) -> None:
    system, span = chain(kind, "holonomic"), (0.0, 0.5)
    reference = chain_solver(kind, "holonomic", "auto")
    q, u = reference.make_consistent(0.0, system.q, system.u)
    expected = reference.integrate(span, q, u, **STRICT).q[-1]
    runs = [
        reference.with_stabilization(kg.Baumgarte(alpha=10, beta=10)).integrate(span, q, u, **STRICT),
        reference.with_stabilization(kg.Projection()).integrate(span, q, u, **STRICT),
        reference.integrate(span, q, u, method="rodas", **STRICT),
        kg.build(system.model, backend="interpreted").integrate(span, q, u, **STRICT),
    ]
    for run in runs:
        assert run.q[-1] == pytest.approx(expected, rel=FINE_INTEGRATION)


@pytest.mark.parametrize("kind", ["added mass", "unsteady"])
def test_jacobians_are_slopes_of_the_accelerations(kind: str) -> None:
    solver, step = chain_solver(kind, None, "auto"), 1e-6
    t, q, u = 0.2, np.array([0.3, 0.4, -0.5]), np.array([0.2, -0.4, 0.7])
    for name, x in (("jacobian_q", q), ("jacobian_u", u)):
        found = solver._functions.get(name).value(t, q, u)
        for k, direction in enumerate(np.eye(3)):
            ends = []
            for sign in (1, -1):
                moved = x + sign * step * direction
                ends.append(np.concatenate(solver.rhs(t, *((moved, u) if x is q else (q, moved)))))
            # central difference: rounding over step
            assert found[:, k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-6)


def test_the_emitted_project_compiles(tmp_path: Path) -> None:
    model = line(
        2,
        inerter,
        impulses=lambda of: {"kick": [(of.points[0], of.N.x)]},
        events=lambda of: [kg.Event("there", of.x[0] - 1, impulse="kick")],
    )
    kg.emit(model, tmp_path / "project")
    assert 'kg_impulse_rows_of(host->model, "M")' in (tmp_path / "project" / "examples" / "line_example.c").read_text()
    subprocess.run(["make", "-C", str(tmp_path / "project")], check=True, capture_output=True)
