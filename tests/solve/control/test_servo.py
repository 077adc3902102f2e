"""Controls of servo-constraints against the oracle: what psi does under them, and which of them they are."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from oracle import Oracle
from servo_systems import Plant, line, rod, rod_oracle, rod_solver, rod_state
from systems import example, model_of, oracle_for, solver_for
from tolerances import EVALUATION, SERVO_LAW

import kanegen as kg
from kanegen.derivation.control.servo import underactuation

x1, y1 = me.dynamicsymbols("x1 y1")
WEIGHT = ((2 + x1**2, 0.3, 0), (0.3, 1, 0), (0, 0, 4 * (1 + y1**2)))
RESOLUTIONS: dict[str, dict[str, Any]] = {
    "moore_penrose": {},
    "weighted": {"resolution": "weighted", "weight": WEIGHT},
    "ideal": {"resolution": "ideal"},
}
Y = np.array([0.3, -0.2, 0.7])
SEEDS = (0, 1)


def plant(seed: int, **options: Any) -> Plant:
    return Plant(rod(**options), rod_oracle(), **rod_state(seed))


def at(state: Plant) -> tuple[Any, ...]:
    return state.t, state.q, state.u


@pytest.mark.parametrize("seed", SEEDS)
def test_S_and_z_are_those_of_differences_along_motions(seed: int) -> None:
    state, solver = plant(seed), rod_solver()
    S, z = state.system()
    found_S, found_z = solver.servo_system(*at(state), state.r)
    assert found_S == pytest.approx(S, abs=EVALUATION)
    assert found_z == pytest.approx(z, rel=EVALUATION, abs=EVALUATION)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_the_servo_constraints_follow_their_desired_dynamics(resolution: str, seed: int) -> None:
    """With gains on the passive constraint, off its manifold, and whatever the controls among the inputs are."""
    options = RESOLUTIONS[resolution]
    state = plant(seed, **options)
    tau = rod_solver(**options).control(*at(state), y=Y, r=state.inputs([5.0, -3.0, 8.0]))
    assert np.abs(state.deviation(state.reference(tau).udot, tau)).max() < SERVO_LAW


def test_controls_work_with_the_articulated_form() -> None:
    """The controls are those of the other forms, and under them the accelerations of the form are the oracle's."""
    state = plant(0)
    solver = kg.build(
        state.model,
        form="articulated",
        stabilization=kg.Baumgarte(3.0, 3.0),
        functions=("rhs", "servo"),
        backend="interpreted",
    )
    tau = solver.control(*at(state), y=Y, r=state.r)
    assert tau == pytest.approx(rod_solver().control(*at(state), y=Y, r=state.r), rel=SERVO_LAW)
    _, udot = solver.rhs(*at(state), state.inputs(tau))
    assert udot == pytest.approx(state.reference(tau).udot, rel=SERVO_LAW)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_free_vector_acts_in_the_null_space_only(seed: int) -> None:
    state, solver = plant(seed), rod_solver()
    S, z = state.system()
    inverse = np.linalg.pinv(S)
    expected = inverse @ z + (np.eye(3) - inverse @ S) @ Y
    assert solver.control(*at(state), y=Y, r=state.r) == pytest.approx(expected, rel=SERVO_LAW)
    assert solver.control(*at(state), r=state.r) == pytest.approx(inverse @ z, rel=SERVO_LAW)


@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_controls_minimize_their_effort(seed: int) -> None:
    state = plant(seed)
    S, z = state.system()
    W = np.array(sm.Matrix(WEIGHT).subs({x1: state.q[0], y1: state.q[1]}), dtype=float)
    n_tau, n_s = len(W), len(z)
    saddle = np.block([[W, -S.T], [S, np.zeros((n_s, n_s))]])
    expected = np.linalg.solve(saddle, np.concatenate([W @ Y, z]))[:n_tau]
    tau = rod_solver(**RESOLUTIONS["weighted"]).control(*at(state), y=Y, r=state.r)
    assert tau == pytest.approx(expected, rel=SERVO_LAW)


