"""Reactions a user asks for: what the rest of a mechanism exerts on some of its bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector

from kanegen.errors import ModelError
from kanegen.model.contact.records import contacts_of
from kanegen.model.geometry.routes import breadth_first
from kanegen.model.records import FrozenMapping

if TYPE_CHECKING:
    from kanegen.model.model import Model

MultiplierLoads = tuple[tuple[Any, Any], ...]
"""Pairs (point, direction of the force) or (frame, direction of the torque)."""


@dataclass(frozen=True, eq=False)
class Reaction:
    """The force and torque that the rest of the mechanism exerts on a set of bodies.

    Newton's and Euler's equations of the set, solved for what its loads do not explain:
    ``force = sum (m v)' - sum R`` and ``torque = sum (r x (m v)' + H') - sum (r x R + M)``, r from ``point``, with
    the loads R, M of the model (and the weights) that act on the set. A set that one joint connects with the rest gives
    the reaction of that joint; a set cut at several joints, the sum of their reactions.

    Parameters
    ----------
    bodies
        The set: names of bodies of the model, or the bodies.
    point
        Where the force is applied and about which the torque is taken, such as the point of the joint. A position
        must connect it with the mass centers of the set.
    frame
        The frame in which force and torque are measured.
    loads
        Places (points, frames) of those loads of the model that act on the set. None finds them: a load on the mass
        center or frame of a body, or on a point or frame fixed in it; loads on points at rest and on frames that do
        not turn act on the ground. Needed only where that is not unique, as on the point of a joint between two
        bodies, or on a point that moves with none.
    multipliers
        Constraint forces that act on the set elsewhere: from the row of J to ``(point, direction)`` or
        ``(frame, direction)``, or a sequence of such pairs. A force (torque) of multiplier times direction counts
        as a load of the set, which separates the reactions of a set that is cut at a constraint as well.

    Raises
    ------
    ModelError
        For arguments of another kind.
    """

    bodies: tuple[Any, ...]
    point: Any
    frame: Any
    loads: tuple[Any, ...] | None = None
    multipliers: Mapping[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems: list[str] = []
        bodies = _listed(self.bodies)
        if not bodies or not all(isinstance(body, str | Particle | RigidBody) for body in bodies):
            problems.append(f"bodies is {self.bodies!r}: expected names of bodies, or bodies, at least one")
        if not isinstance(self.point, Point):
            problems.append(f"point is {self.point!r}: expected a sympy.physics.mechanics Point")
        if not isinstance(self.frame, ReferenceFrame):
            problems.append(f"frame is {self.frame!r}: expected a sympy.physics.mechanics ReferenceFrame")
        loads = None if self.loads is None else _listed(self.loads)
        if not all(isinstance(place, Point | ReferenceFrame) for place in loads or ()):
            problems.append(f"loads is {self.loads!r}: expected the points and frames on which loads act")
        multipliers = _multiplier_loads(self.multipliers, problems)
        if problems:
            raise ModelError(tuple(f"Reaction: {problem}" for problem in problems))
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "loads", loads)
        object.__setattr__(self, "multipliers", FrozenMapping(multipliers))

    def members(self, bodies: Sequence[Any]) -> tuple[int, ...]:
        """Indices of the set among the bodies of a model."""
        return tuple(k for k, body in enumerate(bodies) if body.name in self.bodies or body in self.bodies)

    @property
    def all_multiplier_loads(self) -> tuple[tuple[int, Any, Any], ...]:
        """Triples (row of J, point or frame, direction)."""
        return tuple((row, place, vector) for row, pairs in self.multipliers.items() for place, vector in pairs)


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _multiplier_loads(value: Any, problems: list[str]) -> dict[int, MultiplierLoads]:
    if not isinstance(value, Mapping):
        problems.append(f"multipliers is {value!r}: expected a mapping from a row of J to (point, direction)")
        return {}
    found: dict[int, MultiplierLoads] = {}
    for row, given in value.items():
        pairs = _pairs(given)
        if not isinstance(row, int) or not pairs or not all(map(_is_pair, pairs)):
            problems.append(
                f"multipliers[{row!r}] is {given!r}: expected a row of J (0, 1, ...) with (point, direction) or "
                "(frame, direction), the direction a Vector"
            )
        else:
            found[row] = pairs
    return found


def _pairs(given: Any) -> MultiplierLoads:
    """One pair, or a sequence of pairs."""
    if not isinstance(given, Sequence):
        return ()
    return ((given[0], given[1]),) if _is_pair(given) else tuple(given)


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) == 2
        and isinstance(value[0], Point | ReferenceFrame)
        and isinstance(value[1], Vector)
    )


def normalized_reactions(value: Any, problems: list[str]) -> dict[str, Reaction]:
    """The reactions of a model by name."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.append(f"reactions is {value!r}: expected a mapping from a name to a kg.Reaction")
        return {}
    found: dict[str, Reaction] = {}
    for name, item in value.items():
        if not isinstance(name, str) or not name:
            problems.append(f"reactions has the name {name!r}: expected a string that is not empty")
        elif not isinstance(item, Reaction):
            problems.append(f"reactions[{name!r}] is {item!r}: expected a kg.Reaction")
        else:
            found[name] = item
    return found


def reaction_problems(model: Model) -> list[str]:
    """Problems of the bodies, points, loads and constraints that the reactions of a model name."""
    return [
        f"reactions[{name!r}]: {problem}"
        for name, reaction in model.reactions.items()
        for problem in (
            *_body_problems(model, reaction),
            *_point_problems(model, reaction),
            *_load_problems(model, reaction),
            *_row_problems(model, reaction),
        )
    ]


def _body_problems(model: Model, reaction: Reaction) -> list[str]:
    names = [body.name for body in model.bodies]
    problems = []
    for body in reaction.bodies:
        name = body if isinstance(body, str) else body.name
        if name not in names or not (isinstance(body, str) or body in model.bodies):
            problems.append(f"body {name!r} is not part of the model: expected some of {', '.join(names)}")
        elif isinstance(body, str) and names.count(name) > 1:
            problems.append(f"{names.count(name)} bodies are named {name!r}: give the body itself")
    return problems


def _point_problems(model: Model, reaction: Reaction) -> list[str]:
    problems = []
    for k in reaction.members(model.bodies):
        body = model.bodies[k]
        known = breadth_first(body.masscenter, lambda point: point._pos_dict)
        if reaction.point not in known:
            problems.append(
                f"point {reaction.point} is not part of the model: no position connects it with the mass center of "
                f"body {body.name}; position it with set_pos, or name one of the points "
                f"{', '.join(sorted(str(point) for point in known))}"
            )
    return problems


def _load_problems(model: Model, reaction: Reaction) -> list[str]:
    places = [place for place, _ in (*model.loads, *(pair for item in contacts_of(model) for pair in item.forces))]
    unknown = [place for place in reaction.loads or () if place not in places]
    if not unknown:
        return []
    known = ", ".join(dict.fromkeys(map(str, places))) or "nothing"
    return [f"no load acts on {', '.join(map(str, unknown))}: the loads of the model act on {known}"]


def _row_problems(model: Model, reaction: Reaction) -> list[str]:
    constraints = (
        *model.holonomic_constraints,
        *model.nonholonomic_constraints,
        *model.acceleration_constraints,
    )
    wrong = [row for row in reaction.multipliers if not 0 <= row < len(constraints)]
    if not wrong:
        return []
    known = ", ".join(f"{row} ({expression})" for row, expression in enumerate(constraints)) or "none"
    return [f"multipliers names the rows {', '.join(map(str, wrong))} of J: the constraints are {known}"]
