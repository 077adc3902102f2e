"""The normalized description of a system, which checks, adapters and the derivation read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, TypeAlias

import sympy

from kanegen.model import normalize
from kanegen.model.contacts import (
    Contact,
    ContactRecord,
    Event,
    Multiplier,
    normalized_contacts,
    normalized_events,
    normalized_impulses,
    resolved_contacts,
)
from kanegen.model.control import ControlConstraints, Servo
from kanegen.model.expressions import atoms, base_symbol, derivative_order, vector_expressions
from kanegen.model.geometry import Geometry, is_ground
from kanegen.model.inputs import Input, normalized_inputs
from kanegen.model.reactions import Reaction, normalized_reactions
from kanegen.model.records import (
    ACCELERATION,
    POSITION,
    VELOCITY,
    ConstraintKind,
    FrozenMapping,
    Loads,
    Output,
    read_fields,
)
from kanegen.shapes import Shape, normalized_shapes
from kanegen.units import Units

ControlLaw: TypeAlias = Servo | ControlConstraints


@dataclass(frozen=True, eq=False)
class SpeedChange:
    """The new speeds w of a description in terms of the speeds u of the description ``before``.

    All other expressions remain written in u. ``definitions`` are ``Phi1 u + Phi2`` in the order of w. None means
    ``w = L^T u`` with ``Q = L D L^T``, so that the kinetic-energy matrix becomes the diagonal matrix D.
    """

    before: SystemDescription
    definitions: tuple[Any, ...] | None

    @property
    def orthogonal(self) -> bool:
        """Whether the speeds diagonalize the kinetic-energy matrix."""
        return self.definitions is None


def _control(value: Any, what: str, problems: list[str]) -> ControlLaw | None:
    wanted = "a kg.Servo (servo-constraints), a kg.ControlConstraints (constraints that contain the controls), or None"
    return value if normalize.expect(value, ControlLaw | None, what, wanted, problems) else None


_TIME_FUNCTIONS = {"read": normalize.time_functions}


def _constraints(level: str, adds_rows: bool = True) -> dict[str, Any]:
    """The metadata of constraints of this level; without rows, their rates must follow from the rows of others."""
    return {"read": normalize.scalars, "level": level, "adds_rows": adds_rows}


@dataclass(frozen=True, eq=False, repr=False)
class SystemDescription:
    """The normalized fields of a :class:`~kanegen.model.model.Model`, and properties that follow from them.

    ``modes`` maps states to the names of their values 0, 1, ...

    The metadata of a field contain the function that reads the argument of ``Model``. ``initial`` maps time,
    coordinates, speeds and states to their values at the start of a motion; ``shapes``, for animations only, maps
    bodies, frames and points to their shapes; ``units`` maps names to the units that the user gave. The last three
    fields are empty until the frames and points have been surveyed: ``parameters``, all constant symbols with their
    values or None; ``geometry``, the frames and points that the model uses; ``euler_parameters``, the groups of four
    coordinates that an orientation uses as Euler parameters.
    """

    name: str = field(metadata={"read": normalize.name})
    frame: Any = field(metadata={"read": normalize.frame})
    coordinates: tuple[Any, ...] = field(metadata=_TIME_FUNCTIONS)
    speeds: tuple[Any, ...] = field(metadata=_TIME_FUNCTIONS)
    kinematics: tuple[Any, ...] = field(metadata={"read": normalize.kinematics})
    bodies: tuple[Any, ...] = field(metadata={"read": normalize.bodies})
    loads: Loads = field(metadata={"read": normalize.loads})
    holonomic_constraints: tuple[Any, ...] = field(metadata=_constraints(POSITION))
    nonholonomic_constraints: tuple[Any, ...] = field(metadata=_constraints(VELOCITY))
    acceleration_constraints: tuple[Any, ...] = field(metadata=_constraints(ACCELERATION))
    implied_constraints: tuple[Any, ...] = field(metadata=_constraints(POSITION, adds_rows=False))
    dependent_speeds: tuple[Any, ...] | None = field(metadata={"read": normalize.dependent_speeds})
    inputs: tuple[Input, ...] = field(metadata={"read": normalized_inputs})
    states: Mapping[Any, Any] = field(metadata={"read": normalize.states})
    potential_energy: Any
    gravity: Any = field(metadata={"read": normalize.vector_or_none})
    lagrangian: Any = field(metadata={"read": normalize.scalar_or_none})
    outputs: Mapping[str, Output] = field(metadata={"read": normalize.outputs})
    auxiliary_speeds: tuple[Any, ...] = field(metadata=_TIME_FUNCTIONS)
    reactions: Mapping[str, Reaction] = field(metadata={"read": normalized_reactions})
    contacts: tuple[ContactRecord, ...] = field(metadata={"read": normalized_contacts})
    events: tuple[Event, ...] = field(metadata={"read": normalized_events})
    impulses: Mapping[str, Loads] = field(metadata={"read": normalized_impulses})
    control: ControlLaw | None = field(metadata={"read": _control})
    speed_change: SpeedChange | None = None
    initial: Mapping[Any, float] = field(default_factory=FrozenMapping)
    modes: Mapping[Any, tuple[str, ...]] = field(default_factory=FrozenMapping)
    shapes: Mapping[Any, tuple[Shape, ...]] = field(default_factory=FrozenMapping)
    units: Units = field(default_factory=Units)
    parameters: Mapping[Any, float | Any] = field(default_factory=FrozenMapping)  # Any for None: see Solver
    geometry: Geometry = field(default_factory=Geometry)
    euler_parameters: tuple[tuple[Any, Any, Any, Any], ...] = ()

    def changed(self, **changes: Any) -> SystemDescription:
        """The description with other values of some fields."""
        return SystemDescription(**{**self.field_values(), **changes})

    def field_values(self) -> dict[str, Any]:
        """The fields by name."""
        return {item.name: getattr(self, item.name) for item in fields(SystemDescription)}

    @cached_property
    def constraints(self) -> tuple[Any, ...]:
        """The constraints in the order of the rows of J: on positions, on velocities, on accelerations."""
        return self.constraints_on(POSITION, VELOCITY, ACCELERATION)

    def constraints_on(self, *levels: str) -> tuple[Any, ...]:
        """The constraints of these levels that add rows to J."""
        kinds = [kind for level in levels for kind in CONSTRAINT_KINDS if kind.adds_rows and kind.level == level]
        return tuple(expression for kind in kinds for expression in getattr(self, kind.field))

    @property
    def has_potential(self) -> bool:
        """Whether the potential energy is known: it was given, with gravity or not, or is K - L of the bodies."""
        of_bodies = self.lagrangian is not None and bool(self.bodies)
        return self.potential_energy is not None or self.gravity is not None or of_bodies

    @property
    def is_unsplit(self) -> bool:
        """Whether the model has a Lagrangian ``L = K - V`` of which neither K nor V is known."""
        return self.lagrangian is not None and not self.has_potential

    @property
    def servo(self) -> Servo | None:
        """The servo-constraints, or None."""
        return self.control if isinstance(self.control, Servo) else None

    @property
    def control_constraints(self) -> ControlConstraints | None:
        """The control constraints, or None."""
        return self.control if isinstance(self.control, ControlConstraints) else None

    @cached_property
    def known_parameters(self) -> dict[Any, float]:
        """The parameters that have a value."""
        return {symbol: value for symbol, value in self.parameters.items() if value is not None}

    @cached_property
    def speed_changes(self) -> tuple[SpeedChange, ...]:
        """All changes of speeds, the last one first."""
        return () if self.speed_change is None else (self.speed_change, *self.speed_change.before.speed_changes)

    @cached_property
    def former_speeds(self) -> tuple[Any, ...]:
        """The speeds of all previous descriptions, the last description first."""
        return tuple(speed for change in self.speed_changes for speed in change.before.speeds)

    @cached_property
    def all_speeds(self) -> tuple[Any, ...]:
        """The speeds and the former speeds, which expressions can contain, without the auxiliary speeds."""
        return (*self.speeds, *self.former_speeds)

    def level(self, expression: Any) -> int:
        """2 for an expression of positions, 1 for one that contains speeds."""
        moving = (
            base_symbol(atom) in self.all_speeds or (base_symbol(atom) in self.coordinates and derivative_order(atom))
            for atom in atoms((expression,))
        )
        return 1 if any(moving) else 2

    @cached_property
    def resolved_contacts(self) -> tuple[Contact, ...]:
        """The contacts in the order of the user, which is also the order of the contact rows."""
        return resolved_contacts(self.contacts, self.level)

    @cached_property
    def inputs_with_law(self) -> tuple[int, ...]:
        """The indices of the inputs with a feedback law."""
        return tuple(k for k, item in enumerate(self.inputs) if item.law is not None)

    @cached_property
    def switches(self) -> Mapping[str, Any]:
        """The kinks of all continuous laws (:attr:`Input.switches`); the runtime treats them as further events."""
        return FrozenMapping(pair for item in self.inputs for pair in item.switches.items())

    @cached_property
    def contact_rows(self) -> tuple[str, ...]:
        """The names of the contact rows."""
        return tuple(name for contact in self.resolved_contacts for name in contact.row_names)

    @cached_property
    def contact_loads(self) -> Loads:
        """Pairs (place, direction) of the contact forces, for contacts with ``applied_at``."""
        return tuple(pair for contact in self.resolved_contacts for pair in contact.forces)

    @cached_property
    def free_controls(self) -> tuple[str, ...]:
        """The names of the controls of servo-constraints whose free vector y is given at run time."""
        servo = self.servo
        free = () if servo is None or servo.y is not None else servo.slots(self.inputs)
        return tuple(self.inputs[k].name for k in free)

    @cached_property
    def contact_multipliers(self) -> tuple[Any, ...]:
        """The ``Multiplier`` symbols of the contact rows."""
        return tuple(Multiplier(contact.name, k) for contact in self.resolved_contacts for k in range(contact.n_rows))

    @cached_property
    def free_symbols(self) -> tuple[Any, ...]:
        """The symbols of the free vector of servo-constraints."""
        return tuple(sympy.Symbol(f"y {name}") for name in self.free_controls)

    @property
    def is_accelerated(self) -> bool:
        """Whether a load depends on accelerations."""
        return bool(self.accelerated_loads)

    @cached_property
    def accelerated_loads(self) -> tuple[str, ...]:
        """The names of the points and frames on which loads act that depend on accelerations, u' or q''."""
        return tuple(
            dict.fromkeys(
                str(location)
                for location, load in self.effective_loads
                if self.accelerations_among(atoms(vector_expressions(load)))
            )
        )

    def accelerations_among(self, symbols: Iterable[Any]) -> frozenset[Any]:
        """Those of the symbols that are accelerations, u' or q''."""
        known = dict.fromkeys(self.all_speeds, 1) | dict.fromkeys(self.coordinates, 2)
        return frozenset(x for x in symbols if known.get(base_symbol(x)) == derivative_order(x))

    @cached_property
    def effective_loads(self) -> Loads:
        """The loads without those on the inertial frame and on bodies fixed in it, which move nothing.

        A model with reactions keeps all loads, because a load on the ground can belong to a set of bodies.
        """
        if self.reactions:
            return self.loads
        ground = {self.frame, *(body.masscenter for body in self.bodies if is_ground(body, self.frame))}
        return tuple(pair for pair in self.loads if pair[0] not in ground)


