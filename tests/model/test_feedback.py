"""Feedback laws of inputs: what a description accepts, and messages in the names of the user."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from feedback_models import F, G, a, c, k, most, particle, v, w, x, y
from messages import raises

import kanegen as kg

F1, F2 = me.dynamicsymbols("F1 F2")
width = sm.Symbol("width")
t = me.dynamicsymbols._t


def model(*inputs: Any, load: Any = F, **options: Any) -> kg.Model:
    """A particle in the plane that the inputs push along x."""
    return particle((load, 0), inputs=inputs, **options)


def test_law_can_read_the_motion_states_inputs_time_and_parameters() -> None:
    law = -k * x - c * x.diff() + G * sm.sin(t) * w + a
    item = model(kg.Input(F, law=law, saturation=(-most, most), dead_band=width), G, states={a: -a + w}).inputs[0]
    assert item.law == law
    assert set(item.limits.values()) == {-most, most, width}


def test_number_limits_both_directions() -> None:
    assert kg.Input(F, law=x, saturation=3).saturation == (-3, 3)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"law": x, "default": 1.0}, ("F", "law=", "default=")),
        ({"saturation": 1, "delay": 0.1}, ("F", "saturation", "delay", "law=")),
        ({"law": x, "delay": 0.1}, ("F", "delay", 0.1, "sample_time=")),
        ({"law": x, "sample_time": 0}, ("F", "sample_time", "positive")),
        ({"law": x, "sample_time": "often"}, ("F", "sample_time", "often")),
        ({"law": x, "sample_time": 0.1, "delay": -1}, ("F", "delay", -1.0)),
        ({"law": x, "saturation": (1, 2, 3)}, ("F", "saturation", 3, "(lowest, highest)")),
        ({"law": "push"}, ("F", "law", "push")),
        ({"law": sm.Matrix([x, v])}, ("F", "law", "scalar")),
    ],
)
def test_contradicting_options_are_refused(options: dict[str, Any], names: tuple[Any, ...]) -> None:
    with raises(kg.ModelError, *names):
        kg.Input(F, **options)


@pytest.mark.parametrize(
    ("law", "names"),
    [
        (v.diff(), ("F", "v'")),
        (x.diff().diff(), ("F", "x''")),
        (F + x, ("F", "itself")),
        (G, ("F", "G", "law")),
        (F2, ("F2", "law of input F")),
    ],
)
def test_law_that_cannot_be_evaluated_before_the_accelerations_is_refused(law: Any, names: tuple[Any, ...]) -> None:
    with raises(kg.ModelError, *names):
        model(kg.Input(F, law=law), kg.Input(G, law=x), load=F + G)


def test_limits_that_contradict_each_other_are_refused() -> None:
    with raises(kg.ModelError, "saturation of input F", "(3, 1)"):
        model(kg.Input(F, law=x, saturation=(3, 1)))
    with raises(kg.ModelError, "dead band of input F", -1):
        model(kg.Input(F, law=x, dead_band=width), parameters={width: -1})
    with raises(kg.ModelError, "highest value of input F", "v"):
        model(kg.Input(F, law=x, saturation=(None, v)))
    with raises(kg.ModelError, "highest value of input F", "time"):
        model(kg.Input(F, law=x, saturation=(None, t)))


def test_input_with_a_law_that_does_not_act_is_refused() -> None:
    with raises(kg.ModelError, "G", "does not occur"):
        model(kg.Input(F, law=x), kg.Input(G, law=v))


def test_laws_and_controls_are_different_inputs() -> None:
    servo = {"control": kg.Servo([x - 1], [(-2, -1)], [G])}
    with raises(kg.ModelError, "F", "kg.Servo", "law="):
        model(kg.Input(F, law=x), control=kg.Servo([x - 1], [(-2, -1)]))
    with raises(kg.ModelError, "law of input F", "control G"):
        model(kg.Input(F, law=G + x), G, load=F + G, **servo)
    with raises(kg.ModelError, "F", "kg.ControlConstraints"):
        model(kg.Input(F, law=x), G, load=F + G, control=kg.ControlConstraints([x - G], [G]))
    assert model(kg.Input(F, law=-v), G, load=F + G, **servo).servo is not None


def test_rate_of_a_law_is_its_derivative_where_that_contains_no_acceleration() -> None:
    rows = {"nonholonomic_constraints": [w - F * v], "load": -x}
    inputs = model(kg.Input(F, law=sm.sin(x) * t, rate=F1), **rows).inputs
    assert inputs[1].symbol == F1
    assert sm.simplify(inputs[1].law - (sm.cos(x) * x.diff() * t + sm.sin(x))) == 0
    with raises(kg.ModelError, "F", "rate="):
        model(kg.Input(F, law=x), **rows)
    with raises(kg.ModelError, "law of input F1", "v'"):
        model(kg.Input(F, law=v, rate=F1), **rows)
    with raises(kg.ModelError, "F", "F1", "highest value"):
        model(kg.Input(F, law=x, rate=F1, saturation=2), **rows)
    with raises(kg.ModelError, "rate of input F", 3):
        model(kg.Input(F, law=x, rate=3), **rows)
    with raises(kg.ModelError, "F1", "law="):
        model(kg.Input(F, law=x, rate=F1), kg.Input(F1, law=v), **rows)
    with raises(kg.ModelError, "law of input F2", "x''"):
        model(kg.Input(F, law=x, rate=F1, acceleration=F2), holonomic_constraints=[y - F * x], load=-x)


def test_momentum_forms_have_no_speeds_for_laws() -> None:
    with raises(kg.BuildError, "hamilton", "laws"):
        kg.build(model(kg.Input(F, law=-x - v)), form="hamilton")
