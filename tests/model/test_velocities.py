"""Velocities, angular velocities and accelerations that contradict positions are found when a model is made."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, says, warns

import kanegen as kg

q1, q2, q3, u1, u2, u3 = me.dynamicsymbols("q1 q2 q3 u1 u2 u3")
m, length, r = sm.symbols("m l r")
t = me.dynamicsymbols._t


class Pendulum:
    """A double pendulum in the plane, its second frame oriented relative to the first."""

    def __init__(self) -> None:
        self.N, self.A, self.B = (me.ReferenceFrame(name) for name in "NAB")
        self.A.orient_axis(self.N, self.N.z, q1)
        self.B.orient_axis(self.A, self.A.z, q2)
        self.O = me.Point("O")
        self.O.set_vel(self.N, 0)
        self.P = self.O.locatenew("P", length * self.A.x)
        self.Q = self.P.locatenew("Q", length * self.B.x)

    def model(self, *points: me.Point, **options: Any) -> kg.Model:
        bodies = [me.Particle(f"body_{point}", point, m) for point in points or (self.P, self.Q)]
        options = {"kinematics": (q1.diff(t) - u1, q2.diff(t) - u2), "bodies": bodies} | options
        return kg.Model(name="pendulum", frame=self.N, coordinates=(q1, q2), speeds=(u1, u2), **options)


def test_a_velocity_with_the_wrong_frame_is_named_with_both_expressions() -> None:
    arm = Pendulum()
    arm.P.v2pt_theory(arm.O, arm.N, arm.A)
    arm.Q.v2pt_theory(arm.P, arm.N, arm.A)  # Q moves with B
    with pytest.raises(kg.ModelError) as caught:
        arm.model()
    (problem,) = caught.value.problems
    says(problem, "body_Q", "velocity", "Q", "N", "P", "check_kinematics=False")
    assert "l*Derivative(q1(t), t)*A.y" in problem
    assert "l*(Derivative(q1(t), t) + Derivative(q2(t), t))*B.y" in problem
    assert arm.model(check_kinematics=False).name == "pendulum"


def test_a_velocity_with_the_wrong_sign_is_refused() -> None:
    arm = Pendulum()
    arm.P.set_vel(arm.N, -length * u1 * arm.A.y)
    with raises(kg.ModelError, "mass center", "P", "N", "O"):
        arm.model(arm.P)


@pytest.mark.parametrize(("error", "refused"), [(1e-5, True), (-1e-5, True), (1e-7, False)])
def test_errors_above_rounded_constants_are_refused(error: float, refused: bool) -> None:
    """The limit is a part in a million."""
    arm = Pendulum()
    arm.P.set_vel(arm.N, (1.0 + error) * length * u1 * arm.A.y)
    if refused:
        with raises(kg.ModelError, "mass center", "P"):
            arm.model(arm.P)
    else:
        assert arm.model(arm.P).name == "pendulum"


def test_right_velocities_pass_whatever_their_form() -> None:
    arm = Pendulum()
    arm.P.set_vel(arm.N, length * u1 * (sm.cos(q1) * arm.N.y - sm.sin(q1) * arm.N.x))
    arm.Q.v2pt_theory(arm.P, arm.N, arm.B)
    assert mass_matrix(arm.model()) == mass_matrix(Pendulum().model())


def mass_matrix(model: kg.Model) -> sm.Matrix:
    """Q as an expression in one form."""
    return sm.simplify(kg.derive(model).Q.to_sympy())


def test_kinematic_equations_that_contradict_the_velocity() -> None:
    arm = Pendulum()
    arm.P.set_vel(arm.N, length * u1 * arm.A.y)
    with raises(kg.ModelError, "mass center", "P"):
        arm.model(arm.P, kinematics=(q1.diff(t) - 2 * u1, q2.diff(t) - u2))


def test_a_wrong_velocity_of_a_joint_is_found_at_the_body_it_carries() -> None:
    arm = Pendulum()
    arm.P.set_vel(arm.N, 2 * length * u1 * arm.A.y)
    with raises(kg.ModelError, "body_Q", "velocity", "P", "mass center", "N"):
        arm.model(arm.Q)


def test_velocities_that_hold_by_constraints_only() -> None:
    """A slider whose velocity is written with the dependent speed eliminated."""
    x, y, ux, uy = me.dynamicsymbols("x y ux uy")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, ux * N.x + 3 * ux * N.y)
    given = {
        "name": "wire",
        "frame": N,
        "coordinates": (x, y),
        "speeds": (ux, uy),
        "kinematics": (x.diff(t) - ux, y.diff(t) - uy),
        "bodies": [me.Particle("p", P, m)],
    }
    kg.Model(**given, nonholonomic_constraints=[uy - 3 * ux])
    with raises(kg.ModelError, "mass center", "P"):
        kg.Model(**given, nonholonomic_constraints=[uy - 2 * ux])


def rolling(spin: Any, **options: Any) -> kg.Model:
    """SymPy's rolling disc: the contact point is at rest, the spin is in the angular velocity."""
    N, Y, L, R = (me.ReferenceFrame(name) for name in "NYLR")
    Y.orient_axis(N, N.z, q1)
    L.orient_axis(Y, Y.x, q2)
    R.orient_axis(L, L.y, q3)
    R.set_ang_vel(N, u1 * L.x + spin * L.y + u3 * L.z)
    contact = me.Point("C")
    contact.set_vel(N, 0)
    center = contact.locatenew("center", r * L.z)
    center.v2pt_theory(contact, N, R)
    inertia = me.inertia(L, m / 4 * r**2, m / 2 * r**2, m / 4 * r**2)
    return kg.Model(
        name="disc",
        frame=N,
        coordinates=(q1, q2, q3),
        speeds=(u1, u2, u3),
        kinematics=(q1.diff(t) - u3 / sm.cos(q2), q2.diff(t) - u1, q3.diff(t) - u2 + u3 * sm.tan(q2)),
        bodies=[me.RigidBody("disc", center, R, m, (inertia, center))],
        **options,
    )


