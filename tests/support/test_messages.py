"""The pins of messages: they fail where a name or a number is missing, and only there."""

from __future__ import annotations

import warnings

import pytest
from messages import raises, says, warns

TEXT = "max_step is -0.25; expected a positive number (did you mean kg.Servo(y=...)?), since x1' = 10.5 s at q[2]"


@pytest.mark.parametrize("name", ["max_step", "-0.25", "kg.Servo", "y=", "x1'", "10.5", "q[2]", "positive"])
def test_names_and_numbers_that_are_there(name: str) -> None:
    says(TEXT, name)


@pytest.mark.parametrize("name", ["step", "x", "x1''", "0.2", "10", "5", "Servos", "q[1]", "negative"])
def test_parts_of_names_and_of_numbers_are_not_enough(name: str) -> None:
    with pytest.raises(AssertionError) as caught:
        says(TEXT, name)
    assert repr(name) in str(caught.value)


def test_every_name_is_needed() -> None:
    with pytest.raises(AssertionError), raises(ValueError, "m", "l"):
        raise ValueError("m is missing")
    with raises(ValueError, "m", "missing") as caught:
        raise ValueError("m is missing")
    assert isinstance(caught.value, ValueError)


def test_an_error_of_another_type_is_not_caught() -> None:
    with pytest.raises(KeyError), raises(ValueError, "m"):
        raise KeyError("m")


def test_warnings() -> None:
    with warns(UserWarning, "theta"):
        warnings.warn("theta was ignored", UserWarning, stacklevel=1)
    with pytest.raises(AssertionError), warns(UserWarning, "omega"):
        warnings.warn("theta was ignored", UserWarning, stacklevel=1)
