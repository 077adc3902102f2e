"""Where which expression stands in a model, and how often the derivation differentiates it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sympy.physics.mechanics import Point, RigidBody

from kanegen.model.check_servo import servo_expressions
from kanegen.model.contact import contacts_of
from kanegen.model.control_constraints import control_constraint_expressions
from kanegen.model.expressions import (
    atoms,
    dyadic_expressions,
    dyadic_frames,
    vector_expressions,
    vector_frames,
)
from kanegen.model.geometry import motion_tree, orientation_tree, path, position_path, velocity_source
from kanegen.model.speeds import speed_changes

if TYPE_CHECKING:
    from kanegen.model.model import Model
    from kanegen.model.reactions import Reaction


@dataclass(frozen=True)
class Place:
    """Expressions of one origin.

    ``kind`` is one of kinematics, holonomic, nonholonomic, acceleration, load, mass, inertia, position,
    velocity, orientation, angular velocity, gravity, potential energy, output, gap, velocity gap, slip, contact force,
    law, normal load, guard, impulse, servo position, servo velocity, servo gain, servo law. ``differentiations`` is
    the number of total time derivatives the derivation takes of them.
    """

    kind: str
    where: str
    expressions: tuple[Any, ...]
    differentiations: int
    atoms: frozenset[Any]


def place(kind: str, where: str, expressions: Iterable[Any], differentiations: int = 0) -> Place:
    """A :class:`Place` with its atoms read."""
    listed = tuple(expressions)
    return Place(kind, where, listed, differentiations, atoms(listed))


@dataclass(frozen=True)
class Geometry:
    """What the derivation will walk, and where it would get stuck (``problems``)."""

    places: tuple[Place, ...]
    problems: tuple[str, ...]


def model_places(model: Model) -> Geometry:
    """Every place of ``model``, and the problems of its frames and points."""
    walk = _Walk(model.frame)
    for body in model.bodies:
        walk.add_body(body)
    for location, vector in model.loads:
        walk.add_load(location, vector)
    for name, pairs in model.impulses.items():
        for location, vector in pairs:
            walk.add_load(location, vector, "impulse", f"the impulse {name!r} on {location}")
    for contact in contacts_of(model):
        for location, vector in contact.forces:
            walk.add_load(location, vector, "contact force", f"the force of contact {contact.name!r} on {location}")
    for name, reaction in model.reactions.items():
        walk.add_reaction(f"reactions[{name!r}]", reaction, model.bodies)
    if model.gravity is not None:
        walk.add_vector("gravity", "gravity", model.gravity)
    walk.add_frames()
    return Geometry((*_scalar_places(model), *walk.places), tuple(walk.problems))


def _scalar_places(model: Model) -> list[Place]:
    kinds = (
        ("kinematics", "kinematics", model.kinematics, 0),
        ("holonomic", "holonomic_constraints", model.holonomic_constraints, 2),
        ("nonholonomic", "nonholonomic_constraints", model.nonholonomic_constraints, 1),
        ("acceleration", "acceleration_constraints", model.acceleration_constraints, 0),
    )
    found = [
        place(kind, f"{field}[{k}]", (expr,), order)
        for kind, field, expressions, order in kinds
        for k, expr in enumerate(expressions)
    ]
    if model.potential_energy is not None:
        found.append(place("potential energy", "potential_energy", (model.potential_energy,)))
    for change in speed_changes(model):
        # Accelerations contain the rates of Phi1 and Phi2.
        definitions = enumerate(change.definitions or ())
        found.extend(place("speed definition", f"definitions[{k}]", (expr,), 1) for k, expr in definitions)
    found.extend(place("output", f"outputs[{name!r}]", item) for name, item in model.outputs.items())
    if model.servo is not None:
        found.extend(place(*item) for item in servo_expressions(model.servo))
    if model.control_constraints is not None:
        found.extend(place(*item) for item in control_constraint_expressions(model.control_constraints))
    return [*found, *_contact_places(model)]


def _contact_places(model: Model) -> Iterator[Place]:
    for contact in contacts_of(model):
        of = f"of contact {contact.name!r}"
        if contact.gap is not None:
            kind = "gap" if contact.level == 2 else "velocity gap"
            yield place(kind, f"the gap {of}", (contact.gap,), contact.level)
        if contact.load is not None:
            yield place("normal load", f"the normal force {of}", (contact.load,))
        yield place("slip", f"the slip velocity {of}", contact.slip, 1)
        yield place("law", f"the law {of}", (value.expression for value in contact.values()))
    for event in model.events:
        yield place("guard", f"the guard of event {event.name!r}", (event.guard,))


class _Walk:
    """Collects the places of vectors, points and frames, each once."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.places: list[Place] = []
        self.problems: list[str] = []
        self._oriented = orientation_tree(frame)
        self._moving = motion_tree(frame)
        self._points: set[Any] = set()
        self._written_in: dict[Any, str] = {}
        self._turning: dict[Any, str] = {}

    def add_body(self, body: Any) -> None:
        where = f"body {body.name}"
        self.places.append(place("mass", f"the mass of {where}", () if body.mass is None else (body.mass,), 1))
        if not isinstance(body, RigidBody):
            self._add_point(body.masscenter, where)
            return
        self._turning.setdefault(body.frame, where)
        self._add_point(body.masscenter, where)
        dyadic, about = body.inertia
        self.places.append(place("inertia", f"the inertia of {where}", dyadic_expressions(dyadic), 1))
        for frame in dyadic_frames(dyadic):
            self._written_in.setdefault(frame, f"the inertia of {where}")
            self._turning.setdefault(frame, f"the inertia of {where}")
        if about is not body.masscenter:
            self._add_inertia_point(body, about, where)

    def _add_inertia_point(self, body: Any, about: Any, where: str) -> None:
        chain = position_path(body.masscenter, about)
        if chain is None:
            self.problems.append(
                f"the inertia of {where} is about point {about}, which has no position relative to the mass "
                f"centre {body.masscenter}: connect them with set_pos, or give the central inertia"
            )
            return
        self._add_positions(chain, 0)

    def add_load(self, location: Any, vector: Any, kind: str = "load", where: str = "") -> None:
        where = where or f"the load on {location}"
        self.add_vector(kind, where, vector)
        if isinstance(location, Point):
            self._add_point(location, where)
        else:
            self._turning.setdefault(location, where)

    def add_reaction(self, where: str, reaction: Reaction, bodies: Sequence[Any]) -> None:
        """Its frame and positions; a point without positions is reported with the reactions."""
        self._written_in.setdefault(reaction.frame, where)
        places = [place for _, place, _ in reaction.all_multiplier_loads if isinstance(place, Point)]
        for point in (*(bodies[k].masscenter for k in reaction.members(bodies)), *places):
            self._add_positions(position_path(point, reaction.point) or [], 0)
        for _, place, vector in reaction.all_multiplier_loads:
            self.add_vector("load", f"the constraint force of {where} on {place}", vector)

    def add_vector(self, kind: str, where: str, vector: Any, differentiations: int = 0) -> None:
        self.places.append(place(kind, where, vector_expressions(vector), differentiations))
        for frame in vector_frames(vector):
            self._written_in.setdefault(frame, where)
            if differentiations:
                self._turning.setdefault(frame, where)

    def _add_point(self, point: Any, where: str) -> None:
        if point in self._points:
            return
        self._points.add(point)
        chain = velocity_source(point, self.frame)
        if chain is None:
            self.problems.append(
                f"no point with a known velocity is connected to point {point} ({where}): set the velocity "
                f"of a fixed point, O.set_vel({self.frame}, 0), and positions from it, or "
                f"{point}.set_vel({self.frame}, ...)"
            )
            return
        source = chain[-1]
        self.add_vector("velocity", f"the velocity of point {source} in {self.frame}", source._vel_dict[self.frame], 1)
        self._add_positions(chain, 2)

    def _add_positions(self, chain: list[Any], differentiations: int) -> None:
        for point, other in pairwise(chain):
            where = f"the position of point {point} from {other}"
            self.add_vector("position", where, point._pos_dict[other], differentiations)

    def add_frames(self) -> None:
        """The orientations and angular velocities that the collected vectors and bodies need; call last."""
        orientations: dict[tuple[Any, Any], None] = {}
        rates: dict[tuple[Any, Any], None] = {}
        pending = [*self._turning]
        while pending:
            frame = pending.pop(0)
            if frame not in self._moving:
                self._unconnected(frame, self._turning[frame])
                continue
            for pair in path(self._moving, frame):
                if pair not in rates:
                    rates[pair] = None
                    self._add_rate(*pair)
        for frame, where in self._written_in.items():
            if frame in self._oriented:
                orientations.update(dict.fromkeys(path(self._oriented, frame)))
            elif frame not in self._turning or frame in self._moving:
                self._unconnected(frame, where)
        for parent, child in orientations:
            where = f"the orientation of frame {child} in {parent}"
            self.places.append(place("orientation", where, parent._dcm_dict[child]))

    def _add_rate(self, parent: Any, child: Any) -> None:
        self.add_vector(
            "angular velocity",
            f"the angular velocity of frame {child} in {parent}",
            child._ang_vel_dict[parent],
            1,
        )

    def _unconnected(self, frame: Any, where: str) -> None:
        self.problems.append(
            f"frame {frame} ({where}) is not connected to the inertial frame {self.frame}: "
            f"orient it relative "
            f"to a frame that is, such as {frame}.orient_axis({self.frame}, ...)"
        )
