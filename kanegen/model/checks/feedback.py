"""Checks of the feedback laws of inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy.physics.vector import dynamicsymbols

from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, base_symbol, known_value, symbol_name, symbol_names
from kanegen.model.inputs import Input


def feedback_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of feedback laws that become visible only together with the model."""
    laws = tuple(item for item in model.inputs if item.law is not None)
    if laws and model.control_constraints is not None:
        names = symbol_names(item.symbol for item in laws)
        yield (
            f"{names}: inputs with laws cannot be combined with kg.ControlConstraints, which differentiate the "
            "equations: write the laws as loads"
        )
    elif laws and model.servo is not None:
        yield from _servo_with_laws({model.inputs[k].symbol for k in model.servo.slots(model.inputs)}, laws)
    for item in laws:
        yield from _inputs_read(model, item)
        yield from _limit_problems(model, item)


def _servo_with_laws(controls: set[Any], laws: tuple[Input, ...]) -> Iterator[str]:
    twice = [item.symbol for item in laws if item.symbol in controls]
    if twice:
        yield (
            f"{symbol_names(twice)} has a law and is a control of kg.Servo: remove law=, or list the other controls in "
            "controls="
        )
    for item in laws:
        read = sorted({symbol for symbol in map(base_symbol, atoms((item.law,))) if symbol in controls}, key=str)
        if read and item.symbol not in controls:
            yield (
                f"the law of input {item.name} reads the control {symbol_names(read)}, which is computed after the "
                "laws: expected an expression without controls"
            )


def _inputs_read(model: SystemDescription, item: Input) -> Iterator[str]:
    with_law = {other.symbol: other for other in model.inputs if other.law is not None}
    read = sorted({symbol for symbol in map(base_symbol, atoms((item.law,))) if symbol in with_law}, key=symbol_name)
    if item.symbol in read:
        yield f"the law of input {item.name} reads {item.name} itself: expected an expression of other quantities"
    others = [symbol for symbol in read if symbol != item.symbol]
    if others:
        yield (
            f"the law of input {item.name} reads {symbol_names(others)}, which has a law itself: write the law of "
            f"{symbol_names(others)} out in that of {item.name}"
        )


def _limit_problems(model: SystemDescription, item: Input) -> Iterator[str]:
    values = {}
    for what, limit in item.limits.items():
        if limit.has(dynamicsymbols._t) and all(symbol.is_Symbol for symbol in atoms((limit,))):
            yield f"the {what} of input {item.name} is {limit}, which depends on time: expected a constant"
        values[what] = known_value(limit, model.known_parameters)
    problem = limit_problem(item.name, values)
    if problem is not None:
        yield problem


def limit_problem(name: str, values: dict[str, float | None]) -> str | None:
    """What is wrong with the known limits of the law of an input; None if nothing is."""
    low, high, band = (values.get(what) for what in ("lowest value", "highest value", "dead band"))
    if band is not None and not band >= 0.0:
        return f"the dead band of input {name} is {band:g}: expected a half-width that is not negative"
    if low is not None and high is not None and not low <= high:
        return f"the saturation of input {name} is ({low:g}, {high:g}): expected lowest <= highest"
    return None
