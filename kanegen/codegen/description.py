"""The description of a compiled model for its solver, stored as ``description.json`` with the sources."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from types import MappingProxyType, NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

from kanegen.codegen.sources import Sources
from kanegen.errors import BuildError
from kanegen.model.contacts import Event
from kanegen.model.expressions import symbol_name
from kanegen.model.inputs import FORCES, FREE
from kanegen.model.laws import Value
from kanegen.model.records import FrozenMapping
from kanegen.program.catalogue import REACTION
from kanegen.program.records import ContactEntry
from kanegen.units import Unit

DESCRIPTION_FILE = "description.json"
"""Path of the description within the sources, so that a cached build needs no derivation."""


@dataclass(frozen=True)
class Variable:
    """A variable of a model: its name, what it is, its place among these, its unit, and its value where known.

    ``group``: one of `GROUPS` for the variables of a description. ``value`` is in the coherent SI unit.
    """

    name: str
    group: str
    index: int
    unit: Unit | None = None
    value: float | None = None

    @property
    def si_unit(self) -> str:
        """The coherent SI unit as text; empty if it is not known."""
        return "" if self.unit is None else self.unit.si


GROUPS: Final = MappingProxyType({"q": "coordinate", "u": "speed", "s": "state", "r": "input", "p": "parameter"})
"""What the variables in each array of values are called."""


@dataclass(frozen=True)
class LawLabel:
    """The feedback law of an input: its text, the names of its ``limits``, and its samples.

    ``sample_time``: None for a continuous law; ``delay``: the time after which samples act; both in s.
    ``switches``: the names of the events at the kinks of a continuous law.
    """

    text: str
    limits: tuple[str, ...]
    switches: tuple[str, ...]
    sample_time: float | None
    delay: float


@dataclass(frozen=True)
class InputSlot:
    """An input: its default or None, the index of the input whose time derivative it is, and its law."""

    name: str
    default: float | None = None
    rate_of: int | None = None
    law: LawLabel | None = None


@dataclass(frozen=True)
class FunctionEntry:
    """A compiled function: its operation count, and the indices of the parameters, inputs and states that it reads.

    ``fallible_constants``: indices of the constants it needs that are not finite for some parameters.
    """

    operations: int
    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
    states: tuple[int, ...]
    fallible_constants: tuple[int, ...] = ()


@dataclass(frozen=True)
class ConstraintLabels:
    """Labels of the constraints: ``rows`` of J; ``positions`` and ``velocities`` of ``residuals``.

    ``n_holonomic`` and ``n_nonholonomic`` count the rows of J that have gains (:meth:`kanegen.Baumgarte.flatten`).
    """

    rows: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()
    velocities: tuple[str, ...] = ()
    n_holonomic: int = 0
    n_nonholonomic: int = 0

    @property
    def n_gains(self) -> int:
        """The number of gains."""
        return 2 * self.n_holonomic**2 + self.n_nonholonomic**2

    @property
    def levels(self) -> tuple[str, ...]:
        """Labels of all entries of ``residuals``."""
        return self.positions + self.velocities


@dataclass(frozen=True)
class ContactLabels:
    """Names of the contact rows, and the values of the contact laws with their permitted intervals.

    ``values`` are the entries of the function ``contact_values``; their names are phrases for messages. ``table`` has
    the kind and the rows of each contact.
    """

    rows: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    table: tuple[ContactEntry, ...] = ()


@dataclass(frozen=True)
class EventLabel:
    """The fields of a user's event, with the guard as text; they identify an event of the model."""

    name: str
    guard: str
    direction: int
    terminal: bool
    impulse: str | None
    impose: tuple[str, ...]
    remove: tuple[str, ...]
    reset: Mapping[str, str] = field(default_factory=FrozenMapping)
    when: Mapping[str, float] = field(default_factory=FrozenMapping)

    @classmethod
    def of(cls, event: Event) -> EventLabel:
        """The label of a normalized event."""
        reset = FrozenMapping((symbol_name(symbol), str(value)) for symbol, value in event.reset.items())
        when = FrozenMapping((symbol_name(symbol), value) for symbol, value in event.when.items())
        return cls(**{**vars(event), "guard": str(event.guard), "reset": reset, "when": when})


