"""Euler parameters keep their norm, whether or not the user lists it among the constraints."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, says_one
from scipy.integrate import solve_ivp
from tolerances import CONSISTENT_START, EVALUATION, FINE_INTEGRATION

import kanegen as kg
from kanegen.errors import ModelError, SolveError
from kanegen.graph import evaluate
from kanegen.model.geometry import euler_parameter_groups

TIME = me.dynamicsymbols._t
INERTIA = (2, 3, 5)
MASS, ARM, GRAVITY = 2.0, 0.5, 10.0

# A projection stops where residuals are below 1e-13 of the largest coordinate, which is 1.
KEPT = 1e-12


def rates(e: Any, w: Any) -> Any:
    """q' of Euler parameters under the angular velocity w in the body."""
    e0, e1, e2, e3 = e
    return sm.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) * sm.Matrix(w) / 2


def norm(e: Any) -> Any:
    return sum(x**2 for x in e) - 1


def turned(name: str, N: Any) -> tuple[Any, Any, Any]:
    """A frame with its Euler parameters and angular velocity."""
    e, w = me.dynamicsymbols(f"{name}e:4"), me.dynamicsymbols(f"{name}w1:4")
    B = me.ReferenceFrame(name)
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    return e, w, B


def top_and_body(own: bool = False) -> kg.Model:
    """A heavy top about the fixed point O, and a free body that turns about its center; two groups.

    ``own``: the user lists the norm of the top's, with a factor and another sign.
    """
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    e, w, A = turned("A", N)
    f, v, B = turned("B", N)
    C = O.locatenew("C", ARM * A.z)
    C.v2pt_theory(O, N, A)
    top = me.RigidBody("top", C, A, sm.Integer(2), (me.inertia(A, *INERTIA), C))
    body = me.RigidBody("body", O, B, sm.Integer(1), (me.inertia(B, *INERTIA), O))
    spin = top.central_inertia.dot(A.ang_vel_in(N)) + top.mass * C.pos_from(O).cross(C.vel(N))
    return kg.Model(
        name="top_and_body",
        frame=N,
        coordinates=(*f[2:], *e, *f[:2]),  # the groups need not stand together
        speeds=(*w, *v),
        kinematics=[x.diff(TIME) - rate for x, rate in zip((*e, *f), (*rates(e, w), *rates(f, v)), strict=True)],
        bodies=(top, body),
        gravity=-GRAVITY * N.z,
        holonomic_constraints=(-3 * norm(e),) if own else (),
        outputs={"about_z": spin.dot(N.z), "momentum": (body.central_inertia.dot(B.ang_vel_in(N)), N)},
    )


Q0 = np.array([0.3, -0.2, 0.9, 0.3, -0.1, 0.2, 0.8, 0.4])
Q0[2:6] /= np.linalg.norm(Q0[2:6])
Q0[[0, 1, 6, 7]] /= np.linalg.norm(Q0[[0, 1, 6, 7]])
U0 = np.array([0.4, -0.3, 6.0, 1.0, 0.2, -0.7])


@cache
def solver(own: bool = False) -> kg.Solver:
    functions = ("rhs", "Q", "energy", "outputs", "residuals", "displacements", "position_level", "jacobians")
    return kg.build(top_and_body(own), functions=functions, stabilization=kg.Projection())


def groups_of(q: Any) -> tuple[Any, Any]:
    """The top's and the body's Euler parameters, scalar part first."""
    return q[..., 2:6], q[..., [6, 7, 0, 1]]


# --- recognition -----------------------------------------------------------------------------------------------


def handwritten(e: Any) -> Any:
    """A rotation on the sphere only, and another polynomial than SymPy's off it."""
    e0, e1, e2, e3 = e
    return sm.Matrix(
        [
            [1 - 2 * (e2**2 + e3**2), 2 * (e1 * e2 - e0 * e3), 2 * (e1 * e3 + e0 * e2)],
            [2 * (e1 * e2 + e0 * e3), 1 - 2 * (e1**2 + e3**2), 2 * (e2 * e3 - e0 * e1)],
            [2 * (e1 * e3 - e0 * e2), 2 * (e2 * e3 + e0 * e1), 1 - 2 * (e1**2 + e2**2)],
        ]
    )


