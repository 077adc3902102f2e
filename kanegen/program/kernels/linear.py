"""Kernels of ``kg_linalg.h`` and their twins: linear systems and the choice of dependent speeds.

A twin has the arguments of its C function in the same order, returns the same status and changes arrays in place. A
matrix counts as singular if it is singular in the precision of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kanegen.codes import Status
from kanegen.program.kernels.dense import (
    Array,
    Matrix,
    cholesky_factor,
    cholesky_substitute,
    equilibrated,
    fill,
    lu_solution,
    matrix,
    rank_tolerance,
    vector,
)
from kanegen.program.records import Kernel


def lu_solve(n: int, a: Array, b: Array) -> int:
    """Solve ``a x = b``: a (n, n) is destroyed, b (n,) becomes x."""
    return lu_solve_many(n, 1, a, b)


def lu_solve_many(n: int, m: int, a: Array, b: Array) -> int:
    """Solve ``a x = b`` with scaled row pivoting: a (n, n) is destroyed, b (n, m) becomes x."""
    rows = equilibrated(np.hstack([matrix(n, n, a), matrix(n, m, b)]), n)
    if rows is None:
        return Status.SINGULAR
    factors, solution = lu_solution(rows[:, :n], rows[:, n:])
    sizes, tolerance = np.abs(factors), rank_tolerance(n, rows)
    if not all(sizes[k, k] > tolerance * np.max(sizes[:k, k], initial=0) for k in range(n)):
        return Status.SINGULAR
    fill(b, solution)
    return Status.OK


def cholesky_solve(n: int, a: Array, b: Array) -> int:
    """Solve ``a x = b``, a (n, n) symmetric positive definite (lower triangle read); b (n,) becomes x."""
    return cholesky_solve_many(n, 1, a, b)


def cholesky_solve_many(n: int, m: int, a: Array, b: Array) -> int:
    """Solve ``a x = b``, a (n, n) symmetric positive definite (lower triangle read); b (n, m) becomes x."""
    L = cholesky_factor(matrix(n, n, a))
    if L is None:
        return Status.SINGULAR
    fill(b, np.array([cholesky_substitute(L, right) for right in matrix(n, m, b).T]).T)
    return Status.OK


def partition(n_u: int, n_c: int, J: Array, order: Array) -> int:
    """Choose n_c dependent speeds with well-conditioned columns of J (n_c, n_u).

    ``order`` (n_u,) receives the indices of the dependent, then of the independent speeds, each in ascending order.
    """
    eliminated = _eliminate(n_u, matrix(n_c, n_u, J))
    if eliminated is None:
        return Status.SINGULAR
    chosen, _ = eliminated
    order[:] = [*sorted(chosen[:n_c]), *sorted(chosen[n_c:])]
    return Status.OK


def multipliers(n_u: int, n_c: int, J: Array, force: Array, work: Array, result: Array) -> int:
    """Solve ``J^T lambda = force`` with the n_c best-conditioned columns of J (n_c, n_u).

    ``work[:n_u]`` receives the indices of the speeds in the order of the pivots. Returns ``SINGULAR`` if the rows of J
    are dependent.
    """
    eliminated = _eliminate(n_u, np.hstack([matrix(n_c, n_u, J), np.eye(n_c, dtype=int)]))
    if eliminated is None:
        return Status.SINGULAR
    order, rows = eliminated
    work[:n_u] = order
    fill(result, vector([force[i] for i in order[:n_c]]) @ rows[:, n_u:])
    return Status.OK


def constrained_solve(n_u: int, n_c: int, Q: Array, P: Array, J: Array, b: Array, work: Array, udot: Array) -> int:
    """Solve ``Q u' = P + J^T lambda``, ``J u' = b`` with dependent speeds chosen by complete pivoting.

    ``work[:n_u]`` receives the indices of the dependent, then of the independent speeds, in the order of the
    pivots. Returns ``REPARTITIONED``, or ``SINGULAR`` if the rows of J (n_c, n_u) are dependent or ``A2 Q A2^T``
    is not positive definite.
    """
    return _constrained_solution(n_u, n_c, (Q, P, J, b), work, udot, _cholesky_solution)


def constrained_solve_lu(n_u: int, n_c: int, Q: Array, P: Array, J: Array, b: Array, work: Array, udot: Array) -> int:
    """Solve the equations of `constrained_solve` for a Q that need not be symmetric, by LU with row pivoting."""
    return _constrained_solution(n_u, n_c, (Q, P, J, b), work, udot, _lu_solution)


def _cholesky_solution(S: Matrix, right: Matrix) -> Matrix | None:
    L = cholesky_factor(S)
    return None if L is None else cholesky_substitute(L, right)


def _lu_solution(S: Matrix, right: Matrix) -> Matrix | None:
    solution: list[Any] = right.tolist()
    if not solution:
        return right
    return vector(solution) if lu_solve(len(S), S.ravel().tolist(), solution) == Status.OK else None


def _constrained_solution(
    n_u: int,
    n_c: int,
    system: tuple[Array, Array, Array, Array],
    work: Array,
    udot: Array,
    solve: Callable[[Matrix, Matrix], Matrix | None],
) -> int:
    Q, P, J, b = system
    eliminated = _eliminate(n_u, np.hstack([matrix(n_c, n_u, J), matrix(n_c, 1, b)]))
    if eliminated is None:
        return Status.SINGULAR
    order, rows = eliminated
    n_i = n_u - n_c
    # [A; I] and the particular solution [B; 0], rows in pivot order.
    A2T = np.vstack([-rows[:, n_c:n_u], np.eye(n_i, dtype=int)])
    particular = np.concatenate([rows[:, n_u], np.zeros(n_i, dtype=int)])
    Qp = matrix(n_u, n_u, Q)[np.ix_(order, order)]
    solution = solve(A2T.T @ Qp @ A2T, A2T.T @ (vector(P)[order] - Qp @ particular))
    if solution is None:
        return Status.SINGULAR
    for index, (speed, value) in enumerate(zip(order, (particular + A2T @ solution).tolist(), strict=True)):
        work[index] = speed
        udot[speed] = value
    return Status.REPARTITIONED


def _eliminate(n_u: int, M: Matrix) -> tuple[list[int], Matrix] | None:
    """Return the column order and ``[I, J_D^-1 J_I, J_D^-1 b]`` by Gauss-Jordan elimination, complete pivoting."""
    order, rows = list(range(n_u)), equilibrated(M, n_u)
    if len(M) > n_u or rows is None:
        return None
    tolerance = rank_tolerance(n_u, rows)
    for k in range(len(rows)):
        i, j = (k + n for n in divmod(int(np.argmax(np.abs(rows[k:, k:n_u]))), n_u - k))
        if not abs(rows[i, j]) > tolerance:
            return None
        rows[[k, i]] = rows[[i, k]]
        rows[:, [k, j]] = rows[:, [j, k]]
        order[k], order[j] = order[j], order[k]
        rows[k] = rows[k] / rows[k, k]
        for other in range(len(rows)):
            if other != k:
                rows[other] = rows[other] - rows[other, k] * rows[k]
    return order, rows


# -- operations (Golub and Van Loan, 2013), including the choice and the tests of pivots --------------------------


def _scaling(rows: int, width: int, columns: int) -> int:
    # For each row: its largest magnitude, two tests of it, and the divisions by it.
    return rows * (2 * width + 2 + width + columns)


def _lu(n: int, columns: int = 1) -> int:
    # Each search for a pivot reads a whole column. For small n it costs more than the arithmetic.
    arithmetic = (4 * n**3 - 3 * n**2 - n) // 6 + columns * (2 * n**2 - n)
    return arithmetic + _scaling(n, n, columns) + n * (2 * n + 2)


def cholesky_operations(n: int, columns: int = 1) -> int:
    """Return the operations of a Cholesky factorization (n, n) and of the solution for ``columns`` right sides."""
    return (2 * n**3 + 3 * n**2 + n) // 6 + columns * 2 * n**2 + 3 * n


def _elimination(n_u: int, n_c: int, columns: int = 0) -> int:
    search = sum(2 * (n_c - k) * (n_u - k) + 2 for k in range(n_c))
    return n_c * n_c * (2 * (n_u + columns) - n_c) + _scaling(n_c, n_u, columns) + search


def _multipliers(n_u: int, n_c: int) -> int:
    return _elimination(n_u, n_c, n_c) + 2 * n_c * n_c


def _constrained(n_u: int, n_c: int, solution: Callable[[int], int] = cholesky_operations) -> int:
    # Elimination of the rows, reduction of the mass matrix and the forces to the independent speeds, their solution,
    # and the dependent accelerations. The unit blocks of [I, A] cost nothing.
    n_i = n_u - n_c
    reduce = 2 * n_c * (n_i + 1) * (n_u + n_i)
    return _elimination(n_u, n_c, 1) + reduce + solution(n_i) + 2 * n_c * n_i


def _constrained_lu(n_u: int, n_c: int) -> int:
    return _constrained(n_u, n_c, _lu)


def _constrained_work(n_u: int, n_c: int) -> int:
    n_i = n_u - n_c
    return 2 * n_u + n_u * n_i + n_i * n_i + n_i


_HEADER: Final = "kg_linalg.h"
_SIZES: Final = ("n_u", "n_c")
_ONE: Final = {"a": ("n", "n"), "b": ("n",)}
_MANY: Final = {"a": ("n", "n"), "b": ("n", "m")}
_J: Final = ("n_c", "n_u")
_SYSTEM: Final = {"Q": ("n_u", "n_u"), "P": ("n_u",), "J": _J, "b": ("n_c",), "work": (), "udot": ("n_u",)}
_FORCE: Final = {"J": _J, "force": ("n_u",), "work": (), "lambda": ("n_c",)}

KERNELS: Final = (
    Kernel(lu_solve, _HEADER, ("n",), _ONE, ("b",), _lu),
    Kernel(lu_solve_many, _HEADER, ("n", "m"), _MANY, ("b",), _lu),
    Kernel(cholesky_solve, _HEADER, ("n",), _ONE, ("b",), cholesky_operations),
    Kernel(cholesky_solve_many, _HEADER, ("n", "m"), _MANY, ("b",), cholesky_operations),
    Kernel(partition, _HEADER, _SIZES, {"J": _J, "order": ("n_u",)}, ("order",), _elimination),
    Kernel(multipliers, _HEADER, _SIZES, _FORCE, ("lambda",), _multipliers, lambda n_u, n_c: n_u + n_c * n_c),
    Kernel(constrained_solve, _HEADER, _SIZES, _SYSTEM, ("udot",), _constrained, _constrained_work),
    Kernel(constrained_solve_lu, _HEADER, _SIZES, _SYSTEM, ("udot",), _constrained_lu, _constrained_work),
)
