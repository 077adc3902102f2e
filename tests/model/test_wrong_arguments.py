"""Arguments of the wrong kind, in every place of a description: each is a ModelError, never an error of Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises

import kanegen as kg

t = me.dynamicsymbols._t
q, u, F, k = me.dynamicsymbols("q u F k")
m = sm.Symbol("m")


class Unprintable:
    """An object of the user that has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


WRONG = (
    *(None, "abc", "\ud800", b"ab", float("nan"), 10**5000, 1.5, True, 1j, object(), Unprintable(), [], {}, [1, 2, 3]),
    *([[1.0], [2.0, 3.0]], np.zeros((2, 3, 4)), np.array(3.0), np.array(["a"]), {"\ud800": 1}, int, lambda: 1),
    *(sm.zoo, [None], {1: 2}),
)


def point() -> tuple[Any, Any]:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O.locatenew("P", q * N.x)


N, P = point()
BODY = me.Particle("body", P, m)
MODEL: dict[str, Any] = {
    **{"name": "wrong", "frame": N, "coordinates": [q], "speeds": [u], "kinematics": [u - q.diff(t)], "bodies": [BODY]},
    **{"loads": [(P, F * N.x)], "inputs": [F], "parameters": {m: 1.0}, "gravity": -9.81 * N.y},
}


def model(**fields: Any) -> kg.Model:
    return kg.Model(**{**MODEL, **fields})


def refused(call: Callable[[], Any]) -> None:
    """The call succeeds or raises a ModelError; an argument can be legal in some place."""
    with suppress(kg.ModelError):
        call()


FIELDS = [name for name in inspect.signature(kg.Model).parameters if name != "kinematics"]


@pytest.mark.parametrize("field", ["kinematics", *FIELDS])
def test_fields_of_a_model(field: str) -> None:
    for value in WRONG:
        refused(lambda value=value: model(**{field: value}))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: {"coordinates": [x]},
        lambda x: {"kinematics": [x]},
        lambda x: {"kinematics": {q.diff(t): x}},
        lambda x: {"bodies": [x]},
        lambda x: {"loads": [x]},
        lambda x: {"loads": [(x, N.x)]},
        lambda x: {"loads": [(P, x)]},
        lambda x: {"inputs": [x]},
        lambda x: {"parameters": {m: x}},
        lambda x: {"holonomic_constraints": [x]},
        lambda x: {"outputs": {"y": x}},
        lambda x: {"states": {k: x}},
        lambda x: {"initial": {q: x}},
        lambda x: {"events": [x]},
        lambda x: {"contacts": [x]},
        lambda x: {"impulses": {"hit": x}},
        lambda x: {"impulses": {"hit": [(P, x)]}},
        lambda x: {"reactions": {"pin": x}},
        lambda x: {"units": {q: x}},
        lambda x: {"shapes": {BODY: x}},
        lambda x: {"shapes": {BODY: [kg.shapes.Sphere(1.0), x]}},
    ],
    ids=range(21),
)
def test_entries_of_a_model(make: Callable[[Any], dict[str, Any]]) -> None:
    for value in WRONG:
        refused(lambda value=value: model(**make(value)))


def contact(**fields: Any) -> dict[str, Any]:
    return {"contacts": [kg.Unilateral(q, **fields)]}


def shape(x: Any) -> dict[str, Any]:
    return {"shapes": {BODY: x}}


