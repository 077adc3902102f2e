"""Runs of the compiled integrators: results, inputs, and that nothing is lost when a run ends early."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from handmade import pendulum_function, pendulum_module, pendulum_rhs
from messages import raises, says
from scipy import LowLevelCallable
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from kanegen.errors import SolveError

START = ([1.0], [2.0])
TIMES = np.linspace(0.0, 2.0, 41)
TORQUE = np.sin(3.0 * TIMES)[:, None]

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)


@CALLBACK
def compiled_torque(t: float, r: Any, user_data: int | None) -> None:
    r[0] = 3.0 * t


def run(inputs: Any = None, t1: float = 2.0, **options: Any) -> Any:
    module = pendulum_module()
    options = {"rtol": 1e-11, "atol": 1e-12, **options}
    given = module.Inputs.constant([0.0]) if inputs is None else inputs
    return module.integrate(pendulum_function(), given, options.pop("t0", 0.0), t1, *START, **options)


def reference(torque: Any, t1: float = 2.0) -> np.ndarray:
    solution = solve_ivp(
        lambda t, y: pendulum_rhs(y[0], y[1], torque(t)),
        (0.0, t1),
        [1.0, 2.0],
        rtol=1e-11,
        atol=1e-12,
        max_step=0.05,
    )
    return solution.y[:, -1]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "rk4", "step": 5e-4},
        {"method": "kutta_merson", "step": 5e-4},
        {"method": "dopri5"},
        {"method": "dop853"},
    ],
)
def test_methods_agree_with_scipy(options: dict[str, Any]) -> None:
    outcome = run(**options)
    assert outcome.status == pendulum_module().STATUS_FINISHED
    assert outcome.error is None
    assert outcome.t[0] == 0.0
    assert outcome.t[-1] == 2.0
    assert outcome.statistics["steps"] == outcome.t.size - 1
    np.testing.assert_allclose(outcome.y[-1], reference(lambda t: 0.0), rtol=1e-8)
    np.testing.assert_array_equal(outcome.y[0], [1.0, 2.0])


@pytest.mark.parametrize(("t0", "t1"), [(0.0, 2.0), (2.0, 0.0)])
@pytest.mark.parametrize("method", ["rk4", "dopri5", "dop853"])
def test_requested_times_and_dense_output_agree(method: str, t0: float, t1: float) -> None:
    times = np.linspace(t0, t1, 17)
    options = {"method": method, "step": 1e-3, "t0": t0, "t1": t1, "max_step": 0.1}
    requested = run(**options, t_eval=times)
    dense = run(**options, dense=True)
    np.testing.assert_array_equal(requested.t, times)
    np.testing.assert_allclose(pendulum_module().interpolate(*dense.dense, times), requested.y, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(requested.y[-1], dense.y[-1])
    assert requested.dense is None
    assert requested.last[0] == t1


def test_an_empty_run_holds_its_start() -> None:
    outcome = run(t1=0.0)
    assert outcome.status == pendulum_module().STATUS_FINISHED
    np.testing.assert_array_equal(outcome.y, [[1.0, 2.0]])


def test_inputs_of_every_kind() -> None:
    module = pendulum_module()
    spline = CubicSpline(TIMES, TORQUE)
    for inputs, torque in [
        (module.Inputs.constant([2.0]), lambda t: 2.0),
        (module.Inputs.table(TIMES, TORQUE), lambda t: float(np.interp(t, TIMES, TORQUE[:, 0]))),
        (module.Inputs.piecewise(spline.x, spline.c), lambda t: float(spline(t)[0])),
        (module.Inputs.compiled(LowLevelCallable(compiled_torque)), lambda t: 3.0 * t),
        (module.Inputs.python(lambda t: [3.0 * t]), lambda t: 3.0 * t),
    ]:
        np.testing.assert_allclose(run(inputs, max_step=0.05).y[-1], reference(torque), rtol=1e-7)


def test_low_level_functions_take_inputs_in_c_only() -> None:
    module = pendulum_module()
    pendulum_function().low_level(module.Inputs.table(TIMES, TORQUE))
    with raises(SolveError, "inputs", "Python"):
        pendulum_function().low_level(module.Inputs.python(lambda t: [0.0]))


@pytest.mark.parametrize(
    ("make", "arguments", "names"),
    [
        ("constant", ([1.0, 2.0],), ("r", "(2,)", "(1,)", "torque")),
        ("constant", ([np.nan],), ("torque", "r[0]", "nan")),
        ("table", ([0.0], [[1.0]]), ("times", "(1,)", "values", "(1, 1)", "torque")),
        ("table", ([0.0, 1.0], [[1.0], [np.nan]]), ("NaN",)),
        ("table", ([0.0, 0.0], [[1.0], [2.0]]), ("increasing",)),
        ("piecewise", ([0.0, 1.0], [[1.0]]), ("breakpoints", "(2,)", "coefficients", "(1, 1)")),
        ("compiled", (print,), ("LowLevelCallable", "PyCapsule")),
        ("python", ([1.0],), ("r", "list", "call")),
    ],
)
def test_wrong_inputs_are_refused(make: str, arguments: tuple[Any, ...], names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        getattr(pendulum_module().Inputs, make)(*arguments)


def test_a_compiled_input_of_another_signature_is_refused() -> None:
    other = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x)
    with raises(SolveError, "double (double)", "void (double, double *, void"):
        pendulum_module().Inputs.compiled(LowLevelCallable(other))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"method": "euler"}, ("method", "'euler'", "rk4", "kutta_merson", "dopri5", "dop853")),
        ({"method": "rk4"}, ("rk4", "argument")),
        ({"rtol": [1e-3] * 3}, ("rtol", "(3,)", "(2,)")),
        ({"atol": -1.0}, ("atol", "-1.0")),
        ({"t_eval": [0.0, 3.0]}, ("t_eval",)),
        ({"t_eval": [1.0, 0.5]}, ("t_eval", "sorted")),
        ({"t_eval": 1.0}, ("t_eval", "()")),
        ({"t1": np.inf}, ("t1", "inf")),
        ({"t0": -1e308, "t1": 1e308}, ("t0=-1e+308", "t1=1e+308")),
        ({"t1": 10**400}, ("t1",)),
        ({"max_step": -1.0}, ("max_step", "-1.0")),
        ({"first_step": np.nan}, ("first_step", "nan")),
        ({"step": "1"}, ("step", "'1'")),
        ({"max_steps": 10**20}, ("max_steps", 10**20, 2**63 - 1)),
        ({"max_steps": 1.5}, ("max_steps", 1.5)),
        ({"method": None}, ("method", "None", "dopri5")),
        ({"rtol": "1e-3"}, ("rtol", "str")),
        ({"t_eval": [0.0, np.nan]}, ("t_eval",)),
        ({"progress": 1}, ("progress", 1)),
        ({"events": [0]}, ("events[0]", 0)),
        ({"events": 1}, ("events", 1)),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        run(**options)


def test_a_run_beyond_the_table_is_refused() -> None:
    with raises(SolveError, "inputs", "0.0", "2.0", "2.5"):
        run(pendulum_module().Inputs.table(TIMES, TORQUE), t1=2.5)


def test_only_a_right_hand_side_is_integrated() -> None:
    module = pendulum_module()
    with raises(SolveError, "V", "(1,)", "right-hand side"):
        module.integrate(pendulum_function("V"), module.Inputs.constant([0.0]), 0.0, 1.0, *START)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_an_error_in_a_python_input_ends_the_run_and_keeps_the_results(method: str) -> None:
    def torque(t: float) -> list[float]:
        if t > 1.0:
            raise ZeroDivisionError("no torque")
        return [0.0]

    outcome = run(pendulum_module().Inputs.python(torque), method=method, step=0.01, dense=True)
    assert outcome.status == pendulum_module().STATUS_INTERRUPTED
    assert isinstance(outcome.error, ZeroDivisionError)
    assert 0.5 < outcome.t[-1] <= 1.0
    assert outcome.last[0] == outcome.t[-1]
    full = run()
    np.testing.assert_allclose(
        outcome.y[-1], pendulum_module().interpolate(*run(dense=True).dense, outcome.t[-1:])[0], rtol=1e-6
    )
    assert full.t[-1] == 2.0


def test_a_python_input_of_the_wrong_shape_ends_the_run() -> None:
    outcome = run(pendulum_module().Inputs.python(lambda t: [1.0, 2.0]))
    assert isinstance(outcome.error, SolveError)
    says(outcome.error, "r(0.0)", "(2,)", "(1,)", "torque")
    np.testing.assert_array_equal(outcome.y, [[1.0, 2.0]])


def test_progress_is_reported_and_may_stop_the_run() -> None:
    seen: list[float] = []

    def progress(t: float) -> None:
        seen.append(t)
        if len(seen) == 3:
            raise RuntimeError("enough")

    outcome = run(method="rk4", step=1e-7, t1=100.0, progress=progress, t_eval=[0.0, 99.0])
    assert str(outcome.error) == "enough"
    assert seen == sorted(seen)
    assert outcome.last[0] == seen[-1]
    np.testing.assert_array_equal(outcome.t, [0.0])


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_run_and_keeps_the_results() -> None:
    pendulum_module()  # compiled before the clock runs
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = run(method="rk4", step=1e-7, t1=100.0, t_eval=[0.0, 99.0])
    timer.join()
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert outcome.status == pendulum_module().STATUS_INTERRUPTED
    assert 0.0 < outcome.last[0] < 100.0


def test_failures_of_the_right_hand_side_are_reported() -> None:
    module = pendulum_module()
    outcome = module.integrate(pendulum_function("singular"), module.Inputs.constant([0.0]), 0.0, 1.0, *START)
    assert outcome.status == module.STATUS_RHS_FAILED
    assert outcome.rhs_status == module.STATUS_SINGULAR
    assert "singular" in outcome.message
    np.testing.assert_array_equal(outcome.y, [[1.0, 2.0]])
    moved = module.integrate(pendulum_function("moved"), module.Inputs.constant([0.0]), 0.0, 1.0, *START)
    assert moved.statistics["repartitions"] == moved.statistics["evaluations"] > 0


def test_too_many_steps_keep_the_results() -> None:
    outcome = run(max_steps=5)
    assert "max_steps" in outcome.message
    assert outcome.t.size == 6


def test_threads_run_at_the_same_time() -> None:
    results: dict[int, np.ndarray] = {}

    def integrate(k: int) -> None:
        inputs = pendulum_module().Inputs.constant([float(k)])
        results[k] = run(inputs, method="rk4", step=1e-5).y[-1]

    threads = [threading.Thread(target=integrate, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, value in results.items():
        np.testing.assert_allclose(value, reference(lambda t, k=k: float(k)), rtol=1e-8)
    assert all(not np.array_equal(results[a], results[b]) for a, b in itertools.combinations(results, 2))
