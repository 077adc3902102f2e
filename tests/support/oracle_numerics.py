"""Small linear algebra on object arrays of mpmath numbers, and walks over SymPy's frames and points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy as sm

Array = np.ndarray


def solve(matrix: Array, right: Array) -> Array:
    """The solution by Gaussian elimination with row pivots; ZeroDivisionError, as of mpmath, for a singular matrix.

    The loops of `mpmath.lu_solve` over single entries take several times as long.
    """
    n = len(right)
    rows = np.column_stack([matrix, right])
    tolerance = mpmath.eps * max((abs(row).sum() for row in matrix.T), default=mpmath.mpf(0))
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i, k]))
        if abs(rows[pivot, k]) <= tolerance:
            raise ZeroDivisionError("the matrix is singular")
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[k, k:] /= rows[k, k]
        for i in range(n):
            if i != k and rows[i, k]:
                rows[i, k:] -= rows[i, k] * rows[k, k:]
    return rows[:, n]


def exact(value: Any) -> Any:
    return mpmath.mpf(value)


def array(values: Any) -> Array:
    return np.array([exact(value) for value in values], dtype=object)


def units(n: int) -> list[Array]:
    return [array(np.eye(n)[k]) for k in range(n)]


def identity(scale: Any) -> Array:
    return np.array([[scale * (i == j) for j in range(3)] for i in range(3)], dtype=object)


def cross(a: Array, b: Array) -> Array:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def has_second(expression: Any) -> bool:
    return any(d.derivative_count > 1 for d in sm.sympify(expression).atoms(sm.Derivative))


def breadth_first(root: Any, neighbors: Callable[[Any], Any]) -> dict[Any, Any]:
    parents = {root: None}
    queue = [root]
    for node in queue:
        for neighbor in neighbors(node):
            if neighbor not in parents:
                parents[neighbor] = node
                queue.append(neighbor)
    return parents


def nearest(point: Any, accepted: Callable[[Any], bool]) -> Any:
    return next(node for node in breadth_first(point, lambda p: p._pos_dict) if accepted(node))