@pytest.mark.parametrize("factor", [1, 2], ids=["spin", "twice"])
def test_a_rolling_body_of_revolution_keeps_the_spin_that_was_set(factor: int) -> None:
    """Its contact point has no velocity of a body point, and no place depends on the spin about the axis of symmetry.

    By hand: v = r (s L.x - u1 L.y) at the center for the spin s.
    """
    expected = m * r**2 * sm.diag(sm.Rational(5, 4), sm.Rational(3, 2) * factor**2, sm.Rational(1, 4))
    assert sm.simplify(mass_matrix(rolling(factor * u2)) - expected) == sm.zeros(3)


def test_an_angular_velocity_that_contradicts_the_orientation() -> None:
    arm = Pendulum()
    arm.B.set_ang_vel(arm.A, u2 * arm.A.x)
    body = me.RigidBody("rod", arm.Q, arm.B, m, (me.inertia(arm.B, 1, 2, 3), arm.Q))
    with raises(kg.ModelError, "rod", "angular velocity", "B", "N", "orientation"):
        arm.model(bodies=[body])


def test_unit_quaternions() -> None:
    e = me.dynamicsymbols("e0:4")
    w = me.dynamicsymbols("w1:4")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    rows = sm.Matrix([[-e[1], -e[2], -e[3]], [e[0], -e[3], e[2]], [e[3], e[0], -e[1]], [-e[2], e[1], e[0]]])

    def top(factor: Any) -> kg.Model:
        rates = factor * rows * sm.Matrix(w)
        return kg.Model(
            name="top",
            frame=N,
            coordinates=e,
            speeds=w,
            kinematics={x.diff(t): rate for x, rate in zip(e, rates, strict=True)},
            bodies=[me.RigidBody("top", O, B, m, (me.inertia(B, 1, 2, 3), O))],
            holonomic_constraints=[sum(x**2 for x in e) - 1],
        )

    top(sm.Rational(1, 2))
    with raises(kg.ModelError, "top", "angular velocity", "B"):
        top(1)


def test_an_acceleration_that_contradicts_the_velocity() -> None:
    """a2pt_theory about a contact point, which is not fixed in the wheel: KanesMethod would take it as it is."""
    wheel = me.ReferenceFrame("R")
    N = me.ReferenceFrame("N")
    wheel.orient_axis(N, N.z, q1)
    contact = me.Point("C")
    contact.set_vel(N, 0)
    center = contact.locatenew("center", r * N.y)
    center.v2pt_theory(contact, N, wheel)
    body = me.RigidBody("wheel", center, wheel, m, (me.inertia(wheel, 0, 0, m * r**2), center))
    given = {"name": "wheel", "frame": N, "coordinates": (q1,), "speeds": (u1,), "kinematics": (q1.diff(t) - u1,)}
    kg.Model(**given, bodies=[body])
    center.a2pt_theory(contact, N, wheel)
    with raises(kg.ModelError, "wheel", "acceleration", "center", "N"):
        kg.Model(**given, bodies=[body])
    center.set_acc(N, center.vel(N).dt(N))
    kg.Model(**given, bodies=[body])


