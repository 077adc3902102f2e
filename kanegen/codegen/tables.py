"""Tables in C: abscissae with guides, by which intervals are found, and what templates print of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from kanegen.precision import Precision
from kanegen.program.passes.lowered import UserGrid, UserInterval, UserTable

CELLS: Final = (1, 2, 4, 8)
"""Numbers of cells of a guide that are tried, in multiples of the number of intervals."""


@dataclass(frozen=True)
class Guide:
    """The intervals at which the cells of a guide begin, the cells per unit, and the most starts in a cell.

    See ``kg_interval`` in ``templates/runtime/kg_table.h``.
    """

    cells: tuple[int, ...]
    scale: float
    count: int


def guide(starts: Sequence[float], precision: Precision) -> Guide:
    """The guide with the fewest comparisons, and of those the smallest, computed in the arithmetic of the code."""
    real = np.float32 if precision.name == "float" else np.float64
    points = np.array(starts, dtype=real)
    length = points[-1] - points[0]
    found = [Guide((0,), 0.0, len(points) - 1)]
    for multiple in CELLS:
        with np.errstate(all="ignore"):
            scale = real(multiple * len(points)) / length
        if len(points) > 1 and np.isfinite(scale) and scale >= np.finfo(real).tiny:
            found.append(_guide(points, scale))
    return min(found, key=lambda item: (item.count, len(item.cells)))


def _guide(points: Any, scale: Any) -> Guide:
    places = ((points - points[0]) * scale).astype(np.int64)
    counts = np.bincount(places[1:], minlength=int(places[-1]) + 1)
    before = np.concatenate(([0], np.cumsum(counts)[:-1]))
    return Guide(tuple(before.tolist()), float(scale), int(counts.max()))


@dataclass
class Abscissae:
    """The starts of the intervals of one or more tables, padded, with the guide."""

    identifier: str
    starts: tuple[float, ...]
    last: int
    cells: tuple[int, ...]
    scale: float
    count: int
    users: dict[str, None] = field(default_factory=dict)

    @property
    def names(self) -> str:
        """The tables that are searched in them."""
        return ", ".join(self.users)


@dataclass(frozen=True)
class GridCells:
    """The coefficients of the cells of a grid, which its derivatives share."""

    identifier: str
    name: str
    cells: tuple[tuple[float, ...], ...]

    @property
    def per_cell(self) -> int:
        """Number of coefficients of a cell."""
        return len(self.cells[0])


@dataclass(frozen=True)
class TableEntry:
    """One table or a derivative of it, as the template prints it; ``data``: the coefficients of a grid."""

    identifier: str
    kind: str
    user: UserTable
    points: tuple[Abscissae, ...]
    data: GridCells | None = None

    @property
    def name(self) -> str:
        """The name that the user gave."""
        return self.user.name


def tables_context(users: Sequence[tuple[str, UserTable]], precision: Precision) -> Mapping[str, Any]:
    """The variables of the template for tables, given with their C names."""
    printed = _Printed(precision)
    entries = [printed.entry(identifier, user) for identifier, user in users]
    return {
        "user_tables": entries,
        "abscissae": list(printed.abscissae.values()),
        "grids": list(printed.grids.values()),
    }


class _Printed:
    """The arrays so far, which tables with the same numbers share."""

    def __init__(self, precision: Precision) -> None:
        self._precision = precision
        self.abscissae: dict[tuple[float, ...], Abscissae] = {}
        self.grids: dict[Any, GridCells] = {}

    def entry(self, identifier: str, user: UserTable) -> TableEntry:
        if isinstance(user, UserGrid):
            known = self.grids.get(user.values)
            if known is None:
                known = self.grids[user.values] = GridCells(f"{identifier}_cells", user.name, _cells(user))
            return TableEntry(
                identifier, "grid", user, tuple(self._points(x, user.name) for x in (user.x, user.y)), known
            )
        kind = "interval" if isinstance(user, UserInterval) else "spline"
        return TableEntry(identifier, kind, user, (self._points(user.breakpoints, user.name),))

    def _points(self, knots: tuple[float, ...], name: str) -> Abscissae:
        found = self.abscissae.get(knots)
        if found is None:
            starts = knots[:-1]
            made = guide(starts, self._precision)
            beyond = (self._precision.largest,) * made.count
            identifier = f"abscissae_{len(self.abscissae)}"
            found = Abscissae(identifier, (*starts, *beyond), len(starts) - 1, made.cells, made.scale, made.count)
            self.abscissae[knots] = found
        found.users[name] = None
        return found


def _cells(user: UserGrid) -> tuple[tuple[float, ...], ...]:
    """The coefficients of each cell: of ascending powers along x, for each power along y."""
    given = np.array(user.values)
    (p, q), size = (_basis(np.diff(points), user.cubic) for points in (user.x, user.y)), 4 if user.cubic else 2
    # What is given at the corners of each cell, as value and slope at the start and at the end of both sides.
    corners = np.stack([np.stack([given[a : a - 1 or None, b : b - 1 or None] for b in (0, 1)]) for a in (0, 1)])
    if not user.cubic:
        ends = corners[..., 0]
    else:
        ends = corners.reshape((*corners.shape[:-1], 2, 2)).transpose(0, 4, 1, 5, 2, 3)
        ends = ends.reshape((4, 4, *ends.shape[4:]))
    cells = np.einsum("ika,jmb,abij->ijmk", p, q, ends)
    return tuple(map(tuple, cells.reshape(-1, size * size).tolist()))


def _basis(lengths: Any, cubic: bool) -> Any:
    """The coefficients (n, k, a) of ascending powers in `kanegen.graph.grids.weights`, for each length."""
    h, one, zero = lengths, np.ones_like(lengths), np.zeros_like(lengths)
    if not cubic:
        return np.array([[one, zero], [-1 / h, 1 / h]]).transpose(2, 0, 1)
    rows = [
        [one, zero, zero, zero],
        [zero, one, zero, zero],
        [-3 / h**2, -2 / h, 3 / h**2, -1 / h],
        [2 / h**3, 1 / h**2, -2 / h**3, 1 / h**2],
    ]
    return np.array(rows).transpose(2, 0, 1)