def test_what_is_recognized_as_euler_parameters() -> None:
    e, others = me.dynamicsymbols("e:4"), me.dynamicsymbols("q1:4")
    N, B, C = (me.ReferenceFrame(name) for name in "NBC")
    B.orient_quaternion(N, e)
    C.orient_body_fixed(N, others, "123")
    fourth = me.dynamicsymbols("q4")
    angles = sm.Matrix(C.dcm(N)) * N.orientnew("D", "Axis", (fourth, N.x)).dcm(N)
    shuffled = (e[2], others[0], e[0], e[3], others[1], e[1])
    expected = ((e[2], e[0], e[3], e[1]),)
    tilt = N.orientnew("E", "Axis", (sm.Symbol("alpha"), N.x)).dcm(N)
    for matrix in (B._dcm_dict[N], N._dcm_dict[B], handwritten(e), handwritten(e).expand(), tilt * handwritten(e)):
        assert euler_parameter_groups(shuffled, [matrix]) == expected
    assert euler_parameter_groups(shuffled, [B._dcm_dict[N], N._dcm_dict[B], handwritten(e)]) == expected
    divided = B._dcm_dict[N] / sum(x**2 for x in e)  # a rotation whatever the norm is
    for matrix in (divided, C._dcm_dict[N], angles, 2 * handwritten(e), handwritten((*e[:3], sm.Symbol("p")))):
        assert euler_parameter_groups((*e, *others, fourth), [matrix]) == ()
    assert euler_parameter_groups(e[:3], [B._dcm_dict[N]]) == ()


@pytest.mark.parametrize("own", [False, True])
def test_norms_are_invariants_without_a_row(own: bool) -> None:
    model = top_and_body(own)
    assert len(model.euler_parameters) == 2
    equations = kg.derive(model)
    assert (len(equations.constraints.rows), len(equations.constraints.invariants)) == (0, 2)
    labels = [item.label for item in equations.constraints.invariants]
    assert labels[-1] == "Be2**2 + Be3**2 + Be0**2 + Be1**2 - 1 (norm of Euler parameters)"
    assert (labels[0] == str(-3 * norm(me.dynamicsymbols("Ae:4")))) == own


# --- consistent states and runs --------------------------------------------------------------------------------


def test_residuals_and_consistent_starts() -> None:
    built = solver()
    names = ("Ae0**2 + Ae1**2 + Ae2**2 + Ae3**2", "Be2**2 + Be3**2 + Be0**2 + Be1**2")
    assert set(built.description.constraints.positions) == {
        f"{squares} - 1 (norm of Euler parameters)" for squares in names
    }
    off = Q0.copy()
    off[2:6] *= 1.1
    position, velocity = built.residuals(0.0, off, U0)
    assert sorted(position) == pytest.approx([0.0, 0.21], abs=EVALUATION)
    assert velocity.size == 0
    with raises(SolveError, "Ae0**2", "Euler parameters", "0.21"):
        built.integrate((0.0, 1.0), off, U0)
    # The nearest state on the sphere has the same direction.
    q, u = built.make_consistent(0.0, 3.0 * Q0, U0)
    assert q == pytest.approx(Q0, abs=CONSISTENT_START)
    assert u == pytest.approx(U0, abs=CONSISTENT_START)


@pytest.mark.parametrize("own", [False, True])
def test_projection_keeps_norms_and_motion(own: bool) -> None:
    built = solver(own)
    drifting = built.with_stabilization(None).integrate((0.0, 20.0), Q0, U0, rtol=1e-6, atol=1e-8)
    run = built.integrate((0.0, 20.0), Q0, U0, rtol=1e-9, atol=1e-11)
    for e in groups_of(drifting.q):
        assert np.abs((e**2).sum(1) - 1.0).max() > 1e3 * KEPT  # there is something to keep
    for e in groups_of(run.q):
        assert np.abs((e**2).sum(1) - 1.0).max() < KEPT
    states = list(zip(run.t, run.q, run.u, strict=True))
    energies = np.array([built.energy(*state) for state in states])
    assert energies == pytest.approx(energies[0], rel=FINE_INTEGRATION)
    outputs = [built.outputs(*state) for state in states]
    about_z = np.array([float(output["about_z"]) for output in outputs])
    assert about_z == pytest.approx(about_z[0], rel=FINE_INTEGRATION)
    momentum = np.array([np.ravel(output["momentum"]) for output in outputs])
    assert np.abs(momentum - momentum[0]).max() < FINE_INTEGRATION