@pytest.mark.parametrize("seed", SEEDS)
def test_ideal_controls_act_as_passive_constraints(seed: int) -> None:
    """The accelerations are those with the servo-constraints as passive ones, and change least (Gauss)."""
    state = plant(seed)
    tau = rod_solver(**RESOLUTIONS["ideal"]).control(*at(state), r=state.r)
    found = state.reference(tau).udot
    assert found == pytest.approx(state.ideal_accelerations(), rel=SERVO_LAW, abs=SERVO_LAW)
    free = state.reference(np.zeros(3))
    other = state.reference(rod_solver().control(*at(state), y=Y, r=state.r)).udot
    effort = [(udot - free.udot) @ free.Q @ (udot - free.udot) for udot in (found, other)]
    assert effort[0] < effort[1] - 1.0


def test_a_compiled_free_vector_is_the_one_given_at_run_time() -> None:
    wind = me.dynamicsymbols("wind")
    expression = rod_solver(y=(x1 * wind, 0.5, me.dynamicsymbols("v1")))
    state = plant(0)
    y = (state.q[0] * state.r[3], 0.5, state.u[0])
    expected = rod_solver().control(*at(state), y=y, r=state.r)
    assert expression.control(*at(state), r=state.r) == pytest.approx(expected, rel=EVALUATION)
    with raises(kg.SolveError, "kg.Servo(y=...)"):
        expression.control(*at(state), y=y, r=state.r)


def test_residuals_and_labels() -> None:
    state, solver = plant(0), rod_solver()
    psi, rate = solver.servo_residuals(*at(state), state.r)
    q, u, p = state.q, state.u, solver.parameters
    momentum = p["m1"] * (q[0] * u[1] - q[1] * u[0]) + p["m2"] * (q[2] * u[3] - q[3] * u[2])
    assert psi == pytest.approx([q[2] - state.r[1], momentum - np.sin(2 * state.t)], abs=EVALUATION)
    assert rate == pytest.approx([u[2] - state.r[5]], abs=EVALUATION)
    labels = solver.description.servo.residuals
    assert labels[0] == "-target(t) + x2(t)"
    assert labels[2] == "d/dt (-target(t) + x2(t))"
    assert solver.description.input_names(solver.description.servo.controls) == ("F1", "F2", "F3")


# -- where the straight-line code cannot go -----------------------------------------------------------------------


@pytest.mark.parametrize("resolution", ["moore_penrose", "ideal"])
def test_other_dependent_speeds_take_over(resolution: str) -> None:
    """An upright rod: the constraint cannot be solved for the horizontal speed that the user named."""
    options = RESOLUTIONS[resolution]
    state = plant(0)
    q = np.array([state.q[0], 0.1, state.q[0], 1.4])
    tau = rod_solver(dependent=("v2",), **options).control(state.t, q, state.u, r=state.r)
    expected = rod_solver(dependent=("w2",), **options).control(state.t, q, state.u, r=state.r)
    assert tau == pytest.approx(expected, rel=SERVO_LAW)
    moved = Plant(rod(), rod_oracle(), state.t, q, state.u, state.r, state.gains)
    assert np.abs(moved.deviation(moved.reference(tau).udot, tau)).max() < SERVO_LAW


@pytest.mark.parametrize("resolution", ["moore_penrose", "ideal"])
def test_redundant_passive_constraints(resolution: str) -> None:
    options = RESOLUTIONS[resolution]
    state, single = plant(1), rod_solver(**options)
    q, u = single.make_consistent(state.t, state.q, state.u, state.r)
    tau = rod_solver("pseudoinverse", redundant=True, **options).control(state.t, q, u, r=state.r)
    assert tau == pytest.approx(single.control(state.t, q, u, r=state.r), rel=SERVO_LAW)


