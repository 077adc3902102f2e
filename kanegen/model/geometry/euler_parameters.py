"""Which coordinates are Euler parameters (the components of unit quaternions).

A direction-cosine matrix written in Euler parameters is a rotation only where their squares add up to one. That is also
how they are recognized, whoever wrote the matrix: ``ReferenceFrame.orient_quaternion`` or the user, in whatever order
and with whatever signs. A matrix that is divided by the sum of the squares is a rotation everywhere; its
norm needs no constraint, and its parameters are not recognized.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, Final

from kanegen.model.expressions import atoms

_EQUAL: Final = 1e-10
"""Direction cosines are of the size of 1 and come from a few operations in double precision."""

_NORMS: Final = (1.0, 1.0, 1.5)
"""At two random points of the sphere and one off it; a coincidence at all three has probability zero."""


def euler_parameter_groups(
    coordinates: Sequence[Any], matrices: Iterable[Iterable[Any]]
) -> tuple[tuple[Any, Any, Any, Any], ...]:
    """The groups of four ``coordinates`` that these direction-cosine matrices use as Euler parameters, each once.

    ``matrices``: nine entries each. A group has the order of the coordinates: which of them is the scalar part makes no
    difference to the norm.
    """
    groups: dict[tuple[Any, ...], None] = {}
    for matrix in matrices:
        entries = tuple(matrix)
        if len(coordinates) < 4 or any(entry.is_Number for entry in entries):
            continue  # a rotation about an axis of the frame
        symbols = atoms(entries)
        group = tuple(q for q in coordinates if q in symbols)
        if len(group) == 4 and group not in groups and _needs_unit_norm(entries, group, symbols):
            groups[group] = None
    return tuple(groups)


def _needs_unit_norm(entries: Sequence[Any], group: Sequence[Any], symbols: Iterable[Any]) -> bool:
    """Whether the matrix is a rotation where the squares of the group add up to one, and only there."""
    generator = random.Random(1843)
    others = sorted(set(symbols) - set(group), key=str)
    for norm in _NORMS:
        direction = [generator.choice((-1.0, 1.0)) * generator.uniform(0.2, 1.1) for _ in group]
        size = norm / sqrt(sum(x * x for x in direction))
        values = {symbol: generator.uniform(0.2, 1.1) for symbol in others}
        values.update((e, size * x) for e, x in zip(group, direction, strict=True))
        if _is_rotation(entries, values) != (norm == 1.0):
            return False
    return True


def _is_rotation(entries: Sequence[Any], values: Mapping[Any, float]) -> bool:
    """Whether the rows are orthonormal at these values; False where they are no numbers."""
    try:
        numbers = [float(entry.xreplace(values)) for entry in entries]
    except (TypeError, ValueError):
        return False
    rows = [numbers[3 * i : 3 * i + 3] for i in range(3)]
    return all(
        abs(sum(x * y for x, y in zip(rows[i], rows[j], strict=True)) - (i == j)) <= _EQUAL
        for i in range(3)
        for j in range(i + 1)
    )
