"""The control law of a model: servo-constraints, or constraints that contain the controls."""

from __future__ import annotations

from typing import Any, TypeAlias

from kanegen.model.control.control_constraints import ControlConstraints
from kanegen.model.control.servo import Servo

ControlLaw: TypeAlias = Servo | ControlConstraints


def normalized_control(value: Any, what: str, problems: list[str]) -> ControlLaw | None:
    """The control law of a model, or None; anything else is a problem."""
    if value is None or isinstance(value, Servo | ControlConstraints):
        return value
    problems.append(
        f"{what} is {value!r}: expected a kg.Servo (servo-constraints) or a kg.ControlConstraints (constraints that "
        "contain the controls), or None"
    )
    return None
