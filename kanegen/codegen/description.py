"""What a solver knows of its model beyond the compiled struct: ``description.json`` of the sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kanegen.codegen.plain import from_plain, to_plain
from kanegen.codegen.sources import Sources
from kanegen.errors import BuildError
from kanegen.model.contacts import Event
from kanegen.model.inputs import InputLayout
from kanegen.model.laws import Value
from kanegen.model.records import FrozenMapping

DESCRIPTION_FILE = "description.json"
"""Path of the description within the sources: a cached build then derives nothing."""


@dataclass(frozen=True)
class InputSlot:
    """An input: its default, None where it has none, and the index of the input whose time derivative it is."""

    name: str
    default: float | None = None
    rate_of: int | None = None


@dataclass(frozen=True)
class FunctionEntry:
    """A compiled function: its operation count, and the indices of the parameters and inputs that it reads.

    ``fallible_constants``: numbers of the constants it needs that have no value for some parameters.
    """

    operations: int
    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
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


@dataclass(frozen=True)
class ContactLabels:
    """Names of the multipliers of the contacts, and the values of their laws with the intervals they must lie in.

    ``values`` are the entries of the function ``contact_values``; the name of each is a phrase for messages.
    """

    rows: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class EventLabel:
    """A user's event by the values of its fields, the guard as text: how an event of the model is recognized."""

    name: str
    guard: str
    direction: int
    terminal: bool
    impulse: str | None
    impose: tuple[str, ...]
    remove: tuple[str, ...]

    @classmethod
    def of(cls, event: Event) -> EventLabel:
        """The label of a normalized event."""
        return cls(**{**vars(event), "guard": str(event.guard)})


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
    """A row of ``control_residuals``; ``held``: the controls can satisfy it; ``decays``: its error decays."""

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

    ``dependent`` and ``independent`` are indices of speeds. ``functions`` are those that were compiled,
    ``unavailable`` those that the model does not have, with the reason, ``outputs`` the shapes of the outputs.
    ``no_integrals``: why a projection cannot keep the energy or an output. ``impulses`` are names,
    ``cyclic_coordinates`` those of Hamilton's form. ``path_controls`` are the inputs that inverse dynamics solves for.
    ``spare_parameters`` names the constants of the user's objects that no function reads; they may be given a value.
    """

    name: str
    form: str
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    parameters: tuple[str, ...]
    spare_parameters: tuple[str, ...] = ()
    input_slots: tuple[InputSlot, ...]
    dependent: tuple[int, ...]
    independent: tuple[int, ...]
    constraints: ConstraintLabels = ConstraintLabels()
    contacts: ContactLabels = ContactLabels()
    impulses: tuple[str, ...] = ()
    events: tuple[EventLabel, ...] = ()
    servo: ServoLabels | None = None
    control_constraints: ControlConstraintLabels | None = None
    path_controls: tuple[int, ...] = ()
    functions: Mapping[str, FunctionEntry]
    unavailable: Mapping[str, str] = field(default_factory=FrozenMapping)
    outputs: Mapping[str, tuple[int, ...]] = field(default_factory=FrozenMapping)
    no_integrals: Mapping[str, str] = field(default_factory=FrozenMapping)
    cyclic_coordinates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        chosen = sorted((*self.dependent, *self.independent))
        # None chosen: redundant constraints, which only forms without a partition solve.
        if chosen and chosen != list(range(len(self.speeds))):
            raise BuildError(
                f"the description of the model {self.name!r} is inconsistent: dependent {self.dependent} and "
                f"independent {self.independent} speeds do not make up the {len(self.speeds)} speeds"
            )

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(slot.name for slot in self.input_slots)

    @cached_property
    def input_layout(self) -> InputLayout:
        """What the array r of compiled functions holds."""
        free = self.servo.controls if self.servo is not None and self.servo.free else ()
        return InputLayout(self.inputs, self.contacts.rows, self.input_names(free))

    @property
    def dependent_names(self) -> tuple[str, ...]:
        """Names of the dependent speeds."""
        return tuple(self.speeds[i] for i in self.dependent)

    @property
    def independent_names(self) -> tuple[str, ...]:
        """Names of the independent speeds."""
        return tuple(self.speeds[i] for i in self.independent)

    def input_names(self, slots: tuple[int, ...]) -> tuple[str, ...]:
        """Names of the inputs with these indices."""
        return tuple(self.inputs[slot] for slot in slots)

    def to_json(self) -> str:
        """The record as text: the same record, the same bytes."""
        return json.dumps(to_plain(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Description:
        """The record :meth:`to_json` wrote. Raises `BuildError` for any other text."""
        try:
            values: Any = json.loads(text)
        except ValueError as error:
            raise BuildError(f"{DESCRIPTION_FILE} is not JSON: {error}; clear the cache and build again") from error
        try:
            description: Description = from_plain(cls, values)
        except (AttributeError, TypeError, ValueError) as error:
            raise BuildError(
                f"{DESCRIPTION_FILE} holds {error}; it was written by another version of kanegen: clear the cache and "
                "build again"
            ) from error
        return description

    @classmethod
    def from_sources(cls, sources: Sources) -> Description:
        """The description stored with the sources. Raises `BuildError` when there is none."""
        return cls.from_json(sources.text(DESCRIPTION_FILE))
