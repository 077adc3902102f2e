"""The type of NumPy arrays of doubles, which most of the interface takes and returns; their rows, and parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kanegen.errors import SolveError, brief

Array: TypeAlias = NDArray[np.float64]


def real_array(values: Any, what: str) -> Array:
    """``values`` as an array of floats of any shape, which can be NaN. Raises `SolveError` for anything else."""
    try:
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "fiu":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SolveError(f"{what} is {brief(values)}; expected real numbers") from error


def row_count(counts: Mapping[str, int]) -> int:
    """The common number N of the rows of some arguments, by their names; 1 if none has rows.

    Raises `SolveError` for numbers that differ.
    """
    if len(set(counts.values())) > 1:
        have = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise SolveError(
            f"the numbers of rows differ: {have}; expected the same number N, or no rows (one value for all)"
        )
    return next(iter(counts.values()), 1)


def ragged(rows: Sequence[NDArray[np.complex128]]) -> NDArray[np.complex128]:
    """Rows of complex numbers as a matrix, with NaN behind those that are shorter than the longest."""
    matrix = np.full((len(rows), max(map(len, rows), default=0)), np.nan, dtype=np.complex128)
    for row, values in zip(matrix, rows, strict=True):
        row[: len(values)] = values
    return matrix


def sections(values: Array, sizes: Iterable[int]) -> list[Array]:
    """Consecutive parts of an array with these numbers of rows, and what remains; faster than `numpy.split`."""
    parts, start = [], 0
    for size in sizes:
        parts.append(values[start : start + size])
        start += size
    return [*parts, values[start:]]
