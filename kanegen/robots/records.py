"""What a file says of a robot: links and joints, before they become SymPy objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kanegen.robots.rigid import MASSLESS, NOWHERE, Inertial, Place

KINDS: Final = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
"""The types of joints in URDF."""

WITH_AXIS: Final = ("revolute", "continuous", "prismatic", "planar")
SINGLE: Final = ("revolute", "continuous", "prismatic")
"""The types with one coordinate."""


@dataclass(frozen=True)
class Limits:
    """Limits of a joint: ``lower`` and ``upper`` in rad or m, ``velocity`` in rad/s or m/s, ``effort`` in N m or N.

    None: the file gives no limit.
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True)
class Mimic:
    """The position of a joint is ``multiplier`` times that of another ``joint``, plus ``offset`` (rad or m)."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Link:
    """A link of a file: mass, center and inertia in its frame, and the line of the file."""

    name: str
    inertial: Inertial = MASSLESS
    line: int = 0


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint as the file gives it.

    Parameters
    ----------
    name, kind
        Its name, and its type in URDF: ``"revolute"``, ``"prismatic"`` and so on.
    parent, child
        Names of the links that it connects.
    place
        Where the frame of the child is in the frame of the parent at the position zero.
    axis
        Unit vector (3,) in the frame of the child.
    damping, friction
        Viscous damping (N m s/rad or N s/m) and Coulomb friction (N m or N).
    limits, mimic
        ``Limits``, and the ``Mimic`` of a joint that follows another one, or None.
    line
        Line of the file.
    """

    name: str
    kind: str
    parent: str
    child: str
    place: Place = NOWHERE
    axis: Any = (1.0, 0.0, 0.0)
    damping: float = 0.0
    friction: float = 0.0
    limits: Limits = Limits()
    mimic: Mimic | None = None
    line: int = 0


@dataclass(frozen=True)
class Robot:
    """Links and joints by name, in the order of the file, and what was not read: names of elements with their count."""

    name: str
    source: str
    links: Mapping[str, Link]
    joints: Mapping[str, Joint]
    ignored: Mapping[str, int]
