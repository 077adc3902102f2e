"""Numbers of the checks: 50 digits, small linear algebra on them, and relative deviations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import mpmath
import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.graph import PYTHON, Context, Function, Node, mpmath_context, reachable

Vector: TypeAlias = "Sequence[Any] | NDArray[Any]"
Matrix: TypeAlias = "Sequence[Sequence[Any]] | NDArray[Any]"

DIGITS: Final = 50

NO_DIGITS: Final = "functions of the user have no 50 digits to take differences of"
"""Why a check by differences does not apply."""

STEP: Final = 1e-12
"""Step of central differences in 50 digits: errors of 1e-24 by truncation, at most 1e-26 (second ones) by rounding."""

EXACT: Final = 1e-12
"""Identities in 50 digits: only constants that SymPy or the graph folded in double precision differ."""

DOUBLE: Final = 1e-10
"""Results in double precision, relative to their own sensitivity: some hundreds of roundings behind linear solves."""

SIGNIFICANT: Final = 1e-3
"""Entries below this fraction of the largest of their array are compared on the scale of this fraction."""


@dataclass(frozen=True)
class Arithmetic:
    """The numbers in which the graph is evaluated: 50 digits, or double precision where a user's function has only it.

    ``tolerance`` of identities between quantities of the graph in these numbers.
    """

    context: Context
    exact: bool

    @property
    def tolerance(self) -> float:
        return EXACT if self.exact else DOUBLE

    def number(self, value: float) -> Any:
        return self.context.number(value)


def arithmetic_for(nodes: Sequence[Node]) -> Arithmetic:
    """50 digits unless the nodes call functions of the user, which are Python code for double precision."""
    exact = not any(node.op == "call" and isinstance(node.payload, Function) for node in reachable(nodes))
    return Arithmetic(mpmath_context(DIGITS), True) if exact else Arithmetic(PYTHON, False)


def central_difference(function: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """The derivative of several values of one number at 0, in 50 digits."""
    h = mpmath.mpf(STEP)
    return [(after - before) / (2 * h) for after, before in zip(function(h), function(-h), strict=True)]


def rows(values: Vector, columns: int) -> list[list[Any]]:
    """A flat row-major array as rows."""
    return [list(values[i : i + columns]) for i in range(0, len(values), columns)] if columns else []


def product(matrix: Matrix, x: Vector) -> list[Any]:
    return [dot(row, x) for row in matrix]


def transposed_product(matrix: Matrix, x: Vector, n: int) -> list[Any]:
    """``matrix^T x`` with n entries; a matrix without rows gives zeros."""
    return [dot([row[j] for row in matrix], x) for j in range(n)]


def dot(x: Vector, y: Vector) -> Any:
    return mpmath.fdot(x, y)


def solve(matrix: Matrix, right: Vector) -> list[Any]:
    """``matrix^-1 right``. Raises ZeroDivisionError for a singular matrix."""
    if not right:
        return []
    with mpmath.workdps(DIGITS):
        return list(mpmath.lu_solve(mpmath.matrix([list(row) for row in matrix]), mpmath.matrix(list(right))))


def least_norm(matrix: Matrix, right: Vector) -> list[Any]:
    """The x of least norm with ``matrix^T x = right`` for a matrix (m, n) of full column rank."""
    n = len(right)
    gram = [[dot([row[i] for row in matrix], [row[j] for row in matrix]) for j in range(n)] for i in range(n)]
    return product(matrix, solve(gram, right))


def kkt(Q: Matrix, J: Matrix, P: Vector, b: Vector) -> tuple[list[Any], list[Any]]:
    """u' and multipliers of ``Q u' = P + J^T lambda``, ``J u' = b``, by one bordered solve."""
    n, m = len(P), len(b)
    bordered = [[*Q[i], *(-row[i] for row in J)] for i in range(n)]
    bordered += [[*row, *[0] * m] for row in J]
    solution = solve(bordered, [*P, *b])
    return solution[:n], solution[n:]


def kkt_sizes(Q: Matrix, J: Matrix, P: Vector, b: Vector, solution: Vector) -> Array:
    """How much the ``solution`` (u', multipliers) moves with relative changes of the entries of the bordered system.

    ``|M^-1| (|M| |x| + |f|)`` (Skeel 1979), so that a u' in which large terms cancel is judged on their scale.
    """
    n, m = len(P), len(b)
    bordered = np.zeros((n + m, n + m))
    bordered[:n, :n] = np.array(Q, dtype=np.float64)
    if m:
        rows_of_J = np.array(J, dtype=np.float64)
        bordered[:n, n:], bordered[n:, :n] = -rows_of_J.T, rows_of_J
    right, x = np.abs(np.array([*P, *b], dtype=np.float64)), np.abs(np.array(solution, dtype=np.float64))
    return np.asarray(np.abs(np.linalg.inv(bordered)) @ (np.abs(bordered) @ x + right))


def deviation(actual: Vector, expected: Vector, sensitivity: Vector | None = None) -> float:
    """The largest difference of two arrays, each entry relative to its size.

    The size of an entry is its magnitude, or its ``sensitivity`` where that is larger: the size of the terms it is made
    of, or the error that one relative rounding error makes in it. It is at least :data:`SIGNIFICANT` of the largest of
    the array. NaN where a value is not finite.
    """
    if len(actual) != len(expected):
        return float("nan")
    sizes = [max(abs(x), abs(y)) for x, y in zip(actual, expected, strict=True)]
    if sensitivity is not None:
        sizes = [max(size, abs(s)) for size, s in zip(sizes, sensitivity, strict=True)]
    floor = SIGNIFICANT * max(sizes, default=0)
    worst = 0.0
    for x, y, size in zip(actual, expected, sizes, strict=True):
        difference = abs(x - y)
        if not mpmath.isfinite(difference):
            return float("nan")
        if difference:
            worst = max(worst, float(difference / max(size, floor)))
    return worst