@dataclass(frozen=True)
class ServoLabels:
    """The servo-constraints: indices of the inputs that enforce them, with the ``limits`` of each (infinite: none).

    ``residuals`` labels the entries of ``servo_residuals``; ``orders`` has 2 for each holonomic and 1 for each
    nonholonomic constraint; ``free``: the free vector y is given at run time.
    """

    controls: tuple[int, ...]
    limits: tuple[tuple[float, float], ...]
    residuals: tuple[str, ...]
    orders: tuple[int, ...]
    free: bool


@dataclass(frozen=True)
class ControlLevel:
    """A row of ``control_residuals``; ``held``: controls can satisfy it; ``decays``: its error decays."""

    label: str
    held: bool
    decays: bool


@dataclass(frozen=True)
class ControlConstraintLabels:
    """The control constraints: indices of the inputs that are part of the state, and the rows of the residuals."""

    states: tuple[int, ...]
    levels: tuple[ControlLevel, ...]


@dataclass(frozen=True, kw_only=True)
class Description:
    """Names, sizes and labels of a built model; plain values only. Parameter values belong to the model.

    ``dependent`` and ``independent`` are indices of speeds. ``functions`` maps the names of compiled functions to
    entries; those of ``deferred`` are compiled when they are first used. ``unavailable`` maps the names of functions
    that do not exist for the model to the reason, ``outputs`` names to
    shapes, ``no_integrals`` outputs and the energy to the reason why a projection cannot preserve them, ``no_motions``
    outputs to the reason why a path cannot prescribe them.
    ``cyclic_coordinates`` belong to Hamilton's form, ``path_controls`` are the inputs that inverse dynamics solves for,
    ``mass`` is the function of the matrix of the accelerations. ``modes``: the names of the values 0, 1, ... of states.
    ``spare_parameters`` names constants of the user's objects that no function reads; values for them are ignored.
    """

    name: str
    form: str
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    parameters: tuple[str, ...]
    spare_parameters: tuple[str, ...] = ()
    input_slots: tuple[InputSlot, ...]
    states: tuple[str, ...] = ()
    dependent: tuple[int, ...]
    independent: tuple[int, ...]
    constraints: ConstraintLabels = ConstraintLabels()
    contacts: ContactLabels = ContactLabels()
    impulses: tuple[str, ...] = ()
    events: tuple[EventLabel, ...] = ()
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenMapping)
    servo: ServoLabels | None = None
    control_constraints: ControlConstraintLabels | None = None
    path_controls: tuple[int, ...] = ()
    mass: str = "Q"
    functions: Mapping[str, FunctionEntry]
    deferred: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=FrozenMapping)
    outputs: Mapping[str, tuple[int, ...]] = field(default_factory=FrozenMapping)
    no_integrals: Mapping[str, str] = field(default_factory=FrozenMapping)
    no_motions: Mapping[str, str] = field(default_factory=FrozenMapping)
    cyclic_coordinates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        chosen = sorted((*self.dependent, *self.independent))
        # Without a partition the constraints are redundant, and only forms that need no partition solve them.
        if chosen and chosen != list(range(len(self.speeds))):
            raise BuildError(
                f"the description of the model {self.name!r} is inconsistent: dependent {self.dependent} and "
                f"independent {self.independent} speeds are not all {len(self.speeds)} speeds"
            )

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(slot.name for slot in self.input_slots)

    @cached_property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the variables in each array of values, by the letter of the array."""
        arrays = self.coordinates, self.speeds, self.states, self.inputs, self.parameters
        return FrozenMapping(zip(GROUPS, arrays, strict=True))

    @cached_property
    def components(self) -> tuple[str, ...]:
        """The names of the components of the state (q, u, s)."""
        return (*self.coordinates, *self.speeds, *self.states)

    def variables(
        self, letters: str, units: Mapping[str, Unit], values: Mapping[str, float | None]
    ) -> tuple[Variable, ...]:
        """The variables of these arrays with their units and values, as far as these are known."""
        return tuple(
            Variable(name, GROUPS[letter], k, units.get(name), values.get(name))
            for letter in letters
            for k, name in enumerate(self.names[letter])
        )

    @cached_property
    def laws(self) -> Mapping[int, LawLabel]:
        """The feedback laws of inputs by the index of the input, in the order of the function ``laws``."""
        return FrozenMapping((k, slot.law) for k, slot in enumerate(self.input_slots) if slot.law is not None)

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Names of the kinks of feedback laws, which follow the events of the user."""
        return tuple(name for law in self.laws.values() for name in law.switches)

    @cached_property
    def free_controls(self) -> tuple[str, ...]:
        """Names of the controls of servo-constraints whose free vector y is given at run time."""
        return self.input_names(self.servo.controls) if self.servo is not None and self.servo.free else ()

    @cached_property
    def arguments(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the entries of the arguments of compiled functions, without the time."""
        of_state = {letter: self.names[letter] for letter in "qurs"}
        of_contacts = tuple(f"multiplier of {row}" for row in self.contacts.rows)
        of_servo = tuple(f"y {name}" for name in self.free_controls)
        return {**of_state, FORCES: of_contacts, FREE: of_servo}

    @property
    def dependent_names(self) -> tuple[str, ...]:
        """Names of the dependent speeds."""
        return tuple(self.speeds[i] for i in self.dependent)

    @property
    def independent_names(self) -> tuple[str, ...]:
        """Names of the independent speeds."""
        return tuple(self.speeds[i] for i in self.independent)

    @cached_property
    def reactions(self) -> tuple[str, ...]:
        """Names of the reactions that were built."""
        names = (*self.functions, *self.deferred)
        return tuple(name.removeprefix(REACTION) for name in names if name.startswith(REACTION))

    def has(self, function: str) -> bool:
        """Whether a function is compiled, or will be when it is first used."""
        return function in self.functions or function in self.deferred

    def input_names(self, slots: tuple[int, ...]) -> tuple[str, ...]:
        """Names of the inputs with these indices."""
        return tuple(self.inputs[slot] for slot in slots)

    def to_json(self) -> str:
        """The record as JSON; equal records give identical text."""
        return json.dumps(to_plain(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Description:
        """The record from the text of :meth:`to_json`. Raises `BuildError` for any other text."""
        try:
            description: Description = from_plain(cls, json.loads(text))
        except (AttributeError, TypeError, ValueError) as error:
            what = "is not JSON:" if isinstance(error, json.JSONDecodeError) else "of another version of kanegen holds"
            raise BuildError(f"{DESCRIPTION_FILE} {what} {error}; clear the cache and build again") from error
        return description

    @classmethod
    def from_sources(cls, sources: Sources) -> Description:
        """The description stored with the sources. Raises `BuildError` if there is none."""
        return cls.from_json(sources.text(DESCRIPTION_FILE))


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, numbers and strings in place of records, mappings and tuples; infinity as text."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_plain(kind: Any, value: Any) -> Any:
    """The value of type ``kind`` from the result of :func:`to_plain`. Raises `ValueError` for another structure.

    Supported are dataclasses, ``tuple``, ``Mapping`` with text as keys, ``X | None``, float, and the types of JSON.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        types = _field_types(kind)
        if not isinstance(value, dict) or set(value) != set(types):
            given = sorted(value) if isinstance(value, dict) else type(value).__name__
            raise ValueError(f"{given}, expected {sorted(types)}")
        return kind(**{name: from_plain(types[name], item) for name, item in value.items()})
    if NoneType in arguments:
        return None if value is None else from_plain(arguments[0], value)
    if origin is Mapping:
        return FrozenMapping((key, from_plain(arguments[1], item)) for key, item in value.items())
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(from_plain(each, item) for each, item in zip(kinds, value, strict=True))
    return float(value) if kind is float else value


@cache
def _field_types(record: Any) -> dict[str, Any]:
    types = get_type_hints(record)
    return {field.name: types[field.name] for field in fields(record)}
