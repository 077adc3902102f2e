"""The digest of a model: whatever the user changes changes it, and what generated code does not depend on does not."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from inspect import isabstract
from typing import Any, get_args, get_type_hints

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises

import kanegen as kg
from kanegen.derivation import fingerprint, lower_model
from kanegen.derivation.fingerprint import Reader
from kanegen.model.description import SpeedChange, SystemDescription
from kanegen.model.geometry import Route
from kanegen.model.laws import LAWS
from kanegen.units import Unit

q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
F, force = me.dynamicsymbols("F force")
m, k, c, g, length = sm.symbols("m k c g length")

REACHED = {
    ("Geometry", "parents"),
    ("Geometry", "rate_parents"),
    ("SystemDescription", "initial"),
    ("SystemDescription", "shapes"),
    ("SystemDescription", "units"),
}
"""Trees of all frames that are connected; what the model reaches of them is in ``orientations`` and ``rates``. The
start of a motion, shapes and units are not compiled."""


def cart(*, mass: Any = m, inertia: Any = m, position: Any = None, spare: bool = False, **options: Any) -> kg.Model:
    """A cart with a pendulum of one rigid body."""
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (q2, N.z))
    O = me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", q1 * N.x)
    P = C.locatenew("P", -length * B.y if position is None else position * B.y)
    if spare:
        P.locatenew("end", -B.y)
    bodies = (me.Particle("cart", C, mass), me.RigidBody("arm", P, B, m, (me.inertia(B, 0, 0, inertia), P)))
    given = {
        "name": "cart",
        "frame": N,
        "coordinates": (q1, q2),
        "speeds": (u1, u2),
        "kinematics": (q1.diff() - u1, q2.diff() - u2),
        "bodies": bodies,
        "loads": ((C, (F - k * q1) * N.x),),
        "inputs": (F,),
        "gravity": -g * N.y,
        "outputs": {"height": q1},
    }
    return kg.Model(**{**given, **options})


MODEL = cart()
SYSTEM = lower_model(MODEL)
POINT, FRAME = MODEL.bodies[0].masscenter, MODEL.frame


def records() -> Iterator[Any]:
    """One record of each kind that a description can hold."""
    yield MODEL.changed()
    yield from (MODEL.geometry, MODEL.outputs["height"], next(iter(MODEL.geometry.routes.values())))
    yield kg.Input(F, rate=me.dynamicsymbols("F1"), acceleration=me.dynamicsymbols("F2"), default=1.0)
    yield kg.Input(F, law=-k * q1, saturation=(-c, c), dead_band=c, sample_time=0.1, delay=0.2)
    yield kg.Reaction(("cart",), POINT, FRAME, loads=(POINT,), multipliers={0: (POINT, FRAME.x)})
    friction = kg.Coulomb(c, k, creep=sm.Float(0.1), decay_rate=sm.Integer(10))
    yield friction
    yield kg.Unilateral(q1, kg.KelvinVoigt(k, c), friction, (u1,), "floor", (((POINT, FRAME.x),),))
    yield from (kg.Bilateral(q1, k), kg.Latch("latch", q1, False, k, (((POINT, FRAME.x),),)))
    yield kg.Friction((u1,), friction, k, "rail", (((POINT, FRAME.x),),))
    yield kg.Event("stop", q1, 1, True, "kick", ("latch",), ("other",))
    yield kg.Servo([q1], [(-2, -1)], [F], "weighted", [k], [c], c, [1.0])
    yield kg.ControlConstraints([q1], [F], [(-2, -1)], [c])
    yield SpeedChange(MODEL, (u1, u1 + u2))
    for law in LAWS:
        yield law(**{name: k for name in ("stiffness", "damping", "depth") if name in law.__dataclass_fields__})


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float | sm.Expr):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, me.Vector):
        return 2 * value
    if isinstance(value, tuple):
        return value[:-1] if value else (k,)
    if isinstance(value, Mapping):
        return dict([*value.items()][:-1]) if value else {"new": k}
    if isinstance(value, me.ReferenceFrame | me.Point):
        return type(value)(value.name + "x")
    if is_dataclass(value):
        last = fields(value)[-1].name
        return with_field(value, last, other(getattr(value, last)))
    assert value is None
    return k


def with_field(record: Any, field: str, value: Any) -> Any:
    """A copy of a frozen record with one other field, whether or not that makes sense."""
    if isinstance(record, SystemDescription):
        return record.changed(**{field: value})
    changed = copy.copy(record)
    object.__setattr__(changed, field, value)
    return changed


def tokens(value: Any) -> list[str]:
    return [*Reader(SYSTEM).tokens(value)]


CASES = [(record, item.name) for record in records() for item in fields(record)]


@pytest.mark.parametrize(("record", "field"), CASES, ids=[f"{type(r).__name__}.{field}" for r, field in CASES])
def test_every_field_of_every_record_is_part_of_the_digest(record: Any, field: str) -> None:
    changed = with_field(record, field, other(getattr(record, field)))
    assert (tokens(changed) == tokens(record)) == ((type(record).__name__, field) in REACHED)


def record_types(kind: Any, known: set[type]) -> set[type]:
    """The record classes named by the annotations of a record class, and by theirs."""
    for hint in [*(get_type_hints(kind).values() if is_dataclass(kind) else get_args(kind))]:
        if is_dataclass(hint) and hint not in known:
            known.add(hint)
            record_types(hint, known)
        elif get_args(hint):
            record_types(hint, known)
    return known


def test_no_kind_of_record_is_left_out() -> None:
    kinds = record_types(SystemDescription, {SystemDescription, kg.Bilateral, *LAWS})
    expected = {kind for kind in kinds if not isabstract(kind)}
    assert {type(record) for record in records()} == expected - {kg.shapes.Shape, Unit}  # these are not compiled
    assert {Route, kg.Servo, kg.Coulomb} < expected


VARIANTS: dict[str, dict[str, Any]] = {
    "mass": {"mass": 2 * m},
    "inertia": {"inertia": 2 * m},
    "position": {"position": -2 * length},
    "parameter": {"mass": sm.Symbol("M")},
    "orientation": {"coordinates": (q2, q1), "speeds": (u2, u1)},
    "energy": {"potential_energy": k * q1**2 / 2},
    "function": {"outputs": {"height": kg.Spline([0, 1, 2], [0, 1, 0])(q1)}},
    "table": {"outputs": {"height": kg.Spline([0, 1, 2], [0, 2, 0])(q1)}},
}


def test_the_digest_tells_models_apart() -> None:
    digests = {fingerprint(lower_model(cart(**changes))) for changes in ({}, *VARIANTS.values())}
    assert len(digests) == len(VARIANTS) + 1


def test_values_of_parameters_and_points_that_nothing_uses_do_not_matter() -> None:
    same = [cart(parameters={m: 2.0}), cart(parameters={"m": 3.0}), cart(parameters={m: None}, spare=True)]
    assert len({fingerprint(lower_model(model)) for model in same}) == 1


def test_options_are_part_of_the_digest() -> None:
    assert len({fingerprint(SYSTEM, *options) for options in ((), ("a",), ("a", "b"), ("ab",))}) == 4


def test_a_value_without_a_rule_is_refused() -> None:
    with raises(TypeError, "set"):
        tokens({k})
