"""Bodies and loads lowered to the graph: what moves, and what acts on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from sympy.physics.vector import ReferenceFrame

from kanegen.derive.frames import Frame
from kanegen.derive.points import Point
from kanegen.derive.system import System
from kanegen.derive.vectors import Triple, dot, plus
from kanegen.graph.nodes import Node
from kanegen.model.geometry import ground_places, is_ground

Inertia: TypeAlias = tuple[Node, Node, Node, Node, Node, Node]
"""xx, yy, zz, xy, xz, yz components of a symmetric tensor in one frame, kg m^2."""


@dataclass(frozen=True)
class Body:
    """A mass at ``point`` (its mass centre) and, for a rigid body, the central inertia in ``inertia_frame``."""

    name: str
    mass: Node
    point: Point
    frame: Frame | None
    inertia_frame: Frame | None
    inertia: Inertia | None


@dataclass(frozen=True)
class Force:
    """A force on ``point``, components by frame, N."""

    point: Point
    parts: dict[Frame, Triple]


@dataclass(frozen=True)
class Torque:
    """A torque on ``frame``, components by frame, N m."""

    frame: Frame
    parts: dict[Frame, Triple]


def lower_bodies(system: System) -> tuple[Body, ...]:
    """The bodies of the model with central inertias; massless ones keep what inertia they have."""
    return tuple(_lower_body(system, body) for body in system.model.bodies)


def _lower_body(system: System, body: Any) -> Body:
    point = body.masscenter
    if is_ground(body, system.model.frame):
        return Body(body.name, system.graph.zero, point, getattr(body, "frame", None), None, None)
    mass = system.lower(body.mass)
    if not hasattr(body, "inertia"):
        return Body(body.name, mass, point, None, None, None)
    dyadic, about = body.inertia
    frame, tensor = lower_dyadic(system, dyadic, body.frame)
    if about is not point and not mass.is_zero:
        rho = system.frames.express(system.points.offset(point, about), frame)
        tensor = shifted(tensor, -mass, rho)
    massless_rotation = all(component.is_zero for component in tensor)
    if massless_rotation:
        return Body(body.name, mass, point, body.frame, None, None)
    return Body(body.name, mass, point, body.frame, frame, tensor)


def lower_dyadic(system: System, dyadic: Any, default: Frame) -> tuple[Frame, Inertia]:
    """The components of a symmetric dyadic in the frame it is written in, read term by term."""
    terms = [] if dyadic == 0 else list(dyadic.args)
    frame = terms[0][1].args[0][1] if terms else default
    zero = system.graph.zero
    entries = [[zero] * 3 for _ in range(3)]
    for coefficient, left, right in terms:
        value = system.lower(coefficient)
        a = system.frames.express(system.frames.lower_vector(left), frame)
        b = system.frames.express(system.frames.lower_vector(right), frame)
        for i in range(3):
            for j in range(3):
                entries[i][j] = entries[i][j] + value * (a[i] * b[j])
    e = entries
    return frame, (e[0][0], e[1][1], e[2][2], e[0][1], e[0][2], e[1][2])


def shifted(tensor: Inertia, mass: Node, rho: Triple) -> Inertia:
    """``tensor + mass (rho.rho 1 - rho rho)``: the parallel-axis theorem, away from the mass centre for mass > 0."""
    x, y, z = rho
    xx, yy, zz = x * x, y * y, z * z
    return (
        tensor[0] + mass * (yy + zz),
        tensor[1] + mass * (xx + zz),
        tensor[2] + mass * (xx + yy),
        tensor[3] - mass * (x * y),
        tensor[4] - mass * (x * z),
        tensor[5] - mass * (y * z),
    )


def product(tensor: Inertia, a: Triple) -> Triple:
    """``I . a``."""
    xx, yy, zz, xy, xz, yz = tensor
    return (dot((xx, xy, xz), a), dot((xy, yy, yz), a), dot((xz, yz, zz), a))


def inertia_torque(tensor: Inertia, omega: Triple, alpha: Triple) -> Triple:
    """``I . alpha + omega x (I . omega)``, written so that the products omega_i omega_j are shared between bodies."""
    xx, yy, zz, xy, xz, yz = tensor
    x, y, z = omega
    gyroscopic = (
        (zz - yy) * (y * z) + yz * (y * y - z * z) + xz * (x * y) - xy * (x * z),
        (xx - zz) * (x * z) + xz * (z * z - x * x) + xy * (y * z) - yz * (x * y),
        (yy - xx) * (x * y) + xy * (x * x - y * y) + yz * (x * z) - xz * (y * z),
    )
    return plus(product(tensor, alpha), gyroscopic)


def lower_loads(system: System) -> Iterator[Force | Torque]:
    """The loads the user listed on what moves (the weight of a model with ``gravity`` is not among them)."""
    ground = ground_places(system.model.bodies, system.model.frame)
    yield from lowered(system, [pair for pair in system.model.loads if pair[0] not in ground])


def lowered(system: System, pairs: Iterable[tuple[Any, Any]]) -> Iterator[Force | Torque]:
    """Pairs (point, force) and (frame, torque) with their components."""
    for place, vector in pairs:
        parts = system.frames.lower_vector(vector)
        if parts:
            yield Torque(place, parts) if isinstance(place, ReferenceFrame) else Force(place, parts)