def test_free_body_against_eulers_equations() -> None:
    """R' = R [w], I w' = I w x w by SciPy: no Euler parameters."""
    inertia = np.array(INERTIA, float)

    def matrix(e: Any) -> Any:
        return np.array(handwritten(sm.Matrix(e)), dtype=float)

    def slope(_: float, y: Any) -> Any:
        R, w = y[:9].reshape(3, 3), y[9:]
        skew = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([(R @ skew).ravel(), np.cross(inertia * w, w) / inertia])

    start = np.concatenate([matrix(groups_of(Q0)[1]).ravel(), U0[3:]])
    expected = solve_ivp(slope, (0.0, 10.0), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    run = solver().integrate((0.0, 10.0), Q0, U0, rtol=1e-10, atol=1e-12)
    assert run.u[-1, 3:] == pytest.approx(expected[9:], abs=FINE_INTEGRATION)
    assert matrix(groups_of(run.q[-1])[1]) == pytest.approx(expected[:9].reshape(3, 3), abs=FINE_INTEGRATION)


def test_linear_model_has_three_coordinates_for_each_group() -> None:
    linear = solver().linearize(0.0, Q0, np.zeros(6))
    assert (len(linear.coordinates), len(linear.speeds)) == (6, 6)


def test_verification_draws_states_on_the_spheres() -> None:
    report = kg.verify(top_and_body())
    assert report.ok
    says_one(report.notes, "Ae0**2 + Ae1**2 + Ae2**2 + Ae3**2 - 1", "norm of Euler parameters")
    assert {"Lagrange", "Gauss"} <= {check.principle for check in report.checks if check.ok}


# --- kinematics that do not keep the norm ----------------------------------------------------------------------


def single(kinematics: str, **constraints: Any) -> kg.Model:
    """One free body. ``kinematics``: "w" angular velocity, "rates" q' = u, "pulled" with a term towards the sphere."""
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    O = me.Point("O")
    O.set_vel(N, 0)
    e = me.dynamicsymbols("e:4")
    u = me.dynamicsymbols("u:4")[: 4 if kinematics == "rates" else 3]
    B.orient_quaternion(N, e)
    if kinematics == "rates":
        right = sm.Matrix(u)
        omega = 2 * rates_matrix(e).T * right
        B.set_ang_vel(N, omega[0] * B.x + omega[1] * B.y + omega[2] * B.z)
    else:
        right = rates(e, u) - (5 * norm(e) * sm.Matrix(e) if kinematics == "pulled" else sm.zeros(4, 1))
        B.set_ang_vel(N, u[0] * B.x + u[1] * B.y + u[2] * B.z)
    return kg.Model(
        name="single",
        frame=N,
        coordinates=e,
        speeds=u,
        kinematics=[x.diff(TIME) - rate for x, rate in zip(e, right, strict=True)],
        bodies=(me.RigidBody("body", O, B, sm.Integer(1), (me.inertia(B, *INERTIA), O)),),
        **constraints,
    )


def rates_matrix(e: Any) -> Any:
    e0, e1, e2, e3 = e
    return sm.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]])


def test_kinematics_that_leave_the_sphere_are_refused() -> None:
    with raises(ModelError, "e0**2 + e1**2 + e2**2 + e3**2", "Euler parameters"):
        _ = kg.derive(single("rates")).constraints


