"""Predictive control against Riccati's equation, IPOPT and closed loops; what it says and what it refuses."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
from controlled import F, T, block, everything, omega, pendulum, plane, rod, satellite, t, theta, v, x, y
from messages import raises
from numpy.testing import assert_allclose
from scipy.linalg import solve_discrete_are
from state_models import cart, cart_matrix
from systems import example, solver_for

import kanegen as kg

LINEAR = 1e-10
"""Gains of linear models, relative: some hundred operations of numbers of the size 1 to 100."""

OPTIMAL = 1e-8
"""Of converged plans, relative to the largest values: the iterations end at changes of 1e-10."""


@cache
def swing_up() -> Any:
    return example("optimal_swing_up")


def cart_pole_cost() -> tuple[Any, ...]:
    model = swing_up().model()
    (X, angle), (speed, rate), force = model.coordinates, model.speeds, model.inputs[0].symbol
    cost = 10 * X**2 + 10 * (angle - np.pi) ** 2 + 0.1 * speed**2 + 0.1 * rate**2 + 0.01 * force**2
    return model, cost


@cache
def cart_pole(horizon: float = 1.0, intervals: int = 40, sample_time: float = 0.025, **more: Any) -> Any:
    model, cost = cart_pole_cost()
    problem = kg.OptimalControl(model, kg.Integral(cost), 1.0, bounds={"F": (-20, 20), "x": (-2, 2)}, **more)
    return problem.controller(horizon, sample_time, intervals=intervals)


# -- linear models ----------------------------------------------------------------------------------------------------


def sampled(A: Any, B: Any, Q: Any, R: Any, h: float) -> tuple[Any, ...]:
    """The discrete model and weights of a Runge-Kutta step with the cost in its quadrature: a, b, q, r, s.

    The cost is x^T Q x + u^T R u; with w = (x, u), w' = M w is linear, and so are the stages.
    """
    n, m = B.shape
    M = np.block([[A, B], [np.zeros((m, n + m))]])
    weights = np.block([[Q, np.zeros((n, m))], [np.zeros((m, n)), R]])
    one = np.eye(n + m)
    stages = [one]
    for c in (0.5, 0.5, 1.0):
        stages.append(one + c * h * M @ stages[-1])
    b = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0
    step = one + h * M @ sum(weight * stage for weight, stage in zip(b, stages, strict=True))
    cost = h * sum(weight * stage.T @ weights @ stage for weight, stage in zip(b, stages, strict=True))
    return step[:n, :n], step[:n, n:], cost[:n, :n], cost[n:, n:], cost[:n, n:]


def regulator(A: Any, B: Any, Q: Any, R: Any, h: float) -> tuple[Any, Any]:
    """Gain and cost to go of the steady discrete regulator."""
    a, b, q, r, s = sampled(A, B, Q, R, h)
    P = solve_discrete_are(a, b, q, r, s=s)
    return np.linalg.solve(r + b.T @ P @ b, b.T @ P @ a + s.T), P


def quadratic(P: Any, symbols: Any) -> Any:
    return sum(P[i, k] * a * b for i, a in enumerate(symbols) for k, b in enumerate(symbols))


@pytest.mark.parametrize("intervals", [1, 7])
def test_the_gain_of_a_linear_model_is_that_of_the_discrete_regulator(intervals: int) -> None:
    """With the cost to go of the discrete Riccati equation at its end, any horizon gives the infinite one."""
    h = 0.2
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    K, P = regulator(A, B, np.diag([3.0, 0.5]), np.array([[0.2]]), h)
    cost = kg.Integral(3 * x**2 + v**2 / 2 + F**2 / 5) + kg.AtEnd(quadratic(P, (x, v)))
    controller = kg.OptimalControl(block(), cost, 1.0, bounds={F: (-100, 100)}).controller(
        h * intervals, h, intervals=intervals
    )
    for state in ([1.0, 0.0], [0.0, 1.0], [-0.3, 2.0]):
        controller.reset()
        assert_allclose(controller(0.0, state[:1], state[1:]), -K @ state, rtol=LINEAR)
        assert controller.solved
        assert controller.iterations == 0


def test_the_gain_with_states_of_first_order_is_that_of_the_discrete_regulator() -> None:
    model, h = cart(inputs=[kg.Input(sm.Function("f")(sm.Symbol("t")))]), 0.1
    A, B = cart_matrix()
    n = 3  # the state z integrates others and has no effect
    K, P = regulator(A[:n, :n], B[:n, None], np.diag([5.0, 1.0, 0.1]), np.array([[0.5]]), h)
    (X,), (V,), (a, _), f = model.coordinates, model.speeds, model.states, model.inputs[0].symbol
    cost = kg.Integral(5 * X**2 + V**2 + a**2 / 10 + f**2 / 2) + kg.AtEnd(quadratic(P, (X, V, a)))
    controller = kg.OptimalControl(model, cost, 1.0).controller(4 * h, h)
    state = np.array([0.5, -1.0, 0.3])
    assert_allclose(controller(0.0, state[:1], state[1:2], [*state[2:], 7.0]), -K @ state, rtol=LINEAR)


# -- optimality -------------------------------------------------------------------------------------------------------


def by_hand(z: Any, force: Any) -> Any:
    """The rates of the cart-pole, and the integrand."""
    (m_c, m_p, l, g), (X, angle, speed, rate) = swing_up().DEFAULTS.values(), z
    s, c = np.sin(angle), np.cos(angle)
    a = (force + m_p * s * (l * rate**2 + g * c)) / (m_c + m_p * s**2)
    cost = 10 * X**2 + 10 * (angle - np.pi) ** 2 + 0.1 * speed**2 + 0.1 * rate**2 + 0.01 * force**2
    return np.array([speed, rate, a, -(c * a + g * s) / l, cost])


def shot(z: Any, forces: Any, h: float) -> tuple[Any, Any]:
    """States after each interval, (N, 4), and the cost, by the Runge-Kutta method."""
    z, states = np.append(z, 0.0).astype(np.result_type(np.asarray(forces), 1.0)), []
    for force in forces:
        k1 = by_hand(z[:4], force)
        k2 = by_hand(z[:4] + h / 2 * k1[:4], force)
        k3 = by_hand(z[:4] + h / 2 * k2[:4], force)
        k4 = by_hand(z[:4] + h * k3[:4], force)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(z[:4])
    return np.array(states), z[4]


def optimum(z: Any, n: int, h: float, guess: Any) -> Any:
    """The forces that IPOPT finds for the same discrete problem; derivatives by complex steps."""
    import ipyopt

    def slopes(forces: Any) -> tuple[Any, Any]:
        found = [shot(z, forces + 1e-30j * row, h) for row in np.eye(n)]
        return np.array([s[:, 0].imag for s, _ in found]).T / 1e-30, np.array([c.imag for _, c in found]) / 1e-30

    def assign(out: Any, values: Any) -> Any:
        out[()] = values
        return out

    everywhere = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    ones, two = np.ones(n), 2.0 * np.ones(n)
    problem = ipyopt.Problem(
        n, -20 * ones, 20 * ones, n, -two, two, everywhere, (np.array([], int), np.array([], int)),
        lambda forces: float(shot(z, forces, h)[1]),
        lambda forces, out: assign(out, slopes(forces)[1]),
        lambda forces, out: assign(out, shot(z, forces, h)[0][:, 0]),
        lambda forces, out: assign(out, slopes(forces)[0].ravel()),
        ipopt_options={"hessian_approximation": "limited-memory", "tol": 1e-11, "print_level": 0, "sb": "yes",
                       "bound_relax_factor": 0.0, "limited_memory_max_history": 30, "max_iter": 1000},
    )  # fmt: skip
    forces, _, status = problem.solve(np.array(guess))
    assert status in {0, 1}
    return forces


@pytest.mark.parametrize("start", [(0.0, 0.3, 0.0, 0.0), (1.2, 3.0, 1.5, 0.0)], ids=["input bounds", "a state bound"])
def test_converged_iterations_are_the_optimum_of_ipopt(start: tuple[float, ...]) -> None:
    controller = cart_pole(horizon=0.5, intervals=10, sample_time=0.05)
    controller.reset()
    first = controller.solve(0.0, start[:2], start[2:], tolerance=1e-10)
    plan = controller.prediction
    states, cost = shot(start, plan.inputs[:, 0], 0.05)
    assert_allclose(plan.states[1:], states, atol=OPTIMAL)
    assert_allclose(plan.inputs[0], first)
    expected = optimum(start, 10, 0.05, plan.inputs[:, 0] + 0.1)
    assert_allclose(shot(start, expected, 0.05)[1], cost, rtol=OPTIMAL)
    assert_allclose(plan.inputs[:, 0], expected, atol=OPTIMAL * 20)
    assert controller.violation <= 1e-9
    assert max(np.abs(plan.inputs).max() - 20, np.abs(plan.states[:, 0]).max() - 2) <= 1e-9


# -- closed loops -----------------------------------------------------------------------------------------------------


def test_a_cart_pole_swings_up_and_stands_in_spite_of_disturbances() -> None:
    """A heavier tip than the controller knows, and a push at 3 s: the pole stands 3 s later, within all bounds."""
    controller = cart_pole()
    controller.reset()
    solver = solver_for("optimal_swing_up").with_parameters({"m_p": 0.36})
    first = solver.integrate((0.0, 3.0), [0.0, 0.0], [0.0, 0.0], controller, sample_time=0.025)
    second = solver.integrate((3.0, 6.0), first.q[-1], first.u[-1] + [1.0, 2.0], controller, sample_time=0.025)
    assert abs(first["theta"][-1] - np.pi) < 0.05
    assert abs(second["theta"][-1] - np.pi) < 0.01
    assert abs(second["x"][-1]) < 0.05
    forces, places = np.concatenate([first["F"], second["F"]]), np.concatenate([first["x"], second["x"]])
    assert_allclose(np.abs(forces).max(), 20.0, atol=1e-9)
    assert np.abs(forces).max() <= 20.0
    assert np.abs(places).max() < 2.0
    assert controller.solved
    times = controller.seconds
    assert times.samples == 242
    assert 0.0 < times.mean <= times.longest


def test_the_prediction_is_the_motion_of_the_model() -> None:
    """A converged plan, replayed with its inputs by the adaptive integrator: smaller steps are nearer, by order 4."""
    model, cost = cart_pole_cost()
    problem = kg.OptimalControl(model, kg.Integral(cost), 1.0, bounds={"F": (-20, 20)})
    errors = []
    for steps in (1, 2):
        controller = problem.controller(0.6, 0.03, intervals=10, steps=steps)
        controller.solve(1.0, [0.1, 2.5], [0.0, 0.5])
        plan = controller.prediction
        assert_allclose(plan.t, 1.0 + np.linspace(0.0, 0.6, 11))
        assert plan.names == ("x", "theta", "v", "w")
        assert plan.input_names == controller.inputs == ("F",)
        run, state = [plan.states[0]], plan.states[0]
        for k, (force,) in enumerate(plan.inputs):
            span = (plan.t[k], plan.t[k + 1])
            part = solver_for("optimal_swing_up").integrate(span, state[:2], state[2:], [force], rtol=1e-12, atol=1e-12)
            state = np.concatenate([part.q[-1], part.u[-1]])
            run.append(state)
        errors.append(np.abs(plan.states - run).max())
    assert errors[0] < 2e-3
    assert 8.0 < errors[0] / errors[1] < 32.0


def test_a_reference_follows_the_parameter_that_is_set() -> None:
    """The steady state of a regulator without cost of the input at rest is the reference."""
    goal = sm.Symbol("goal")
    cost = kg.Integral((x - goal) ** 2 + v**2 / 10 + F**2 / 100)
    problem = kg.OptimalControl(block(), cost, 1.0, bounds={F: (-3, 3)}, parameters={goal: 0.5})
    controller, solver = problem.controller(1.0, 0.1), kg.build(block())
    run = solver.integrate((-4.0, 0.0), [0.0], [0.0], controller, sample_time=0.1)
    assert_allclose(run.q[-1], [0.5], atol=1e-3)
    state = run.q[-1], run.u[-1]
    for k, place in enumerate((1.0, -0.5)):
        controller.set(goal, place)
        run = solver.integrate((4.0 * k, 4.0 * k + 4.0), *state, controller, sample_time=0.1)
        state = run.q[-1], run.u[-1]
        assert_allclose(run.q[-1], [place], atol=1e-3)
    controller.set("m", 2.0)
    heavy = controller(8.0, *state)
    assert_allclose(heavy, [0.0], atol=1e-2)


def test_a_reference_in_the_time_is_seen_ahead() -> None:
    """A block follows a square wave, smoothed over 0.05 s, and begins to move before the wave does, at 2 s."""
    wave = sm.tanh((t - 2) / sm.Float(0.05))
    cost = kg.Integral(100 * (x - wave) ** 2 + F**2 / 100)
    controller = kg.OptimalControl(block(), cost, 1.0, bounds={F: (-30, 30)}).controller(1.0, 0.05)
    run = kg.build(block()).integrate((0.0, 4.0), [-1.0], [0.0], controller, sample_time=0.05)
    assert abs(run(1.5)[0][0] + 1.0) < 0.05
    assert -0.9 < run(1.95)[0][0] < -0.1
    assert abs(run(2.0)[0][0]) < 0.15
    assert abs(run.q[-1, 0] - 1.0) < 1e-3


def test_conditions_hold_along_the_plan_and_at_its_end() -> None:
    """A block comes to rest at 0 with the least effort, with a bounded speed, and a bound of a nonlinear function."""
    problem = kg.OptimalControl(
        block(),
        kg.Integral(F**2),
        1.0,
        end={x: 0, v: 0},
        bounds={F: (-20, 20)},
        path=[(v, -0.6, 0.6), (F * v, None, 2)],
    )
    controller = problem.controller(3.0, 0.1)
    controller.solve(0.0, [1.5], [0.0])
    plan = controller.prediction
    assert controller.solved
    assert_allclose(plan.states[-1], 0.0, atol=2e-8)
    assert_allclose(plan.states[:, 1].min(), -0.6, atol=1e-8)
    assert (plan.inputs[:, 0] * plan.states[:-1, 1]).max() <= 2.0 + 1e-8


def test_what_cannot_be_met_is_violated_as_little_as_possible() -> None:
    """With full force, a block from 3 m at rest is at 3 - 2 * 1^2 / 2 = 2 m after 1 s, and not at the end, 0."""
    problem = kg.OptimalControl(block(), kg.Integral(F**2), 1.0, end={x: 0}, bounds={F: (-2, 2)})
    controller = problem.controller(1.0, 0.1, penalty=100.0)
    assert_allclose(controller(0.0, [3.0], [0.0]), [-2.0])
    assert not controller.solved
    assert "violated" in controller.status
    assert_allclose(controller.violation, 2.0, rtol=1e-6)
    assert_allclose(controller.prediction.states[-1, 0], 2.0)
    controller(0.1, [0.3], [0.0])
    assert controller.solved
    assert controller.violation < 1e-8


@pytest.mark.parametrize("cost", [1 + sm.cos(theta), sm.sin(theta / 2 - sm.pi / 2) ** 2 * 2], ids=["curved", "square"])
def test_costs_that_are_no_squares_stand_a_pendulum_up(cost: Any) -> None:
    """1 + cos(theta) is concave where the pendulum hangs, and the square of the same value is not."""
    whole = kg.Integral(5 * cost + omega**2 / 10 + T**2 / 50) + kg.AtEnd(5 * cost)
    controller = kg.OptimalControl(pendulum(), whole, 1.0, bounds={T: (-8, 8)}).controller(1.5, 0.05)
    run = kg.build(pendulum()).integrate((0.0, 6.0), [0.4], [0.0], controller, sample_time=0.05)
    assert_allclose(np.cos(run.q[-1]), [-1.0], atol=1e-3)
    assert_allclose(run.u[-1], [0.0], atol=2e-2)


def test_closed_loops_and_euler_parameters_are_predicted_on_their_constraints() -> None:
    """The same pendulum in Cartesian coordinates with its length as a constraint gives the same torques."""
    height = kg.Integral(5 * (1 - y) ** 2 + T**2 / 50)
    other = kg.Integral(5 * (1 + sm.cos(theta)) ** 2 + T**2 / 50)
    one = kg.OptimalControl(rod(), height, 1.0, bounds={T: (-8, 8)}).controller(1.0, 0.02)
    two = kg.OptimalControl(pendulum(), other, 1.0, bounds={T: (-8, 8)}).controller(1.0, 0.02)
    angle, rate = 2.4, 0.7
    places = [np.sin(angle), -np.cos(angle)], [rate * np.cos(angle), rate * np.sin(angle)]
    expected = two.solve(0.0, [angle], [rate])
    assert_allclose(one.solve(0.0, *places), expected, rtol=2e-4)
    assert_allclose(np.linalg.norm(one.prediction.states[:, :2], axis=1), 1.0, atol=1e-5)


def test_a_satellite_turns_to_its_reference() -> None:
    model = satellite()
    e, rates, moments = model.coordinates, model.speeds, [item.symbol for item in model.inputs]
    cost = sum(10 * k**2 for k in e[1:]) + sum(k**2 for k in rates) + sum(k**2 for k in moments) / 10
    problem = kg.OptimalControl(model, kg.Integral(cost), 1.0, bounds=dict.fromkeys(moments, (-1, 1)))
    controller = problem.controller(1.0, 0.1)
    start = [np.cos(0.6), np.sin(0.6), 0.0, 0.0], [0.5, 0.2, -0.3]
    run = kg.build(model).integrate((0.0, 10.0), *start, controller, sample_time=0.1)
    assert_allclose(run.q[-1], [1.0, 0.0, 0.0, 0.0], atol=5e-3)


# -- samples ----------------------------------------------------------------------------------------------------------


def test_states_that_are_not_finite_leave_the_plan_in_force() -> None:
    controller = cart_pole()
    controller.reset()
    assert "no sample" in controller.status
    with raises(kg.SolveError, "no plan"):
        controller.prediction  # noqa: B018
    controller.solve(0.0, [0.0, 2.0], [0.0, 0.0])
    planned = controller.prediction.inputs[:, 0]
    assert_allclose(controller(0.025, [np.nan, 2.0], [0.0, 0.0]), planned[1:2])
    assert "not finite" in controller.status
    assert_allclose(controller(0.05, [0.0, np.inf], [0.0, 0.0]), planned[2:3])


@pytest.mark.parametrize("outlier", [1e3, 1e5, 1e150])
def test_a_sample_after_an_outlier_is_that_of_a_fresh_controller(outlier: float) -> None:
    """The program of a linear model does not depend on the plan before it, which is 1e5 from the solution or infinite.

    Its tolerance follows what it costs there, so that 1e-6 of the largest force is left of twelve digits.
    """
    problem = kg.OptimalControl(block(), kg.Integral(10 * x**2 + v**2 + F**2), 1.0, bounds={F: (-1, 1)})
    fresh, disturbed = (problem.controller(1.0, 0.1) for _ in range(2))
    for time, state in ((0.0, 1.0), (0.1, outlier)):
        disturbed(time, [state], [0.0])
    wanted = fresh(0.2, [0.98], [-0.2])
    assert_allclose(disturbed(0.2, [0.98], [-0.2]), wanted, atol=1e-6)
    assert disturbed.solved
    assert_allclose(disturbed.prediction.inputs, fresh.prediction.inputs, atol=1e-6)


def test_controllers_are_not_copied() -> None:
    with raises(kg.SolveError, "not copied or pickled", "problem.controller"):
        pickle.dumps(cart_pole())


def test_a_plan_moves_by_the_time_between_samples() -> None:
    """The predicted state at the next sample: the plan is shifted, and a converged one hardly changes."""
    controller = cart_pole(horizon=1.0, intervals=20, sample_time=0.025)
    controller.reset()
    controller.solve(0.0, [0.0, 3.0], [0.0, 0.0])
    before = controller.prediction
    between = 0.5 * (before.states[0] + before.states[1])
    controller(0.025, between[:2], between[2:])
    after = controller.prediction
    assert_allclose(after.t[0], 0.025)
    assert_allclose(after.states[10, 1], 0.5 * (before.states[10, 1] + before.states[11, 1]), atol=5e-3)


def test_models_with_states_get_them_as_an_argument() -> None:
    model = cart()
    (X,), f = model.coordinates, model.inputs[0].symbol
    controller = kg.OptimalControl(
        model, kg.Integral(10 * (X - 1) ** 2 + f**2 / 100), 1.0, bounds={f: (-30, 30)}
    ).controller(1.0, 0.1)
    run = kg.build(model).integrate((0.0, 4.0), [0.0], [0.0], controller, s0=[0.0, 0.0], sample_time=0.1)
    assert_allclose(run["x"][-1], 1.0, atol=0.1)
    with raises(kg.SolveError, "s has 1 values", "2"):
        controller(0.0, [0.0], [0.0], [0.0])


def test_inputs_with_one_possible_value_are_held() -> None:
    problem = kg.OptimalControl(plane(), kg.Integral(x**2 + y**2 + F**2), 1.0, bounds={F: (-1, 1), T: 0.5})
    controller = problem.controller(1.0, 0.1)
    assert controller.inputs == ("F",)
    assert controller(0.0, [0.3, 0.0], [0.0, 0.0])[1] == 0.5
    controller.set(T, -0.25)
    assert controller(0.1, [0.3, 0.0], [0.0, 0.0])[1] == -0.25


# -- refusals ---------------------------------------------------------------------------------------------------------

EFFORT = kg.Integral(F**2)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"horizon": 0.0}, ["horizon", "0.0", "positive"]),
        ({"sample_time": -1}, ["sample_time", "-1", "positive"]),
        ({"sample_time": 2.0}, ["sample_time", "2 s", "1 s"]),
        ({"intervals": 0}, ["intervals", "0"]),
        ({"steps": 1.5}, ["steps", "1.5"]),
        ({"penalty": 0}, ["penalty", "0"]),
        ({"max_iterations": 0}, ["max_iterations", "0"]),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], texts: list[str]) -> None:
    problem = kg.OptimalControl(block(), EFFORT, 1.0)
    with raises(kg.SolveError, *texts):
        problem.controller(**{"horizon": 1.0, "sample_time": 0.1} | arguments)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"duration": (1.0, 2.0)}, ["duration", "unknown", "1", "2"]),
        ({"parameters": {"m": (1, 2)}}, ["m", "controller.set"]),
        ({"minimize": kg.SampleSum(x**2, [0.5])}, ["kg.SampleSum", "reference"]),
        ({"minimize": kg.AtTime(x, 0.5) ** 2}, ["kg.AtTime", "controller.set"]),
        ({"subject_to": [(kg.AtEnd(x) - kg.AtStart(x), 0, 0)]}, ["AtEnd(x) - AtStart(x) = 0", "periodic"]),
        ({"minimize": EFFORT + kg.AtEnd(x) * kg.AtStart(x)}, ["AtStart", "measured"]),
        ({"minimize": EFFORT + kg.AtEnd(F) ** 2}, ["F", "at the end", "inputs"]),
        ({"end": {F * x: 0}}, ["F", "at the end"]),
        ({"bounds": {F: 1.0}}, ["bounds", "low < high"]),
    ],
)
def test_problems_that_no_horizon_can_have_are_refused(arguments: dict[str, Any], texts: list[str]) -> None:
    given = {"model": block(), "minimize": EFFORT, "duration": 1.0} | arguments
    with raises(kg.SolveError, *texts):
        kg.OptimalControl(**given).controller(1.0, 0.1)


def test_inputs_that_have_rates_are_refused() -> None:
    with raises(kg.SolveError, "rate of a", "first-order state"):
        kg.OptimalControl(everything(), EFFORT, 1.0).controller(1.0, 0.1)


def test_values_that_do_not_exist_are_refused() -> None:
    controller = kg.OptimalControl(block(), EFFORT, 1.0).controller(1.0, 0.1)
    with raises(kg.SolveError, "goal", "m"):
        controller.set("goal", 1.0)
    with raises(kg.SolveError, "F", "plans"):
        controller.set(F, 1.0)
    with raises(kg.SolveError, "m", "nan"):
        controller.set("m", float("nan"))
    with raises(kg.SolveError, "q has 2 values", "1"):
        controller(0.0, [0.0, 1.0], [0.0])
    with raises(kg.BuildError, "name", "9"):
        controller.emit("somewhere", name="9")
