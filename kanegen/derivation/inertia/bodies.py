"""Bodies and loads lowered to the graph: what moves, and what acts on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sympy.physics.vector import ReferenceFrame

from kanegen.derivation.geometry.frames import Frame
from kanegen.derivation.geometry.points import Point
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, minus
from kanegen.derivation.inertia.tensors import Inertia, is_negligible, prescribed_rate, product, rate_in_body, shifted
from kanegen.errors import ModelError
from kanegen.graph.nodes import Node
from kanegen.model.expressions import dyadic_frames
from kanegen.model.geometry import is_ground


@dataclass(frozen=True)
class Body:
    """A mass at ``point`` (its mass center) and, for a rigid body, the central inertia in ``inertia_frame``.

    ``mass_rate`` (kg/s) and ``inertia_rate`` (kg m^2/s, as seen from the body, components in ``inertia_frame``) belong
    to a mass and an inertia given as functions of time or of inputs; they are zero and None otherwise.
    """

    name: str
    mass: Node
    point: Point
    frame: Frame | None
    inertia_frame: Frame | None
    inertia: Inertia | None
    mass_rate: Node
    inertia_rate: Inertia | None


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
    """The bodies of the model with central inertias; massless ones keep what inertia they have.

    Raises
    ------
    ModelError
        For an inertia whose components in the frame of its body change with the coordinates.
    """
    return tuple(_lower_body(system, body) for body in system.model.bodies)


def _lower_body(system: System, body: Any) -> Body:
    if is_ground(body, system.model.frame):
        zero, frame = system.graph.zero, getattr(body, "frame", None)
        return Body(body.name, zero, body.masscenter, frame, None, None, zero, None)
    mass = system.lower(body.mass)
    mass_rate = system.rate(mass)
    if not hasattr(body, "inertia"):
        return Body(body.name, mass, body.masscenter, None, None, None, mass_rate, None)
    frame, tensor = _central_inertia(system, body)
    massless_rotation = all(component.is_zero for component in tensor)
    if massless_rotation:
        return Body(body.name, mass, body.masscenter, body.frame, None, None, mass_rate, None)
    if frame is not body.frame:
        # Asked on a graph of its own first: new nodes on this one may change the order in which others are computed.
        aside = system.aside
        if _inertia_rate(aside, body, *_central_inertia(aside, body)) is None:
            return Body(body.name, mass, body.masscenter, body.frame, frame, tensor, mass_rate, None)
    rate = _inertia_rate(system, body, frame, tensor)
    return Body(body.name, mass, body.masscenter, body.frame, frame, tensor, mass_rate, rate)


def _central_inertia(system: System, body: Any) -> tuple[Frame, Inertia]:
    """The frame in which the inertia is written, and its components about the mass center."""
    dyadic, about = body.inertia
    frame, tensor = lower_dyadic(system, dyadic, body.frame)
    mass = system.lower(body.mass)
    if about is not body.masscenter and not mass.is_zero:
        rho = system.frames.express(system.points.offset(body.masscenter, about), frame)
        tensor = shifted(tensor, -mass, rho)
    return frame, tensor


def _inertia_rate(system: System, body: Any, frame: Frame, tensor: Inertia) -> Inertia | None:
    """The rate of the inertia as seen from the body, None where it is constant.

    The components in the body's frame may be functions of time, not of the coordinates. What the speeds contribute to
    the rate is legal where it takes no part in ``T* = -(d_B I/dt . w + I . alpha + w x I . w)``: the inertia of a disk
    of revolution in a frame in which the disk spins, or one in the inertial frame where the motion is planar.
    """
    rate = rate_in_body(system, body.frame, frame, tensor)
    if all(component.is_zero for component in rate):
        return None
    prescribed = prescribed_rate(system, rate)
    omega = system.frames.omega(body.frame, frame)
    if not is_negligible(system, minus(product(rate, omega), product(prescribed, omega)), tensor):
        raise ModelError(_changing_inertia(body))
    return None if is_negligible(system, prescribed, tensor) else prescribed


def _changing_inertia(body: Any) -> str:
    dyadic, about = body.inertia
    others = [frame.name for frame in dyadic_frames(dyadic) if frame is not body.frame]
    if about is not body.masscenter:
        written = f" (written in frame {' and '.join(others)})" if others else ""
        return (
            f"the inertia of body {body.name} about point {about}{written} does not move with the body: seen from the "
            f"body's frame {body.frame.name}, its central inertia changes with the coordinates, and a rigid body has "
            f"a constant one; give the inertia about a point that is fixed in the body, in components in "
            f"{body.frame.name}"
        )
    return (
        f"the inertia of body {body.name} is written in frame {' and '.join(others)}, which turns relative to the "
        f"body's frame {body.frame.name}, so its components in {body.frame.name} change with the coordinates; a rigid "
        f"body has constant ones: write the inertia in {body.frame.name}, or in a frame in which it is constant"
    )


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


def lower_loads(system: System) -> Iterator[Force | Torque]:
    """The loads the user listed on what moves (the weight of a model with ``gravity`` is not among them)."""
    yield from lowered(system, system.model.effective_loads)


def lowered(system: System, pairs: Iterable[tuple[Any, Any]]) -> Iterator[Force | Torque]:
    """Pairs (point, force) and (frame, torque) with their components."""
    for place, vector in pairs:
        parts = system.frames.lower_vector(vector)
        if parts:
            yield Torque(place, parts) if isinstance(place, ReferenceFrame) else Force(place, parts)
