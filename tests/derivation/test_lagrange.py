"""Models of a Lagrangian, with and without bodies, against SymPy's LagrangesMethod and against Kane's method."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from kane_reference import TIME, input_values
from lagrange_models import CASES, VALUES, Case, bound, fixed, g, length, m, t
from lagrange_reference import LagrangeReference
from messages import raises
from shares import share
from tolerances import EVALUATION, FINE_INTEGRATION, FORMS_AGREE, SAME_EQUATIONS

import kanegen as kg
from kanegen.derivation.forces.inertia import LagrangianInertia
from kanegen.derivation.momenta import Momenta
from kanegen.graph import evaluate

KINDS = ("lagrangian alone", "potential energy", "bodies")
"""What the model knows besides L."""


@cache
def case(name: str) -> Case:
    return CASES[name]()


@cache
def model(name: str, kind: str) -> kg.Model:
    if kind == "Kane":
        return case(name).kane()
    if kind == "bodies":
        return case(name).with_bodies()
    return case(name).lagrange(**({"potential_energy": case(name).potential} if kind == "potential energy" else {}))


@cache
def equations(name: str, kind: str) -> kg.Equations:
    return kg.derive(model(name, kind))


@cache
def reference(name: str) -> LagrangeReference:
    method = case(name).method()
    method.form_lagranges_equations()
    return LagrangeReference(method, VALUES)


def close(actual: Any, expected: Any, tolerance: float) -> None:
    expected = np.asarray(expected, dtype=float)
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance * max(1.0, abs(expected).max(initial=0))
    )


@pytest.mark.parametrize(("name", "kind"), share(product(CASES, KINDS), of=2))
def test_accelerations_and_multipliers_are_those_of_sympy(name: str, kind: str) -> None:
    solver = kg.build(model(name, kind))
    for state in reference(name).states(3):
        q, u = state.of(reference(name).q), state.of(reference(name).u)
        r = input_values(model(name, kind), state)
        qdot, udot = solver.rhs(state.values[TIME], q, u, r)
        multipliers = solver.multipliers(state.values[TIME], q, u, r)
        assert reference(name).kinematic_deviation(state, qdot) == 0.0
        assert reference(name).deviation(state, np.append(udot, multipliers)) < SAME_EQUATIONS


def quantities(name: str, kind: str) -> dict[str, kg.Quantity]:
    e = equations(name, kind)
    found = {key: getattr(e, key) for key in ("Q", "Qdot", "P", "N", "momentum", "J", "b")}
    found |= {"e": Momenta(e).e, "momentum rate": e.quantity("rate", Momenta(e).rate)}
    if not e.model.is_unsplit:
        found |= {key: getattr(e, key) for key in ("kinetic_energy", "F", "L")}
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_every_quantity_is_that_of_kanes_method(name: str, kind: str) -> None:
    """The velocity form is compared by ``e = P + Dm u``: Dm of rigid bodies differs by a skew matrix S with S u = 0."""
    found, expected = quantities(name, kind), quantities(name, "Kane")
    e, kane = equations(name, kind), equations(name, "Kane")
    for state in e.system.states:
        state = {**state, "p": [VALUES[symbol] for symbol in e.model.parameters]}
        other = {**state, "p": [VALUES[symbol] for symbol in kane.model.parameters]}
        for key, quantity in found.items():
            close(evaluate(quantity.nodes, state), evaluate(expected[key].nodes, other), EVALUATION)


@pytest.mark.parametrize("name", CASES)
def test_potential_energy_of_the_bodies_is_that_in_the_lagrangian(name: str) -> None:
    found, expected = equations(name, "bodies"), case(name).potential
    for state in found.system.states:
        numbers = {**state, "p": [VALUES[symbol] for symbol in found.model.parameters]}
        at = dict(zip(found.model.coordinates, state["q"], strict=True)) | VALUES | {t: state["t"][0]}
        (V,) = evaluate(found.potential_energy.nodes, numbers)
        close(V, float(expected.subs(at)), EVALUATION)


SPEEDS = {"rolling_disk": 5, "slider_crank": 3, "shaken_pendulum": 2}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPEEDS)
def test_other_speeds_follow_as_in_kanes_method(name: str, kind: str) -> None:
    """Quasi-velocities with coefficients that depend on the coordinates, and orthogonal speeds."""
    n = SPEEDS[name]
    new = list(me.dynamicsymbols(f"w1:{n + 1}"))

    def changed(kind: str) -> kg.Model:
        old = model(name, kind)
        q, u = old.coordinates, old.speeds
        rows = [u[k] + sm.sin(q[k]) * u[(k + 1) % n] / 3 + sm.cos(q[0]) / 5 for k in range(n)]
        return old.with_speeds(new, rows)

    for found, expected in (
        (changed(kind), changed("Kane")),
        (model(name, kind).with_orthogonal_speeds(), model(name, "Kane").with_orthogonal_speeds()),
    ):
        a, b = kg.derive(found), kg.derive(expected)
        for state in a.system.states:
            left = {**state, "p": [VALUES[symbol] for symbol in found.parameters]}
            right = {**state, "p": [VALUES[symbol] for symbol in expected.parameters]}
            for x, y in ((a.Q, b.Q), (a.P, b.P), (a.J, b.J), (a.b, b.b), (a.momentum, b.momentum)):
                close(evaluate(x.nodes, left), evaluate(y.nodes, right), EVALUATION)


def inputs(name: str) -> tuple[list[float], ...]:
    return ([0.7],) if case(name).inputs else ()


def start(name: str) -> dict[str, Any]:
    """A consistent state of a case."""
    solver = kg.build(model(name, "Kane"))
    n = len(solver.description.coordinates)
    guess = {"slider_crank": [0.6, -0.3, 2.0]}.get(name, [0.4 + 0.1 * k for k in range(n)])
    q, u = solver.make_consistent(0.0, guess, np.linspace(0.5, -0.4, n), *inputs(name))
    return {"q0": q, "u0": u, "rtol": 1e-10, "atol": 1e-10} | dict(zip("r", inputs(name), strict=False))


@pytest.mark.parametrize(("name", "form"), share(product(CASES, ["momentum", "momentum_unreduced", "hamilton"]), of=2))
def test_motions_are_those_of_kanes_method_in_the_forms_of_the_momenta(name: str, form: str) -> None:
    expected = kg.build(model(name, "Kane")).integrate((0.0, 1.0), **start(name))
    for kind in ("lagrangian alone", "bodies"):
        solver = kg.build(model(name, kind), form=form, functions=("rhs", "momentum", "consistency"))
        found = solver.integrate((0.0, 1.0), **start(name))
        close(found.q[-1], expected.q[-1], FINE_INTEGRATION)
        close(found.u[-1], expected.u[-1], FINE_INTEGRATION)


@pytest.mark.parametrize("name", ["spherical_pendulum", "bead_on_hoop"])
def test_hamiltonian_needs_no_potential_energy(name: str) -> None:
    """H = sum p q' - L is constant, if L does not depend on time; for the hoop it is not the energy."""
    found = kg.build(model(name, "lagrangian alone"), form="hamilton")
    expected = kg.build(model(name, "Kane"), form="hamilton")
    solution = found.integrate((0.0, 2.0), **start(name))
    H = [found.hamiltonian(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)]
    other = [expected.hamiltonian(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)]
    close(H, other, EVALUATION)
    close(np.ptp(H), 0.0, FINE_INTEGRATION)
    close([found.jacobi_integral(*s) for s in zip(solution.t, solution.q, solution.u, strict=True)], H, EVALUATION)