CONSTRAINT_KINDS: Final = tuple(
    ConstraintKind(item.name, item.metadata["level"], item.metadata["adds_rows"])
    for item in fields(SystemDescription)
    if "level" in item.metadata
)
"""All kinds of constraints."""


def described(given: Mapping[str, Any], problems: list[str]) -> SystemDescription:
    """The description from the arguments of ``Model`` as written by the user; appends to ``problems``."""
    values = read_fields(SystemDescription, given, "", problems)
    with_gravity = values["gravity"] is not None
    # A Lagrangian is compared with gravity, so that the weights cannot count twice.
    bodies = () if with_gravity and values["lagrangian"] is not None else values["bodies"]
    energy = normalize.potential_energy(given.get("potential_energy"), bodies, with_gravity, problems)
    in_motion = (*values["coordinates"], *values["speeds"], *values["states"])
    initial = normalize.initial_values(given.get("initial"), in_motion, problems)
    values["events"] = tuple(event.resetting(in_motion) for event in values["events"])
    shapes = FrozenMapping(normalized_shapes(given.get("shapes"), "shapes", problems))
    units = normalize.units(given.get("units"), "units", problems)
    modes = FrozenMapping(given.get("modes") or {})
    own = {"potential_energy": energy, "initial": initial, "shapes": shapes, "units": units, "modes": modes}
    return SystemDescription(**values, **own)
