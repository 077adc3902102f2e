"""The scales of a nonlinear program: derivatives of magnitude 1 at the start, whatever the units of constraints are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.consistency import Consistency
from kanegen.control.layout import Layout
from kanegen.control.program import NonlinearProgram
from kanegen.control.transcription import Transcription, transcribe

_LARGEST_ROW: Final = 1e4
"""Largest factor of a row, and of its inverse, that is no constraint of the model: a derivative can vanish at the start
of the iterations only."""


def scaled_program(code: PointCode, consistent: Consistency) -> NonlinearProgram:
    """The program with scaled variables and rows.

    A constraint of the model has one factor at all points. The units of its multipliers follow from it: they multiply
    the derivatives of the constraint.
    """
    variables, layout = consistent.variables, consistent.layout
    transcription = transcribe(layout, code, consistent.kept)
    plain = NonlinearProgram(transcription, code, variables.scale, np.ones(transcription.n_g))
    values = np.abs(np.nan_to_num(plain.jacobian(variables.start / variables.scale)))
    rows, columns = plain.jacobian_pattern
    of_multipliers = np.zeros(layout.n_x, dtype=bool)
    for places in _multipliers(layout):
        of_multipliers[places] = True
    known = ~of_multipliers[columns]
    row_scale = 1.0 / _row_sizes(transcription, consistent.kept, rows[known], values[known])
    sizes, scale = _largest(layout.n_x, columns, values * row_scale[rows]), variables.scale.copy()
    for places in _multipliers(layout):
        scale[places] /= sizes[places].max(initial=0.0) or 1.0
    return NonlinearProgram(transcription, code, scale, row_scale)


def _row_sizes(transcription: Transcription, kept: Any, rows: Any, values: Array) -> Array:
    """The largest derivative of each row; of a constraint of the model at all its points."""
    largest = _largest(transcription.n_g, rows, values)
    sizes = np.clip(np.where(largest > 0.0, largest, 1.0), 1.0 / _LARGEST_ROW, _LARGEST_ROW)
    for places in _constraints(transcription, kept):
        sizes[places] = largest[places].max(initial=0.0) or 1.0
    return sizes


def _largest(size: int, places: Any, values: Array) -> Array:
    """The largest of the values at each place, 0 where there is none."""
    found = np.zeros(size)
    np.maximum.at(found, places, values)
    return found


def _constraints(transcription: Transcription, kept: Any) -> Iterator[Any]:
    """The rows of each constraint of the model: of accelerations at stages, and of positions and speeds at the mesh."""
    layout, labels = transcription.layout, transcription.labels
    n_u, n_c = layout.udot.shape[1], layout.multipliers.shape[1]
    yield from np.array(labels["equations of motion"]).reshape(-1, n_u + n_c).T[n_u:]
    if "constraints" in labels:
        rows = np.array(labels["constraints"])
        which = np.nonzero(kept)[1]
        yield from (rows[which == k] for k in range(kept.shape[1]))


def _multipliers(layout: Layout) -> Iterator[Any]:
    """The places of the multipliers of each constraint: of its forces at stages, and of its moves at the mesh."""
    yield from layout.multipliers.T
    yield from layout.moves[1:].T
