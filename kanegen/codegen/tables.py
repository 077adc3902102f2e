"""Tables in C: abscissae with guides, by which intervals are found, and what templates print of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kanegen.precision import Precision
from kanegen.program.passes.lowered import UserGrid, UserInterval, UserSpline, UserTable

CELLS: Final = (1, 2, 4, 8)
"""Numbers of cells of a guide that are tried, in multiples of the number of intervals."""


@dataclass(frozen=True)
class Guide:
    """The intervals at which the cells of a guide begin; see ``kg_interval`` in ``templates/runtime/kg_table.h``."""

    cells: tuple[int, ...]
    scale: float
    stride: int


def guide(starts: Sequence[float], precision: Precision) -> Guide:
    """The guide with the fewest comparisons, and of those the smallest, computed in the arithmetic of the code."""
    real = np.float32 if precision.name == "float" else np.float64
    points = np.array(starts, dtype=real)
    length = points[-1] - points[0]
    found = [Guide((0,), 0.0, _stride(len(points) - 1))]
    for multiple in CELLS:
        with np.errstate(all="ignore"):
            scale = real(multiple * len(points)) / length
        if len(points) > 1 and np.isfinite(scale) and scale >= np.finfo(real).tiny:
            found.append(_guide(points, scale))
    return min(found, key=lambda item: (item.stride, len(item.cells)))


def _guide(points: Any, scale: Any) -> Guide:
    places = ((points - points[0]) * scale).astype(np.int64)
    counts = np.bincount(places[1:], minlength=int(places[-1]) + 1)
    before = np.concatenate(([0], np.cumsum(counts)[:-1]))
    return Guide(tuple(before.tolist()), float(scale), _stride(int(counts.max())))


def _stride(count: int) -> int:
    """The largest power of two up to the number of starts in a cell, which is the first comparison; 0 for none."""
    return 1 << (count.bit_length() - 1) if count else 0


@dataclass
class Abscissae:
    """The starts of the intervals of one or more tables, padded, with the guide and the inverse lengths for grids."""

    identifier: str
    starts: tuple[float, ...]
    last: int
    cells: tuple[int, ...]
    scale: float
    stride: int
    inverses: tuple[float, ...] = ()
    users: dict[str, None] = field(default_factory=dict)

    @property
    def names(self) -> str:
        """The tables that are searched in them."""
        return ", ".join(self.users)


@dataclass(frozen=True)
class TableEntry:
    """One table or a derivative of it, as the template prints it; ``data``: the array of the values of a grid.

    ``row``, ``per_point``: numbers in it from one point along x to the next, and of a point.
    """

    identifier: str
    kind: str
    user: UserTable
    points: tuple[Abscissae, ...]
    data: str = ""
    row: int = 0
    per_point: int = 0

    @property
    def name(self) -> str:
        return self.user.name


@dataclass(frozen=True)
class GridValues:
    """The values of a grid, which its derivatives share."""

    identifier: str
    name: str
    values: tuple[tuple[tuple[float, ...], ...], ...]
    cubic: bool


def tables_context(users: Sequence[tuple[str, UserTable]], precision: Precision) -> Mapping[str, Any]:
    """The variables of the template for tables, given with their C names."""
    printed = _Printed(precision)
    entries = [printed.entry(identifier, user) for identifier, user in users]
    return {
        "user_tables": entries,
        "abscissae": list(printed.abscissae.values()),
        "grid_values": list(printed.grids.values()),
    }


class _Printed:
    """The arrays so far, which tables with the same numbers share."""

    def __init__(self, precision: Precision) -> None:
        self._precision = precision
        self.abscissae: dict[tuple[float, ...], Abscissae] = {}
        self.grids: dict[Any, GridValues] = {}

    def entry(self, identifier: str, user: UserTable) -> TableEntry:
        if isinstance(user, UserGrid):
            key = user.values
            known = self.grids.get(key)
            if known is None:
                known = self.grids[key] = GridValues(f"{identifier}_values", user.name, user.values, user.cubic)
            points = tuple(self._points(knots, user.name, lengths=True) for knots in (user.x, user.y))
            per_point = len(user.values[0][0])
            return TableEntry(identifier, "grid", user, points, known.identifier, len(user.y) * per_point, per_point)
        kind = "interval" if isinstance(user, UserInterval) else "spline"
        return TableEntry(identifier, kind, user, (self._points(user.breakpoints, user.name),))

    def _points(self, knots: tuple[float, ...], name: str, *, lengths: bool = False) -> Abscissae:
        found = self.abscissae.get(knots)
        if found is None:
            starts = knots[:-1]
            made = guide(starts, self._precision)
            beyond = (self._precision.largest,) * max(2 * made.stride - 1, 0)
            identifier, last = f"abscissae_{len(self.abscissae)}", len(starts) - 1
            found = Abscissae(identifier, (*starts, *beyond), last, made.cells, made.scale, made.stride)
            self.abscissae[knots] = found
        if lengths and not found.inverses:
            found.inverses = tuple(1.0 / (b - a) for a, b in pairwise(knots))
        found.users[name] = None
        return found
