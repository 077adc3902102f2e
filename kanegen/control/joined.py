"""Several nonlinear programs as one, in compiled code: they share variables, and their costs are added."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.cython.batch import lane_library, load_library
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.codegen.sources import render
from kanegen.control.layout import Layout, Places
from kanegen.control.program import Memory, NonlinearProgram, Pattern
from kanegen.control.transcription import Integers

_FUNCTIONS = ("cost", "gradient", "constraints", "jacobian", "hessian")
_INTS, _REALS = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)


class _Part(ctypes.Structure):
    """``kg_part`` of joined.c.jinja."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in (*_FUNCTIONS, "data")),
        *((name, ctypes.c_int) for name in ("n_x", "n_g", "n_jacobian", "n_hessian")),
        *((name, _INTS) for name in ("variables", "entries")),
        ("factors", _REALS),
    )


class _Joined(ctypes.Structure):
    """``kg_joined`` of joined.c.jinja."""

    _fields_ = (("n_parts", ctypes.c_int), ("parts", ctypes.POINTER(_Part)), ("x", _REALS), ("out", _REALS))


def shared_places(
    layouts: Sequence[Layout], going_on: Sequence[tuple[int, int, tuple[Places, Places]]] = ()
) -> tuple[Integers, ...]:
    """The places of the variables of each problem among those of all: unknown parameters of the same name are one.

    ``going_on``: numbers of two problems, with the places of states at the end of the first and at the start of the
    second that are one.
    """
    ends = np.cumsum([0, *(layout.n_x for layout in layouts)])
    root = np.arange(ends[-1])
    known: dict[str, int] = {}
    for layout, first in zip(layouts, ends[:-1].tolist(), strict=True):
        statement = layout.statement
        for name, place in zip(
            statement.parameter_names, layout.parameters[list(statement.parameters)].tolist(), strict=True
        ):
            root[first + place] = known.setdefault(name, first + place)
    for before, after, (last, start) in going_on:
        one, other = root[ends[before] + last], root[ends[after] + start]
        for kept, dropped in zip(np.minimum(one, other).tolist(), np.maximum(one, other).tolist(), strict=True):
            root[root == dropped] = kept
    numbers = np.cumsum(root == np.arange(root.size)) - 1
    return tuple(np.split(numbers[root], ends[1:-1]))


def merged(places: Sequence[Integers], values: Sequence[Array], choose: Any = np.maximum) -> Array:
    """Values of the variables of each problem as values of all variables; ``choose`` decides where they are shared."""
    n = 1 + max(int(each.max()) for each in places)
    found = np.full(n, np.nan)
    for where, own in zip(places, values, strict=True):
        found[where] = np.where(np.isnan(found[where]), own, choose(found[where], own))
    return found


class JoinedProgram:
    """Programs whose variables have ``places`` among those of all; rows of constraints follow each other."""

    def __init__(self, parts: Sequence[NonlinearProgram], places: Sequence[Integers]) -> None:
        self.parts, self.places, self._library = tuple(parts), tuple(places), _library()
        self.n_x, self.n_g = 1 + max(int(each.max()) for each in places), sum(part.n_g for part in parts)
        firsts = np.cumsum([0, *(part.n_g for part in parts)])
        self.rows = tuple(slice(int(a), int(b)) for a, b in pairwise(firsts))
        self._memory = Memory()
        self._patterns()
        self._structure()

    @property
    def low(self) -> Array:
        """Lowest values of the constraints, (n_g,)."""
        return np.concatenate([part.low for part in self.parts])

    @property
    def high(self) -> Array:
        """Highest values of the constraints, (n_g,)."""
        return np.concatenate([part.high for part in self.parts])

    @property
    def data(self) -> int:
        """The address of the structure that the functions take."""
        return ctypes.addressof(self._data)

    def function(self, name: str) -> int:
        """The address of a function: cost, gradient, constraints, jacobian, hessian."""
        return ctypes.cast(getattr(self._library, f"kg_{name}"), ctypes.c_void_p).value or 0

    def _patterns(self) -> None:
        rows, columns, keys = [], [], []
        for part, places, own in zip(self.parts, self.places, self.rows, strict=True):
            rows.append(part.jacobian_pattern.rows + own.start)
            columns.append(places[part.jacobian_pattern.columns])
            pairs = places[part.hessian_pattern.rows], places[part.hessian_pattern.columns]
            keys.append(np.maximum(*pairs) * self.n_x + np.minimum(*pairs))
        self.jacobian_pattern = Pattern(np.concatenate(rows), np.concatenate(columns))
        every = np.unique(np.concatenate(keys))
        self.hessian_pattern = Pattern(*divmod(every, self.n_x))
        self._entries = [np.searchsorted(every, own) for own in keys]

    def _structure(self) -> None:
        parts = (_Part * len(self.parts))()
        for record, part, places, entries in zip(parts, self.parts, self.places, self._entries, strict=True):
            for name in _FUNCTIONS:
                setattr(record, name, part.function(name))
            record.data, record.n_x, record.n_g = part.data, part.n_x, part.n_g
            record.n_jacobian, record.n_hessian = len(part.jacobian_pattern.rows), len(entries)
            record.variables, record.entries = self._memory.ints(places), self._memory.ints(entries)
            rows, columns = part.hessian_pattern
            record.factors = self._memory.reals(
                np.where((rows != columns) & (places[rows] == places[columns]), 2.0, 1.0)
            )
        most = max(max(part.n_x, len(entries)) for part, entries in zip(self.parts, self._entries, strict=True))
        self._data = _Joined(
            len(self.parts), parts, self._memory.reals(np.zeros(most)), self._memory.reals(np.zeros(most))
        )
        self._records = parts  # to which the structure points


@cache
def _library() -> Any:
    files = {"joined.c": render("control/joined.c.jinja")}
    return load_library(lane_library(CompilerOptions(), files, "joined problems of optimal control", fused=False))
