"""The places where the expressions of a model occur, and how often the derivation differentiates them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy.physics.mechanics import Point, RigidBody

from kanegen.model.description import CONSTRAINT_KINDS, SystemDescription
from kanegen.model.expressions import (
    atoms,
    base_symbol,
    derivatives,
    dyadic_expressions,
    dyadic_frames,
    is_time_function,
    symbol_name,
    vector_expressions,
    vector_frames,
)
from kanegen.model.geometry import Geometry, Pair, Route, Routes, breadth_first, is_ground, path, position_path, steps
from kanegen.model.reactions import Reaction


@dataclass(frozen=True)
class Place:
    """The expressions of one place in a model, such as a constraint or the velocity of a point.

    ``kind`` is one of the keys of :data:`~kanegen.model.checks.symbols.ALLOWED`. ``differentiations`` is the number of
    total time derivatives the derivation takes of the expressions.
    """

    kind: str
    where: str
    expressions: tuple[Any, ...]
    differentiations: int = 0

    @cached_property
    def atoms(self) -> frozenset[Any]:
        """The symbols, dynamic symbols and derivatives in the expressions."""
        return atoms(self.expressions)


@dataclass(frozen=True)
class Survey:
    """The places of a model, the frames and points that it uses, and the ``problems`` of these."""

    places: tuple[Place, ...]
    geometry: Geometry
    problems: tuple[str, ...]


def survey(model: SystemDescription) -> Survey:
    """Every place of ``model``, and the problems of its frames and points."""
    walk = _Walk(model.frame, _motion_is_known(model))
    for body in model.bodies:
        walk.add_body(body)
    walk.add_loads("load", "the load", model.effective_loads)
    for name, pairs in model.impulses.items():
        walk.add_loads("impulse", f"the impulse {name!r}", pairs)
    for contact in model.resolved_contacts:
        walk.add_loads("contact force", f"the force of contact {contact.name!r}", contact.forces)
    for name, reaction in model.reactions.items():
        walk.add_reaction(f"reactions[{name!r}]", reaction, model)
    if model.gravity is not None:
        walk.add_vector("gravity", "gravity", model.gravity)
    walk.add_frames()
    return Survey((*_scalar_places(model), *walk.places), walk.geometry(), tuple(walk.problems))


def _motion_is_known(model: SystemDescription) -> Callable[[Any], bool]:
    """Whether the first and second rate of a symbol are known: coordinates, constants, inputs given with both."""
    known = {item.symbol for item in model.inputs if item.rate is not None and item.acceleration is not None}
    known |= {*model.coordinates}
    # SymPy differentiates a plain symbol as a constant, so that the rate of an input would be lost.
    inputs = {item.symbol for item in model.inputs}
    return lambda symbol: symbol in known if not symbol.is_Symbol else symbol not in inputs


def _scalar_places(model: SystemDescription) -> list[Place]:
    places = [Place("kinematics", f"kinematics[{k}]", (expr,)) for k, expr in enumerate(model.kinematics)]
    places += [
        Place(kind.level, f"{kind.field}[{k}]", (expr,), kind.differentiations)
        for kind in CONSTRAINT_KINDS
        for k, expr in enumerate(getattr(model, kind.field))
    ]
    if model.potential_energy is not None:
        places.append(Place("potential energy", "potential_energy", (model.potential_energy,)))
    if model.lagrangian is not None:
        places.extend(_lagrangian_places(model))
    places.extend(Place("rate", f"the rate of state {symbol_name(s)}", (rate,)) for s, rate in model.states.items())
    for change in model.speed_changes:
        # Accelerations contain the rates of Phi1 and Phi2.
        definitions = enumerate(change.definitions or ())
        places.extend(Place("speed definition", f"definitions[{k}]", (expr,), 1) for k, expr in definitions)
    for item in model.inputs:
        if item.law is not None:
            places.append(Place("feedback", f"the law of input {item.name}", (item.law,)))
            places.extend(Place("limit", f"the {what} of input {item.name}", (x,)) for what, x in item.limits.items())
    places.extend(Place("output", f"outputs[{name!r}]", item.expressions) for name, item in model.outputs.items())
    if model.control is not None:
        places.extend(Place(*item) for item in model.control.places())
    return [*places, *_contact_places(model)]


def _lagrangian_places(model: SystemDescription) -> Iterator[Place]:
    """L and, because only they are differentiated, the momenta ``dL/dq'`` if L contains inputs, declared or not."""
    given = Place("lagrangian", "lagrangian", (model.lagrangian,))
    inputs, known = {item.symbol for item in model.inputs}, {*model.coordinates}
    symbols = {*map(base_symbol, given.atoms)} - known
    if not any(symbol in inputs or is_time_function(symbol) for symbol in symbols):
        yield Place("lagrangian", "lagrangian", (model.lagrangian,), 1)
        return
    yield given
    rates = derivatives(model.lagrangian, model.coordinates, 1)
    momenta = (model.lagrangian.diff(rate) for rate in sorted(rates, key=symbol_name))
    yield Place("momentum", "the momenta dL/dq' of lagrangian", tuple(momenta), 1)


