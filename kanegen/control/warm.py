"""Multipliers of a solution on one mesh as start values on another.

Multipliers of rows at single times are integrals over a part of a mesh interval. Divided by its length they are values
of functions of the time, which are interpolated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.control.ipopt import Minimum
from kanegen.control.program import NonlinearProgram
from kanegen.control.transcription import MOMENTS


class _Series(NamedTuple):
    """Places (m, n) of values at times ``tau`` (m,), with the parts of the time that belong to them, (m,)."""

    name: str
    places: Any
    tau: Array
    weights: Array


def transferred(old: NonlinearProgram, found: Minimum, new: NonlinearProgram) -> tuple[Array, Array, Array]:
    """Multipliers of constraints, of lower and of upper bounds for the program on the new mesh."""
    rows = _moved(_rows(old), found.multipliers * old.row_scale, _rows(new), new.n_g) / new.row_scale
    bounds = [
        _moved(_variables(old), each / old.scale, _variables(new), new.n_x) * new.scale
        for each in (found.lower, found.upper)
    ]
    return rows, bounds[0], bounds[1]


def _moved(old: Iterator[_Series], values: Array, new: Iterator[_Series], size: int) -> Array:
    known, moved = {series.name: series for series in old}, np.zeros(size)
    for series in new:
        before = known.get(series.name)
        if before is None:
            continue
        density = values[before.places] / before.weights[:, None]
        for places, column in zip(series.places.T, density.T, strict=True):
            moved[places] = np.interp(series.tau, before.tau, column) * series.weights
    return moved


def _rows(program: NonlinearProgram) -> Iterator[_Series]:
    layout, labels = program.transcription.layout, program.transcription.labels
    middles, h = (layout.mesh[:-1] + layout.mesh[1:]) / 2.0, np.diff(layout.mesh)
    for name, rows in labels.items():
        if not len(rows) or name == "constraints":
            continue
        places = np.array(rows)
        if name.startswith("defects"):
            yield _Series(name, places.reshape(len(h), -1), middles, np.ones(len(h)) if name.endswith("end") else h)
        elif name == MOMENTS:
            moments = layout.moments
            yield _Series(
                name, places.reshape(moments.own.size, -1), moments.tau[moments.own], np.ones(moments.own.size)
            )
        elif name in ("start", "end", "coupled"):
            yield _Series(name, places[None], np.zeros(1), np.ones(1))
        else:
            yield _Series(name, places.reshape(len(layout.tau), -1), layout.tau, layout.weights)


def _variables(program: NonlinearProgram) -> Iterator[_Series]:
    layout = program.transcription.layout
    statement = layout.statement
    lengths = np.diff(layout.mesh)
    at = np.clip(np.searchsorted(layout.mesh, layout.tau_of_y, side="right") - 1, 0, len(lengths) - 1)
    yield _Series("y", layout.all_y, layout.tau_of_y, lengths[at])
    yield _Series("inputs", layout.inputs[:, list(statement.inputs)], layout.tau, layout.weights)
    single = [*layout.parameters[list(statement.parameters)], *([layout.duration] if statement.is_timed else [])]
    yield _Series("single", np.array([single], dtype=np.int64).reshape(1, -1), np.zeros(1), np.ones(1))
