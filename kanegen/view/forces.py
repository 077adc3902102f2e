"""Forces and torques as arrows: of contacts, of the loads of the model, and reactions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sympy.physics.mechanics import Point, RigidBody

from kanegen.arrays import Array
from kanegen.model.expressions import atoms, base_symbol, vector_expressions
from kanegen.model.geometry import breadth_first
from kanegen.model.inputs import FORCES
from kanegen.model.records import ModalPoint
from kanegen.view.poses import NotKnownError, Poses
from kanegen.view.weights import weights

COLORS: Final = {"contact": "#d62728", "reaction": "#8a2be2", "control": "#62c400", "load": "#3f454d"}
"""Colors of the arrows by kind, none of them that of a body or of the ground."""


@dataclass(frozen=True, eq=False)
class Arrow:
    """A force or torque, ``vector`` (n, 3) in inertial components, that acts at the point ``foot``; unit N or N m."""

    kind: str
    name: str
    foot: Any
    vector: Array
    unit: str


def arrows(poses: Poses) -> Iterator[Arrow]:
    """All forces and torques of a motion whose places are known; the others are named in the notices of ``poses``."""
    for kind, name, place, compute in (*_contacts(poses), *_loads(poses)):
        try:
            vector = compute()
            foot = place if isinstance(place, Point) else _center(poses, place)
        except NotKnownError as error:
            poses.notices[f"{name} is not drawn: {error}"] = None
            continue
        if not np.isfinite(vector).any():
            poses.notices[f"{name} is not drawn: it depends on accelerations or is not known"] = None
        elif np.nan_to_num(vector).any():
            yield Arrow(kind, name, foot, np.nan_to_num(vector), "N" if isinstance(place, Point) else "N m")
    yield from _reactions(poses)


def _center(poses: Poses, frame: Any) -> Any:
    """The point at which the torque on a frame is drawn.

    It is the mass center of the body with this frame, an end of the massless rod with this frame, or the mass center of
    the next body, if the frame is between those of two bodies.
    """
    centers = {body.frame: body.masscenter for body in poses.model.bodies if isinstance(body, RigidBody)}
    if frame not in centers and (end := _rod_end(poses.model.bodies, frame)) is not None:
        return end
    for near in breadth_first(frame, lambda node: node._dcm_dict):
        if near in centers and near is not poses.model.frame:
            return centers[near]
    raise NotKnownError(f"no body turns with frame {frame}")


def _rod_end(bodies: Any, frame: Any) -> Any:
    """The point nearest to a mass center whose position from another point is a vector in ``frame``, or None."""
    for body in bodies:
        for point in breadth_first(body.masscenter, lambda node: node._pos_dict):
            if any(frame is direction for vector in point._pos_dict.values() for _, direction in vector.args):
                return point
    return None


def _contacts(poses: Poses) -> Iterator[tuple[str, str, Any, Any]]:
    model, times = poses.model, poses.motion.times
    for contact in model.resolved_contacts:
        places: dict[Any, list[tuple[int, Any]]] = {}
        for row, pairs in enumerate(contact.applied_at):
            for place, direction in pairs:
                places.setdefault(place, []).append((row, direction))
        for place, terms in places.items():

            def total(terms: list[tuple[int, Any]] = terms, first: int = contact.first_row) -> Array:
                force = poses.motion.rows(times)[FORCES]
                parts = [force[first + row][:, None] * poses.vector(direction, times) for row, direction in terms]
                return np.asarray(np.sum(parts, axis=0))

            yield "contact", f"the force of contact {contact.name!r}", place, total


def _loads(poses: Poses) -> Iterator[tuple[str, str, Any, Any]]:
    model, times = poses.model, poses.motion.times
    inputs, unseen = {item.symbol for item in model.inputs}, weights(model)[1]
    for place, vector in model.loads:
        if isinstance(place, ModalPoint) or (place, vector) in unseen or poses.at_rest(place):
            continue
        symbols = {base_symbol(x) for x in atoms(vector_expressions(vector))} if vector != 0 else set()
        kind = "control" if symbols & inputs else "load"
        yield kind, f"the load on {place}", place, lambda vector=vector: poses.vector(vector, times)


def _reactions(poses: Poses) -> Iterator[Arrow]:
    for name, (force, torque) in poses.motion.wrenches.items():
        reaction = poses.model.reactions[name]
        try:
            R = poses.orientation(reaction.frame, poses.motion.times)
        except NotKnownError as error:
            poses.notices[f"reaction {name!r} is not drawn: {error}"] = None
            continue
        for values, unit in ((force, "N"), (torque, "N m")):
            if np.nan_to_num(values).any():
                vector = np.einsum("nij,nj->ni", R, np.nan_to_num(values))
                yield Arrow("reaction", f"reaction {name!r}", reaction.point, vector, unit)
