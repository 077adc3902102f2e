"""Bounds and conditions of the stages of a predictive controller as tables of rows and sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kanegen.arrays import Array
from kanegen.control.predictive.receding import Receding
from kanegen.control.statement import Condition

HARD = -1.0
"""The penalty of sides that are never violated."""


RELAXED = 1e-8
"""Equations have two sides this far apart from their value, relative to it: between them is an interior."""


class Side(NamedTuple):
    """``sign * (row - bound) >= 0``; ``size``: a typical distance from the bound; ``penalty``: of a unit beyond it."""

    row: int
    sign: float
    bound: float
    size: float
    penalty: float


class Sides(NamedTuple):
    """``rows``: places in w, or -1 - k for the general row k."""

    rows: tuple[int, ...]
    sides: tuple[Side, ...]


class StageSides(NamedTuple):
    """The sides of the first stage, of those in the middle, and of the last one."""

    first: Sides
    middle: Sides
    last: Sides


class _Row(NamedTuple):
    place: int
    low: float
    high: float
    penalty: float


def stage_sides(problem: Receding, with_inputs: Sequence[bool], penalty: float) -> StageSides:
    """The tables; at the first stage the state is given, and only rows with inputs count.

    ``with_inputs``: for each condition of the path, whether it depends on inputs.
    """
    n = len(problem.inputs)
    general = [_condition(k, condition, penalty) for k, condition in enumerate(problem.path)]
    chosen = [
        *_boxes(0, problem.input_bounds, HARD),
        *(row for row, has_inputs in zip(general, with_inputs, strict=True) if has_inputs),
    ]
    given = [
        *_boxes(n, problem.bounds, penalty),
        *(row for row, has_inputs in zip(general, with_inputs, strict=True) if not has_inputs),
    ]
    own = [c for c, has_inputs in zip(problem.path, with_inputs, strict=True) if not has_inputs]
    last = [
        *_boxes(n, problem.end_bounds, penalty),
        *(_condition(k, condition, penalty) for k, condition in enumerate((*own, *problem.end))),
    ]
    return StageSides(_sides(chosen), _sides([*chosen, *given]), _sides(last))


def _boxes(first: int, bounds: Array, penalty: float) -> list[_Row]:
    pairs = enumerate(bounds.tolist(), start=first)
    return [_Row(k, low, high, penalty) for k, (low, high) in pairs if math.isfinite(low) or math.isfinite(high)]


def _condition(k: int, condition: Condition, penalty: float) -> _Row:
    return _Row(-1 - k, condition.low, condition.high, penalty)


def _sides(rows: Iterable[_Row]) -> Sides:
    kept = [row for row in rows if math.isfinite(row.low) or math.isfinite(row.high)]
    sides = []
    for k, row in enumerate(kept):
        between = 0.5 * (row.high - row.low)
        for sign, bound in ((1.0, row.low), (-1.0, row.high)):
            if math.isfinite(bound):
                size = between if 0.0 < between < math.inf else max(abs(bound), 1.0)
                moved = RELAXED * size if between == 0.0 else 0.0
                sides.append(Side(k, sign, bound - sign * moved, size, row.penalty))
    return Sides(tuple(row.place for row in kept), tuple(sides))
