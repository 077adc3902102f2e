"""Places and inertias of rigid bodies, as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

QUARTER_TURN: Final = 1e-11
"""Radians by which an angle in a file may differ from a multiple of a quarter turn and be taken for it, because files
give pi / 2 with eleven digits. The axes then map to axes, and zeros in rotation matrices save operations."""

NEGLIGIBLE: Final = 1e-14
"""Part of the largest entry of an inertia up to which entries are the rounding of a rotation, and taken for zero."""

SMALLEST: Final = 1e-9
"""Radius of gyration (m) up to which an entry of an inertia is zero: files contain the rounding of other programs."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where a frame is: its origin (3,), m, and its rotation (3, 3), both in the axes of another frame.

    The columns of ``rotation`` are the axes of the frame.
    """

    position: Any
    rotation: Any

    def of(self, other: Place) -> Place:
        """A place relative to this one, seen from where this one is seen."""
        return Place(self.position + self.rotation @ other.position, self.rotation @ other.rotation)


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass (kg), center (3,) in m, and inertia (3, 3) about the center in kg m^2, in the axes of a frame."""

    mass: float
    center: Any
    inertia: Any

    @property
    def moves_nothing(self) -> bool:
        """Whether there is neither mass nor inertia."""
        return self.mass == 0.0 and not np.any(self.inertia)

    def seen_from(self, place: Place) -> Inertial:
        """The same body in the axes from which its frame is at ``place``."""
        turned = place.rotation @ self.inertia @ place.rotation.T
        turned = (turned + turned.T) / 2.0
        turned[np.abs(turned) <= max(NEGLIGIBLE * np.abs(turned).max(), SMALLEST**2 * self.mass)] = 0.0
        return Inertial(self.mass, place.position + place.rotation @ self.center, turned)


NOWHERE: Final = Place(np.zeros(3), np.eye(3))
"""The place of a frame that coincides with the other one."""

MASSLESS: Final = Inertial(0.0, np.zeros(3), np.zeros((3, 3)))


def together(parts: Iterable[Inertial]) -> Inertial:
    """Bodies that are one rigid body; all of them in the same axes."""
    bodies = [part for part in parts if not part.moves_nothing]
    if len(bodies) < 2:
        return bodies[0] if bodies else MASSLESS
    mass = sum(body.mass for body in bodies)
    center = sum((body.mass * body.center for body in bodies), np.zeros(3)) / (mass or 1.0)
    inertia = np.zeros((3, 3))
    for body in bodies:
        arm = body.center - center
        inertia += body.inertia + body.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertial(mass, center, inertia)


def roll_pitch_yaw(roll: float, pitch: float, yaw: float) -> Any:
    """The rotation Rz(yaw) Ry(pitch) Rx(roll), (3, 3): turns about the fixed x, y and z axes, one after the other."""
    return _turn(2, yaw) @ _turn(1, pitch) @ _turn(0, roll)


def turn(axis: Any, angle: float) -> Any:
    """The rotation by an angle about a unit vector (3,), by Rodrigues' formula."""
    cos, sin = _cos_sin(angle)
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return cos * np.eye(3) + sin * cross + (1.0 - cos) * np.outer(axis, axis)


def _turn(axis: int, angle: float) -> Any:
    return turn(np.eye(3)[axis], angle)


def _cos_sin(angle: float) -> tuple[float, float]:
    quarters = round(angle / (math.pi / 2.0))
    if abs(angle - quarters * math.pi / 2.0) <= QUARTER_TURN:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return math.cos(angle), math.sin(angle)


def in_plane(axis: Any) -> tuple[Any, Any]:
    """Two unit vectors (3,) that are normal to a unit vector; x and y for z, y and z for x, z and x for y."""
    largest = int(np.argmax(np.abs(axis)))
    first = np.eye(3)[(largest + 1) % 3]
    first = first - (first @ axis) * axis
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def impossible(body: Inertial) -> str:
    """Why no body has this inertia; empty if one can have it.

    The principal moments are not negative, none is larger than the sum of the others, and without mass there are none.
    A single moment that is not zero is the customary way to write rotors.
    """
    moments = np.linalg.eigvalsh(body.inertia)
    rounding = 1e-9 * abs(moments[2])
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    if moments[0] < -rounding:
        return f"a negative principal moment ({shown} kg m^2)"
    if moments[1] > rounding and moments[0] + moments[1] < moments[2] - rounding:
        return f"a principal moment larger than the sum of the others ({shown} kg m^2)"
    return f"inertia ({shown} kg m^2) without mass" if body.mass == 0.0 and moments[2] > 0.0 else ""
