"""Accelerations for several right sides at once, with one factorization."""

from __future__ import annotations

from collections.abc import Sequence

from kanegen.derivation import forms
from kanegen.derivation.algebra import factorize
from kanegen.derivation.equations import PIVOT_LIMIT
from kanegen.forms import FORMS
from kanegen.graph import Node
from kanegen.program.functions.quantities import quantity
from kanegen.program.kernels.generalized import udwadia_kalaba_many_work
from kanegen.program.records import Block, Call, Invoke, Step, Store
from kanegen.program.registry import Functions, stores

WRITTEN_OUT = 2500
"""Largest n_i^2 m for which the solve of n_i unknowns with m right sides is straight-line code.

Measured on chains: 5 to 8 % faster than the kernel with 6 unknowns and columns, 17 % with 12, the same with 12
unknowns and 31 columns.
"""


def reduced_columns(
    f: Functions, rights: forms.Matrix, shifts: forms.Matrix, otherwise: str | None
) -> tuple[list[tuple[Node, ...]], tuple[Step, ...], dict[str, int]]:
    """Columns (m, n_u) of ``A2 Q A2^T x_I = right``, ``x_D = A x_I + shift``; the steps before, and their arrays.

    ``rights`` (m, n_i), ``shifts`` (m, n_d); where the partition fails the function named ``otherwise`` takes over.
    """
    e, part = f.equations, f.equations.partition
    lower, n, m = e.reduced(stabilized=False).lower, len(part.independent), len(rights)
    arrays: dict[str, int] = {}
    if n * n * m <= WRITTEN_OUT:
        try:
            factor = factorize(lower)
        except ZeroDivisionError as error:
            raise e.massless(part.independent[error.args[0]]) from error
        solved = [factor.solve(right) for right in rights]
        steps = f.pivot_guard(PIVOT_LIMIT, otherwise, *factor.conditions)
    else:
        matrix = [Store("S", i * n + j, x) for i, row in enumerate(lower) for j, x in enumerate(row)]
        sides = [Store("X", i * m + k, right[i]) for k, right in enumerate(rights) for i in range(n)]
        block = Block("reduced mass matrix and right sides", (*matrix, *sides))
        steps = (*f.pivot_guard(PIVOT_LIMIT, otherwise), block, Call("cholesky_solve_many", (n, m, "S", "X")))
        arrays = {"S": n * n, "X": n * m}
        X = f.array("X", n * m)
        solved = [X[k::m] for k in range(m)]
    columns = [forms.complete(f.graph, part, shift, x) for shift, x in zip(shifts, solved, strict=True)]
    return columns, steps, arrays


def bordered_columns(
    f: Functions, right: Sequence[Node], m: int
) -> tuple[list[list[Node]], tuple[Step, ...], dict[str, int]]:
    """Columns (m, n_u) of ``[Q -J^T; J 0] [x; lambda] = right``, whatever speeds J determines.

    By LU with row pivoting; in rank-revealing forms through singular values, for rows of any rank. ``right``
    (n_u + n_c, m) is row-major.
    """
    if FORMS[f.form].any_rank:
        return _generalized_columns(f, right, m)
    n_u, n = f.n_u, f.n_u + f.n_c
    Q, J = f.loaded("Q", f.equations.Q), f.loaded("J", f.equations.J)
    zeros = [f.graph.zero] * f.n_c
    rows = [[*Q[i], *(-row[i] for row in J)] for i in range(n_u)] + [[*row, *zeros] for row in J]
    steps = (
        Invoke(quantity(f, "Q"), "Q"),
        Invoke(quantity(f, "J"), "J"),
        Block("[Q -J^T; J 0]", (*stores("K", [x for row in rows for x in row]), *stores("X", right))),
        Call("lu_solve_many", (n, m, "K", "X")),
    )
    X = f.array("X", n * m)
    arrays = {"Q": n_u * n_u, "J": f.n_c * n_u, "K": n * n, "X": n * m}
    return [[X[i * m + k] for i in range(n_u)] for k in range(m)], steps, arrays


def _generalized_columns(
    f: Functions, right: Sequence[Node], m: int
) -> tuple[list[list[Node]], tuple[Step, ...], dict[str, int]]:
    n_u, n_c = f.n_u, f.n_c
    steps = (
        Invoke(quantity(f, "Q"), "Q"),
        Invoke(quantity(f, "J"), "J"),
        Block("right sides", stores("X", right)),
        Call("udwadia_kalaba_many", (n_u, n_c, m, "Q", "J", "X", "generalized")),
    )
    X = f.array("X", n_u * m)
    arrays = {"Q": n_u * n_u, "J": n_c * n_u, "X": (n_u + n_c) * m}
    arrays |= {"generalized": udwadia_kalaba_many_work(n_u, n_c, m)}
    return [X[k::m] for k in range(m)], steps, arrays
