"""Descriptions of states that are refused, each with the symbols that the user has to look at."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from state_models import cart, pendulum, worn_block

import kanegen as kg

x, v, a, z, f, other = me.dynamicsymbols("x v a z f other")
c = sm.Symbol("c")

REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("no mapping", {"states": [a]}, ("states", "mapping")),
    ("a constant as a state", {"states": {c: 1}}, ("states", "c", "dynamicsymbols")),
    ("a state without a rate", {"states": {a: None, z: 1}}, ("states[a]", "None")),
    ("two rates", {"states": {a: 1, a.diff(): 2, z: 1}}, ("states", "a", "two")),
    ("a coordinate", {"states": {x: 1, a: 1, z: 1}}, ("x", "coordinates", "states")),
    ("an input", {"states": {f: 1, a: 1, z: 1}}, ("f", "inputs", "states")),
    ("a symbol that is no state", {"states": {z: 1}}, ("a", "states")),
    ("an unknown symbol in a rate", {"states": {a: other, z: 1}}, ("other", "the rate of state a")),
    ("a rate with the rate of a state", {"states": {a: 1, z: a.diff()}}, ("the rate of state z", "a'")),
    ("a state in kinematics", {"kinematics": [x.diff() - v - a]}, ("kinematics[0]", "a")),
    ("a state in a constraint", {"holonomic_constraints": [x - a]}, ("holonomic_constraints[0]", "a")),
    ("a state in a velocity constraint", {"nonholonomic_constraints": [v - a]}, ("nonholonomic_constraints[0]", "a")),
    ("a state in an acceleration constraint", {"acceleration_constraints": [v.diff() - a]}, ("a", "u'")),
    ("a state in a gap", {"contacts": [kg.Unilateral(x - a)]}, ("gap", "a")),
    (
        "a state in a servo-constraint",
        {"control": kg.Servo([x - a], [(-2, -1)])},
        ("servo constraints[0]", "a"),
    ),
    (
        "control constraints",
        {"control": kg.ControlConstraints([x - 1])},
        ("ControlConstraints", "a, z", "kg.Servo"),
    ),
    ("a state in a load's s'", {"outputs": {}, "events": [kg.Event("e", a.diff())]}, ("the guard of event 'e'", "a'")),
]


@pytest.mark.parametrize(("options", "names"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_refused(options: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        cart(**options)


def test_a_state_in_a_mass_is_refused() -> None:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    with raises(kg.ModelError, "mass", "P", "a"):
        cart(frame=N, bodies=[me.Particle("P", P, a)], loads=[])


def test_multipliers_belong_into_rates() -> None:
    h = me.dynamicsymbols("h")
    assert len(worn_block().states) == 2
    with raises(kg.ModelError, "Multiplier", "floor", "2"):
        worn_block(states={h: kg.Multiplier("floor", 2)})


def test_models_name_their_states() -> None:
    assert list(map(str, pendulum().states)) == ["a(t)"]
    assert "1 states" in repr(pendulum())
    assert kg.build(pendulum()).description.states == ("a",)
    assert "1 states" in repr(kg.build(pendulum()))


@pytest.mark.parametrize(
    ("symbol", "names"),
    [
        (v, ("v", "speed", "impulse=", "impulses=")),
        (x, ("x", "coordinate")),
        (sm.Symbol("m"), ("m", "parameter", "rate 0", "states=")),
        (other, ("other", "no state", "a, z")),
    ],
)
def test_what_cannot_be_reset_says_what_can_be_done(symbol: Any, names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, "event 'e'", *names):
        cart(events=[kg.Event("e", x, reset={symbol: 0})])
