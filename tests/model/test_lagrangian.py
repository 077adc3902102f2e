"""What a model with a Lagrangian reads, and what it refuses."""

from __future__ import annotations

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from lagrange_models import CASES, c, fixed, g, k, m, t
from messages import raises, warns

import kanegen as kg
from kanegen.model.expressions import symbol_name

x, y = me.dynamicsymbols("x y")
KINETIC = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2


def particle(mass=m):
    N, P = me.ReferenceFrame("N"), me.Point("P")
    P.set_vel(N, x.diff(t) * N.x + y.diff(t) * N.y)
    return N, me.Particle("P", P, mass)


def test_everything_the_user_gave_is_read() -> None:
    N, P = particle()
    force = me.dynamicsymbols("F")
    method = me.LagrangesMethod(
        KINETIC - k * x**2,
        [y, x],
        forcelist=[(P, force * N.x)],
        bodies=[P],
        frame=N,
        hol_coneqs=[x - y**2],
        nonhol_coneqs=[x.diff(t) - 2 * y * y.diff(t)],
    )
    model = kg.Model.from_lagrange(method, name="wire")
    assert model.name == "wire"
    assert model.frame is N
    assert model.coordinates == (y, x)
    assert [symbol_name(u) for u in model.speeds] == ["y_dot", "x_dot"]
    assert model.bodies == (P,)
    assert model.holonomic_constraints == (x - y**2,)
    assert len(model.nonholonomic_constraints) == 1
    assert [item.name for item in model.inputs] == ["F"]
    assert model.lagrangian == KINETIC - k * x**2


def test_names_of_speeds_avoid_those_that_are_taken() -> None:
    taken = sm.Symbol("x_dot")
    model = kg.Model.from_lagrange(me.LagrangesMethod(taken * KINETIC, [x, y]))
    assert [symbol_name(u) for u in model.speeds] == ["x_dot_", "y_dot"]


def test_frame_of_the_bodies_is_used_if_none_was_given() -> None:
    N, P = particle()
    assert kg.Model.from_lagrange(me.LagrangesMethod(KINETIC, [x, y], bodies=[P])).frame is N
    P.masscenter.set_vel(me.ReferenceFrame("M"), 0)
    with raises(kg.ModelError, "frame="):
        kg.Model.from_lagrange(me.LagrangesMethod(KINETIC, [x, y], bodies=[P]))


def test_only_a_lagranges_method_can_be_read() -> None:
    with raises(kg.ModelError, "LagrangesMethod"):
        kg.Model.from_lagrange(KINETIC)


# -- what contradicts the bodies ------------------------------------------------------------------------------------


def lagrange(L, **options):
    return kg.Model.from_lagrange(me.LagrangesMethod(L, [x, y]), **options)


def test_bodies_with_another_kinetic_energy_are_refused() -> None:
    N, P = particle(2 * m)
    with raises(kg.ModelError, "contradict", "x_dot"):
        lagrange(KINETIC, bodies=[P], frame=N)


@pytest.mark.parametrize("name", CASES)
def test_bodies_with_a_wrong_mass_are_refused_in_every_case(name: str) -> None:
    case = CASES[name]()
    body = case.bodies[-1]
    body.mass = body.mass * sm.Rational(11, 10)
    case.with_bodies()  # L follows from the changed mass
    wrong = case.method()
    body.mass = body.mass * sm.Rational(11, 10)
    with raises(kg.ModelError, "contradict"):
        kg.Model.from_lagrange(wrong, bodies=case.bodies)


def test_product_of_two_speeds_contradicts_bodies_that_lack_it() -> None:
    N, P = particle()
    with raises(kg.ModelError, "contradict", "x_dot", "y_dot"):
        lagrange(KINETIC + m * x.diff(t) * y.diff(t) / 2, bodies=[P], frame=N)


