"""Optimal motions with closed forms, and the same problem in several formulations."""

from __future__ import annotations

import pickle
import signal
from typing import Any

import numpy as np
import pytest
import sympy as sm
from controlled import F, T, block, m, omega, pendulum, rod, satellite, theta, v, w, x, y
from messages import raises

import kanegen as kg
from kanegen.control import run

pytest.importorskip("ipyopt")
LIFT: dict[str, Any] = {"start": {theta: 0, omega: 0}, "end": {theta: sm.pi, omega: 0}}


def least_effort(**options: Any) -> kg.OptimalControl:
    """A unit distance in a unit time: F = 6 - 12 t, and the integral of F^2 is 12."""
    return kg.OptimalControl(block(), kg.Integral(F**2), 1.0, {x: 0, v: 0}, {x: 1, v: 0}, **options)


@pytest.mark.parametrize("scheme", ["hermite-simpson", "radau", "gauss3"])
def test_least_effort_is_exact(scheme: str) -> None:
    motion = least_effort(scheme=scheme, intervals=4).solve()
    times = np.linspace(0.0, 1.0, 9)
    assert motion.success
    assert motion.cost == pytest.approx(12.0, rel=1e-9)
    assert motion.inputs["F"](times) == pytest.approx(6.0 - 12.0 * times, abs=1e-7)
    assert motion.solution(0.3)[0] == pytest.approx([3 * 0.3**2 - 2 * 0.3**3], abs=1e-9)
    assert motion.multipliers["states"][:, 0] == pytest.approx(-24.0, rel=1e-6)  # of 12 (1 - jump)^2
    assert motion.error < 1e-8
    assert motion.replay_error < 1e-8


def test_problems_and_motions_are_pickled() -> None:
    problem = least_effort(intervals=4)
    motion = pickle.loads(pickle.dumps(problem.solve()))
    assert motion.error < 1e-8
    assert motion.inputs["F"](0.0) == pytest.approx(6.0)
    assert pickle.loads(pickle.dumps(problem)).solve().cost == pytest.approx(12.0, rel=1e-9)


@pytest.mark.parametrize(("scheme", "order"), [("trapezoidal", 2), ("backward-euler", 1)])
def test_errors_of_intervals_and_of_the_cost_converge(scheme: str, order: int) -> None:
    coarse, fine = (least_effort(scheme=scheme, intervals=n).solve(max_refinements=0) for n in (16, 32))
    assert coarse.error / fine.error == pytest.approx(2.0 ** (order + 1), rel=0.1)
    assert (coarse.cost - 12.0) / (fine.cost - 12.0) == pytest.approx(4.0, rel=0.05)
    assert "above the tolerance" in fine.notes[-1]


def test_the_cost_of_the_midpoint_rule_converges() -> None:
    coarse, fine = (least_effort(scheme="midpoint", intervals=n).solve(max_refinements=0).cost for n in (16, 32))
    assert (coarse - 12.0) / (fine - 12.0) == pytest.approx(4.0, rel=0.05)


def test_least_time_is_bang_bang() -> None:
    problem = kg.OptimalControl(
        block(), kg.Duration, (0.1, 10.0), {x: 0, v: 0}, {x: 1, v: 0}, {F: (-1, 1)}, intervals=15
    )
    motion = problem.solve()
    assert motion.duration == pytest.approx(2.0, rel=1e-5)  # an interval of 15 contains the switch
    assert motion.inputs["F"](np.array([0.2, 1.8])) == pytest.approx([1.0, -1.0], abs=1e-6)
    assert motion.error < 1e-6
    assert motion.meshes[-1] > motion.meshes[0]


def test_a_parameter_is_found_with_the_motion() -> None:
    motion = least_effort(parameters={m: (0.5, 3.0)}, intervals=4).solve()
    assert motion.parameters == pytest.approx({"m": 0.5}, rel=1e-6)
    assert motion.cost == pytest.approx(3.0, rel=1e-6)  # F is proportional to m
    assert motion.solver.parameters["m"] == pytest.approx(0.5, rel=1e-6)


