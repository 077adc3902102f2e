"""Bodies with their masses and inertia tensors, and loads, lowered to the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from sympy.physics.vector import ReferenceFrame

from kanegen.derivation.geometry.frames import Frame
from kanegen.derivation.geometry.points import Point
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, dot, minus, plus
from kanegen.errors import ModelError
from kanegen.graph.decisions import RELATIVE_ZERO
from kanegen.graph.nodes import Node
from kanegen.model.expressions import dyadic_frames
from kanegen.model.geometry import is_ground

Inertia: TypeAlias = tuple[Node, Node, Node, Node, Node, Node]
"""xx, yy, zz, xy, xz, yz components of a symmetric tensor in one frame, kg m^2."""


@dataclass(frozen=True)
class Body:
    """A mass at ``point`` (its mass center) and, for a rigid body, the central inertia in ``inertia_frame``.

    ``mass_rate`` (kg/s) and ``inertia_rate`` (kg m^2/s, as seen from the body, components in ``inertia_frame``) are the
    rates of a mass and an inertia that are functions of time or inputs, otherwise zero and None.
    """

    name: str
    point: Point
    mass: Node
    mass_rate: Node
    frame: Frame | None = None
    inertia_frame: Frame | None = None
    inertia: Inertia | None = None
    inertia_rate: Inertia | None = None


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


def lower_loads(system: System) -> Iterator[Force | Torque]:
    """The user's loads on moving points and frames, without the weights of a model with ``gravity``."""
    return lowered(system, system.model.effective_loads)


def lowered(system: System, pairs: Iterable[tuple[Any, Any]]) -> Iterator[Force | Torque]:
    """Pairs (point, force) and (frame, torque) with their components."""
    for place, vector in pairs:
        parts = system.frames.lower_vector(vector)
        if parts:
            yield Torque(place, parts) if isinstance(place, ReferenceFrame) else Force(place, parts)


def lower_bodies(system: System) -> tuple[Body, ...]:
    """The bodies of the model with central inertias; a massless body may have an inertia.

    Raises
    ------
    ModelError
        If the components of an inertia in the frame of its body change with the coordinates.
    """
    return tuple(_lower_body(system, body) for body in system.model.bodies)


def _lower_body(system: System, body: Any) -> Body:
    if is_ground(body, system.model.frame):
        zero = system.graph.zero
        return Body(body.name, body.masscenter, zero, zero, getattr(body, "frame", None))
    mass = system.lower(body.mass)
    point_mass = Body(body.name, body.masscenter, mass, system.rate(mass))
    if not hasattr(body, "inertia"):
        return point_mass
    frame, tensor = _central_inertia(system, body)
    if all(component.is_zero for component in tensor):
        return replace(point_mass, frame=body.frame)
    rigid = replace(point_mass, frame=body.frame, inertia_frame=frame, inertia=tensor)
    # Tested on another graph first, because new nodes of this graph may change the order in which others are computed.
    if frame is not body.frame and _inertia_rate(system.aside, body, *_central_inertia(system.aside, body)) is None:
        return rigid
    return replace(rigid, inertia_rate=_inertia_rate(system, body, frame, tensor))


def _central_inertia(system: System, body: Any) -> tuple[Frame, Inertia]:
    """The frame in which the inertia is written, and its components about the mass center."""
    dyadic, about = body.inertia
    frame, tensor = _lower_dyadic(system, dyadic, body.frame)
    mass = system.lower(body.mass)
    if about is not body.masscenter and not mass.is_zero:
        rho = system.frames.express(system.points.offset(body.masscenter, about), frame)
        tensor = shifted(tensor, -mass, rho)
    return frame, tensor


def _lower_dyadic(system: System, dyadic: Any, default: Frame) -> tuple[Frame, Inertia]:
    """The components of a symmetric dyadic in the frame it is written in, read term by term."""
    terms = [] if dyadic == 0 else list(dyadic.args)
    frame = terms[0][1].args[0][1] if terms else default
    entries = [[system.graph.zero] * 3 for _ in range(3)]
    for coefficient, left, right in terms:
        value = system.lower(coefficient)
        a, b = (system.frames.express(system.frames.lower_vector(vector), frame) for vector in (left, right))
        for i in range(3):
            for j in range(3):
                entries[i][j] = entries[i][j] + value * (a[i] * b[j])
    return frame, components(entries)


def _inertia_rate(system: System, body: Any, frame: Frame, tensor: Inertia) -> Inertia | None:
    """The rate of the inertia as seen from the body, or None if it is constant.

    Its components in the body's frame may depend on time, but not on the coordinates. Terms of the rate that contain
    speeds are allowed if they cancel in ``T* = -(d_B I/dt . w + I . alpha + w x I . w)``. Examples are the inertia of a
    disk of revolution in a frame in which the disk spins, and that of a planar motion in the inertial frame.
    """
    omega = system.frames.omega
    rate = _six(map(system.rate, tensor))
    if frame is not body.frame:
        # d_B I/dt = d_G I/dt + w x I - I x w, with the angular velocity w of G relative to B
        rate = added(rate, _turning(tensor, minus(omega(frame, frame), omega(body.frame, frame))))
    if all(component.is_zero for component in rate):
        return None
    prescribed = _six(system.at_rest(rate))
    spin = omega(body.frame, frame)
    if not _is_negligible(system, minus(product(rate, spin), product(prescribed, spin)), tensor):
        raise ModelError(_changing_inertia(body))
    return None if _is_negligible(system, prescribed, tensor) else prescribed


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


# -- tensors -------------------------------------------------------------------------------------------------


def shifted(tensor: Inertia, mass: Node, rho: Triple) -> Inertia:
    """``tensor + mass (rho.rho 1 - rho rho)``: the parallel-axis theorem, away from the mass center for mass > 0."""
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


def _turning(tensor: Inertia, omega: Triple) -> Inertia:
    """``w x I - I x w``: the rate of a tensor that rotates with the angular velocity w."""
    xx, yy, zz, xy, xz, yz = tensor
    x, y, z = omega
    return (
        2 * (y * xz - z * xy),
        2 * (z * xy - x * yz),
        2 * (x * yz - y * xz),
        z * (xx - yy) + y * yz - x * xz,
        y * (zz - xx) + x * xy - z * yz,
        x * (yy - zz) + z * xz - y * xy,
    )


def added(a: Inertia, b: Inertia) -> Inertia:
    """The sum of two tensors in one frame."""
    return _six(x + y for x, y in zip(a, b, strict=True))


def square(tensor: Inertia) -> list[list[Node]]:
    """The symmetric 3 x 3 matrix of a tensor."""
    xx, yy, zz, xy, xz, yz = tensor
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def components(matrix: Sequence[Sequence[Node]]) -> Inertia:
    """The tensor of a symmetric 3 x 3 matrix."""
    x, y, z = matrix
    return (x[0], y[1], z[2], x[1], x[2], y[2])


def _six(nodes: Iterable[Node]) -> Inertia:
    xx, yy, zz, xy, xz, yz = nodes
    return (xx, yy, zz, xy, xz, yz)


def _is_negligible(system: System, vector: Triple | Inertia, tensor: Inertia) -> bool:
    """Whether components vanish at every random state, relative to those of ``tensor`` and so in any units."""
    nodes = system.settled([node for node in vector if not node.is_zero])
    if not nodes:
        return True
    samples = system.samples([*nodes, *tensor])
    for values in zip(*samples, strict=True):
        size = sum(abs(value) for value in values[len(nodes) :])
        if any(not abs(value) <= RELATIVE_ZERO * size for value in values[: len(nodes)]):
            return False
    return True
