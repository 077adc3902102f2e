"""Servo-constraints that cannot be honored: each says what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, says_one

import kanegen as kg
from kanegen.derivation.control.servo import servo_equations

x, y, v, w = me.dynamicsymbols("x y v w")
F, G, H, target = me.dynamicsymbols("F G H target")
m, a, b, c = sm.symbols("m a b c")
N, O = me.ReferenceFrame("N"), me.Point("O")
O.set_vel(N, 0)
P = O.locatenew("P", x * N.x + y * N.y)


def model(servo: Any, force: Any = F * N.x + G * N.y, inputs: Any = (F, G), **options: Any) -> kg.Model:
    """A particle in the plane under two forces."""
    return kg.Model(
        name="particle",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(x.diff() - v, y.diff() - w),
        bodies=(me.Particle("P", P, m),),
        loads=((P, force),),
        inputs=inputs,
        control=servo,
        **options,
    )


def build(servo: Any, **options: Any) -> None:
    """The model, and what a build derives from its servo-constraints."""
    kg.derive(model(servo, **options)).once(servo_equations)


STABLE = (-2, -1)


def test_all_problems_of_the_record_at_once() -> None:
    with pytest.raises(kg.ModelError) as caught:
        kg.Servo(
            (x, "y"), theta=(STABLE, STABLE, -1), resolution="ideal", weight=(1, 2), damping=0.1, limits=(3, (2, 1))
        )
    problems = caught.value.problems
    assert len(problems) == 5
    says_one(problems, "constraints[1]", "'y'", "SymPy")
    says_one(problems, "theta", "3", "2")
    says_one(problems, "'ideal'", "weight")
    says_one(problems, "damping", "ideal")
    says_one(problems, "limits[1]", "(2, 1)", "(lowest, highest)")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"constraints": ()}, ("constraints", "empty")),
        ({"theta": None}, ("theta",)),
        ({"theta": ((-1, -2, -3),)}, ("theta[0]", "(-1, -2, -3)")),
        ({"resolution": "pinv"}, ("resolution", "'pinv'", "moore_penrose", "ideal", "weighted")),
        ({"resolution": "weighted"}, ("'weighted'", "weight")),
        ({"resolution": "weighted", "weight": (1, -2)}, ("weight", "positive definite")),
        ({"resolution": "weighted", "weight": ((1, 2), (3, 4))}, ("weight", "symmetric")),
        ({"resolution": "weighted", "weight": ((1, 0, 0), (0, 1, 0))}, ("square matrix",)),
        ({"y": "fast"}, ("y", "'fast'")),
        ({"limits": (float("nan"),)}, ("limits[0]", "nan")),
    ],
)
def test_records(arguments: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        kg.Servo(**{"constraints": x, "theta": STABLE, **arguments})


@pytest.mark.parametrize(
    ("servo", "options", "names"),
    [
        (lambda: "track x", {}, ("control", "'track x'", "kg.Servo", "kg.ControlConstraints")),
        (lambda: [v - 1], {}, ("control", "[v(t) - 1]", "kg.Servo", "kg.ControlConstraints")),
        (lambda: kg.Servo(x, STABLE, controls=(H,)), {}, ("controls", "H", "F", "G")),
        (lambda: kg.Servo(x, STABLE, controls=(F, F)), {}, ("controls", "F", "twice")),
        (lambda: kg.Servo(x - F, STABLE), {}, ("constraints[0]", "F")),
        (lambda: kg.Servo(x - target, STABLE), {}, ("target", "constraints[0]")),
        (
            lambda: kg.Servo(x, STABLE, y=(F, 0), resolution="ideal"),
            {},
            ("y", "F", "ideal"),
        ),
        (lambda: kg.Servo(x, STABLE, y=(F.diff(), 0)), {}, ("y", "derivatives", "controls")),
        (lambda: kg.Servo(x, STABLE, y=(1, 2, 3)), {}, ("y", "3", "2", "F", "G")),
        (lambda: kg.Servo(x, STABLE, limits=(1, 2, 3)), {}, ("limits", "3", "2")),
        (
            lambda: kg.Servo(x, STABLE, resolution="weighted", weight=(1, 2, 3)),
            {},
            ("weight", "3", "2"),
        ),
        (lambda: kg.Servo(sm.sin(a), STABLE), {}, ("coordinate", "speed")),
        (lambda: kg.Servo(x * v, STABLE), {}, ("v", "nonholonomic", "Theta")),
        (lambda: kg.Servo(x.diff(), STABLE), {}, ("x'", "nonholonomic")),
        (lambda: kg.Servo(x * y, -1), {}, ("holonomic", "pair")),
        (lambda: kg.Servo((x, y), (STABLE, (-1, 0))), {}, ("theta[1]", "stable", "Theta2", "0")),
        (lambda: kg.Servo(x, (float("nan"), -1)), {}, ("theta[0]", "nan", "finite")),
        (lambda: kg.Servo(x, (-1, sm.I)), {}, ("theta[0]", "I", "real")),
        (lambda: kg.Servo(v, a), {"parameters": {a: 0.5}}, ("theta[0]", "stable", "Theta", "a", "0.5")),
        (lambda: kg.Servo(v, -x), {}, ("theta[0]", "x", "parameters")),
        (lambda: kg.Servo(v, -1 - me.dynamicsymbols._t), {}, ("constant", "time")),
        (lambda: kg.Servo(x, STABLE, damping=-0.1), {}, ("damping", "-0.1")),
        (
            lambda: kg.Servo((x, y, x + y**3), (STABLE,) * 3),
            {},
            ("3", "2", "F", "G", "S tau = z"),
        ),
        (
            lambda: kg.Servo(x, STABLE, controls=(F,)),
            {"inputs": (kg.Input(F, rate=H), G)},
            ("F", "rate"),
        ),
        (
            lambda: kg.Servo(x - target, STABLE, controls=(F, G)),
            {"inputs": (F, G, target)},
            ("target", "rate", "acceleration"),
        ),
    ],
)
def test_models(servo: Callable[[], Any], options: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        model(servo(), **options)


@pytest.mark.parametrize(
    ("servo", "options", "names"),
    [
        (
            lambda: kg.Servo((x, y), (STABLE, STABLE)),
            {"holonomic_constraints": (x**2 + y**2 - c**2,), "parameters": {c: 1.0}},
            ("2", "x(t)", "y(t)", "1"),
        ),
        (
            lambda: kg.Servo(x**2 + y**2 - a, STABLE),
            {"holonomic_constraints": (x**2 + y**2 - c**2,)},
            ("passive", "constraints"),
        ),
        (
            lambda: kg.Servo((x + y, sm.exp(x + y)), (STABLE, STABLE)),
            {},
            ("depend on each other",),
        ),
        (
            lambda: kg.Servo((x, y), (STABLE, STABLE)),
            {"force": (F + G) * N.x},
            ("y(t)", "second", "F", "G"),
        ),
        (
            lambda: kg.Servo((x, x + y), (STABLE, STABLE)),
            {"force": (F + G) * (N.x + N.y)},
            ("F", "G", "S", "S tau = z"),
        ),
        (lambda: kg.Servo(x, STABLE), {"force": (F + G**2) * N.x}, ("G", "nonlinearly")),
        (lambda: kg.Servo(x, STABLE), {"force": sm.Max(F, 0) * N.x + G * N.y}, ("F", "nonlinearly")),
        (lambda: kg.Servo(x, STABLE), {"force": F * N.x + sm.Abs(G) * N.y}, ("G", "nonlinearly")),
        (lambda: kg.Servo(x, STABLE), {"force": F * N.x + sm.sqrt(G**2) * N.y}, ("G", "nonlinearly")),
        (lambda: kg.Servo(x, STABLE), {"force": F * N.x + sm.Max(G - 9, 0) * N.y}, ("G", "nonlinearly")),
        (lambda: kg.Servo(x, STABLE, y=(F, F * G)), {}, ("y", "F", "affine")),
        (lambda: kg.Servo(x, STABLE, y=(sm.Abs(F), 0)), {}, ("y", "F", "affine")),
        (
            lambda: kg.Servo(x, STABLE),
            {"force": F * N.x + G * N.z},
            ("G", "generalized forces"),
        ),
        (
            lambda: kg.Servo(x, STABLE),
            {"acceleration_constraints": (w.diff() - G,)},
            ("G", "constraints", "forces"),
        ),
        (
            lambda: kg.Servo(x, STABLE),
            {"holonomic_constraints": (y,)},
            ("G", "passive", "constraints"),
        ),
        (
            lambda: kg.Servo(v * v + w * w - x, -1),
            {"force": F * (w * N.x - v * N.y) + G * x * (w * N.x - v * N.y)},
            ("first", "F", "G"),
        ),
    ],
)
def test_derivations(servo: Callable[[], Any], options: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        build(servo(), **options)


def test_servo_constraints_that_are_singular_only_at_special_states_are_accepted() -> None:
    """Ranks are judged on the manifold, at generic states: these servo-constraints can be enforced."""
    build(kg.Servo(sm.log(x), STABLE))
    build(kg.Servo(x - y**2, STABLE, controls=(F,)), holonomic_constraints=(x**2 + y**2 - c**2,), parameters={c: 1.0})