def test_constants_of_the_problem_have_values_among_the_parameters() -> None:
    """Twice the distance in the unit time costs four times the effort; the model does not know these symbols."""
    goal, weight = sm.symbols("goal weight")
    problem = kg.OptimalControl(
        block(),
        kg.Integral(weight * F**2),
        1.0,
        {x: 0, v: 0},
        {v: 0},
        subject_to=[(kg.AtEnd(x) - goal, 0, 0)],
        parameters={goal: 2.0, "weight": 0.5},
        intervals=4,
    )
    assert problem.solve().cost == pytest.approx(24.0, rel=1e-9)


def test_a_condition_along_the_path_and_one_of_an_expression_at_the_end_hold() -> None:
    problem = kg.OptimalControl(
        block(), kg.Integral(F**2), 1.0, {x: 0, v: 0}, {x + v: 1, v: 0}, path=[(v + F / 100, None, 1.2)], intervals=20
    )
    motion = problem.solve(max_refinements=0)
    speeds = motion.solution["v"] + motion.solution["F"] / 100
    assert speeds.max() == pytest.approx(1.2, abs=1e-6)
    assert motion.solution["x"][-1] == pytest.approx(1.0, abs=1e-9)
    assert motion.cost > 12.1
    assert (np.abs(motion.multipliers["path"]) > 1e-6).any()


def test_costs_at_the_end_and_periodic_conditions() -> None:
    """With the weight k of (x - 1)^2 at the end, x = k / (k + 12): the least cost of the way to x is 12 x^2."""
    cost = kg.Integral(F**2) + 4 * (kg.AtEnd(x) - 1) ** 2
    motion = kg.OptimalControl(block(), cost, 1.0, {x: 0, v: 0}, {v: 0}, intervals=4).solve()
    assert motion.solution["x"][-1] == pytest.approx(0.25, rel=1e-7)
    assert motion.cost == pytest.approx(12 / 16 + 4 * 9 / 16, rel=1e-7)
    gait = [(kg.AtEnd(v) - kg.AtStart(v), 0, 0), (kg.AtEnd(x) - kg.AtStart(x), 2, 2)]
    periodic = kg.OptimalControl(block(), kg.Integral(F**2 + v**2), 1.0, {x: 0}, subject_to=gait, intervals=4).solve()
    assert periodic.cost == pytest.approx(4.0, rel=1e-7)  # with the constant speed 2
    assert periodic.solution["v"] == pytest.approx(2.0, rel=1e-6)


def test_a_condition_at_a_time_inside_the_motion() -> None:
    """The least effort through x = 1 at a third of the time is that of a cubic spline: 2187 / 8."""
    exact = kg.OptimalControl(
        block(),
        kg.Integral(F**2),
        1.0,
        {x: 0, v: 0},
        {x: 0, v: 0},
        subject_to=[(kg.AtTime(x, 1 / 3), 1, 1)],
        intervals=4,
    ).solve()
    assert exact.cost == pytest.approx(2187 / 8, rel=1e-9)  # the time is a point of the mesh
    assert exact.mesh == pytest.approx([0.0, 0.25, 1 / 3, 0.5, 0.75, 1.0])
    through = [(kg.AtTime(x, 1 / 3), 1, 1)]
    ends: Any = ({x: 0, v: 0}, {x: 0, v: 0})
    for intervals in np.linspace(0, 1, 31), np.linspace(0, 1, 41):  # the time is a mesh point, and inside an interval
        problem = kg.OptimalControl(
            block(), kg.Integral(F**2), 1.0, *ends, subject_to=through, scheme="radau", intervals=intervals
        )
        motion = problem.solve()
        assert motion.state_at(1 / 3)[0] == pytest.approx(1.0, abs=1e-9)
        assert motion.cost == pytest.approx(2187 / 8, rel=1e-4)  # the slope of the force jumps inside an interval


@pytest.mark.parametrize("scheme", ["hermite-simpson", "radau"])
def test_inputs_jump_at_conditions_of_speeds(scheme: str) -> None:
    """The speed 1 at half the way of a block that starts and ends at rest: F = 2, then -2, where x is free."""
    through = [(kg.AtTime(v, 0.5), 1, 1)]
    problem = kg.OptimalControl(
        block(), kg.Integral(F**2), 1.0, {x: 0, v: 0}, {v: 0}, subject_to=through, scheme=scheme, intervals=3
    )
    motion = problem.solve()
    assert motion.cost == pytest.approx(4.0, rel=1e-9)
    assert motion.inputs["F"](np.array([0.4, 0.6])) == pytest.approx([2.0, -2.0], abs=1e-7)
    assert motion.multipliers["states"].shape[0] == motion.stages.size


