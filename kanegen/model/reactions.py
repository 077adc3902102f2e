"""Reactions: the force and torque that the rest of a mechanism exerts on a set of its bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector

from kanegen.errors import brief
from kanegen.model import normalize
from kanegen.model.records import Composite, FrozenMapping, settle

MultiplierLoads = tuple[tuple[Any, Any], ...]
"""Pairs (point, direction of the force) or (frame, direction of the torque)."""


@dataclass(frozen=True, eq=False)
class Reaction:
    """The force and torque that the rest of the mechanism exerts on a set of bodies.

    Newton's and Euler's equations of the set are solved for the reaction:
    ``force = sum (m v)' - sum R`` and ``torque = sum (r x (m v)' + H') - sum (r x R + M)``, r from ``point``, with
    the loads R, M of the model (and the weights) that act on the set. If one joint connects the set with the rest, the
    result is the reaction of that joint; if several joints do, it is the sum of their reactions.

    Parameters
    ----------
    bodies
        The set: names of bodies of the model, or the bodies, also flexible ones.
    point
        The point of application of the force, about which the torque is taken, such as the point of the joint. A
        position must connect it with the mass centers of the set.
    frame
        The frame in which force and torque are measured.
    loads
        Places (points, frames) of those loads of the model that act on the set. None: the loads on mass centers and
        frames of its bodies and on points and frames fixed in them; loads on points at rest and on frames that do
        not turn act on the ground. Required only if the body of a load is not unique, as at the point of a joint
        between two bodies, or if a point moves with no body.
    multipliers
        Further constraint forces on the set: a mapping from a row of J to ``(point, direction)`` or
        ``(frame, direction)``, or a sequence of such pairs. A force (torque) of multiplier times direction counts
        as a load of the set and is not part of the reaction.

    Raises
    ------
    ModelError
        For arguments of another kind.
    """

    bodies: Any
    point: Any
    frame: Any
    loads: tuple[Any, ...] | None = None
    multipliers: Mapping[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems: list[str] = []
        loads = None if self.loads is None else normalize.listed(self.loads)
        bodies = tuple(
            member
            for body in normalize.listed(self.bodies)
            for member in (body.particles if isinstance(body, Composite) else (body,))
        )
        if not bodies or not all(isinstance(body, str | Particle | RigidBody) for body in bodies):
            problems.append(f"bodies is {brief(self.bodies)}: expected names of bodies, or bodies, at least one")
        normalize.expect(self.point, Point, "point", "a sympy.physics.mechanics Point", problems)
        normalize.expect(self.frame, ReferenceFrame, "frame", "a sympy.physics.mechanics ReferenceFrame", problems)
        if not all(isinstance(place, Point | ReferenceFrame) for place in loads or ()):
            problems.append(f"loads is {brief(self.loads)}: expected the points and frames on which loads act")
        multipliers = FrozenMapping(_multiplier_loads(self.multipliers, problems))
        settle(self, {"bodies": bodies, "loads": loads, "multipliers": multipliers}, problems, "Reaction: ")

    def members(self, bodies: Sequence[Any]) -> tuple[int, ...]:
        """Indices of the set among the bodies of a model."""
        return tuple(k for k, body in enumerate(bodies) if body.name in self.bodies or body in self.bodies)

    @property
    def all_multiplier_loads(self) -> tuple[tuple[int, Any, Any], ...]:
        """Triples (row of J, point or frame, direction)."""
        return tuple((row, place, vector) for row, pairs in self.multipliers.items() for place, vector in pairs)


def _multiplier_loads(value: Any, problems: list[str]) -> dict[int, MultiplierLoads]:
    if not normalize.expect(value, Mapping, "multipliers", "a mapping from a row of J to (point, direction)", problems):
        return {}
    loads: dict[int, MultiplierLoads] = {}
    for row, given in value.items():
        pairs = (tuple(given),) if _is_pair(given) else tuple(given) if isinstance(given, Sequence) else ()
        if not isinstance(row, int) or not pairs or not all(map(_is_pair, pairs)):
            problems.append(
                f"multipliers[{brief(row)}] is {brief(given)}: expected a row of J (0, 1, ...) with (point, direction) "
                "or (frame, direction), the direction a Vector"
            )
        else:
            loads[row] = pairs
    return loads


def _is_pair(value: Any) -> bool:
    is_pair = isinstance(value, Sequence) and len(value) == 2
    return is_pair and isinstance(value[0], Point | ReferenceFrame) and isinstance(value[1], Vector)


def normalized_reactions(value: Any, what: str, problems: list[str]) -> FrozenMapping[str, Reaction]:
    """The reactions of a model by name."""
    return FrozenMapping(
        (name, item)
        for name, item in normalize.named(value, what, "a kg.Reaction", problems)
        if normalize.expect(item, Reaction, f"{what}[{name!r}]", "a kg.Reaction", problems)
    )
