"""What a sweep computes for its members: motions, or a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, brief
from kanegen.solve import Solver
from kanegen.solve.values import key_name
from kanegen.sweeps.designs import Design

Given = TypeVar("Given")

Values = dict[str, NDArray[Any]]
"""Results by name."""

MEMBER = "member"
"""The dimension of the members, the first one of all results."""


@dataclass(frozen=True, eq=False)
class Member(Mapping[str, float]):
    """One member of a sweep: a mapping from the names of the design to its values.

    ``index`` is its place in the design, ``given`` are the values by name. ``q0``, ``u0``, ``s0``, ``r`` are the values
    of coordinates, speeds, states and inputs among them, for the arguments of :meth:`kanegen.Solver.integrate` with
    these names.
    """

    index: int
    given: Mapping[str, float]
    description: Description

    def __getitem__(self, name: Any) -> float:
        return self.given[key_name(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    @property
    def q0(self) -> dict[str, float]:
        """The coordinates of the design."""
        return among(self.description.coordinates, self.given)

    @property
    def u0(self) -> dict[str, float]:
        """The speeds of the design."""
        return among(self.description.speeds, self.given)

    @property
    def s0(self) -> dict[str, float]:
        """The states of the design."""
        return among(self.description.states, self.given)

    @property
    def r(self) -> dict[str, float]:
        """The inputs of the design."""
        return among(self.description.inputs, self.given)

    def solver(self, solver: Solver) -> Solver:
        """The solver with the parameters of this member, and with its coordinates, speeds and states as start."""
        parameters = among(self.description.parameters, self.given)
        start = {**self.q0, **self.u0, **self.s0}
        solver = solver.with_parameters(parameters) if parameters else solver
        return solver.with_initial({**solver.initial, **start}) if start else solver


def among(names: Sequence[str], values: Mapping[str, Given]) -> dict[str, Given]:
    """The values that belong to these names."""
    return {name: values[name] for name in names if name in values}


class Piece(NamedTuple):
    """The members of one chunk: the index of the first one, and the values (n,) by name."""

    first: int
    values: Mapping[str, Array]

    def members(self, description: Description) -> Iterator[Member]:
        """The members in order."""
        columns = [array.tolist() for array in self.values.values()]
        for k, row in enumerate(zip(*columns, strict=True)):
            yield Member(self.first + k, dict(zip(self.values, row, strict=True)), description)


class Computed(NamedTuple):
    """The results of a chunk of n members.

    ``groups``: results by name, (k, ...), with the places of their k members in the chunk; all members of a group have
    results of the same names and shapes. ``errors``: why members failed, by their places. A member that failed can have
    results, for example the part of a motion before the failure.
    """

    groups: Sequence[tuple[NDArray[np.intp], Values]]
    errors: Mapping[int, str]


class Task(Protocol):
    """What is computed for each member of a chunk."""

    def check(self, solver: Solver, design: Design) -> None:
        """Raise `SolveError` for arguments that are wrong for all members."""

    def run(self, solver: Solver, piece: Piece) -> Computed:
        """The results of the members. Failures of members are results, too."""

    def dimensions(self, name: str, ndim: int) -> tuple[str, ...]:
        """The names of the dimensions of a result besides that of the members."""

    def labels(self, solver: Solver, design: Design) -> Mapping[str, NDArray[Any]]:
        """Coordinates of dimensions by their names."""

    @property
    def reserved(self) -> tuple[str, ...]:
        """Names of results that are known before the first one."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the results depend on besides the solver and the design, by the names of arguments."""


@dataclass(frozen=True)
class FunctionTask:
    """A function ``(solver, member) -> mapping`` of the user."""

    function: Callable[[Solver, Member], Mapping[str, Any]]
    reserved = ()

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SolveError(f"task is {brief(self.function)}; expected a function of (solver, member), or None")

    def check(self, solver: Solver, design: Design) -> None:
        """See `Task`; what a function takes is known when it is called."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """See `Task`."""
        return {"task": self.function}

    def run(self, solver: Solver, piece: Piece) -> Computed:
        """See `Task`."""
        errors: dict[int, str] = {}
        alike: dict[Any, list[tuple[int, Values]]] = {}
        for place, member in enumerate(piece.members(solver.description)):
            try:
                values = _arrays(self.function(member.solver(solver), member))
            except Exception as error:  # any class of the user's function
                errors[place] = failure(error)
            else:
                kind = tuple((name, array.shape, array.dtype.kind) for name, array in sorted(values.items()))
                alike.setdefault(kind, []).append((place, values))
        return Computed([_stacked(rows) for rows in alike.values()], errors)

    def dimensions(self, name: str, ndim: int) -> tuple[str, ...]:
        """See `Task`."""
        return tuple(f"{name}_{k}" for k in range(ndim))

    def labels(self, solver: Solver, design: Design) -> Mapping[str, NDArray[Any]]:
        """See `Task`."""
        return {}


def is_storable(name: str) -> bool:
    """Whether an array in a Zarr group can have this name: zarr reads slashes of both kinds as folders."""
    return "/" not in name and "\\" not in name and name not in ("", ".", "..", "zarr.json")


def failure(error: BaseException) -> str:
    """The text that is recorded for an exception."""
    text = str(error)
    return text if isinstance(error, SolveError) and text else f"{type(error).__name__}: {text}".removesuffix(": ")


def _stacked(rows: Sequence[tuple[int, Values]]) -> tuple[NDArray[np.intp], Values]:
    """Places and results (k, ...) of members with results of the same names and shapes."""
    places, values = zip(*rows, strict=True)
    return np.array(places, dtype=np.intp), {name: np.stack([row[name] for row in values]) for name in values[0]}


def _arrays(given: Any) -> Values:
    """The results of a function as arrays of floating-point or complex numbers. Raises `SolveError` for others."""
    if not isinstance(given, Mapping):
        raise SolveError(f"the task returned {brief(given)}; expected a mapping from names to numbers or arrays")
    arrays = {}
    for key, value in given.items():
        if not isinstance(key, str) or not is_storable(key):
            raise SolveError(
                f"the task returned a result called {brief(key)}; expected a name, a text without / and \\ that is "
                "neither '.' nor '..' nor 'zarr.json'"
            )
        try:
            array = np.asarray(value)
        except ValueError:  # lists of unequal lengths
            array = np.array(None)
        if array.dtype.kind not in "biufc":
            raise SolveError(f"the task returned {key} = {brief(value)}; expected a number or an array of numbers")
        arrays[key] = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return arrays
