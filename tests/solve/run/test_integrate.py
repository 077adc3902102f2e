"""Integration through the solver: results, inputs, options, the start, and failures that keep results."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from io import StringIO
from typing import Any

import numpy as np
import pytest
from handmade_track import PARAMETERS, acceleration, solver, start
from messages import raises, says
from rich.console import Console
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy_calls import call_rates

from kanegen.errors import SolveError
from kanegen.model import Baumgarte
from kanegen.progress import ProgressBar
from kanegen.solve import IntegrationError, IntegrationInterrupted, Outcome, Solution

Q, U = start()
METHODS = [
    {"method": "rk4", "step": 1e-2},
    {"method": "kutta_merson", "step": 1e-2},
    {"method": "dopri5"},
    {"method": "dop853"},
]


def exact(t: Any) -> tuple[np.ndarray, np.ndarray]:
    """The motion for an input that is zero: constant acceleration along the track."""
    t = np.asarray(t, dtype=float)[..., None]
    return Q + U * t + 0.5 * acceleration() * t**2, U + acceleration() * t


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("span", [(0.0, 1.5), (0.0, -1.5)])
def test_the_motion_and_its_dense_output(options: dict[str, Any], span: tuple[float, float]) -> None:
    solution = solver().integrate(span, Q, U, **options)
    assert solution.success
    assert solution.status is Outcome.FINISHED
    assert (solution.t[0], solution.t[-1]) == span
    assert solution.q.shape == solution.u.shape == (solution.t.size, 2)
    assert solution.statistics.steps == solution.t.size - 1
    times = np.linspace(*span, 31)
    for computed, expected in zip(solution(times), exact(times), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=1e-10, atol=1e-12)
    for computed, expected in zip(solution(span[1] / 3.0), exact(span[1] / 3.0), strict=True):
        assert computed.shape == (2,)
        np.testing.assert_allclose(computed, expected, rtol=1e-10)
    np.testing.assert_array_equal(solution(solution.t)[0][:-1], solution.q[:-1])
    assert f"{solution.t.size} points" in repr(solution)


@pytest.mark.parametrize("options", METHODS)
def test_dense_output_is_that_of_the_compiled_method(options: dict[str, Any]) -> None:
    track = solver()
    lift = {"lift": CubicSpline([0.0, 0.5, 1.0, 2.0], [0.0, 0.4, -0.2, 0.3])}
    r0 = [lift["lift"](0.0, k) for k in range(3)]
    q0 = Q + np.array([0.0, r0[0]])
    u0 = U + np.array([0.0, r0[1]])
    times = np.linspace(0.0, 2.0, 57)
    asked = track.integrate((0.0, 2.0), q0, u0, lift, t_eval=times, dense_output=False, **options)
    dense = track.integrate((0.0, 2.0), q0, u0, lift, **options)
    np.testing.assert_array_equal(asked.t, times)
    np.testing.assert_allclose(dense(times)[0], asked.q, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dense(times)[1], asked.u, rtol=1e-12, atol=1e-13)
    position, velocity = track.residuals(2.0, *dense(2.0), [lift["lift"](2.0, k) for k in range(3)])
    assert abs(position[0]) < 1e-6
    assert abs(velocity[0]) < 1e-6


def test_the_ode_serves_scipy() -> None:
    reference = solve_ivp(solver().ode, (0.0, 1.0), [*Q, *U], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(reference.y[:2, -1], exact(1.0)[0], rtol=1e-9)
    np.testing.assert_allclose(solver().integrate((0.0, 1.0), Q, U).q[-1], reference.y[:2, -1], rtol=1e-8)


def test_a_c_function_with_inputs() -> None:
    spline = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 0.0, 1.0])
    status, dydt = call_rates(solver().low_level_callable({"lift": spline}), 0.7, [*Q, *U])
    assert status == 0
    np.testing.assert_allclose(dydt[2:], acceleration(lift=float(spline(0.7, 2))), rtol=1e-12)
    with raises(SolveError, "inputs", "Python"):
        solver().low_level_callable(lambda t: [0.0, 0.0, 0.0])


def test_stabilization_makes_a_violation_decay() -> None:
    off = Q + np.array([0.0, 0.01])
    solution = solver(stabilization=Baumgarte(5.0, 5.0)).integrate((0.0, 4.0), off, U, start_tolerance=None)
    position, _ = solver().residuals(4.0, solution.q[-1], solution.u[-1])
    assert abs(position[0]) < 1e-8


@pytest.mark.parametrize(
    ("q", "u", "rows"),
    [
        (
            Q + np.array([0.0, 0.1]),
            U,
            [("1", "make_consistent"), ("y - lift - slope*x", "position level", "residual", "0.1")],
        ),
        (
            Q,
            U + np.array([0.0, 0.3]),
            [("d/dt (y - lift - slope*x)", "velocity level", "residual", "0.3", "allowed")],
        ),
        (Q + 1.0, U + 1.0, [("2",), ("q0", "u0", "start_tolerance=")]),
    ],
)
def test_the_message_about_an_inconsistent_start_gives_the_residuals(
    q: Any, u: Any, rows: list[tuple[str, ...]]
) -> None:
    for names in rows:
        with raises(SolveError, *names):
            solver().integrate((0.0, 1.0), q, u)
    assert solver().integrate((0.0, 0.1), q, u, start_tolerance=None).success


def test_the_start_is_compared_at_its_own_inputs() -> None:
    with raises(SolveError, "residual", "-0.2"):
        solver().integrate((0.0, 1.0), Q, U, [0.2, 0.0, 0.0])
    assert solver().integrate((0.0, 1.0), Q + np.array([0.0, 0.2]), U, [0.2, 0.0, 0.0]).success
    assert solver().integrate((0.0, 1.0), Q, U, start_tolerance=1e-2, r=[1e-3, 0.0, 0.0]).success


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (
            {"method": "euler"},
            ("method", "'euler'", "rk4", "kutta_merson", "dopri5", "dop853"),
        ),
        ({"method": "rk4"}, ("rk4", "step=")),
        (
            {"method": "rk4", "step": 0.1, "max_step": 0.2},
            ("rk4", "max_step"),
        ),
        ({"step": 0.1}, ("dopri5", "step")),
        ({"method": "rk4", "step": -0.1}, ("step", "-0.1")),
        ({"max_step": 0.0}, ("max_step", "0.0")),
        ({"first_step": "a"}, ("first_step", "'a'")),
        ({"max_steps": 0}, ("max_steps", "0")),
        ({"max_steps": 2.5}, ("max_steps", "2.5")),
        ({"rtol": 0.0}, ("rtol", "0.0")),
        ({"rtol": [1e-3, 1e-3]}, ("rtol", "(2,)")),
        ({"atol": -1.0}, ("atol", "-1.0")),
        ({"atol": "x"}, ("atol", "'x'")),
        ({"start_tolerance": 0.0}, ("start_tolerance", "0.0")),
        ({"t_eval": [0.5, 2.0]}, ("t_eval",)),
        ({"t_eval": [0.5, 0.2]}, ("t_eval", "sorted")),
        ({"t_span": 1.0}, ("t_span", "1.0")),
        ({"t_span": (0.0, np.nan)}, ("t1", "nan")),
        ({"q0": [0.0]}, ("q", "(1,)", "(2,)", "x", "y")),
        ({"u0": [np.nan, 0.0]}, ("u1", "u[0]", "nan")),
        (
            {"r": (np.array([0.0, 0.5]), np.zeros((2, 3)))},
            ("inputs", "0.0", "0.5"),
        ),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], names: tuple[str, ...]) -> None:
    arguments = {"t_span": (0.0, 1.0), "q0": Q, "u0": U, **options}
    with raises(SolveError, *names) as caught:
        solver().integrate(**arguments)
    assert not isinstance(caught.value, IntegrationError)


def test_an_empty_run_holds_its_start() -> None:
    solution = solver().integrate((1.0, 1.0), Q, U)
    np.testing.assert_array_equal(solution.q, [Q])
    np.testing.assert_array_equal(solution(1.0)[0], Q)


def test_no_step_beyond_the_solution() -> None:
    solution = solver().integrate((0.0, 1.0), Q, U)
    for t in (1.1, [0.5, -0.1], np.nan):
        with raises(SolveError, "0.0", "1.0"):
            solution(t)
    with raises(SolveError, "t", "shape"):
        solution([[0.5]])
    with raises(SolveError, "dense_output"):
        solver().integrate((0.0, 1.0), Q, U, dense_output=False)(0.5)


def failed(**arguments: Any) -> IntegrationError:
    with pytest.raises(IntegrationError) as caught:
        solver().integrate(**{"t_span": (0.0, 1.0), "q0": Q, "u0": U, **arguments})
    return caught.value


def test_too_many_steps_keep_the_results() -> None:
    error = failed(method="rk4", step=0.01, max_steps=5)
    says(error, "t = 0.05", "max_steps")
    assert error.solution.status is Outcome.TOO_MANY_STEPS
    assert not error.solution.success
    assert "max_steps" in error.solution.status.advice
    np.testing.assert_allclose(error.solution(0.025)[0], exact(0.025)[0], rtol=1e-12)
    copy = pickle.loads(pickle.dumps(error))
    np.testing.assert_array_equal(copy.solution.q, error.solution.q)


@pytest.mark.parametrize("options", [{"method": "rk4", "step": 0.01}, {"method": "dopri5"}])
def test_a_singular_position_stops_the_run_and_is_reported(options: dict[str, Any]) -> None:
    error = failed(t_span=(999.5, 1000.5), **options)
    assert error.solution.status is Outcome.RIGHT_HAND_SIDE_FAILED
    says(error, "singular")
    assert error.solution.last[0] == pytest.approx(1000.0, abs=0.02)


def test_an_error_in_a_python_input_keeps_the_results() -> None:
    def lift(t: float) -> list[float]:
        if t > 0.5:
            raise ZeroDivisionError("no lift")
        return [0.0, 0.0, 0.0]

    error = failed(r=lift, max_step=0.1)
    says(error, "ZeroDivisionError", "no lift")
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert error.solution.status is Outcome.INTERRUPTED
    assert 0.3 < error.solution.t[-1] <= 0.5


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_keeps_the_results() -> None:
    pendulum = solver()  # compiled before the clock runs
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        pendulum.integrate((0.0, 1000.0), Q, U, method="rk4", step=1e-7, t_eval=[0.0], dense_output=False)
    timer.join()
    assert isinstance(caught.value, IntegrationInterrupted)
    solution: Solution = caught.value.solution
    assert 0.0 < solution.last[0] < 1000.0
    assert solution.status is Outcome.INTERRUPTED
    assert pickle.loads(pickle.dumps(caught.value)).solution.last[0] == solution.last[0]


def test_repartitions_are_counted() -> None:
    q0, u0 = start(x=0.0, speed=0.0, slope=2000.0)
    solution = solver({**PARAMETERS, "slope": 2000.0}).integrate((0.0, 0.1), q0, u0)
    assert solution.statistics.repartitions == solution.statistics.evaluations > 0


def test_a_solution_pickles() -> None:
    solution = solver().integrate((0.0, 1.0), Q, U)
    copy = pickle.loads(pickle.dumps(solution))
    np.testing.assert_array_equal(copy(0.3)[0], solution(0.3)[0])
    assert copy.statistics == solution.statistics
    assert copy.status is Outcome.FINISHED


def test_progress_goes_to_a_function() -> None:
    seen: list[float] = []
    options = {"method": "rk4", "step": 1e-6, "dense_output": False, "t_eval": [1.0]}
    solver().integrate((0.0, 1.0), Q, U, progress=seen.append, **options)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_the_bar_appears_when_it_takes_long() -> None:
    now = [0.0]
    screen = Console(file=StringIO(), force_terminal=True)
    with ProgressBar("track", 0.0, 2.0, clock=lambda: now[0], console=screen) as bar:
        bar(0.5)
        assert screen.file.getvalue() == ""
        now[0] = 1.0
        bar(1.0)
    assert "track" in screen.file.getvalue()
    assert "t = 1 s" in screen.file.getvalue()


def test_no_bar_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with ProgressBar("track", 0.0, 2.0, clock=lambda: now[0]) as bar:
        now[0] = 1.0
        bar(1.0)
    assert solver().integrate((0.0, 1.0), Q, U, progress=np.True_).success
    assert capsys.readouterr() == ("", "")


def test_events_that_are_not_the_models_are_refused() -> None:
    assert solver().integrate((0.0, 0.1), Q, U, events=()).success
    with raises(SolveError, "events", "Model(events=...)"):
        solver().integrate((0.0, 0.1), Q, U, events=[lambda t, q, u: q[0]])
