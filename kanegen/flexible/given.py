"""The arguments of flexible bodies: arrays of the right shapes, and what a matrix must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import brief
from kanegen.flexible.inertia import DEPENDENT, NEGATIVE


def table(value: Any, shape: tuple[int | str, ...], what: str, problems: list[str]) -> Array:
    """A finite real array of this shape; texts stand for sizes of any value. Zeros in its place if it is wrong."""
    sizes = tuple(size if isinstance(size, int) else 1 for size in shape)
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        problems.append(f"{what} is {brief(value)}: expected an array of numbers, {_spelled(shape)}")
        return np.zeros(sizes)
    fits = array.ndim == len(shape) and all(
        isinstance(size, str) or size == found for size, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        problems.append(f"{what} has the shape {array.shape}: expected {_spelled(shape)}")
        return np.zeros(sizes)
    if not np.isfinite(array).all():
        problems.append(f"{what} contains values that are not finite")
        return np.zeros(array.shape)
    return array


def _spelled(shape: Sequence[int | str]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def optional(value: Any, shape: tuple[int, ...], what: str, problems: list[str]) -> Array:
    """An array of this shape, zeros for None."""
    return np.zeros(shape) if value is None else table(value, shape, what, problems)


def symmetric(terms: Array) -> Array:
    """The part of an array (m, ..., m, n, 3) that is symmetric in the first axes."""
    first, last = range(terms.ndim - 2), (terms.ndim - 2, terms.ndim - 1)
    orders = list(permutations(first))
    return np.asarray(sum(terms.transpose(*order, *last) for order in orders) / len(orders))


def square(value: Any, size: int, what: str, problems: list[str]) -> Array:
    """A symmetric matrix without negative eigenvalues, (size, size), from itself or from its diagonal (size,)."""
    diagonal = np.ndim(value) == 1 if not isinstance(value, str) else False
    matrix = table(value, (size,) if diagonal else (size, size), what, problems)
    matrix = np.diag(matrix) if diagonal else matrix
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * np.abs(matrix).max(initial=0.0)):
        problems.append(f"{what} is not symmetric")
        return np.zeros((size, size))
    matrix = (matrix + matrix.T) / 2
    if (least := _least_eigenvalue(matrix)) < -NEGATIVE:
        problems.append(
            f"{what} is not positive: it has an eigenvalue of {least:.3g} times the largest one; expected none below 0"
        )
    return matrix


def _least_eigenvalue(matrix: Array) -> float:
    """The least eigenvalue of a symmetric matrix relative to the largest, 0 for the zero matrix."""
    values = np.linalg.eigvalsh(matrix)
    largest = float(np.abs(values).max(initial=0.0))
    return float(values[0]) / largest if largest else 0.0


def dependent_modes(mass: Array) -> list[str]:
    """Problems of modes with this generalized mass matrix (m, m): without mass, or combinations of those before."""
    diagonal = np.diag(mass)
    still = [m for m in range(len(mass)) if not diagonal[m] > 0.0]
    if still:
        names = ", ".join(str(m + 1) for m in still)
        return [f"mode {names} moves no mass: leave it out, or give masses to the nodes that it moves"]
    scaled = mass / np.sqrt(np.outer(diagonal, diagonal))
    for m in range(1, len(mass)):
        before, row = scaled[:m, :m], scaled[m, :m]
        if 1.0 - row @ np.linalg.solve(before, row) < DEPENDENT:
            return [f"the modes are not independent: mode {m + 1} is a combination of the modes before it"]
    return []