def test_values_at_the_end_are_those_of_inputs_and_accelerations() -> None:
    """A force F = 6 - 12 t moves the block in least effort; another force at one instant changes nothing else."""
    own = least_effort(intervals=4).solve()
    assert own.inputs["F"](1.0) == pytest.approx(-6.0, abs=1e-8)
    for condition in (kg.AtEnd(F), 2 * kg.AtEnd(v.diff())):
        motion = least_effort(subject_to=[(condition, -1, -1)], intervals=64).solve(max_refinements=0)
        assert motion.inputs["F"](1.0) == pytest.approx(-0.5 if condition.has(v) else -1.0, abs=1e-8)


def test_a_parameter_is_identified_from_samples() -> None:
    """Under the force 1, x = t^2 / (2 m): least squares have a closed form. A NaN is left out."""
    times, z = np.linspace(0.0, 1.0, 23), sm.Symbol("z")
    measured = times**2 / 3.0 + 0.02 * np.random.default_rng(3).normal(size=times.size)
    measured[7] = np.nan
    known, k = np.isfinite(measured), times**2
    cost, force = kg.SampleSum((x - z) ** 2, times, {z: measured}), {F: (1, 1)}
    for scheme in ("hermite-simpson", "radau", "gauss"):
        problem = kg.OptimalControl(
            block(), cost, 1.0, {x: 0, v: 0}, bounds=force, parameters={m: (0.1, 10)}, scheme=scheme, intervals=9
        )
        motion = problem.solve()
        slope = (k[known] @ measured[known]) / (k[known] @ k[known])
        assert motion.parameters["m"] == pytest.approx(0.5 / slope, rel=1e-7)
        assert motion.cost == pytest.approx(((measured - slope * k)[known] ** 2).sum(), rel=1e-9)
    copy = pickle.loads(pickle.dumps(problem)).solve()
    assert copy.parameters == pytest.approx(motion.parameters, rel=1e-12)


@pytest.mark.parametrize("factor", [1e-12, 1e9])
def test_the_units_of_a_constraint_do_not_matter(factor: float) -> None:
    """The pendulum on a rod, whose length is a constraint with a factor: from a guess that violates it."""
    start, end, guess = {x: 0, v: 0, w: 0}, {x: 1, v: 0, w: 0}, {x: [0, 0.7, 1], y: [-0.9, -0.7, -0.1]}
    plain, scaled = (
        kg.OptimalControl(rod(each), kg.Integral(T**2), 1.0, start, end, intervals=20).solve(guess=guess)
        for each in (1.0, factor)
    )
    assert scaled.cost == pytest.approx(plain.cost, rel=1e-9)
    assert scaled.iterations == plain.iterations
    assert (scaled.trajectory.mesh_y[:, :2] ** 2).sum(axis=1) == pytest.approx(1.0, abs=1e-9)


def test_euler_parameters_turn_about_an_axis_with_least_effort() -> None:
    """The half turn in 1 s about an axis of inertia 1 has the cost 12 pi^2; three speeds, four coordinates."""
    e, rates, moments = satellite().coordinates, satellite().speeds, [item.symbol for item in satellite().inputs]
    rest = dict.fromkeys(rates, 0)
    start, end = ({**dict(zip(e, values, strict=True)), **rest} for values in ((1, 0, 0, 0), (0, 1, 0, 0)))
    cost = kg.Integral(sum(moment**2 for moment in moments))
    motion = kg.OptimalControl(satellite(), cost, 1.0, start, end, scheme="radau", intervals=12).solve()
    assert motion.cost == pytest.approx(12 * np.pi**2, rel=1e-6)
    assert (motion.solution.q**2).sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    assert (motion.trajectory.mesh_y[:, :4] ** 2).sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_a_motion_is_kept_where_a_finer_mesh_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_ITERATIONS", 0)
    problem = kg.OptimalControl(pendulum(), kg.Integral(T**2), 2.0, **LIFT, intervals=12)
    motion = problem.solve()
    assert motion.success
    assert motion.meshes == (12,)
    assert motion.notes[0] == "the solver failed on 24 intervals"
    assert "above the tolerance" in motion.notes[1]