def test_potential_energy_of_the_bodies_must_be_in_the_lagrangian() -> None:
    N, P = particle()
    P.potential_energy = k * x**2 / 2
    L = KINETIC - k * x**2 / 2
    assert lagrange(L, bodies=[P], frame=N).potential_energy == k * x**2 / 2
    for wrong in (KINETIC, KINETIC - k * x**2):
        with raises(kg.ModelError, "potential_energy="):
            lagrange(wrong, bodies=[P], frame=N)
    assert lagrange(KINETIC - k * x**2, bodies=[P], frame=N, potential_energy=k * x**2 + 3).has_potential


def test_gravity_must_be_in_the_lagrangian() -> None:
    case = CASES["spherical_pendulum"]()
    model = case.with_bodies(gravity=-g * case.frame.z)
    assert model.has_potential
    with raises(kg.ModelError, "gravity=", "K - L"):
        case.with_bodies(gravity=-2 * g * case.frame.z)


def test_bodies_in_frames_without_orientation_are_not_compared() -> None:
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.set_ang_vel(N, x.diff(t) * N.z)
    O = fixed(N)
    disk = me.RigidBody("disk", O, A, m, (me.inertia(A, 0, 0, k), O))
    with warns(kg.ModelWarning, "bodies"):
        kg.Model.from_lagrange(
            me.LagrangesMethod(k * x.diff(t) ** 2 / 2, [x], bodies=[disk], frame=N), check_kinematics=False
        )


# -- what L cannot contain or do ----------------------------------------------------------------------------------


def test_lagrangian_that_is_not_quadratic_in_the_rates_is_refused() -> None:
    with raises(kg.ModelError, "quadratic", "x'"):
        lagrange(-m * sm.sqrt(1 - x.diff(t) ** 2) + y.diff(t) ** 2)


def test_lagrangian_without_rates_and_with_speeds_or_accelerations_is_refused() -> None:
    u = me.dynamicsymbols("u v")
    given = {
        "name": "free",
        "frame": me.ReferenceFrame("N"),
        "coordinates": [x, y],
        "speeds": u,
        "kinematics": [x.diff(t) - u[0], y.diff(t) - u[1]],
    }
    with raises(kg.ModelError, "lagrangian", "q'"):
        kg.Model(lagrangian=-k * x**2, **given)
    with raises(kg.ModelError, "lagrangian", "u"):
        kg.Model(lagrangian=KINETIC + u[0] ** 2, **given)
    with raises(kg.ModelError, "lagrangian", "x''"):
        kg.Model(lagrangian=KINETIC + x.diff(t, 2) * x, **given)
    with raises(kg.ModelError, "bodies", "lagrangian"):
        kg.Model(**given)


def test_what_needs_bodies_says_so() -> None:
    N, P = particle()
    with raises(kg.ModelError, "gravity=", "bodies="):
        lagrange(KINETIC, gravity=-g * N.y, frame=N)
    with raises(kg.ModelError, "arm", "bodies="):
        lagrange(KINETIC, frame=N, reactions={"arm": kg.Reaction([P], P.masscenter, N)})
    with raises(kg.ModelError, "auxiliary_speeds", "lagrangian"):
        lagrange(KINETIC, auxiliary_speeds=[me.dynamicsymbols("ua")])
    solver = kg.build(lagrange(KINETIC - c * x, parameters={m: 1.0, c: 2.0}), functions=())
    for name in ("kinetic_energy", "energy", "potential_energy"):
        with raises(kg.KanegenError, "potential_energy=", "bodies="):
            getattr(solver, name)(0.0, [0, 0], [0, 0])
    with raises(kg.KanegenError, "bodies="):
        solver.linear_momentum(0.0, [0, 0], [0, 0])
    with raises(kg.DerivationError, "potential_energy=", "bodies="):
        _ = kg.derive(lagrange(KINETIC)).kinetic_energy
    split = kg.build(lagrange(KINETIC - c * x, parameters={m: 1.0, c: 2.0}, potential_energy=c * x))
    assert split.energy(0.0, [3, 0], [1, 2]) == 2.5 + 6


def test_coordinate_without_kinetic_energy_is_named() -> None:
    with raises(kg.BuildError, "y_dot", "Lagrangian"):
        kg.build(lagrange(m * x.diff(t) ** 2 / 2 - k * y**2), form="reduced")
