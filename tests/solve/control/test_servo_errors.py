"""Servo-constraints that cannot be honored: each says what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

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
    _ = kg.derive(model(servo, **options)).servo


STABLE = (-2, -1)


def test_all_problems_of_the_record_at_once() -> None:
    with pytest.raises(kg.ModelError) as found:
        kg.Servo(
            (x, "y"), theta=(STABLE, STABLE, -1), resolution="ideal", weight=(1, 2), damping=0.1, limits=(3, (2, 1))
        )
    text = str(found.value)
    assert len(found.value.problems) == 5
    assert "constraints[1] is 'y': expected a SymPy expression or a number" in text
    assert "theta has 3 entry(s) for 2 constraint(s)" in text
    assert "resolution 'ideal' was given with weight" in text
    assert "damping was given with ideal controls" in text
    assert "limits[1] is (2, 1): expected the largest magnitude, a pair (lowest, highest)" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"constraints": ()}, "constraints is empty"),
        ({"theta": None}, "theta is missing: give the desired dynamics"),
        ({"theta": ((-1, -2, -3),)}, r"theta\[0\] is \(-1, -2, -3\): expected a number, or a pair"),
        ({"resolution": "pinv"}, "resolution is 'pinv': expected one of moore_penrose, ideal, weighted"),
        ({"resolution": "weighted"}, "'weighted' was given without weight"),
        ({"resolution": "weighted", "weight": (1, -2)}, "weight is not positive definite"),
        ({"resolution": "weighted", "weight": ((1, 2), (3, 4))}, "weight is not symmetric"),
        ({"resolution": "weighted", "weight": ((1, 0, 0), (0, 1, 0))}, "expected a square matrix"),
        ({"y": "fast"}, r"y is 'fast': expected a list"),
        ({"limits": (float("nan"),)}, r"limits\[0\] is nan"),
    ],
)
def test_records(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(kg.ModelError, match=message):
        kg.Servo(**{"constraints": x, "theta": STABLE, **arguments})


@pytest.mark.parametrize(
    ("servo", "options", "message"),
    [
        (lambda: "track x", {}, r"control is 'track x': expected a kg\.Servo .* or a kg\.ControlConstraints"),
        (lambda: [v - 1], {}, r"control is \[v\(t\) - 1\]: expected a kg\.Servo .* or a kg\.ControlConstraints"),
        (lambda: kg.Servo(x, STABLE, controls=(H,)), {}, "controls contains H, which is no input: the inputs are F, G"),
        (lambda: kg.Servo(x, STABLE, controls=(F, F)), {}, "controls contains F twice"),
        (lambda: kg.Servo(x - F, STABLE), {}, r"constraints\[0\] contains the control F: .*name those that are"),
        (lambda: kg.Servo(x - target, STABLE), {}, r"target \(in servo constraints\[0\]\) is neither"),
        (
            lambda: kg.Servo(x, STABLE, y=(F, 0), resolution="ideal"),
            {},
            "servo y contains the control F: expected an expression without controls where the controls are ideal",
        ),
        (lambda: kg.Servo(x, STABLE, y=(F.diff(), 0)), {}, "expected an expression without derivatives of controls"),
        (lambda: kg.Servo(x, STABLE, y=(1, 2, 3)), {}, r"y has 3 entries for 2 control\(s\) \(F, G\)"),
        (lambda: kg.Servo(x, STABLE, limits=(1, 2, 3)), {}, r"limits has 3 entries for 2 control\(s\)"),
        (
            lambda: kg.Servo(x, STABLE, resolution="weighted", weight=(1, 2, 3)),
            {},
            r"weight has 3 entries for 2 control\(s\)",
        ),
        (lambda: kg.Servo(sm.sin(a), STABLE), {}, "depends on no coordinate and no speed"),
        (lambda: kg.Servo(x * v, STABLE), {}, r"contains v, so it is nonholonomic: expected one Theta"),
        (lambda: kg.Servo(x.diff(), STABLE), {}, r"contains x', so it is nonholonomic"),
        (lambda: kg.Servo(x * y, -1), {}, r"contains no speed, so it is holonomic: expected a pair"),
        (lambda: kg.Servo((x, y), (STABLE, (-1, 0))), {}, r"theta\[1\] is not stable: Theta2 = 0"),
        (lambda: kg.Servo(x, (float("nan"), -1)), {}, r"theta\[0\] is not stable: Theta1 = nan"),
        (lambda: kg.Servo(x, (-1, sm.I)), {}, r"theta\[0\] is not stable: Theta2 = I"),
        (lambda: kg.Servo(v, a), {"parameters": {a: 0.5}}, r"theta\[0\] is not stable: Theta = a = 0.5"),
        (lambda: kg.Servo(v, -x), {}, r"servo theta\[0\] contains x: it may depend on t, parameters only"),
        (lambda: kg.Servo(v, -1 - me.dynamicsymbols._t), {}, "expected a constant, found time in it"),
        (lambda: kg.Servo(x, STABLE, damping=-0.1), {}, "damping is -0.1: expected a positive number"),
        (
            lambda: kg.Servo((x, y, x + y**3), (STABLE,) * 3),
            {},
            r"3 servo-constraints with 2 control\(s\) \(F, G\): S tau = z has no solution in general",
        ),
        (
            lambda: kg.Servo(x, STABLE, controls=(F,)),
            {"inputs": (kg.Input(F, rate=H), G)},
            "control F has a rate",
        ),
        (
            lambda: kg.Servo(x - target, STABLE, controls=(F, G)),
            {"inputs": (F, G, target)},
            r"input target is differentiated, which needs its rate and acceleration",
        ),
    ],
)
def test_models(servo: Callable[[], Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(kg.ModelError, match=message):
        model(servo(), **options)


@pytest.mark.parametrize(
    ("servo", "options", "message"),
    [
        (
            lambda: kg.Servo((x, y), (STABLE, STABLE)),
            {"holonomic_constraints": (x**2 + y**2 - c**2,), "parameters": {c: 1.0}},
            r"2 servo-constraints \(x\(t\), y\(t\)\) on a motion with 1 degree",
        ),
        (
            lambda: kg.Servo(x**2 + y**2 - a, STABLE),
            {"holonomic_constraints": (x**2 + y**2 - c**2,)},
            r"is fixed by the passive constraints, which repeat or contradict it",
        ),
        (
            lambda: kg.Servo((x + y, sm.exp(x + y)), (STABLE, STABLE)),
            {},
            "depend on each other: they repeat or contradict each other",
        ),
        (
            lambda: kg.Servo((x, y), (STABLE, STABLE)),
            {"force": (F + G) * N.x},
            r"y\(t\) cannot be enforced: its second time derivative does not contain the controls F, G",
        ),
        (
            lambda: kg.Servo((x, x + y), (STABLE, STABLE)),
            {"force": (F + G) * (N.x + N.y)},
            "cannot be enforced together by the controls F, G: S of S tau = z has dependent rows",
        ),
        (lambda: kg.Servo(x, STABLE), {"force": (F + G**2) * N.x}, "the control G enters the forces nonlinearly"),
        (lambda: kg.Servo(x, STABLE, y=(F, F * G)), {}, "y contains the control F nonlinearly: expected .* affine"),
        (
            lambda: kg.Servo(x, STABLE),
            {"force": F * N.x + G * N.z},
            "the control G does not enter the generalized forces",
        ),
        (
            lambda: kg.Servo(x, STABLE),
            {"acceleration_constraints": (w.diff() - G,)},
            "the control G enters the constraints: controls may enter the forces only, affinely",
        ),
        (
            lambda: kg.Servo(x, STABLE),
            {"holonomic_constraints": (y,)},
            "the control G moves nothing: the passive constraints take up its whole force",
        ),
        (
            lambda: kg.Servo(v * v + w * w - x, -1),
            {"force": F * (w * N.x - v * N.y) + G * x * (w * N.x - v * N.y)},
            "its first time derivative does not contain the controls F, G",
        ),
    ],
)
def test_derivations(servo: Callable[[], Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(kg.ModelError, match=message):
        build(servo(), **options)


def test_a_coordinate_at_an_end_of_its_range_is_no_obstacle() -> None:
    """Ranks are judged on the manifold, at generic states: these servo-constraints can be enforced."""
    build(kg.Servo(sm.log(x), STABLE))
    build(kg.Servo(x - y**2, STABLE, controls=(F,)), holonomic_constraints=(x**2 + y**2 - c**2,), parameters={c: 1.0})
