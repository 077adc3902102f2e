"""What the compiled functions accept, and how they refuse everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from handmade import pendulum_function, pendulum_module, pendulum_rhs
from messages import raises

from kanegen.errors import SolveError

Q, U, R = np.array([0.3]), np.array([0.1]), np.array([0.25])


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        lambda x: x.astype(np.float32),
        lambda x: x.astype(np.longdouble),
        lambda x: x.astype(">f8"),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: np.asfortranarray(x),
        lambda x: read_only(x.copy()),
    ],
)
def test_any_array_of_real_numbers_is_converted(convert: Callable[[np.ndarray], Any]) -> None:
    q, u, r = np.array([0.5]), np.array([0.25]), np.array([2.0])
    expected = pendulum_rhs(0.5, 0.25, 2.0)
    qdot, udot = pendulum_function().pair(0, convert(q), convert(u), convert(r))
    np.testing.assert_allclose([qdot[0], udot[0]], expected, rtol=1e-14)
    np.testing.assert_allclose(
        pendulum_function().ode(0, convert(np.array([0.5, 0.25])), convert(r)), expected, rtol=1e-14
    )


@pytest.mark.parametrize("t", [2, np.float32(2.0), np.int64(2), np.array(2.0), True + 1])
def test_time_may_be_any_real_number(t: object) -> None:
    assert pendulum_function("wide").value(t, Q, U)[0, 0] == 2.0


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("0", Q, U), ("t", "'0'", "real number")),
        ((1j, Q, U), ("t", "1j", "real number")),
        ((None, Q, U), ("t", "None", "real number")),
        ((np.nan, Q, U), ("t", "nan", "finite")),
        ((0.0, np.zeros(3), U), ("q", "(3,)", "(1,)", "theta")),
        ((0.0, 0.3, U), ("q", "()", "(1,)", "theta")),
        ((0.0, Q, np.zeros((1, 1, 1))), ("u", "(1, 1, 1)", "(1,)", "omega")),
        ((0.0, np.zeros((3, 1)), np.zeros((2, 1))), ("q has 3", "u has 2")),
        ((0.0, Q, np.array([[1.0], [np.inf]])), ("row 1", "omega", "u[0]", "inf")),
        ((0.0, Q + 0j, U), ("q", "complex128")),
        ((0.0, ["a"], U), ("q", "str32", "float64")),
        ((0.0, [None], U), ("q", "object")),
        ((0.0, [True], U), ("q", "bool")),
        ((0.0, [[1.0], [1.0, 2.0]], U), ("q", "array")),
        ((0.0, [np.nan], U), ("theta", "q[0]", "nan")),
        ((0.0, Q, np.array([-np.inf])), ("omega", "u[0]", "-inf")),
        ((0.0, Q, U, [np.inf]), ("torque", "r[0]", "inf")),
        ((0.0, Q, U, []), ("r", "(0,)", "(1,)", "torque")),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[Any, ...], names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        pendulum_function().pair(*arguments)
    with raises(SolveError, *names):
        pendulum_function("kinetic_energy").value(*arguments)


@pytest.mark.parametrize(
    ("t", "y", "names"),
    [
        (0.0, [1.0], ("y", "(1,)", "(2,)", "theta", "omega")),
        (0.0, np.array([0.0, np.nan]), ("omega", "u[0]", "nan")),
        (np.inf, np.zeros(2), ("t", "inf")),
    ],
)
def test_ode_names_wrong_arguments(t: float, y: Any, names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        pendulum_function().ode(t, y)


@pytest.mark.parametrize("inputs", [None, [np.nan]])
def test_an_input_without_default_must_be_passed(inputs: object) -> None:
    function = pendulum_function(inputs=inputs)
    names = ("rhs", "torque", "r=")
    for call in (lambda: function.pair(0.0, Q, U), lambda: function.ode(0.0, [0.3, 0.1]), function.low_level):
        with raises(SolveError, *names):
            call()
    np.testing.assert_allclose(np.concatenate(function.pair(0.0, Q, U, R)), pendulum_rhs(0.3, 0.1, 0.25))


@pytest.mark.parametrize(
    ("out", "names"),
    [
        (np.zeros(2), ("out", "ndarray", "tuple")),
        ((np.zeros(1),), ("out", "tuple", "two")),
        (([0.0], np.zeros(1)), ("out[0]", "qdot", "list")),
        ((np.zeros(2), np.zeros(1)), ("out[0]", "qdot", "(2,)", "(1,)")),
        ((np.zeros(1), np.zeros(1, np.float32)), ("out[1]", "udot", "float32")),
        ((np.zeros(1), np.zeros(1, ">f8")), ("out[1]", "udot", ">f8")),
        ((np.zeros(1), read_only(np.zeros(1))), ("out[1]", "udot", "read-only")),
        ((np.zeros(1), Q), ("out[1]", "udot", "q")),
        ((U, np.zeros(1)), ("out[0]", "qdot", "u")),
        ((np.zeros(1), R), ("out[1]", "udot", "r")),
        ((np.zeros(1),) * 2, ("out[0]", "qdot", "out[1]")),
    ],
)
def test_outputs_of_a_pair_are_checked(out: Any, names: tuple[str, ...]) -> None:
    before = Q.copy(), U.copy(), R.copy()
    with raises(SolveError, *names):
        pendulum_function().pair(0.0, Q, U, R, out=out)
    assert before == (Q, U, R)


@pytest.mark.parametrize(
    ("out", "names"),
    [
        (np.zeros((3, 2)), ("out", "(3, 2)", "(2, 3)")),
        (np.zeros((2, 3), order="F"), ("out", "C-contiguous")),
        (np.zeros((2, 6))[:, ::2], ("out", "C-contiguous")),
        (np.ma.zeros((2, 3)), ("out", "MaskedArray")),
        (read_only(np.zeros((2, 3))), ("out", "read-only")),
    ],
)
def test_outputs_of_a_matrix_are_checked(out: Any, names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        pendulum_function("wide").value(0.0, Q, U, out=out)


def test_output_that_surrounds_an_input_overlaps() -> None:
    memory = np.zeros(8)
    with raises(SolveError, "out", "u"):
        pendulum_function("wide").value(0.0, Q, memory[3:4], out=memory[:6].reshape(2, 3))
    out = memory[:6].reshape(2, 3)
    assert pendulum_function("wide").value(0.0, memory[6:7], memory[7:8], out=out) is out


def test_scalars_take_no_output() -> None:
    with raises(SolveError, "kinetic_energy", "scalar"):
        pendulum_function("kinetic_energy").value(0.0, Q, U, out=np.zeros(1))


@pytest.mark.parametrize(
    ("parameters", "gains", "names"),
    [
        ([9.81], None, ("parameters", "(1,)", "(2,)", "g", "l")),
        ([9.81, np.nan], None, ("l", "parameters[1]", "nan")),
        ([9.81, 0.7], [1.0, 2.0], ("gains", "(2,)", "(1,)")),
        ([9.81, 0.7], [np.inf], ("gains[0]", "inf")),
    ],
)
def test_parameters_are_checked(parameters: Any, gains: Any, names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        pendulum_module().Prepared(parameters, gains)


def test_unknown_function_lists_those_there_are() -> None:
    with raises(SolveError, "pendulum", "'J'", "rhs", "T", "V"):
        pendulum_function("J")
