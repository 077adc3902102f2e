"""Inertia tensors by their six components in one frame, and their rates as seen from a body."""

from __future__ import annotations

from typing import TypeAlias

from kanegen.derivation.geometry.frames import Frame
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.variables import RELATIVE_ZERO
from kanegen.derivation.geometry.vectors import Triple, dot, minus, plus
from kanegen.graph.nodes import Node

Inertia: TypeAlias = tuple[Node, Node, Node, Node, Node, Node]
"""xx, yy, zz, xy, xz, yz components of a symmetric tensor in one frame, kg m^2."""


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


def rate_in_body(system: System, body_frame: Frame, frame: Frame, tensor: Inertia) -> Inertia:
    """``d_B I/dt = d_G I/dt + w x I - I x w`` of a tensor in frame G as seen from the body's frame B, kg m^2/s.

    w is the angular velocity of G relative to B; components in G.
    """
    xx, yy, zz, xy, xz, yz = map(system.rate, tensor)
    rate = (xx, yy, zz, xy, xz, yz)
    if frame is body_frame:
        return rate
    omega = system.frames.omega
    return added(rate, _turning(tensor, minus(omega(frame, frame), omega(body_frame, frame))))


def _turning(tensor: Inertia, omega: Triple) -> Inertia:
    """``w x I - I x w``: the rate of a tensor that turns with the angular velocity w."""
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
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5])


def prescribed_rate(system: System, rate: Inertia) -> Inertia:
    """The part of the rate that no speed takes part in: that of components given as functions of time."""
    xx, yy, zz, xy, xz, yz = system.at_rest(rate)
    return (xx, yy, zz, xy, xz, yz)


def is_negligible(system: System, vector: Triple | Inertia, tensor: Inertia) -> bool:
    """Whether components that are made of those of a tensor vanish at every random state, whatever the units are."""
    nodes = system.settled([node for node in vector if not node.is_zero])
    if not nodes:
        return True
    samples = system.samples([*nodes, *tensor])
    for values in zip(*samples, strict=True):
        size = sum(abs(value) for value in values[len(nodes) :])
        if any(not abs(value) <= RELATIVE_ZERO * size for value in values[: len(nodes)]):
            return False
    return True