def test_inputs_without_known_rates_are_left_out() -> None:
    """The velocity of a driven point is set; nothing tells that z' is not zero."""
    z = me.dynamicsymbols("z")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", (q1 + z) * N.x)
    P.set_vel(N, u1 * N.x)
    given = {
        "name": "driven",
        "frame": N,
        "coordinates": (q1,),
        "speeds": (u1,),
        "kinematics": (q1.diff(t) - u1,),
        "bodies": [me.Particle("p", P, m)],
    }
    kg.Model(**given, inputs=(z,))
    with raises(kg.ModelError, "mass center", "P"):
        kg.Model(**given, inputs=(kg.Input(z, rate=sm.cos(t)),))


def test_a_warning_when_no_state_satisfies_the_constraints() -> None:
    arm = Pendulum()
    arm.P.set_vel(arm.N, length * u1 * arm.A.y)
    impossible = {"holonomic_constraints": [sm.sin(q1) - 2]}
    with warns(kg.ModelWarning, "'pendulum'", "velocities") as caught:
        arm.model(arm.P, **impossible)
    says(caught[0].message, "check_kinematics=False")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arm.model(arm.P, check_kinematics=False, **impossible)


def test_implied_constraints_must_be_kept_by_the_velocity_constraints() -> None:
    arm = Pendulum()
    kept = {"nonholonomic_constraints": [u1 + 3 * u2], "implied_constraints": [q1 + 3 * q2 - 1]}
    assert kg.derive(arm.model(**kept)).J.shape == (1, 2)
    with raises(kg.ModelError, "implied_constraints[0]", "rate"):
        arm.model(**kept | {"implied_constraints": [q1 + 2 * q2 - 1]})


def test_functions_of_the_user_need_not_be_defined_everywhere() -> None:
    """A guide curve known for positive x only: states with other x are passed over."""
    root = kg.Function("guide", 1, python=_root, c="sqrt(x)", derivatives=[lambda x: 1 / (2 * sm.sqrt(x))])
    x, y, ux, uy = me.dynamicsymbols("x y ux uy")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, ux * N.x + uy * N.y)
    given = {
        "name": "guided",
        "frame": N,
        "coordinates": (x, y),
        "speeds": (ux, uy),
        "kinematics": (x.diff(t) - ux, y.diff(t) - uy),
        "bodies": [me.Particle("p", P, m)],
        "holonomic_constraints": [y - root(x)],
    }
    kg.Model(**given)
    P.set_vel(N, ux * N.x - uy * N.y)
    with raises(kg.ModelError, "mass center", "P"):
        kg.Model(**given)


def _root(x: float) -> float:
    if x <= 0.0:
        raise ValueError("x is not positive")
    return x**0.5


@pytest.mark.parametrize("factors", [(1e6, 1e-12, 1), (1e-12, 1e12, 1e-3)])
def test_factors_of_kinematical_equations_accuse_nobody(factors: tuple[float, float, float]) -> None:
    """The least-squares step lost the row times 1e-12, and a right angular velocity "contradicted" the orientation."""
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.orient_body_fixed(N, (q1, q2, q3), "XYZ")
    omega = B.ang_vel_in(N)
    kinematics = [k * (omega.dot(axis) - u) for k, axis, u in zip(factors, B, (u1, u2, u3), strict=True)]
    B.set_ang_vel(N, u1 * B.x + u2 * B.y + u3 * B.z)
    kg.Model(
        name="turning",
        frame=N,
        coordinates=(q1, q2, q3),
        speeds=(u1, u2, u3),
        kinematics=kinematics,
        bodies=[me.RigidBody("body", O, B, 1, (me.inertia(B, 1, 2, 2.5), O))],
    )


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1.0, 1e6])
def test_wrong_velocities_of_any_size_are_found(size: float) -> None:
    """Velocities below 1e-6 m/s were not compared; right ones of any size pass."""
    for right in (True, False):
        N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
        O.set_vel(N, 0)
        A.orient_axis(N, N.z, q1)
        P = O.locatenew("P", size * A.x)
        P.set_vel(N, size * u1 * (A.y if right else A.x))

        def model(N: Any = N, P: Any = P) -> kg.Model:
            return kg.Model(
                name="arm",
                frame=N,
                coordinates=[q1],
                speeds=[u1],
                kinematics=[q1.diff(t) - u1],
                bodies=[me.Particle("P", P, 1)],
            )

        if right:
            model()
        else:
            with raises(kg.ModelError, "velocity", "P", "contradicts"):
                model()
