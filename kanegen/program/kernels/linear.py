"""Twins of the C kernels of ``kg_linalg.h`` for the interpreter: any real scalar, any precision.

Each twin takes the arguments of its C function in the same order. Arrays are flat, row-major, mutable
sequences (lists, one-dimensional NumPy arrays, object arrays of ``mpmath.mpf``) and are changed in place, as
in C. Twins return the same statuses; singular means to the working precision of the scalars they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from kanegen.program.kernels.control import control_solve, control_work
from kanegen.program.kernels.generalized import (
    canonical,
    canonical_work,
    udwadia_kalaba,
    udwadia_kalaba_many,
    udwadia_kalaba_many_work,
    udwadia_kalaba_work,
)
from kanegen.program.kernels.limit import udwadia_kalaba_limit, udwadia_kalaba_limit_work
from kanegen.program.kernels.servo import (
    control_damped,
    control_damped_work,
    control_feasibility,
    control_feasibility_work,
)

Array = MutableSequence[Any]
Matrix = list[list[Any]]

OK: Final = 0
REPARTITIONED: Final = 1
SINGULAR: Final = -1


@dataclass(frozen=True)
class Kernel:
    """A runtime kernel: its twin, how many of its leading arguments are sizes, the names of all arguments.

    ``work(*sizes)`` is the length of its argument ``work``; 0 when it has none. ``header`` holds the C function.
    """

    name: str
    function: Callable[..., int]
    sizes: int
    arguments: tuple[str, ...]
    work: Callable[..., int] = lambda *_: 0
    header: str = "kg_linalg.h"


def lu_solve(n: int, a: Array, b: Array) -> int:
    """Solve ``a x = b``: a (n, n) is destroyed, b (n,) becomes x."""
    return lu_solve_many(n, 1, a, b)


def lu_solve_many(n: int, m: int, a: Array, b: Array) -> int:
    """Solve ``a x = b`` with scaled row pivoting: a (n, n) is destroyed, b (n, m) becomes x."""
    rows = _joined(n, n, m, a, b)
    if not _equilibrate(rows, n):
        return SINGULAR
    tolerance = _rank_tolerance(n, rows)
    for k in range(n):
        above = max((abs(rows[i][k]) for i in range(k)), default=0)
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if not abs(rows[pivot][k]) > tolerance * above:
            return SINGULAR
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for row in rows[k + 1 :]:
            _subtract(row, row[k] / rows[k][k], rows[k], k)
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            _subtract(rows[k], rows[k][j], rows[j], n)
        rows[k][n:] = [x / rows[k][k] for x in rows[k][n:]]
    _store(b, [row[n:] for row in rows])
    return OK


def cholesky_solve(n: int, a: Array, b: Array) -> int:
    """Solve ``a x = b``, a (n, n) symmetric positive definite (lower triangle read); b (n,) becomes x."""
    return cholesky_solve_many(n, 1, a, b)


def cholesky_solve_many(n: int, m: int, a: Array, b: Array) -> int:
    """Solve ``a x = b``, a (n, n) symmetric positive definite (lower triangle read); b (n, m) becomes x.

    Symmetric elimination: its pivots are the entries of D in ``a = L D L^T``.
    """
    rows = _joined(n, n, m, a, b)
    tolerance = _rank_tolerance(n, rows)
    diagonal = [rows[i][i] for i in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            rows[i][j] = rows[j][i]
    for k in range(n):
        if not rows[k][k] > tolerance * diagonal[k]:
            return SINGULAR
        for row in rows[k + 1 :]:
            _subtract(row, row[k] / rows[k][k], rows[k], k)
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            _subtract(rows[k], rows[k][j], rows[j], n)
        rows[k][n:] = [x / rows[k][k] for x in rows[k][n:]]
    _store(b, [row[n:] for row in rows])
    return OK


def partition(n_u: int, n_c: int, J: Array, order: Array) -> int:
    """Choose n_c dependent speeds with well-conditioned columns of J (n_c, n_u).

    ``order`` (n_u,) becomes the indices of the dependent speeds, then of the independent, each ascending.
    """
    eliminated = _eliminate(n_u, _joined(n_c, n_u, 0, J, []))
    if eliminated is None:
        return SINGULAR
    chosen, _ = eliminated
    _store(order, [sorted(chosen[:n_c]), sorted(chosen[n_c:])])
    return OK


def multipliers_work(n_u: int, n_c: int) -> int:
    """Length of the work array of the kernel ``multipliers``: ``KG_MULTIPLIERS_WORK``."""
    return n_u + n_c * n_c


def multipliers(n_u: int, n_c: int, J: Array, force: Array, work: Array, result: Array) -> int:
    """The multipliers with ``J^T lambda = force``, from the speeds on which J (n_c, n_u) is best conditioned.

    ``work[:n_u]`` becomes the indices of the speeds in the order of the pivots. Returns ``SINGULAR`` when J loses
    row rank.
    """
    identity = [int(i == j) for i in range(n_c) for j in range(n_c)]
    eliminated = _eliminate(n_u, _joined(n_c, n_u, n_c, J, identity))
    if eliminated is None:
        return SINGULAR
    order, rows = eliminated
    work[:n_u] = order
    for k in range(n_c):
        result[k] = _dot([row[n_u + k] for row in rows], [force[order[i]] for i in range(n_c)])
    return OK


def constrained_work(n_u: int, n_c: int) -> int:
    """Length of the work array of the kernel ``constrained_solve``: ``KG_CONSTRAINED_WORK``."""
    n_i = n_u - n_c
    return 2 * n_u + n_u * n_i + n_i * n_i + n_i


def constrained_solve(n_u: int, n_c: int, Q: Array, P: Array, J: Array, b: Array, work: Array, udot: Array) -> int:
    """Solve ``Q u' = P + J^T lambda``, ``J u' = b`` with dependent speeds chosen by complete pivoting.

    ``work[:n_u]`` becomes the indices of the dependent, then of the independent speeds, in the order of the
    pivots. Returns ``REPARTITIONED``, or ``SINGULAR`` when J (n_c, n_u) loses row rank or ``A2 Q A2^T`` is
    not positive definite.
    """
    eliminated = _eliminate(n_u, _joined(n_c, n_u, 1, J, b))
    if eliminated is None:
        return SINGULAR
    order, rows = eliminated
    n_i = n_u - n_c
    # Columns of [A; I] and the particular solution [B; 0], rows in pivot order.
    A2T = [[-x for x in row[n_c:n_u]] for row in rows] + [[int(i == j) for j in range(n_i)] for i in range(n_i)]
    particular = [row[n_u] for row in rows] + [0] * n_i
    Qp = [[Q[r * n_u + s] for s in order] for r in order]
    QA2T = [[_dot(row, column) for column in zip(*A2T, strict=True)] for row in Qp]
    force = [P[r] - _dot(row, particular) for r, row in zip(order, Qp, strict=True)]
    reduced = [[_dot(left, right) for right in zip(*QA2T, strict=True)] for left in zip(*A2T, strict=True)]
    solution = [_dot(left, force) for left in zip(*A2T, strict=True)]
    if cholesky_solve(n_i, [x for row in reduced for x in row], solution) != OK:
        return SINGULAR
    for index, speed in enumerate(order):
        work[index] = speed
        udot[speed] = particular[index] + _dot(A2T[index], solution)
    return REPARTITIONED


def _eliminate(n_u: int, rows: Matrix) -> tuple[list[int], Matrix] | None:
    """Gauss-Jordan elimination with complete pivoting: column order and ``[I, J_D^-1 J_I, J_D^-1 b]``."""
    order = list(range(n_u))
    if len(rows) > n_u or not _equilibrate(rows, n_u):
        return None
    tolerance = _rank_tolerance(n_u, rows)
    for k in range(len(rows)):
        places = [(i, j) for i in range(k, len(rows)) for j in range(k, n_u)]
        i, j = max(places, key=lambda place: abs(rows[place[0]][place[1]]))
        if not abs(rows[i][j]) > tolerance:
            return None
        rows[k], rows[i] = rows[i], rows[k]
        for row in (*rows, order):
            row[k], row[j] = row[j], row[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for row in rows[:k] + rows[k + 1 :]:
            _subtract(row, row[k], rows[k], k)
    return order, rows


def _equilibrate(rows: Matrix, width: int) -> bool:
    """Divide each row by the largest magnitude of its first ``width`` entries; False when one has none."""
    for row in rows:
        largest = max((abs(x) for x in row[:width]), default=0)
        if not 0 < largest < float("inf"):
            return False
        row[:] = [x / largest for x in row]
    return True


def _subtract(row: list[Any], factor: Any, other: list[Any], start: int) -> None:
    """``row -= factor * other`` from column ``start`` on."""
    row[start:] = [x - factor * y for x, y in zip(row[start:], other[start:], strict=True)]


def _dot(x: Any, y: Any) -> Any:
    return sum((a * b for a, b in zip(x, y, strict=True)), 0)


def _joined(n: int, width: int, m: int, a: Array, b: Array) -> Matrix:
    """Rows of ``[a, b]``, a (n, width) and b (n, m)."""
    return [[*a[i * width : (i + 1) * width], *b[i * m : (i + 1) * m]] for i in range(n)]


def _store(target: Array, rows: Matrix) -> None:
    for index, value in enumerate(x for row in rows for x in row):
        target[index] = value


def _rank_tolerance(n: int, rows: Matrix) -> Any:
    """``KG_RANK_TOLERANCE`` at the precision of the scalars: that of their mpmath context, else double."""
    contexts = (x.context for row in rows for x in row if hasattr(x, "context"))
    context = next(contexts, None)
    return 64 * n * (np.finfo(float).eps if context is None else context.eps)


def _kernels() -> dict[str, Kernel]:
    one, many = ("n", "a", "b"), ("n", "m", "a", "b")
    constrained = ("n_u", "n_c", "Q", "P", "J", "b", "work", "udot")
    general = (*constrained, "lambda", "rank")
    canonical_arguments = ("n_u", "n_c", "Q", "Qdot", "P", "J", "b", "u", "work", "parts")
    entries = (
        Kernel("lu_solve", lu_solve, 1, one),
        Kernel("lu_solve_many", lu_solve_many, 2, many),
        Kernel("cholesky_solve", cholesky_solve, 1, one),
        Kernel("cholesky_solve_many", cholesky_solve_many, 2, many),
        Kernel("partition", partition, 2, ("n_u", "n_c", "J", "order")),
        Kernel("multipliers", multipliers, 2, ("n_u", "n_c", "J", "force", "work", "lambda"), multipliers_work),
        Kernel("udwadia_kalaba", udwadia_kalaba, 2, general, udwadia_kalaba_work, "kg_generalized.h"),
        Kernel(
            "udwadia_kalaba_limit",
            udwadia_kalaba_limit,
            2,
            ("n_u", "n_c", "Q", "P", "J", "b", "u", "G", "h", "work", "udot", "lambda", "rank"),
            udwadia_kalaba_limit_work,
            "kg_generalized.h",
        ),
        Kernel(
            "udwadia_kalaba_many",
            udwadia_kalaba_many,
            3,
            ("n_u", "n_c", "m", "Q", "J", "X", "work"),
            udwadia_kalaba_many_work,
            "kg_generalized.h",
        ),
        Kernel("canonical", canonical, 2, canonical_arguments, canonical_work, "kg_generalized.h"),
        Kernel("constrained_solve", constrained_solve, 2, constrained, constrained_work),
        Kernel(
            "control_solve",
            control_solve,
            2,
            ("m", "n", "A", "z", "y", "work", "x"),
            control_work,
            "kg_control.h",
        ),
        Kernel(
            "control_damped",
            control_damped,
            2,
            ("m", "n", "A", "z", "damping", "work", "x"),
            control_damped_work,
            "kg_control.h",
        ),
        Kernel(
            "control_feasibility",
            control_feasibility,
            2,
            ("m", "n", "A", "z", "work", "x", "result"),
            control_feasibility_work,
            "kg_control.h",
        ),
    )
    return {kernel.name: kernel for kernel in entries}


KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType(_kernels())
"""Every kernel by the name a ``Call`` has; the C function is ``kg_<name>``."""
