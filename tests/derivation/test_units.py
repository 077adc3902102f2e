"""Models whose numbers belong to small units: micrometers, milligrams, nanoamperes. No factor changes their meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises

import kanegen as kg
from kanegen.derivation.control.servo import servo_equations
from kanegen.derivation.forces.generalized import require_places
from kanegen.derivation.sensitivities import contact_rows
from kanegen.graph import evaluate
from kanegen.model.linear import is_affine

t = me.dynamicsymbols._t


def micrometer_pendulum(factor: float = 1e-6) -> kg.Model:
    """A pendulum of 1 cm: coordinates in micrometers, the closure in square meters."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bob = O.locatenew("bob", factor * (x * N.x + y * N.y))
    bob.set_vel(N, factor * (u * N.x + v * N.y))
    return kg.Model(
        name="micrometer_pendulum",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff(t) - u, y.diff(t) - v],
        bodies=[me.Particle("bob", bob, 1e-6)],
        gravity=-9.81 * N.y,
        holonomic_constraints=[(factor * x) ** 2 + (factor * y) ** 2 - 1e-4],
        check_kinematics=False,
    )


def test_pendulum_in_micrometers_keeps_its_constraint():
    """Its row of J, 2e-12 x, counted as zero: the bob fell freely in every form, and ``kg.verify`` passed."""
    equations = kg.derive(micrometer_pendulum())
    assert len(equations.constraints.rows) == 1
    assert not equations.constraints.invariants


@pytest.mark.parametrize("form", ["pseudoinverse", "canonical"])
def test_pendulum_in_micrometers_swings(form):
    """Against the pendulum in meters, and the length of the closure."""
    small, large = (kg.build(micrometer_pendulum(factor), form=form) for factor in (1e-6, 1.0))
    ends = [
        solver.integrate(
            (0.0, 0.05), {"x": 6e-3 / factor, "y": -8e-3 / factor}, {"u": 0.0, "v": 0.0}, atol=1e-12 / factor
        )
        for solver, factor in ((small, 1e-6), (large, 1.0))
    ]
    np.testing.assert_allclose(1e-6 * ends[0].q[-1], ends[1].q[-1], rtol=1e-9, atol=1e-11)
    assert np.hypot(*ends[0].q[-1]) == pytest.approx(1e4, rel=1e-6)


def test_slider_crank_in_micrometers_keeps_its_closure():
    """Closed by the length of the connecting rod, in square meters."""
    phi, x, w, v = me.dynamicsymbols("phi x w v")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, N.z, phi)
    A.set_ang_vel(N, w * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    pin = O.locatenew("pin", 1e-2 * A.x)
    slider = O.locatenew("slider", 1e-6 * x * N.x)
    slider.set_vel(N, 1e-6 * v * N.x)
    rod = slider.pos_from(pin)
    model = kg.Model(
        name="micrometer_slider_crank",
        frame=N,
        coordinates=[phi, x],
        speeds=[w, v],
        kinematics=[phi.diff(t) - w, x.diff(t) - v],
        bodies=[me.Particle("pin", pin, 1e-6), me.Particle("slider", slider, 1e-6)],
        holonomic_constraints=[rod.dot(rod) - 9e-4],
        check_kinematics=False,
    )
    assert len(kg.derive(model).constraints.rows) == 1


V = me.dynamicsymbols("V")


def servo_model(force: Any) -> kg.Model:
    x, u = me.dynamicsymbols("x u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    return kg.Model(
        name="nanonewtons",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(t) - u],
        bodies=[me.Particle("P", P, 1e-9)],
        loads=[(P, force * N.x)],
        inputs=[V],
        control=kg.Servo([x - 1], [(-4, -4)]),
    )


def test_quadratic_force_of_nanonewtons_is_not_affine():
    """``1e-9 V + 2e-11 V**2`` counted as affine, and the controls were silently wrong."""
    with raises(kg.ModelError, "V", "nonlinearly"):
        servo_equations(kg.derive(servo_model(1e-9 * V + 2e-11 * V**2)))


@pytest.mark.parametrize("factor", [1e-11, 1e-30, 1e11])
def test_servo_force_of_any_size_enters_the_forces(factor):
    """A force of 1e-11 V was refused: it "does not enter the generalized forces"."""
    servo_equations(kg.derive(servo_model(factor * V)))