@pytest.mark.parametrize(("kind", "name"), share(product(["lagrangian alone", "bodies"], CASES), of=5))
def test_every_case_verifies_itself(name: str, kind: str) -> None:
    report = kg.verify(model(name, kind), states=2, forms=())
    assert report.check("Lagrange").ok
    assert report.check("power balance").ok
    silent = {check.principle for check in report.checks if check.ok is None}
    without = {"velocities", "Gibbs-Appell"} if kind != "bodies" else set()
    assert without <= silent
    assert "Hamilton" not in silent


def test_verify_finds_a_wrong_lagrangian_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    original = LagrangianInertia._slopes
    monkeypatch.setattr(LagrangianInertia, "_slopes", lambda self, L: [x * 1.001 for x in original(self, L)])
    wrong = case("spherical_pendulum").lagrange(name="spherical pendulum with a wrong slope")
    with raises(kg.VerificationError, "Lagrange", "FAILED"):
        kg.verify(wrong, states=2, forms=())


# -- with the rest of kanegen ------------------------------------------------------------------------------------


def test_stabilization_and_linear_models_are_those_of_kanes_method() -> None:
    name = "slider_crank"
    state = start(name)
    expected, found = (kg.build(model(name, kind), functions="all") for kind in ("Kane", "lagrangian alone"))
    for stabilization in (kg.Baumgarte(5.0, 5.0), kg.Projection()):
        runs = [s.with_stabilization(stabilization).integrate((0.0, 0.5), **state) for s in (expected, found)]
        close(runs[1].q[-1], runs[0].q[-1], FINE_INTEGRATION)
    linear = [s.linearize(0.0, state["q0"], state["u0"]) for s in (expected, found)]
    close(linear[1].A, linear[0].A, FORMS_AGREE)