def test_several_starts_find_a_better_optimum() -> None:
    """The pendulum that swings first the other way needs less torque; the straight line does not find it."""
    problem = kg.OptimalControl(pendulum(), kg.Integral(T**2), 2.0, **LIFT, intervals=30)
    one, best = problem.solve(max_refinements=0), problem.solve(max_refinements=0, starts=6)
    assert one.cost == pytest.approx(68.1, abs=0.1)
    assert best.cost < 0.97 * one.cost
    assert "starts converged" in best.notes[0]
    assert best.meshes == (30,)


def test_a_closed_loop_has_the_motion_of_minimal_coordinates() -> None:
    angles = np.linspace(0.0, np.pi, 20)
    guess = {x: np.sin(angles), y: -np.cos(angles)}
    problem = kg.OptimalControl(rod(), kg.Integral(T**2), 2.0, {y: -1, v: 0}, {x: 0, y: 1, v: 0, w: 0}, intervals=30)
    loop = problem.solve(guess=guess)
    assert "moved onto the constraints" in loop.notes[0]
    s = loop.solution
    angle = np.unwrap(np.arctan2(s["x"], -s["y"]))
    drift = np.abs(s["x"] ** 2 + s["y"] ** 2 - 1.0)
    assert drift[::2].max() < 1e-12  # mesh points
    assert drift.max() < 1e-4  # and the stages between
    start = {theta: (s.t, angle), omega: (s.t, np.gradient(angle, s.t)), T: (s.t, s["T"])}
    open_loop = kg.OptimalControl(pendulum(), kg.Integral(T**2), 2.0, **LIFT, intervals=30).solve(guess=start)
    assert loop.cost == pytest.approx(open_loop.cost, rel=1e-4)
    assert loop.error < 1e-6
    with raises(kg.SolveError, "start", "constraints", "0.25"):
        kg.OptimalControl(rod(), kg.Integral(T**2), 2.0, {x: 0.5, y: -1}, {y: 1}, intervals=30).solve()


def test_a_solution_and_a_motion_are_guesses_and_inputs_drive_the_solver(tmp_path: Any) -> None:
    problem = kg.OptimalControl(pendulum(), kg.Integral(T**2), 1.0, **LIFT, intervals=30)
    motion = problem.solve()
    again = problem.solve(guess=motion)
    assert again.iterations < motion.iterations
    assert again.cost == pytest.approx(motion.cost, rel=1e-5)
    run = motion.solver.integrate((0.0, 1.0), [0.0], [0.0], motion.inputs, rtol=1e-9, atol=1e-9)
    assert run["theta"][-1] == pytest.approx(np.pi, abs=1e-4)
    assert problem.solve(guess=run, max_refinements=0).cost == pytest.approx(motion.cost, rel=1e-4)
    motion.solution.save(tmp_path / "motion.nc")
    assert kg.load(tmp_path / "motion.nc")["T"] == pytest.approx(motion.solution["T"])


@pytest.mark.usefixtures("interruptible")
def test_iterations_are_reported_and_ctrl_c_keeps_the_motion() -> None:
    problem, seen = kg.OptimalControl(pendulum(), kg.Integral(T**2), 1.0, **LIFT, intervals=30), []

    def stop(progress: Any) -> None:
        seen.append(progress.iteration)
        if progress.iteration == 4:
            signal.raise_signal(signal.SIGINT)

    motion = problem.solve(callback=stop)
    assert seen == [0, 1, 2, 3, 4]
    assert not motion.success
    assert motion.status == "stopped"
    assert np.isfinite(motion.solution.q).all()

    def fail(progress: Any) -> None:
        raise ValueError("of the user")

    with pytest.raises(ValueError, match="of the user"):
        problem.solve(callback=fail)


def test_what_cannot_be_met_is_named() -> None:
    problem = kg.OptimalControl(block(), kg.Integral(F**2), 1.0, {x: 0, v: 0}, {x: 1, v: 0}, {F: (-1, 1)}, intervals=8)
    with raises(kg.OptimalControlError, "rate", "guess=") as caught:
        problem.solve()
    assert caught.value.motion.duration == 1.0


def test_states_that_vanish_do_not_refine_the_mesh() -> None:
    motion = kg.OptimalControl(block(), kg.Integral(F**2), 1.0, {x: 1, v: 0}, {x: 1, v: 0}, intervals=4).solve()
    assert motion.meshes == (4,)
    assert np.abs(motion.solution["F"]).max() < 1e-9
    assert motion.error < 1e-9