def test_small_square_of_a_speed_is_not_linear():
    """The term of ``u - v - 3e-11 v**2`` vanished in the momentum form."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    model = kg.Model(
        name="curved",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff(t) - u, y.diff(t) - v],
        bodies=[me.Particle("P", P, 1)],
        nonholonomic_constraints=[u - v - 3e-11 * v**2],
    )
    with raises(kg.BuildError, "reduced momentum form", "not linear in the speeds"):
        kg.build(model, form="momentum")
    assert not is_affine(u - v - 3e-11 * v**2, frozenset({u, v}))
    assert is_affine(3e-11 * (u + v) ** 2 - 3e-11 * (u**2 + 2 * u * v + v**2) + u, frozenset({u, v}))


@pytest.mark.parametrize("radius", [2e-11, 2.0])
def test_velocity_set_for_a_contact_point_counts(radius):
    """The contact point of a rolling disk is at rest, although it is positioned on the disk."""
    phi, w = me.dynamicsymbols("phi w")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    B.orient_axis(N, N.z, phi)
    B.set_ang_vel(N, w * N.z)
    O.set_vel(N, 0)
    contact = me.Point("contact")
    contact.set_vel(N, 0)
    center = contact.locatenew("center", radius * N.y)
    center.v2pt_theory(contact, N, B)
    model = kg.Model(
        name="disk",
        frame=N,
        coordinates=[phi],
        speeds=[w],
        kinematics=[phi.diff(t) - w],
        bodies=[me.RigidBody("disk", center, B, 3.0, (me.inertia(B, 0, 0, 0), center))],
        check_kinematics=False,
    )
    (mass,) = evaluate(kg.derive(model).Q.nodes, {"q": [0.3], "u": [0.7], "t": [0.0]})
    assert mass == pytest.approx(3.0 * radius**2)


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("right", [True, False])
def test_unit_loads_at_contacts_of_any_size(length, right):
    """``applied_at`` was refused at lengths of 1e6 m for its rounding errors, and not checked at small ones."""
    x, y, phi, u, v, w = me.dynamicsymbols("x y phi u v w")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.orient_axis(N, N.z, phi)
    B.set_ang_vel(N, w * N.z)
    center = O.locatenew("center", x * N.x + y * N.y)
    center.set_vel(N, u * N.x + v * N.y)
    tip = center.locatenew("tip", length * (sm.sqrt(2) * B.x + 0.3 * B.y) / 3)
    tip.v2pt_theory(center, N, B)
    gap = tip.pos_from(O).dot(N.y)
    place = tip if right else center
    model = kg.Model(
        name="box",
        frame=N,
        coordinates=[x, y, phi],
        speeds=[u, v, w],
        kinematics=[x.diff(t) - u, y.diff(t) - v, phi.diff(t) - w],
        bodies=[me.RigidBody("box", center, B, 1, (me.inertia(B, 0, 0, length**2), center))],
        gravity=-9.81 * N.y,
        contacts=[kg.Unilateral(gap, kg.Restitution(0), name="corner", applied_at=[(place, N.y)])],
    )
    equations = kg.derive(model)
    rows = equations.once(contact_rows)
    if right:
        require_places(equations.system, rows)
    else:
        with raises(kg.DerivationError, "applied_at", "corner"):
            require_places(equations.system, rows)


@pytest.mark.parametrize("factor", [1e-11, 1e-30])
def test_gap_of_any_unit_restricts(factor):
    """A gap times 1e-11 was refused: it "depends on no generalized speed"."""
    x, u = me.dynamicsymbols("x u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    model = kg.Model(
        name="ball",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(t) - u],
        bodies=[me.Particle("P", P, 1)],
        contacts=[kg.Unilateral(factor * x, kg.Restitution(0.5), name="floor")],
    )
    assert len(kg.derive(model).once(contact_rows).rows) == 1


@pytest.mark.parametrize("form", ["momentum_unreduced", "hamilton"])
@pytest.mark.parametrize(("length", "mass"), [(1.0, 1.0), (1e-6, 1e-9), (1e-9, 1e-18)])
def test_momenta_of_small_bodies_determine_their_speeds(form, length, mass):
    """Beside a particle at 1 m the inertia of a body of 1 nm was rounding: it was said to move no mass."""
    q, u = me.dynamicsymbols("a x y z"), me.dynamicsymbols("u1:5")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.orient_axis(N, N.z, q[0])
    slosh = O.locatenew("slosh", q[1] * B.x + q[2] * B.y + q[3] * B.z)
    model = kg.Model(
        name="slosh",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[speed - x.diff(t) for x, speed in zip(q, u, strict=True)],
        bodies=[
            me.RigidBody("body", O, B, mass, (me.inertia(B, 0, 0, mass * length**2), O)),
            me.Particle("particle", slosh, mass),
        ],
    )
    # The frame turns at 1 rad/s; the particle, at the distance l, moves across at l/s: it is thrown outward by
    # 1 l/s^2 (centrifugal) and 2 l/s^2 (Coriolis), and nothing acts across.
    solver = kg.build(model, form=form)
    udot = solver.rhs(0.0, (0.0, length, 0.0, 0.0), (1.0, 0.0, length, 0.0))[1]
    np.testing.assert_allclose(udot / [1.0, length, length, length], [0.0, 3.0, 0.0, 0.0], atol=1e-12)
    model.with_orthogonal_speeds()
