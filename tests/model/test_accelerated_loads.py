"""Loads that depend on accelerations: which a model accepts, and what it says about the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy as sm
from accelerated_models import TIME, Line, line
from messages import raises

import kanegen as kg


def force(term: Callable[[Line], Any]) -> Callable[[Line], Any]:
    return lambda of: [(of.points[0], -of.b * term(of) * of.N.x)]


@pytest.mark.parametrize(
    ("term", "names"),
    [
        (lambda of: of.u[0].diff(TIME) ** 2, ["u1'"]),
        (lambda of: sm.sin(of.u[0].diff(TIME)), ["u1'"]),
        (lambda of: of.u[0].diff(TIME) * of.u[1].diff(TIME), ["u1'", "u2'"]),
        (lambda of: sm.Abs(of.x[1].diff(TIME, 2)), ["x2''"]),
        (lambda of: sm.Max(of.u[1].diff(TIME), 0), ["u2'"]),
        (lambda of: sm.Piecewise((of.u[1].diff(TIME), of.u[1].diff(TIME) > 0), (0, True)), ["u2'"]),
        (lambda of: kg.Function("f", 1, python=lambda x: x, c="f")(of.u[0].diff(TIME)), ["u1'"]),
    ],
)
def test_a_load_that_is_not_affine_is_refused_by_name(term: Callable[[Line], Any], names: list[str]) -> None:
    with raises(kg.ModelError, "load", "P1", *names):
        line(2, force(term))


@pytest.mark.parametrize(
    "term",
    [
        lambda of: of.u[0] * sm.sin(of.x[1]) * of.x[0].diff(TIME, 2) + of.u[1].diff(TIME) / of.m[0],
        lambda of: sm.Piecewise((of.u[1].diff(TIME), of.x[0] > 0), (2 * of.u[0].diff(TIME), True)),
        lambda of: (1 + of.u[0].diff(TIME)) ** 2 - of.u[0].diff(TIME) ** 2,
    ],
)
def test_loads_that_are_affine_are_legal(term: Callable[[Line], Any]) -> None:
    assert line(2, force(term)).accelerated_loads == ("P1",)


def test_models_without_such_loads_are_not_accelerated() -> None:
    assert not line(2, force(lambda of: of.x[0].diff(TIME))).is_accelerated


@pytest.mark.parametrize("name", ["impulses", "reactions"])
def test_impulses_and_directions_of_constraint_forces_contain_no_accelerations(name: str) -> None:
    vector = lambda of: of.u[0].diff(TIME) * of.N.x  # noqa: E731
    given = {
        "impulses": lambda of: {"kick": [(of.points[0], vector(of))]},
        "reactions": lambda of: {
            "kick": kg.Reaction(("body0",), of.points[0], of.N, multipliers={0: [(of.points[0], vector(of))]})
        },
    }
    with raises(kg.ModelError, "kick", "P1", "u1'"):
        line(2, force(lambda of: of.x[0]), holonomic_constraints=lambda of: [of.x[0] - of.x[1]], **{name: given[name]})
