"""The shapes of bodies for which the user gives none.

Points fixed in a rigid body, such as joints, are connected by bars; a body without such points is the homogeneous body
of its inertia; particles are spheres, with thin bars to the points from which they keep their distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import sympy
from sympy.physics.mechanics import RigidBody

from kanegen.arrays import Array
from kanegen.model.expressions import (
    atoms,
    dyadic_frames,
    dyadic_matrix,
    known_value,
    vector_expressions,
    vector_frames,
)
from kanegen.model.geometry import is_ground
from kanegen.view.meshes import unit
from kanegen.view.poses import NotKnownError, Poses
from kanegen.view.rotations import from_axis
from kanegen.view.solids import ALIKE, Bar, Solid, placed, same_inertia

BALL: Final = 0.035
"""Radius of the heaviest particle relative to the size of the mechanism."""

THIN: Final = 0.012
"""Radius of a guessed bar relative to the size of the mechanism."""

SLENDER: Final = 0.1
"""Largest radius of a guessed bar relative to the distance of its end from the mass center."""

Part = Solid | Bar


class Guess:
    """Guesses the shapes of bodies of a model; ``size`` is that of the mechanism, m."""

    def __init__(self, poses: Poses, size: float) -> None:
        self._poses, self._model, self._size = poses, poses.model, size
        self._values = dict(zip(poses.model.parameters, poses.motion.parameters, strict=True))
        masses = [known_value(sympy.sympify(body.mass or 0), self._values) for body in poses.model.bodies]
        self._heaviest = max((mass for mass in masses if mass is not None), default=0.0)

    def parts(self, body: Any) -> Iterator[Part]:
        """The solids and bars of a body."""
        if is_ground(body, self._model.frame):
            return
        yield from self._rigid(body) if isinstance(body, RigidBody) else self._particle(body)

    def extent(self, body: Any) -> float:
        """The largest dimension of a rigid body: of its fixed points, or of the homogeneous body with its inertia."""
        reach = [2.0 * float(np.linalg.norm(spot)) for spot in self._fixed_points(body).values()]
        whole = self._homogeneous(body)
        if whole is not None and not reach:
            reach.append(2.0 * float(np.linalg.norm(whole.local[:3, :3], axis=0).max()))
        return max(reach, default=0.0)

    # -- particles ------------------------------------------------------------------------------------------

    def _particle(self, body: Any) -> Iterator[Part]:
        mass = self._number(body.mass) or 0.0
        share = (mass / self._heaviest) ** (1 / 3) if self._heaviest > 0.0 else 1.0
        radius = BALL * self._size * max(0.5, share)
        center = body.masscenter
        yield Solid(unit("sphere"), placed([radius] * 3), center, self._model.frame)
        for neighbor, position in center._pos_dict.items():
            turning = position != 0 and self._model.frame not in vector_frames(position)
            if turning and self._is_constant(position):
                yield Bar(neighbor, center, 0.6 * THIN * self._size)

    # -- rigid bodies ---------------------------------------------------------------------------------------

    def _rigid(self, body: Any) -> Iterator[Part]:
        fixed = self._fixed_points(body)
        if not fixed:
            whole = self._homogeneous(body)
            if whole is not None:
                yield whole
            return
        spots = np.array(list(fixed.values()))
        thin = self._thin(spots)
        direction = spots[np.argmax(np.linalg.norm(spots, axis=1))]
        along = spots @ direction / np.linalg.norm(direction)
        straight = np.linalg.norm(np.cross(spots, direction)) <= 1e-6 * float(direction @ direction)
        if straight and (along.min() < 0.0 or not self._is_rod(body, float(along.max()))):
            points = [*fixed, body.masscenter]
            reach = [*along, 0.0]
            yield Bar(points[int(np.argmin(reach))], points[int(np.argmax(reach))], thin)
        elif straight:  # a uniform rod of which the user placed one end
            yield self._rod(body, direction, thin)
        else:
            for point in fixed:
                yield Bar(body.masscenter, point, thin)
        grown = 1.4 + 0.15 * (self._model.bodies.index(body) % 4)  # joints of neighbors do not coincide
        for point in fixed:
            yield Solid(unit("sphere"), placed([grown * thin] * 3), point, body.frame)
        if straight and along.min() >= 0.0 and not self._is_rod(body, float(along.max())):
            yield Solid(unit("sphere"), placed([0.7 * BALL * self._size] * 3), body.masscenter, body.frame)

    def _thin(self, spots: Array) -> float:
        """The radius of the bars of a body."""
        return min(THIN * self._size, SLENDER * float(np.linalg.norm(spots, axis=1).max())) or THIN * self._size

    def _rod(self, body: Any, half: Array, thin: float) -> Solid:
        local = placed((thin, thin, 2.0 * np.linalg.norm(half)), from_axis(half))
        return Solid(unit("cylinder"), local, body.masscenter, body.frame)

    def _is_rod(self, body: Any, half: float) -> bool:
        """Whether the largest central moment is that of a uniform rod of length ``2 half``."""
        mass, inertia = self._number(body.mass), self._inertia(body)
        if mass is None or inertia is None:
            return False
        rod = mass * (2.0 * half) ** 2 / 12.0
        return bool(abs(np.linalg.eigvalsh(inertia).max() - rod) <= ALIKE * rod)

    def _homogeneous(self, body: Any) -> Solid | None:
        mass, inertia = self._number(body.mass), self._inertia(body)
        shape = None if mass is None or inertia is None else same_inertia(mass, inertia)
        if shape is None:
            return None
        name, scale = shape
        local = np.eye(4)
        local[:3, :3] = scale
        return Solid(unit(name), local, body.masscenter, body.frame)

    def _inertia(self, body: Any) -> Array | None:
        """The central inertia (3, 3) in the frame of the body at the start of the motion, or None."""
        dyadic, about = body.inertia
        first = self._poses.motion.times[:1]
        try:
            body_axes = self._poses.orientation(body.frame, first)[0]
            total = np.zeros((3, 3))
            for frame, block in dyadic_matrix(dyadic).items():
                own = self._poses.expressions([x for row in block for x in row], first).reshape(3, 3)
                R = np.eye(3) if frame is body.frame else body_axes.T @ self._poses.orientation(frame, first)[0]
                total += R @ own @ R.T
            if about is not body.masscenter:
                d = self._poses.position(body.masscenter, first)[0] - self._poses.position(about, first)[0]
                d = body_axes.T @ d
                total -= (self._number(body.mass) or 0.0) * (d @ d * np.eye(3) - np.outer(d, d))
        except NotKnownError:
            return None
        return total if len(dyadic_frames(dyadic)) == 1 and np.isfinite(total).all() else None

    def _fixed_points(self, body: Any) -> dict[Any, Array]:
        """The points fixed in a body apart from its mass center, with their positions from it in its frame."""
        spots = {body.masscenter: np.zeros(3)}
        pending = [body.masscenter]
        while pending:
            point = pending.pop()
            for other, position in point._pos_dict.items():
                # point._pos_dict[other] is the vector from other to point.
                if (
                    other in spots
                    or not self._is_constant(position)
                    or (position != 0 and vector_frames(position) != (body.frame,))
                ):
                    continue
                step = (
                    np.zeros(3)
                    if position == 0
                    else np.array([self._number(x) or 0.0 for x in vector_expressions(position)])
                )
                spots[other] = spots[point] - step
                pending.append(other)
        return {point: spot for point, spot in spots.items() if np.linalg.norm(spot) > 1e-9 * max(self._size, 1e-9)}

    # -- numbers --------------------------------------------------------------------------------------------

    def _is_constant(self, vector: Any) -> bool:
        return vector == 0 or atoms(vector_expressions(vector)) <= set(self._model.parameters)

    def _number(self, expression: Any) -> float | None:
        return known_value(sympy.sympify(expression), self._values)
