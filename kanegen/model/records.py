"""Read-only records that a :class:`Model` contains, and functions that read the arguments of a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypeVar

from sympy.physics.mechanics import Point

from kanegen.errors import ModelError

K = TypeVar("K")
V = TypeVar("V")
Loads: TypeAlias = tuple[tuple[Any, Any], ...]
"""Pairs (point, force) and (frame, torque)."""


class FrozenMapping(Mapping[K, V]):
    """A read-only mapping that keeps its order and, unlike ``MappingProxyType``, can be pickled."""

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._items: dict[K, V] = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"

    def _ipython_key_completions_(self) -> list[str]:
        """Keys that IPython offers after an opening bracket."""
        return [key for key in self._items if isinstance(key, str)]


POSITION, VELOCITY, ACCELERATION = "holonomic", "nonholonomic", "acceleration-level"
"""The levels of constraints: what their expressions depend on, and how often they are differentiated for a row of J."""


@dataclass(frozen=True)
class ConstraintKind:
    """A kind of constraints, a field of a description; ``adds_rows`` to J unless its rates follow from other rows."""

    field: str
    level: str
    adds_rows: bool

    @property
    def name(self) -> str:
        """The name without the word constraints."""
        return self.field.removesuffix("_constraints")

    @property
    def differentiations(self) -> int:
        """How often the derivation differentiates the expressions."""
        return (ACCELERATION, VELOCITY, POSITION).index(self.level) - (not self.adds_rows)


@dataclass(frozen=True)
class Output:
    """A quantity the user asked for by name.

    ``expressions`` are its entries in row-major order; ``shape`` is ``()`` for a scalar, ``(n,)`` for a
    list, a column or a vector's three components, ``(rows, columns)`` for another matrix.
    """

    name: str
    expressions: tuple[Any, ...]
    shape: tuple[int, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.expressions)

    def __len__(self) -> int:
        return len(self.expressions)


class ModalPoint(Point):  # type: ignore[misc]
    """A point whose velocity is a speed along one axis, so that a force on it acts on this speed and no body."""


@dataclass(frozen=True, eq=False)
class Parts:
    """What a body that consists of several adds to a model: arguments of ``Model``, and the energy of its loads, J."""

    coordinates: tuple[Any, ...]
    speeds: tuple[Any, ...]
    kinematics: tuple[Any, ...]
    loads: Loads
    potential_energy: Any
    parameters: Mapping[Any, float]
    shapes: Mapping[Any, Any]


class Composite(ABC):
    """A body that consists of several, with coordinates and loads of its own. Models take its parts in its place."""

    name: str
    particles: tuple[Any, ...]
    """The bodies of which it consists."""
    coordinates: tuple[Any, ...]

    @abstractmethod
    def parts(self, frame: Any) -> Parts:
        """What it adds to a model with this inertial frame."""


@dataclass(frozen=True, eq=False)
class MachineParts:
    """What a state machine adds to a model: arguments of ``Model``, and whether latches are closed at the start.

    ``modes``: the names of the values 0, 1, ... of its state.
    """

    states: Mapping[Any, Any]
    initial: Mapping[Any, float]
    events: tuple[Any, ...]
    closed: Mapping[str, bool]
    modes: Mapping[Any, tuple[str, ...]]


class Machine(ABC):
    """Discrete behavior with a state of its own, ``modes=`` of a model."""

    name: str

    @abstractmethod
    def parts(self) -> MachineParts:
        """What it adds to a model."""


def settle(record: Any, values: Mapping[str, Any], problems: Sequence[str], title: str = "") -> None:
    """Set fields of a frozen record under construction; raises ``ModelError`` if there are problems."""
    if problems:
        raise ModelError([title + problem for problem in problems])
    for name, value in values.items():
        object.__setattr__(record, name, value)


def read_fields(record: type, given: Mapping[str, Any], where: str, problems: list[str]) -> dict[str, Any]:
    """The normalized values of all fields that have a reader, ``metadata={"read": ...}``.

    A reader takes a value, the text that names its place in messages, and the list of problems. The text is ``where``
    followed by the name of the field.
    """
    readers = {item.name: item.metadata["read"] for item in fields(record) if "read" in item.metadata}
    return {name: read(given.get(name), f"{where}{name}", problems) for name, read in readers.items()}