def test_contacts_of_a_lagrangian_are_those_of_kanes_method() -> None:
    """A pendulum that hits a stop."""
    given = case("spherical_pendulum")
    theta = given.coordinates[0]
    stop = {"contacts": [kg.Unilateral(sm.Rational(1, 2) - theta, kg.Restitution(0.6), name="stop")]}
    models = given.kane(**stop), given.lagrange(**stop), given.with_bodies(**stop)
    given_start = ([0.3, 0.1], [1.5, 0.4])
    runs = [kg.build(other).integrate((0.0, 2.0), *given_start, rtol=1e-10, atol=1e-10) for other in models]
    assert len(runs[0].events) > 1
    for run in runs[1:]:
        assert len(run.events) == len(runs[0].events)
        close(run.q[-1], runs[0].q[-1], FINE_INTEGRATION)


def test_controls_of_a_servo_constraint_are_those_of_kanes_method() -> None:
    given = case("double_pendulum")
    servo = {"control": kg.Servo([given.coordinates[1] - sm.sin(t)], [(-4, -4)], [given.inputs[0]])}
    q, u = [0.3, 0.4], [0.1, -0.2]
    expected, *found = (
        kg.build(other).control(0.2, q, u, r=[0.0])
        for other in (given.kane(**servo), given.lagrange(**servo), given.with_bodies(**servo))
    )
    for control in found:
        close(control, expected, FORMS_AGREE)


def test_loads_can_contain_accelerations() -> None:
    """An inerter at the upper joint, and a force on the lower particle that grows with an acceleration."""
    given = case("double_pendulum")
    theta = given.coordinates[0]
    frame, particle = given.loads[1][0], given.bodies[1].masscenter
    inerter = (frame, -0.3 * theta.diff(t, 2) * given.frame.z), (particle, -0.2 * theta.diff(t, 2) * given.frame.x)
    loaded = replace(given, loads=(*given.loads, *inerter))
    expected, *others = loaded.kane(), loaded.lagrange(), loaded.with_bodies()
    state = 0.1, [0.3, 0.4], [0.5, 0.6], [0.7]
    for other in others:
        close(kg.build(other).rhs(*state)[1], kg.build(expected).rhs(*state)[1], FORMS_AGREE)
        assert kg.verify(other, states=2, forms=()).check("Lagrange").ok


def test_reactions_need_the_points_of_all_forces() -> None:
    """With gravity= the weights act at the mass centers, and reactions are those of the Kane model."""
    given = case("spherical_pendulum")
    O = next(point for point in given.bodies[0].masscenter._pos_dict)
    joint = {"joint": kg.Reaction(given.bodies, O, given.frame)}
    gravity = -g * given.frame.z
    kane = given.kane(loads=(), gravity=gravity, potential_energy=None, reactions=joint)
    found = given.with_bodies(gravity=gravity, reactions=joint)
    state = (0.0, [0.4, 0.3], [0.5, 0.7])
    wrench, expected = kg.build(found).reaction("joint", *state), kg.build(kane).reaction("joint", *state)
    close(wrench.force, expected.force, FORMS_AGREE)
    close(wrench.torque, expected.torque, FORMS_AGREE)
    with raises(kg.ModelError, "joint", "gravity="):
        given.with_bodies(reactions=joint)
    with raises(kg.ModelError, "joint", "bodies="):
        given.lagrange(reactions=joint)


def test_lagrangian_can_contain_inputs_and_no_mechanics() -> None:
    """A plate on a spring that is one side of a capacitor (Crandall 1968, section 5.3), and a voltage source."""
    x, charge, v = me.dynamicsymbols("x charge v")
    M, I, k, eps = sm.symbols("M I k eps")
    L = (M * x.diff(t) ** 2 + I * charge.diff(t) ** 2 - k * x**2 - (1 - x) * charge**2 / eps) / 2 + v * charge
    method = me.LagrangesMethod(L, [x, charge])
    values = {M: 1.2, I: 0.3, k: 4.0, eps: 0.8}
    found = kg.Model.from_lagrange(method, parameters=values)
    assert [str(item.symbol) for item in found.inputs] == ["v(t)"]
    method.form_lagranges_equations()
    reference = LagrangeReference(method, values)
    solver = kg.build(found)
    for state in reference.states(2):
        r = input_values(found, state)
        _, udot = solver.rhs(0.0, state.of(reference.q), state.of(reference.u), r)
        assert reference.deviation(state, udot) < SAME_EQUATIONS


def test_inputs_in_momenta_get_rates() -> None:
    """``s x'`` in L pushes with -s', which therefore becomes an input; the s of a potential energy needs no rate."""
    x, s, f = me.dynamicsymbols("x s f")
    found = kg.Model.from_lagrange(me.LagrangesMethod(x.diff(t) ** 2 / 2 + s * x.diff(t) + f * x, [x]))
    assert [item.name for item in found.inputs] == ["f", "s", "s_dot"]
    solver = kg.build(found)
    (acceleration,) = solver.rhs(0.0, [0.0], [0.0], [0.3, 7.0, 0.5])[1]
    close(acceleration, 0.3 - 0.5, EVALUATION)


