"""What the compiled functions accept, and how they refuse everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from handmade import pendulum_function, pendulum_module, pendulum_rhs

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
    ("arguments", "message"),
    [
        (("0", Q, U), r"t is '0', expected a real number"),
        ((1j, Q, U), r"t is 1j, expected a real number"),
        ((None, Q, U), r"t is None, expected a real number"),
        ((np.nan, Q, U), r"t is nan; expected a finite time"),
        ((0.0, np.zeros(3), U), r"q has shape \(3,\), expected \(1,\): theta"),
        ((0.0, 0.3, U), r"q has shape \(\), expected \(1,\): theta"),
        ((0.0, Q, np.zeros((1, 1))), r"u has shape \(1, 1\), expected \(1,\): omega"),
        ((0.0, Q + 0j, U), r"q holds complex128"),
        ((0.0, ["a"], U), r"q holds str"),
        ((0.0, [None], U), r"q holds object"),
        ((0.0, [True], U), r"q holds bool"),
        ((0.0, [[1.0], [1.0, 2.0]], U), r"q cannot be read as an array"),
        ((0.0, [np.nan], U), r"theta \(q\[0\]\) is nan"),
        ((0.0, Q, np.array([-np.inf])), r"omega \(u\[0\]\) is -inf"),
        ((0.0, Q, U, [np.inf]), r"torque \(r\[0\]\) is inf"),
        ((0.0, Q, U, []), r"r has shape \(0,\), expected \(1,\): torque"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(SolveError, match=message):
        pendulum_function().pair(*arguments)
    with pytest.raises(SolveError, match=message):
        pendulum_function("kinetic_energy").value(*arguments)


@pytest.mark.parametrize(
    ("t", "y", "message"),
    [
        (0.0, [1.0], r"y has shape \(1,\), expected \(2,\): theta, omega"),
        (0.0, np.array([0.0, np.nan]), r"omega \(u\[0\]\) is nan"),
        (np.inf, np.zeros(2), r"t is inf"),
    ],
)
def test_ode_names_wrong_arguments(t: float, y: Any, message: str) -> None:
    with pytest.raises(SolveError, match=message):
        pendulum_function().ode(t, y)


@pytest.mark.parametrize("inputs", [None, [np.nan]])
def test_an_input_without_default_must_be_passed(inputs: object) -> None:
    function = pendulum_function(inputs=inputs)
    message = r"rhs needs values of the inputs without a default: torque; pass r="
    for call in (lambda: function.pair(0.0, Q, U), lambda: function.ode(0.0, [0.3, 0.1]), function.low_level):
        with pytest.raises(SolveError, match=message):
            call()
    np.testing.assert_allclose(np.concatenate(function.pair(0.0, Q, U, R)), pendulum_rhs(0.3, 0.1, 0.25))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros(2), r"out is a ndarray; expected a tuple of two arrays"),
        ((np.zeros(1),), r"out is a tuple; expected a tuple of two arrays"),
        (([0.0], np.zeros(1)), r"out\[0\] \(qdot\) is a list"),
        ((np.zeros(2), np.zeros(1)), r"out\[0\] \(qdot\) has shape \(2,\).* of shape \(1,\)"),
        ((np.zeros(1), np.zeros(1, np.float32)), r"out\[1\] \(udot\) holds float32"),
        ((np.zeros(1), np.zeros(1, ">f8")), r"out\[1\] \(udot\) holds >f8"),
        ((np.zeros(1), read_only(np.zeros(1))), r"out\[1\] \(udot\) is read-only"),
        ((np.zeros(1), Q), r"out\[1\] \(udot\) shares memory with q"),
        ((U, np.zeros(1)), r"out\[0\] \(qdot\) shares memory with u"),
        ((np.zeros(1), R), r"out\[1\] \(udot\) shares memory with r"),
        ((np.zeros(1),) * 2, r"out\[0\] \(qdot\) shares memory with out\[1\]"),
    ],
)
def test_outputs_of_a_pair_are_checked(out: Any, message: str) -> None:
    before = Q.copy(), U.copy(), R.copy()
    with pytest.raises(SolveError, match=message):
        pendulum_function().pair(0.0, Q, U, R, out=out)
    assert before == (Q, U, R)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((3, 2)), r"out has shape \(3, 2\).* of shape \(2, 3\)"),
        (np.zeros((2, 3), order="F"), r"out is not C-contiguous"),
        (np.zeros((2, 6))[:, ::2], r"out is not C-contiguous"),
        (np.ma.zeros((2, 3)), r"out is a MaskedArray"),
        (read_only(np.zeros((2, 3))), r"out is read-only"),
    ],
)
def test_outputs_of_a_matrix_are_checked(out: Any, message: str) -> None:
    with pytest.raises(SolveError, match=message):
        pendulum_function("wide").value(0.0, Q, U, out=out)


def test_output_that_surrounds_an_input_overlaps() -> None:
    memory = np.zeros(8)
    with pytest.raises(SolveError, match="out shares memory with u"):
        pendulum_function("wide").value(0.0, Q, memory[3:4], out=memory[:6].reshape(2, 3))
    out = memory[:6].reshape(2, 3)
    assert pendulum_function("wide").value(0.0, memory[6:7], memory[7:8], out=out) is out


def test_scalars_take_no_output() -> None:
    with pytest.raises(SolveError, match="kinetic_energy is a scalar and is returned"):
        pendulum_function("kinetic_energy").value(0.0, Q, U, out=np.zeros(1))


@pytest.mark.parametrize(
    ("parameters", "gains", "message"),
    [
        ([9.81], None, r"parameters has shape \(1,\), expected \(2,\): g, l"),
        ([9.81, np.nan], None, r"l \(parameters\[1\]\) is nan"),
        ([9.81, 0.7], [1.0, 2.0], r"gains has shape \(2,\), expected \(1,\)"),
        ([9.81, 0.7], [np.inf], r"gain 0 \(gains\[0\]\) is inf"),
    ],
)
def test_parameters_are_checked(parameters: Any, gains: Any, message: str) -> None:
    with pytest.raises(SolveError, match=message):
        pendulum_module().Prepared(parameters, gains)


def test_unknown_function_lists_those_there_are() -> None:
    with pytest.raises(SolveError, match=r"pendulum was built without the function 'J'; it has rhs, T, V"):
        pendulum_function("J")