RECORDS: tuple[tuple[Callable[..., Any], dict[str, Any], Callable[[Any], dict[str, Any]]], ...] = (
    (kg.Input, {"symbol": F, "default": 0.0, "rate": None}, lambda x: {"inputs": [x]}),
    (
        kg.Input,
        {"symbol": F, "law": -q, "saturation": 1.0, "dead_band": 0.1, "sample_time": 0.1, "delay": 0.01},
        lambda x: {"inputs": [x]},
    ),
    (
        kg.Event,
        {"name": "e", "guard": q, "direction": 0, "terminal": True, "impulse": None, "impose": (), "reset": {}},
        lambda x: {"events": [x]},
    ),
    (kg.Unilateral, {"gap": q, "law": None, "slip": (), "name": None, "applied_at": ()}, lambda x: {"contacts": [x]}),
    (kg.Latch, {"name": "l", "constraint": q, "applied_at": ()}, lambda x: {"contacts": [x]}),
    (
        kg.Coulomb,
        {"mu_s": 0.3, "mu_k": None, "paradox": "error", "compliance": None},
        lambda x: contact(friction=x, slip=[u]),
    ),
    (
        kg.Coulomb,
        {"mu_s": 0.3, "mu_k": 0.2, "paradox": "regularize", "compliance": kg.KelvinVoigt(1.0, 1.0)},
        lambda x: contact(friction=x, slip=[u]),
    ),
    (kg.KelvinVoigt, {"stiffness": 1.0, "damping": 1.0, "quantity": "force"}, lambda x: contact(law=x)),
    (kg.HuntCrossley, {"stiffness": 1.0, "damping": 1.0, "exponent": 1.5}, lambda x: contact(law=x)),
    (kg.Restitution, {"e": 0.5}, lambda x: contact(law=x)),
    (
        kg.Servo,
        {"constraints": [q], "theta": [(-1, -1)], "controls": [F], "resolution": "moore_penrose", "weight": None},
        lambda x: {"control": x},
    ),
    (
        kg.ControlConstraints,
        {"constraints": [q], "theta": None, "controls": None, "y": None},
        lambda x: {"control": x},
    ),
    (kg.Multiplier, {"contact": "floor", "index": 0}, lambda x: {"outputs": {"force": x}}),
    (kg.shapes.Cone, {"radius": 1.0, "length": 2.0, "offset": (0, 0, 0), "axis": "z", "at": P}, shape),
    (kg.shapes.Mesh, {"vertices": np.eye(3), "faces": [[0, 1, 2]], "color": "#000000", "opacity": 0.5}, shape),
)


@pytest.mark.parametrize(("record", "fields", "place"), RECORDS, ids=range(len(RECORDS)))
def test_fields_of_records(
    record: Callable[..., Any], fields: dict[str, Any], place: Callable[[Any], dict[str, Any]]
) -> None:
    known = inspect.signature(record).parameters
    given = {name: value for name, value in fields.items() if name in known}
    assert given
    for name in given:
        for value in WRONG:
            refused(lambda name=name, value=value: model(**place(record(**{**given, name: value}))))


@pytest.mark.parametrize("where", ["shapes", "units", "parameters", "initial"])
def test_keys_of_mappings(where: str) -> None:
    values = {"shapes": kg.shapes.Sphere(1.0), "units": "m", "parameters": 1.0, "initial": 1.0}
    for value in WRONG:
        if isinstance(value, Hashable):
            refused(lambda value=value: model(**{where: {value: values[where]}}))


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        (kg.Baumgarte, {"alpha": 1.0, "beta": 1.0}),
        (kg.Baumgarte, {"G1": -1.0, "G2": -1.0, "G": -1.0}),
        (kg.Projection, {"every": 1, "tolerance": 1e-12, "integrals": ()}),
        (kg.Spline, {"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 0.0], "kind": "cubic", "name": "s"}),
        (kg.Function, {"name": "f", "arity": 1, "python": abs, "c": "fabs(x)", "derivatives": (), "arguments": ()}),
    ],
)
def test_records_outside_of_models(make: Callable[..., Any], fields: dict[str, Any]) -> None:
    for name in fields:
        for value in WRONG:
            refused(lambda name=name, value=value: make(**{**fields, name: value}))


def test_the_message_shows_the_value_and_what_is_expected() -> None:
    for change, names in (
        ({"strict": 1}, ("strict", 1, "True", "False")),
        ({"events": [kg.Event("e", q, direction=5)]}, ("direction", 5, "+1")),
        ({"events": [kg.Event(3, q)]}, ("events[0].name", 3)),
        ({"coordinates": np.array(3.0)}, ("coordinates", "array(3.)")),
        ({"kinematics": [10**5000]}, ("kinematics[0]", "floating-point")),
        ({"control": kg.Servo([q], [(-1, -1)], controls=[F]), "inputs": []}, ("F",)),
    ):
        with raises(kg.ModelError, *names):
            model(**change)
    wrong: Any = b"floor"
    with raises(kg.ModelError, "Multiplier", "b'floor'"):
        kg.Multiplier(wrong)
    with raises(kg.ModelError, "controls", "['a']"):
        kg.Servo([q], [(-1, -1)], controls=[["a"]])
    with raises(kg.ModelError, "arity", "1000"):
        kg.Function("f", 10**6, abs, "x")