def test_euler_parameters_with_their_rates_as_speeds() -> None:
    """Only the norm, a constraint, makes orientations rotations; L alone is compared at every state all the same."""
    e = me.dynamicsymbols("e0:4")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_quaternion(N, e)
    O = fixed(N)
    body = me.RigidBody("body", O, A, m, (me.inertia(A, 1, 2, 3), O))
    method = me.LagrangesMethod(body.kinetic_energy(N), e, hol_coneqs=[sum(x**2 for x in e) - 1], frame=N)
    accelerations = []
    for options in ({}, {"bodies": [body]}):
        found = kg.Model.from_lagrange(method, name=f"quaternion {len(options)}", **options)
        accelerations.append(kg.build(found).rhs(0.0, [0.5] * 4, [0.1, -0.2, 0.3, -0.2])[1])
        report = kg.verify(found, states=2, forms=())
        assert report.check("Lagrange").ok == (None if options else True)
    close(*accelerations, FORMS_AGREE)


def test_states_can_be_part_of_the_potential_energy_and_not_of_momenta() -> None:
    """A mass on a spring in series with a damper (Maxwell's model), whose internal length is a state."""
    x, s = me.dynamicsymbols("x s")
    k, c = sm.symbols("k c")
    method = me.LagrangesMethod(m * x.diff(t) ** 2 / 2 - k * (x - s) ** 2 / 2, [x])
    given = {"states": {s: k * (x - s) / c}, "parameters": {m: 1.3, k: 5.0, c: 0.4}}
    solver = kg.build(kg.Model.from_lagrange(method, **given))
    _, udot, sdot = solver.rhs(0.0, [0.3], [0.2], s=[0.1])
    close(udot, [-5.0 * 0.2 / 1.3], EVALUATION)
    close(sdot, [5.0 * 0.2 / 0.4], EVALUATION)
    report = kg.verify(
        kg.Model.from_lagrange(method, potential_energy=k * (x - s) ** 2 / 2, **given), states=2, forms=()
    )
    assert report.check("power of states").ok
    with raises(kg.ModelError, "dL/dq'", "s"):
        kg.Model.from_lagrange(me.LagrangesMethod(s * x.diff(t) ** 2, [x]), **given)


def test_multipliers_of_solve_multipliers_have_the_opposite_sign() -> None:
    x, y = me.dynamicsymbols("x y")
    L = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2 - m * g * y
    method = me.LagrangesMethod(L, [x, y], hol_coneqs=[x**2 + y**2 - length**2])
    method.form_lagranges_equations()
    at = {x: 0.42, y: -0.56, x.diff(t): 0.4, y.diff(t): 0.3, m: 1.3, g: 9.81, length: 0.7}
    expected = method.solve_multipliers(op_point=at, sol_type="Matrix")
    solver = kg.build(bound(lambda parameters: kg.Model.from_lagrange(method, parameters=parameters)))
    close(solver.multipliers(0.0, [0.42, -0.56], [0.4, 0.3]), [-float(expected[0])], SAME_EQUATIONS)


def test_speeds_of_the_user_and_their_kinematics() -> None:
    theta, w = me.dynamicsymbols("theta w")
    N = me.ReferenceFrame("N")
    P = fixed(N).locatenew("P", length * (sm.sin(theta) * N.x - sm.cos(theta) * N.y))
    P.set_vel(N, length * w / 2 * (sm.cos(theta) * N.x + sm.sin(theta) * N.y))
    L = m * length**2 * theta.diff(t) ** 2 / 2 + m * g * length * sm.cos(theta)
    method = me.LagrangesMethod(L, [theta], forcelist=[(P, 2 * N.x)], frame=N)
    solver = kg.build(
        kg.Model.from_lagrange(
            method, speeds=[w], kinematics=[theta.diff(t) - w / 2], parameters={m: 1.3, length: 0.7, g: 9.81}
        )
    )
    moving = kg.Model.from_lagrange(method, speeds=[w], kinematics=[theta.diff(t) - w / 2 - sm.sin(t)])
    assert kg.verify(moving, states=2, forms=()).check("power balance").ok
    qdot, udot = solver.rhs(0.0, [0.4], [0.6])
    expected = -9.81 / 0.7 * np.sin(0.4) + 2 * np.cos(0.4) / (1.3 * 0.7)
    close(qdot, [0.3], EVALUATION)
    close(udot, [2 * expected], EVALUATION)
