"""Where the results of a sweep are kept: in memory, or in a Zarr store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kanegen.sweeps.designs import Design
from kanegen.sweeps.tasks import MEMBER, Values, is_storable

STATUS, ERROR = "status", "error"
"""Variables of a store besides those of the design and the results."""

_ENDING: Final = "_design"


def stored_names(design: Design, reserved: Iterable[str]) -> dict[str, str]:
    """The names of the variables of a design: its own where a store can have them.

    Where a result has the same name, or zarr refuses it, the ending ``_design`` is added, and slashes become ``_``.
    """
    taken = {MEMBER, STATUS, ERROR, *reserved}
    names = {name: name for name in design if name not in taken and is_storable(name)}
    for name in design:
        if name not in names:
            stored = name.replace("/", "_").replace("\\", "_") + _ENDING
            while stored in taken or stored in names.values():
                stored += _ENDING
            names[name] = stored
    return {name: names[name] for name in design}


class MemberStatus(IntEnum):
    """The state of a member of a sweep."""

    NOT_RUN = -1
    FAILED = 0
    FINISHED = 1


class Field(NamedTuple):
    """A result of one member: its ``shape``, and whether it is complex."""

    shape: tuple[int, ...]
    is_complex: bool

    @property
    def dtype(self) -> Any:
        """The type of the numbers."""
        return np.complex128 if self.is_complex else np.float64

    @property
    def fill(self) -> Any:
        """The value for members without results."""
        return complex(np.nan, np.nan) if self.is_complex else np.nan

    def __str__(self) -> str:
        shape = f"shape {self.shape}" if self.shape else "no dimension"
        return f"{'complex' if self.is_complex else 'real'} numbers of {shape}"


Layout = dict[str, Field]
"""The results of every member by name."""


def layout_of(values: Mapping[str, NDArray[Any]]) -> Layout:
    """The layout of results (k, ...) of several members."""
    return {name: Field(array.shape[1:], array.dtype.kind == "c") for name, array in values.items()}


class Store(Protocol):
    """The results of a sweep of N members; those of a chunk are written together, once."""

    layout: Layout | None
    status: NDArray[np.int8]

    def begin(self, layout: Layout) -> None:
        """Make room for the results; their layout becomes known with the first ones."""

    def write(self, members: slice, values: Values, status: NDArray[np.int8], errors: Mapping[int, str]) -> None:
        """Keep the results (n, ...) of the members of a chunk. ``errors``: texts by the index of the member."""

    def read(self, name: str) -> NDArray[Any]:
        """A result of all members, (N, ...); NaN where there is none."""

    def errors(self, members: Iterable[int]) -> dict[int, str]:
        """The texts of members that failed."""


class Memory:
    """A `Store` of arrays."""

    def __init__(self, members: int) -> None:
        self.status = np.full(members, MemberStatus.NOT_RUN, dtype=np.int8)
        self.layout: Layout | None = None
        self._arrays: Values = {}
        self._errors: dict[int, str] = {}

    def begin(self, layout: Layout) -> None:
        """See `Store`."""
        self.layout = layout
        shape = self.status.shape
        self._arrays = {name: np.full((*shape, *f.shape), f.fill, f.dtype) for name, f in layout.items()}

    def write(self, members: slice, values: Values, status: NDArray[np.int8], errors: Mapping[int, str]) -> None:
        """See `Store`."""
        for name, array in values.items():
            self._arrays[name][members] = array
        self._errors.update(errors)
        self.status[members] = status

    def read(self, name: str) -> NDArray[Any]:
        """See `Store`."""
        return self._arrays[name]

    def errors(self, members: Iterable[int]) -> dict[int, str]:
        """See `Store`."""
        return {member: self._errors[member] for member in members}