def test_a_norm_that_constraints_keep_is_theirs() -> None:
    e, u = me.dynamicsymbols("e:4"), me.dynamicsymbols("u:4")
    listed = kg.derive(single("rates", holonomic_constraints=(norm(e),))).constraints
    assert (len(listed.rows), len(listed.invariants)) == (1, 0)
    rolled = single("rates", nonholonomic_constraints=(sum(x * y for x, y in zip(e, u, strict=True)),))
    assert len(kg.derive(rolled).constraints.invariants) == 0


def test_a_pull_towards_the_sphere_keeps_the_norm() -> None:
    found = kg.derive(single("pulled")).constraints
    assert (len(found.rows), len(found.invariants)) == (0, 1)


def test_a_constraint_on_two_norms_contains_neither() -> None:
    model = top_and_body()
    e, f = model.euler_parameters
    both = kg.Model(
        name="both",
        frame=model.frame,
        coordinates=model.coordinates,
        speeds=model.speeds,
        kinematics=model.kinematics,
        bodies=model.bodies,
        holonomic_constraints=(norm(e) + norm(f),),
    )
    assert len(kg.derive(both).constraints.invariants) == 3


# --- a particle that moves in a body carried by Euler parameters ---------------------------------------------------


def slosh_mass() -> kg.Model:
    """A free body with a sloshing mass on a spring, whose position is rotated where the norm is 1 only."""
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    e, w, B = turned("B", N)
    (x, s), (u, v) = me.dynamicsymbols("x s"), me.dynamicsymbols("u v")
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    R = P.locatenew("R", s * B.x + B.y / 5)
    body = me.RigidBody("body", P, B, 3, (me.inertia(B, *INERTIA), P))
    kinematics = [x.diff(TIME) - u, *(sm.Matrix(e).diff(TIME) - rates(e, w)), s.diff(TIME) - v]
    return kg.Model(
        name="slosh",
        frame=N,
        coordinates=[x, *e, s],
        speeds=[u, *w, v],
        kinematics=kinematics,
        bodies=[body, me.Particle("slosh", R, sm.Rational(1, 2))],
        loads=[(R, -3 * s * B.x), (P, 3 * s * B.x)],
    )


def test_a_slosh_mass_verifies() -> None:
    """Random states had norms other than 1, and derivatives of u' along the norm were compared."""
    report = kg.verify(slosh_mass(), states=3, forms=("momentum_unreduced",))
    assert report.check("Jacobians of q', u'").ok
    assert report.check("form momentum_unreduced").ok  # Q is positive definite where the norm is 1


def test_random_states_of_decisions_have_unit_norms() -> None:
    for model in (
        slosh_mass(),
        top_and_body(),
        single("rates", holonomic_constraints=[norm(me.dynamicsymbols("e:4"))]),
    ):
        system = kg.derive(model).system
        for state in system.states:
            assert [abs(x) for x in evaluate([system.norm(group) for group in system.norms], state)] == pytest.approx(
                [0.0] * len(system.norms), abs=1e-14
            )


def test_direction_cosines_are_rotations_at_random_states() -> None:
    """Nine direction cosines under Poisson's equations keep six invariants, which rank decisions satisfy."""
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    O = me.Point("O")
    O.set_vel(N, 0)
    c, w = me.dynamicsymbols("c:9"), me.dynamicsymbols("w:3")
    R = sm.Matrix(3, 3, c)
    B.orient_dcm(N, R.T)  # type: ignore[no-untyped-call]
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    skew = sm.Matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    orthogonal = R * R.T - sm.eye(3)
    model = kg.Model(
        name="cosines",
        frame=N,
        coordinates=c,
        speeds=w,
        kinematics=list(R.diff(TIME) - R * skew),
        bodies=[me.RigidBody("body", O, B, 1, (me.inertia(B, *INERTIA), O))],
        holonomic_constraints=[orthogonal[i, j] for i in range(3) for j in range(i + 1)],
        check_kinematics=False,
    )
    equations = kg.derive(model)
    assert len(equations.constraints.invariants) == 6
    for state in equations.system.states:
        assert np.reshape(state["q"], (3, 3)) @ np.reshape(state["q"], (3, 3)).T == pytest.approx(np.eye(3), abs=1e-12)