def _contact_places(model: SystemDescription) -> Iterator[Place]:
    for contact in model.resolved_contacts:
        of = f"of contact {contact.name!r}"
        if contact.gap is not None:
            kind = "gap" if contact.level == 2 else "velocity gap"
            yield Place(kind, f"the gap {of}", (contact.gap,), contact.level)
        if contact.load is not None:
            yield Place("normal load", f"the normal force {of}", (contact.load,))
        yield Place("slip", f"the slip velocity {of}", contact.slip, 1)
        yield Place("law", f"the law {of}", tuple(value.expression for value in contact.values()))
    for event in model.events:
        yield Place("guard", f"the guard of event {event.name!r}", (event.guard,))
        if event.reset:
            yield Place("reset", f"the reset of event {event.name!r}", tuple(event.reset.values()))


class _Walk:
    """Collects the places of vectors, points and frames, each once."""

    def __init__(self, frame: Any, motion_is_known: Callable[[Any], bool]) -> None:
        self.frame = frame
        self.places: list[Place] = []
        self.problems: list[str] = []
        self._oriented = breadth_first(frame, lambda node: node._dcm_dict)
        self._moving = breadth_first(frame, lambda node: node._ang_vel_dict)
        self._finder = Routes(frame, self._oriented, motion_is_known)
        self._routes: dict[Any, Route | None] = {}
        self._velocities: dict[Any, None] = {}
        self._positions: dict[Pair, int] = {}
        self._orientations: dict[Pair, None] = {}
        self._rates: dict[Pair, None] = {}
        self._written_in: dict[Any, str] = {}
        self._turning: dict[Any, str] = {}

    def geometry(self) -> Geometry:
        """The frames and points that were read."""
        routes = {point: route for point, route in self._routes.items() if route is not None}
        pairs = tuple(self._orientations), tuple(self._rates), tuple(self._positions)
        return Geometry(self._oriented, self._moving, routes, *pairs, tuple(self._velocities))

    def add_body(self, body: Any) -> None:
        where = f"body {body.name}"
        self._add_point(body.masscenter, where)
        if is_ground(body, self.frame):
            return
        self.places.append(Place("mass", f"the mass of {where}", () if body.mass is None else (body.mass,), 1))
        if not isinstance(body, RigidBody):
            return
        self._turning.setdefault(body.frame, where)
        dyadic, about = body.inertia
        where = f"the inertia of {where}"
        self.places.append(Place("inertia", where, dyadic_expressions(dyadic), 1))
        for frame in dyadic_frames(dyadic):
            self._written_in.setdefault(frame, where)
            self._turning.setdefault(frame, where)
        chain = [] if about is body.masscenter else position_path(about, body.masscenter)
        self._add_positions(steps(chain or []), 0)
        if chain is None:
            self.problems.append(
                f"{where} is about point {about}, which has no position relative to the mass center "
                f"{body.masscenter}: connect them with set_pos, or give the central inertia"
            )

    def add_loads(self, kind: str, what: str, loads: Iterable[Pair]) -> None:
        for location, vector in loads:
            where = f"{what} on {location}"
            self.add_vector(kind, where, vector)
            if isinstance(location, Point):
                self._add_point(location, where)
            else:
                self._turning.setdefault(location, where)

    def add_reaction(self, where: str, reaction: Reaction, model: SystemDescription) -> None:
        """Add the frame and positions of a reaction; the check of reactions reports a point without positions."""
        self._written_in.setdefault(reaction.frame, where)
        placed = [location for location, _ in (*model.loads, *model.contact_loads)]
        placed += [location for _, location, _ in reaction.all_multiplier_loads]
        points = [location for location in placed if isinstance(location, Point)]
        centers = [body.masscenter for body in model.bodies]
        # Moments are taken about the point of the reaction, and loads are assigned to bodies by their positions.
        for start, ends in ((reaction.point, (*centers, *points)), *((center, points) for center in centers)):
            for end in ends:
                self._add_positions(steps(position_path(start, end) or []), 0)
        for _, location, vector in reaction.all_multiplier_loads:
            self.add_vector("constraint force", f"the constraint force of {where} on {location}", vector)

    def add_vector(self, kind: str, where: str, vector: Any, differentiations: int = 0) -> None:
        self.places.append(Place(kind, where, vector_expressions(vector), differentiations))
        for frame in vector_frames(vector):
            self._written_in.setdefault(frame, where)
            if differentiations:
                self._turning.setdefault(frame, where)

    def _add_point(self, point: Any, where: str) -> None:
        if point in self._routes:
            return
        route = self._routes[point] = self._finder.route(point)
        if route is None:
            self.problems.append(
                f"no point with a known velocity is connected to point {point} ({where}): set the velocity of a fixed "
                f"point, O.set_vel({self.frame}, 0), and positions from it, or {point}.set_vel({self.frame}, ...)"
            )
            return
        for known in route.along:
            if self.frame in known._vel_dict and known not in self._velocities:
                self._velocities[known] = None
                velocity = known._vel_dict[self.frame]
                self.add_vector("velocity", f"the velocity of point {known} in {self.frame}", velocity, 1)
        self._add_positions((*steps(route.along), *steps(route.beyond)), 2)

    def _add_positions(self, pairs: Iterable[Pair], differentiations: int) -> None:
        for point, other in pairs:
            if self._positions.get((point, other), -1) < differentiations:
                self._positions[point, other] = differentiations
                where = f"the position of point {point} from {other}"
                self.add_vector("position", where, point._pos_dict[other], differentiations)

    def add_frames(self) -> None:
        """Add the orientations and angular velocities that the collected vectors and bodies need; call last."""
        done = 0
        while done < len(self._turning):  # angular velocities are written in frames that may be new
            frame = [*self._turning][done]
            done += 1
            if frame not in self._moving:
                self._unconnected(frame, self._turning[frame])
                continue
            for parent, child in path(self._moving, frame):
                if (parent, child) not in self._rates:
                    self._rates[parent, child] = None
                    where = f"the angular velocity of frame {child} in {parent}"
                    self.add_vector("angular velocity", where, child._ang_vel_dict[parent], 1)
        for frame, where in self._written_in.items():
            if frame in self._oriented:
                self._orientations.update(dict.fromkeys(path(self._oriented, frame)))
            elif frame not in self._turning:
                self._unconnected(frame, where)
        for parent, child in self._orientations:
            where = f"the orientation of frame {child} in {parent}"
            self.places.append(Place("orientation", where, tuple(parent._dcm_dict[child])))

    def _unconnected(self, frame: Any, where: str) -> None:
        self.problems.append(
            f"frame {frame} ({where}) is not connected to the inertial frame {self.frame}: orient it relative to a "
            f"frame that is, such as {frame}.orient_axis({self.frame}, ...)"
        )
