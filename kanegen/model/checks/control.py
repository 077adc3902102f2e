"""Checks of a model's control law: ``Servo`` or ``ControlConstraints``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sympy.physics.vector import dynamicsymbols

from kanegen.model.control import ControlConstraints, Servo
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, base_symbol, derivative_order, known_value, symbol_name, symbol_names


def servo_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of the servo-constraints that become visible only together with the model."""
    if model.servo is not None:
        for find in (_control_problems, _size_problems, _level_problems, _stability_problems):
            yield from (f"servo: {problem}" for problem in find(model, model.servo))


def _controls(model: SystemDescription, servo: Servo) -> tuple[Any, ...]:
    return tuple(item.symbol for item in model.inputs) if servo.controls is None else servo.controls


def _control_problems(model: SystemDescription, servo: Servo) -> Iterator[str]:
    by_symbol = {item.symbol: item for item in model.inputs}
    controls, known = _controls(model, servo), symbol_names(by_symbol) or "none"
    if not controls:
        yield "the model has no controls: give inputs= that occur in loads, and list the controls in controls="
    for symbol in dict.fromkeys(controls):
        if symbol not in by_symbol:
            yield f"controls contains {symbol_name(symbol)}, which is not an input: the inputs are {known}"
        elif by_symbol[symbol].rate is not None and servo.controls is not None:
            yield f"control {symbol_name(symbol)} has a rate, but controls are computed and have no rate: remove rate="
        if controls.count(symbol) > 1:
            yield f"controls contains {symbol_name(symbol)} twice"
    implicit = "" if servo.controls is not None else "; without controls=, all inputs are controls: list the controls"
    for kind, where, expressions, _ in servo.places():
        # y = Y tau + y0 gives a linear system for the controls; their derivatives are unknown.
        feedback = where == "servo y" and not servo.is_ideal
        inside = {base_symbol(x) for x in atoms(expressions) if derivative_order(x) or not feedback} & set(controls)
        if inside and kind != "servo gain":
            contained = ", ".join(sorted(map(symbol_name, inside)))
            wanted = "without derivatives of controls" if feedback else "without controls"
            why = " where the controls are ideal" if where == "servo y" and not feedback else ""
            yield f"{where} contains the control {contained}: expected an expression {wanted}{why}{implicit}"
    if len(servo.constraints) > len(controls) > 0:
        yield (
            f"{len(servo.constraints)} servo-constraints with {len(controls)} control(s) ({symbol_names(controls)}): "
            "S tau = z has no solution in general; remove constraints or add controls"
        )


def _size_problems(model: SystemDescription, servo: Servo) -> Iterator[str]:
    controls = _controls(model, servo)
    n, names = len(controls), symbol_names(controls)
    for what, value, expected in (
        ("y", servo.y, "a number or expression for each control, or one for all"),
        ("weight", servo.weight, "a row for each control"),
        ("limits", servo.limits, "an entry for each control"),
    ):
        if value is not None and len(value) != n and not (what == "y" and len(value) == 1):
            yield f"{what} has {len(value)} entries for {n} control(s) ({names}): expected {expected}"


def _level_problems(model: SystemDescription, servo: Servo) -> Iterator[str]:
    """Constraints whose level, positions or velocities, does not agree with the length of their theta."""
    coordinates, speeds = set(model.coordinates), set(model.all_speeds)
    for k, psi in enumerate(servo.constraints):
        symbols = atoms((psi,))
        moving = {x for x in symbols if (base_symbol(x) in coordinates and derivative_order(x)) or x in speeds}
        where = f"constraints[{k}] ({psi})"
        if not moving and not symbols & coordinates:
            yield f"{where} cannot be changed by any control: expected a coordinate or a speed in it"
        elif moving and servo.holonomic(k):
            names = ", ".join(sorted(map(symbol_name, moving)))
            yield (
                f"{where} contains {names}, so it is nonholonomic: expected a single Theta for psi' = Theta psi, found "
                f"the pair {servo.theta[k]}"
            )
        elif not moving and not servo.holonomic(k):
            yield (
                f"{where} contains no speed, so it is holonomic: expected a pair (Theta1, Theta2) for psi'' = Theta1 "
                f"psi' + Theta2 psi, found {servo.theta[k][0]}"
            )


def _stability_problems(model: SystemDescription, servo: Servo) -> Iterator[str]:
    """Gains with known values for which the errors of the servo-constraints would not decay."""
    for k, theta in enumerate(servo.theta):
        for name, expression in zip(("Theta1", "Theta2") if len(theta) == 2 else ("Theta",), theta, strict=True):
            value = known_value(expression, model.known_parameters)
            if expression.has(dynamicsymbols._t):
                yield f"theta[{k}] has {name} = {expression}, which depends on time: expected a constant"
            elif value is not None and not value < 0.0:
                yield (
                    f"theta[{k}] is not stable: {name} = {_shown(expression, value)}, expected a negative number, so "
                    "that the error of the servo-constraint decays"
                )
    damping = None if servo.damping is None else known_value(servo.damping, model.known_parameters)
    if damping is not None and not damping > 0.0:
        yield f"damping is {_shown(servo.damping, damping)}: expected a positive number"


def _shown(expression: Any, value: float) -> str:
    if math.isnan(value):
        return str(expression)
    return f"{value:g}" if expression.is_number else f"{expression} = {value:g}"


def control_constraint_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of the control constraints that become visible only together with the model."""
    if model.control_constraints is not None:
        for problem in _control_law_problems(model, model.control_constraints):
            yield f"ControlConstraints: {problem}"


def _control_law_problems(model: SystemDescription, record: ControlConstraints) -> Iterator[str]:
    symbols = {item.symbol for item in model.inputs}
    if model.states:
        yield (
            f"the controls become part of the state, which cannot be combined with the states "
            f"{symbol_names(model.states)}: use kg.Servo, or write the laws of the controls as loads and states"
        )
    for symbol in record.controls or ():
        if symbol not in symbols:
            yield f"the control {symbol_name(symbol)} is not an input of the model: add it to inputs="
    controls = record.inputs(model.inputs)
    if not controls:
        yield "the model has no inputs that could be controls: give inputs="
    if len(record.y) not in (1, len(controls)):
        yield f"y has {len(record.y)} entries for {len(controls)} control(s): expected one entry for each control"
    for item in controls:
        for what, value in (("rate", item.rate), ("acceleration", item.acceleration)):
            if value is not None and value not in symbols:
                yield (
                    f"the {what} of control {item.name} is {value}, but the constraints determine it: give a separate "
                    f"symbol, kg.Input({item.name}, {what}=...), or leave it out"
                )
    taken = [value for item in controls for value in (item.symbol, item.rate, item.acceleration) if value is not None]
    for symbol in sorted({x for x in taken if taken.count(x) > 1}, key=symbol_name):
        yield f"{symbol_name(symbol)} is a control and the rate of another control: use it for one of them only"
