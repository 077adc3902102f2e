"""Bodies connected by joints, as programs for robots read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.modelfile import ModelFile, python_module

Triple = tuple[float, float, float]
ZERO: Triple = (0.0, 0.0, 0.0)

EULER = slice(3, 7)
"""The Euler parameters of a free joint among the coordinates."""

TINY_INERTIA = 1e-14
"""Inertia (kg m^2) of point masses where a program requires one."""


@dataclass(frozen=True)
class Joint:
    """A joint and the body that it carries.

    Parameters
    ----------
    parent
        Index of the joint before it; -1 for the ground.
    kind
        ``"px"``, ``"py"``, ``"pz"``: translation along an axis; ``"rx"``, ``"ry"``, ``"rz"``: rotation; or ``"free"``.
    offset
        The origin in the frame of the joint before (m).
    mass, center, inertia
        Of the body: kg, m in the frame of the joint, central moments of inertia (kg m^2) about its axes.
    stiffness, damping
        The torque of the joint is ``-stiffness q - damping q'``.
    """

    parent: int
    kind: str
    offset: Triple = ZERO
    mass: float = 0.0
    center: Triple = ZERO
    inertia: Triple = ZERO
    stiffness: float = 0.0
    damping: float = 0.0


@dataclass(frozen=True)
class Tree:
    """Joints in an order in which each follows its parent.

    ``change`` (n, n) maps the rates of the joints to the speeds of the model. It maps the positions too, unless the
    first joint is free; then both have the same coordinates, with Euler parameters (scalar first).
    """

    joints: tuple[Joint, ...]
    gravity: Triple
    change: Array

    @property
    def is_free(self) -> bool:
        return self.joints[0].kind == "free"

    def positions(self, q: Array) -> Array:
        """The positions of the joints at coordinates (..., n) of the model."""
        return q if self.is_free else self.rates(q)

    def rates(self, u: Array) -> Array:
        """The rates of the joints at speeds (..., n) of the model."""
        return np.ascontiguousarray(np.linalg.solve(self.change, u.T).T)

    def speeds(self, rates: Array) -> Array:
        """The inverse of `rates`, which also maps accelerations."""
        return rates @ self.change.T


def planar_chain(file: ModelFile) -> Tree:
    """`n_link_pendulum`: a cart, and hinges at the end of each link; the model has absolute angles."""
    value = _values(file)
    n = len(file.model.speeds) - 1
    joints = [Joint(-1, "px", mass=value["m_0"])]
    for i in range(n):
        offset = (value[f"l_{i}"], 0.0, 0.0) if i else ZERO
        joints.append(Joint(i, "rz", offset, value[f"m_{i + 1}"], (value[f"l_{i + 1}"], 0.0, 0.0)))
    change = np.eye(n + 1)
    change[1:, 1:] = np.tril(np.ones((n, n)))
    return Tree(tuple(joints), (0.0, -value["g"], 0.0), change)


def spatial_chain(file: ModelFile) -> Tree:
    """`spatial_chain`: links on universal joints."""
    value = _values(file)
    n = len(file.model.speeds) // 2
    joints: list[Joint] = []
    for i in range(1, n + 1):
        offset = (0.0, 0.0, -value[f"l_{i - 1}"]) if joints else ZERO
        inertia = (value[f"Ixx_{i}"], value[f"Iyy_{i}"], value[f"Izz_{i}"])
        joints.append(Joint(len(joints) - 1, "rx", offset))
        joints.append(Joint(len(joints) - 1, "ry", ZERO, value[f"m_{i}"], (0.0, 0.0, -value[f"l_{i}"] / 2), inertia))
    return Tree(tuple(joints), (0.0, 0.0, -value["g"]), np.eye(2 * n))


def humanoid(file: ModelFile) -> Tree:
    """`humanoid`: a free pelvis, and rotations one after the other in each joint, with a spring and a damper."""
    value = _values(file)
    example = python_module(file.path)

    def body(name: str) -> dict[str, Any]:
        center = (value.get(f"cx_{name}", 0.0), 0.0, value[f"cz_{name}"])
        inertia = tuple(value[f"I{axis}{axis}_{name}"] for axis in "xyz")
        return {"mass": value[f"m_{name}"], "center": center, "inertia": inertia}

    joints = [Joint(-1, "free", **body("pelvis"))]
    carriers = {"pelvis": 0}
    spring: dict[str, Any] = {"stiffness": value["k"], "damping": value["d"]}
    for side, name, joint in example.sided():
        y, z = (value.get(f"{axis}_{name}", 0.0) for axis in "yz")
        offset = (0.0, -y if side == "_r" else y, z)
        parent = carriers[joint.parent if joint.parent in example.TRUNK else joint.parent + side]
        for axis in joint.axes[:-1]:
            joints.append(Joint(parent, f"r{axis}", offset, **spring))
            parent, offset = len(joints) - 1, ZERO
        joints.append(Joint(parent, f"r{joint.axes[-1]}", offset, **body(joint.child), **spring))
        carriers[joint.child + side] = len(joints) - 1
    return Tree(tuple(joints), (0.0, 0.0, -value["g"]), np.eye(len(file.model.speeds)))


def _values(file: ModelFile) -> dict[str, float]:
    return {str(symbol): float(number) for symbol, number in file.model.parameters.items() if number is not None}


def grouped(joints: Sequence[Joint]) -> list[tuple[int, list[int]]]:
    """Joints without mass together with the joint that follows them at the same place, as pairs (parent, indices)."""
    groups: list[tuple[int, list[int]]] = []
    owner: dict[int, int] = {-1: -1}
    for k, joint in enumerate(joints):
        last = groups[-1][1] if groups else []
        if last and joint.parent == last[-1] and not joints[last[-1]].mass and joint.offset == ZERO:
            last.append(k)
        else:
            groups.append((owner[joint.parent], [k]))
        owner[k] = len(groups) - 1
    return groups
