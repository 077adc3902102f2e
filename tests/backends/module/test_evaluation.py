"""Values of the compiled functions, and that calls do not disturb each other."""

from __future__ import annotations

import sys
import threading
import timeit
from types import BuiltinMethodType

import numpy as np
import pytest
from handmade import pendulum_function, pendulum_module, pendulum_rhs
from messages import raises
from scipy import LowLevelCallable
from scipy.integrate import solve_ivp
from scipy_calls import SIGNATURE, call_rates

from kanegen.errors import SolveError

Q, U = np.array([0.3]), np.array([0.1])


def test_the_module_describes_the_model() -> None:
    module = pendulum_module()
    assert (module.NAME, module.COORDINATES, module.SPEEDS) == ("pendulum", ("theta",), ("omega",))
    assert (module.INPUTS, module.PARAMETERS, module.N_GAINS) == (("torque",), ("g", "l"), 1)
    assert len(module.DIGEST) == 64
    assert module.FUNCTIONS["T"] == (1, 1)
    assert module.FUNCTIONS["V"] == (1,)
    assert module.FUNCTIONS["kinetic_energy"] == ()


def test_values_and_shapes() -> None:
    function = pendulum_function(gain=2.0)
    expected = pendulum_rhs(0.3, 0.1, gain=2.0)
    qdot, udot = function.pair(0.0, Q, U)
    np.testing.assert_allclose([qdot[0], udot[0]], expected, rtol=1e-14)
    np.testing.assert_allclose(function.ode(0.0, np.array([0.3, 0.1])), expected, rtol=1e-14)
    assert pendulum_function("T").value(0.0, Q, U) == pytest.approx(np.array([[0.49]]))
    wide = pendulum_function("wide", [0.5], gain=2.0).value(7.0, Q, U)
    np.testing.assert_array_equal(wide, [[7.0, 0.3, 0.1], [0.5, 9.81, 2.0]])
    energy = pendulum_function("kinetic_energy").value(0.0, Q, U)
    assert type(energy) is float
    assert energy == pytest.approx(0.5 * 0.49 * 0.01, rel=1e-14)


def test_results_are_never_overwritten_by_a_later_call() -> None:
    function, matrix = pendulum_function(), pendulum_function("wide")
    results = [np.concatenate([*function.pair(0.0, [x], U)]) for x in (0.1, 0.2)]
    odes = [function.ode(0.0, [x, 0.1]) for x in (0.1, 0.2)]
    matrices = [matrix.value(0.0, [x], U) for x in (0.1, 0.2)]
    np.testing.assert_array_equal(results, odes)
    assert odes[0][1] != odes[1][1]
    assert not np.shares_memory(*odes)
    assert not np.shares_memory(*matrices)


def test_out_is_filled_and_returned() -> None:
    out = (np.empty(1), np.empty(1))
    assert pendulum_function().pair(0.0, Q, U, out=out) is out
    np.testing.assert_allclose(np.concatenate(out), pendulum_rhs(0.3, 0.1), rtol=1e-14)
    qdot, udot = pendulum_function().pair(0.0, Q, U, out=list(out))
    assert qdot is out[0]
    assert udot is out[1]


def test_parameters_are_copies() -> None:
    values = np.array([9.81, 0.7])
    prepared = pendulum_module().Prepared(values)
    values[:] = np.nan
    np.testing.assert_array_equal(prepared.parameters, [9.81, 0.7])
    np.testing.assert_array_equal(prepared.gains, [0.0])
    with raises(ValueError, "read-only"):
        prepared.parameters[0] = 1.0
    defaults = np.array([0.5])
    function = pendulum_module().Function("wide", prepared, defaults)
    defaults[0] = 9.0
    assert function.value(0.0, Q, U)[1, 0] == 0.5


def test_singular_matrices_and_changes_of_partition_are_reported() -> None:
    with raises(SolveError, "singular", "t=0.5", "theta=0.3", "omega="):
        pendulum_function("singular").pair(0.5, Q, U)
    moved = pendulum_function("moved")
    moved.pair(0.0, Q, U)
    moved.ode(0.0, [0.3, 0.1])
    moved.value(0.0, Q, U)
    assert moved.repartitioned == 3


def test_ode_serves_solve_ivp() -> None:
    solution = solve_ivp(pendulum_function().ode, (0.0, 2.0), [0.3, 0.1], rtol=1e-10, atol=1e-12)
    reference = solve_ivp(lambda t, y: pendulum_rhs(*y), (0.0, 2.0), [0.3, 0.1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(solution.y[:, -1], reference.y[:, -1], rtol=1e-9)


def test_low_level_function_owns_what_it_needs() -> None:
    capsule = pendulum_function(gain=2.0).low_level([0.25])
    assert LowLevelCallable(capsule).signature == SIGNATURE.decode()
    status, dydt = call_rates(capsule, 0.0, [0.3, 0.1])
    assert status == 0
    np.testing.assert_allclose(dydt, pendulum_rhs(0.3, 0.1, 0.25, gain=2.0), rtol=1e-14)


def test_capsules_give_their_memory_back() -> None:
    prepared = pendulum_module().Prepared([9.81, 0.7])
    function = pendulum_module().Function("rhs", prepared, [0.0])
    before = sys.getrefcount(function)
    capsules = [function.low_level() for _ in range(10)]
    assert sys.getrefcount(function) == before + 10
    capsules.clear()
    assert sys.getrefcount(function) == before


def test_two_threads_evaluate_different_functions() -> None:
    functions = [pendulum_function(gain=gain) for gain in (0.0, 5.0)]
    failures: list[float] = []

    def evaluate(k: int) -> None:
        for i in range(20000):
            x = 0.001 * i
            got = functions[k].ode(0.0, np.array([x, 0.1]))[1]
            if abs(got - pendulum_rhs(x, 0.1, gain=5.0 * k)[1]) > 1e-9:
                failures.append(got)

    threads = [threading.Thread(target=evaluate, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_calls_are_builtin_methods_whose_overhead_is_printed() -> None:
    rhs = pendulum_function().pair
    # A builtin method enters C directly; a Python function or a bound cyfunction costs twice as much.
    assert isinstance(rhs, BuiltinMethodType)
    names = {"rhs": rhs, "q": Q, "u": U, "a": np.empty(1), "b": np.empty(1)}
    number = 20_000
    for statement in ("rhs(0.0, q, u, out=(a, b))", "rhs(0.0, q, u)"):
        seconds = min(timeit.repeat(statement, globals=names, number=number, repeat=5)) / number
        print(f"{statement}: {seconds * 1e9:.0f} ns")
