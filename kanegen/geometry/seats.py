"""Where a surface is: a point and, if its body rotates, a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector

from kanegen.errors import ModelError, brief


@dataclass(frozen=True)
class Seat:
    """The ``point`` and the ``frame`` of a body that carries a surface; the frame is None for what has no attitude."""

    point: Any
    frame: Any

    def position(self, other: Any) -> Any:
        """The vector from the point ``other`` to that of the seat."""
        try:
            return self.point.pos_from(other)
        except ValueError as error:
            raise ModelError(
                f"the position of the point {self.point.name!r} from {other.name!r} is not known: contacts of surfaces "
                "need it; use set_pos or locatenew"
            ) from error

    def turning(self, other: Any) -> Any:
        """The angular velocity of the frame in the frame ``other``."""
        try:
            return self.frame.ang_vel_in(other)
        except ValueError as error:
            raise ModelError(
                f"the angular velocity of the frame {self.frame.name!r} in {other.name!r} is not known: the slip "
                "velocity of contacts needs it; use orient_axis or set_ang_vel"
            ) from error


def seat(place: Any, frame: Any, what: str, *, oriented: bool = False) -> Seat:
    """The seat on a body, or on a point with the ``frame`` of its body; ``oriented``: a frame is necessary."""
    known: Any = None
    if isinstance(place, RigidBody):
        point, known = place.masscenter, place.frame
    elif isinstance(place, Particle):
        point = place.masscenter
    elif isinstance(place, Point):
        point = place
    else:
        raise ModelError(f"{what} at {brief(place)}: expected a Point, a Particle or a RigidBody")
    frame = known if frame is None else frame
    if frame is not None and not isinstance(frame, ReferenceFrame):
        raise ModelError(f"{what} has frame={brief(frame)}: expected the ReferenceFrame of its body")
    if frame is None and oriented:
        raise ModelError(f"{what} at {brief(place)} has no frame: give the RigidBody, or frame= with that of the body")
    return Seat(point, frame)


def length(value: Any, name: str, what: str, *, zero: bool = False) -> Any:
    """A length, m, as a SymPy expression; ``zero``: it may be 0."""
    try:
        found = sympy.sympify(value, strict=True)
    except (sympy.SympifyError, TypeError):
        found = None
    wrong = not isinstance(found, sympy.Expr) or found.is_finite is False or found is sympy.nan
    if wrong or found.is_negative or (found.is_zero and not zero):
        least = "not negative" if zero else "positive"
        raise ModelError(f"{what} has {name}={brief(value)}: expected a length that is {least}, m")
    return found


def unit(value: Any, name: str, what: str) -> Any:
    """A vector divided by its length."""
    if not isinstance(value, Vector) or not value.args:
        raise ModelError(f"{what} has {name}={brief(value)}: expected a vector that is not zero, such as N.z")
    square = sympy.trigsimp(value.dot(value))
    if square == 1:
        return value
    if square.is_zero or square.is_finite is False:
        raise ModelError(f"{what} has {name}={brief(value)}: expected a vector that is not zero, such as N.z")
    return value / sympy.sqrt(square)


def only_frame(value: Any) -> Any:
    """The frame of a vector that is written in one frame, else None."""
    frames = [frame for _, frame in value.args]
    return frames[0] if len(frames) == 1 else None