@pytest.mark.parametrize(
    "options",
    [{}, *(pytest.param(x, marks=pytest.mark.target) for x in ({"resolution": "ideal"}, {"damping": 1e-6}))],
    ids=str,
)
def test_more_servo_constraints_than_are_written_out(options: dict[str, Any]) -> None:
    model = line(6, **options)
    rng = np.random.default_rng(5)
    state = Plant(model, Oracle(model), 0.0, rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 6), np.zeros(6))
    solver = kg.build(model, functions=("control", "feasibility"))
    tau = solver.control(*at(state))
    assert np.abs(state.deviation(state.reference(tau).udot, tau)).max() < SERVO_LAW
    if "resolution" in options:
        assert state.reference(tau).udot == pytest.approx(state.ideal_accelerations(), abs=SERVO_LAW)
    else:
        S, z = state.system()
        assert tau == pytest.approx(np.linalg.pinv(S) @ z, abs=SERVO_LAW)


# -- feasibility ---------------------------------------------------------------------------------------------------


def test_a_family_of_controls_and_a_unique_one() -> None:
    state = plant(0)
    family = rod_solver().feasibility(*at(state), state.r)
    assert (family.kind, family.dimension) == ("family", 1)
    unique = rod_solver(**RESOLUTIONS["ideal"]).feasibility(*at(state), state.r)
    assert (unique.kind, unique.dimension) == ("unique", 0)
    assert max(family.residual, unique.residual) < SERVO_LAW
    assert min(family.smallest_singular_value, unique.smallest_singular_value) > 0.1


@pytest.mark.parametrize("options", [{}, {"resolution": "ideal"}, {"path": True}], ids=str)
def test_no_torque_changes_the_energy_at_rest(options: dict[str, Any]) -> None:
    solver = solver_for("energy_servo", **options)
    q, rest = example("energy_servo").INITIAL["q"], (0.0, 0.0)
    found = solver.feasibility(0.0, q, rest)
    assert found.kind == "none"
    with raises(kg.SolveError, "servo-constraints"):
        solver.control(0.0, q, rest)


def test_the_residual_of_an_impossible_demand() -> None:
    solver = solver_for("energy_servo")
    q = example("energy_servo").INITIAL["q"]
    found = solver.feasibility(0.0, q, (0.0, 0.0))
    wanted = solver.parameters["Theta"] * (solver.energy(0.0, q, (0.0, 0.0), (0.0, 0.0)) - solver.parameters["E_f"])
    assert found.residual == pytest.approx(abs(wanted), rel=EVALUATION)
    assert (found.smallest_singular_value, found.dimension) == (0.0, 2)


@pytest.fixture(scope="module")
def pushed() -> Callable[[str], kg.Solver]:
    """A free particle of mass m in the plane, pushed along x only; psi = x + y."""

    def build(resolution: str) -> kg.Solver:
        x, y, v, w, F = me.dynamicsymbols("x y v w F")
        N, O = me.ReferenceFrame("N"), me.Point("O")
        O.set_vel(N, 0)
        P = O.locatenew("P", x * N.x + y * N.y)
        return kg.build(
            kg.Model(
                name="pushed",
                frame=N,
                coordinates=(x, y),
                speeds=(v, w),
                kinematics=(x.diff() - v, y.diff() - w),
                bodies=(me.Particle("P", P, 2),),
                loads=((P, F * N.x),),
                inputs=(F,),
                control=kg.Servo(x + y, theta=(-2, -1), resolution=resolution),
            )
        )

    return build


def test_controls_that_cannot_act_as_the_constraint_would(pushed: Callable[[str], kg.Solver]) -> None:
    """A force along x enforces x + y = 0; the ideal one is along (1, 1), which no F gives."""
    q, u = (0.3, 0.1), (0.2, -0.5)
    wanted = -2 * (u[0] + u[1]) - (q[0] + q[1])
    assert pushed("moore_penrose").control(0.0, q, u) == pytest.approx([2 * wanted], rel=EVALUATION)
    ideal = pushed("ideal")
    found = ideal.feasibility(0.0, q, u)
    # F = 2 wanted / 2 acts right along x and leaves the acceleration wanted / 2 along y to be done.
    assert (found.kind, found.residual) == ("none", pytest.approx(abs(wanted) / 2, rel=EVALUATION))
    with raises(kg.SolveError, "servo-constraints"):
        ideal.control(0.0, q, u)


@pytest.mark.parametrize("resolution", ["moore_penrose", "ideal"])
def test_controls_do_not_act_along_what_passive_constraints_fix(resolution: str) -> None:
    """A bead on a ring: where its tangent is upright, no force changes x. Close to it large forces do, and no noise."""
    x, y, v, w, F, G = me.dynamicsymbols("x y v w F G")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    ring = kg.Model(
        name="ring",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(x.diff() - v, y.diff() - w),
        bodies=(me.Particle("P", P, 2),),
        loads=((P, F * N.x + G * N.y),),
        holonomic_constraints=(x**2 + y**2 - 1,),
        inputs=(F, G),
        control=kg.Servo(x - 0.5, theta=(-2, -1), resolution=resolution),
    )
    solver, oracle = kg.build(ring), Oracle(ring)
    for angle in (0.7, 1e-3):
        q, u = (np.cos(angle), np.sin(angle)), (-0.3 * np.sin(angle), 0.3 * np.cos(angle))
        state = Plant(ring, oracle, 0.0, q, u, np.zeros(2))
        tau = solver.control(0.0, q, u, y=(0.4, -0.9))
        assert np.abs(state.deviation(state.reference(tau).udot, tau)).max() < SERVO_LAW
        along = np.array([-q[1], q[0]]) / np.hypot(*q)
        # Both controls together have one direction; the rest of y, along the radius, works on nothing.
        assert tau - (tau @ along) * along == pytest.approx(np.array(q) * (np.array(q) @ (0.4, -0.9)), abs=1e-9)
        assert solver.feasibility(0.0, q, u).kind == "family"
    for offset in (1e-12, 0.0):
        assert solver.feasibility(0.0, (1.0, offset), (0.0, 0.3)).kind == "none"
        with raises(kg.SolveError, "servo-constraints"):
            solver.control(0.0, (1.0, offset), (0.0, 0.3))


# -- near singular states ------------------------------------------------------------------------------------------

DAMPING = 1e-3


def test_damped_controls_are_exact_away_from_singular_states_and_bounded_near_them() -> None:
    start = example("energy_servo").INITIAL
    q, exact, damped = start["q"], solver_for("energy_servo"), solver_for("energy_servo", damping=DAMPING)
    assert damped.control(0.0, q, start["u"]) == pytest.approx(exact.control(0.0, q, start["u"]), rel=EVALUATION)
    for size in (1e-4, 1e-7, 0.0):
        u = (size, -2 * size)
        S, z = damped.servo_system(0.0, q, u)
        tau = damped.control(0.0, q, u)
        assert tau == pytest.approx(S[0] * z[0] / DAMPING**2, rel=EVALUATION)
        assert np.linalg.norm(tau) <= abs(z[0]) / DAMPING
    assert np.abs(exact.control(0.0, q, (1e-7, -2e-7))).max() > 1e6


def test_two_damped_servo_constraints() -> None:
    start = example("energy_servo").INITIAL
    q, exact = start["q"], solver_for("energy_servo", path=True)
    damped = solver_for("energy_servo", path=True, damping=DAMPING)
    assert damped.control(0.0, q, start["u"]) == pytest.approx(exact.control(0.0, q, start["u"]), rel=SERVO_LAW)
    u = (1e-5, 2e-5)
    S, z = damped.servo_system(0.0, q, u)
    left, sizes, right = np.linalg.svd(S)
    expected = right.T @ (sizes / np.maximum(sizes, DAMPING) ** 2 * (left.T @ z))
    assert damped.control(0.0, q, u) == pytest.approx(expected, rel=SERVO_LAW)


# -- underactuation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), [("cart_pole", {"task": "pole"}), ("particle_tracking", {})])
def test_the_equations_without_controls_hold_for_all_controls(name: str, options: dict[str, Any]) -> None:
    """The second-order nonholonomic constraint, with the oracle's accelerations, on and off the passive manifold."""
    solver = kg.build(model_of(name, **options), functions=("underactuation", "Q"))
    start, oracle = example(name).INITIAL, oracle_for(name, **options)
    rng = np.random.default_rng(3)
    for _ in range(3):
        q = np.array(start["q"]) + rng.uniform(-0.2, 0.2, len(start["q"]))
        u = rng.uniform(-1, 1, len(start["u"]))
        R, c = solver.underactuation(0.7, q, u)
        assert R.shape == (1, len(u))
        assert np.abs(R).max() > 0.01
        for F in (-3.0, 0.0, 4.0):
            assert R @ oracle(0.7, q, u, r=[F]).udot == pytest.approx(c, rel=EVALUATION, abs=EVALUATION)


def test_the_equation_without_controls_of_a_cart_with_a_pole() -> None:
    equations = kg.derive(model_of("cart_pole"))
    row = underactuation(equations).equations.to_sympy()
    theta = me.dynamicsymbols("theta")
    m_p, l, g = sm.symbols("m_p l g")
    expected = m_p * l * sm.Matrix([[sm.cos(theta), l, g * sm.sin(theta)]])
    assert sm.simplify(row - expected).is_zero_matrix


def test_full_actuation_leaves_no_such_equation() -> None:
    solver = kg.build(rod(), functions=("control", "underactuation"))
    state = plant(0)
    with raises(kg.SolveError, "underactuation", "degree"):
        solver.underactuation(*at(state), state.r)


# -- solvers -------------------------------------------------------------------------------------------------------


def test_a_pickled_solver_controls() -> None:
    state, solver = plant(0), rod_solver()
    restored = pickle.loads(pickle.dumps(solver))
    np.testing.assert_array_equal(restored.control(*at(state), r=state.r), solver.control(*at(state), r=state.r))


def test_controls_need_no_value_among_the_inputs() -> None:
    solver, start = solver_for("energy_servo"), example("energy_servo").INITIAL
    tau = solver.control(0.0, start["q"], start["u"])
    np.testing.assert_array_equal(solver.control(0.0, start["q"], start["u"], r=(7.0, -7.0)), tau)
    np.testing.assert_array_equal(solver.control(0.0, start["q"], start["u"], y=(0, 0), r=(7, -7)), tau)


def test_other_inputs_without_a_default_need_one() -> None:
    solver = rod_solver(wind=None)
    state = plant(0)
    for call in (solver.control, solver.feasibility, solver.servo_residuals):
        with raises(kg.SolveError, "wind", "'rod'"):
            call(*at(state))
    assert solver.control(*at(state), r=state.r) == pytest.approx(rod_solver().control(*at(state), r=state.r))


@pytest.mark.parametrize("y", [(1.0,), (1.0, 2.0, 3.0), [[1.0, 2.0]], "two", (1.0, float("nan"))])
def test_y_must_be_a_vector_of_numbers(y: Any) -> None:
    start = example("energy_servo").INITIAL
    with raises(kg.SolveError, "y", "2", "tau1", "tau2"):
        solver_for("energy_servo").control(0.0, start["q"], start["u"], y=y)


def test_gains_that_become_unstable_at_run_time() -> None:
    with raises(kg.SolveError, "stable", "Theta", "0.5"):
        solver_for("energy_servo").with_parameters(Theta=0.5)


def test_a_model_without_servo_constraints_says_so() -> None:
    solver = solver_for("slider_crank")
    start = example("slider_crank").INITIAL
    with raises(kg.SolveError, "control=kg.Servo"):
        solver.control(0.0, start["q"], start["u"])
